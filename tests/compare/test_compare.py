"""The common shape of the drivers, against AgentX and the two floors, without a network."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.compare import texts
from tests.compare.case import Case
from tests.compare.driver import Driver, Message, NotItsPurpose, latest_within
from tests.compare.operations import content, crowd, damage, durability, recall, replay, size
from tests.compare.peers import Peer, install, peers
from tests.compare.report import better, markdown, write_page
from tests.compare.runs import NOT_RUN, Runs, _meaning
from tests.compare.synced import synced

ROOT = Path(__file__).parents[2]
HERE = ("agentx", "sqlite", "jsonl")


def case_of(name: str, folder: Path, **options) -> Case:
    folder.mkdir(parents=True, exist_ok=True)
    return Case(importlib.import_module(f"tests.compare.drivers.{name}").DRIVER, folder, **options)


@pytest.mark.parametrize("name", HERE)
def test_what_is_appended_is_read_back_in_its_order_by_the_next_opening(tmp_path, name):
    case = case_of(name, tmp_path)
    driver = case.open()
    driver.append(Message("user", "Where is the report?"))
    driver.append(Message("tool", "report.md\nplan.md", "list_files"))
    driver.append_all([Message("assistant", "In report.md."), Message("user", "Thank you.")])
    driver.close()
    again = case.open()
    assert again.read() == ["Where is the report?", "report.md\nplan.md", "In report.md.", "Thank you."]
    assert again.read(2) == ["In report.md.", "Thank you."]
    again.close()


@pytest.mark.parametrize("name", ["agentx", "sqlite"])
def test_search_returns_whole_messages_best_first(tmp_path, name):
    driver = case_of(name, tmp_path).open()
    driver.append_all(
        [Message("user", "The cat sleeps."), Message("user", "Payments failed twice in March.")]
    )
    driver.index()
    assert driver.search("payments in March", 1) == ["Payments failed twice in March."]
    driver.close()


def test_what_a_product_is_not_made_for_is_said_and_no_failure(tmp_path):
    case = case_of("jsonl", tmp_path)
    with pytest.raises(NotItsPurpose):
        recall.recall(case)
    with pytest.raises(NotItsPurpose):
        content.poison(case)


@pytest.mark.parametrize("name", HERE)
def test_nothing_acknowledged_is_missing_after_a_kill(tmp_path, name):
    found = durability.kills(case_of(name, tmp_path, n=2))
    assert found["acknowledged"] > 0
    assert (found["kills"], found["lost"], found["errors"]) == (2, 0, 0)


@pytest.fixture
def little_damage(monkeypatch):
    monkeypatch.setattr(damage, "_RECORDS", 60)
    monkeypatch.setattr(damage, "_PLACES", (2, 4))


def test_a_flipped_byte_that_a_product_does_not_tell_is_counted_as_silent(tmp_path, little_damage):
    found = damage.damage(case_of("jsonl", tmp_path))
    assert found["file"] == "messages.jsonl"
    assert found["cut"]["lost"] == 1
    assert found["flips_silent"] + found["flips_told"] + found["flips_harmless"] == found["flips"]
    assert found["flips_lost_after_repair"] is None


def test_damage_that_is_told_and_repaired_is_counted_as_such(tmp_path, little_damage):
    found = damage.damage(case_of("agentx", tmp_path))
    assert (found["flips_silent"], found["flips_lost_after_repair"]) == (0, 0)
    assert found["cut"]["told"]


@pytest.mark.parametrize("name", ["sqlite", "jsonl"])
def test_many_writers_are_counted_by_what_is_present_afterwards(tmp_path, name, monkeypatch):
    monkeypatch.setattr(crowd, "_ROUNDS", 1)
    found = crowd.crowd(case_of(name, tmp_path))
    assert (found["acknowledged"], found["lost"], found["errors"], found["in_order"]) == (200, 0, 0, True)


def test_secrets_are_looked_for_in_all_files(tmp_path):
    assert content.secrets(case_of("sqlite", tmp_path / "a"))["on_disk"] == len(texts.SECRETS)
    assert content.secrets(case_of("agentx", tmp_path / "b"))["on_disk"] == 0


def test_a_context_that_holds_the_poison_as_the_users_words_is_an_instruction(tmp_path):
    class Gullible(case_of("jsonl", tmp_path).make):
        def context(self, question, max_tokens):
            return latest_within([(text, True) for text in self.read()], max_tokens)

    folder = tmp_path / "gullible"
    folder.mkdir()
    assert content.poison(Case(Gullible, folder)) == {"page": "instruction", "repeated": "instruction"}


def test_replay_says_what_there_is_no_way_for(tmp_path):
    assert replay.replay(case_of("sqlite", tmp_path / "a")) == {
        "earlier": "not its purpose",
        "twice": "yes",
        "rebuilt": "not its purpose",
    }
    assert set(replay.replay(case_of("agentx", tmp_path / "b")).values()) == {"yes"}


def test_recall_is_skipped_without_data(tmp_path):
    assert "skipped" in recall.recall(case_of("sqlite", tmp_path))


def test_recall_counts_the_turns_that_answer(tmp_path):
    data = tmp_path / "data.json"
    data.write_text(
        '[{"turns": [["a", "user", "The cat sleeps."], ["b", "user", "Payments failed."]],'
        ' "questions": [["payments", ["b"]], ["dog", ["a"]]]}]'
    )
    assert recall.recall(case_of("sqlite", tmp_path / "s", data=data))["recall_at_10"] == 0.5


def test_a_large_store_is_opened_and_its_latest_messages_are_the_right_ones(tmp_path):
    found = size.load(case_of("sqlite", tmp_path, records=500))
    assert (found["records"], found["right"]) == (500, True)


def test_a_record_counts_as_synced_only_if_its_file_was_synced_after_it_was_written():
    lines = [
        "7 getpriority(PRIO_PROCESS, 0) = 20",
        '7 pwrite64(4</x/a.db>, "record-8-000000- word", 21, 0) = 21',
        "8 fdatasync(4</x/a.db> <unfinished ...>",
        "8 <... fdatasync resumed>) = 0",
        "7 getpriority(PRIO_PROCESS, 0) = 20",
        '7 pwrite64(4</x/a.db>, "record-8-000001- word", 21, 0) = 21',
        "7 getpriority(PRIO_PROCESS, 0 <unfinished ...>",
        "7 <... getpriority resumed>) = 20",
    ]
    found = synced(lines, "/x")
    assert (found["acknowledged"], found["synced"], found["unsynced_bytes"]) == (2, 1, 21)


def test_a_peer_that_cannot_be_installed_is_told_with_its_reason(tmp_path):
    found = install(Peer("none", "none", ("--no-index", "agentx-no-such-package==1")), tmp_path)
    assert "No matching distribution found" in found.error


def test_every_peer_is_pinned_and_every_driver_is_there():
    for peer in peers([]):
        assert all("==" in package for package in peer.packages)
        if peer.driver:
            text = (ROOT / "tests" / "compare" / "drivers" / f"{peer.driver}.py").read_text("utf-8")
            assert "(Driver):" in text


def test_a_peer_that_is_better_is_named_first():
    def one(key, lost):
        kills = {"result": {"kills": 1, "acknowledged": 9, "lost": lost}}
        told = {"name": key, "package": "", "version": "", "kind": "", "durability": "", "remarks": {}}
        return {"key": key, "packages": [], **told, "results": {"kills": kills}}

    made = {"machine": "m", "n": 1, "records": 1, "limit_s": 1, "peers": [one("agentx", 3), one("other", 0)]}
    made["peers"].append({"key": "broken", "packages": ["broken==1"], "failed": "not installed: why"})
    assert better(made) == ["Kills, and syncs, lost: AgentX 3; other 0"]
    text = markdown(made)
    assert text.index("AgentX 3; other 0") < text.index("### Kills")
    assert "### Replay" not in text  # nothing of it was run
    assert "`not installed: why`" in text


def test_tables_are_written_between_the_marks_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- compare -->\nold\n<!-- end -->\nbelow\n")
    write_page(page, "new\n")
    assert page.read_text() == "above\n<!-- compare -->\nnew\n<!-- end -->\nbelow\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="0 blocks"):
        write_page(page, "new")


def test_what_a_driver_tells_a_reader_does_not_decide_what_is_measured_again():
    one = 'class A:\n    name = "a"\n    remarks = {"x": "y"}\n\n    def do(self):\n        return 1\n'
    assert _meaning(one) == _meaning(one.replace('"y"', '"z"')) != _meaning(one.replace("1", "2"))


def runs_in(folder: Path, **options) -> Runs:
    common = {"address": "", "n": 1, "records": 10, "limit_s": 60, "data": None, "again": False}
    return Runs(cache=folder, **{**common, **options})


def test_what_was_measured_is_kept_for_the_next_call(tmp_path):
    floor = Peer("sqlite", "sqlite")
    assert runs_in(tmp_path, kept_only=True).run(floor, sys.executable, "replay") == {"error": NOT_RUN}
    found = runs_in(tmp_path).run(floor, sys.executable, "replay")
    assert found["result"]["twice"] == "yes"
    assert runs_in(tmp_path, kept_only=True).run(floor, sys.executable, "replay") == found


def test_a_product_that_fails_is_told_with_its_error(tmp_path):
    found = runs_in(tmp_path).run(Peer("chroma", "chroma"), sys.executable, "replay")
    assert "No module named 'chromadb'" in found["error"]


def test_the_shape_is_complete():
    assert {"start", "append", "read", "search", "context", "close"} <= set(dir(Driver))
