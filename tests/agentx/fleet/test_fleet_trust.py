"""A worker runs nothing without the submitter's signature, and no secret reaches an argument, a log or a row."""

import os
import subprocess
import sys

import msgspec
import pytest

from agentx import Workspace
from agentx.fleet import place as places
from agentx.fleet.submission import Submission, submit
from agentx.fleet.worker import Worker
from agentx.scheduling.shared_queue import QueueFailed
from agentx.settings import read_settings
from agentx.storage.errors import UsageError
from agentx.trust.trust import Restricted
from tests.agentx.fleet.fleets import LEASE_S
from tests.agentx.fleet.test_fleet import slow


@pytest.fixture
def results(fleet):
    """Carry out what is in the queue; the status and the reason of each."""

    def results():
        one = fleet.worker("a").start("--once")
        assert one.process.wait() == 0
        return [(run.status, run.reason) for run in fleet.status().runs]

    return results


def queued(fleet, **changes):
    """Put a changed copy of a signed submission into the queue, as somebody who can write the database could."""
    root = fleet.root / "mine" / "task"
    with Workspace.create(root, settings=fleet.settings) as ws, places.opened(fleet.place) as queue:
        kept = []
        made = submit(
            ws, fleet.place, type("Seen", (), {"enqueue": lambda *row: kept.append(row)})(), "Do this."
        )
        forged = msgspec.structs.replace(made, **changes)
        queue.enqueue(forged.id, "task", msgspec.json.encode(forged).decode(), 100)
    return made


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"message": "Delete everything."}, "another run"),
        pytest.param({"agent": "root"}, "another run", marks=slow),
        pytest.param({"traceparent": f"00-{1:032x}-{1:016x}-00"}, "another run", marks=slow),
        pytest.param({"id": "another-one"}, "another run", marks=slow),
        ({"records": ""}, "grants no run"),
    ],
)
def test_a_submission_that_was_changed_or_is_not_signed_is_refused_and_leaves_no_trace(
    fleet, results, changes, why
):
    queued(fleet, **changes)
    [(status, reason)] = results()
    assert status == "REFUSED"
    assert why in reason
    assert fleet.runs("task") == {}


def test_a_submission_of_a_user_whose_key_the_worker_does_not_accept_is_left_to_others(fleet, results):
    fleet.key = ""
    fleet.submit("task", "Do this.")
    assert results() == [("QUEUED", "")]
    assert "a key that is not accepted here" in fleet.workers[0].said.read_text()


def test_rows_that_nobody_signed_hold_no_slot_and_make_nothing_on_the_worker(fleet):
    """A remote that does not exist would be waited for, and an id would become part of a ref."""
    made = queued(fleet, id="a:refs/heads/evil")
    other = msgspec.structs.replace(made, workspace="missing")
    rows = [
        msgspec.json.encode(one).decode()
        for one in (
            other,
            msgspec.structs.replace(made, records=made.records + made.records.splitlines()[0] + "\n"),
            msgspec.structs.replace(made, workspace="../../up"),
            msgspec.structs.replace(made, message="x" * 5_000_000),
        )
    ]
    rows += ['{"a": ' * 100_000, "\ud800", {"id": "a-dictionary"}]
    with places.opened(fleet.place) as queue:
        for number, row in enumerate(rows):
            queue.enqueue(f"row-{number:05}", f"row-{number}", row, 100)
    worker = fleet.worker("a").start("--once")
    assert worker.process.wait(60) == 0
    found = {run.submission: run for run in fleet.status().runs}
    whys = [found[f"row-{number:05}"].reason for number in range(len(rows))]
    assert {run.status for run in found.values()} == {"REFUSED"}
    assert "cannot be an id" in found["a:refs/heads/evil"].reason
    for why, expected in zip(
        whys,
        [
            "another run",
            "more signed records",
            "cannot be the name",
            "up to 4,000,000",
            *["cannot be read"] * 2,
            "up to",
        ],
        strict=True,
    ):
        assert expected in why
    for folder in ("workspaces", "records", "locks"):
        assert list((worker.home / folder).iterdir()) == []


def test_trust_of_an_earlier_submission_does_not_go_with_a_later_one(fleet, results):
    """Who can write the database and push could else bring back settings that the user has taken out."""
    root = fleet.root / "mine" / "task"
    keep = type("Ignored", (), {"enqueue": lambda *_: None})()

    def submitted(command, message):
        with Workspace.open(root, settings=fleet.settings) as ws:
            ws.configure("checks.tests.command", command)
        with Workspace.open(root, settings=fleet.settings) as ws:
            ws.trust()
            return submit(ws, fleet.place, keep, message)

    Workspace.create(root, settings=fleet.settings).close()
    before, made = submitted("touch evil", "Do this."), submitted("true", "Do that.")
    with Workspace.open(root, settings=fleet.settings) as ws:
        ws.configure("checks.tests.command", "touch evil")
        ws.push("fleet")
    forged = msgspec.structs.replace(
        made, records=f"{before.records.splitlines()[0]}\n{made.records.splitlines()[1]}\n"
    )
    with places.opened(fleet.place) as queue:
        queue.enqueue(forged.id, "task", msgspec.json.encode(forged).decode(), 100)
    [(status, reason)] = results()
    assert status == "REFUSED"
    assert "another run" in reason


def test_a_message_that_is_too_long_for_the_queue_is_not_submitted(fleet):
    with (
        Workspace.create(fleet.root / "mine" / "task", settings=fleet.settings) as ws,
        pytest.raises(UsageError, match="into a file"),
    ):
        submit(ws, fleet.place, None, "x" * 600_000)


def test_settings_that_changed_since_the_submission_run_nothing(fleet, results):
    fleet.submit("task", "Do this.")
    with Workspace.open(fleet.root / "mine" / "task", settings=fleet.settings) as ws:
        ws.configure("checks.tests.command", "touch evil")
        ws.push("fleet")
    [(status, reason)] = results()
    assert status == "REFUSED"
    assert "settings other than those in agentx.toml" in reason


def test_a_workspace_that_is_not_trusted_and_a_program_of_a_run_cannot_submit(fleet, tmp_path):
    root = fleet.root / "mine" / "task"
    fleet.submit("task", "Do this.")
    subprocess.run([fleet.git, "clone", "-q", str(root), str(tmp_path / "clone")], check=True)
    with (
        Workspace.open(tmp_path / "clone", settings=fleet.settings) as ws,
        places.opened(fleet.place) as queue,
        pytest.raises(Restricted),
    ):
        submit(ws, fleet.place, queue, "Do this.")


def test_a_pickled_row_is_refused_and_runs_no_code(fleet, results, tmp_path):
    import base64
    import pickle

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "evil"), "w"))

    [submitted] = fleet.submit("task", "Do this.")
    with places.opened(fleet.place) as queue:
        queue._execute(
            f"UPDATE {queue._prefix}workflow_status SET serialization = 'py_pickle' WHERE workflow_uuid = :id",
            id=submitted,
        )
        queue._execute(
            f"UPDATE {queue._prefix}workflow_input SET inputs = :evil WHERE workflow_uuid = :id",
            id=submitted,
            evil=base64.b64encode(pickle.dumps(Evil())).decode(),
        )
    results()
    assert not (tmp_path / "evil").exists()
    assert fleet.runs("task") == {}


def test_a_password_in_an_argument_is_refused_and_one_in_the_environment_is_not_shown(fleet, tmp_path):
    pattern = str(tmp_path / "{workspace}.git")
    with pytest.raises(UsageError, match="AGENTX_FLEET_DATABASE"):
        places.initialise(fleet.settings, "postgresql://me:hidden@127.0.0.1/db", pattern)
    with pytest.raises(UsageError, match="has a password"):
        places.initialise(fleet.settings, "", "https://me:hidden@example.org/{workspace}.git")
    token = "ghp_" + "A1b2C3d4E5" * 3 + "f6G7h8"
    with pytest.raises(UsageError, match="has a password"):
        places.initialise(fleet.settings, "", f"https://{token}@example.org/{{workspace}}.git")
    own = read_settings(
        {
            "AGENTX_STATE_DIR": str(tmp_path / "o"),
            "AGENTX_FLEET_DATABASE": "postgresql://me:hidden@127.0.0.1:1/db",
        }
    )
    with pytest.raises(QueueFailed) as failed:
        places.initialise(own, "", pattern)
    assert "hidden" not in str(failed.value)
    assert "AGENTX_FLEET_DATABASE" not in own.environ
    for file in tmp_path.rglob("fleet-*.json"):
        assert "hidden" not in file.read_text()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hid/den@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=me&password=hidden",
    ],
)
def test_a_password_of_any_form_in_the_url_of_the_database_is_a_key_and_is_shown_nowhere(
    fleet, tmp_path, url
):
    pattern = str(tmp_path / "{workspace}.git")
    with pytest.raises(UsageError, match="has a password"):
        places.initialise(fleet.settings, url, pattern)
    own = read_settings({"AGENTX_STATE_DIR": str(tmp_path / "o"), "AGENTX_FLEET_DATABASE": url})
    assert set(own.keys) == {"AGENTX_FLEET_DATABASE"}
    place = msgspec.structs.replace(fleet.place, database=url)
    with pytest.raises(QueueFailed) as failed:
        places.initialise(own, "", pattern)
    for said in (place.shown_database, str(failed.value)):
        assert "hid" not in said
        assert "den" not in said


def test_a_runs_process_does_not_have_the_url_of_the_database(fleet, tmp_path):
    url = fleet.database
    settings = read_settings(
        {"AGENTX_STATE_DIR": str(tmp_path / "o"), "AGENTX_FLEET_DATABASE": url, "OPENAI_API_KEY": "sk-model"}
    )
    with places.opened(fleet.place) as queue:
        worker = Worker(fleet.place, queue, tmp_path / "home", settings)
        [[seen, keys]] = worker._pool.call(_settings_there)
        worker._pool.close()
    assert url not in seen
    assert keys == ["OPENAI_API_KEY"]


def _settings_there():
    """What a process of runs was given, from the frame of its loop."""
    given = sys._getframe(1).f_locals["settings"]
    yield [repr(given) + repr(dict(os.environ)), sorted(given.keys)]


def test_secrets_in_a_message_are_redacted_before_it_is_queued(fleet):
    secret = "ghp_" + "A1b2C3d4E5" * 3 + "f6G7h8"
    fleet.submit("task", f"Use {secret} to log in.")
    with places.opened(fleet.place) as queue:
        [[rows]] = queue._rows(f"SELECT inputs FROM {queue._prefix}workflow_input")
    assert "[redacted: github token]" in rows
    assert secret not in rows


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".git", "a.lock", "x" * 101, "a..b"])
def test_names_that_would_leave_the_tenants_remotes_are_refused(fleet, name):
    with pytest.raises(UsageError):
        fleet.place.remote_of(name)


def test_two_workers_do_not_share_a_directory_and_a_drained_one_leaves_the_queue_as_it_is(fleet):
    one = fleet.worker("a").start()
    while not fleet.status().workers:
        pass
    with places.opened(fleet.place) as queue:
        with pytest.raises(UsageError, match="Another worker uses"):
            Worker(fleet.place, queue, one.home, fleet.settings).run(once=True)
        [name] = queue.drain()
    assert one.process.wait(30 * LEASE_S) == 0
    one.process = None
    fleet.submit("task", "Do this.")
    found = fleet.status()
    assert name
    assert found.workers == []
    assert found.queued == 1


def test_a_worker_that_is_told_to_end_interrupts_its_run_and_another_goes_on_with_it(fleet):
    first, second = fleet.worker("a"), fleet.worker("b")
    first.holds("model")
    [submitted] = fleet.submit("task", "Do this.")
    first.start("--grace", "0")
    first.reached("model")
    assert first.end() == 0
    assert fleet.runs("task") == {submitted: (1, "INTERRUPTED")}
    second.start("--once")
    assert second.process.wait() == 0
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}


def test_a_submission_with_an_id_that_is_known_is_run_once(fleet, results):
    root = fleet.root / "mine" / "task"
    with Workspace.create(root, settings=fleet.settings) as ws, places.opened(fleet.place) as queue:
        made = [submit(ws, fleet.place, queue, "Do this.", submission="the-same-one") for _ in range(2)]
    assert isinstance(made[0], Submission)
    assert results() == [("COMPLETED", "")]
    assert fleet.runs("task") == {"the-same-one": (1, "COMPLETED")}
