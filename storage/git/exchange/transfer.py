"""Copy Git objects between repositories with the git program: synced, and checked for completeness.

Git assumes that everything reachable from an existing ref is present: neither a push nor its connectivity
check looks there. So a backup that is not known to be complete is checked separately, and sent what it lacks.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.checked_reader import ObjectReader, loose_objects
from agentx.storage.git.checking import loose_fault, pack_faults
from agentx.storage.git.exchange import git_program
from agentx.storage.git.exchange.git_program import GitFailed, objects_of, there
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.progress import Progress

_CONNECTED = ("rev-list", "--objects", "--quiet", "--stdin", "--progress=Checking connectivity")


def copy(source: Path, target: Path, tips: Iterable[str], progress: Progress | None = None) -> None:
    """Copy objects and everything reachable from them, as one pack; return when it is synced and complete.

    Args:
        source: Git directory to copy from.
        target: Directory to copy to, with ``objects`` in it.
        tips: Commits, trees or blobs, as ids in hex.
        progress: Called with the progress.

    Raises:
        ObjectDamaged: Something is missing or damaged in ``source``.
        GitFailed: It could not be written.
    """
    tips = list(dict.fromkeys(tips))
    if not tips:
        return
    nofollow.make_directory(target / "objects" / "pack", parents=True)
    with objects_of(source) as here, objects_of(target) as new:
        try:
            git_program.run(
                here.command("pack-objects", "--revs", "--stdout", "--delta-base-offset", "--all-progress"),
                new.command("index-pack", "--stdin"),
                given=tips,
                progress=progress,
            )
            git_program.run(new.command(*_CONNECTED), given=tips, progress=progress)
        except GitFailed as error:
            raise_damaged(source, error)
            raise
    sync_directory(target / "objects" / "pack")


def raise_damaged(git_dir: Path, error: GitFailed) -> None:
    """Raise ObjectDamaged if damage on this side explains a failure.

    Packed objects are copied without inflating them, so only the receiver notices damage. So check the packs.

    Raises:
        ObjectDamaged: An object that the failure names is missing or damaged, or a pack is damaged.
    """
    reader = ObjectReader(git_dir)
    found: list[str] = []
    for oid in error.named:
        try:
            reader.read(oid)
        except ObjectDamaged as damaged:
            found.append(str(damaged))
    found += (f"{git_dir / fault.path} {fault.what}." for fault in pack_faults(git_dir))
    if found:
        raise ObjectDamaged(
            f"{' '.join(found)} {git_dir} cannot be copied completely; `agentx repair` may restore it."
        ) from error


# --- a backup -----------------------------------------------------------------------------------------------


def complete(source: Path, backup: Path, tip: str, progress: Progress | None = None) -> int:
    """Ensure that a repository holds everything reachable from a commit, undamaged, whatever its refs claim.

    Every loose object is hashed and every pack compared with its checksum. Missing objects are sent from
    here.

    Args:
        source: Our Git directory, which holds the commit.
        backup: The other.
        tip: The commit.
        progress: Called with the progress.

    Returns:
        The number of objects sent.

    Raises:
        ObjectDamaged: Something in the backup is damaged, or is missing in both.
        GitFailed: The missing objects could not be written.
    """
    loose = list(loose_objects(backup / "objects"))
    for number, (oid, path) in enumerate(loose, start=1):
        if fault := loose_fault(backup, oid, path):
            raise ObjectDamaged(f"{backup / fault.path} {fault.what}.")
        if progress:
            progress("Checking objects", number, len(loose))
    for fault in pack_faults(backup):
        raise ObjectDamaged(f"{backup / fault.path} {fault.what}.")
    if _is_connected(backup, tip, progress):
        return 0
    with objects_of(source) as here:
        listing = ("rev-list", "--objects", "--no-object-names", "--progress=Comparing", tip)
        held = there(backup, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        try:
            wanted = git_program.run(here.command(*listing), progress=progress).split()
            known = set(git_program.run(held).split())
            missing = [oid for oid in wanted if oid not in known]
            git_program.run(
                here.command("pack-objects", "--stdout", "--delta-base-offset", "--all-progress"),
                there(backup, "index-pack", "--stdin"),
                given=missing,
                progress=progress,
            )
        except GitFailed as error:
            raise_damaged(source, error)
            raise
    sync(backup, BRANCH, new=True)
    if not _is_connected(backup, tip, progress):
        raise ObjectDamaged(f"{backup} lacks objects that are missing here, too.")
    return len(missing)


def _is_connected(git_dir: Path, tip: str, progress: Progress | None) -> bool:
    try:
        git_program.run(there(git_dir, *_CONNECTED), given=[tip], progress=progress)
    except GitFailed:
        return False
    return True


def sync(git_dir: Path, ref: str, *, new: bool) -> None:
    """Sync the directories of packs and of a ref; git syncs only the files.

    Args:
        git_dir: The repository.
        ref: Full name of the ref that was moved.
        new: Whether directories may have been created for it, and so their names have to be synced too.
    """
    above = [str(folder) for folder in PurePosixPath(ref).parents]
    for folder in ("objects/pack", "objects", *above) if new else ("objects/pack", above[0]):
        with contextlib.suppress(FileNotFoundError):
            sync_directory(git_dir / folder)
