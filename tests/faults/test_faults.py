"""A sample of what `make faults` brings about in full: nothing that was acknowledged is ever lost.

Each is run by the program itself, in processes of its own, for threads of this one must not be forked.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from .disk import Disk, Fault
from .plan import SECTIONS
from .power import Remembers, after_the_cut

_ROOT = Path(__file__).parents[2]


def _faults(*arguments):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--json", *arguments],
        cwd=_ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


HELD = sorted(SECTIONS.keys() - {"disks"})  # which must be mounted: left to `make faults`


@pytest.mark.timeout(400)
@pytest.mark.parametrize("section", HELD)
def test_nothing_acknowledged_is_lost(section):
    status, told = _faults("--n", "10", section)
    assert told["findings"] == []
    assert status == 0
    assert told["sections"][section]["lost"] == 0
    assert told["sections"][section]["survived"] > 0


def _in_a_process(work):
    """What the layer is put under ends with its process."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_step_at_which_a_process_dies_is_not_taken(tmp_path):
    def work():
        Disk(tmp_path, Fault("kill", 3)).install()
        (tmp_path / "a").write_text("one")
        (tmp_path / "b").write_text("two")

    assert _in_a_process(work) == -9
    assert (tmp_path / "a").read_text() == "one"
    assert not (tmp_path / "b").exists()


def test_a_write_is_torn_in_its_middle(tmp_path):
    def work():
        Disk(tmp_path, Fault("tear", 2)).install()
        (tmp_path / "a").write_bytes(b"12345678")

    assert _in_a_process(work) == -9
    assert (tmp_path / "a").read_bytes() == b"1234"


def test_what_was_synced_outlives_every_power_cut_and_what_was_not_may_be_lost(tmp_path):
    left = tmp_path / "left"
    left.mkdir()
    remembers = Remembers(left)
    (left / "synced").write_bytes(b"synced")
    fd, folder = os.open(left / "synced", os.O_RDWR | os.O_APPEND), os.open(left, os.O_RDONLY)
    for descriptor in (fd, folder):
        os.fsync(descriptor)
        remembers.synced(descriptor)
    os.write(fd, b" and more")
    (left / "fresh").write_bytes(b"fresh")
    os.close(fd)
    os.close(folder)
    seen, fresh = set(), set()
    for seed in range(60):
        found = tmp_path / f"found-{seed}"
        after_the_cut(left, remembers.memory, found, random.Random(seed))
        seen.add((found / "synced").read_bytes())
        fresh.add((found / "fresh").read_bytes() if (found / "fresh").exists() else None)
    assert all(content.startswith(b"synced") for content in seen)
    assert {b"synced", b"synced and more"} < seen
    assert {None, b"", b"fresh"} < fresh
