"""Fast-forwards a workspace to commits made elsewhere: working files, log and branch.

The intent is first written to a journal (``.git/agentx-pull``). After a crash, the next process that takes
the workspace's lock finishes it, so that no process sees, or builds upon, a half-done pull. All of this runs
under that lock.
"""

import sys
from pathlib import Path

from agentx.core import layout
from agentx.core.layout import ARTIFACTS
from agentx.recording.staging import WriteFailed
from agentx.storage import stopping
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_file
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import EXECUTABLE, LINK, GitRepository
from agentx.storage.log.history import LIVE, SEGMENTS

NAME = "agentx-pull"

_Change = tuple[TreeEntry | None, TreeEntry | None]


@stopping.finishing()
def take_over(root: Path, repo: GitRepository, artifacts: Path, commit: str) -> None:
    """Fast-forward a workspace from its branch's commit to a checked descendant.

    Args:
        root: The workspace's directory; all its files must be recorded.
        repo: Its repository.
        artifacts: Directory of the artifacts.
        commit: The commit.

    Raises:
        WriteFailed: The disk refuses; the rest is done when the workspace is used again.
    """
    write_file(repo.git_dir / NAME, f"{repo.head} {commit}".encode())
    finish(root, repo, artifacts)


@stopping.finishing()
def finish(root: Path, repo: GitRepository, artifacts: Path) -> None:
    """Finish an interrupted fast-forward; cheap if there is none.

    Raises:
        WriteFailed: The disk refuses.
    """
    journal = repo.git_dir / NAME
    try:
        old, new = nofollow.read_text(journal).split()
    except FileNotFoundError:
        return
    try:
        if repo.head in (old, new) and repo.descends(new, old):
            layout.check_commit(repo, new, old)  # the journal may have come with a copy of the workspace
            _bring(root, repo, artifacts, old, new)
        nofollow.remove(journal)
        sync_directory(journal.parent)
    except OSError as error:
        raise WriteFailed(
            f"Pulled files could not be written to {root}: {error.strerror}. The rest is written when the "
            "workspace is next used."
        ) from error


def _bring(root: Path, repo: GitRepository, artifacts: Path, old: str, new: str) -> None:
    changes = repo.diff(repo.tree_of(old), repo.tree_of(new))
    live = changes.pop(LIVE, (None, None))[1]
    log = {path: changes.pop(path) for path in list(changes) if path.startswith(f"{SEGMENTS}/")}
    beside, inside = Artifacts(root, sys.maxsize), Artifacts(artifacts, sys.maxsize)
    for path, change in sorted(changes.items(), key=lambda item: item[1][1] is not None):  # removals first
        name = path.removeprefix(f"{ARTIFACTS}/")
        _place(beside if name == path else inside, name, change, repo)
    for path, (_, entry) in sorted(log.items()):
        if entry is not None:
            write_file(root / path, repo.read_blob(entry.oid))
    if live is not None:
        write_file(root / LIVE, repo.read_blob(live.oid))
    if repo.head == old:
        repo.move_ref(new, old, "agentx: pull")


def _place(files: Artifacts, name: str, change: _Change, repo: GitRepository) -> None:
    """Update one file, unless the user changed it since; the change is later detected as an edit."""
    before, after = change
    content = repo.read_blob(after.oid) if after else b""
    try:
        if files.identify(name) != before:
            return
        if after is None:
            files.remove(name)
            return
        prepared = files.prepare(name, content, executable=after.mode == EXECUTABLE, link=after.mode == LINK)
    except AgentXError:
        return  # a directory of the user's is in its way
    files.put(prepared, name)
    sync_directory(prepared.parent)
