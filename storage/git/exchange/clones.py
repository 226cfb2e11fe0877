"""Set up a clone of a workspace: add missing settings, and undo Git's line-end conversions."""

from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, write_file
from agentx.storage.files.lock import FileLock
from agentx.storage.git import local
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.index_file import IndexFile
from agentx.storage.git.objects import blob_id, make_directories
from agentx.storage.git.repository import EXECUTABLE, LINK, GitRepository


def is_fresh(root: Path) -> bool:
    """Return whether a directory is a clone in which the engine has not worked yet."""
    return nofollow.is_directory(root / ".git") and not local.is_set_up(root / ".git")


def set_up(root: Path) -> None:
    """Prepare a clone for the engine; cheap if it is prepared already.

    With ``core.autocrlf``, or a ``.gitattributes`` in the artifacts, Git writes other line ends than were
    committed. So in a fresh clone, a file that differs from its commit only in line ends is rewritten.

    Args:
        root: The working directory that holds ``.git``.
    """
    git_dir = root / ".git"
    if not nofollow.is_directory(git_dir):
        return
    if not is_fresh(root):
        local.set_up(git_dir)
        return
    with FileLock(git_dir / "agentx.lock", brief=True).hold():
        repo = GitRepository(root)
        try:
            tree = repo.tree_of(repo.head)
            files = repo.files(tree)
            mended = {path: entry for path, entry in files if _mend_line_ends(root / path, entry, repo)}
            for left in nofollow.tree(git_dir / "info"):
                if left.name.startswith(TEMPORARY_PREFIX):  # from a first open that was killed
                    nofollow.remove(left)
            make_directories(git_dir)
            local.set_up(git_dir)
            if mended:
                IndexFile(git_dir).refresh(mended, root, tree)
        finally:
            repo.close()


def _mend_line_ends(path: Path, entry: TreeEntry, repo: GitRepository) -> bool:
    """Rewrite a file if Git changed its line ends; return whether it did."""
    if entry.mode == LINK or not nofollow.is_file(path):
        return False
    content = nofollow.read(path)
    if b"\r\n" not in content or blob_id(content) == entry.oid:
        return False
    recorded = repo.read_blob(entry.oid)
    if content.replace(b"\r\n", b"\n") != recorded.replace(b"\r\n", b"\n"):
        return False
    write_file(path, recorded, 0o755 if entry.mode == EXECUTABLE else 0o644)
    return True
