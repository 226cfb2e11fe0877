"""A model's word in the cognition loop: taken where it can be checked, told where it cannot, and never an exception."""

import itertools
import json
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.events.codec import MAX_LINE_BYTES
from agentx.storage.events.cognition_events import Extracted, Outdated, Recognized
from agentx.synthesis.cognition import answers, asking, prompts
from agentx.synthesis.cognition.grounds import located, trust_of
from agentx.synthesis.cognition.prompts import Shown, ShownMemory, Topic
from agentx.synthesis.model.litellm_client import LiteLLMClient
from agentx.synthesis.model.port import CallPart, Reply, TextPart, ToolCall, Usage
from agentx.synthesis.model.scripted import ScriptedModel

SAID = "I moved to Bergen last week. My sister says: “Bergen is wet.” Please answer in short sentences from now on."
BUFFER = [
    ShownMemory("knowledge-1", "L2", "Bo lives in Oslo.", topic="topic-1"),
    ShownMemory("episode-2", "L3", "Bo went to Rome.", decay=0.4),
]
SHOWN = Shown(memories=BUFFER, topics=[Topic("topic-1", "where Bo lives")])
RECOGNIZED = {
    "input_type": "statement",
    "memories": [{"level": "L3", "text": "Bo moved to Bergen.", "quote": "I moved  to bergen."}],
    "topic": "[topic-1]",
}
ASSESSED = {"uncertainty": 0.7, "missing": ["Bo's flat"]}
ANSWERED = {**ASSESSED, "answer": "In Bergen.", **RECOGNIZED}
REFLECTED = {
    "procedures": ["Name the town first."],
    "utilities": [{"id": "episode-2", "score": 0}],
    "judge": 0.9,
}


class Says:
    """A model that says the same of whatever it is asked; nothing else is made up."""

    name = "a/model"

    def __init__(self, said):
        self.said = said

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        if isinstance(self.said, BaseException):
            raise self.said
        yield Reply(self.said, (), Usage(10, 5, 0.01), self.name)


def soon():
    return time.monotonic() + 100


def converse(model, what, *parts, said=SAID, told=None):
    return asking.converse(model, what, said, SHOWN, *parts, deadline=soon(), told=told)


def recognize(model):
    return converse(model, prompts.RECOGNIZE, prompts.RECOGNIZED)


def answer(model, told=None):
    return converse(model, prompts.ANSWER, prompts.ASSESSED, prompts.RECOGNIZED, told=told)


ASK = {
    "recognize": recognize,
    "answer": answer,
    "reflect": lambda model: asking.reflect(model, "Where is Bo?", "In Oslo.", "", BUFFER, soon()),
    "respond": lambda model: asking.respond(model, "Where is Bo?", "Answer.", 0.2, soon()),
}
GOOD = {"recognize": RECOGNIZED, "answer": ANSWERED, "reflect": REFLECTED}


def asked(what, given, **changes):
    return ASK[what](Says(json.dumps({**given, **changes})))


def test_each_module_is_asked_and_its_answer_taken():
    got = {what: asked(what, answer) for what, answer in GOOD.items()}
    assert {what: one.faults for what, one in got.items() if one.faults} == {}
    assert all(one.usage == Usage(10, 5, 0.01) for one in got.values())
    for what in ("recognize", "answer"):
        read = got[what].answer.recognition
        assert (read.input_type, read.reward) == ("statement", 0.0)
        assert read.memories == (Extracted("L3", "Bo moved to Bergen.", 0, 17),)
        assert (read.topic_action, read.topic, read.topic_summary) == ("none", "topic-1", "where Bo lives")
    told = got["answer"].answer
    assert (told.answer, told.uncertainty, told.missing) == ("In Bergen.", 0.7, ("Bo's flat",))
    assert got["reflect"].answer.procedures == ("Name the town first.",)
    assert (got["reflect"].answer.utilities, got["reflect"].answer.judge) == ({"episode-2": 0.0}, 0.9)


# --- a model that gives no answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", GOOD)
@pytest.mark.parametrize("said", ["", "I would say so.", '{"input_type": "quest', "[]", '{"other": 1}'])
def test_an_answer_that_cannot_be_read_twice_is_none_and_what_it_cost_is_known(what, said):
    got = ASK[what](Says(said))
    if what == "answer" and said == "I would say so.":
        assert (got.answer.answer, got.answer.recognition, got.calls) == (said, None, 1)
        assert got.faults == ("a/model gave an answer without its record; code recognised the message.",)
        return
    assert got.answer is None
    assert got.calls == 2
    assert got.usage == Usage(20, 10, 0.02)
    [fault] = got.faults
    assert fault.startswith(f"No model could {what}: the answer of a/model ")


@pytest.mark.parametrize("what", ASK)
@pytest.mark.parametrize("error", [ValueError("no such thing"), TimeoutError(), RecursionError("deep")])
def test_a_model_that_fails_in_any_way_is_a_fault_and_no_exception(what, error):
    got = ASK[what](Says(error))
    assert got.answer is None
    [fault] = got.faults
    assert fault.startswith(f"No model could {what}: a/model failed: {type(error).__name__}")
    assert got.calls == 1


def test_a_model_that_mends_its_answer_is_believed(tmp_path):
    script = tmp_path / "script.jsonl"
    turns = [
        {"expect": ["## Message", "[knowledge-1] Bo lives in Oslo."], "answer": "{oops"},
        {
            "expect": ["{oops", "That cannot be used", "not a JSON object"],
            "tool_calls": [{"name": "recognize", "arguments": RECOGNIZED}],
        },
    ]
    script.write_text("\n".join(map(json.dumps, turns)))
    got = recognize(ScriptedModel(script))
    assert got.answer.recognition.topic == "topic-1"
    assert (got.faults, got.calls) == ((), 2)
    script.write_text(json.dumps(turns[0]))
    lost = recognize(ScriptedModel(script))
    assert lost.answer is None
    assert lost.usage.prompt_tokens > 0, "the first call is paid for, whatever becomes of the second"
    assert "has run out" in lost.faults[0]


# --- an answer that is partly bad ------------------------------------------------------------------------------------

MEMORY = RECOGNIZED["memories"][0]


@pytest.mark.parametrize(
    ("changes", "field", "value", "fault"),
    [
        ({"input_type": "order"}, "input_type", "statement", "an unknown input type"),
        ({"input_type": None}, "input_type", "statement", "an unknown input type"),
        ({"input_type": "Blame"}, "reward", -1.0, ""),
        ({"input_type": "praise"}, "input_type", "feedback", ""),
        (
            {"memories": [{**MEMORY, "replaces": ["episode-2", "k-9"]}]},
            "outdated",
            (Outdated("episode-2"),),
            "not shown",
        ),
        ({"memories": [{**MEMORY, "replaces": "episode-2"}]}, "outdated", (), "an invalid entry"),
        (
            {"memories": [{}, {**MEMORY, "replaces": ["[episode-2]"], "since": "2026-05-01"}]},
            "outdated",
            (Outdated("episode-2", 0, "2026-05-01"),),
            "an invalid entry",
        ),
        (
            {"memories": [{**MEMORY, "replaces": ["episode-2"], "since": "soon"}]},
            "outdated",
            (Outdated("episode-2"),),
            "",
        ),
        ({"memories": [{**MEMORY, "quote": "I sold my car"}]}, "memories", (), "does not have"),
        ({"memories": [{**MEMORY, "text": " \n"}]}, "memories", (), "an invalid entry"),
        ({"memories": [{**MEMORY, "level": "L1"}]}, "memories", (), "an invalid entry"),
        ({"memories": "none"}, "memories", (), "an invalid entry"),
        ({"topic": "e-9"}, "topic_action", "none", "not shown"),
        ({"topic": " \n"}, "topic_action", "none", ""),
        ({"topic": "Where Bo lives"}, "topic", "topic-1", ""),
        ({"topic": "Bo's\nboat"}, "topic_summary", "Bo's boat", ""),
        ({"topic": ["topic-1"]}, "topic_action", "none", ""),
    ],
)
def test_what_is_bad_in_a_recognition_is_left_out_and_told(changes, field, value, fault):
    got = asked("recognize", RECOGNIZED, **changes)
    assert getattr(got.answer.recognition, field) == value
    assert fault in " ".join(got.faults)
    assert bool(got.faults) == bool(fault)


def test_ten_thousand_memories_are_bounded_and_counted():
    rows = [{**MEMORY, "text": f"Fact {n}."} for n in range(answers.MAX_MEMORIES)] + [{}] * 9_988
    got = asked("recognize", RECOGNIZED, memories=rows)
    assert len(got.answer.recognition.memories) == answers.MAX_MEMORIES
    assert "(9,988 times)" in got.faults[0]
    huge = asked("recognize", RECOGNIZED, memories=[{**MEMORY, "text": "x" * 50_000}])
    assert len(huge.answer.recognition.memories[0].text) == answers.TEXT_CHARACTERS
    endless = asked("recognize", RECOGNIZED, memories=[MEMORY] * 10_000)
    assert endless.answer is None
    assert "characters" in endless.faults[0]


def test_what_a_model_reports_fits_into_one_event():
    wide = [{**MEMORY, "text": f"{n} " + '😀"' * 900} for n in range(answers.MAX_MEMORIES)]
    got = asked("recognize", {**RECOGNIZED, "memories": wide})
    fact = Recognized(
        session="s-1",
        interaction=1,
        message=1,
        model="a/model",
        **msgspec.structs.asdict(got.answer.recognition),
    )
    assert len(got.answer.recognition.memories) > 2
    assert len(msgspec.json.encode(fact)) < MAX_LINE_BYTES * 3 / 4
    assert len(got.faults) == 1


def test_spans_are_found_by_the_words_whatever_places_the_model_gives():
    rows = [{**MEMORY, "start": 900, "end": -4}, {"level": "L2", "text": "bergen is wet"}]
    got = asked("recognize", RECOGNIZED, memories=rows)
    assert [SAID[one.start : one.end] for one in got.answer.recognition.memories] == [
        "I moved to Bergen",
        "Bergen is wet",
    ]


@pytest.mark.parametrize(
    ("changes", "field", "value", "fault"),
    [
        ({"uncertainty": 9}, "uncertainty", 1.0, "bounds"),
        ({"uncertainty": "0.25"}, "uncertainty", 0.25, ""),
        ({"missing": ["", 3, "Bo's flat", "Bo's flat"]}, "missing", ("Bo's flat",), "(2 times)"),
        ({"missing": ["x"] * 10_000}, "missing", ("x",), "(9,992 times)"),
        ({"uncertainty": "high"}, "uncertainty", 0.0, "not a number"),
    ],
)
def test_what_is_bad_in_an_assessment_is_left_out_and_told(changes, field, value, fault):
    got = asked("answer", ANSWERED, **changes)
    assert getattr(got.answer, field) == value
    assert fault in " ".join(got.faults)
    assert bool(got.faults) == bool(fault)


def test_what_is_missing_without_a_score_is_uncertain():
    lacks = {name: value for name, value in ANSWERED.items() if name != "uncertainty"}
    assert asked("answer", lacks).answer.uncertainty == 1.0
    assert asked("answer", {**lacks, "missing": []}).answer.uncertainty == 0.0


@pytest.mark.parametrize(
    ("reply", "text", "recognized"),
    [
        (Reply("In Bergen.", (), Usage(), "m"), "In Bergen.", False),
        (Reply('Use {"a": 1} for that.', (), Usage(), "m"), 'Use {"a": 1} for that.', False),
        (Reply('Sure:\n```json\n{"answer": "In Bergen."}\n```', (), Usage(), "m"), "In Bergen.", False),
        (Reply('{"answer": "In\\nBergen.", "input_type', (), Usage(), "m"), "In\nBergen.", False),
        (
            Reply("In Bergen.", (ToolCall("1", "answer", json.dumps(RECOGNIZED)),), Usage(), "m"),
            "In Bergen.",
            True,
        ),
        (
            Reply("Let me see.", (ToolCall("1", "answer", json.dumps(ANSWERED)),), Usage(), "m"),
            "In Bergen.",
            True,
        ),
        (
            Reply("", (ToolCall("1", "answer", '{"answer": "\\ud83d\\ude00", "memor'),), Usage(), "m"),
            "😀",
            False,
        ),
    ],
)
def test_an_answer_is_accepted_in_whatever_form_it_comes(reply, text, recognized):
    parts = (prompts.RECOGNIZED,)
    got, faults = answers.conversed(reply, prompts.ANSWER, parts, SAID, SHOWN)
    assert got.answer == text
    assert (got.recognition is not None) == recognized
    assert bool(faults) == (not recognized)


class Parts:
    """A model whose reply arrives in pieces."""

    name = "a/model"

    def __init__(self, pieces, *, call):
        self.pieces, self.call = pieces, call

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        whole = "".join(self.pieces)
        yield from map(CallPart if self.call else TextPart, self.pieces)
        calls = (ToolCall("1", tools[0].name, whole),) if self.call else ()
        yield Reply("" if self.call else whole, calls, Usage(), self.name)


@pytest.mark.parametrize("call", [True, False])
def test_an_answer_is_told_as_it_arrives_unless_something_is_missing(call):
    told = []
    raw = json.dumps(
        {"uncertainty": 0, "missing": [], "answer": 'He said "hi"\n\u00e9t\U0001f600.', **RECOGNIZED}
    )
    assert answer(Parts(raw, call=call), told.append).answer.answer == 'He said "hi"\n\u00e9t\U0001f600.'
    assert told[-1] == 'He said "hi"\n\u00e9t\U0001f600.'
    assert all(later.startswith(sooner) for sooner, later in itertools.pairwise(told))
    assert len(told) > 10
    missing = []
    answer(Parts(json.dumps(ANSWERED), call=call), missing.append)
    assert missing == []
    plain = []
    asking.respond(Parts(["In ", "Bergen", "."], call=False), "Where?", "", 0.2, soon(), plain.append)
    assert plain == ["In", "In Bergen", "In Bergen."]


def test_a_reflection_without_a_score_that_counts_is_not_judged():
    got = asked("reflect", REFLECTED, judge="very good", procedures=["", *"abcdefghij"])
    assert got.answer.judge == -1.0
    assert got.answer.procedures == tuple("abcd")
    assert len(got.faults) == 3
    assert asked("reflect", REFLECTED, judge=-4).answer.judge == 0.0


PARTS = sorted({part for answer in GOOD.values() for part in answer})
ROW = ["id", "text", "quote", "level", "score", "topic", "replaces", "since"]
ODD = [
    None,
    True,
    0,
    -1e300,
    10**400,
    "",
    "a",
    "L2",
    "nan",
    "1e999",
    "[]",
    "\udc80\u202e\0",
    "Bergen",
    "episode-2",
]
odd = st.sampled_from(
    [*ODD, [], {}, [[]], [None, 1, "a", {}], {"": None}, {"episode-2": "inf"}, ["b" * 9_999]]
)
rows = st.lists(st.dictionaries(st.sampled_from(ROW), odd, max_size=4), max_size=3)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(PARTS), odd | rows | rows.map(lambda made: made[0] if made else 3)))
def test_whatever_a_model_answers_there_is_an_answer_or_a_fault(answer):
    for what in GOOD:
        got = ASK[what](Says(json.dumps(answer)))
        assert got.answer is not None or got.faults
        assert all(fault.isprintable() and len(fault) < 400 for fault in got.faults)


def test_a_buffer_larger_than_the_window_is_told_whoever_is_asked():
    buffer = [ShownMemory(f"knowledge-{n}", "L2", "fact " * 200, decay=n / 100) for n in range(100)]
    got = asking.reflect(Says(json.dumps(REFLECTED)), "Where?", "Oslo.", "", buffer, soon())
    assert got.faults[0].startswith("The buffer is larger than the window: ")
    assert "not shown" in got.faults[1]


# --- whose word it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quote", "sender", "trust"),
    [
        ("I moved to Bergen last week", "I moved to Bergen last week", "user", "user"),
        ("Bo likes it in Bergen", "I moved to Bergen", "user", "reported"),
        ("I moved to Bergen last week", "I moved to Bergen last week", "agent", "agent"),
        ("Bo likes it in Bergen", "I moved to Bergen", "material", "material"),
        ("Bergen is wet", "Bergen is wet", "user", "material"),
    ],
)
def test_no_memory_has_more_trust_than_the_message_that_it_rests_on(text, quote, sender, trust):
    span = located(SAID, quote)
    assert trust_of(SAID, Extracted("L2", text, span.start, span.end), sender) == trust


def test_a_memory_of_no_words_is_nobodys():
    assert trust_of(SAID, Extracted("L2", "Bo is rich."), "user") == "material"
    assert [located(SAID, quote) for quote in ("", "…", "Berg", "moved Bergen", "x" * 5_000)] == [None] * 5


# --- over the protocol -----------------------------------------------------------------------------------------------


@pytest.fixture
def client(chat_server):
    return LiteLLMClient("openai/tiny", api_key="sk-0123", api_base=chat_server.base, retries=0)


def test_over_http_an_answer_comes_as_the_call_of_a_tool(chat_server, client):
    chat_server.will_call(("c1", "recognize", json.dumps(RECOGNIZED)))
    got = recognize(client)
    assert got.answer.recognition.memories[0].text == "Bo moved to Bergen."
    assert got.usage == Usage(11, 7, 0.0)
    [request] = chat_server.requests
    assert request["tools"][0]["function"]["name"] == "recognize"
    assert "temperature" not in request


def test_over_http_broken_json_twice_and_a_server_that_fails_are_faults(chat_server, client):
    chat_server.will_call(("c1", "answer", '{"uncertainty": NaN}'))
    chat_server.will_stream({"content": '{"answer": '}, {"finish": "stop"}, {"usage": [11, 7]})
    broken = ASK["answer"](client)
    assert (broken.answer, broken.usage) == (None, Usage(22, 14, 0.0))
    chat_server.will_fail(500, "on fire")
    failed = ASK["answer"](client)
    assert failed.answer is None
    assert "on fire" in failed.faults[0]


def test_over_http_the_arguments_of_a_call_are_told_as_they_arrive(chat_server, client):
    raw = json.dumps({"uncertainty": 0, "missing": [], "answer": "In Bergen.", **RECOGNIZED})
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "answer", "arguments": ""}}
    pieces = [
        {"tool_calls": [{**call, "function": {"name": "answer", "arguments": raw[at : at + 8]}}]}
        for at in range(0, len(raw), 8)
    ]
    chat_server.will_stream(*pieces, {"finish": "tool_calls"}, {"usage": [11, 7]})
    told = []
    assert answer(client, told.append).answer.answer == told[-1] == "In Bergen."
    assert len(told) > 1


def test_over_http_a_model_that_hangs_is_left_at_the_deadline(chat_server, client):
    chat_server.will_say("In Bergen.")
    assert ASK["respond"](client).answer == "In Bergen."
    chat_server.will_hang({"content": "Let me see"})
    got = asking.respond(client, "Where?", "Answer.", 0.7, time.monotonic() + 0.5)
    assert got.answer is None
    assert "did not answer" in got.faults[0]
    late = asking.respond(client, "Where?", "Answer.", 0.7, time.monotonic() - 1)
    assert "in time" in late.faults[0]
    assert len(chat_server.requests) <= 2


def test_over_http_an_answer_is_given_at_its_temperature(chat_server, client):
    chat_server.will_say("In Bergen.")
    got = asking.respond(client, "Where?", "You know: Bergen.", 0.3, soon())
    assert (got.answer, got.usage, got.faults) == ("In Bergen.", Usage(11, 7, 0.0), ())
    [request] = chat_server.requests
    assert request["temperature"] == 0.3
    assert [message["content"] for message in request["messages"]] == ["You know: Bergen.", "Where?"]
    assert client.temperature is None, "the model of others stays as it is"
    chat_server.will_stream({"content": "In Ber"}, {"finish": "length"}, {"usage": [11, 7]})
    cut = asking.respond(client, "Where?", "", 0.3, soon())
    assert (cut.answer, len(cut.faults)) == ("In Ber", 1)


def test_an_answer_of_nothing_is_none():
    got = ASK["respond"](Says(" \n"))
    assert (got.answer, got.usage) == (None, Usage(10, 5, 0.01))
    assert got.faults == ("a/model answered with nothing.",)
