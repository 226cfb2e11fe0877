"""What changed since a step was done: the present files, and each change in words with its event."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from agentx.engine.engine import Engine
from agentx.pipelines.pointing.pointed_files import Files
from agentx.policy.file_policy import is_person
from agentx.storage.errors import AgentXError
from agentx.storage.git.objects import ObjectDamaged
from agentx.synthesis.pipelines.definition.checks import has_marker
from agentx.synthesis.pipelines.definition.plan import ReadFile, Step
from agentx.synthesis.pipelines.running.pipeline_progress import Changed
from agentx.synthesis.pipelines.running.staleness import Kind, Present, Stale, StaleCause

State = Literal["stale", "after", "changed"]
"""``stale``: it rests on other contents; ``after``: a step before it is not up to date; ``changed``: its file
was changed since, and counts as its result."""

_SHORT = 7
"""Characters shown of a content id."""

_NAMED = 3
"""Maximum number of reasons, and of steps before it, that a line names."""


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step is out of date.

    Attributes:
        kind: What changed.
        path: The file; empty for a change of the pipeline's file.
        before: Content id that the step was given or left; empty for none.
        after: Content id of now; empty if the file is gone.
        event: The event that changed it, as `agentx log` numbers it; 0 if it is outside the workspace.
        at: When, as UTC time in ISO 8601.
        actor: Who changed it.
        text: All of this in words.
    """

    kind: Kind
    text: str
    path: str = ""
    before: str = ""
    after: str = ""
    event: int = 0
    at: str = ""
    actor: str = ""


class OutOfDate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step that is out of date, or may be.

    Attributes:
        after: Steps before it that are not up to date, or not done; at most 20.
    """

    step: str
    state: State
    reasons: tuple[Reason, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The reasons in one line."""
        named = ", ".join(self.after[:_NAMED]) + f" and {len(self.after) - _NAMED} more" * (
            len(self.after) > _NAMED
        )
        told = [reason.text for reason in self.reasons[:_NAMED]]
        more = [f"{len(self.reasons) - _NAMED} more"] if len(self.reasons) > _NAMED else []
        return "; ".join([*told, *more]) if told else f"after {named}, it may come out the same"


class ChangeWords:
    """Says what changed, and which event changed it."""

    def __init__(self, changed: Mapping[str, Changed], files: Files) -> None:
        self._changed, self._files = changed, files

    def told(self, one: Stale) -> OutOfDate:
        """Return a step that is out of date, with its reasons in words."""
        only_taken = bool(one.causes) and all(self._is_taken(one.step, cause) for cause in one.causes)
        state: State = "changed" if only_taken else "stale" if one.causes else "after"
        reasons = tuple(self._reason(one.step, cause) for cause in one.causes)
        return OutOfDate(one.step.key, state, reasons, one.behind)

    def _is_taken(self, step: Step, cause: StaleCause) -> bool:
        return cause.kind == "output" and bool(cause.after) and self._is_finished(step, cause.path)

    def _is_finished(self, step: Step, path: str) -> bool:
        marker = next(write.rule.marker for write in step.writes if write.path == path)
        try:
            file = self._files.text(path)
        except AgentXError:
            return False
        return file is not None and has_marker(file.text, marker, path)

    def _reason(self, step: Step, cause: StaleCause) -> Reason:
        known = self._changed.get(cause.path)
        event, at, actor = (known.seq, known.at, known.actor) if known else (0, "", "")
        what, then = self._text(step, cause)
        text = what + (_by(known) if known else "") + then
        return Reason(cause.kind, text, cause.path, cause.before, cause.after, event, at, actor)

    def _text(self, step: Step, cause: StaleCause) -> tuple[str, str]:
        """Return what changed in words, and what follows from it."""
        path = cause.path
        change = f"changed ({cause.before[:_SHORT]} → {cause.after[:_SHORT]})"
        match cause.kind:
            case "prompt":
                return "the texts of its role, or the values in them, changed", ""
            case "checks":
                return "its checks changed", ""
            case "added":
                return f"{path} is new", ""
            case "removed":
                return f"{path} is gone", ""
            case "memory":
                return f"{cause.by} changed its entries in {path}", ""
            case "output" if not cause.after:
                return f"its own file {path} is gone", "; it is written again"
            case "output" if not self._is_finished(step, path):
                return f"its own file {path} {change}", " and has no marker; it is written again"
            case "output":
                return f"its own file {path} {change}", "; it counts as the result"
        return f"{path} {change}", ""


def _by(known: Changed) -> str:
    who = "by hand" if is_person(known.actor) else f"by {known.actor}"
    return f", {who} in event {known.seq}, {known.at[:16].replace('T', ' ')}"


def present_of(engine: Engine, files: Files, changed: Mapping[str, Changed]) -> Present:
    """Return the present state of files.

    Args:
        engine: The workspace; unrecorded edits of its files are not seen.
        files: Reads source trees, and files that the history does not know.
        changed: The latest change of each artifact. It may go on changing.
    """
    now = _Now(engine, files, changed)
    return Present(
        files=now.matching, blob=now.blob, begins=now.begins, changed=now.changed, whole=engine.read_body
    )


class _Now:
    def __init__(self, engine: Engine, files: Files, changed: Mapping[str, Changed]) -> None:
        self._engine, self._files, self._changed = engine, files, changed

    def matching(self, read: ReadFile) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for pattern in read.paths:
            paths = self._files.matching(read.source, pattern) if "*" in pattern else [pattern]
            for path in paths:
                if blob := self.blob(path, read.source):
                    found[f"{read.source}:{path}" if read.source else path] = blob
        return found

    def blob(self, path: str, source: str = "") -> str:
        known = None if source else self._changed.get(path)
        if known is not None and (known.blob or not known.link):
            return known.blob
        try:
            file = self._files.text(path, source)
        except AgentXError:
            return ""  # it cannot be read, so it is not what it was
        return file.blob if file else ""

    def changed(self, path: str, *, by_hand: bool = False) -> int:
        known = self._changed.get(path)
        return known.seq if known and (is_person(known.actor) or not by_hand) else 0

    def begins(self, path: str, blob: str) -> bool:
        read = self._engine.git.repo.read_blob
        try:
            return read(self.blob(path)).startswith(read(blob))
        except ObjectDamaged:  # it was purged, so it is not known to differ
            return True
