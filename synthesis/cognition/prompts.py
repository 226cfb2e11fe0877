"""Build the prompts of the cognition loop: a versioned instruction file, then the content in sections.

Text of others is put on one line after a dash, or on lines after ``>``, so that it cannot pass for a section.
"""

from collections.abc import Iterable, Sequence

import msgspec

from agentx.storage.events.cognition_events import Level
from agentx.storage.text import clip, one_line, plain
from agentx.synthesis.language.dates import with_dates
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.structured import parameters, prompt

RECOGNIZE, ASSESS, EXPAND, CURATE, REFLECT = "recognize", "assess", "expand", "curate", "reflect"
"""The questions to a model, which are also the names of the answering tools; calling a tool runs nothing."""

VERSION = 1
"""Version of the instruction files; a file whose text changes gets the next number in its name."""

WINDOW_TOKENS = 16_000
"""Maximum tokens of the buffer that are shown to a model."""

MEMORY_CHARACTERS = 1_200
MESSAGE_CHARACTERS = 16_000
EXCHANGE_CHARACTERS = 600
SUMMARY_CHARACTERS = 300
MAX_TOPICS = 50

_ABOUT = {
    RECOGNIZE: "Record of which kind a message is and what of it is to be remembered.",
    ASSESS: "Record whether the memories at hand are enough for the answer.",
    EXPAND: "Record what is to be looked up.",
    CURATE: "Record which memories the answer needs.",
    REFLECT: "Record what is to be learned of an answer.",
}
_LEVELS: tuple[tuple[Level, str], ...] = (
    ("L1", "How things are done, and what was talked of"),
    ("L2", "What is known"),
    ("L3", "What happened"),
)


class ShownMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory as shown to a model.

    Attributes:
        decay: Decay score, from 0 to 1; if there is not enough room, memories with the lowest scores are
            omitted.
        topic: Id of its topic.
        at: Since when it is true, as far as known: date and time in ISO 8601, up to the minute.
        until: When it ceased to be true; empty while it is true.
        by: Who said it; empty if nobody is named.
        was: The text of the memory that it took the place of; empty for none. No model is shown it.
    """

    id: str
    level: Level
    text: str
    decay: float = 1.0
    topic: str = ""
    at: str = ""
    until: str = ""
    by: str = ""
    was: str = ""


class Topic(msgspec.Struct, frozen=True):
    """A topic: the id of its item, and its summary."""

    id: str
    summary: str


class Exchange(msgspec.Struct, frozen=True):
    """A K-entry in words: the user's message and the answer."""

    message: str
    answer: str = ""


def fitting(
    buffer: Sequence[ShownMemory], max_tokens: int = WINDOW_TOKENS
) -> tuple[tuple[ShownMemory, ...], str]:
    """Return the memories that fit, in order, and a sentence about the omitted ones, if any.

    Those with the lowest decay scores are omitted.

    >>> fitting([ShownMemory("knowledge-1", "L2", "The cat is called Tom.")])[1]
    ''
    """
    alive = sorted(range(len(buffer)), key=lambda place: -buffer[place].decay)
    kept: list[int] = []
    left = max_tokens
    for place in alive:
        left -= tokens_of(buffer[place])
        if left < 0:
            break
        kept.append(place)
    out = len(buffer) - len(kept)
    fault = (
        f"The buffer is larger than the window: {out:,} of its {len(buffer):,} memories were left out, "
        "the least alive."
    )
    return tuple(buffer[place] for place in sorted(kept)), fault if out else ""


def tokens_of(memory: ShownMemory) -> int:
    """Count the tokens of a memory in a prompt."""
    return count_tokens(_memory(memory))


def shape(asked: str) -> ToolSchema:
    """Return the schema of an answer, as a tool."""
    return ToolSchema(asked, _ABOUT[asked], parameters(f"cognition-{asked}-v{VERSION}.json"))


def repair() -> str:
    """Return the message for an unreadable answer, with ``{error}`` for the fault."""
    return prompt(f"cognition-repair-v{VERSION}.md")


def recognize(
    said: str, buffer: Sequence[ShownMemory], topics: Sequence[Topic], response: str
) -> list[ChatMessage]:
    """Build the question about the type of a message; the latest :data:`MAX_TOPICS` topics are shown."""
    listed = [f"- [{topic.id}] {one_line(topic.summary)[:SUMMARY_CHARACTERS]}" for topic in topics]
    return _asked(
        RECOGNIZE,
        ("Topics", listed[-MAX_TOPICS:]),
        ("Memories", map(_memory, buffer)),
        ("What the agent answered last", _quoted(response)),
        ("Message", _quoted(said)),
    )


def about(
    asked: str,
    question: str,
    memories: Sequence[ShownMemory],
    *,
    answer: str | None = None,
    room: int | None = None,
) -> list[ChatMessage]:
    """Build a question about memories: whether they suffice, what to look up, to keep or to learn.

    ``answer`` is the one to learn from, ``room`` the token budget of the memories to keep.
    """
    parts: list[tuple[str, Iterable[str]]] = [("Question", _quoted(question))]
    if room is not None:
        needed = sum(map(tokens_of, memories))
        parts.append(("Room", [f"{room:,} tokens; all of the memories take {needed:,}."]))
    if answer is not None:
        parts.append(("Answer", _quoted(answer)))
    return _asked(asked, *parts, ("Memories", map(_memory, memories)))


def response(buffer: Sequence[ShownMemory], recent: Sequence[Exchange], demands: Sequence[str]) -> str:
    """Build the prompt for answering a message; empty sections are left out.

    All given memories are included (see :func:`fitting`), with a section for each level. Interactions come
    oldest first.
    """
    turns = [turn for one in recent for turn in (("User", one.message), ("You", one.answer))]
    spoken = [(who, clip(one_line(text), EXCHANGE_CHARACTERS)) for who, text in turns]
    parts: list[tuple[str, Iterable[str]]] = [
        ("What the user demands", [f"- {one_line(demand)}" for demand in demands]),
        *(
            (
                title,
                [f"- {_dated(one)}" for one in sorted(buffer, key=lambda one: one.at) if one.level == level],
            )
            for level, title in _LEVELS
        ),
        ("The conversation so far", [f"- {who}: {text}" for who, text in spoken if text or who == "User"]),
    ]
    return "\n\n".join([prompt(f"cognition-respond-v{VERSION}.md").rstrip(), *_sections(parts, empty="")])


def _asked(asked: str, *parts: tuple[str, Iterable[str]]) -> list[ChatMessage]:
    instructions = prompt(f"cognition-{asked}-v{VERSION}.md")
    matter = "\n\n".join(_sections(parts, empty="None."))
    return [ChatMessage("system", instructions), ChatMessage("user", matter)]


def _sections(parts: Iterable[tuple[str, Iterable[str]]], empty: str) -> Iterable[str]:
    return (f"## {title}\n{body}" for title, lines in parts if (body := "\n".join(lines) or empty))


def _memory(memory: ShownMemory) -> str:
    marks = " ".join(filter(None, (memory.level, memory.topic)))
    return f"- [{memory.id}] ({marks}) {_dated(memory)}"


def _dated(memory: ShownMemory) -> str:
    """Return a memory after its time and speaker, with the date beside words such as "yesterday"."""
    text = clip(with_dates(one_line(memory.text), memory.at), MEMORY_CHARACTERS)
    by = "" if text.startswith(f"{memory.by}:") else memory.by  # a turn may begin with its speaker's name
    when = memory.at.replace("T", " ") + (f" until {memory.until.replace('T', ' ')}" if memory.until else "")
    return ": ".join([one_line(part) for part in (when, by) if part] + [text])


def _quoted(text: str) -> list[str]:
    shown = clip(plain(text).strip(), MESSAGE_CHARACTERS)
    return [f"> {line}".rstrip() for line in shown.split("\n")] if shown else []
