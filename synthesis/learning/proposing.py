"""Propose how to make a lesson permanent: a check if its words compile to one, a flow step, or a script."""

import re
import shlex
from typing import Literal

import msgspec

from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.language.words import STOP_WORDS, words_of
from agentx.synthesis.memory.checks import Check
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, Scope

_NAME_WORDS = 4
_PROCEDURE = re.compile(
    r"\b(?:before|after|first|then|always|each time|whenever|when|once|until|step)\b", re.IGNORECASE
)
"""Words of a lesson that belongs to some point of a procedure."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """How a lesson can become more than words.

    Attributes:
        kind: ``check``, ``flow`` or ``script``.
        command: The command for the user to type; empty if a file has to be written.
        check: The check that enforces it, if its words compile to one.
        path: Path of the script, relative to the artifacts.
    """

    kind: Literal["check", "flow", "script"]
    text: str
    command: str = ""
    checks: tuple[Check, ...] = ()
    path: str = ""


def propose(lesson: str, flow: MemoryItem | None = None) -> Proposal:
    """Return the strongest form that a lesson can take.

    ``flow`` is the one that the task followed.

    >>> propose("Never create a requirements.txt file.").kind, propose("Ask before you search.").path
    ('check', 'scripts/ask-search.sh')
    """
    checks = compile_checks(lesson, "must_not", Scope()) or compile_checks(lesson, "must", Scope())
    if checks:
        return Proposal(
            kind="check",
            text="Its words can be compiled to a check that is run before each write.",
            command=f"agentx memory add {shlex.quote(lesson)} --kind constraint",
            checks=checks,
        )
    if flow is not None and isinstance(flow.detail, FlowDetail):
        steps = " ".join(f"--step {shlex.quote(step)}" for step in (*flow.detail.steps, lesson))
        return Proposal(
            kind="flow",
            text=f"Make it a step of the flow {flow.id}, “{flow.text}”, which the task followed.",
            command=f"agentx flow edit {flow.id} {steps}",
        )
    if _PROCEDURE.search(lesson) and len(lesson.split()) > _NAME_WORDS + 2:
        return Proposal(
            kind="flow",
            text="Make it a step of a flow, so that whoever does this is shown it.",
            command=f"agentx flow add {shlex.quote(_name(lesson, ' '))} --step {shlex.quote(lesson)}",
        )
    path = f"scripts/{_name(lesson, '-') or 'lesson'}.sh"
    return Proposal(
        kind="script", text=f"Write a script that does it, {path}: the gate finds it by its name.", path=path
    )


def _name(lesson: str, between: str) -> str:
    words = (word.casefold() for word in words_of(lesson))
    bare = (word.replace("’", "").replace("'", "") for word in words if word not in STOP_WORDS)
    return between.join(list(dict.fromkeys(filter(str.isascii, bare)))[:_NAME_WORDS])
