"""Objects are copied as they stand: what is wanted and nothing else, deltas reused, and nothing that was not checked."""

import subprocess
import zlib

import pygit2
import pytest

from agentx.storage.git import transfer
from agentx.storage.git.objects import ObjectDamaged, loose_path, write_blob
from agentx.storage.git.pack_file import Pack
from agentx.storage.git.packing import Packer
from agentx.storage.git.reading import ObjectReader
from agentx.storage.git.repository import REGULAR, GitRepository, TreeEntry

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


@pytest.fixture
def reads(monkeypatch):
    """Every object that is read on its own."""
    read, seen = ObjectReader.read, []
    monkeypatch.setattr(ObjectReader, "read", lambda self, oid: (seen.append(oid), read(self, oid))[1])
    return seen


def loose(made):
    assert made.git("count-objects").startswith(str(len(made_objects(made))))


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


@pytest.mark.parametrize("state", STATES)
def test_a_copy_has_all_that_is_wanted_and_nothing_else(made, target, state):
    state(made)
    for upto in (-1, COMMITS // 2, 0):  # what is newer is often the base of what is older, and stays behind
        fresh = Target(target.git_dir.parent / f"{state.__name__}-{upto}.git")
        objects = transfer.reachable(made.git_dir, made.commits[upto])
        transfer.copy(made.git_dir, fresh.git_dir, objects)
        assert set(objects) == fresh.objects == made.reached(made.commits[upto])
        assert fresh.contents(objects) == Target.contents(made, objects)
        assert "missing" not in fresh.git("fsck", "--strict", "--full", "--no-dangling")


def test_what_stands_in_a_pack_is_copied_as_it_stands(made, target, reads):
    packed(made)
    objects = transfer.reachable(made.git_dir, made.commits[-1])
    (pack,) = (made.git_dir / "objects/pack").glob("*.pack")
    reads.clear()
    transfer.copy(made.git_dir, target.git_dir, objects)
    assert reads == []
    (copied,) = (target.git_dir / "objects/pack").glob("*.pack")
    assert copied.stat().st_size <= pack.stat().st_size


def test_loose_objects_are_read_once_each_and_become_deltas(made, target, reads):
    objects = transfer.reachable(made.git_dir, made.commits[-1])
    reads.clear()
    transfer.copy(made.git_dir, target.git_dir, objects)
    assert sorted(reads) == sorted(objects)
    assert target.deltas > 2 * COMMITS
    assert sum(path.stat().st_size for path in target.git_dir.glob("objects/pack/*.pack")) < 400 * COMMITS


def test_of_older_moments_only_those_are_read_whose_base_stays_behind(made, target, reads):
    packed(made)
    objects = transfer.reachable(made.git_dir, made.commits[COMMITS // 2])
    reads.clear()
    transfer.copy(made.git_dir, target.git_dir, objects)
    assert 0 < len(reads) < len(objects) / 2
    assert target.deltas > COMMITS


def test_little_out_of_a_large_pack_is_looked_up(made, target, reads, monkeypatch):
    packed(made)
    gone_through = []
    monkeypatch.setattr(Pack, "entries", lambda self: gone_through.append(self) or iter(()))
    objects = transfer.reachable(made.git_dir, made.commits[-1], made.commits[-2])
    assert set(objects) == made.reached(made.commits[-1], f"^{made.commits[-2]}")
    transfer.copy(made.git_dir, target.git_dir, objects)
    assert target.objects == set(objects)
    assert gone_through == []


def test_what_is_known_is_not_gone_through_again(made, reads):
    objects = transfer.reachable(made.git_dir, made.commits[-1], made.commits[-3])
    assert set(objects) == made.reached(made.commits[-1], f"^{made.commits[-3]}")
    assert len(reads) < 3 * len(objects)
    assert transfer.reachable(made.git_dir, made.commits[-3], made.commits[-3]) == []


def test_of_histories_that_were_merged_what_is_known_is_left_out_too(made):
    known = made.commits[-1]
    made.git("checkout", "-q", "-f", "-b", "side", made.commits[5])
    (made.root / "side.txt").write_text("side\n")
    made.git("add", "side.txt")
    made.git("commit", "-q", "-m", "Aside")
    made.git("checkout", "-q", "-f", "main")
    made.git("merge", "-q", "--no-edit", "side")
    head = made.git("rev-parse", "main").strip()
    objects = set(transfer.reachable(made.git_dir, head, known))
    assert made.reached(head, f"^{known}") <= objects
    assert not objects & set(made.commits)


def test_links_programs_and_submodules_come_as_far_as_they_are_objects(made, target):
    made.git("checkout", "-q", "-f", "main")
    (made.root / "link").symlink_to("log")
    (made.root / "run.sh").write_text("#!/bin/sh\n")
    (made.root / "run.sh").chmod(0o755)
    made.git("add", "link", "run.sh")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    made.git("commit", "-q", "-m", "Add")
    head = made.git("rev-parse", "main").strip()
    objects = transfer.reachable(made.git_dir, head)
    transfer.copy(made.git_dir, target.git_dir, objects)
    assert target.objects == set(objects) == made.reached(head)


def torn(path):
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("what", ["log", "d0/e", "", "commit"])
def test_a_torn_object_is_told_and_nothing_is_written(made, target, what):
    """libgit2 reads it for ever."""
    name = (
        made.commits[30] if what == "commit" else made.git("rev-parse", f"{made.commits[30]}:{what}").strip()
    )
    torn(loose_path(made.git_dir, name))
    with pytest.raises(ObjectDamaged, match=rf"{made.git_dir} .*{name}"):
        transfer.copy(made.git_dir, target.git_dir, transfer.reachable(made.git_dir, made.commits[-1]))
    with pytest.raises(ObjectDamaged, match=name):
        transfer.check(made.git_dir, sorted(made_objects(made)))
    assert list((target.git_dir / "objects/pack").iterdir()) == []


def made_objects(made):
    return {path.parent.name + path.name for path in (made.git_dir / "objects").glob("??/*")}


def test_an_object_that_is_missing_is_told(made):
    name = made.git("rev-parse", f"{made.commits[30]}:log").strip()
    loose_path(made.git_dir, name).unlink()
    with pytest.raises(ObjectDamaged, match=f"{made.commits[-1]}.*{name} is missing"):
        transfer.reachable(made.git_dir, made.commits[-1])


def test_a_pack_that_is_damaged_gives_what_it_can(made, target):
    packed(made)
    wanted = transfer.reachable(made.git_dir, made.commits[-1])
    (path,) = (made.git_dir / "objects/pack").glob("*.pack")
    with Pack(path) as pack:
        *_, (oid, entry) = pack.entries()
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[entry.end - 6] ^= 0xFF
    path.write_bytes(content)
    others = [name for name in wanted if name != oid.hex()]
    transfer.copy(made.git_dir, target.git_dir, others)
    assert target.objects == set(others)
    with pytest.raises(ObjectDamaged, match=oid.hex()):
        transfer.copy(made.git_dir, target.git_dir, wanted)


def test_it_is_told_how_many_of_how_many_were_copied(made, target):
    half_packed(made)
    told = []
    objects = transfer.reachable(made.git_dir, made.repo.head, progress=lambda *one: told.append(one))
    transfer.copy(made.git_dir, target.git_dir, objects, lambda *one: told.append(one))
    assert told[-1] == ("Copying objects", len(objects), len(objects))
    done = [count for what, count, _ in told if what == "Copying objects"]
    assert done == sorted(done)
    assert all(total == len(objects) for what, _, total in told if what == "Copying objects")


def test_the_objects_of_a_clone_that_shares_them_are_found(made, target, tmp_path):
    made.git("clone", "-q", "--shared", "--bare", ".", str(tmp_path / "shared.git"))
    objects = transfer.reachable(tmp_path / "shared.git", made.commits[-1])
    transfer.copy(tmp_path / "shared.git", target.git_dir, objects)
    assert target.objects == made.reached("main")
