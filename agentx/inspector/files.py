"""Search, and the files of the artifacts as the history records them: nothing is read from the disk."""

from typing import Any, cast, get_args

from agentx.context.service import why_lexical
from agentx.engine.moment_parser import events_at
from agentx.history.undo_restore import files_between
from agentx.inspector.access import InspectorError
from agentx.inspector.asking import MOST_CHARACTERS, Asked
from agentx.storage.events.types import FileChange
from agentx.storage.files.paths import check_path
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import EXECUTABLE, LINK
from agentx.storage.index.port import SearchKind
from agentx.storage.text import decoded
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.workspace import Workspace

MOST_HITS = 100
_HITS = 20


def search(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the passages that are nearest to a query.

    Raises:
        InspectorError: The query is empty, or the kind does not exist.
    """
    query, kind = asked.text("q"), asked.text("kind")
    if not query.strip():
        raise InspectorError(400, "`q` is empty: give words to search for.")
    if kind and kind not in get_args(SearchKind):
        raise InspectorError(400, f"Unknown kind {kind!r}. Kinds: {', '.join(get_args(SearchKind))}.")
    hits = ws.search(
        query,
        asked.number("limit", _HITS, least=1, most=MOST_HITS),
        kind=cast("SearchKind", kind) if kind else None,
        path=asked.text("path"),
        actor=asked.text("actor"),
        since=asked.text("since"),
        as_of=asked.text("at") or None,
        grouped=True,
    )
    return {"hits": [_hit(hit) for hit in hits], "lexical": why_lexical(ws.engine)}


def _hit(hit: SearchHit) -> dict[str, Any]:
    return {
        "kind": hit.file_kind or hit.kind,
        "of": hit.kind,
        "path": hit.path,
        "source": hit.source,
        "lines": [hit.start_line, hit.end_line],
        "symbol": hit.symbol if hit.kind != "memory" else "",
        "seq": hit.seq,
        "at": hit.at,
        "actor": hit.actor,
        "commit": hit.commit,
        "text": hit.text[:MOST_CHARACTERS],
        "score": round(hit.score, 4),
        "why": hit.why,
        "also": hit.also,
        "item": hit.symbol if hit.kind == "memory" else "",
    }


def listed(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the files of the artifacts, now or at a moment, by path."""
    words = asked.text("q").casefold().split()
    every = _at(ws, asked.text("at"))
    found = [path for path in sorted(every) if all(word in path.casefold() for word in words)]
    shown = asked.page(found)
    state = ws.engine.snapshot()
    latest = ws.engine.links.at(state, lambda index: {path: index.files.get(path, 0) for path in shown})
    times = {event.seq: event.at for event in events_at(ws.engine.log, latest.values())}
    return {
        "files": [_file(every[path], latest[path], times.get(latest[path], "")) for path in shown],
        "total": len(found),
    }


def _file(made: FileChange, seq: int, at: str) -> dict[str, Any]:
    return {
        "path": made.path,
        "size": made.size_bytes or None,
        "executable": made.executable,
        "link": made.link,
        "seq": seq,
        "at": at,
    }


def file(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return one file as it is recorded, now or at a moment; of a link, the path that it leads to.

    Raises:
        InspectorError: There is no such file.
        PathRefused: The path leads out of the artifacts.
    """
    path, moment = check_path(asked.text("path", 4_096)), asked.text("at")
    made = _at(ws, moment, path).get(path)
    if made is None:
        then = f" at {moment}" if moment else ""
        raise InspectorError(404, f"There is no file {path!r} in the artifacts{then}.")
    try:
        content = ws.engine.git.repo.read_blob(made.after)
    except ObjectDamaged as error:
        raise InspectorError(404, f"The content of {path!r} is no longer stored.") from error
    text = decoded(content)
    return {
        "path": path,
        "at": moment,
        "text": (text or "")[:MOST_CHARACTERS],
        "cut": len(text or "") > MOST_CHARACTERS,
        "binary": text is None,
        "size": len(content),
        "executable": made.executable,
        "link": made.link,
    }


def _at(ws: Workspace, moment: str, path: str = "") -> dict[str, FileChange]:
    """Return the recorded files at a moment by path; of the present, only one path if it is given.

    Raises:
        NoSuchMoment: The moment does not exist.
    """
    if moment:
        seq = ws.moment(moment)
        return files_between(ws.engine, seq, seq).then
    ws.engine.snapshot()  # reads what other processes recorded
    git = ws.engine.git
    entries = {path: git.tracked(path)} if path else git.manifest()
    return {
        name: FileChange(
            path=name, after=entry.oid, executable=entry.mode == EXECUTABLE, link=entry.mode == LINK
        )
        for name, entry in entries.items()
        if entry is not None
    }
