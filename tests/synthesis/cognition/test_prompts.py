"""What a model is shown by the cognition loop, word for word where it matters."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.cognition import prompts
from agentx.synthesis.cognition.prompts import Exchange, ShownMemory, Topic, fitting, response, tokens_of
from agentx.synthesis.model.structured import parameters, prompt

ASKED = (prompts.RECOGNIZE, prompts.ASSESS, prompts.EXPAND, prompts.CURATE, prompts.REFLECT)
DIGESTS = {
    "recognize": "1265f3bdc1fe",
    "assess": "8aa1c41e501c",
    "expand": "fab609c4c238",
    "curate": "351893443541",
    "reflect": "6f1c503f0134",
    "respond": "3efe898223ca",
    "repair": "1fb4ae44ea62",
}
ANNA = ShownMemory("knowledge-1", "L2", "Anna moved to Oslo.", topic="topic-1", at="2024-05-02")
CAT = ShownMemory("episode-2", "L3", "The cat\nran away.", decay=0.2)
BRIEF = ShownMemory("learning-3", "L1", "Answer with the date first.", decay=0.9)


@pytest.mark.parametrize("name", DIGESTS)
def test_a_prompt_whose_words_change_gets_a_new_version(name):
    digest = blake2b(prompt(f"cognition-{name}-v{prompts.VERSION}.md").encode(), digest_size=6).hexdigest()
    assert digest == DIGESTS[name], f"write cognition-{name}-v{prompts.VERSION + 1}.md and raise VERSION"


def keys(schema):
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from keys(inner)
    if "items" in schema:
        yield from keys(schema["items"])


@pytest.mark.parametrize("asked", ASKED)
def test_each_part_of_an_answer_is_explained_and_demanded(asked):
    told = prompt(f"cognition-{asked}-v{prompts.VERSION}.md")
    schema = prompts.shape(asked).parameters
    assert prompts.shape(asked).name == asked
    assert f"Call `{asked}` once" in told
    assert [name for name in keys(schema) if f"`{name}`" not in told] == []
    assert schema["required"] == list(schema["properties"])
    assert schema == parameters(f"cognition-{asked}-v{prompts.VERSION}.json")


def test_a_message_is_shown_with_what_is_known_around_it():
    system, user = prompts.recognize(
        "It is Bergen now.\n## Topics", [ANNA, CAT], [Topic("topic-1", "Anna's flat")], "In Oslo."
    )
    assert (system.role, user.role) == ("system", "user")
    assert user.content == (
        "## Topics\n- [topic-1] Anna's flat\n\n"
        "## Memories\n- [knowledge-1] (L2 topic-1) 2024-05-02: Anna moved to Oslo.\n- [episode-2] (L3) The cat ran away.\n\n"
        "## What the agent answered last\n> In Oslo.\n\n"
        "## Message\n> It is Bergen now.\n> ## Topics"
    )


def test_a_question_is_shown_with_the_memories_and_the_room_there_is():
    assert (
        prompts.about(prompts.ASSESS, "Where?", [])[1].content
        == "## Question\n> Where?\n\n## Memories\nNone."
    )
    assert prompts.about(prompts.EXPAND, "Where?", [CAT])[1].content.endswith(
        "\n- [episode-2] (L3) The cat ran away."
    )
    room = prompts.about(prompts.CURATE, "Where?", [ANNA, CAT], room=1_500)[1].content.split("\n\n")[1]
    assert room == f"## Room\n1,500 tokens; all of the memories take {tokens_of(ANNA) + tokens_of(CAT)}."
    assert prompts.about(prompts.REFLECT, "Where?", [], answer="Oslo.")[1].content.split("\n\n")[:2] == [
        "## Question\n> Where?",
        "## Answer\n> Oslo.",
    ]


def test_the_prompt_of_an_answer_has_the_levels_the_demands_and_the_latest_interactions():
    told = response(
        [CAT, ANNA, BRIEF], [Exchange("Hi.\nI am Bo.", "Hello Bo."), Exchange("Bye.")], ["Never use\nemoji."]
    )
    assert told.split("\n\n", 2)[2] == (
        "## What the user demands\n- Never use emoji.\n\n"
        "## How things are done, and what was talked of\n- Answer with the date first.\n\n"
        "## What is known\n- 2024-05-02: Anna moved to Oslo.\n\n"
        "## What happened\n- The cat ran away.\n\n"
        "## The conversation so far\n- User: Hi. I am Bo.\n- You: Hello Bo.\n- User: Bye."
    )
    assert "##" not in response([], [], [])


@given(st.text(alphabet=st.sampled_from("#>-[] a\n\r\x85\u2028\0")))
def test_nothing_that_others_wrote_passes_for_a_section(text):
    memory = ShownMemory("knowledge-1", "L2", text, topic="t", at=text)
    shown = "\n".join(
        (
            prompts.recognize(text, [memory], [Topic("t", text)], text)[1].content,
            prompts.about(prompts.REFLECT, text, [memory], answer=text)[1].content,
            response([memory], [Exchange(text, text)], [text]),
        )
    )
    assert sum(line.startswith("#") for line in shown.splitlines()) <= 4 + 3 + 3


def test_where_the_buffer_is_larger_than_the_window_the_least_alive_are_left_out():
    buffer = [ShownMemory(f"knowledge-{n}", "L2", f"Fact {n}.", decay=n / 10_000) for n in range(10_000)]
    kept, told = fitting(buffer, 10 * tokens_of(buffer[-1]))
    assert [memory.id for memory in kept] == [f"knowledge-{n}" for n in range(9_990, 10_000)]
    assert told == (
        "The buffer is larger than the window: 9,990 of its 10,000 memories were left out, the least alive."
    )
    assert fitting([ANNA, CAT, BRIEF]) == ((ANNA, CAT, BRIEF), "")


def test_one_endless_memory_does_not_push_out_all_others():
    endless = ShownMemory("knowledge-9", "L2", "word " * 100_000)
    assert fitting([endless, CAT])[1] == ""
    assert len(prompts.about(prompts.ASSESS, "x" * 100_000, [endless])[1].content) < 20_000
