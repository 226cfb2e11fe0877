"""Loose objects become few packs; whoever reads, writes, packs or kills meanwhile, no object is ever missing."""

import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pygit2
import pytest

from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import loose_path, write_blob
from agentx.storage.git.packs import packing
from agentx.storage.git.packs.packing import Packer, PackingFailed
from agentx.storage.git.repository import REGULAR, GitRepository

ROOT = Path(__file__).parents[3]


class Made:
    """A repository that grows by commits, and what must be in it for ever."""

    def __init__(self, root):
        self.root = root
        self.repo = GitRepository.init(root)
        self.git_dir = self.repo.git_dir
        self.packer = Packer(self.git_dir)
        self.log = b""
        self.commits = 0

    def commit(self, count=1):
        """As the engine does: a log that grows, and one small file in one of ten folders."""
        for _ in range(count):
            number = self.commits
            self.log += b'{"seq":%d,"hash":"%s"}\n' % (
                number,
                zlib.crc32(b"%d" % number).to_bytes(4).hex().encode() * 8,
            )
            contents = {
                "history.jsonl": self.log,
                f"artifacts/d{number % 10}/f{number % 7}.txt": b"what stands in version %d\n" % number,
            }
            entries = {
                path: TreeEntry(write_blob(self.git_dir, data), REGULAR) for path, data in contents.items()
            }
            head = self.repo.head
            tree = self.repo.update_tree(self.repo.tree_of(head), entries)
            made = self.repo.commit(tree, head, f"Change {number}\n", ("agent", "agent@x"))
            self.repo.move_ref(made, head, "test")
            self.commits += 1

    def git(self, *arguments, check=True):
        command = ["git", "-C", str(self.root), "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout

    def everything(self):
        """Name, kind, size of every object that a ref reaches, by git itself."""
        return sorted(self.git("rev-list", "--objects", "--no-object-names", "--all").split())

    def loose(self):
        return sorted(p.parent.name + p.name for p in (self.git_dir / "objects").glob("??/*"))

    def packs(self):
        return sorted((self.git_dir / "objects" / "pack").glob("*.pack"))

    def is_whole(self):
        return "missing" not in self.git("fsck", "--strict", "--full")


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path / "w")
    yield made
    made.repo.close()


def test_all_that_is_loose_goes_into_one_pack_and_history_is_as_it_was(made):
    made.commit(60)
    before, log = made.everything(), made.git("log", "--format=fuller", "--stat", "-p")
    loose = len(made.loose())
    report = made.packer.run()
    assert (report.packed, report.packs, report.damaged) == (loose, 1, ())
    assert made.loose() == []
    assert made.everything() == before
    assert made.git("log", "--format=fuller", "--stat", "-p") == log
    assert made.is_whole()
    checksum = made.git("verify-pack", "-s", str(made.packs()[0]))
    assert "chain length" in checksum


def test_git_reads_every_object_as_it_was(made):
    made.commit(30)
    oids = made.everything()
    repo = pygit2.Repository(str(made.git_dir))
    before = {oid: repo.read(oid) for oid in oids}
    repo.free()
    made.packer.run()
    repo = pygit2.Repository(str(made.git_dir))
    assert {oid: repo.read(oid) for oid in oids} == before
    repo.free()


def test_versions_of_the_log_cost_next_to_nothing(made):
    made.commit(150)
    made.packer.run()
    disk = made.git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectsize) %(objectsize:disk)"
    )
    blobs = [tuple(map(int, line.split()[1:])) for line in disk.splitlines() if line.startswith("blob")]
    assert sum(size for size, _ in blobs) > 400_000
    assert sum(on_disk for _, on_disk in blobs) < 150 * 60 + 2 * len(zlib.compress(made.log))
    assert made.packs()[0].stat().st_size < 60_000


def test_there_are_few_packs_however_often_it_runs(made):
    most = 0
    for _ in range(30):
        made.commit(3)
        assert made.packer.run().damaged == ()
        most = max(most, len(made.packs()))
    assert most <= 6
    assert made.loose() == []
    assert len(made.git("rev-list", "main").split()) == 90
    assert made.is_whole()
    depths = made.git("verify-pack", "-v", *map(str, made.packs())).splitlines()
    chains = [int(line.split()[3].rstrip(":")) for line in depths if line.startswith("chain length")]
    assert max(chains) <= 50


def test_each_object_is_copied_a_few_times_only(made, monkeypatch):
    copied = []
    finish = packing.PackWriter.finish
    monkeypatch.setattr(
        packing.PackWriter, "finish", lambda self: copied.append(len(self.offsets)) or finish(self)
    )
    for _ in range(32):
        made.commit(2)
        made.packer.run()
    assert sum(copied) < len(made.everything()) * 6  # log2(32) + 1


def test_what_no_ref_reaches_yet_stays_loose_for_an_hour(made):
    made.commit(3)
    flying = write_blob(made.git_dir, b"announced, and not committed yet")
    made.packer.run()
    assert made.loose() == [flying]
    made.git("repack", "-a", "-d")
    assert made.repo.has_blob(flying)
    os.utime(loose_path(made.git_dir, flying), (0, 0))
    made.commit()
    made.packer.run()
    assert made.loose() == []
    assert made.repo.has_blob(flying)


def test_every_branch_tag_and_packed_ref_counts(made):
    made.commit(2)
    made.git("branch", "side")
    made.git("tag", "-a", "-m", "a tag", "v1")
    made.git("pack-refs", "--all")
    made.commit(2)
    made.packer.run()
    assert made.loose() == []
    assert made.git("cat-file", "-t", "v1") == "tag\n"
    assert made.is_whole()


def test_a_damaged_object_is_left_alone_and_told(made):
    made.commit(5)
    (victim,) = [oid for oid in made.loose() if oid == made.git("rev-parse", "main:history.jsonl").strip()]
    path = loose_path(made.git_dir, victim)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-9])
    report = made.packer.run()
    assert report.damaged == (victim,)
    assert made.loose() == [victim]


def test_a_damaged_pack_is_not_merged(made):
    made.commit(5)
    made.packer.run()
    (victim,) = made.packs()
    victim.chmod(0o644)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 0xFF
    victim.write_bytes(content)
    made.commit(5)
    report = made.packer.run()
    assert [victim.name in told for told in report.damaged] == [True]
    assert victim in made.packs()
    assert len(made.packs()) == 2


def test_what_stands_in_a_pack_already_is_not_packed_twice(made):
    made.commit(5)
    head, blob = made.repo.head, made.git("rev-parse", "main:history.jsonl").strip()
    made.packer.run()
    before = made.packs()
    write_blob(made.git_dir, made.log)  # the engine trusts loose objects alone, so it writes them again
    assert made.loose() == [blob]
    os.utime(loose_path(made.git_dir, blob), (0, 0))
    assert made.packer.run().packed == 1
    assert made.loose() == []
    assert made.packs() == before
    assert made.repo.head == head


@pytest.mark.parametrize("kept", ["keep", "bitmap", "promisor", "mtimes"])
def test_a_pack_that_git_keeps_stays(made, kept):
    made.commit(5)
    made.packer.run()
    (first,) = made.packs()
    first.with_suffix(f".{kept}").touch()
    made.commit(5)
    assert made.packer.run().merged == 0
    assert first in made.packs()


def test_no_pack_is_taken_from_a_multi_pack_index(made):
    made.commit(5)
    made.packer.run()
    made.git("multi-pack-index", "write")
    made.commit(5)
    assert made.packer.run().merged == 0
    assert made.is_whole()


def test_packs_of_git_are_merged_as_well(made):
    made.commit(20)
    made.git("repack", "-d")
    made.commit(20)
    made.git("-c", "repack.useDeltaBaseOffset=false", "repack", "-d")
    made.commit(40)
    before = made.everything()
    report = made.packer.run()
    assert (report.merged, report.packs, report.damaged) == (2, 1, ())
    assert made.everything() == before
    assert made.is_whole()


def test_packs_that_share_objects_become_one(made):
    made.commit(10)
    made.packer.run()
    (first,) = made.packs()
    kept = {path.name: path.read_bytes() for path in (first, first.with_suffix(".idx"))}
    made.commit(3)
    made.git("repack", "-a", "-d")
    for name, content in kept.items():
        (first.parent / name).write_bytes(content)
    made.commit(12)
    report = made.packer.run()
    assert (report.merged, report.packs) == (2, 1)
    counted = made.git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered"
    ).split()
    assert len(counted) == len(set(counted))
    assert made.is_whole()


def test_one_packer_works_at_a_time(made):
    made.commit(3)
    code = f"import fcntl; f=open({str(made.git_dir / 'agentx-pack.lock')!r},'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        assert made.packer.run().busy
        other.communicate(b"\n")
    assert not made.packer.run().busy


def test_git_gc_is_let_finish(made):
    made.commit(3)
    marker = made.git_dir / "gc.pid"
    marker.write_text("1 here")
    assert made.packer.run().busy
    os.utime(marker, (0, 0))  # one that died
    assert not made.packer.run().busy


def test_it_is_due_when_many_objects_are_loose(made):
    assert not made.packer.due()
    for number in range(packing.LOOSE_OBJECTS * 2):
        folder = made.git_dir / "objects" / f"{number % 256:02x}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number:038x}").touch()
    assert made.packer.due()


def test_more_than_fits_one_pack_is_packed_the_oldest_first(made, monkeypatch):
    monkeypatch.setattr(packing, "MOST_OBJECTS", 50)
    made.commit(30)
    total = len(made.loose())
    packed = [made.packer.run().packed for _ in range(total // 50 + 1)]
    assert packed == [50] * (total // 50) + [total % 50]
    assert made.loose() == []
    assert made.is_whole()


def finished(running):
    while (report := running.poll()) is None:
        time.sleep(0.01)
    return report


def test_a_process_of_its_own_does_it_and_tells(made):
    made.commit(10)
    running = made.packer.start()
    report = finished(running)
    assert (report.packed > 10, report.packs) == (True, 1)
    running = made.packer.start()
    running.stop()
    assert made.is_whole()


def test_detached_it_does_its_work_though_nobody_waits(made):
    made.commit(10)
    made.packer.start_detached()
    end = time.monotonic() + 60
    while made.loose() and time.monotonic() < end:
        time.sleep(0.05)
    assert not made.loose()


def test_a_disk_that_refuses_is_told_and_nothing_is_lost(made):
    made.commit(3)
    before = made.loose()
    folder = made.git_dir / "objects" / "pack"
    folder.rmdir()
    folder.touch()
    with pytest.raises(PackingFailed, match="retried later"):
        made.packer.run()
    running = made.packer.start()
    with pytest.raises(PackingFailed, match="retried later"):
        finished(running)
    assert made.loose() == before


KILLED = """
import os, signal, sys
from pathlib import Path
from agentx.storage.git.packs.packing import Packer
left = int(sys.argv[2])
def watch(event, args):
    global left
    if event in ("os.rename", "os.remove") or (event == "open" and isinstance(args[2], int) and args[2] & os.O_WRONLY):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
Packer(Path(sys.argv[1])).run()
"""


def test_killed_at_any_step_it_loses_nothing(made, in_a_process):
    for step in range(1, 200):
        made.commit(2)
        before = made.everything()
        done = in_a_process(KILLED, made.git_dir, step)
        assert made.everything() == before, step
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert step > 15
    assert made.loose() == []
    assert {path.suffix for path in (made.git_dir / "objects" / "pack").iterdir()} == {".pack", ".idx"}
    assert not list((made.git_dir / "objects" / "pack").glob("tmp_*"))
    assert made.is_whole()


def test_a_handle_lets_go_of_packs_that_are_gone(made):
    for _ in range(5):
        made.commit(2)
        made.packer.run()
        made.repo.follow_packs()
        made.repo.tree_of(made.repo.head)
    held = Path("/proc/self/maps").read_text()
    assert f"{made.git_dir}/objects/pack" in held
    assert "(deleted)" not in "".join(line for line in held.splitlines() if str(made.git_dir) in line)


READ = """
import sys, pygit2
git_dir, names = sys.argv[1], sys.stdin.read().split()
repo = pygit2.Repository(git_dir)
print("ready", flush=True)
for turn in range(30):
    for name in names:
        repo.read(name)
"""


def test_whoever_reads_meanwhile_misses_nothing(made):
    made.commit(40)
    names = "\n".join(made.everything())
    readers = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in (
            [sys.executable, "-c", READ, str(made.git_dir)],
            ["git", "-C", str(made.root), "cat-file", "--batch-check"],
        )
    ]
    own, git = readers
    own.stdin.write(names)
    own.stdin.close()
    assert own.stdout.readline() == "ready\n"
    answers = []
    asking = threading.Thread(target=lambda: answers.append(git.communicate((names + "\n") * 60)[0]))
    asking.start()
    while own.poll() is None:
        made.commit(3)
        made.packer.run()
    asking.join()
    assert (own.returncode, own.stderr.read()) == (0, "")
    own.stdout.close()
    own.stderr.close()
    assert "missing" not in answers[0]
    assert answers[0].count("\n") == 60 * len(names.split())


@pytest.mark.parametrize(
    "command", [["repack", "-a", "-d", "-q"], ["gc", "-q"], ["repack", "-d", "-q"]], ids=" ".join
)
def test_a_person_may_pack_at_the_same_time(made, command):
    stop = threading.Event()

    def pack():
        while not stop.is_set():
            made.packer.run()

    packing_too = threading.Thread(target=pack)
    packing_too.start()
    try:
        for _ in range(8):
            made.commit(10)
            made.git(
                *command, check=False
            )  # it may find a pack gone and give up, as beside another `git repack`
    finally:
        stop.set()
        packing_too.join()
    assert len(made.git("rev-list", "main").split()) == 80
    assert made.is_whole()
    assert made.git("show", "main:history.jsonl").encode() == made.log
