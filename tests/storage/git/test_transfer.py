"""A copy has exactly what is reachable, undamaged; a backup is sent what it lacks."""

import subprocess
import zlib

import pygit2
import pytest

from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.exchange import transfer
from agentx.storage.git.objects import ObjectDamaged, loose_path, write_blob
from agentx.storage.git.pack_file import Pack
from agentx.storage.git.packs.packing import Packer
from agentx.storage.git.repository import REGULAR, GitRepository

COMMITS = 60


class Made:
    """A repository with a log that grows, and small files in folders, one commit after the other."""

    def __init__(self, root):
        self.root = root
        self.repo = GitRepository.init(root)
        self.git_dir = self.repo.git_dir
        self.log = b""
        self.commits = []
        self.grow(COMMITS)

    def grow(self, count):
        for number in range(len(self.commits), len(self.commits) + count):
            self.log += b"%d %08x\n" % (number, zlib.crc32(b"%d" % number))
            self.commit({f"d{number % 4}/e/f{number % 5}.txt": b"version %d\n" % number * 9, "log": self.log})

    def commit(self, contents):
        head = self.repo.head
        entries = {
            path: TreeEntry(write_blob(self.git_dir, data), REGULAR) for path, data in contents.items()
        }
        tree = self.repo.update_tree(self.repo.tree_of(head), entries)
        self.repo.move_ref(self.repo.commit(tree, head, "Change\n", ("a", "a@x")), head, "test")
        self.commits.append(self.repo.head)

    def git(self, *arguments):
        command = ["git", "-C", str(self.root), "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def reached(self, *revisions):
        """What revisions lead to, by git itself."""
        return set(self.git("rev-list", "--objects", "--no-object-names", *revisions).split())


class Target:
    """An empty repository that objects are copied into."""

    def __init__(self, root):
        pygit2.init_repository(str(root), bare=True)
        self.git_dir = root

    def git(self, *arguments):
        command = ["git", "-C", str(self.git_dir), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @property
    def objects(self):
        return set(self.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())

    def contents(self, oids):
        command = ["git", "-C", str(self.git_dir), "cat-file", "--batch"]
        return subprocess.run(
            command, input="\n".join(sorted(oids)).encode(), capture_output=True, check=True
        ).stdout

    @property
    def deltas(self):
        (pack,) = (self.git_dir / "objects/pack").glob("*.pack")
        return sum(len(line.split()) == 7 for line in self.git("verify-pack", "-v", str(pack)).splitlines())


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path / "w")
    yield made
    made.repo.close()


@pytest.fixture
def target(tmp_path):
    return Target(tmp_path / "target.git")


def loose(made):
    assert not list((made.git_dir / "objects/pack").iterdir())


def packed(made):
    Packer(made.git_dir).run()


def half_packed(made):
    Packer(made.git_dir).run()
    made.grow(10)


def in_two_packs(made):
    half_packed(made)
    made.git("repack", "-d")


def packed_by_git(made):
    made.git("repack", "-adf", "--depth=50")


def deltas_that_name_their_bases(made):
    made.git("-c", "repack.useDeltaBaseOffset=false", "repack", "-adf")


STATES = [loose, packed, half_packed, in_two_packs, packed_by_git, deltas_that_name_their_bases]


def is_whole(target):
    return "missing" not in target.git("fsck", "--strict", "--full", "--no-dangling", "--no-progress")


@pytest.mark.parametrize("state", STATES)
def test_a_copy_has_all_that_is_wanted_and_nothing_else(made, target, state):
    state(made)
    for upto in (-1, COMMITS // 2, 0):  # what is newer is often the base of what is older, and stays behind
        fresh = Target(target.git_dir.parent / f"{state.__name__}-{upto}.git")
        transfer.copy(made.git_dir, fresh.git_dir, [made.commits[upto]])
        objects = made.reached(made.commits[upto])
        assert fresh.objects == objects
        assert fresh.contents(objects) == Target.contents(made, objects)
        assert is_whole(fresh)


def test_files_and_trees_come_beside_commits(made, target):
    blob = made.git("rev-parse", f"{made.commits[-1]}:log").strip()
    tree = made.git("rev-parse", f"{made.commits[9]}:d1").strip()
    transfer.copy(made.git_dir, target.git_dir, [blob, made.commits[5], tree, blob])
    assert target.objects == made.reached(made.commits[5], tree) | {blob}
    transfer.copy(made.git_dir, target.git_dir, [])


def test_a_tree_that_comes_back_under_another_parent_comes_with_its_files(made, target):
    """One that was left out as known, with files that only the newer commit had, made broken backups."""
    for contents in ({"x/tmp.txt": b"gone\n"}, {"y/tmp.txt": b"gone\n"}):
        made.commit(contents)
        tree = made.repo.update_tree(made.repo.tree_of(made.repo.head), dict.fromkeys(contents))
        made.repo.move_ref(
            made.repo.commit(tree, made.repo.head, "Delete\n", ("a", "a@x")), made.repo.head, "test"
        )
    transfer.copy(made.git_dir, target.git_dir, [made.repo.head])
    assert target.objects == made.reached(made.repo.head)


@pytest.mark.parametrize("state", [loose, packed])
def test_a_copy_is_small(made, target, state):
    state(made)
    transfer.copy(made.git_dir, target.git_dir, [made.commits[-1]])
    assert target.deltas > 2 * COMMITS
    assert sum(path.stat().st_size for path in target.git_dir.glob("objects/pack/*.pack")) < 400 * COMMITS


def test_histories_that_were_merged_links_programs_and_submodules_come_along(made, target):
    made.git("checkout", "-q", "-f", "-b", "side", made.commits[5])
    (made.root / "link").symlink_to("log")
    (made.root / "run.sh").write_text("#!/bin/sh\n")
    (made.root / "run.sh").chmod(0o755)
    made.git("add", "link", "run.sh")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    made.git("commit", "-q", "-m", "Aside")
    made.git("checkout", "-q", "-f", "main")
    made.git("merge", "-q", "--no-edit", "side")
    head = made.git("rev-parse", "main").strip()
    transfer.copy(made.git_dir, target.git_dir, [head])
    assert target.objects == made.reached(head)


def torn(path):
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-5])


def zeroed(path):
    path.chmod(0o644)
    path.write_bytes(bytes(path.stat().st_size))


def swapped(path):
    """Well-formed, and not what its name says."""
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 5\0other"))


def removed(path):
    path.unlink()


@pytest.mark.parametrize("harm", [torn, zeroed, swapped, removed])
@pytest.mark.parametrize("what", ["log", "d0/e", "", "commit"])
def test_what_is_missing_or_damaged_is_named(made, target, what, harm):
    """libgit2 reads a torn object for ever."""
    oid = (
        made.commits[30] if what == "commit" else made.git("rev-parse", f"{made.commits[30]}:{what}").strip()
    )
    harm(loose_path(made.git_dir, oid))
    with pytest.raises(ObjectDamaged, match=rf"{oid}(.|\n)*{made.git_dir}"):
        transfer.copy(made.git_dir, target.git_dir, [made.commits[-1]])
    assert oid not in target.objects


def harm_pack(git_dir):
    """Flip some bits in the last object of the only pack."""
    (path,) = (git_dir / "objects/pack").glob("*.pack")
    with Pack(path) as pack:
        *_, (_, entry) = pack.entries()
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[entry.end - 6] ^= 0xFF
    path.write_bytes(content)


def test_a_pack_that_is_damaged_is_named(made, target):
    packed(made)
    harm_pack(made.git_dir)
    with pytest.raises(ObjectDamaged, match=r"pack-\w+\.pack does not match its checksum"):
        transfer.copy(made.git_dir, target.git_dir, [made.commits[-1]])


def test_it_is_told_how_many_of_how_many_were_copied(made, target):
    half_packed(made)
    told = []
    transfer.copy(made.git_dir, target.git_dir, [made.repo.head], lambda *one: told.append(one))
    count = len(made.reached("main"))
    assert {("Counting objects", count, count), ("Writing objects", count, count)} <= set(told)


def test_the_objects_of_a_clone_that_shares_them_are_found(made, target, tmp_path):
    made.git("clone", "-q", "--shared", "--bare", ".", str(tmp_path / "shared.git"))
    transfer.copy(tmp_path / "shared.git", target.git_dir, [made.commits[-1]])
    assert target.objects == made.reached("main")
    assert not (target.git_dir / "objects/info/alternates").exists()


# --- a backup -----------------------------------------------------------------------------------------------


@pytest.fixture
def backup(made, target):
    """A backup of it, with its objects loose."""
    made.git("push", "-q", str(target.git_dir), "main")
    for pack in list((target.git_dir / "objects/pack").glob("*.pack")):
        content = pack.read_bytes()
        pack.unlink()
        pack.with_suffix(".idx").unlink()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=target.git_dir, input=content, check=True)
    return target


def test_a_backup_that_is_complete_is_left_alone(made, backup):
    before = sorted(backup.git_dir.rglob("*"))
    assert transfer.complete(made.git_dir, backup.git_dir, made.commits[-1]) == 0
    assert sorted(backup.git_dir.rglob("*")) == before


@pytest.mark.parametrize("what", ["log", "d0/e", "d0", "", "commit", "tip", "many"])
def test_what_a_backup_lacks_is_sent(made, backup, what):
    last = made.commits[-1]
    if what == "many":
        lost = sorted(backup.objects)[::3]
    elif what in ("commit", "tip"):
        lost = [last if what == "tip" else made.commits[30]]
    else:
        lost = [made.git("rev-parse", f"{made.commits[30]}:{what}").strip()]
    for oid in lost:
        loose_path(backup.git_dir, oid).unlink()
    assert transfer.complete(made.git_dir, backup.git_dir, last) == len(lost)
    assert backup.objects == made.reached("main")
    assert is_whole(backup)


def test_what_is_missing_on_both_sides_is_named(made, backup):
    oid = made.git("rev-parse", f"{made.commits[30]}:log").strip()
    for git_dir in (made.git_dir, backup.git_dir):
        loose_path(git_dir, oid).unlink()
    with pytest.raises(ObjectDamaged, match=oid):
        transfer.complete(made.git_dir, backup.git_dir, made.commits[-1])


@pytest.mark.parametrize("harm", [torn, zeroed, swapped])
@pytest.mark.parametrize("what", ["log", "d0", "commit"])
def test_what_is_damaged_in_a_backup_is_named(made, backup, what, harm):
    oid = (
        made.commits[30] if what == "commit" else made.git("rev-parse", f"{made.commits[30]}:{what}").strip()
    )
    harm(loose_path(backup.git_dir, oid))
    with pytest.raises(ObjectDamaged, match=f"{oid[2:]} is damaged"):
        transfer.complete(made.git_dir, backup.git_dir, made.commits[-1])


def test_a_damaged_pack_in_a_backup_is_named(made, target):
    made.git("push", "-q", str(target.git_dir), "main")
    harm_pack(target.git_dir)
    with pytest.raises(ObjectDamaged, match=r"pack-\w+\.pack does not match its checksum"):
        transfer.complete(made.git_dir, target.git_dir, made.commits[-1])


def test_replacements_and_grafts_in_a_backup_hide_nothing(made, backup):
    """They let git pass over what is missing."""
    last = made.commits[-1]
    (backup.git_dir / "refs/replace").mkdir()
    (backup.git_dir / "refs/replace" / made.commits[30]).write_text(f"{made.commits[29]}\n")
    (backup.git_dir / "info").mkdir(exist_ok=True)
    (backup.git_dir / "info/grafts").write_text(f"{made.commits[20]}\n")
    lost = [
        made.git("rev-parse", f"{commit}^{{tree}}").strip() for commit in (made.commits[30], made.commits[10])
    ]
    for oid in lost:
        loose_path(backup.git_dir, oid).unlink()
    assert transfer.complete(made.git_dir, backup.git_dir, last) == len(lost)
