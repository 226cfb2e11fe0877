"""What nights do to memory, as a pure function: the same for the same state, and for missed nights what each would have done."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.events.types import Event
from agentx.synthesis.learning.maintenance_plan import Use, upkeep
from agentx.synthesis.learning.merging import APART, proposed_for, wordings
from agentx.synthesis.memory.conclusions import MAINTENANCE, Add, Concluded, Patch
from agentx.synthesis.memory.items import Evidence, Link, MemoryItem, RuleDetail, ending, sort_of
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.state.state import State
from tests.kinds import fields_of

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXT = "Run the unit tests before each deploy."
SAME = "Before every deploy, run the tests."


def at(days):
    return (START + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def fold(state, changes, days, extractor="test"):
    data = Concluded(extractor=extractor, version=1, through=state.seq, changes=tuple(changes))
    event = Event(
        seq=state.seq + 1, at=at(days), type="Concluded", v=1, actor=f"engine:{extractor}", data=data
    )
    state.apply(event)


def memory(*items, days=0):
    """A state in which some items were recorded."""
    state = State(seq=1)
    fold(state, map(Add, items), days)
    return state


def item(name, text=TEXT, **fields):
    kinds = {"r": "rule", "l": "learning", "k": "knowledge", "t": "task", "h": "hot_issue"}
    fields = (
        fields_of(kinds[name[0]])
        | {"trust": "user", "evidence": (Evidence(int(name[2:]), 0, 4, "said"),)}
        | fields
    )
    return MemoryItem(id=name, text=text, **fields)


def maintained(state, days, **uses):
    """The items after maintenance, and what was told of it."""
    made = upkeep(state, at(days), uses)
    fold(state, made.changes, days, MAINTENANCE)
    return state.items, {one.item.id: one.what for one in made.done}


# --- near-duplicates -------------------------------------------------------------------------------------------------


def test_of_two_that_say_the_same_the_better_one_survives_with_half_a_point_more():
    weak = item("r-1", SAME, score=6.0, detail=RuleDetail(violations=2, enforced_by="check lint"))
    state = memory(weak, item("r-2", score=7.0, detail=RuleDetail(violations=1)))
    items, told = maintained(state, 0.1)
    assert told == {"r-1": "merged", "r-2": "stronger"}
    assert (items["r-2"].score, items["r-2"].detail) == (7.5, RuleDetail(3, "check lint"))
    assert items["r-2"].links == (Link("supersedes", "r-1"),)
    assert [one.seq for one in items["r-2"].evidence] == [1, 2]
    assert (items["r-1"].status, items["r-1"].links) == ("retired", (Link("superseded_by", "r-2"),))
    assert items["r-1"].reason == "r-2 says the same."


FREE = "Builds longer than ten minutes are aborted."
PAIR = ("Cancel any build that takes over ten minutes.", FREE)


def nearness(cosine):
    """An embedder by which any two texts have this cosine."""
    return lambda one, other: cosine


def test_freely_worded_rules_are_merged_by_meaning_and_replayed_without_a_model():
    state = memory(item("r-1", PAIR[0]), item("r-2", PAIR[1]))
    made = upkeep(state, at(0.1), near=nearness(0.9))
    fold(state, made.changes, 0.1, MAINTENANCE)
    assert {one.item.id: one.what for one in made.done} == {"r-1": "stronger", "r-2": "merged"}
    assert [one.text for one in wordings(state.items["r-1"], state.items)] == [FREE]
    again = memory(item("r-1", PAIR[0]), item("r-2", PAIR[1]))
    fold(again, made.changes, 0.1, MAINTENANCE)  # what was recorded is all that a replay has
    assert again.items == state.items
    assert maintained(memory(item("r-1", PAIR[0]), item("r-2", PAIR[1])), 0.1)[1] == {}


def test_what_may_say_the_same_is_proposed_once_and_left_to_a_person():
    state = memory(item("r-1", PAIR[0]), item("r-2", PAIR[1]))
    made = upkeep(state, at(0.1), near=nearness(0.62))
    fold(state, made.changes, 0.1, MAINTENANCE)
    assert {one.item.id: one.what for one in made.done} == {"r-2": "proposed"}
    assert proposed_for(state.items["r-2"], state.items) == state.items["r-1"]
    assert state.items["r-2"].status == "active"
    assert upkeep(state, at(0.2), near=nearness(0.62)).changes == ()


def test_a_wording_that_only_a_merged_one_is_like_is_merged_too():
    texts = (*PAIR, "Abort a build that runs for more than ten minutes.")

    def near(one, other):
        return 0.9 if FREE in (one, other) or not {one, other} <= {texts[0], texts[2]} else 0.0

    state = memory(*(item(f"r-{n}", text) for n, text in enumerate(texts[:2], 1)))
    fold(state, upkeep(state, at(0.1), near=near).changes, 0.1, MAINTENANCE)
    fold(state, [Add(item("r-3", texts[2]))], 0.2)
    fold(state, upkeep(state, at(0.3), near=near).changes, 0.3, MAINTENANCE)
    assert [one.status for one in state.items.values()] == ["active", "retired", "retired"]
    assert {one.id for one in wordings(state.items["r-1"], state.items)} == {"r-2", "r-3"}


def test_knowledge_is_not_merged_by_meaning():
    state = memory(item("k-1", PAIR[0]), item("k-2", PAIR[1]))
    assert upkeep(state, at(0.1), near=nearness(0.95)).done == ()


def test_several_that_say_the_same_bring_half_a_point_in_all():
    state = memory(*(item(f"k-{n}", trust="material") for n in range(1, 5)))
    items, _ = maintained(state, 0.1)
    assert [one.status for one in items.values()] == ["active", *["retired"] * 3]
    assert items["k-1"].score == 5.5
    assert items["k-1"].reason == "It took in k-2, k-3 and k-4, which say the same."


def test_a_more_trusted_word_survives_and_keeps_its_own_evidence():
    state = memory(item("l-1", trust="agent", score=9.0), item("l-2", trust="user"))
    made = upkeep(state, at(0.1))
    (merged, *_) = [change for change in made.changes if isinstance(change, Patch) and change.id == "l-1"]
    assert ending(merged) == "superseded"
    (rule,) = [change.item for change in made.changes if isinstance(change, Add)]
    assert (rule.trust, [one.seq for one in rule.evidence]) == ("user", [2])


def test_what_a_person_made_critical_pinned_or_told_apart_is_not_taken_in():
    for fields in ({"score": 9.0}, {"pinned": True}, {"links": (Link(APART, "r-2"),)}):
        state = memory(item("r-1", SAME, **fields), item("r-2", score=10.0))
        assert maintained(state, 0.1)[1] == {}


def test_two_that_sleep_wake_where_they_are_strong_enough_together():
    state = memory(item("r-1", score=4.75, status="dormant"), item("r-2", SAME, score=4.0, status="dormant"))
    items, told = maintained(state, 0.1)
    assert told == {"r-1": "woken", "r-2": "merged"}
    assert (items["r-1"].score, items["r-1"].status) == (5.25, "active")


def test_a_critical_rule_that_takes_one_in_keeps_its_score_and_is_told_of():
    items, told = maintained(memory(item("r-1", score=10.0), item("r-2", SAME)), 0.1)
    assert (items["r-1"].score, told) == (10.0, {"r-1": "stronger", "r-2": "merged"})


def test_what_came_after_the_clock_was_set_back_is_compared_too():
    state = memory(item("r-1"), days=5)
    maintained(state, 6)
    fold(state, [Add(item("r-2", SAME))], 3)
    assert maintained(state, 6)[1] == {"r-1": "stronger", "r-2": "merged"}


# --- lessons ---------------------------------------------------------------------------------------------------------


def test_a_lesson_on_the_users_words_becomes_a_rule_of_five():
    state = memory(item("l-7", short="Test first", domain="web", agent="writer"))
    items, told = maintained(state, 0.1)
    rule = items["r-7"]
    assert told == {"r-7": "promoted"}
    assert (rule.score, rule.status, rule.text, rule.short) == (5.0, "active", TEXT, "Test first")
    assert (rule.domain, rule.agent, rule.trust) == ("web", "writer", "user")
    assert rule.links == (Link("learned_from", "l-7"),)
    assert (items["l-7"].status, items["l-7"].reason) == ("retired", "It became the rule r-7.")


def test_what_the_engine_measured_makes_a_rule_only_the_second_time():
    state = memory(item("l-7", trust="engine", evidence=(Evidence(7, 0, 1, "a"), Evidence(7, 5, 9, "b"))))
    assert maintained(state, 0.1)[1] == {}
    fold(state, [Add(item("l-9", SAME, trust="engine"))], 1)
    items, _ = maintained(state, 1.1)
    assert [one.seq for one in items["r-7"].evidence] == [7, 7, 9]
    assert items["r-7"].trust == "engine"


@pytest.mark.parametrize("trust", ["agent", "reported", "material"])
def test_what_only_an_agent_a_tool_or_a_file_says_never_makes_a_rule(trust):
    seen = tuple(Evidence(n, 0, 4, "said") for n in range(1, 9))
    state = memory(*(item(f"l-{n}", trust=trust, evidence=seen) for n in range(1, 4)))
    items, _ = maintained(state, 400)
    assert {sort_of(one) for one in items.values()} == {"learning"}


def test_a_lesson_on_words_that_a_person_refused_as_a_demand_becomes_no_rule():
    refused = MemoryItem(
        id="x-1",
        kind="rejection",
        text=TEXT,
        status="retired",
        by_hand=True,
        evidence=(Evidence(1, 2, 9, "id"),),
    )
    elsewhere = msgspec.structs.replace(refused, evidence=(Evidence(1, 40, 49, "no"),))
    assert "r-1" not in maintained(memory(item("l-1"), refused), 1)[0]
    assert "r-1" in maintained(memory(item("l-1"), elsewhere), 1)[0]
    assert "r-1" in maintained(memory(item("l-1"), msgspec.structs.replace(refused, by_hand=False)), 1)[0]


def test_a_lesson_that_a_rule_says_already_strengthens_it():
    state = memory(item("r-1", score=6.0))
    fold(state, [Add(item("l-5", SAME))], 3)
    items, told = maintained(state, 3.1)
    assert told == {"r-1": "stronger", "l-5": "merged"}
    assert (items["r-1"].score, items["r-1"].used_at) == (6.5, at(3))
    assert "r-5" not in items


def test_a_rule_that_faded_away_is_back_when_it_is_said_again():
    state = memory(item("r-1", status="retired", detail=RuleDetail(passed_over=40)))
    fold(state, [Add(item("l-50", SAME))], 50)
    items, told = maintained(state, 50.1)
    assert told["r-1"] == "woken"
    assert (items["r-1"].status, items["r-1"].score, items["r-1"].detail.passed_over) == ("active", 5.5, 0)
    assert maintained(state, 56)[1] == {}


def test_a_rule_that_a_person_ended_is_not_made_again():
    state = memory(item("r-1", status="retired"))
    fold(state, [Add(item("l-5", SAME))], 3)
    for days in (3.1, 4.1, 5.1):
        items, told = maintained(state, days)
        assert told == {}
        assert items["l-5"].status == "active"


def test_a_pinned_lesson_stays_pinned_as_a_rule():
    items, _ = maintained(memory(item("l-7", pinned=True)), 0.1)
    assert items["r-7"].pinned
    items, _ = maintained(memory(item("r-1"), item("l-7", SAME, pinned=True)), 0.1)
    assert items["r-1"].pinned


# --- what is resolved, what is used ----------------------------------------------------------------------------------


def test_what_is_resolved_is_laid_aside_after_three_days():
    state = memory(item("t-1", status="closed"), item("h-2", status="closed"), item("t-3"))
    assert maintained(state, 2.9)[1] == {}
    items, told = maintained(state, 3.1)
    assert told == {"t-1": "archived", "h-2": "archived"}
    assert items["t-1"].reason == "It was resolved on 2026-01-01."


def test_a_memory_that_was_recalled_fades_more_slowly_each_day_counting_once():
    state = memory(item("k-1"), item("t-2"))
    use = Use(days=2, at=at(5))
    items, told = maintained(state, 5.1, **{"k-1": use, "t-2": use, "k-99": use})
    assert told == {"k-1": "used"}
    assert (items["k-1"].strength, items["k-1"].used_at) == (3.0, at(5))
    assert vitality(items["k-1"], at(60)) > 0.9
    items, _ = maintained(state, 5.3, **{"k-1": Use(days=1, at=at(5.2))})
    assert items["k-1"].strength == 3.0


def test_use_does_not_make_a_memory_last_for_ever():
    items, _ = maintained(memory(item("k-1")), 1, **{"k-1": Use(days=500, at=at(1))})
    assert items["k-1"].strength == 12.0


# --- nights ----------------------------------------------------------------------------------------------------------


def test_a_second_time_in_one_night_changes_nothing():
    state = memory(item("r-1"), item("r-2", SAME), item("l-3", "Use ruff."), item("t-4", status="closed"))
    assert maintained(state, 20)[1]
    again = upkeep(state, at(20.2))
    assert (again.nights, again.changes) == (0, ())


def test_what_was_reinforced_meanwhile_is_fresh_in_the_nights_before():
    state = memory(item("r-1"))
    fold(state, [Patch(id="r-1", used_at=at(20), score=5.25)], 20)
    items, _ = maintained(state, 21)
    assert items["r-1"].score == 5.25


def test_a_damaged_time_fades_nothing_and_breaks_nothing():
    state = memory(item("r-1", used_at="yesterday"))
    assert upkeep(state, at(50)).changes == ()
    assert upkeep(state, "tomorrow").nights == 0


_ITEMS = st.lists(
    st.tuples(
        st.sampled_from(["r", "l", "k", "t"]),
        st.sampled_from([TEXT, SAME, "Use ruff.", "Ask before a deploy.", "Before a deploy, ask."]),
        st.sampled_from([2.5, 4.5, 5.0, 6.75, 7.0, 8.9, 9.0]),
        st.sampled_from(["user", "engine", "agent"]),
        st.sampled_from(["active", "active", "dormant", "closed"]),
        st.integers(0, 45),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(made=_ITEMS, days=st.integers(1, 12))
def test_one_run_after_missed_nights_does_what_a_run_in_each_would_have_done(made, days):
    def filled():
        state = State(seq=1)
        for n, (kind, text, score, trust, status, day) in enumerate(sorted(made, key=lambda one: one[5]), 1):
            fold(state, [Add(item(f"{kind}-{n}", text, score=score, trust=trust, status=status))], day)
        fold(state, (), 45, MAINTENANCE)
        return state

    def plain(state):
        bare = {"created_seq": 0, "created_at": "", "changed_seq": 0, "changed_at": ""}
        return {name: msgspec.structs.replace(one, **bare) for name, one in state.items.items()}

    nightly, once = filled(), filled()
    for day in range(1, days + 1):
        maintained(nightly, 45 + day - 0.5)
    maintained(once, 45 + days - 0.5)
    assert plain(once) == plain(nightly)
