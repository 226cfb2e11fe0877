"""Signed records: trust and approvals for machines where nobody can be asked."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx import Workspace
from agentx.storage.errors import UsageError
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.trust import records
from agentx.trust.store import Store
from agentx.trust.trust import Restricted, Trust
from agentx.trust.trusted_items import of_schedule

MODEL = '[model]\nname = "openai/gpt"\n'
RULE = of_schedule(ScheduleSet(id="daily", cron="0 8 * * *", task="Read the mail."))


@pytest.fixture
def trusted(root, user, append):
    """A workspace with a setting that its user trusts."""
    append(MODEL)
    Trust.read(root, user).grant("trusted")
    return Trust.read(root, user)


@pytest.fixture
def worker(stranger, user, tmp_path, copied, root):
    """Give a worker, with a copy of the workspace, a record; why it is restricted there."""

    def worker(*lines, keys=None, place=None):
        (tmp_path / "records").write_text("\n".join(lines))
        keys = (records.own_public_key(Store(user.state_dir)),) if keys is None else keys
        there = msgspec.structs.replace(stranger, trust_record=str(tmp_path / "records"), trusted_keys=keys)
        return Trust.read(place or copied(root), there)

    return worker


def test_a_worker_that_was_told_the_key_trusts_what_the_record_names(trusted, worker):
    """Wherever the workspace lies there; with its schedules, and with nothing that the record does not say."""
    there = worker(trusted.issue(1, [RULE]))
    assert there.why_restricted() == ""
    there.require_item(RULE)
    with pytest.raises(Restricted) as refused:
        there.require_item(of_schedule(ScheduleSet(id="daily", cron="0 8 * * *", task="Delete all.")))
    assert "Delete all. " in str(refused.value)
    assert ".." not in str(refused.value)
    with pytest.raises(Restricted, match="read your keys and act as you"):
        there.require_commands()


def test_a_record_can_allow_commands_without_isolation(trusted, worker):
    """Where it says so."""
    there = worker(trusted.issue(1, commands=True))
    there.require_commands()
    assert there.why_restricted() == ""


def test_a_key_that_a_person_accepts_by_hand_counts(trusted, worker, stranger, user):
    """And no longer when it is removed."""
    key = records.own_public_key(Store(user.state_dir))
    there = worker(trusted.issue(1), keys=())
    assert "key that is not accepted here" in there.why_restricted()
    records.accept(Store(stranger.state_dir), key, stranger)
    assert there.why_restricted() == ""
    records.accept(Store(stranger.state_dir), key, stranger, accepted=False)
    assert there.why_restricted()
    with pytest.raises(UsageError, match="not a public key"):
        records.accept(Store(stranger.state_dir), "abc", stranger)


def test_a_key_that_signs_is_not_accepted_by_itself(trusted, tmp_path, copied, root, user):
    """Not even on the machine that issued: what was revoked there would come back."""
    (tmp_path / "records").write_text(trusted.issue(1))
    trusted.revoke()
    here = msgspec.structs.replace(user, trust_record=str(tmp_path / "records"))
    assert "not accepted here" in Trust.read(root, here).why_restricted()


@pytest.mark.parametrize("field", ["workspace", "what", "until", "issued", "items", "commands", "kind"])
def test_a_record_that_was_altered_is_refused(trusted, worker, field):
    """Each part is under the signature."""
    line = json.loads(trusted.issue(1))
    line["record"][field] = {
        "until": "2999-01-01T00:00:00Z",
        "issued": "2000-01-01T00:00:00Z",
        "items": ["x"],
        "commands": True,
    }.get(field, "approval")
    why = worker(json.dumps(line)).why_restricted()
    assert "altered" in why or (field == "kind" and "grants no trust" in why)


def test_a_signature_by_another_key_under_an_accepted_name_is_refused(trusted, worker, stranger, user):
    """The name of a key is no proof of it."""
    line = json.loads(
        records.issue(
            Store(stranger.state_dir),
            records.Signed(
                kind="trust",
                workspace="w",
                what="x",
                issued="2026-01-01T00:00:00Z",
                until="2999-01-01T00:00:00Z",
            ),
        )
    )
    line["key"] = records.own_public_key(Store(user.state_dir))
    assert "altered" in worker(json.dumps(line)).why_restricted()


@pytest.mark.parametrize(
    "line", ["", "{}", "[]", "not JSON", '{"record": {}, "key": "", "signature": ""}', "\x00" * 99]
)
def test_a_file_that_holds_no_record_restricts_in_a_sentence(trusted, worker, line):
    """Nothing of it raises."""
    assert "the signed record" in worker(line).why_restricted()


def test_a_file_that_is_not_there_or_is_a_directory_restricts(trusted, worker, tmp_path):
    """The reason names it."""
    there = worker(trusted.issue(1))
    (tmp_path / "records").unlink()
    assert "cannot be read" in there.why_restricted()
    (tmp_path / "records").mkdir()
    assert "cannot be read" in there.why_restricted()


def test_a_record_holds_for_its_workspace_and_settings_alone(trusted, worker, append, tmp_path, user):
    """Another history, or a setting that was changed since."""
    line = trusted.issue(1)
    with Workspace.create(tmp_path / "other", settings=user) as other:
        other.configure("model.name", "openai/gpt")
    assert "is for another workspace" in worker(line, place=tmp_path / "other").why_restricted()
    append("api_base = 'http://evil'\n")
    assert "settings other than" in worker(line).why_restricted()


def test_a_record_expires_and_does_not_hold_before_it_was_issued(trusted, tmp_path, user):
    """A clock that was set back does not bring back what expired, nor does one that runs ahead."""
    (tmp_path / "records").write_text(trusted.issue(2))
    said = json.loads((tmp_path / "records").read_text())["record"]
    key = records.own_public_key(Store(user.state_dir))

    def at(shift):
        moment = datetime.now(tz=UTC) + shift
        return records.find(
            tmp_path / "records",
            [key],
            kind="trust",
            workspace=said["workspace"],
            what=said["what"],
            now=moment,
        )

    assert at(timedelta())[0] is not None
    assert at(timedelta(days=1))[0] is not None
    assert "expired at" in at(timedelta(days=2, seconds=1))[1]
    assert "clock has not reached" in at(timedelta(hours=-1))[1]


def test_one_record_of_several_that_holds_is_enough(trusted, worker):
    """A file can hold what was issued before, and approvals."""
    old = json.loads(trusted.issue(1))
    old["record"]["until"] = "2026-01-01T00:00:00Z"
    assert worker("damaged", json.dumps(old), trusted.issue(1)).why_restricted() == ""


def test_only_who_trusts_a_workspace_can_issue_trust(user, foreign):
    """Nobody gives what they do not have."""
    with pytest.raises(Restricted, match="trust would be issued"):
        Trust.read(foreign(MODEL), user).issue(1)


def test_an_approval_that_was_issued_lets_this_call_through_elsewhere(root, user, stranger, tmp_path, copied):
    """The history says that it was approved; the record, with these very arguments, is what counts."""
    with Workspace.open(root, settings=user) as ws:
        asked = ws.tools.call(
            "write_file", {"path": "a.env", "content": "KEY=ghp_" + "a" * 36}, call_id="c-1"
        )
        assert asked.approval_needed
    place = copied(root)
    with Workspace.open(root, settings=user) as ws:
        ws.approve("c-1")
        call = ws.state.pending["c-1"]
        line = ws.engine.trust.issue_approval(1, "c-1", call.tool, ws.read_body(call.whole))
    shutil.rmtree(place)
    shutil.copytree(root, place, symlinks=True)
    (tmp_path / "records").write_text(line)
    key = records.own_public_key(Store(user.state_dir))
    told = msgspec.structs.replace(stranger, trust_record=str(tmp_path / "records"), trusted_keys=(key,))
    with Workspace.open(place, settings=stranger) as ws:
        assert ws.tools.call("write_file", {}, call_id="c-1").approval_needed
    with Workspace.open(place, settings=told) as ws:
        assert ws.tools.call("write_file", {}, call_id="c-2").status == "FAILED"
        assert ws.tools.call("write_file", {}, call_id="c-1").status == "SUCCEEDED"
