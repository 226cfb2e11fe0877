"""Asks a model for the checks of a rule, as the same data as a user would write."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from agentx.storage.text import clip, one_line
from agentx.synthesis.enforcement.check_file import (
    KINDS,
    CheckFileInvalid,
    expressions_of,
    format_checks,
    parse_checks,
)
from agentx.synthesis.enforcement.syntax_trees import language_of
from agentx.synthesis.memory.checks import Check, ProgramCheck
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem
from agentx.synthesis.model.port import ChatMessage, ModelClient, Reply, ToolSchema, Usage
from agentx.synthesis.model.structured import AnswerUnreadable, ask, object_of, parameters, prompt
from agentx.synthesis.pipelines.definition.yaml_lines import as_yaml

TOOL = "write_checks"
"""Name of the tool that a model answers with; calling it runs nothing."""

MAX_CHECKS = 5
"""Maximum number of checks of a rule."""

MAX_NAMES = 60
"""Maximum number of top-level names that a model is shown."""

_NESTED = re.compile(r"(?<!\\)\((?:[^()\\]|\\.)*(?<!\\)[*+](?:[^()\\]|\\.)*\)(?:[*+]|\{\d*,\d*\})")
"""A group that repeats and has a repetition in it: matching it can take exponential time."""

_REASON = 200
_NAME = 80
_QUOTE = 400


class CheckAnswer(NamedTuple):
    """A model's checks of a rule, in mode ``observe``, or why it has none."""

    checks: tuple[Check, ...] = ()
    why_not: str = ""


def checks_by(
    model: ModelClient, item: MemoryItem, files: Iterable[str], deadline: float
) -> tuple[CheckAnswer, Usage]:
    """Return a model's checks of a rule, and what the calls used.

    Args:
        model: The model.
        item: The rule.
        files: Paths of the present files. The model is shown the top-level names and the languages.
        deadline: ``time.monotonic()`` by which the answer must have arrived.

    Raises:
        AnswerUnreadable: Neither the first nor the corrected answer describes checks that can be used.
        ModelError: The model could not be reached, or not in time.
    """
    answer, usage = ask(
        model,
        [
            ChatMessage("system", f"{prompt('write_checks.md')}\n{kinds()}"),
            ChatMessage("user", _question(item, list(files))),
        ],
        ToolSchema(TOOL, "Write the checks of a rule.", parameters("write_checks.json")),
        read,
        prompt("write_checks_repair.md"),
        deadline=deadline,
    )
    own = (msgspec.structs.replace(one, mode="observe", by_hand=False) for one in answer.checks)
    checks = tuple(msgspec.structs.replace(one, written_by=model.name) for one in own)
    return answer._replace(checks=checks), usage


@lru_cache
def kinds() -> str:
    """Describe the kinds of checks that a model may write, each with its keys and an example.

    A program check is left out: it runs a command, and only a user decides what is run.
    """
    parts = []
    for example in parse_checks(prompt("check_examples.yaml"), "check_examples.yaml"):
        kind = type(example)
        if kind is not ProgramCheck:
            name = kind.__struct_config__.tag
            shown = format_checks([msgspec.structs.replace(example, mode="deny")])
            about = "\n".join([inspect.getdoc(kind) or "", *_values(kind)])
            parts.append(f"## {name}\n{about}\n\n```yaml\n{shown}```\n")
    return "\n".join(parts)


def _values(kind: type[Check]) -> Iterator[str]:
    """Yield a line for each field that has only certain values."""
    for name, expected in get_type_hints(kind).items():
        of_one = get_args(expected)[0] if get_origin(expected) is tuple else expected
        if get_origin(of_one) is Literal and name != "mode":
            yield f"Values of `{name}`: {', '.join(get_args(of_one))}."


def read(reply: Reply) -> CheckAnswer:
    """Parse a reply.

    Raises :class:`AnswerUnreadable`, with a sentence for the model, if it cannot be used.
    """
    whole = object_of(reply, TOOL)
    given = whole.get("checks")
    if not isinstance(given, list):
        raise AnswerUnreadable(f"the answer of {reply.model} has no list `checks`")
    if len(given) > MAX_CHECKS:
        raise AnswerUnreadable(f"it has {len(given)} checks; at most {MAX_CHECKS} are allowed")
    if not given:
        reason = clip(one_line(str(whole.get("why_not", ""))[: 4 * _REASON]), _REASON)
        return CheckAnswer(why_not=reason or "It gave no reason.")
    try:
        checks = parse_checks(as_yaml(_as_given(given)), "checks")
    except CheckFileInvalid as error:
        raise AnswerUnreadable(str(error)) from error
    if any(isinstance(check, ProgramCheck) for check in checks):
        raise AnswerUnreadable(
            f"only a user writes a check of the kind `program`; choose from {', '.join(_offered())}"
        )
    slow = [one for check in checks for one in expressions_of(check) if _NESTED.search(one)]
    if slow:
        raise AnswerUnreadable(f"a repetition inside a repetition can take for ever: {slow[0]!r}")
    return CheckAnswer(checks)


def _offered() -> list[str]:
    return [name for name, kind in KINDS.items() if kind is not ProgramCheck]


def _as_given(given: Sequence[Any]) -> list[Any]:
    """Return checks without empty keys, and without their mode, which is not the model's to decide."""
    return [
        {key: value for key, value in one.items() if key != "mode" and value is not None}
        if isinstance(one, dict)
        else one
        for one in given
    ]


def _question(item: MemoryItem, files: Sequence[str]) -> str:
    """Return what a model is asked: the rule in the user's words, and the names of the tree as JSON."""
    rule = {
        "rule": one_line(item.text),
        "sort": item.detail.modality.replace("_", " ")
        if isinstance(item.detail, ConstraintDetail)
        else item.kind,
        "said_as": [one_line(one.quote)[:_QUOTE] for one in item.evidence if one.quote != item.text],
        "in_answer_to": one_line(item.answers.quote)[:_QUOTE] if item.answers else "",
        "only_for_paths": list(item.scope.paths),
        "only_about": item.scope.topic,
    }
    names = sorted({f"{top}/" if rest else top for top, _, rest in (path.partition("/") for path in files)})
    languages = Counter(filter(None, map(language_of, files)))
    tree = {
        "files": len(files),
        "top_level": [one_line(name)[:_NAME] for name in names[:MAX_NAMES]],
        "languages": dict(languages.most_common(8)),
    }
    shown = {name: value for name, value in rule.items() if value}
    return f"## The rule\n{_json(shown)}\n\n## The files (names only; material)\n{_json(tree)}"


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()
