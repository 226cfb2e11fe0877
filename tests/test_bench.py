"""The benchmark's arithmetic, its turns, and one measure of two codes at a tiny scale. No figure is asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from agentx import Workspace
from agentx.integrity.verify import verify
from agentx.storage.log.history import History
from agentx.synthesis.memory.record_codec import record_codec
from tests.bench import grown_year, rivals
from tests.bench.__main__ import MEASURES, measuring
from tests.bench.beside import Compared, Unmeasurable, extract, flat, paired, table
from tests.bench.clock import Taken
from tests.bench.grown import settings
from tests.bench.rivals import Peer, count_syncs, durable
from tests.bench.turns import Child, take_turns
from tests.bench.year import FLAT, LINEAR, OPERATIONS, exponent, growth, times
from tests.figures import Figure

ROOT = Path(__file__).parents[1]
_TURNS = """
import sys
from tests.bench.turns import hand_over
for number in range(int(sys.argv[3])):
    with open(sys.argv[1], "a") as file:
        print(sys.argv[2], number, file=file)
    hand_over()
print("done", sys.argv[2])
"""


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=b", "-c", "user.email=b@x")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def figure(key: str, value: float, **named) -> Figure:
    return Figure(key, key, value, **named)


class TestTurns:
    def child(self, *arguments: str, program: str = _TURNS) -> Child:
        return Child([sys.executable, "-c", program, *arguments], ROOT, os.environ)

    def test_one_runs_at_a_time_and_the_longer_one_goes_on_alone(self, tmp_path):
        log = tmp_path / "log"
        children = [self.child(str(log), "a", "2"), self.child(str(log), "b", "4")]
        take_turns(children)
        assert log.read_text().split("\n")[:-1] == ["a 0", "b 0", "a 1", "b 1", "b 2", "b 3"]
        assert [child.result()[:2] for child in children] == [(0, "done a\n"), (0, "done b\n")]

    def test_one_that_fails_ends_its_turns_and_says_why(self, tmp_path):
        children = [
            self.child(program="import tests.bench.turns; raise SystemExit('no such part')"),
            self.child(str(tmp_path / "log"), "b", "2"),
        ]
        take_turns(children)
        assert children[0].result() == (1, "", "no such part\n")
        assert children[1].result()[0] == 0

    def test_a_process_that_takes_no_turns_is_not_held_up(self):
        program = "from tests.bench.turns import hand_over; hand_over(); print('on')"
        assert subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True) == "on\n"

    def test_programs_of_a_child_take_no_turns(self):
        inner = "from tests.bench.turns import hand_over; hand_over(); print('inner')"
        program = f"import subprocess, sys, tests.bench.turns; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
        child = self.child(program=program)
        take_turns([child])
        assert child.result() == (0, "inner\n", "")


class TestExtracting:
    @pytest.fixture
    def repository(self, tmp_path):
        root = tmp_path / "clone"
        (root / "agentx").mkdir(parents=True)
        (root / "tests").mkdir()
        git(root, "init", "-q")
        for number in range(2):
            (root / "agentx/__init__.py").write_text(f"number = {number}\n")
            (root / "tests/test_it.py").write_text("")
            git(root, "add", ".")
            git(root, "commit", "-q", "-m", str(number))
        return root

    def test_only_the_product_is_extracted(self, repository, tmp_path):
        code = extract("HEAD~1", tmp_path / "code", repository)
        assert (code / "agentx/__init__.py").read_text() == "number = 0\n"
        assert os.listdir(code) == ["agentx"]

    def test_an_unknown_revision_is_refused(self, repository, tmp_path):
        with pytest.raises(Unmeasurable, match=r"^The revision 'deadbeef' is not in this clone\.$"):
            extract("deadbeef", tmp_path / "code", repository)

    def test_an_option_is_no_revision(self, repository, tmp_path):
        with pytest.raises(Unmeasurable, match="not in this clone"):
            extract("--output=/dev/null", tmp_path / "code", repository)

    def test_a_shallow_clone_says_how_to_get_the_rest(self, repository, tmp_path):
        shallow = tmp_path / "shallow"
        git(tmp_path, "clone", "-q", "--depth=1", repository.as_uri(), str(shallow))
        with pytest.raises(Unmeasurable, match="the clone is shallow: `git fetch --unshallow`"):
            extract(git(repository, "rev-parse", "HEAD~1"), tmp_path / "code", shallow)

    def test_a_directory_without_git_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        with pytest.raises(Unmeasurable, match="is not a Git checkout"):
            extract("HEAD", tmp_path / "code", tmp_path)


class TestComparing:
    def test_less_time_is_a_gain(self):
        assert Compared(figure("ms", 2), figure("ms", 5)).gain == 2.5

    def test_a_higher_rate_is_a_gain(self):
        now, before = (figure("rate", value, more_is_better=True) for value in (300, 200))
        assert Compared(now, before).gain == 1.5

    def test_processor_time_has_its_own_gain(self):
        one = Compared(figure("ms", 2, processor=4), figure("ms", 2, processor=2))
        assert (one.gain, one.processor_gain) == (1, 0.5)
        assert Compared(figure("ms", 2), figure("ms", 2)).processor_gain is None

    def test_what_one_code_lacks_has_no_gain(self):
        only_now, only_before = paired([figure("old", 1)], [figure("new", 1)])
        assert (only_now.shown.key, only_now.gain) == ("new", None)
        assert (only_before.shown.key, only_before.gain) == ("old", None)

    def test_zero_has_no_gain(self):
        assert Compared(figure("ms", 0), figure("ms", 5)).gain is None

    def test_the_ratio_of_two_exponents_is_not_shown(self):
        assert Compared(growth("a_exponent", 0.02, FLAT), growth("a_exponent", 0.01, FLAT)).gain is None

    def test_the_table_shows_both_codes_and_the_promise(self):
        rows = paired([figure("append, ms", 0.5)], [figure("append, ms", 0.25, at_least=0.35, aim=0.2)])
        console = Console(width=190, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
        with console.file:
            console.print(table(rows, "a machine", "886f5abd"))
            shown = console.export_text()
        (line,) = (line for line in shown.splitlines() if "append" in line)
        assert [cell.strip() for cell in line.split("│")[1:8]] == [
            "append, ms",
            "0.5",
            "0.25",
            "2",
            "–",
            "0.35",
            "0.2",
        ]
        assert "good" in line
        assert "886f5abd" in shown

    def test_the_object_has_both_values(self):
        made = json.loads(flat(paired([figure("ms", 5)], [figure("ms", 2)]), "a machine", "886f5abd"))
        assert made["ms"] == {"886f5abd": 5, "now": 2, "gain": 2.5, "processor_gain": None}


def test_each_measure_has_its_function():
    for name in MEASURES:
        assert callable(measuring(name))


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


class TestGrowth:
    def test_the_exponent_of_what_is_flat_linear_and_quadratic(self):
        assert [exponent(2.0, 2.0 * 10**power) for power in (0, 1, 2)] == pytest.approx([0, 1, 2])

    def test_a_ratio_of_1_26_is_flat_enough(self):
        assert exponent(1.0, 1.25) < FLAT < exponent(1.0, 1.27)

    def test_it_counts_from_the_size_that_it_grew_from(self):
        assert exponent(1.0, 2.0, times=2) == pytest.approx(1)

    def test_each_operation_has_its_time_and_its_exponent_by_processor_time(self):
        small = {name: Taken(clock=[0.5], processor=[0.001]) for name in OPERATIONS}
        large = {name: Taken(clock=[0.001], processor=[0.002]) for name in OPERATIONS}
        made = {one.key: one for one in times(small, large, promised=True)}
        assert made["year_append_p50_ms"].value == pytest.approx(1)
        assert (made["year_append_p50_ms"].at_least, made["year_append_p50_ms"].verdict) == (0.35, "short")
        assert made["year_append_exponent"].value == pytest.approx(0.301, abs=0.001)
        assert made["year_append_exponent"].verdict == "short"
        assert (made["year_verify_exponent"].at_least, made["year_verify_exponent"].verdict) == (
            LINEAR,
            "aim",
        )

    def test_nothing_is_promised_about_times_at_another_size(self):
        taken = {name: Taken(clock=[0.001], processor=[0.001]) for name in OPERATIONS}
        made = {one.key: one for one in times(taken, taken, promised=False)}
        assert made["year_append_p50_ms"].at_least is None
        assert made["year_append_exponent"].at_least == FLAT

    def test_what_takes_no_time_has_no_exponent(self):
        taken = {name: Taken(clock=[1e-6], processor=[1e-6]) for name in OPERATIONS}
        assert not [one for one in times(taken, taken, promised=False) if one.key.endswith("exponent")]


class TestPeers:
    def test_only_syncs_between_the_marks_count(self):
        trace = (
            "7 fsync(3) = 0\n7 getpriority(PRIO_PROCESS, 0) = 20\n7 fdatasync(3) = 0\n"
            "8 fsync(4 <unfinished ...>\n8 <... fsync resumed>) = 0\n7 getpriority(PRIO_PROCESS, 0) = 20\n7 fsync(3) = 0\n"
        )
        assert count_syncs(trace) == 2

    def test_without_marks_nothing_is_counted(self):
        assert count_syncs("7 fsync(3) = 0\n") == 0

    @pytest.mark.parametrize(
        ("syncs", "said"),
        [
            (1.0, "durable, 1 sync"),
            (8.0, "durable, 8 syncs"),
            (0.05, "not durable, 0.05 syncs"),
            (0.0, "not durable, no sync"),
            (None, "durable or not: strace is missing"),
        ],
    )
    def test_what_is_said_of_durability(self, syncs, said):
        assert durable(syncs) == said

    @pytest.mark.parametrize("name", ["AgentX, say", "AgentX, record", "SQLite", "git"])
    def test_one_is_measured(self, tmp_path, name):
        measured, problem = rivals._run(Peer(name, sys.executable).command(tmp_path, 2, 3, 1))
        assert not problem
        assert (len(measured["append"]), len(measured["recall"])) == (3, 1)

    def test_one_that_is_not_installed_is_left_out_with_its_reason(self, tmp_path):
        _, problem = rivals._run(Peer("mem0ai", sys.executable).command(tmp_path, 1, 1, 1))
        assert problem == "ModuleNotFoundError: No module named 'mem0'"

    def test_each_peer_says_what_it_recalls(self):
        assert set(rivals.RECALLS) == {*rivals.OURS, "git", "SQLite", *rivals.OWN, *rivals.PINNED}


class TestYear:
    def test_it_is_a_sound_workspace_of_the_promised_size(self, tmp_path):
        root = grown_year.year(tmp_path, 600)
        with Workspace.open(root, settings=settings(tmp_path)) as ws:
            assert ws.state.seq >= 600
            assert ws.status().files == 60
            assert len(ws.memory()) == 3
            assert ws.engine.indexer.index.count() == 120
        found = verify(root)
        assert found.findings == ()

    def test_it_is_the_same_each_time_and_kept(self, tmp_path):
        first, again = (grown_year.year(tmp_path / name, 300) for name in ("a", "b"))
        texts = [[event.data for event in History(root, record_codec()).read()] for root in (first, again)]
        assert texts[0] == texts[1]
        stamp = os.stat(first / ".git")
        assert grown_year.year(tmp_path / "a", 300) == first
        assert os.stat(first / ".git") == stamp


class TestBench:
    def test_two_codes_are_measured_in_one_run(self, tmp_path):
        if not (ROOT / ".git").exists():
            pytest.skip("not a Git checkout")
        done = bench("append", "--scale", "tiny", "--beside", "HEAD", "--json", "--in", str(tmp_path))
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)["append_event_p50_ms"]
        assert row["HEAD"] > 0
        assert row["now"] > 0
        assert list(tmp_path.iterdir()) == []

    def test_an_unknown_revision_ends_it_with_a_sentence(self, tmp_path):
        if not (ROOT / ".git").exists():
            pytest.skip("not a Git checkout")
        done = bench("append", "--beside", "0123456789abcdef", "--in", str(tmp_path))
        assert done.returncode == 1
        assert "agentx: The revision '0123456789abcdef' is not in this clone" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "measure", ["append", "write_file", "history", "packed", "context", "search", "year"]
)
def test_a_measure_runs_at_a_tiny_scale(tmp_path, measure):
    done = bench(measure, "--scale", "tiny", "--json", "--in", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) > 1
