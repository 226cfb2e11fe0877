"""Recovery in tiers: each keeps its budget, holds what must not be forgotten, and says what it left out."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.context.assembler import BUDGETS
from agentx.context.rendering import provided
from agentx.context.service import has_begun
from agentx.storage.events.types import AgentMessageSent, Body, Draft, UserMessageSent
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import Message, State

DEMANDS = [f"From now on, never create a {name}.txt file." for name in "abcdefghijklmno"]
NOUNS = [
    "caching",
    "queues",
    "sharding",
    "replicas",
    "webhooks",
    "polling",
    "batching",
    "streaming",
    "threads",
]


def answer(ws, text):
    ws.record(Draft(data=AgentMessageSent(body=ws.body(text), final=True), actor="agent:main"))


@pytest.fixture(scope="module")
def talked(tmp_path_factory):
    """A workspace whose log has some 70,000 tokens, with 15 constraints and 9 rejections stated at its begin."""
    root = tmp_path_factory.mktemp("talked") / "task"
    with Workspace.create(root, title="A long task") as ws, ws.bulk():
        for sentence in DEMANDS:
            ws.say(sentence)
        for noun in NOUNS:
            ws.remember("rejection", f"No {noun}: we tried that, and it did not pay.")
        for number in range(30):
            ws.remember("decision", f"Decision {number}: table {number} is partitioned by month.")
        for number in range(280):
            ws.say(
                f"Chapter {number}: " + f"the ledger of account {number} was read line by line again. " * 10
            )
            answer(
                ws,
                f"Chapter {number} is done: " + f"I wrote down what page {number} of the ledger says. " * 10,
            )
    return root


@pytest.fixture
def long(talked, tmp_path, lexical):
    root = shutil.copytree(talked, tmp_path / "task", symlinks=True)
    with Workspace.open(root, settings=lexical) as ws:
        yield ws


def test_a_log_of_70_000_tokens_is_recovered_in_1_000_with_every_constraint_and_rejection(long):
    said = sum(count_tokens(e.data.body.text) for e in long.events() if hasattr(e.data, "body"))
    assert said >= 70_000
    made = long.get_relevant_context("Which file may I create?", tier=0)
    assert made.tokens == count_tokens(made.text) <= made.max_tokens == 1_000
    shown = {item.id for item in made.items}
    constraints, rejections = long.memory("constraint"), long.memory("rejection")
    assert (len(constraints), len(rejections)) == (15, 9)
    assert {item.id for item in constraints + rejections} <= shown
    for item in constraints + rejections:
        assert item.text in made.text
    assert any(item.kind == "decision" for item in made.items)
    assert made.recalled


@pytest.mark.parametrize(
    ("tier", "max_tokens", "more"),
    [
        (0, 1_000, "decisions. `agentx context --tier 1` shows more."),
        (1, 4_000, "messages. `agentx context --tier 2` shows more."),
        (2, 15_000, "earlier turns. `agentx log` shows more."),
        (3, 70_000, "earlier events. `agentx log` shows more."),
    ],
)
def test_each_tier_keeps_its_budget_and_says_what_it_left_out(long, tier, max_tokens, more):
    made = long.get_relevant_context("Which chapter is next?", tier=tier, max_tokens=max_tokens)
    assert max_tokens * 0.8 < made.tokens == count_tokens(made.text) <= max_tokens
    assert made.tier == tier
    must = {item.id for kind in ("constraint", "rejection") for item in long.memory(kind)}
    assert must <= {item.id for item in made.items}
    last = made.text.rstrip("\n").rpartition("\n")[2]
    assert last.startswith("Left out for want of room: ")
    assert last.endswith(more)


def test_the_tiers_add_messages_then_the_day_then_the_log(long):
    tiers = [long.get_relevant_context("next", tier=n, max_tokens=BUDGETS[n]) for n in range(4)]
    count = [
        {s: sum(i.section == s for i in made.items) for s in ("messages", "recap", "log")} for made in tiers
    ]
    assert count[0] == {"messages": 0, "recap": 0, "log": 0}
    assert count[1]["messages"] == 66
    assert count[2]["messages"] == 30
    assert count[2]["recap"] > 60
    assert count[3]["log"] > 400
    assert [
        made.max_tokens for made in (long.get_relevant_context("next", tier=n) for n in range(3))
    ] == list(BUDGETS[:3])


@pytest.mark.parametrize(("tier", "needless"), [(0, "history"), (1, "history"), (2, "history/000/001.jsonl")])
def test_the_lower_tiers_do_not_read_the_log(long, tier, needless):
    made = long.get_relevant_context("next chapter", tier=tier)
    shutil.move(long.root / needless, long.root / "elsewhere")
    again = long.get_relevant_context("next chapter", tier=tier)
    shutil.move(long.root / "elsewhere", long.root / needless)
    assert again == made


def test_more_than_1_000_tokens_of_what_must_not_be_forgotten_gives_as_much_as_fits_and_names_the_rest(ws):
    for number in range(80):
        ws.remember("constraint", f"Always sort table {number} by the date of its last change, newest first.")
    made = ws.get_relevant_context("x", tier=0)
    shown = [item.id for item in made.items]
    rest = [one.id for one in made.omitted if one.reason == "no room within the budget"]
    assert 900 < made.tokens <= 1_000
    assert set(shown) | set(rest) == {item.id for item in ws.memory("constraint")}
    assert len(shown) > 25
    last = made.text.rstrip("\n").rpartition("\n")[2]
    assert last.startswith(f"No room for {len(rest)} more that must not be forgotten: {rest[0]}, {rest[1]}, ")
    assert last.endswith("(`agentx memory show ID`).")
    assert len(ws.get_relevant_context("x", tier=0, max_tokens=3_000).items) == 80


def test_at_tier_0_only_critical_and_pinned_rules_must_come(ws):
    for number in range(20):
        ws.remember("rule", f"Rule {number}: " + "check every figure of the report twice " * 2, score=8)
    critical = ws.remember("rule", "Never guess.", score=9)
    pinned = ws.remember("rule", "Ask when in doubt.", score=5)
    ws.pin(pinned.id)
    assert len(ws.get_relevant_context("x", tier=1, max_tokens=1_000).items) == 20
    made = ws.get_relevant_context("x", tier=0, max_tokens=200)
    assert {critical.id, pinned.id} <= {item.id for item in made.items}
    assert "rules. `agentx context --tier 1` shows more." in made.text


def test_what_is_recalled_keeps_its_place_beside_what_stands_now(ws):
    for number in range(50):
        ws.remember(
            "decision", f"Decision {number}: shard {number} moves to the second cluster in the spring."
        )
    ws.remember("knowledge", "The walrus sleeps at noon.")
    made = ws.get_relevant_context("When does the walrus sleep?", tier=0)
    assert "The walrus sleeps at noon." in made.text
    assert sum(item.kind == "decision" for item in made.items) > 20
    assert "decisions. `agentx context --tier 1`" in made.text


# --- the full log, at the start of a day ------------------------------------------------------------------------------


def test_once_an_agent_has_answered_the_full_log_needs_a_budget_of_its_own(ws):
    ws.say("Good morning.")
    assert (ws.get_relevant_context(tier=3).tier, ws.get_relevant_context(tier=3).max_tokens) == (3, 70_000)
    answer(ws, "Good morning to you.")
    made = ws.get_relevant_context("x", tier=3)
    assert (made.tier, made.asked, made.max_tokens) == (2, 3, 15_000)
    assert "The full log is left out: it comes at the start of a day" in made.text
    assert "## The log" not in made.text
    assert ("log", "the full log") in {(one.id, one.text) for one in made.omitted}
    forced = ws.get_relevant_context("x", tier=3, max_tokens=3_000)
    assert (forced.tier, forced.asked) == (3, 0)
    assert "## The log" in forced.text


@pytest.mark.parametrize(
    ("hours", "actor", "begun"),
    [(0, "agent:main", True), (48, "agent:main", False), (0, "user", False), (0, "import:chat", False)],
)
def test_a_day_begins_with_the_first_answer_of_an_agent(hours, actor, begun):
    now = datetime.now(UTC)
    said = Message(1, (now - timedelta(hours=hours)).isoformat(), actor, "x")
    assert (
        has_begun(State(messages=[Message(1, "damaged", "agent:main", "x"), said]), now.isoformat()) is begun
    )


def test_as_of_an_earlier_day_the_clock_is_that_of_then(ws):
    codec, seq, own_hash = record_codec(), ws.state.seq, ws.state.hash
    ws.close()
    said = [
        ("2027-01-04T12:00:00", UserMessageSent(body=Body("Begin.")), "user"),
        ("2027-01-04T12:01:00", AgentMessageSent(body=Body("Begun.")), "agent:main"),
        ("2027-01-06T12:00:00", UserMessageSent(body=Body("Go on.")), "user"),
    ]
    with (ws.root / "history.jsonl").open("ab") as file:
        for at, data, actor in said:
            draft = Draft(data=data, actor=actor)
            time = datetime.fromisoformat(at).replace(tzinfo=UTC)
            line, event = codec.encode(draft, seq=seq + 1, previous=own_hash, at=time)
            seq, own_hash = event.seq, event.hash
            file.write(line)
    with Workspace.open(ws.root, settings=ws.settings) as again:
        assert [again.get_relevant_context("x", tier=3, as_of=at).tier for at in (seq - 2, seq - 1, seq)] == [
            3,
            2,
            3,
        ]


@pytest.mark.parametrize("tier", range(4))
def test_each_tier_is_the_same_at_that_moment_long_after(ws, tier):
    ws.say("From now on, never create a requirements.txt file.")
    ws.tools.write_file("walrus.md", "The walrus sleeps.\n")
    ws.say("Write of the walrus.")
    then = ws.get_relevant_context("walrus", tier=tier)
    ws.retire(ws.memory("constraint")[0].id)
    ws.say("Another day, another otter.")
    again = ws.get_relevant_context("walrus", tier=tier, as_of=then.seq)
    assert again.text == then.text
    assert [item.id for item in again.items] == [item.id for item in then.items]


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("tier", range(4))
def test_what_was_recorded_of_any_tier_is_shown_again_to_the_byte(ws, tier, answered):
    ws.say("From now on, never create a requirements.txt file.")
    ws.tools.write_file("walrus.md", "The walrus sleeps.\n")
    for number in range(60):
        ws.remember("decision", f"Decision {number}: the walrus gets herring number {number} on its day.")
    if answered:
        answer(ws, "I read of the walrus.")
    ws.say("Write of the walrus.")
    made = ws.get_relevant_context(tier=tier)
    (event,) = ws.record(Draft(data=provided(made), actor="agent:main"))
    ws.retire(ws.memory("constraint")[0].id)
    ws.tools.write_file("walrus.md", "Another walrus.\n")
    again = ws.get_relevant_context(as_of=event.seq)
    assert again.text == made.text
    assert (again.exact, again.tier, again.asked) == (True, made.tier, made.asked)
    assert (event.data.tier, event.data.asked) == ((2, 3) if answered and tier == 3 else (tier, 0))
    assert json.loads(json.dumps(event.data.digest)) == made.digest
