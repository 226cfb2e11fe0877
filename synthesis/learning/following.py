"""Observe which steps of a flow a run followed, by its tool calls, and whether a run changed anything.

A step that tools cannot show ("wait until QA agrees") does not count against a run.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from agentx.storage.events.types import AgentMessageSent, ToolCallExecuted
from agentx.synthesis.checks.command import is_check_command
from agentx.synthesis.language.words import stem, vocabulary, words_of
from agentx.synthesis.shell.command_line import ProgramCall, steps
from agentx.synthesis.shell.effects import looks_only
from agentx.synthesis.state.flows import terms

FITS = 0.5
"""Share of a step's content words from which a call is evidence of it."""

ENOUGH = 0.5
"""Share of the observable steps that a run must show to have followed the flow."""

READING_TOOLS = vocabulary(
    """
    read_file list_directory search_memory summarize_directory_purpose summarize_decisions settle Read Glob
    Grep LS NotebookRead WebSearch TodoWrite
    """
)
"""Tools that change no artifact, of AgentX and of other agents."""

CHECKING_TOOLS = vocabulary("run_tests run_lint run_build check_document")

_CHARACTERS = 400
"""Maximum number of characters read of one argument."""

_PART = 4
"""Minimum length of a word that is recognised at the start or the end of a longer one."""

_PEOPLE = vocabulary("wait ask tell agree approve approval confirm decide discuss consider consult think")
"""Acts of people that no tool call shows."""

_GENERAL = vocabulary("run execute perform command")
"""Words that say nothing about which command runs."""

_QUOTED = re.compile(r"`([^`]+)`")
_LEFT_OUT = "…"


class StepsSeen(msgspec.Struct, frozen=True):
    """The steps of a flow that the tool calls of a run show, by number from 1.

    Attributes:
        seen: The steps that a call fits.
        failed: Those of them whose last call failed.
        observable: The steps that were seen, and those that a tool call could show.
    """

    seen: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    observable: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """Share of the observable steps that were seen."""
        return len(self.seen) / len(self.observable) if self.observable else 0.0

    @property
    def followed(self) -> bool:
        """Whether the run followed the flow: at least half of its observable steps were seen."""
        return bool(self.seen) and self.share >= ENOUGH


class _SeenCall(msgspec.Struct, frozen=True):
    """What a tool call shows: its words, its programs, the names in it, and whether it worked."""

    words: frozenset[str]
    programs: tuple[ProgramCall, ...]
    names: frozenset[str]
    worked: bool

    def has(self, term: str) -> bool:
        """Return whether a word of a step is in the call, perhaps as a part ("link" in "linkchecker")."""
        if term in self.words:
            return True
        ends = (word.startswith(term) or word.endswith(term) for word in self.words)
        return len(term) >= _PART and any(ends)


def observe(flow_steps: Sequence[str], calls: Iterable[ToolCallExecuted]) -> StepsSeen:
    """Return the steps of a flow that the calls of a run show; denied calls and failed looks show nothing.

    >>> calls = [ToolCallExecuted("1", "run_command", "SUCCEEDED", command="hugo build --minify")]
    >>> seen = observe(["Build the site with hugo", "Upload public/", "Wait until QA agrees"], calls)
    >>> seen.seen, seen.observable, seen.followed
    ((1,), (1, 2), True)
    """
    shown = [_shown(call) for call in calls if call.status != "DENIED" and not _only_failed_to_look(call)]
    seen: list[int] = []
    failed: list[int] = []
    observable: list[int] = []
    for number, step in enumerate(flow_steps, start=1):
        fitting = [one for one in shown if _fits(step, one)]
        if fitting:
            seen.append(number)
            failed += [number] * (not fitting[-1].worked)
        if fitting or _can_be_seen(step):
            observable.append(number)
    return StepsSeen(tuple(seen), tuple(failed), tuple(observable))


def is_reading(tool: str, command: str = "") -> bool:
    """Return whether a call can change nothing, by its tool or its command line."""
    return tool in READING_TOOLS or (bool(command) and looks_only(command))


def can_change(tool: str, command: str = "") -> bool:
    """Return whether a call can change something: it neither reads nor checks.

    >>> can_change("write_file"), can_change("read_file"), can_change("run_command", "git status")
    (True, False, False)
    """
    return tool not in READING_TOOLS | CHECKING_TOOLS and not (command and looks_only(command))


def is_change(call: ToolCallExecuted) -> bool:
    """Return whether a call changes something, or would have: it neither reads nor checks."""
    command = call.command_line
    return can_change(call.tool, command) and not (command and is_check_command(command))


def only_denied(calls: Iterable[ToolCallExecuted]) -> bool:
    """Return whether every change that a run tried was denied, and there was at least one."""
    tried = [call for call in calls if is_change(call)]
    return bool(tried) and all(call.status == "DENIED" for call in tried)


def checked_rules(facts: Iterable[ToolCallExecuted | AgentMessageSent]) -> tuple[list[str], list[str]]:
    """Return the ids of the rules that a run kept by their checks, and of those that it broke.

    The last check of a rule decides: one that denied a call and was then followed is kept. The other checks
    of a denied call do not count, as its change was not made.
    """
    held: dict[str, bool] = {}
    for fact in facts:
        denied_by = fact.denied_by if isinstance(fact, ToolCallExecuted) else ()
        if not denied_by:
            held |= dict.fromkeys(fact.kept, True)
        held |= dict.fromkeys((*fact.broke, *denied_by), False)
    return [name for name, kept in held.items() if kept], [name for name, kept in held.items() if not kept]


def _worked(call: ToolCallExecuted) -> bool:
    return call.status == "SUCCEEDED" and not call.exit_code


def _only_failed_to_look(call: ToolCallExecuted) -> bool:
    """Return whether a call failed that would have changed nothing: it says nothing about a step."""
    command = call.command_line
    looked = call.tool in READING_TOOLS or bool(command and looks_only(command))
    return looked and not _worked(call)


def _shown(call: ToolCallExecuted) -> _SeenCall:
    command = call.command_line
    paths = [change.path for change in call.changes]
    given = [value[:_CHARACTERS] for value in call.arguments.values() if isinstance(value, str)]
    programs = steps(command) if command else ()
    arguments = (word for one in programs for word in (one.program, *one.arguments))
    words = terms(" ".join((call.tool, command[:_CHARACTERS], *paths, *given)))
    return _SeenCall(
        words=frozenset(words) - _stems(_GENERAL),
        programs=programs,
        names=frozenset((call.tool, *paths, *given, *arguments)),
        worked=_worked(call),
    )


def _fits(step: str, call: _SeenCall) -> bool:
    """Return whether a call is evidence of a step: it runs the quoted command, or has enough of its words."""
    quoted = _QUOTED.findall(step)
    whole = [span for span in quoted if len(span.split()) > 1]
    if any(_is_run(span, call) for span in whole):
        return True
    if whole:
        return False
    if any(_names(span, call) for span in quoted):
        return True
    wanted = [term for term in terms(step) if term not in _stems(_GENERAL)]
    return bool(wanted) and sum(map(call.has, wanted)) / len(wanted) >= FITS


def _is_run(span: str, call: _SeenCall) -> bool:
    """Return whether a call runs the programs of a command line, at least with its arguments in order."""
    wanted = steps(span.replace(_LEFT_OUT, ""))
    return bool(wanted) and all(any(_runs(one, ran) for ran in call.programs) for one in wanted)


def _runs(wanted: ProgramCall, ran: ProgramCall) -> bool:
    rest = iter(ran.arguments)
    return wanted.program == ran.program and all(word in rest for word in wanted.arguments)


def _names(name: str, call: _SeenCall) -> bool:
    return any(one == name or one.endswith(f"/{name}") for one in call.names)


def _can_be_seen(step: str) -> bool:
    return not any(stem(word) in _stems(_PEOPLE) for word in words_of(step))


@cache
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, words))
