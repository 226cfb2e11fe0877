"""What must hold of a workspace after anything that may happen to a disk or a process: nothing acknowledged is lost.

Runs in a fresh process. Each thing that does not hold is one finding, a sentence.
"""

import os
import re
import subprocess
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.events.types import ArtifactChanged, Event, WriteReverted, changes_of
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.files.lock import FileLock
from agentx.storage.git.objects import blob_id
from agentx.storage.log.blobs import BlobStore, named_blobs
from agentx.storage.log.history import History
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import State

Acknowledged = Mapping[int, str]
"""Hash by seq of the events whose calls have returned."""

PERSON = "person.txt"
"""The one file that a person edits; every other is the engine's alone."""

EDITED = b"edited by hand\n"

_CACHES = (".agentx/snapshots/", ".agentx/read/")
"""What a crash leaves there goes with the next snapshot that is written."""

_OID = re.compile("[0-9a-f]{40}")
_EMPTY_TREE = "4b/825dc642cb6eb9a060e54bf8d69288fbee4904"


def settings(root: Path) -> Settings:
    """An environment without a model, so that nothing heavy is loaded."""
    return Settings(environ=dict(os.environ), cache_dir=root / "no-models", state_dir=root.parent / "state")


def examine(root: Path, acknowledged: Acknowledged) -> Iterator[str]:
    """Open a workspace as its next user would, twice, and say everything that is not as it must be.

    Args:
        root: The workspace.
        acknowledged: What must be there.
    """
    with Workspace.open(root, settings=settings(root)) as ws:
        state = ws.state
        ws.flush()
        damage = list(ws.engine.log.damage)
    events = list(_events(root))
    yield from (f"damage is told of: {one.path}, line {one.line}: {one.reason}" for one in damage)
    yield from _chain(events, acknowledged)
    then = [event for event in events if event.seq <= state.seq]  # the close may record how far was read
    if State().apply_all(then).encode() != state.encode():
        yield "the state is not a fold of the history from zero"
    yield from _files(root, events, acknowledged)
    yield from _git(root)
    person = root / "artifacts" / PERSON
    edited = person.exists() and _by_a_person(person.read_bytes())
    before = picture(root)
    with Workspace.open(root, settings=settings(root)) as ws:
        ws.status()  # takes up what a person edited, and removes temporary files
    after = picture(root)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed and not edited:
        yield f"a second open changed {', '.join(changed[:5])}"
    left = [path.relative_to(root).as_posix() for path in root.rglob(f"{TEMPORARY_PREFIX}*")]
    left = [path for path in left if not path.startswith(_CACHES)]
    if left:
        yield f"temporary files stay: {', '.join(left[:3])}"


def lost(root: Path, acknowledged: Acknowledged) -> list[int]:
    """The acknowledged events that the log no longer holds, read without opening the workspace."""
    there = {event.seq: event.hash for event in _events(root)}
    return [seq for seq, own in acknowledged.items() if there.get(seq) != own]


def _events(root: Path) -> Iterator[Event]:
    return History(root, record_codec()).read(on_damage=lambda _: None)


def _chain(events: list[Event], acknowledged: Acknowledged) -> Iterator[str]:
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        yield f"the seqs are not dense: {_gaps([event.seq for event in events])}"
    there = {event.seq: event.hash for event in events}
    missing = [seq for seq, own in acknowledged.items() if there.get(seq) != own]
    if missing:
        yield f"LOST: acknowledged events are gone: {missing[:10]}"


def _gaps(seqs: list[int]) -> str:
    return ", ".join(f"{a} then {b}" for a, b in zip([0, *seqs], seqs, strict=False) if b != a + 1)[:200]


def _files(root: Path, events: list[Event], acknowledged: Acknowledged) -> Iterator[str]:
    """Working files, tree and history agree, and no acknowledged write was taken back."""
    said: dict[str, str] = {}
    wanted: set[str] = set()
    reverted = {(e.data.event, e.data.path) for e in events if isinstance(e.data, WriteReverted)}
    for seq, path in reverted & {(e.seq, made.path) for e in events for made in changes_of(e)}:
        if seq in acknowledged:
            yield f"LOST: the acknowledged write of {path} by event {seq} was reverted"
    for event in events:
        for made in changes_of(event):
            if isinstance(event.data, ArtifactChanged) and made.path != PERSON:
                yield f"event {event.seq} takes {made.path} for a person's edit ({event.data.noticed})"
            if (event.seq, made.path) not in reverted:
                said[made.path] = made.after
                wanted |= {made.after} - {""}
    whole = _tree(root)
    tree = {p.removeprefix("artifacts/"): oid for p, oid in whole.items() if p.startswith("artifacts/")}
    if {path: oid for path, oid in said.items() if oid} != tree:
        differing = [path for path in said.keys() | tree.keys() if (said.get(path) or None) != tree.get(path)]
        yield f"the tree is not what the events say: {sorted(differing)[:5]}"
    here = root / "artifacts"
    files = {p.relative_to(here).as_posix(): p.read_bytes() for p in here.rglob("*") if p.is_file()}
    held = {p: blob_id(data) for p, data in files.items() if TEMPORARY_PREFIX not in p}
    differing = {path for path, _ in held.items() ^ tree.items()}
    other = sorted(path for path in differing if path != PERSON or not _by_a_person(files.get(path, b"")))
    if other:
        yield f"the working files are not the tree: {other[:5]}"
    if whole.get("history.jsonl") != blob_id((root / "history.jsonl").read_bytes()):
        yield "the log at the branch is not the log in the directory"
    yield from _reachable(root, wanted)
    for event in events:
        for oid in named_blobs(event.data):
            BlobStore(root).get(oid)


def _by_a_person(content: bytes) -> bool:
    """Whether a file holds what a person wrote, or what a power cut left of it: nobody synced that."""
    return EDITED.startswith(content.rstrip(b"\0"))


def _tree(root: Path) -> dict[str, str]:
    lines = (line.partition("\t") for line in _run(root, "ls-tree", "-r", "-z", "main").split("\0") if line)
    return {path: meta.split()[2] for meta, _, path in lines}


def _reachable(root: Path, wanted: set[str]) -> Iterator[str]:
    lines = _run(root, "rev-list", "--objects", "--parents", "--all").splitlines()
    missing = wanted - {line[:40] for line in lines}
    if missing:
        yield f"contents that events name are reachable from no ref: {len(missing)}"
    if any(_OID.fullmatch(word) for line in lines for word in line.split(" ")[2:]):
        yield "the Git history is not one line"


def _git(root: Path) -> Iterator[str]:
    # Git's own fsck lists loose objects first and reads them later: one that is packed between counts as missing.
    with FileLock(root / ".git/agentx-pack.lock").hold():
        told = _run(root, "fsck", "--strict", "--no-progress", "--no-dangling")
    if told:
        yield f"git fsck: {told.strip()[:300]}"
    told = "".join(line for line in _run(root, "status", "--porcelain").splitlines() if PERSON not in line)
    if told:
        yield f"git status is not clean: {told[:200]!r}"
    lock = root / ".git/index.lock"
    if lock.exists():
        yield f"index.lock stays: {lock.read_bytes()!r}"


def _run(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout.decode() + (done.stderr.decode() if done.returncode else "")


def picture(root: Path) -> dict[str, bytes]:
    """Everything of a workspace but caches, and but the times in Git's index file."""
    skip = (".agentx/", ".git/agentx", ".git/index", ".git/objects/")  # which are packed at any time
    names = (
        (p.relative_to(root).as_posix(), p) for p in root.rglob("*") if p.is_file() and not p.is_symlink()
    )
    return {
        name: path.read_bytes()
        for name, path in names
        if not (name.startswith(skip) or TEMPORARY_PREFIX in name or name.endswith(_EMPTY_TREE))
    }


def findings(root: Path, acknowledged: Acknowledged) -> list[str]:
    """Everything that is not as it must be; an error while looking is a finding too."""
    found: list[str] = []
    try:
        found.extend(examine(root, acknowledged))
    except Exception as error:
        where = " < ".join(
            f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[:-6:-1]
        )
        found.append(f"opening it fails: {type(error).__name__}: {error} ({where})"[:600])
        gone = lost(root, acknowledged)
        found += [f"LOST: acknowledged events are gone: {gone[:10]}"] if gone else []
    return found
