"""``agentx repair``: what is damaged is restored byte for byte from another place that holds the same content.

A sealed segment comes from the Git history, the live log from its latest commit and the lines that stand behind, a long
text from the commits; what Git lacks, from the files (:mod:`agentx.storage.git.repair`). Nothing is put in place before it
proved itself: an object by its name, the log by its chain of hashes. What was there is set aside under
``.agentx/repaired``. It works on the files alone, so that a workspace need not open for it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from agentx import layout, opening
from agentx.findings import REPAIR, Finding, Progress
from agentx.storage.codec import GENESIS, Codec, DamagedLine, split
from agentx.storage.durable import write_file
from agentx.storage.facts import FACTS
from agentx.storage.git.objects import ObjectDamaged, blob_id
from agentx.storage.git.reading import ObjectReader
from agentx.storage.git.repair import Aside, Mended, mend, read_ref
from agentx.storage.history import LIVE, ORPHANS, SEGMENTS, count_segments, segment_path
from agentx.storage.lock import FileLock
from agentx.storage.proof import Proof
from agentx.synthesis.conclusions import CONCLUSIONS
from agentx.verification import verify

_LEFT = "Nothing here holds what is lost; fetch it from a clone (`git fetch`) or a backup, and repair again."


class Repaired(msgspec.Struct, frozen=True):
    """What a repair did.

    Attributes:
        mended: What was restored, made again or set aside, and from where.
        left: What is still not as it should be.
        aside: Where what was damaged lies now, relative to the workspace; empty where nothing was moved.
    """

    mended: tuple[Mended, ...]
    left: tuple[Finding, ...]
    aside: str


def repair(root: Path, *, dry_run: bool = False, progress: Progress | None = None) -> Repaired:
    """Restore what is damaged or missing; a second call does nothing.

    Args:
        root: The workspace's directory.
        dry_run: Change nothing: ``mended`` says what would be restored, and ``left`` what is found.
        progress: Told how far the look at the end is.

    Raises:
        NotAWorkspace: The directory is none.
        RepositoryDamaged: No commit can be read whole.
    """
    if not opening.is_workspace(root):
        raise opening.NotAWorkspace(f"{root} is not a workspace. Make one with `agentx init {root}`.")
    layout.check(root)
    aside = Aside(root)
    with FileLock(root / ".git" / "agentx.lock", brief=True).hold():
        if dry_run:
            mended = [
                Mended(path, f"would be restored from {source}") for path, _, source in _restorable(root)
            ]
        else:
            mended = [*mend(root, aside, thorough=True), *_restore(root, aside)]
    left = verify(root, progress=progress).findings
    if not dry_run:
        left = tuple(map(_without_repair, left))
    where = aside.folder.relative_to(root).as_posix() if aside.used else ""
    return Repaired(tuple(mended), left, where)


def _without_repair(finding: Finding) -> Finding:
    """A finding after a repair: that helped as far as it could."""
    return msgspec.structs.replace(finding, todo=_LEFT) if finding.todo == REPAIR else finding


def _restore(root: Path, aside: Aside) -> Iterator[Mended]:
    for path, content, source in list(_restorable(root)):
        if (root / path).exists():
            aside.keep(root / path)
        write_file(root / path, content)
        yield Mended(path, f"was restored from {source}")


def _restorable(root: Path) -> Iterator[tuple[str, bytes, str]]:
    """Files of the record that are not what the latest commit says, with the content that they should have."""
    head = read_ref(root / ".git")
    if not head:
        return
    reader = ObjectReader(root / ".git")
    tree = reader.commit(head).tree
    source = f"commit {head[:12]}"
    folder = reader.entry(tree, SEGMENTS)
    held = dict(reader.files(folder.oid, f"{SEGMENTS}/")) if folder else {}
    for path, entry in held.items():
        if path != ORPHANS and _id(root / path) != entry.oid:
            try:
                yield path, reader.blob(entry.oid), source
            except ObjectDamaged:
                continue  # told by the look at the end
    live = reader.entry(tree, LIVE)
    if live is not None:
        sealed = sum(path[len(SEGMENTS) + 1 :][:3].isdigit() for path in held)
        yield from _restored_live(root, sealed, reader.blob(live.oid), source)


def _id(path: Path) -> str:
    try:
        return blob_id(path.read_bytes())
    except OSError:
        return ""


def _restored_live(
    root: Path, sealed: int, committed: bytes, source: str
) -> Iterator[tuple[str, bytes, str]]:
    """What was the live log at the latest commit, with that commit's lines and those that follow from them.

    It may be a segment by now.
    """
    path = segment_path(sealed + 1) if count_segments(root) > sealed else LIVE
    try:
        content = (root / path).read_bytes()
    except FileNotFoundError:
        content = b""
    if content.startswith(committed):
        return
    lines = committed.splitlines(keepends=True)
    previous = split(lines[-1]).hash if lines else GENESIS
    known = set(lines)
    for line in content.splitlines(keepends=True):
        if line in known or not line.endswith(b"\n"):
            continue
        try:
            parts = split(line)
        except DamagedLine:
            continue
        if parts.extends(previous):
            lines.append(line)
            previous = parts.hash
    if _proves(root, path, lines, sealed):
        yield path, b"".join(lines), source


def _proves(root: Path, path: str, lines: Iterable[bytes], sealed: int) -> bool:
    """Whether the chain of hashes runs through some lines in the place of a file, from the segment before it on."""
    codec, faults = Codec(FACTS | CONCLUSIONS), list[str]()
    seq, own_hash = 0, GENESIS
    if sealed:
        last = _last_line(root / segment_path(sealed))
        try:
            event = codec.decode(last)
        except DamagedLine:
            return False
        seq, own_hash = event.seq, event.hash
    proof = Proof(codec, lambda place, _what: faults.append(place), lambda _line: False, seq, own_hash)
    for _ in proof.follow((path, number, line) for number, line in enumerate(lines, start=1)):
        pass
    return not faults


def _last_line(path: Path) -> bytes:
    try:
        return (path.read_bytes().splitlines(keepends=True) or [b""])[-1]
    except OSError:
        return b""
