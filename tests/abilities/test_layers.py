"""The layers of memory: raw words, structured state, the scribe, tiered recovery, rules that live and fade, recall."""

import itertools
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agentx import AgentXError, Workspace

CLOCK = Path(__file__).resolve().parent / "clock"


def listed(agentx, *words):
    return agentx.json("memory", "list", *words)


def shown(agentx, item):
    return agentx.json("memory", "show", item)


def added(agentx, text, kind, *words):
    """Add an item by hand; its identifier."""
    (item,) = agentx.json("memory", "add", text, "--kind", kind, *words)
    return item["id"]


# --- raw truth ----------------------------------------------------------------------------------------


def test_the_conversation_is_kept_word_for_word(agentx):
    """Raw truth: what user and agent said stands in the log word for word."""
    said = "Keep it short.\n\n  Two  blanks, and a “quote”.\n"
    agentx("say", "-", stdin=said)
    agentx("record", "--role", "assistant", "Done:\n- one\n- two", "--as", "helper")
    (user,) = agentx.events("UserMessageSent")
    (agent,) = agentx.events("AgentMessageSent")
    assert user["data"]["body"]["text"].strip() == said.strip()
    assert agent["data"]["body"]["text"] == "Done:\n- one\n- two"
    assert agent["actor"] == "agent:helper"


# --- state --------------------------------------------------------------------------------------------

CATEGORIES = {
    "decision": "Let's go with SQLite for the store.",
    "rejection": "No. Stop suggesting carousels: nobody waits for the second picture.",
    "discovery": "It turns out the cache key ignores the tenant.",
    "learning": "Lesson learned: run the migration on a copy first.",
    "context": "I'm in a hurry today; the demo is at five.",
}


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    """A workspace in which the user and an agent talked; what code noted of it."""
    from agentx.agents.loop import run_task
    from agentx.synthesis.model.open import open_model

    folder = tmp_path_factory.mktemp("noted")
    turns = folder / "turns.jsonl"
    turns.write_text('{"answer": "I rewrote the importer."}\n', "utf-8")
    with Workspace.create(folder / "task") as ws:
        for text in CATEGORIES.values():
            ws.say(text)
        run_task(ws, "Rewrite the importer.", open_model(f"script:{turns}"))
    return folder / "task"


@pytest.fixture
def noted(talk):
    """That workspace, opened."""
    with Workspace.open(talk) as ws:
        yield ws


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_scribe_sorts_what_the_user_says(noted, category):
    """State has categories: decision, rejected, discovery, learning and context, each from the user's own words."""
    assert CATEGORIES[category] in [item.text for item in noted.memory(category)]


def test_a_run_is_a_task_and_what_the_agent_did_is_its_state(noted):
    """State has the categories task and agent_state: what a run works on, and what the agent did last."""
    assert "Rewrite the importer." in [item.text for item in noted.memory("task", status=None)]
    (state,) = noted.memory("agent_state")
    assert (state.text, state.trust) == ("I rewrote the importer.", "agent")


@pytest.mark.parametrize(
    "kind", ["decision", "task", "rejection", "situation", "knowledge", "rule", "north_star"]
)
def test_an_entry_has_an_id_a_time_a_category_a_text_and_a_status(agentx, kind):
    """An entry of state has an id, its time, a category, the words, what it rests on, and a status."""
    made = added(agentx, "The harbour is closed on Sundays.", kind)
    (item,) = listed(agentx, "--status", "active")
    assert (item["id"], item["kind"], item["text"]) == (made, kind, "The harbour is closed on Sundays.")
    assert datetime.fromisoformat(item["created_at"]).tzinfo is not None
    assert item["evidence"][0]["quote"] == "The harbour is closed on Sundays."


@pytest.mark.xfail(
    strict=True, reason="JSON leaves out a field that has its default, so that no status is given"
)
def test_an_active_entry_says_that_it_is_active(agentx):
    """The status of an entry is given as JSON, also if it is active."""
    added(agentx, "The harbour is closed on Sundays.", "decision")
    assert [item["status"] for item in listed(agentx)] == ["active"]


@pytest.mark.xfail(strict=True, reason="memory add takes no domain and no agent")
@pytest.mark.parametrize("kind", ["decision", "rule"])
def test_an_entry_has_a_domain_and_an_agent(agentx, kind):
    """An entry has a domain and an agent, given by hand and shown in lists."""
    agentx(
        "memory",
        "add",
        "Round to cents.",
        "--kind",
        kind,
        "--domain",
        "billing",
        "--agent",
        "clerk",
        ok=False,
    )
    (item,) = listed(agentx, "--kind", kind)
    assert "billing" in json.dumps(item)
    assert "clerk" in json.dumps(item)


def test_an_entry_that_ended_is_kept_with_its_reason(agentx):
    """An entry that no longer applies leaves the active view and stays in the history with its reason."""
    made = added(agentx, "Ship on Mondays.", "decision")
    agentx("memory", "retire", made, "--reason", "The courier changed.")
    assert listed(agentx) == []
    (item,) = listed(agentx, "--status", "retired")
    assert (item["id"], item["reason"]) == (made, "The courier changed.")
    assert [item["id"] for item in listed(agentx, "--as-of", "2")] == [made]


def test_an_entry_names_what_superseded_it(agentx):
    """``superseded_by``: an entry that another one took the place of names it."""
    old, new = added(agentx, "Test the pumps.", "rule"), added(agentx, "Test every pump on Monday.", "rule")
    agentx("memory", "merge", new, old)
    item = shown(agentx, old)
    assert item["status"] == "retired"
    assert {"relation": "superseded_by", "target": new} in item["links"]


# --- a workspace with much in it ----------------------------------------------------------------------

FACTS = (
    "The harbour office opens at seven.",
    "The harbour office closes at four.",
    "Mrs. Palm runs the harbour office.",
    "The harbour office has two doors.",
    "The harbour office takes cash.",
    "The harbour office sells charts.",
    "The harbour office lends out keys.",
    "The harbour office keeps a log.",
    "The harbour office is painted red.",
    "The harbour office needs a new roof.",
)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A workspace with decisions, refusals, facts and a long conversation; for reading only."""
    root = tmp_path_factory.mktemp("port") / "task"
    with Workspace.create(root) as ws:
        for text in FACTS:
            ws.remember("knowledge", text)
        for number in range(55):
            ws.remember("decision", f"Ledger {number:02} is kept in the blue cabinet.")
        for number in range(3):
            ws.remember("rejection", f"Painting shed {number} green")
        for number in range(60):
            ws.say(f"Ship {number:03} left at noon. {'It was laden with timber, copper and wool. ' * 8}")
    return root


@pytest.fixture
def harbour(port):
    """That workspace, opened."""
    with Workspace.open(port) as ws:
        yield ws


def test_the_active_view_holds_the_latest_fifty(harbour):
    """The view of active state holds the fifty latest entries."""
    text = harbour.get_relevant_context("go on", tier=2, deadline_ms=None).text
    assert [number for number in range(55) if f"Ledger {number:02}" in text] == list(range(5, 55))


def test_all_rejections_can_be_listed(harbour):
    """One can ask for everything that was rejected, and gets it with its dates."""
    rejected = harbour.memory("rejection")
    assert [item.text for item in rejected] == [f"Painting shed {number} green" for number in range(3)]
    assert all(item.created_at for item in rejected)


@pytest.mark.parametrize(("tier", "most"), [(0, 1_000), (1, 10_000), (2, 15_000), (3, 70_000)])
def test_a_tier_has_its_budget(harbour, tier, most):
    """Recovery escalates by tiers of at most 1,000, 10,000, 15,000 and 70,000 tokens."""
    context = harbour.get_relevant_context("go on", tier=tier, deadline_ms=None)
    assert (context.tier, context.max_tokens) == (tier, most)
    assert 0 < context.tokens <= most


def test_tier_0_has_active_state_and_rejections(harbour):
    """Tier 0 is enough for most recoveries: what is active, and what was rejected."""
    text = harbour.get_relevant_context("go on", tier=0, deadline_ms=None).text
    assert "Ledger 54" in text
    assert all(f"Painting shed {number} green" in text for number in range(3))


def test_tier_1_adds_the_last_thirty_messages(harbour):
    """Tier 1 is tier 0 and the last thirty messages, word for word."""
    text = harbour.get_relevant_context("go on", tier=1, max_tokens=10_000, deadline_ms=None).text
    assert all(f"Ship {number:03} left at noon." in text for number in range(30, 60))
    assert "Painting shed 0 green" in text


def test_tier_2_adds_a_recap_of_the_day(harbour):
    """Tier 2 is tier 1 and a recap of the day."""
    context = harbour.get_relevant_context("go on", tier=2, deadline_ms=None)
    assert any(item.section == "recap" for item in context.items)
    assert "Ship 059" in context.text


def test_tier_3_loads_the_whole_log(harbour):
    """Tier 3 is the whole log."""
    text = harbour.get_relevant_context("go on", tier=3, deadline_ms=None).text
    assert all(f"Ship {number:03}" in text for number in range(60))


def test_the_whole_log_is_for_the_morning_only(agentx):
    """No loop of recoveries: after the first answer of a day, tier 3 gives less."""
    agentx("say", "Good morning.")
    assert agentx.json("context", "go on", "--tier", "3")["tier"] == 3
    agentx("record", "--role", "assistant", "Good morning!", "--as", "main")
    assert agentx.json("context", "go on", "--tier", "3")["tier"] == 2


def _told(answer):
    return json.dumps(answer, ensure_ascii=False)


def test_after_a_compaction_the_agent_gets_state_without_asking(hooks):
    """After compaction an agent need not know that it lost anything: the session's hook brings rules and rejections."""
    claude = hooks("claude-code")
    claude("SessionStart-startup")
    claude("UserPromptSubmit", prompt="From now on, never create a requirements.txt file.")
    claude("PreCompact-manual")
    assert "requirements.txt" in _told(claude("SessionStart-compact"))


def test_tier_0_is_what_a_compaction_costs(hooks):
    """After compaction tier 0 is given, about 1,000 tokens, so that recovery never causes another compaction."""
    claude = hooks("claude-code")
    claude("SessionStart-startup")
    for number in range(4):
        claude("UserPromptSubmit", prompt=f"Ship {number} left. {'It was laden with timber and wool. ' * 80}")
    answer = claude("SessionStart-compact")
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert "Ship 3" in text
    assert len(text) <= 5_000


# --- the scribe ---------------------------------------------------------------------------------------


def test_notes_are_taken_without_the_agents_help(agentx, script):
    """The note-taker is not the worker: an agent that notes nothing loses nothing."""
    agentx("run", "Let's go with SQLite for the store.", "--model", script({"answer": "Fine."}))
    assert "Let's go with SQLite for the store." in [
        item["text"] for item in listed(agentx, "--kind", "decision")
    ]


def test_small_talk_leaves_no_note(agentx):
    """If nothing meaningful happened, nothing is noted."""
    for text in ("Hello.", "Thanks!", "Good night."):
        agentx("say", text)
    assert listed(agentx, "--all") == []


class Model:
    """A model of a program; gives one answer always, and keeps what it was shown."""

    name = "own/model"

    def __init__(self, answer):
        self.answer, self.shown = answer, []

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        from agentx.synthesis.model.port import Reply, Usage

        self.shown.append("\n".join(str(message) for message in messages))
        yield Reply(self.answer, (), Usage(1, 1), self.name)


def test_what_failed_extractions_left_is_read_by_the_next(tmp_path):
    """A watermark: after three failed extractions the fourth reads on from the last that succeeded."""
    from agentx.memory.model_extraction import judge

    nothing = '{"found": [], "verdicts": []}'
    model = Model(nothing)
    with Workspace.create(tmp_path / "task") as ws:
        ws.say("Ship one has left.")
        judge(ws, model)
        model.answer = "?"
        for number in ("two", "three", "four"):
            ws.say(f"Ship {number} has left.")
            with pytest.raises(AgentXError):
                judge(ws, model)
        model.answer = nothing
        judge(ws, model)
        assert all(f"Ship {number} has left." in model.shown[-1] for number in ("two", "three", "four"))
        asked = len(model.shown)
        judge(ws, model)
        assert len(model.shown) == asked


def test_the_scribe_runs_every_thirty_minutes_in_active_hours(agentx):
    """The scribe is due every thirty minutes during active hours, which begin at eight."""
    settings = {
        name: agentx("config", "get", f"scribe.{name}").out for name in ("every_minutes", "active_hours")
    }
    assert settings["every_minutes"].startswith("30")
    assert settings["active_hours"].startswith("8-2")
    agentx("say", "Ship one has left.")
    now = datetime.now().astimezone()
    for hour, active in ((12, True), (3, False)):
        then = (now + timedelta(days=1)).replace(hour=hour, minute=0)
        pending = agentx.later(seconds=(then - now).total_seconds()).json("memory", "scribe", "--pending")
        assert (pending["active"], pending["messages"]) == (active, 1)


@pytest.mark.parametrize(
    ("agent_says", "text"),
    [
        ("Lesson learned: the linter needs Node 20.", "the linter needs Node 20"),
        ("I learned that the print shop closes on Fridays.", "the print shop closes on Fridays"),
        ("I found that the cache key ignores the tenant.", "the cache key ignores the tenant"),
    ],
)
@pytest.mark.xfail(
    strict=True, reason="what an agent says that it learned or found is not noted as knowledge"
)
def test_what_an_agent_learned_is_noted(agentx, agent_says, text):
    """The scribe reads the agent's words, too: what it learned or found is noted as the agent's."""
    agentx("record", "--role", "assistant", f"I am done. {agent_says}", "--as", "main")
    (item,) = listed(agentx, "--kind", "knowledge")
    assert text in item["text"]
    assert item["trust"] == "agent"


@pytest.mark.xfail(
    strict=True, reason="a finding is noted twice: as a discovery, and as a candidate of a demand"
)
def test_one_sentence_is_one_entry(agentx):
    """One consolidated entry, not several, for one sentence."""
    agentx("say", CATEGORIES["discovery"])
    assert len(listed(agentx, "--all")) == 1


# --- rules --------------------------------------------------------------------------------------------


def test_a_rule_has_a_score_of_five_unless_it_is_given(agentx):
    """A rule has a score from 1 to 10, by default 5."""
    assert shown(agentx, added(agentx, "Verify the file.", "rule"))["score"] == 5.0
    assert shown(agentx, added(agentx, "Read before you delete.", "rule", "--score", "7.5"))["score"] == 7.5
    for score in ("0.5", "10.5"):
        assert agentx("memory", "add", "No.", "--kind", "rule", "--score", score, ok=False).code == 2


@pytest.mark.parametrize(
    ("score", "status", "loaded"),
    [
        (9, "active", True),
        (7, "active", True),
        (5, "active", True),
        (3.5, "dormant", False),
        (1.5, "retired", False),
    ],
)
def test_a_score_says_whether_a_rule_is_loaded(agentx, score, status, loaded):
    """Rules from 5 on are active; those of 3 to 4 are dormant, those of 1 to 2 retired, and neither is loaded."""
    rule = added(agentx, "Rinse the brushes in turpentine.", "rule", "--score", score)
    assert [item["id"] for item in listed(agentx, "--status", status)] == [rule]
    assert ("turpentine" in agentx("agent", "boot").out) == loaded


def test_a_dormant_rule_is_found_by_a_search(agentx):
    """A dormant rule is not loaded unless somebody searches for it."""
    added(agentx, "Rinse the brushes in turpentine.", "rule", "--score", "4")
    assert "turpentine" not in agentx("agent", "boot").out
    assert "turpentine" in agentx("search", "how to rinse brushes").out


def test_twenty_rules_are_loaded_at_a_start(tmp_path):
    """Of many rules, the twenty with the highest scores are loaded at a start, critical ones first."""
    with Workspace.create(tmp_path / "task") as ws:
        for number in range(30):
            ws.remember("rule", f"Check valve {number:02} by hand.", score=5 + number / 10)
        critical = ws.remember("rule", "Verify the file, not the report.", score=10)
        loaded = [item.id for item in ws.boot(max_tokens=8_000).items if item.kind == "rule"]
        texts = ws.boot(max_tokens=8_000).text
    assert len(loaded) == 20
    assert loaded[0] == critical.id
    assert [number for number in range(30) if f"valve {number:02}" in texts] == list(range(11, 30))


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Forty days of a workspace with rules; what each day says of them."""
    done = subprocess.run(
        [sys.executable, CLOCK / "forty_nights.py", tmp_path_factory.mktemp("nights") / "task"],
        env={
            **os.environ,
            "PYTHONPATH": f"{CLOCK}{os.pathsep}{CLOCK.parents[2]}",
            "TESTS_CLOCK_LATER_S": "0",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def scores(nights, rule, first, last):
    return [nights[day - 1]["rules"][rule][0] for day in range(first, last + 1)]


@pytest.mark.parametrize(("rule", "score"), [("new", 5.0), ("six", 6.5)])
def test_a_rule_keeps_its_score_for_a_week(nights, rule, score):
    """A rule that nothing reinforced keeps its score for the first seven days."""
    assert scores(nights, rule, 1, 6) == [score] * 6


@pytest.mark.xfail(strict=True, reason="rules fade by opportunities, not by days")
@pytest.mark.parametrize(("rule", "score"), [("new", 5.0), ("six", 6.5)])
def test_an_unreinforced_rule_loses_half_a_point_a_night(nights, rule, score):
    """A rule unreinforced for seven days loses 0.5 points in each nightly cycle."""
    found = scores(nights, rule, 8, 14)
    assert found[0] < score
    assert [after - before for before, after in itertools.pairwise(found)] == [-0.5] * 6


@pytest.mark.xfail(strict=True, reason="rules fade by opportunities, not by days")
def test_a_faded_rule_is_dormant_and_not_loaded(nights):
    """A rule that fell below 5 is dormant, and no start loads it."""
    assert nights[11]["rules"]["new"][1] == "dormant"
    assert "new" not in nights[11]["loaded"]


@pytest.mark.xfail(strict=True, reason="rules fade by opportunities, not by days")
def test_a_rule_below_one_is_retired(nights):
    """A rule whose score falls below 1 is retired: it had its chance."""
    assert nights[19]["rules"]["new"][1] == "retired"
    assert nights[29]["rules"]["six"][1] == "retired"


def test_a_strong_rule_fades_slowly(nights):
    """A rule of 7 or 8 keeps its score for thirty days."""
    assert scores(nights, "eight", 1, 29) == [8.0] * 29


@pytest.mark.xfail(strict=True, reason="rules fade by opportunities, not by days")
def test_a_strong_rule_fades_after_thirty_days(nights):
    """A rule of 7 or 8 that nothing reinforced for more than thirty days fades, too."""
    assert scores(nights, "eight", 33, 33)[0] < 8.0


@pytest.mark.parametrize(("rule", "score"), [("nine", 9.0), ("ten", 10.0)])
def test_a_critical_rule_never_fades(nights, rule, score):
    """A critical rule, of 9 or 10, never decays, and each start loads it."""
    assert [day["rules"][rule] for day in nights] == [[score, "active"]] * 40
    assert all(rule in day["loaded"] for day in nights)


def test_a_rule_that_tasks_keep_rises_and_stays(nights):
    """A rule that graded tasks keep gains score, survives all nights, and never becomes critical by itself."""
    found = scores(nights, "kept", 1, 40)
    assert found == sorted(found)
    assert 5.0 < found[-1] < 9.0
    assert nights[-1]["rules"]["kept"][1] == "active"
    assert "kept" in nights[-1]["loaded"]


def test_a_finished_task_is_archived_after_three_days(nights):
    """A completed entry of state is archived once it is older than three days."""
    assert [day["task"] for day in nights[:2]] == ["closed", "closed"]
    assert {day["task"] for day in nights[4:]} == {"retired"}


def test_near_duplicates_are_merged_at_night(agentx):
    """Two rules that say the same are merged: the stronger one survives with 0.5 points more."""
    weak = added(agentx, "Before every deploy, run the smoke tests.", "rule")
    strong = added(agentx, "Run the smoke tests before each deploy.", "rule", "--score", "7")
    other = added(agentx, "Run the load tests before each release.", "rule", "--score", "6")
    agentx("memory", "maintain")
    assert {item["id"]: item["score"] for item in listed(agentx, "--kind", "rule")} == {
        strong: 7.5,
        other: 6.0,
    }
    assert shown(agentx, weak)["status"] == "retired"


def test_a_night_comes_by_itself(agentx):
    """Every 24 hours maintenance runs: the first message of a new day finds it done."""
    strong = added(agentx, "Run the smoke tests before each deploy.", "rule", "--score", "7")
    added(agentx, "Before every deploy, run the smoke tests.", "rule")
    agentx.later(days=1)("say", "Good morning.")
    assert [item["id"] for item in listed(agentx, "--kind", "rule")] == [strong]


def test_a_night_can_be_looked_at_first_and_taken_back(agentx):
    """Maintenance shows what it would do, does it once a day, and can be undone."""
    both = {
        added(agentx, text, "rule")
        for text in ("Run the smoke tests before each deploy.", "Before every deploy, run the smoke tests.")
    }
    agentx("memory", "maintain", "--dry-run")
    assert {item["id"] for item in listed(agentx, "--kind", "rule")} == both
    agentx("memory", "maintain")
    assert len(listed(agentx, "--kind", "rule")) == 1
    agentx("memory", "maintain", "--undo")
    assert {item["id"] for item in listed(agentx, "--kind", "rule")} == both


# --- promotion ----------------------------------------------------------------------------------------


def test_a_lesson_of_the_user_becomes_a_rule_at_night(agentx):
    """The nightly promotion makes a rule of score 5 from a lesson in the user's words; the next start loads it."""
    agentx("say", CATEGORIES["learning"])
    assert listed(agentx, "--kind", "rule") == []
    agentx.later(days=1)("memory", "maintain")
    (rule,) = listed(agentx, "--kind", "rule")
    assert rule["score"] == 5.0
    assert "run the migration on a copy first" in rule["text"]
    assert rule["id"] in agentx("agent", "boot").out


def test_a_lesson_of_an_agent_becomes_no_rule(agentx):
    """A lesson that an agent reports is kept as its own, and no night makes a rule of it."""
    agentx(
        "gate", "post", "Fixed the build", "--fail", "--lesson", "Clear the cache first.", "--agent", "main"
    )
    agentx.later(days=1)("memory", "maintain")
    assert listed(agentx, "--kind", "rule") == []
    assert [item["trust"] for item in listed(agentx, "--kind", "knowledge")] == ["agent"]


def test_a_rejection_skips_the_line(agentx):
    """What the user rejects is in force at once: each start and each context has it, no night is needed."""
    agentx("say", CATEGORIES["rejection"])
    for text in (agentx("agent", "boot").out, agentx("context", "write a poem").out):
        assert "carousels" in text


def test_a_rejected_idea_is_not_suggested_again(noted):
    """An answer that suggests a rejected idea is found, with the user's own sentence."""
    (again,) = noted.check_answer("You could show the three news in a carousel.")
    assert again.sentence == CATEGORIES["rejection"]
    assert not noted.check_answer("You could show the three news in a list.")


def test_a_rule_that_is_kept_again_is_revived(agentx):
    """A dormant rule can be revived: a task that kept it makes it active."""
    rule = added(agentx, "Rinse the brushes in turpentine.", "rule", "--score", "4")
    agentx("gate", "post", "Cleaned up", "--pass", "--kept", rule)
    assert [item["id"] for item in listed(agentx, "--kind", "rule")] == [rule]


# --- ambient memory -----------------------------------------------------------------------------------


def recalled(context):
    return [item.text for item in context.items if item.section == "recalled" and item.kind == "memory"]


def test_memory_comes_without_being_asked(harbour):
    """Before each message the memories that fit it are put into the context; nobody searches."""
    texts = recalled(harbour.get_relevant_context("Who runs the harbour office?", tier=0, deadline_ms=None))
    assert any("Mrs. Palm" in text for text in texts)


@pytest.mark.parametrize("tier", [0, 1, 2])
@pytest.mark.parametrize("message", ["Write about the harbour office.", "When does the harbour office open?"])
def test_five_memories_are_recalled(harbour, tier, message, request):
    """The five most relevant memories are recalled, not more."""
    if tier:
        reason = "from tier 1 on as many memories as fit are recalled"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    texts = recalled(harbour.get_relevant_context(message, tier=tier, deadline_ms=None))
    assert 0 < len(texts) <= 5


def test_what_is_not_relevant_is_not_recalled(harbour):
    """A message about something else recalls nothing."""
    assert recalled(harbour.get_relevant_context("Translate the poem into Latin.", deadline_ms=None)) == []


@pytest.fixture
def reminded(agentx):
    """Call for a context of a workspace with four facts about one thing; gives how many came back."""
    for text in FACTS[:4]:
        added(agentx, text, "knowledge")

    def reminded():
        context = agentx.json("context", "Write about the harbour office.", "--no-deadline")
        return len(
            [item for item in context["items"] if (item["section"], item["kind"]) == ("recalled", "memory")]
        )

    return reminded


@pytest.mark.xfail(
    strict=True, reason="more memories are recalled than the setting says, for facts are added"
)
def test_the_number_of_recalled_memories_is_a_setting(agentx, reminded):
    """``auto_recall_top_k`` is the number of recalled memories."""
    agentx("config", "set", "scribe.auto_recall_top_k", "2")
    assert reminded() == 2


def test_recall_can_be_turned_off(agentx, reminded):
    """Without ``auto_recall`` no memory comes by itself."""
    assert reminded() == 4
    agentx("config", "set", "scribe.auto_recall", "false")
    assert reminded() == 0


@pytest.mark.parametrize(
    ("setting", "agents", "users"), [("capture_assistant", 0, 1), ("auto_capture", 0, 0), (None, 1, 1)]
)
def test_both_sides_are_captured_unless_a_setting_says_otherwise(agentx, setting, agents, users):
    """Captured is what user and agent say; ``capture_assistant`` and ``auto_capture`` turn it off."""
    if setting:
        agentx("config", "set", f"scribe.{setting}", "false")
    agentx("say", CATEGORIES["decision"])
    agentx("record", "--role", "assistant", "I rewrote the importer.", "--as", "main")
    items = listed(agentx, "--all")
    assert len([item for item in items if item["trust"] == "agent"]) == agents
    assert len([item for item in items if item["trust"] == "user"]) == users


def test_a_finished_session_leaves_a_lesson(tmp_path):
    """At the end of a session what failed and then worked is kept as a lesson, with what happened as its evidence."""
    from agentx.storage.events.types import Draft, RunEnded, RunStarted, ToolCallExecuted

    calls = (("git push", "FAILED", 1), ("git pull --rebase", "SUCCEEDED", 0), ("git push", "SUCCEEDED", 0))
    with Workspace.create(tmp_path / "task") as ws:
        done = [
            ToolCallExecuted(
                call_id=f"c-{n}", tool="run_command", status=status, command=command, exit_code=code
            )
            for n, (command, status, code) in enumerate(calls)
        ]
        started = RunStarted(task=ws.body("Publish the notes."), agent="main", model="m")
        events = (started, *done, RunEnded(status="COMPLETED"))
        ws.record(*(Draft(data=data, actor="agent:main", run="r-1") for data in events))
        (lesson,) = ws.memory("learning")
    assert "git push" in lesson.text
    assert "git pull --rebase" in lesson.text
    assert lesson.evidence
    assert lesson.trust != "user"


@pytest.mark.xfail(strict=True, reason="the strategy has another name: memory")
def test_the_strategy_of_sessions_has_its_name(agentx):
    """``session_strategy`` can be ``memoryReflection``."""
    assert agentx("config", "set", "scribe.session_strategy", "memoryReflection", ok=False).code == 0
