"""What an agent may settle: only what the user's own words prove."""

import msgspec
import pytest

from agentx.storage.events.types import Body, Event, UserMessageSent
from agentx.synthesis.judgement.settling import SettleVerdict, check_verdicts
from agentx.synthesis.judgement.wording import compare
from agentx.synthesis.memory.checks import PathCheck
from agentx.synthesis.memory.conclusions import AGENT, PERSON, Add, Concluded, Patch
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Evidence,
    MemoryItem,
    NoteDetail,
    RejectionDetail,
    item_id,
)
from agentx.synthesis.state.state import State
from tests.rule_checks import forbid_path

PREFIX = {"constraint": ConstraintDetail(), "rejection": RejectionDetail(idea="x")}


class Talk:
    """Messages of the user, candidates on words of them, and an agent's verdicts."""

    def __init__(self):
        self.state = State()
        self.said = {}
        self.items = ()

    def happen(self, data):
        event = Event(seq=self.state.seq + 1, at="", type=type(data).__name__, v=1, actor="user", data=data)
        self.state.apply(event)
        return event.seq

    def conclude(self, *changes, extractor="demands"):
        self.happen(Concluded(extractor=extractor, version=1, through=0, changes=changes))

    def say(self, text, words="", *, kind="constraint", answers="", **fields):
        """Say something; its words, all of them by default, become a candidate."""
        seq = self.happen(UserMessageSent(body=Body(text)))
        self.said[seq] = text
        words = words or text
        start = text.index(words)
        fields = {
            "status": "candidate",
            "trust": "user",
            "detail": PREFIX.get(kind, NoteDetail()),
            **fields,
        }
        item = MemoryItem(
            id=item_id(kind, seq),
            kind=kind,
            text=words,
            evidence=(Evidence(seq, start, start + len(words), words),),
            answers=Evidence(1, 0, len(answers), answers) if answers else None,
            **fields,
        )
        self.conclude(Add(item))
        return item.id

    def settle(self, name, verdict="keep", **fields):
        """Return why a verdict was refused; empty where it was accepted."""
        given = SettleVerdict(id=name, verdict=verdict, **fields)
        checked = check_verdicts([given], self.said, self.state, "agent:main")
        if checked.changes:
            self.conclude(*checked.changes, extractor=AGENT)
        self.items = checked.items
        return "".join(one.why for one in checked.refused)

    def __getitem__(self, name):
        return self.state.items[name]


@pytest.fixture
def talk():
    return Talk()


# --- keep --------------------------------------------------------------------------------------------------


def test_a_kept_candidate_has_the_agents_sentence_and_the_users_words_as_evidence(talk):
    name = talk.say("Fine. We go for tabs in Python files.", "We go for tabs in Python files")
    quote = "We go for tabs in Python files"
    assert talk.settle(name, quote=quote, text="Use tabs in Python files.", reason="A convention.") == ""
    item = talk[name]
    assert (item.status, item.text, item.worded_by) == ("active", "Use tabs in Python files.", "agent:main")
    assert (item.trust, item.by_hand, item.reason) == ("user", False, "agent:main: A convention.")
    assert [one.quote for one in item.evidence] == ["We go for tabs in Python files."]


def test_a_short_answer_is_understood_by_what_it_answers(talk):
    asked = "I'd log rejected rows to stdout as JSON. Shall I?"
    name = talk.say("yep do that", kind="decision", answers=asked)
    text = "Log rejected rows to stdout as JSON."
    assert talk.settle(name, quote="yep do that", text=text) == ""
    assert (talk[name].text, talk[name].status) == (text, "active")


def test_the_kind_may_be_another_one_where_the_policy_allows(talk):
    name = talk.say("We'll host in Frankfurt because of the law.")
    assert (
        talk.settle(name, quote="We'll host in Frankfurt", kind="decision", text="Host in Frankfurt.") == ""
    )
    (made,) = (one for one in talk.items if one.id != name)
    assert (made.kind, made.status, made.text, made.trust) == (
        "decision",
        "active",
        "Host in Frankfurt.",
        "user",
    )
    assert [(one.relation, one.target) for one in made.links] == [("supersedes", name)]
    assert talk[name].status == "retired"


def test_a_kept_rule_is_enforced_where_it_can_be_compiled(talk):
    name = talk.say("and never create a requirements.txt")
    talk.settle(name, quote="never create a requirements.txt", text="Never create a requirements.txt.")
    assert talk[name].detail.modality == "must_not"
    assert isinstance(talk[name].detail.checks[0], PathCheck)


def test_where_and_until_when_are_the_users_words(talk):
    name = talk.say("In Python files we go for tabs until the release.")
    quote = "In Python files we go for tabs until the release"
    lie = talk.settle(name, quote=quote, text="Use tabs until Friday.", until="until Friday")
    assert lie == "Its until does not stand in the user's own words, nor in what they answer."
    text = "Use tabs in Python files until the release."
    assert talk.settle(name, quote=quote, text=text, scope="In Python files", until="until the release") == ""
    assert (talk[name].scope.paths, talk[name].until) == (("**/*.py",), "until the release")


def test_a_wording_that_says_more_than_the_user_is_kept_beside_their_words(talk):
    name = talk.say("keep the pool small, please")
    text = "Keep the pool at 20 connections."
    assert talk.settle(name, quote="keep the pool small", text=text) == ""
    item = talk[name]
    assert (item.status, item.text, item.worded_by) == ("active", "Keep the pool small, please", "")
    assert item.reason == f"agent:main: reads it as “{text}”; not in the user's words: 20"


def test_a_limit_that_the_sentence_leaves_out_keeps_the_users_words(talk):
    name = talk.say("never push to main unless I ask")
    talk.settle(name, quote="never push to main unless I ask", text="Never push to main.")
    assert (talk[name].text, talk[name].worded_by) == ("Never push to main unless I ask", "")


def test_a_second_rule_that_says_the_same_is_a_repetition(talk):
    never = ConstraintDetail(modality="must_not")
    first = talk.say("Never use emojis in commits.", status="active", detail=never)
    second = talk.say("and please never any emojis in commits")
    assert talk.settle(second, quote="never any emojis in commits", text="Never use emojis in commits.") == ""
    assert (talk[second].status, len(talk[first].evidence)) == ("retired", 2)


# --- lies --------------------------------------------------------------------------------------------------


def test_an_invented_quote_is_refused(talk):
    name = talk.say("We go for tabs.")
    why = talk.settle(name, quote="Delete the tests", text="Delete the tests.")
    assert why == "The quote does not stand in the user's own words of message 1."
    assert talk[name].status == "candidate"


@pytest.mark.parametrize(
    ("said", "quote", "text", "why"),
    [
        (
            "never push to main",
            "never push to main",
            "Push to main.",
            "The user negates it (“never”), and the",
        ),
        ("never push to main", "push to main", "Push to main.", "The user negates it (“never”), and the"),
        (
            "ship without tests is fine",
            "tests is fine",
            "Ship tests.",
            "The user negates it (“without”), and",
        ),
        (
            "push to main",
            "push to main",
            "Do not push to main.",
            "The sentence negates (“not”) what the user",
        ),
        (
            "we use tabs, never spaces",
            "we use tabs, never spaces",
            "Use spaces, never tabs.",
            "The sentence neg",
        ),
    ],
)
def test_an_inverted_negation_is_refused(talk, said, quote, text, why):
    name = talk.say(said)
    assert talk.settle(name, quote=quote, text=text).startswith(why)
    assert talk[name].status == "candidate"


def test_a_quote_of_pasted_text_is_refused(talk):
    name = talk.say("Is this right?\n\n> Always delete the tests.\n\nI doubt it.", "I doubt it.")
    why = talk.settle(name, quote="Always delete the tests", text="Always delete the tests.")
    assert why == "In message 1 the quote is quoted, pasted or code: not the user's own words."


def test_a_quote_of_what_the_user_answered_is_refused(talk):
    name = talk.say("hm, let me think", kind="decision", answers="I would drop the table. Shall I?")
    why = talk.settle(name, quote="I would drop the table", text="Drop the table.")
    assert why == "The quote is what the user answered: an agent's words, not the user's."


def test_a_candidate_that_rests_on_a_file_or_a_tools_output_is_refused(talk):
    name = talk.say("We go for tabs.", kind="knowledge", trust="material")
    why = talk.settle(name, quote="We go for tabs", text="Use tabs.")
    assert why == f"{name} does not rest on the user's own words, so no agent can settle it."


def test_the_id_of_another_candidate_is_refused(talk):
    text = "We go for tabs. Names are long here."
    name = talk.say(text, "We go for tabs.")
    why = talk.settle(name, quote="Names are long here", text="Names are long.")
    assert why == f"The quote stands in message 1, but {name} rests on other words."
    theirs = talk.say("Write short answers.", agent="writer")
    assert talk.settle(theirs, "drop") == f"{theirs} concerns the agent writer, and this is main."


def test_an_unknown_id_and_an_item_that_is_no_candidate_are_refused(talk):
    active = talk.say("We go for tabs.", status="active")
    assert talk.settle("c-99", "drop") == "No item c-99 was found."
    assert talk.settle(active, "drop") == f"{active} is active, not a candidate."


def test_what_a_person_decided_is_never_overturned(talk):
    mine = talk.say("Never push to main.", status="active")
    talk.conclude(Patch(id=mine, pinned=True), extractor=PERSON)
    name = talk.say("you may push to main again")
    decided = f"A person decided on {mine}, and no agent overturns that."
    assert talk.settle(name, "ends", quote="you may push to main again", other=mine) == decided
    assert talk.settle(name, "replaces", quote="you may push to main again", other=mine) == decided
    talk.conclude(Patch(id=name, text="Push to main."), extractor=PERSON)
    assert talk.settle(name, "drop") == f"A person decided on {name}, and no agent overturns that."
    assert talk[mine].status == "active"


def test_a_sentence_about_something_else_is_refused(talk):
    name = talk.say("We go for tabs.")
    why = talk.settle(name, quote="We go for tabs", text="Delete every file.")
    assert why == "The sentence shares no word with what the user said, or with what it answers."


def test_no_kind_is_made_that_cannot_be_made_of_words(talk):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "c-1", "verdict": "keep", "kind": "north_star"}, SettleVerdict)


@pytest.mark.parametrize(
    ("said", "verdict", "why"),
    [
        ("please push the tags", "ends", "has ended"),
        ("never push anything on Fridays", "ends", "has ended"),
        ("I love the main page", "ends", "has ended"),
        ("do not drop the rule about main", "ends", "has ended"),
        ("please push the tags", "replaces", "is replaced"),
    ],
)
def test_words_that_only_name_the_subject_end_and_replace_no_enforced_rule(talk, said, verdict, why):
    never = ConstraintDetail(modality="must_not", checks=(forbid_path(paths=("main",)),))
    rule = talk.say("Never push to main.", status="active", detail=never)
    name = talk.say(said)
    assert talk.settle(name, verdict, quote=said, other=rule) == f"The words do not say that {rule} {why}."
    assert (talk[rule].status, talk[name].status) == ("active", "candidate")


def test_where_and_until_when_stand_in_the_words_that_the_item_rests_on(talk):
    name = talk.say("Never create files. I'm away until Friday. Look at docs/ please.", "Never create files.")
    for limit in ({"until": "until Friday"}, {"scope": "docs/"}):
        assert "does not stand in the user's own words" in talk.settle(
            name, quote="Never create files", **limit
        )
    assert talk[name].status == "candidate"


# --- drop, same, ends, replaces ----------------------------------------------------------------------------


def test_a_dropped_candidate_is_retired_with_the_agents_reason(talk):
    name = talk.say("use a longer title here")
    assert talk.settle(name, "drop", reason="It was about this page.") == ""
    assert (talk[name].status, talk[name].reason) == ("retired", "agent:main: It was about this page.")


def test_the_same_in_another_message_settles_the_other_candidate(talk):
    first, second = talk.say("short titles, please"), talk.say("titles should be short again")
    assert talk.settle(second, "same", quote="titles should be short again", other=first) == ""
    assert (talk[first].status, talk[second].status) == ("active", "retired")
    assert len(talk[first].evidence) == 2


def test_the_users_words_end_a_rule_that_they_name(talk):
    rule = talk.say("Put @disable_cache on every fetch.", status="active")
    name = talk.say("the caching bug is fixed, so the @disable_cache decorator is no longer necessary")
    other = talk.say("Names are long here.", status="active")
    quote = "the @disable_cache decorator is no longer necessary"
    why = talk.settle(name, "ends", quote=quote, other=other)
    assert why == f"The words do not name what {other} is about."
    assert talk.settle(name, "ends", quote=quote, other=rule) == ""
    assert (talk[rule].status, talk[name].status) == ("retired", "retired")
    assert [one.seq for one in talk[rule].evidence] == [1, 3]


def test_a_replaced_rule_is_superseded(talk):
    rule = talk.say("Give lengths in metres.", status="active")
    name = talk.say("lengths in feet from now on")
    quote = "lengths in feet from now on"
    assert talk.settle(name, "replaces", quote=quote, text="Give lengths in feet.", other=rule) == ""
    assert (talk[rule].status, talk[name].status, talk[name].text) == (
        "retired",
        "active",
        "Give lengths in feet.",
    )
    assert talk[rule].links[-1].target == name


def test_a_rule_that_is_perhaps_ended_is_confirmed_or_ended(talk):
    rule = talk.say("Put @disable_cache on every fetch.", status="active")
    seq = talk.happen(UserMessageSent(body=Body("QA has signed off the cache.")))
    talk.said[seq] = "QA has signed off the cache."
    doubt = Evidence(seq, 0, 28, "QA has signed off the cache.")
    talk.conclude(Patch(id=rule, perhaps_ended_by=(doubt,)))
    assert talk.settle(rule, "ends", other=rule) == f"{rule} is active and perhaps ended: keep or drop it."
    assert talk.settle(rule, "drop", quote="Put @disable_cache on every fetch").startswith(
        "The quote does not"
    )
    talk.conclude(Patch(id=rule, perhaps_ended_by=(doubt,)))
    assert talk.settle(rule, "keep", reason="It is about the cache only.") == ""
    assert (talk[rule].status, talk[rule].perhaps_ended_by) == ("active", ())
    talk.conclude(Patch(id=rule, perhaps_ended_by=(doubt,)))
    assert talk.settle(rule, "drop", quote="QA has signed off the cache") == ""
    assert (talk[rule].status, talk[rule].evidence[-1].seq) == ("retired", seq)


# --- the wording -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "quote", "answered"),
    [
        ("Keep the pool at 20.", "nope, 20 is what the DBA gives us", "Should I raise the pool to 50?"),
        ("Do not add retries.", "I'd rather not", "Shall I add retries?"),
        ("Use the env for secrets; never the config.", "don't put secrets in the config, use the env", ""),
        ("Never commit without running the tests.", "never commit without running the tests", ""),
        (
            "Never run the migrations from the app start.",
            "never run them from the app start",
            "I run migrations.",
        ),
        ("Do not suggest pop-ups.", "Stop suggesting pop-ups: we tried one", ""),
    ],
)
def test_a_faithful_reading_is_accepted(sentence, quote, answered):
    read = compare(sentence, quote, answered)
    assert (read.refused, read.foreign) == ("", ())


@pytest.mark.parametrize(
    ("sentence", "quote", "answered"),
    [
        ("Add retries.", "I'd rather not", "Shall I add retries?"),
        ("Do not use tabs.", "yes, use tabs", "I would not use tabs. Shall I?"),
        ("Do not use tabs.", "no, use tabs", "Shall I use spaces?"),
        ("Never use tabs.", "we use tabs, never spaces", ""),
    ],
)
def test_an_inverted_reading_is_refused(sentence, quote, answered):
    assert compare(sentence, quote, answered).refused


@pytest.mark.parametrize(
    ("sentence", "quote", "foreign"),
    [
        ("Keep the pool at 50.", "keep the pool at 20", "50"),
        ("Host everything in Virginia.", "we'll host in Frankfurt", "Virginia"),
        ("Oracle is the database.", "we take the other database", "Oracle"),
        ("Write rows to dump.csv.", "write the rows out", "dump.csv"),
        ("Wait twelve seconds.", "wait some seconds", "12"),
    ],
)
def test_a_number_or_name_that_the_user_did_not_say_is_found(sentence, quote, foreign):
    assert compare(sentence, quote).foreign[0] == foreign


@pytest.mark.parametrize(
    ("quote", "sentence"),
    [
        ("I'm allergic to tabs in Python", "Use tabs in Python."),
        ("steer clear of lodash", "Use lodash."),
        ("lodash must go", "Use lodash."),
        ("rarely use lodash", "Always use lodash."),
        ("use anything but lodash", "Use lodash."),
        ("too much lodash", "Use lodash."),
        ("hands off vendor/", "Edit vendor/."),
        ("ask before you push to main", "Push to main."),
        ("push to main once tests pass", "Push to main."),
        ("push to main, provided CI is green", "Push to main."),
        ("never not use tabs", "Never use tabs."),
        ("don't skip tests", "Do not run tests."),
        ("don't skip tests", "Skip tests."),
        ("don't forget tests", "Do not write tests."),
        ("no more than 3 retries", "No retries."),
        ("at most 3 retries", "At least 3 retries."),
        ("keep functions under 50 lines", "Keep functions over 50 lines."),
        ("timeout 5 s", "Timeout 5 ms."),
        ("wait 5 minutes", "Wait 5 hours."),
        ("use 2 spaces", "Use 2 tabs."),
        ("deploy to staging", "Deploy to production."),
        ("ask bob before deploys", "Ask alice before deploys."),
        ("use black before isort", "Use isort before black."),
        ("prefer tabs over spaces", "Prefer spaces over tabs."),
        ("move from npm to pnpm", "Move from pnpm to npm."),
        ("never write to vendor/", "Never write to vendor/ and src/."),
        ("in tests, never use mocks", "Never use mocks."),
        ("never deploy on Fridays", "Never deploy."),
        ("for now use tabs", "Always use tabs."),
        ("verwende keine Tabs", "Verwende Tabs."),
        ("n'utilise pas lodash", "Utilise lodash."),
        ("никогда не используй lodash", "Используй lodash."),
        ("不要使用 lodash", "使用 lodash."),
        ("nev\u200ber push to main", "Push to main."),
        ("we could push to main", "Always push to main."),
        ("I pushed to main yesterday", "Always push to main."),
        ("did you push to main?", "Push to main."),
        ("keep the logs", "Keep the logs and the dumps."),
    ],
)
def test_a_sentence_that_changes_the_meaning_never_becomes_the_items_text(talk, quote, sentence):
    name = talk.say(quote)
    talk.settle(name, quote=quote, text=sentence)
    assert (talk[name].worded_by, talk[name].text.casefold()) == ("", quote.casefold())


def test_what_an_agent_asked_is_never_enforced(talk):
    name = talk.say("yes", answers="Shall I build it? I never write to src/.")
    assert talk.settle(name, quote="yes", text="Never write to src/.") == ""
    assert (talk[name].status, talk[name].detail.checks) == ("active", ())


def test_a_no_in_other_words_is_not_left_out(talk):
    name = talk.say("nah, steer clear", answers="Shall I use lodash?")
    talk.settle(name, quote="nah, steer clear", text="Use lodash.")
    assert (talk[name].worded_by, talk[name].text) == ("", "Nah, steer clear")
