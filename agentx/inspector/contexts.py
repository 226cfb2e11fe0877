"""The context that an agent would be given, now or at an earlier moment, and how two of them differ."""

from itertools import islice
from typing import Any

from agentx.context.assembler import TITLES, Context
from agentx.context.rendering import ContextItem, unmarked
from agentx.context.service import why_lexical
from agentx.engine.moment_parser import event_at
from agentx.history.diff import names_changed
from agentx.history.undo_restore import ArtifactsBetween, files_between
from agentx.inspector.access import InspectorError
from agentx.inspector.asking import Asked, cut
from agentx.inspector.memory import enforced
from agentx.synthesis.state.state import State
from agentx.workspace import Workspace

MOST_FILES = 1_000
"""Maximum number of changed files that are listed."""

_MOST_TOKENS = 200_000
_TIERS = 3


def context(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return a context with the reason for each item, and what was left out."""
    made = _made(ws, asked, asked.text("at"))
    state = ws.engine.snapshot()
    return {
        "at": asked.text("at"),
        "seq": made.seq,
        "moment_at": _time(ws, made.seq),
        "tokens": made.tokens,
        "max_tokens": made.max_tokens,
        "tier": made.tier,
        "late": made.late,
        "replays": made.replays,
        "exact": made.exact,
        "lexical": "" if "search" in made.late else why_lexical(ws.engine),
        "sections": _sections(made, state),
        "omitted": [
            {"id": one.id, "kind": one.kind, "text": cut(unmarked(one.text))["text"], "why": one.reason}
            for one in made.omitted
        ],
        **cut(made.text),
    }


def compare(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return what differs between the contexts of two moments, and which files changed between them.

    Raises:
        InspectorError: The first moment is missing, or the second is before it.
    """
    if not asked.given("a"):
        raise InspectorError(400, "`a` is the earlier moment; `b` the later one, or now.")
    first, last = _made(ws, asked, asked.text("a")), _made(ws, asked, asked.text("b"))
    state = ws.engine.snapshot()
    before = {item.id: _item(item, state, first.seq) for item in first.items}
    after = {item.id: _item(item, state, last.seq) for item in last.items}
    if last.seq < first.seq:
        raise InspectorError(
            400, f"Event {last.seq} is before event {first.seq}; give the earlier one as `a`."
        )
    files = files_between(ws.engine, first.seq, last.seq)
    return {
        "a": {"seq": first.seq, "at": _time(ws, first.seq)},
        "b": {"seq": last.seq, "at": _time(ws, last.seq)},
        "added": [one for name, one in after.items() if name not in before],
        "removed": [one for name, one in before.items() if name not in after],
        "changed": [
            {"id": name, "before": before[name], "after": one}
            for name, one in after.items()
            if name in before and before[name]["text"] != one["text"]
        ],
        "tokens": [first.tokens, last.tokens],
        "files": [
            {"path": new, "old_path": old if old != new else "", "change": _change(files, old, new)}
            for old, new in islice(names_changed(files), MOST_FILES)
        ],
    }


def _change(files: ArtifactsBetween, old: str, new: str) -> str:
    if old != new:
        return "moved"
    return "changed" if old in files.then and new in files.now else "added" if new in files.now else "deleted"


def _made(ws: Workspace, asked: Asked, moment: str) -> Context:
    return ws.get_relevant_context(
        asked.text("message", 20_000),
        max_tokens=asked.number("max_tokens", least=1, most=_MOST_TOKENS) or None,
        tier=asked.number("tier", 1, most=_TIERS),
        as_of=moment or None,
    )


def _time(ws: Workspace, seq: int) -> str:
    event = event_at(ws.engine.log, seq)
    return event.at if event else ""


def _sections(made: Context, state: State) -> list[dict[str, Any]]:
    sections = []
    for name, title in TITLES.items():
        items = [item for item in made.items if item.section == name]
        if items:
            sections.append(
                {
                    "name": name,
                    "title": title.partition(" (")[0],
                    "note": title.partition(" (")[2].removesuffix(")"),
                    "tokens": sum(item.tokens for item in items),
                    "items": [_item(item, state, made.seq) for item in items],
                }
            )
    return sections


def _item(item: ContextItem, state: State, seq: int) -> dict[str, Any]:
    """Return an item with the words that it rested on at a moment."""
    known = state.items.get(item.id)
    quotes = known.evidence if known else ()
    return {
        "id": item.id,
        "kind": item.kind,
        "section": item.section,
        "text": unmarked(item.text),
        "tokens": item.tokens,
        "why": item.why,
        "source": item.source,
        "evidence": [{"seq": one.seq, "quote": one.quote} for one in quotes if one.seq <= seq],
        "checked": enforced(known) if known else "",
        "memory": known.id if known else "",
    }
