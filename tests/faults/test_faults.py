"""A sample of what `make faults` brings about in full: nothing that was acknowledged is ever lost.

Each is done in another process, for threads of this one must not be forked.
"""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from . import plan, runs
from .disk import Disk, Fault
from .plan import SECTIONS
from .power import Remembers, after_the_cut
from .runs import Outcome

_ROOT = Path(__file__).parents[2]

SAMPLE = 4
"""How much of each section is done; the full amount is ``plan.WHOLE``."""

PARTS = {"steps": 4, "power": 2, "locks": 3, "errors": 2, "pipelines": 2, "backups": 6, "server": 3}
"""Sections that are done in several tests, which can run side by side."""

HELD = [
    (section, part)
    for section in sorted(SECTIONS.keys() - {"disks"})  # which must be mounted: left to `make faults`
    for part in range(PARTS.get(section, 1))
]


@pytest.fixture(scope="module")
def do() -> Iterator[Callable[[str, int], list[Outcome]]]:
    """Do a part of a section in another process, which makes the workspace and counts the steps once."""
    with (
        tempfile.TemporaryDirectory(prefix="agentx-faults-", dir=runs.fast_place()) as folder,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
    ):
        template, drawn = Path(folder), {}
        pool.submit(runs.make_template, template).result()

        def do(section: str, part: int) -> list[Outcome]:
            if section not in drawn:
                drawn[section] = pool.submit(plan.jobs, section, SAMPLE, 1, template).result()
            jobs = drawn[section][part :: PARTS.get(section, 1)]
            return [pool.submit(plan.do, job, template).result()[0] for job in jobs]

        yield do


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("section", "part"), HELD)
def test_nothing_acknowledged_is_lost(do, section, part):
    outcomes = do(section, part)
    assert [(str(one.job), finding) for one in outcomes for finding in one.findings] == []
    total = plan.sums(outcomes)[section]
    assert total.lost == 0
    assert total.survived > 0


def test_the_program_tells_what_it_found_as_json():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--json", "--n", "1", "damage"],
        cwd=_ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["findings"] == []
    assert told["sections"].keys() == {"damage"}
    assert told["sections"]["damage"]["survived"] >= told["sections"]["damage"]["runs"] > 0


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
