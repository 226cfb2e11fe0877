"""What a person sees of a call before they decide: the one view of terminal, inspector and MCP.

The view is data and holds everything: no argument is cut. Where a rendering folds something it says so.
:attr:`ApprovalView.digest` binds a decision to what was shown: if the call is another one by then, nothing is
decided.
"""

import json
from difflib import unified_diff
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy import approvals
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import APPROVE_STAGE, key_of
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.text import clip, decoded, encodable
from agentx.storage.visible import marked, notes_on, visible
from agentx.synthesis.state.state import PendingCall
from agentx.trust.digests import digest

_COMPARED_LINES = 5_000
"""Larger files are shown whole: comparing them takes seconds."""

_FILE_CHARACTERS = 1_000_000
"""A larger file is not shown; the view says so."""

_HEAD, _TAIL = 700, 500
"""Characters of a folded text that are shown of its beginning and of its end."""

_HEAD_LINES, _TAIL_LINES = 12, 8


class NotAsShown(UsageError):
    """The call is not what a person was shown, so nothing is decided."""


class ShownText(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of a call, or a file.

    Attributes:
        name: Name of the argument, or path of the file.
        text: All of it; of a file that was decided on before, its difference since then.
        state: Of a file: ``new``, ``changed``, ``unchanged``, ``unreadable`` or ``missing``; empty for an
            argument.
        characters: Length of the text, and its ``lines``.
    """

    name: str
    text: str
    state: str = ""
    characters: int
    lines: int

    @property
    def size(self) -> str:
        """The length in words."""
        return f"{_counted(self.characters, 'character')}, {_counted(self.lines, 'line')}"


class ApprovalView(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person, with all that they decide on.

    Attributes:
        what: What is decided on: the tool, or the stage of a pipeline.
        question: What they are asked.
        arguments: Of a call: its arguments, whole, with secrets redacted as in the record.
        files: Of a stage of a pipeline: the files that they judge.
        notes: What a reader may overlook.
        accept: Label of the answer that lets it run, and ``refuse`` of the other.
        wants_reason: Whether a refusal is of no use without a reason.
        digest: Stands for all of this; see :meth:`agentx.workspace.Workspace.approve`.
    """

    call_id: str
    seq: int
    tool: str
    run: str
    what: str
    question: str
    arguments: tuple[ShownText, ...] = ()
    files: tuple[ShownText, ...] = ()
    notes: tuple[str, ...] = ()
    accept: str = "Approve once"
    refuse: str = "Deny"
    wants_reason: bool = False
    digest: str


def approval_view(engine: Engine, call: PendingCall) -> ApprovalView:
    """Return what a person decides on."""
    recorded = engine.read_body(call.whole)
    given = _given(call, recorded)
    if call.tool == APPROVE_STAGE:
        return _of_stage(engine, call, given, recorded)
    arguments = tuple(_shown(name, _as_text(value)) for name, value in given.items())
    notes = [note for one in arguments for note in notes_on(one.text)]
    if approvals.holds_secret(engine, call, recorded):
        notes.append("A secret that it holds is redacted here, and is part of what runs.")
    return ApprovalView(
        call_id=call.call_id,
        seq=call.seq,
        tool=call.tool,
        run=call.run,
        what=title_of(call),
        question=f"May {clip(call.tool, 100)} run?",
        arguments=arguments,
        notes=tuple(dict.fromkeys(notes)),
        digest=_digest(call, recorded, {}),
    )


def title_of(call: PendingCall) -> str:
    """Return what is decided on in a few words: the tool, or the stage of a pipeline."""
    if call.tool != APPROVE_STAGE:
        return clip(call.tool, 100)
    stage, item = (str(call.arguments.get(name, "")) for name in ("stage", "item"))
    return f"stage {clip(key_of(stage, item), 100)}"


def waiting_views(engine: Engine) -> tuple[ApprovalView, ...]:
    """Return the view of each call that needs approval, oldest first."""
    return tuple(approval_view(engine, call) for call in approvals.waiting(engine))


def require_shown(engine: Engine, call: PendingCall, shown: str) -> None:
    """Check that a call is still what a person was shown.

    Raises:
        NotAsShown: It is not.
    """
    if approval_view(engine, call).digest != shown:
        raise NotAsShown(
            f"{call.call_id} is not what was shown any more, so nothing was decided: look at it again with "
            f"`agentx approve {call.call_id}`."
        )


def _digest(call: PendingCall, recorded: str, now: dict[str, str]) -> str:
    return digest([call.call_id, call.seq, call.tool, call.run, recorded, _plain(call.arguments), now])[:32]


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _given(call: PendingCall, recorded: str) -> dict[str, Any]:
    try:
        found = json.loads(recorded)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else dict(call.arguments)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _shown(name: str, text: str, state: str = "") -> ShownText:
    text = encodable(text)
    return ShownText(
        name=encodable(str(name)),
        text=text,
        state=state,
        characters=len(text),
        lines=text.count("\n") + (text[-1:] not in {"", "\n"}),
    )


# --- a person's stage of a pipeline -------------------------------------------------------------------------


def _of_stage(engine: Engine, call: PendingCall, given: dict[str, Any], recorded: str) -> ApprovalView:
    files, before = _blobs(given, call, "files"), _blobs(given, call, "before")
    writes = [str(path) for path in given.get("writes") or ()]
    manifest = engine.git.manifest()
    now = {path: manifest[path].oid for path in (*files, *writes) if path in manifest}
    files |= {path: now.get(path, "") for path in writes}  # what the person wrote since they were asked
    notes = [
        f"{visible(path)} has changed since it was asked: the pipeline will ask again."
        for path, blob in files.items()
        if blob and now.get(path, blob) != blob
    ]
    if left_out := given.get("left_out"):
        notes.append(f"{left_out:,} more files that it reads are not shown here.")
    shown = tuple(_file(engine, path, blob, before.get(path, "")) for path, blob in files.items())
    return ApprovalView(
        call_id=call.call_id,
        seq=call.seq,
        tool=call.tool,
        run=call.run,
        what=title_of(call),
        question=str(given.get("question", "")).strip() or f"Is {title_of(call)} as it should be?",
        files=shown,
        notes=tuple(dict.fromkeys([*notes, *(note for one in shown for note in notes_on(one.text))])),
        accept="Accept",
        refuse="Send back, with a reason",
        wants_reason=True,
        digest=_digest(call, recorded, now),
    )


def _blobs(given: dict[str, Any], call: PendingCall, name: str) -> dict[str, str]:
    """Return content ids by path; earlier versions kept them outside of the whole arguments."""
    found = given.get(name, call.arguments.get(name))
    return {str(path): str(blob) for path, blob in found.items()} if isinstance(found, dict) else {}


def _file(engine: Engine, path: str, blob: str, before: str) -> ShownText:
    if not blob:
        return _shown(path, "", "missing")
    if before == blob:
        return _shown(path, "", "unchanged")
    new = _text(engine, blob)
    if new is None:
        return _shown(path, "", "unreadable")
    old = _text(engine, before) if before else None
    if old is None or max(new.count("\n"), old.count("\n")) > _COMPARED_LINES:
        return _shown(path, new, "changed" if before else "new")
    lines = unified_diff(old.splitlines(), new.splitlines(), "as you last decided", "now", lineterm="")
    return _shown(path, "\n".join(lines), "changed")


def _text(engine: Engine, blob: str) -> str | None:
    """Return a content as text; ``None`` if it was purged, is binary or too large to be shown."""
    try:
        text = decoded(engine.git.repo.read_blob(blob)) if blob else None
    except (ObjectDamaged, ValueError):
        return None
    return text if text is not None and len(text) <= _FILE_CHARACTERS else None


# --- the view as text ---------------------------------------------------------------------------------------


def as_text(view: ApprovalView, *, fold: bool = False) -> str:
    """Return a view as plain text, with a mark for what cannot be seen.

    Args:
        view: The view.
        fold: Whether the middle of long texts is left out, with a mark that says so.
    """
    lines = [visible(view.question)]
    for one in (*view.arguments, *view.files):
        shown = "".join(text for text, _ in pieces(view, one, fold=fold))
        lines += ["", heading(one), *(f"│ {line}" for line in shown.split("\n") if shown)]
    if not view.arguments and not view.files:
        lines += ["", "No arguments."]
    return "\n".join([*lines, *[""] * bool(view.notes), *(f"! {note}" for note in view.notes)])


_WITHOUT_TEXT = {
    "missing": "is not there yet: write it first",
    "unchanged": "as you last decided",
    "unreadable": "cannot be shown here: look at the file itself",
}


def heading(one: ShownText) -> str:
    """Return the line above an argument or a file: its name and how long it is."""
    state = {
        "unreadable": "cannot be shown here: look at the file itself",
        "unchanged": "as you last decided",
    }
    told = state.get(one.state) or ", ".join(filter(None, (one.state, one.size)))
    return f"{visible(one.name)} · {told}"


def pieces(view: ApprovalView, one: ShownText, *, fold: bool = False) -> list[tuple[str, bool]]:
    """Return an argument or a file in pieces, as :func:`~agentx.storage.visible.marked` does.

    With ``fold``, the middle of a long text is left out, with a mark that says so.
    """
    parts = marked(one.text)
    if not fold or not parts:
        return parts
    head = _kept(parts, _HEAD, _HEAD_LINES)
    tail = _turned(_kept(_turned(parts), _TAIL, _TAIL_LINES))
    left = _length(parts) - _length(head) - _length(tail)
    if left <= 0:
        return parts
    told = f"⟨folded here: {left:,} characters; all of it: agentx approve {visible(view.call_id)}⟩"
    return [*head, ("\n", False), (told, True), ("\n", False), *tail]


def _turned(parts: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return [(text[::-1], is_mark) for text, is_mark in reversed(parts)]


def _length(parts: list[tuple[str, bool]]) -> int:
    return sum(len(text) for text, _ in parts)


def _kept(parts: list[tuple[str, bool]], characters: int, lines: int) -> list[tuple[str, bool]]:
    """Return the beginning of some pieces, within a number of characters and lines; marks stay whole."""
    kept: list[tuple[str, bool]] = []
    for text, is_mark in parts:
        some = text if is_mark else "\n".join(text.split("\n", lines)[:lines])[:characters]
        kept.append((some, is_mark))
        characters -= len(some)
        lines -= some.count("\n")
        if some != text or characters <= 0 or lines <= 0:
            break
    return kept


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
