"""Where the work stands, and what the user said that nobody settled: shown to agents as far as there is room."""

import pytest

from agentx.context.assembler import Request, assemble
from agentx.context.relevance import only_resumes
from agentx.context.rendering import provided
from agentx.context.startup import start_of
from agentx.storage.events.types import AgentMessageSent, Draft
from agentx.synthesis.memory.items import ConstraintDetail, Evidence, MemoryItem, item_id
from agentx.synthesis.state.state import Message, RunRecord, State
from tests.kinds import fields_of
from tests.rule_checks import forbid_text

NOW = "2026-11-20T09:00:00.000000Z"
LONG_AGO = "2026-10-01T09:00:00.000000Z"
DOUBTFUL = "The user said, not confirmed as lasting"


def item(seq, kind, text, **fields):
    fields = fields_of(kind) | {"trust": "user", "created_seq": seq, "created_at": NOW} | fields
    return MemoryItem(id=item_id(fields["kind"], seq), text=text, **fields)


def candidate(seq, quote, answers="", kind="decision", **fields):
    fields = {
        "text": quote,
        "status": "candidate",
        "evidence": (Evidence(seq, 0, len(quote), quote),),
    } | fields
    answered = Evidence(seq - 1, 0, len(answers), answers) if answers else None
    return item(seq, kind, fields.pop("text"), answers=answered, **fields)


def state(*items, messages=(), **fields):
    said = [Message(seq, NOW, actor, text) for seq, actor, text in messages]
    return State(
        title="A task", seq=999, at=NOW, items={one.id: one for one in items}, messages=said, **fields
    )


def context(a_state, message="draft the outlook", tier=0, max_tokens=1_000, hits=()):
    return assemble(
        a_state, Request(message=message, max_tokens=max_tokens, tier=tier), lambda _query, k: hits[:k]
    )


def section(made, title):
    """The lines of a section."""
    lines = made.text.partition(f"## {title}")[2].partition("\n\n")[0].rstrip("\n").split("\n")
    return lines[1:]


# --- candidates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_a_candidate_is_shown_in_the_users_words_with_what_they_answer(tier):
    held = state(
        candidate(3, "yep do that", "I'd log rejected rows to stdout as JSON. Shall I?"),
        candidate(5, "12 and 13 June", kind="knowledge"),
    )
    made = context(held, tier=tier)
    assert section(made, DOUBTFUL) == [
        "- [k-5] “12 and 13 June”",
        "- [d-3] “yep do that” (answers “I'd log rejected rows to stdout as JSON. Shall I?”)",
    ]
    assert [(one.section, one.why) for one in made.items] == [
        ("candidates", "the user may have meant it to last; nobody has settled it")
    ] * 2


def test_an_agent_gets_candidates_at_its_start_too():
    made = start_of(state(candidate(5, "12 and 13 June", kind="knowledge")), "", 2_000)
    assert section(made, DOUBTFUL) == ["- [k-5] “12 and 13 June”"]


@pytest.mark.parametrize(
    ("message", "others", "messages"),
    [
        ("make the posters", (), ()),
        ("go ahead", (item(2, "task", "Print the posters."),), ()),
        ("go ahead", (), ((3, "user", "What about the poster?"), (4, "user", "Never mind."))),
    ],
    ids=["message", "open task", "latest messages"],
)
def test_an_old_candidate_is_shown_if_it_touches_the_work(message, others, messages):
    old = candidate(5, "40 posters A3 and no flyers", created_at=LONG_AGO)
    newest = candidate(9, "the organist gets 350", kind="knowledge")
    shown = {one.id for one in context(state(old, newest, *others, messages=messages), message).items}
    assert {"d-5", "k-9"} <= shown
    assert "d-5" not in {one.id for one in context(state(old, newest), "draft the outlook").items}


def test_messages_before_the_users_last_two_bring_nothing_back():
    old = candidate(5, "40 posters A3", created_at=LONG_AGO)
    said = [(seq, "user", text) for seq, text in enumerate(["The posters?", "Well.", "Never mind."], start=6)]
    newest = candidate(9, "the organist gets 350", kind="knowledge")
    assert "d-5" not in {one.id for one in context(state(old, newest, messages=said), "x").items}


@pytest.mark.parametrize("trust", ["agent", "reported", "material", "engine"])
def test_only_the_users_words_are_candidates(trust):
    assert context(state(candidate(5, "12 and 13 June", trust=trust))).items == ()


def test_candidates_that_touch_the_message_come_before_later_ones_when_there_is_no_room_for_all():
    held = [
        candidate(seq, f"Shelf {seq} carries " + "many heavy boxes of paper " * 4) for seq in range(10, 90)
    ]
    about = candidate(5, "the walrus sleeps at noon")
    made = context(state(about, *held), "feed the walrus", tier=1, max_tokens=4_000)
    shown = [one for one in made.items if one.section == "candidates"]
    assert sum(one.tokens for one in shown) <= 600
    assert [one.id for one in shown] == [*(f"d-{seq}" for seq in range(89, 90 - len(shown), -1)), "d-5"]
    assert f"{50 - len(shown)} candidates" in made.text


def test_at_most_fifty_candidates_are_shown():
    made = context(
        state(*(candidate(seq, f"Shelf {seq}.") for seq in range(2, 90))), tier=1, max_tokens=10_000
    )
    assert len(made.items) == 50


def test_a_rule_that_may_be_over_shows_the_words_that_may_have_ended_it():
    ended = Evidence(9, 0, 27, "the caching bug is fixed now")
    rule = item(2, "constraint", "Add @disable_cache.", detail=ConstraintDetail(), perhaps_ended_by=(ended,))
    made = context(state(rule), tier=1)
    assert "- [c-2] Add @disable_cache. (perhaps ended by “the caching bug is fixed now”)" in made.text


def test_a_sentence_of_an_agent_shows_the_users_words_beside_it():
    worded = {"text": "Rejected rows are logged to stdout as JSON.", "worded_by": "agent:main"}
    waiting = candidate(3, "yep do that", **worded)
    kept = candidate(5, "yes please", status="active", **worded)
    text = context(state(waiting, kept)).text
    assert "- [d-3] Rejected rows are logged to stdout as JSON. (the user: “yep do that”)" in text
    assert "- [d-5] Rejected rows are logged to stdout as JSON. (the user: “yes please”)" in text


# --- where we stopped -----------------------------------------------------------------------------------------------

TALK = [
    (seq, "user" if seq % 2 else "agent:main", f"{'Take' if seq % 2 else 'I took'} the {name} apart.")
    for seq, name in enumerate(("gate", "lamp", "bench", "stair", "wall", "roof"), start=1)
]


@pytest.mark.parametrize("start", [False, True])
def test_a_short_text_ends_with_the_end_of_the_conversation_in_order(start):
    held = state(messages=TALK)
    made = start_of(held, "", 2_000) if start else context(held)
    assert section(made, "Where we stopped") == [f"- {actor}: {text}" for _, actor, text in TALK]


def test_what_was_said_last_keeps_its_place_beside_many_candidates_and_decisions():
    many = [candidate(seq, f"Shelf {seq} carries many heavy boxes.") for seq in range(10, 60)]
    decisions = [item(seq, "decision", f"Shard {seq} moves to the second cluster.") for seq in range(60, 110)]
    made = context(state(*many, *decisions, messages=TALK))
    assert section(made, "Where we stopped") == [f"- {actor}: {text}" for _, actor, text in TALK[-4:]]
    assert made.tokens > 900
    assert {"state", "candidates", "stopped"} == {one.section for one in made.items}


def test_of_a_long_answer_the_end_is_kept():
    answer = (
        "I compared them. " + "The third one is a little cheaper than the others. " * 40 + "Shall I order it?"
    )
    (line,) = section(context(state(messages=[(1, "agent:main", answer)])), "Where we stopped")
    assert line.startswith("- agent:main: I compared them. ")
    assert line.endswith(" Shall I order it?")


def test_a_run_that_did_not_complete_is_named():
    run = RunRecord(
        "r1", 5, "Print the posters", "main", "m", status="LIMIT_REACHED", reason="No steps left."
    )
    assert section(context(state(runs=[run])), "Where we stopped") == [
        "- The last run (“Print the posters”) ended LIMIT_REACHED: No steps left."
    ]
    whole = RunRecord("r1", 5, "Print the posters", "main", "m", status="COMPLETED")
    assert context(state(runs=[whole])).items == ()


@pytest.mark.parametrize("start", [False, True])
def test_the_users_facts_fill_a_short_text(start):
    facts = [item(seq, "knowledge", f"Guest {seq} eats no meat at all.") for seq in range(1, 200)]
    other = item(300, "knowledge", "The tool printed it.", trust="material")
    held = state(*facts, other)
    made = start_of(held, "", 2_000) if start else context(held)
    assert made.max_tokens * 0.85 < made.tokens <= made.max_tokens
    ids = [one.id for one in made.items]
    assert ids == [f"k-{seq}" for seq in range(199, 199 - len(ids), -1)]


def test_decisions_that_touch_the_message_come_first_when_there_is_no_room_for_all():
    decisions = [
        item(seq, "decision", f"Shard {seq} moves to the second cluster in spring.") for seq in range(10, 60)
    ]
    about = item(5, "decision", "The walrus gets herring.")
    assert (
        "The walrus gets herring."
        in context(state(about, *decisions), "feed the walrus", max_tokens=400).text
    )
    assert "The walrus gets herring." not in context(state(about, *decisions), "sweep", max_tokens=400).text


# --- a message without a subject ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "where did we stop yesterday?",
        "Good morning, here I am again. Where did we stop yesterday?",
        "morning! where were we?",
        "what's next?",
        "What’s next?",
        "status?",
        "How far did we get?",
        "Let's pick up where we left off",
        "Remind me what we did yesterday",
        "continue",
        "what now?",
        "catch me up",
    ],
)
def test_a_question_on_how_the_work_goes_on_has_no_subject(message):
    assert only_resumes(message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "hello",
        "When is it?",
        "What is on Saturday?",
        "what's the status of the choir?",
        "Which decisions are open?",
        "Please continue with the report",
        "Do not use it",
        "What did the client say yesterday?",
    ],
)
def test_any_other_message_has_a_subject(message):
    assert not only_resumes(message)


@pytest.mark.parametrize("tier", [0, 1])
def test_such_a_question_gets_the_end_of_the_conversation_and_no_search(tier):
    def search(_query, _k):
        raise AssertionError("The search was used.")

    fact = item(1, "knowledge", "The gate weighs 80 kilos.")
    request = Request(message="Where did we stop yesterday?", max_tokens=1_000, tier=tier)
    made = assemble(state(fact, messages=TALK), request, search)
    assert section(made, "Where we stopped" if tier == 0 else "Recent messages") == [
        f"- {actor}: {text}" for _, actor, text in TALK
    ]
    assert "The gate weighs 80 kilos." in made.text


# --- more than fits -------------------------------------------------------------------------------------------------


def test_of_rules_that_exceed_a_budget_pinned_and_enforced_ones_come_first_then_those_said_last():
    def rule(seq, *, again=0, **fields):
        said = tuple(Evidence(at, 0, 5, "Water") for at in (seq, again) if at)
        text = f"Water the plants of room {seq} on the second day."
        return item(seq, "constraint", text, **({"evidence": said, "detail": ConstraintDetail()} | fields))

    check = ConstraintDetail(checks=(forbid_text(("water",)),))
    ended = (Evidence(98, 0, 1, "x"),)
    rules = [
        rule(2, pinned=True),
        rule(3, detail=check),
        rule(4, again=90),
        rule(5, detail=check, perhaps_ended_by=ended),
    ]
    made = context(state(*rules, *(rule(seq) for seq in range(10, 60))), max_tokens=300)
    shown = [one.id for one in made.items]
    assert shown[:3] == ["c-2", "c-3", "c-4"]
    assert shown[3:] == [f"c-{seq}" for seq in range(60 - len(shown) + 3, 60)]
    assert made.tokens <= 300
    last = made.text.rstrip("\n").rpartition("\n")[2]
    assert last.startswith(f"No room for {54 - len(shown)} more that must not be forgotten: c-")


@pytest.mark.parametrize("max_tokens", [1, 5, 20, 40])
def test_the_smallest_budgets_are_kept(max_tokens):
    made = context(
        state(*(item(seq, "constraint", "Be brief.") for seq in range(2, 90))), max_tokens=max_tokens
    )
    assert made.tokens <= max_tokens
    assert len(made.omitted) == 88


# --- in a workspace -------------------------------------------------------------------------------------------------


@pytest.fixture
def talked(ws):
    with ws.bulk():
        for number in range(40):
            ws.say(f"Take lamp {number} apart.", actor="user")
            ws.record(
                Draft(data=AgentMessageSent(body=ws.body(f"Lamp {number} is apart.")), actor="agent:main")
            )
    return ws


def test_tier_1_reads_messages_back_while_there_is_room(talked):
    made = talked.get_relevant_context("Where did we stop?", tier=1)
    lines = section(made, "Recent messages")
    assert lines == [
        line
        for number in range(40)
        for line in (f"- user: Take lamp {number} apart.", f"- agent:main: Lamp {number} is apart.")
    ]
    few = talked.get_relevant_context("Where did we stop?", tier=1, max_tokens=500)
    shown = section(few, "Recent messages")
    assert few.tokens <= 500
    assert lines[-20:] == shown[-20:]


@pytest.mark.parametrize(
    "message", ["Where did we stop yesterday?", "Paint the lamps.", "Which lamp is apart?"]
)
@pytest.mark.parametrize("max_tokens", [700, None])
@pytest.mark.parametrize("tier", range(4))
def test_a_recorded_context_is_shown_again_to_the_byte(talked, tier, max_tokens, message):
    talked.say("please don't use emojis")
    for number in range(30):
        talked.remember("decision", f"Lamp {number} is made of brass and hangs over the door.")
        talked.remember("knowledge", f"Lamp {number} weighs {number} kilos.")
    talked.say(message)
    made = talked.get_relevant_context(tier=tier, max_tokens=max_tokens, deadline_ms=None)
    (event,) = talked.record(Draft(data=provided(made), actor="agent:main"))
    talked.say("Another day, another otter. Never use lamps.")
    again = talked.get_relevant_context(as_of=event.seq)
    assert again.text == made.text
    assert again.exact
