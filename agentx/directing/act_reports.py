"""Acts that the program of a run reports: recorded before they are answered, each once."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from agentx.directing import report_act
from agentx.engine.engine import Engine
from agentx.policy.done_once import AlreadyDone, OutcomeUnknown, begin, check, end, meant, report
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import one_line
from agentx.synthesis.directing.acts import Occasion, described

Status = Literal["RECORDED", "ALREADY_DONE", "NOT_DONE", "UNKNOWN", "FAILED"]

USAGE = "agentx done [--check] NAME [KEY=VALUE]… [-- COMMAND…]"

_NAME = re.compile(r"[^\s=\0-\x1f-][^\s=\0-\x1f]{0,99}")
_KEY_BYTES = 100_000
DONE, WRONG, ALREADY = 0, 2, 3
_EXIT: dict[Status, int] = {
    "RECORDED": DONE,
    "NOT_DONE": DONE,
    "FAILED": 1,
    "ALREADY_DONE": ALREADY,
    "UNKNOWN": 4,
}


class Reported(msgspec.Struct, frozen=True):
    """The answer to a report.

    Attributes:
        status: ``RECORDED``, or ``ALREADY_DONE`` if the act is on record; ``NOT_DONE`` where that was only
            asked; ``UNKNOWN`` if a call that does the same has no result.
        output: The same in a sentence.
    """

    status: Status
    output: str


class _Wrong(Reported, frozen=True):
    """The answer to a report that nothing can be recorded for as it was made."""


def _exit_status(reported: Reported) -> int:
    return WRONG if isinstance(reported, _Wrong) else _EXIT[reported.status]


class RunFile(msgspec.Struct, frozen=True):
    """What a report needs to be recorded when the process of the run is gone."""

    root: str
    actor: str
    occasion: Occasion


class ActReports:
    """Records what the program of a run reports.

    Args:
        engine: The workspace.
        occasion: The run, with its schedule and due time.
        actor: The program's actor.
    """

    def __init__(self, engine: Engine, occasion: Occasion, actor: str) -> None:
        self._engine, self._occasion, self._actor = engine, occasion, actor

    @property
    def about(self) -> bytes:
        """The content of the file that names the run where this process is gone."""
        return msgspec.json.encode(RunFile(str(self._engine.root), self._actor, self._occasion))

    def report(
        self, name: str, key: Mapping[str, Any] | Sequence[str], *, only_check: bool = False
    ) -> Reported:
        """Record an act durably, unless it is on record; errors are returned, never raised.

        Args:
            name: Name of the act.
            key: The values that make it this act, or the words of a command that state them.
            only_check: Record nothing.
        """

        def recorded(values: Mapping[str, Any]) -> Reported:
            act = described(name, values)
            if only_check:
                check(self._engine, name, values, self._occasion)
                return Reported("NOT_DONE", f"Not done: {act}")
            report(self._engine, name, values, self._occasion, actor=self._actor)
            return Reported("RECORDED", f"Done: {act}")

        return self._answered(name, key, recorded)

    def begin(self, name: str, key: Sequence[str]) -> Reported:
        """Announce an act that a command is about to do; the output is the id of the call."""

        def begun(values: Mapping[str, Any]) -> Reported:
            call = begin(self._engine, name, values, self._occasion, actor=self._actor)
            return Reported("RECORDED", call)

        return self._answered(name, key, begun)

    def end(self, call: str, exit_status: int, name: str, key: Sequence[str]) -> Reported:
        """Record how the command of an announced act ended."""

        def ended(values: Mapping[str, Any]) -> Reported:
            end(self._engine, call, exit_status, name, values, self._occasion, actor=self._actor)
            return Reported("RECORDED", "")

        return self._answered(name, key, ended)

    def _answered(
        self,
        name: str,
        key: Mapping[str, Any] | Sequence[str],
        answer: Callable[[Mapping[str, Any]], Reported],
    ) -> Reported:
        try:
            if not _NAME.fullmatch(name):
                raise UsageError(f"{one_line(name)[:80]!r} cannot be the name of an act; write one word.")
            if len(msgspec.json.encode(key)) > _KEY_BYTES:
                raise UsageError(f"The key of {name} is longer than {_KEY_BYTES:,} bytes; report an id.")
            self._engine.write_path.refresh()
            with self._engine.write_path.exclusive():
                if isinstance(key, Mapping):
                    return answer(key)
                return answer(meant(self._engine, name, key, self._occasion))
        except AlreadyDone as error:
            return Reported("ALREADY_DONE", str(error))
        except OutcomeUnknown as error:
            return Reported("UNKNOWN", str(error))
        except (AgentXError, RecursionError, ValueError, OSError) as error:
            made = _Wrong if isinstance(error, UsageError) else Reported
            return made("FAILED", one_line(str(error)))

    def command(self, words: Sequence[bytes]) -> tuple[int, str]:
        """Carry out ``agentx done`` with these words; return the exit status and the sentence to print."""
        try:
            told = [word.decode() for word in words]
        except UnicodeDecodeError:
            return WRONG, "A report is UTF-8 text."
        match told:
            case [report_act.END, call, ended, name, *key] if ended.isdecimal():
                reported = self.end(call, int(ended), name, key)
                return _exit_status(reported), reported.output
        begins = told[:1] == [report_act.BEGIN]
        options = {word for word in told[begins:] if word.startswith("--")}
        name, *key = [word for word in told[begins:] if word not in options] or [""]
        if not name or options - (set() if begins else {"--check"}):
            return WRONG, f"A program reports what it has done: {USAGE}"
        reported = self.begin(name, key) if begins else self.report(name, key, only_check=bool(options))
        return _exit_status(reported), reported.output

    def answer(self, words: Sequence[bytes]) -> bytes:
        """Return the answer to ``agentx done``, as it goes over the socket."""
        status, text = self.command(words)
        return f"{status} {text}".encode()


def how_to_report(acts: Mapping[str, Sequence[str]]) -> str:
    """Return what a program that reads only a prompt is told about reporting.

    Args:
        acts: The acts that ``agentx.toml`` declares for it, with their keys.
    """
    names = [f"- {name} {' '.join(f'{path}=…' for path in key)}".rstrip() for name, key in acts.items()]
    about = (
        "Do each thing that must not be done twice by `agentx done NAME KEY=VALUE… -- COMMAND…`, with what "
        "identifies it, such as `agentx done offer id=4711 -- sh offer.sh 4711`: it runs the command unless "
        "that was done before (exit status 3) or nobody knows whether it was (4; go on with the rest), and "
        "records what came of it. "
        "Report what no command does right after you have done it: `agentx done NAME KEY=VALUE…`. "
        "`agentx done --check NAME KEY=VALUE…` only asks; its exit status is 3 for what was done before."
    )
    return "\n".join([about, *(["Names and keys:", *names] if names else [])])
