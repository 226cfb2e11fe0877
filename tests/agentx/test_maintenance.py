"""Maintenance of a workspace: by call and of itself after a night, recorded as a conclusion, replayed, and taken back."""

from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.core.layout import FORMAT
from agentx.factory import write_layout
from agentx.memory import editing
from agentx.memory.maintenance import NothingToTakeBack, maintain, undo
from agentx.storage.events.codec import GENESIS, MAX_LINE_BYTES
from agentx.storage.events.types import (
    Body,
    ContextProvided,
    Draft,
    ToolCallExecuted,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.synthesis.memory.conclusions import MAINTENANCE, Add, Concluded, Patch
from agentx.synthesis.memory.items import Evidence, MemoryItem, RuleDetail
from agentx.synthesis.memory.record_codec import record_codec
from tests.kinds import fields_of

TEXT = "Run the unit tests before each deploy."
SAME = "Before every deploy, run the tests."


def item(name, text=TEXT, **fields):
    kinds = {"r": "rule", "l": "learning", "k": "knowledge", "t": "task"}
    fields = fields_of(kinds[name[0]]) | {"trust": "user", "evidence": (Evidence(2, 0, 4, "said"),)} | fields
    return MemoryItem(id=name, text=text, **fields)


@pytest.fixture
def grown(tmp_path, lexical):
    """Open a workspace whose events were recorded so many days ago, in pairs of days and payloads."""
    opened = []

    def make(*facts, config=""):
        root, codec = tmp_path / "grown", record_codec()
        write_layout(root, "artifacts")
        previous, lines, today = GENESIS, [], datetime.now(UTC)
        for seq, (days, data) in enumerate(
            [(facts[0][0], WorkspaceCreated(title="x", format=FORMAT)), *facts], 1
        ):
            draft = Draft(data=data, actor="user")
            line, event = codec.encode(draft, seq=seq, previous=previous, at=today - timedelta(days=days))
            previous = event.hash
            lines.append(line)
        (root / "history.jsonl").write_bytes(b"".join(lines))
        with (root / "agentx.toml").open("a") as file:
            file.write(config)
        opened.append(Workspace.open(root, settings=lexical))
        return opened[-1]

    yield make
    for ws in opened:
        ws.close()


def deployed(days):
    """A task in which the situation of the rule came up, and that did not keep it."""
    call = ToolCallExecuted(call_id="c1", tool="run_command", status="SUCCEEDED", command="./deploy.sh")
    return (days, UserMessageSent(body=Body("Deploy it."))), (days, call)


def passed_over(name, times, text=TEXT):
    return item(name, text, detail=RuleDetail(passed_over=times))


def added(*items):
    return Concluded(extractor="test", version=1, through=1, changes=tuple(map(Add, items)))


def conclusions(ws):
    return [e for e in ws.events() if isinstance(e.data, Concluded) and e.data.extractor == MAINTENANCE]


def test_all_changes_are_one_conclusion_that_a_rebuild_repeats(grown):
    given = (passed_over("r-2", 39), item("l-3", "Use ruff."), item("t-4", status="closed"))
    ws = grown((20, added(*given)), *deployed(19))
    done = ws.maintain()
    assert {one.item.id: one.what for one in done.upkeep.done} == {
        "r-2": "retired",
        "r-2.2": "promoted",
        "t-4": "archived",
    }
    (event,) = conclusions(ws)
    assert (event.actor, done.events) == ("engine:maintenance", (event.seq,))
    digest = ws.state.digest
    assert ws.rebuild().state_digest == digest
    assert ws.maintain().events == ()


def test_a_dry_run_says_the_same_and_records_nothing(grown):
    ws = grown((9, added(passed_over("r-2", 19))), *deployed(8))
    seq = ws.state.seq
    would = ws.maintain(dry_run=True)
    assert (would.events, ws.state.seq) == ((), seq)
    done = ws.maintain()
    assert (done.upkeep.done, done.active, done.dormant) == (would.upkeep.done, would.active, would.dormant)
    assert (done.active, done.dormant) == (0, 1)


def test_more_changes_than_a_line_holds_are_several_lines_of_one_append(grown):
    rules = [
        passed_over(f"r-{n}", 19, f"Check the {n}th gauge {'of the northern plant ' * 5}before each deploy")
        for n in range(100, 300)
    ]
    ws = grown(*((9, added(*rules[n : n + 20])) for n in range(0, 200, 20)), *deployed(8))
    done = ws.maintain()
    lines = conclusions(ws)
    assert len(lines) > 1
    assert [line.seq for line in lines] == list(done.events)
    assert sum(len(line.data.changes) for line in lines) == len(done.upkeep.done) == 200
    assert [bool(line.data.through) for line in lines] == [False] * (len(lines) - 1) + [True]
    raw = (ws.root / "history.jsonl").read_bytes().splitlines()
    assert max(map(len, raw)) < MAX_LINE_BYTES
    assert undo(ws.engine, "user")
    assert {one.status for one in ws.memory("rule", status=None)} == {"active"}


def test_it_runs_of_itself_when_work_goes_on_after_a_night(grown):
    ws = grown((9, added(passed_over("r-2", 19))), *deployed(8))
    assert conclusions(ws) == []
    ws.say("Hello again.")
    (rule,) = ws.memory("rule", status="dormant")
    assert rule.reason == "20 tasks in a row passed it over."
    ws.say("And again.")
    assert len(conclusions(ws)) == 1


def test_that_it_retired_a_rule_is_told(grown):
    ws = grown((60, added(passed_over("r-2", 39))), *deployed(59))
    ws.say("Hello again.")
    assert any("Maintenance retired the rule r-2" in note for note in ws.engine.write_path.notes)


def test_a_night_in_which_nothing_changed_is_not_gone_through_again(grown):
    ws = grown((2, added(item("k-2"))))
    for _ in range(3):
        ws.say("Hello.")
    (marker,) = conclusions(ws)
    assert marker.data.changes == ()


def test_it_can_be_left_to_a_person(grown):
    ws = grown((60, added(passed_over("r-2", 39))), *deployed(59), config='\n[memory]\nmaintain = "off"\n')
    ws.say("Hello again.")
    assert conclusions(ws) == []
    assert ws.maintain().upkeep.nights >= 59


def test_a_new_workspace_is_left_alone_on_its_first_day(ws):
    ws.remember("rule", TEXT)
    ws.say("Hello.")
    assert conclusions(ws) == []


def test_what_agents_were_shown_since_makes_it_last(grown):
    shown = ContextProvided(recalled=("i:k-2", "m:2:0", "i:k-99"))
    ws = grown((5, added(item("k-2"))), (4, shown), (4, shown), (2, shown))
    ws.maintain()
    (memory,) = ws.memory("knowledge")
    assert memory.strength == 3.0
    assert memory.used_at[:10] == f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%d}"
    for _ in range(2):  # today counts once
        ws.record(Draft(data=shown, actor="agent:main"))
        maintain(ws.engine)
    assert ws.memory("knowledge")[0].strength == 4.0


# --- taking it back --------------------------------------------------------------------------------------------------


def test_an_undo_makes_everything_what_it_was_as_a_new_conclusion_by_hand(grown):
    ws = grown(
        (9, added(item("r-2"), item("r-3", SAME), item("l-4", "Use ruff."), item("t-5", status="closed")))
    )
    before = {one.id: one for one in ws.memory(status=None)}
    ws.maintain()
    seq = ws.state.seq
    undo(ws.engine, "user:kim")
    after = {one.id: one for one in ws.memory(status=None)}
    for name, old in before.items():
        new = after[name]
        assert (new.status, new.score, new.used_at, new.evidence) == (
            old.status,
            old.score,
            old.used_at,
            old.evidence,
        )
        assert new.reason == f"The maintenance of event {seq} was taken back."
    assert [one.status for name, one in after.items() if name not in before] == ["retired"]
    (event,) = ws.events(seq)
    assert (event.actor, event.data.extractor) == ("user:kim", "person")
    assert ws.rebuild().state_digest == ws.state.digest


def test_what_was_taken_back_is_neither_merged_nor_promoted_again(grown):
    third = item("r-5", "Please run the tests before you deploy!")
    ws = grown((1, added(item("r-2"), item("r-3", SAME), item("l-4", "Use ruff."), third)))
    ws.maintain()
    undo(ws.engine, "user")
    for days in (0, 1, 2):
        later = datetime.now(UTC) + timedelta(days=days)
        assert maintain(ws.engine, now=later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")).upkeep.done == ()
    assert {one.id: one.status for one in ws.memory(status=None)} == {
        "r-2": "active",
        "r-3": "active",
        "l-4": "active",
        "r-5": "active",
        "r-2.2": "retired",
    }


def test_what_changed_since_stays_and_each_undo_goes_one_further_back(grown):
    rules = (passed_over("r-2", 19), passed_over("r-3", 19, "Tag the commit before each deploy."))
    ws = grown((9, added(*rules)), *deployed(8))
    ws.maintain()
    ws.engine.synthesizer.record([Patch(id="r-2", score=7.0, status="active", detail=RuleDetail())], "test")
    assert [one.id for one in undo(ws.engine, "user")] == ["r-3"]
    assert ws.state.items["r-2"].score == 7.0
    with pytest.raises(NothingToTakeBack, match="No maintenance has changes that are still in effect"):
        undo(ws.engine, "user")


def test_others_who_write_meanwhile_are_not_overwritten(grown, monkeypatch):
    ws = grown((9, added(passed_over("r-2", 19))), *deployed(8))
    seen = ws.engine.snapshot
    other = Patch(id="r-2", score=8.0, used_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))

    def snapshot():
        state = seen()
        monkeypatch.undo()
        ws.engine.synthesizer.record([other], "test")
        return state

    monkeypatch.setattr(ws.engine, "snapshot", snapshot)
    ws.maintain()
    assert ws.state.items["r-2"].score == 8.0


def test_what_another_process_maintained_meanwhile_is_not_done_twice(grown, monkeypatch):
    ws = grown((9, added(passed_over("r-2", 19))), *deployed(8))
    seen = ws.engine.snapshot

    def snapshot():
        state = seen()
        monkeypatch.undo()
        ws.maintain()
        return state

    monkeypatch.setattr(ws.engine, "snapshot", snapshot)
    late = ws.maintain()
    assert (late.events, late.upkeep.done, late.dormant, len(conclusions(ws))) == ((), (), 1, 1)


def test_an_agents_message_begins_no_maintenance_and_a_users_does(grown):
    ws = grown((9, added(item("r-2"))))
    ws.record(Draft(data=ContextProvided(), actor="agent:main"))
    assert conclusions(ws) == []
    ws.record(Draft(data=UserMessageSent(body=Body("Hello.")), actor="user"))
    assert len(conclusions(ws)) == 1


# --- opportunities ---------------------------------------------------------------------------------------------------


def test_a_task_counts_once_though_maintenance_comes_between_its_message_and_its_calls(grown):
    ws = grown((9, added(passed_over("r-2", 3))))
    said, call = (data for _, data in deployed(0))
    ws.record(Draft(data=said, actor="user"))  # the night comes here
    assert len(conclusions(ws)) == 1
    for _ in range(3):
        ws.record(Draft(data=call, actor="agent:main"))
    for _ in range(2):
        ws.maintain()
    assert ws.state.items["r-2"].detail.passed_over == 4


def test_what_a_person_changes_begins_anew(ws):
    rule = ws.remember("rule", TEXT)
    ws.engine.synthesizer.record([Patch(id=rule.id, detail=RuleDetail(passed_over=19))], "test")
    editing.edit(ws.engine, rule.id, "Run all tests before each deploy.", "user")
    assert ws.state.items[rule.id].detail.passed_over == 0
