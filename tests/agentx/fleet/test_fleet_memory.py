"""On a fleet a workspace follows others of its tenant by name, and a worker reads them from the tenant's own remotes."""

import msgspec
import pytest

from agentx import Workspace
from agentx.engine.followed import FollowFailed, find_place
from agentx.fleet import place as places
from agentx.fleet.submission import bring_up, submit
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ContextProvided, Followed, RunStarted
from agentx.trust.trust import set_value
from tests.agentx.fleet.fleets import wait_for


def make(fleet, name, *said, follows=""):
    """Make a workspace of the user, on its remote in the fleet; return its commit, last event and hash."""
    root = fleet.root / "mine" / name
    Workspace.create(root, settings=fleet.settings).close()
    if follows:
        set_value(root, fleet.settings, "follow.upstreams", f'{{ rules = "{follows}" }}')
    with Workspace.open(root, settings=fleet.settings) as ws:
        for text in said:
            ws.say(text)
        bring_up(ws, fleet.place.remote_of(name))
        return ws.engine.git.head, ws.state.seq, ws.state.hash


def test_a_worker_reads_the_rules_of_a_workspace_of_its_tenant_and_what_that_one_follows(fleet):
    company = make(fleet, "company", "Never use tabs.")
    team = make(fleet, "team", "Never push to main.", follows=f"fleet:{fleet.tenant}/company")
    make(fleet, "task", follows=f"fleet:{fleet.tenant}/team")
    [submitted] = fleet.submit("task", "Do this.")
    fleet.worker("a").start()
    assert wait_for(fleet.all_ended).statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    with Workspace.open(fleet.root / "mine" / "task", settings=fleet.settings) as ws:
        ws.pull("fleet")
        facts = [event.data for event in ws.events()]
        assert [item.id for item in ws.memory()] == ["rules:c-2", "rules/rules:c-2"]
    [started] = [one for one in facts if isinstance(one, RunStarted)]
    [shown] = [one for one in facts if isinstance(one, ContextProvided)]
    expected = tuple(
        Followed(name=name, commit=commit, seq=seq, hash=digest)
        for name, (commit, seq, digest) in (("rules", team), ("rules/rules", company))
    )
    assert started.followed == shown.followed == expected
    assert set(shown.items) == {"rules:c-2", "rules/rules:c-2"}


def test_a_workspace_that_follows_what_workers_do_not_read_is_not_submitted(fleet):
    root = fleet.root / "mine" / "task"
    Workspace.create(root, settings=fleet.settings).close()
    for source in ("../company", "https://example.org/company.git", "fleet:other/company"):
        set_value(root, fleet.settings, "follow.upstreams", f'{{ rules = "{source}" }}')
        missing = pytest.raises(UsageError, match=r"its rules would be missing there")
        with (
            Workspace.open(root, settings=fleet.settings) as ws,
            places.opened(fleet.place) as queue,
            missing,
        ):
            submit(ws, fleet.place, queue, "Do this.")
    assert not (fleet.root / "remotes" / "task.git").exists()


def test_a_worker_reads_nothing_of_another_tenant_nor_of_its_own_machine(fleet):
    worker = msgspec.structs.replace(
        fleet.settings, fleet_remote="/srv/{tenant}/{workspace}.git", fleet_tenant="ours"
    )
    assert find_place("fleet:rules", fleet.root, worker).url == "/srv/ours/rules.git"
    for source, error in (
        ("fleet:theirs/rules", UsageError),
        ("fleet:../theirs/rules", UsageError),
        ("fleet:..", UsageError),
        ("/srv/theirs/rules.git", FollowFailed),
        ("file:///srv/theirs/rules.git", FollowFailed),
        ("git@host:theirs/rules.git", FollowFailed),
        ("../rules", FollowFailed),
    ):
        with pytest.raises(error):
            find_place(source, fleet.root, worker)
