"""What a model is shown by the cognition loop, word for word where it matters."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.cognition import prompts
from agentx.synthesis.cognition.prompts import (
    Exchange,
    Shown,
    ShownMemory,
    Topic,
    fitting,
    response,
    tokens_of,
)
from agentx.synthesis.model.structured import prompt

ASKED = (
    (prompts.ANSWER, prompts.RECOGNIZED),
    (prompts.ANSWER, prompts.ASSESSED, prompts.RECOGNIZED),
    (prompts.ANSWER, prompts.ASSESSED),
    (prompts.RECOGNIZE, prompts.ASSESSED, prompts.RECOGNIZED),
    (prompts.REFLECT,),
)
DIGESTS = {
    "answer": "31c646f8dfa9",
    "recognize": "77df9505842f",
    "recognized": "dd2e4722dff8",
    "assessed": "87b4a150e75a",
    "reflect": "70a9e0bdb94e",
    "respond": "2ba65afc9887",
    "repair": "1fb4ae44ea62",
}
ANNA = ShownMemory("knowledge-1", "L2", "Anna moved to Oslo.", topic="topic-1", at="2024-05-02")
CAT = ShownMemory("episode-2", "L3", "The cat\nran away.", decay=0.2)
BRIEF = ShownMemory("learning-3", "L1", "Answer with the date first.", decay=0.9)


@pytest.mark.parametrize("name", DIGESTS)
def test_a_prompt_whose_words_change_gets_a_new_version(name):
    version = prompts.VERSIONS[name]
    digest = blake2b(prompt(f"cognition-{name}-v{version}.md").encode(), digest_size=6).hexdigest()
    assert digest == DIGESTS[name], f"write cognition-{name}-v{version + 1}.md and raise its version"


def keys(schema):
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from keys(inner)
    if "items" in schema:
        yield from keys(schema["items"])


@pytest.mark.parametrize("asked", ASKED)
def test_each_part_of_an_answer_is_explained_and_demanded(asked):
    what = asked[0]
    if what == prompts.REFLECT:
        told = prompts.reflection("Who?", "Bo.", "", [])[0].content
    else:
        told = prompts.message(what, "Who?", Shown(), *asked[1:])[0].content
    schema = prompts.shape(*asked).parameters
    assert prompts.shape(*asked).name == what
    assert f"Call `{what}` once" in told
    assert [name for name in keys(schema) if f"`{name}`" not in told] == []
    assert schema["required"] == list(schema["properties"])
    assert ("`uncertainty`" in told) == (prompts.ASSESSED in asked)


def test_a_message_is_shown_with_what_is_known_around_it_and_nothing_twice():
    shown = Shown(
        memories=[ANNA, CAT, BRIEF],
        recent=[
            Exchange("The cat\nran away.", "I see.", at="2024-05-01", ids=("episode-2",)),
            Exchange("Where is Anna?", "In Oslo.", at="2024-05-01"),
            Exchange("Thanks.", at="2024-05-02"),
        ],
        topics=[Topic("topic-1", "Anna's flat")],
        demands=["Never use\nemoji."],
        today="2024-05-03",
    )
    said = "It is Bergen now.\n## Topics"
    system, user = prompts.message(prompts.ANSWER, said, shown, prompts.RECOGNIZED)
    assert (system.role, user.role) == ("system", "user")
    assert user.content == (
        "## Topics\n- [topic-1] Anna's flat\n\n"
        "## Today\n- 2024-05-03\n\n"
        "## What the user demands\n- Never use emoji.\n\n"
        "## How things are done, and what was talked of\n- [learning-3] Answer with the date first.\n\n"
        "## What is known\n- [knowledge-1] 2024-05-02: Anna moved to Oslo.\n\n"
        "## The conversation so far\n- 2024-05-01:\n"
        "- User [episode-2]: The cat ran away.\n- You: I see.\n- User: Where is Anna?\n- You: In Oslo.\n"
        "- 2024-05-02:\n- User: Thanks.\n\n"
        "## Message\n> It is Bergen now.\n> ## Topics"
    )
    without = prompts.message(prompts.ANSWER, said, shown, prompts.ASSESSED)[1].content
    assert "## Topics\n-" not in without


def test_an_answer_is_looked_back_at_with_what_was_said_of_it():
    parts = prompts.reflection("Where?", "Oslo.", "No, Bergen.", [CAT])[1].content.split("\n\n")
    assert parts == [
        "## Question\n> Where?",
        "## Answer\n> Oslo.",
        "## What the user said of it\n> No, Bergen.",
        "## Memories\n- [episode-2] (L3) The cat ran away.",
    ]


def test_the_prompt_of_an_answer_has_the_levels_the_demands_and_the_latest_interactions():
    recent = [Exchange("Hi.\nI am Bo.", "Hello Bo."), Exchange("Bye.")]
    told = response(Shown(memories=[CAT, ANNA, BRIEF], recent=recent, demands=["Never use\nemoji."]))
    assert told.split("\n\n", 2)[2] == (
        "## What the user demands\n- Never use emoji.\n\n"
        "## How things are done, and what was talked of\n- Answer with the date first.\n\n"
        "## What is known\n- 2024-05-02: Anna moved to Oslo.\n\n"
        "## What happened\n- The cat ran away.\n\n"
        "## The conversation so far\n- User: Hi. I am Bo.\n- You: Hello Bo.\n- User: Bye."
    )
    assert "##" not in response(Shown())


@given(st.text(alphabet=st.sampled_from("#>-[] a\n\r\x85\u2028\0")))
def test_nothing_that_others_wrote_passes_for_a_section(text):
    memory = ShownMemory("knowledge-1", "L2", text, topic="t", at=text)
    shown = Shown(
        memories=[memory],
        recent=[Exchange(text, text, at=text, ids=("k",))],
        topics=[Topic("t", text)],
        demands=[text],
        today=text,
    )
    asked = prompts.message(prompts.ANSWER, text, shown, prompts.RECOGNIZED)[1].content
    reflected = prompts.reflection(text, text, text, [memory])[1].content
    texts = "\n".join((asked, reflected, response(shown)))
    assert sum(line.startswith("#") for line in texts.splitlines()) <= 6 + 4 + 4


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
    assert len(prompts.message(prompts.ANSWER, "x" * 100_000, Shown(memories=[endless]))[1].content) < 20_000


def test_memories_are_shown_by_time_with_the_date_beside_relative_words():
    later = ShownMemory("k-2", "L2", "The gig is tomorrow.", at="2026-06-01T09:30")
    earlier = ShownMemory("k-1", "L2", "The gig is off.", at="2026-06-01T08:15", until="2026-06-01T09:30")
    spoken = Exchange("We met yesterday.", at="2026-06-03")
    shown = prompts.response(prompts.Shown(memories=[later, earlier], recent=[spoken], today="2026-06-03"))
    assert shown.index("The gig is off.") < shown.index("2026-06-01 09:30: The gig is tomorrow (2026-06-02).")
    assert "2026-06-01 08:15 until 2026-06-01 09:30: The gig is off." in shown
    assert "We met yesterday (2026-06-02)." in shown
