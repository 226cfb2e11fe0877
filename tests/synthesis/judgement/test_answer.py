"""A model's answer is read where it can be, and what cannot is told; nothing but our own error comes out of it."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.judgement.judge_answer import MAX_ENTRIES, read
from agentx.synthesis.judgement.question import TOOL
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from agentx.synthesis.model.structured import MAX_CHARACTERS, AnswerUnreadable

ENTRY = {"message": 1, "quote": "use tabs", "kind": "constraint", "lasting": "yes", "more": 1}
ANSWER = {"found": [ENTRY], "verdicts": [{"id": "c-1", "verdict": "keep"}]}


def reply(text="", *calls):
    tools = tuple(ToolCall("1", name, arguments) for name, arguments in calls)
    return Reply(text, tools, Usage(), "a/model")


@pytest.mark.parametrize(
    "said",
    [
        reply("", (TOOL, json.dumps(ANSWER))),
        reply("Let me see.", ("other", "{"), (TOOL, json.dumps(ANSWER))),
        reply(json.dumps(ANSWER)),
        reply(f"Here it is:\n```json\n{json.dumps(ANSWER, indent=1)}\n```\nDone."),
    ],
)
def test_an_answer_is_the_call_of_the_tool_or_json_in_the_text(said):
    answer = read(said)
    assert [(one.quote, one.lasting) for one in answer.found] == [("use tabs", "yes")]
    assert [(one.id, one.verdict) for one in answer.verdicts] == [("c-1", "keep")]
    assert answer.refused == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I think so.",
        "{",
        "[]",
        "{}",
        '{"found": 1}',
        '{"found": [], "verdicts": {}}',
        "}{",
        '{"a":' * 5_000,
        "x" * (MAX_CHARACTERS + 1),
    ],
    ids=range(10),
)
def test_what_is_no_answer_is_said_in_a_sentence(text):
    with pytest.raises(AnswerUnreadable) as error:
        read(reply(text))
    assert len(str(error.value)) < 200
    assert "a/model" in str(error.value)


def test_a_broken_entry_costs_no_other():
    broken = [
        {**ENTRY, "kind": "law"},
        {**ENTRY, "quote": 7},
        "x" * 10_000,
        None,
        {},
        {**ENTRY, "message": "one"},
    ]
    answer = read(reply(json.dumps({"found": [*broken, ENTRY]})))
    assert len(answer.found) == 1
    assert len(answer.refused) == len(broken)
    assert all(len(one.what) <= 80 and one.what.isprintable() for one in answer.refused)


def test_ten_thousand_entries_are_bounded_and_counted():
    answer = read(reply(json.dumps({"found": [{"message": 1}] * 10_000})))
    assert (len(answer.refused), answer.beyond) == (MAX_ENTRIES, 10_000 - MAX_ENTRIES)


@given(
    st.one_of(
        st.text(), st.recursive(st.none() | st.text(), st.lists).map(lambda x: json.dumps({"found": x}))
    )
)
def test_any_text_is_an_answer_or_our_own_error(text):
    with contextlib.suppress(AnswerUnreadable):
        assert len(read(reply(text)).refused) <= MAX_ENTRIES
