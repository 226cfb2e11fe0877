"""``agentx repair``: restore damaged content, byte for byte, from another place that holds it.

Sources of the log are the commits, other Git objects here and in remotes, and lines that were set aside
(:mod:`agentx.recording.heal_log`). A long text comes from the commits. Objects that Git lacks come from the
files (:mod:`agentx.storage.git.recovery.git_repair`). Everything is verified before it is put in place: an
object by its name, the log by its hash chain. The damaged version is set aside under ``.agentx/repaired``.
Repair works on the files alone, so it needs no open workspace. At the end the healed log is committed.
"""

import contextlib
from pathlib import Path

import msgspec

from agentx.config import read_config
from agentx.core import layout
from agentx.core.cache_dir import make_cache
from agentx.core.event_bus import Bus
from agentx.core.findings import REPAIR, Finding
from agentx.core.layout import ARTIFACTS
from agentx.integrity.verify import verify
from agentx.recording import heal_log
from agentx.recording.write_path import WritePath
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError
from agentx.storage.files.lock import FileLock
from agentx.storage.git.recovery.git_repair import Aside, Mended, mend
from agentx.storage.progress import Progress
from agentx.synthesis.memory.record_codec import record_codec

_CODEC = record_codec()
_LEFT = (
    "The lost data is not in this workspace. Fetch it from a clone (`git fetch`) or a backup and "
    "repair again; for events, `agentx repair --accept-loss` continues without them."
)


class Repaired(msgspec.Struct, frozen=True):
    """The result of a repair.

    Attributes:
        mended: What was restored, rebuilt or set aside, and from where.
        left: What is still wrong.
        aside: Directory of the damaged files, relative to the workspace; empty if nothing was moved.
    """

    mended: tuple[Mended, ...]
    left: tuple[Finding, ...]
    aside: str


def repair(
    root: Path, *, dry_run: bool = False, accept_loss: bool = False, progress: Progress | None = None
) -> Repaired:
    """Restore what is damaged or missing; a second call does nothing.

    Args:
        root: The workspace's directory.
        dry_run: Change nothing: ``mended`` lists what would be restored, and ``left`` what is wrong.
        accept_loss: Continue without events that no place holds: each keeps its place, marked as lost.
        progress: Receives progress of the final check.

    Raises:
        NotAWorkspace: The directory is not a workspace.
        RepositoryDamaged: No commit can be read completely.
        HistoryWriteFailed: The disk refuses a write.
    """
    if not layout.is_workspace(root):
        raise layout.NotAWorkspace(f"{root} is not a workspace. Create one with `agentx init {root}`.")
    layout.check(root)
    aside = Aside(root)
    with FileLock(root / ".git" / "agentx.lock", brief=True).hold():
        mended: list[Mended] = []
        if not dry_run:
            make_cache(root)
            mended += mend(root, aside, thorough=True)
        rebuilt = heal_log.rebuild(root, _CODEC, everywhere=True, accept_loss=accept_loss)
        if not dry_run:
            mended += heal_log.put_in_place(root, rebuilt, aside)
        for path in rebuilt.files if dry_run else ():
            source = rebuilt.sources.get(path)
            how = f"would be restored from {source}" if source else "would be cleared of foreign lines"
            mended.append(Mended(path, how))
    if not dry_run:
        _commit(root)
    left = verify(root, progress=progress).findings
    if not dry_run:  # what could be repaired is
        left = tuple(msgspec.structs.replace(one, todo=_LEFT) if one.todo == REPAIR else one for one in left)
    where = aside.folder.relative_to(root).as_posix() if aside.used else ""
    return Repaired(tuple(mended), left, where)


def _commit(root: Path) -> None:
    """Commit the current log if the last commit holds another."""
    with contextlib.suppress(AgentXError, OSError):  # the final check reports the cause
        config = read_config(root)
        place = layout.artifacts_root(root, config.workspace.artifacts)
        artifacts = Artifacts(place, config.limits.max_file_bytes, skip=(root,))
        path = WritePath(root, _CODEC, artifacts, Bus(), outer=place != root / ARTIFACTS)
        try:
            path.load()
            if path.log.state.format <= layout.FORMAT:
                path.commit_healed()
        finally:
            path.close()
