"""What fails beside a run costs neither its result nor a thread of the worker."""

import errno
import os
import subprocess

import msgspec
import pytest

from agentx import Workspace
from agentx.fleet import carrying_out, worker
from agentx.fleet import place as places
from agentx.fleet.local_copy import Home, Stranded
from agentx.fleet.submission import submit
from agentx.fleet.telemetry import Parts
from agentx.scheduling.shared_queue import SharedQueue
from agentx.storage.files import nofollow
from agentx.storage.git.exchange.remotes import PushRefused, Remote
from tests.agentx.fleet.fleets import wait_for


def test_a_run_keeps_its_result_and_the_worker_its_threads_whatever_fails_beside_it(
    fleet, tmp_path, monkeypatch
):
    looks, told = [], []

    def fails(*_):
        looks.append(1)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def nobody_reads(*_):
        wait_for(lambda: len(looks) > 1)
        raise SystemExit(1)

    monkeypatch.setattr(SharedQueue, "take_over", fails)
    monkeypatch.setattr(worker.Publisher, "note", fails)
    fleet.submit("task", "Do this.")
    settings = msgspec.structs.replace(fleet.settings, model=f"script:{fleet.script}")
    with places.opened(fleet.place) as queue:
        one = worker.Worker(
            fleet.place, queue, tmp_path / "home", settings, on_result=nobody_reads, on_fault=told.append
        )
        one.run(once=True)
    assert fleet.status().statuses == {"COMPLETED": 1}
    assert len([said for said in told if "Too many open files" in said]) == 2  # of two places, each once
    assert any("SystemExit" in said for said in told)


def test_a_remote_that_refuses_pushes_is_named_and_the_run_is_pushed_once_it_accepts(
    fleet, tmp_path, monkeypatch
):
    settings = msgspec.structs.replace(fleet.settings, model=f"script:{fleet.script}")
    kept = []
    seen = type("Seen", (), {"enqueue": lambda *row: kept.append(row)})()
    with Workspace.create(tmp_path / "task", settings=settings) as ws:
        submission = submit(ws, fleet.place, seen, "Do this.")
    url = fleet.place.remote_of("task")

    def refuses(*_):  # hooks of a remote in a directory are not run
        raise PushRefused("pre-receive hook declined")

    monkeypatch.setattr(Remote, "push", refuses)

    def carry_out():
        home = Home(tmp_path / "home")
        return carrying_out.carry_out(home, url, submission, settings, Parts(report=False))

    refused = carry_out()
    assert refused.status == "AGAIN"
    assert refused.reason == "pre-receive hook declined"
    monkeypatch.undo()
    assert carry_out().status == "COMPLETED"
    log = subprocess.run(["git", "-C", url, "show", "main:history.jsonl"], capture_output=True, check=True)
    assert log.stdout.count(b'"RunStarted"') == 1


def test_a_sweep_while_a_copy_is_set_aside_removes_nothing_of_it(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    copy = home.copies / "task"
    copy.mkdir()
    (copy / "events").write_text("only here")
    replace, swept = nofollow.replace, []

    def sweep_before(old, new):
        swept.append(home.waiting())
        replace(old, new)

    monkeypatch.setattr(nofollow, "replace", sweep_before)
    home.set_aside(copy, Stranded(workspace="task", submission="s" * 8, url="u", why="w"))
    monkeypatch.undo()
    assert swept
    assert not any(swept)
    [(folder, about)] = home.waiting()
    assert about.workspace == "task"
    assert (folder / "events").read_text() == "only here"
    home.delivered(folder)
    assert home.waiting() == []
    assert list(home.stranded.iterdir()) == []


@pytest.mark.parametrize("payload", ["\ud800", "{}", 7])
def test_a_row_that_is_not_a_submission_is_refused(fleet, tmp_path, payload):
    with places.opened(fleet.place) as queue:
        one = worker.Worker(fleet.place, queue, tmp_path / "home", fleet.settings)
        assert '"REFUSED"' in one._carry(payload)


def test_copies_are_removed_where_the_disk_is_nearly_full_the_longest_unused_first(
    fleet, tmp_path, monkeypatch
):
    fleet.worker("none")
    queue, home = type("Seen", (), {"enqueue": lambda *_: None})(), Home(tmp_path / "home")
    settings = msgspec.structs.replace(
        fleet.settings, model=f"script:{fleet.script}", trusted_keys=(fleet.key,)
    )
    for name in ("old", "late", "held", "new"):
        with Workspace.create(fleet.root / "mine" / name, settings=fleet.settings) as ws:
            one = submit(ws, fleet.place, queue, "Do this.")
        [result] = carrying_out.in_process(home.root, fleet.place.remote_of(name), one, settings)
        assert result.status == "COMPLETED"
        used = {"late": 3, "old": 2, "held": 1, "new": 4}[name]
        os.utime(home.records_of(name), (used, used))
    assert home.make_room(0.0) == []
    held = msgspec.structs.replace(one, workspace="held")
    nofollow.write(home.root / "records" / "held.json", msgspec.json.encode(("url", held)))
    room = iter([False, False, True])
    monkeypatch.setattr(Home, "_is_free", lambda *_: next(room))
    assert home.make_room() == ["old", "late"]
    assert sorted(path.name for path in home.copies.iterdir()) == ["held", "new"]
    assert list(home.stranded.iterdir()) == []
    with Workspace.open(fleet.root / "mine" / "old", settings=fleet.settings) as ws:
        again = submit(ws, fleet.place, queue, "Do that.")
    [result] = carrying_out.in_process(home.root, fleet.place.remote_of("old"), again, settings)
    assert (result.status, result.copy) == ("COMPLETED", "cold")
