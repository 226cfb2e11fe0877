"""A fleet keeps its promises: no row holds a slot, what a worker cannot take waits for another, no id means two things."""

import io
import json
import sqlite3

import pytest

from agentx.cli.main import main
from agentx.scheduling.shared_queue import SharedQueue

ROWS = {
    "another name": {"name": "other"},
    "no name": {"name": None},
    "a workflow of DBOS": {"name": "_dbos_debouncer_workflow"},
    "a class": {"class_name": "Other"},
    "an instance": {"config_name": "other"},
    "a format nobody knows": {"serialization": "nothing"},
    "a pickle": {"serialization": "py_pickle"},
    "roles that are no JSON": {"authenticated_roles": "{"},
    "attributes that are no JSON": {"attributes": "{"},
    "no partition": {"queue_partition_key": None},
    "another version": {"application_version": "2"},
    "no version": {"application_version": None},
    "another application": {"application_name": "other"},
    "a deadline that has passed": {"workflow_deadline_epoch_ms": 1},
    "before all others": {"name": "other", "priority": -5},
    "an id of blanks": {"workflow_uuid": "   "},
    "many attempts": {"recovery_attempts": 10**9, "name": "other"},
}


class Machine:
    """A user's machine: a state directory of its own beside a fleet's database."""

    def __init__(self, root, name, capsys, monkeypatch):
        self.root, self.name, self._capsys, self._patch = root, name, capsys, monkeypatch
        self.state = root / name

    def __call__(self, *words):
        self._patch.setenv("AGENTX_STATE_DIR", str(self.state))
        self._patch.setattr("sys.stdin", io.StringIO())
        code = main([str(one) for one in words])
        return code, *self._capsys.readouterr()

    def joins(self, remotes="remotes"):
        pattern = self.root / remotes / "{workspace}.git"
        return self("fleet", "init", "--remote", pattern, "--database", f"sqlite:///{self.root}/queue.sqlite")

    def works(self, *options):
        return self("fleet", "worker", "--once", "--home", self.root / f"{self.name}-home", *options)

    def runs(self):
        return {
            one["submission"]: one["status"]
            for one in json.loads(self("fleet", "status", "--json")[1])["runs"]
        }


@pytest.fixture
def machine(tmp_path, capsys, monkeypatch):
    (tmp_path / "turns.jsonl").write_text('{"answer": "It is done."}\n')
    monkeypatch.setenv("AGENTX_MODEL", f"script:{tmp_path / 'turns.jsonl'}")

    def machine(name):
        made = Machine(tmp_path, name, capsys, monkeypatch)
        assert made.joins()[0] == 0
        return made

    return machine


@pytest.fixture
def mine(machine, tmp_path):
    """The submitter's machine, with a workspace."""
    one = machine("mine")
    assert one("init", tmp_path / "task")[0] == 0
    one.task = tmp_path / "task"
    return one


def submit(one, message, *options):
    return one("-C", one.task, "fleet", "submit", message, *options)


def plant(root, **changes):
    """Write a row as somebody who can write the database could."""
    with SharedQueue.opened(f"sqlite:///{root}/queue.sqlite", "x") as queue:
        queue.enqueue("planted-row", "aaa", "{}", 1)
    names = ", ".join(f"{name} = :{name}" for name in changes)
    with sqlite3.connect(root / "queue.sqlite") as database:
        database.execute(f"UPDATE workflow_status SET {names} WHERE workflow_uuid = 'planted-row'", changes)


@pytest.mark.parametrize("changes", ROWS.values(), ids=ROWS)
def test_a_row_that_nobody_signed_holds_no_slot(mine, tmp_path, changes):
    plant(tmp_path, **changes)
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0
    code, _, err = mine.works("--slots", "1")
    assert code == 0, err
    assert mine.runs()["signed-one"] == "COMPLETED"


def test_rows_in_the_workspace_of_a_submission_do_not_keep_it_waiting(mine, tmp_path):
    plant(tmp_path, name="other", queue_partition_key="task")
    submit(mine, "Do this.", "--id", "signed-one")
    assert mine.works("--slots", "1")[0] == 0
    assert mine.runs()["signed-one"] == "COMPLETED"


def test_a_worker_without_the_key_warns_and_leaves_a_submission_to_one_that_has_it(mine, machine):
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0
    other = machine("other")
    code, _, err = other.works()
    assert code == 0
    assert "leaves the others to other workers" in err
    assert "signed-one for task is left to other workers" in " ".join(err.split())
    assert mine.runs() == {"signed-one": "QUEUED"}
    code, _, err = mine.works()
    assert (code, mine.runs()) == (0, {"signed-one": "COMPLETED"}), err


def test_a_worker_that_is_given_the_key_takes_it(mine, machine, monkeypatch):
    submit(mine, "Do this.", "--id", "signed-one")
    other = machine("other")
    other.works()
    key = json.loads(mine("trust", "key", "--json")[1])["key"]
    monkeypatch.setenv("AGENTX_TRUSTED_KEYS", key)
    _, _, err = other.works()
    assert "leaves" not in err
    assert mine.runs() == {"signed-one": "COMPLETED"}


def test_other_remotes_of_a_fleet_that_exists_are_refused(mine):
    assert mine.joins()[0] == 0
    code, _, err = mine.joins("elsewhere")
    said = " ".join(err.split())
    assert code == 2
    assert "exists here, with the remotes" in said
    assert "another --tenant" in said
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0
    mine.works()
    assert mine.runs() == {"signed-one": "COMPLETED"}


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("again", ["Do that.", "do this.", "Do this. ✓"])
def test_an_id_with_another_message_is_refused(mine, ends, again):
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0
    if ends:
        mine.works()
    code, out, err = submit(mine, again, "--id", "signed-one")
    assert (code, "✓" in out) == (2, False)
    assert "signed-one belongs to another submission ('Do this.')" in " ".join(err.split())
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0


def test_an_id_whose_row_was_pruned_is_known_by_its_run(mine):
    submit(mine, "Do this.", "--id", "signed-one")
    mine.works()
    assert mine("fleet", "prune", "--older", 0)[0] == 0
    assert mine.runs() == {}
    assert submit(mine, "Do that.", "--id", "signed-one")[0] == 2
    assert submit(mine, "Do this.", "--id", "signed-one")[0] == 0


def test_an_id_with_another_agent_is_refused(mine):
    submit(mine, "Do this.", "--id", "signed-one")
    assert submit(mine, "Do this.", "--id", "signed-one", "--agent", "other")[0] == 2
