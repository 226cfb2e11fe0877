"""Build the prompts of the cognition loop: a versioned instruction file, then the content in sections.

Text of others is put on one line after a dash, or on lines after ``>``, so that it cannot pass for a section.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agentx.storage.events.cognition_events import Level
from agentx.storage.text import clip, one_line, plain
from agentx.synthesis.language.dates import with_dates
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.structured import parameters, prompt

ANSWER, RECOGNIZE, REFLECT = "answer", "recognize", "reflect"
"""The questions to a model, which are also the names of the answering tools; calling a tool runs nothing."""

RECOGNIZED, ASSESSED = "recognized", "assessed"
"""Parts of an answer that are described, and shaped, in files of their own."""

VERSIONS = {ANSWER: 1, RECOGNIZE: 2, REFLECT: 2, RECOGNIZED: 1, ASSESSED: 1, "respond": 2, "repair": 1}
"""Versions of the instruction files; a file whose text changes gets the next number in its name."""

WINDOW_TOKENS = 16_000
"""Maximum tokens of the buffer that are shown to a model."""

MEMORY_CHARACTERS = 1_200
MESSAGE_CHARACTERS = 16_000
EXCHANGE_CHARACTERS = 600
SUMMARY_CHARACTERS = 300
MAX_TOPICS = 12
"""Maximum number of topics that are shown, the latest."""

_ABOUT = {
    ANSWER: "Answer, and record what to remember.",
    RECOGNIZE: "Record of which kind a message is and what of it is to be remembered.",
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
    """

    id: str
    level: Level
    text: str
    decay: float = 1.0
    topic: str = ""
    at: str = ""
    until: str = ""
    by: str = ""


class Topic(msgspec.Struct, frozen=True):
    """A topic: the id of its item, and its summary."""

    id: str
    summary: str


class Exchange(msgspec.Struct, frozen=True):
    """A K-entry in words: the user's message and the answer.

    Attributes:
        at: The date of the message, formatted for display.
        ids: The memories that rest on the message; they are not shown a second time.
        alike: Other memories that rest on it and have the text of one of ``ids``.
    """

    message: str
    answer: str = ""
    at: str = ""
    ids: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is shown about a message.

    Attributes:
        memories: All of these are shown (see :func:`fitting`).
        recent: Interactions, oldest first.
        topics: Oldest first; the latest :data:`MAX_TOPICS` are shown.
        demands: What the user demands.
        today: The date of the message, formatted for display.
    """

    memories: Sequence[ShownMemory] = ()
    recent: Sequence[Exchange] = ()
    topics: Sequence[Topic] = ()
    demands: Sequence[str] = ()
    today: str = ""


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


def shape(asked: str, *parts: str) -> ToolSchema:
    """Return the schema of an answer, as a tool; ``parts`` are those described in files of their own."""
    if asked == REFLECT:
        return ToolSchema(asked, _ABOUT[asked], parameters(_file(asked, "json")))
    properties = parameters(_file(ASSESSED, "json")) if ASSESSED in parts else {}
    properties |= {ANSWER: {"type": "string"}} if asked == ANSWER else {}
    properties |= parameters(_file(RECOGNIZED, "json")) if RECOGNIZED in parts else {}
    return ToolSchema(
        asked, _ABOUT[asked], {"type": "object", "properties": properties, "required": list(properties)}
    )


def repair() -> str:
    """Return the message for an unreadable answer, with ``{error}`` for the fault."""
    return prompt(_file("repair"))


def message(asked: str, said: str, shown: Shown, *parts: str) -> list[ChatMessage]:
    """Build the question about a message: what is to be answered, or to be remembered of it.

    The parts of the answer are those of :func:`shape`.
    """
    instructions = [prompt(_file(name)).rstrip() for name in (asked, *parts)]
    listed = [
        f"- [{topic.id}] {one_line(topic.summary)[:SUMMARY_CHARACTERS]}"
        for topic in (shown.topics if RECOGNIZED in parts else ())
    ]
    matter = [
        ("Topics", listed[-MAX_TOPICS:]),
        *_known(shown, ids=True),
        ("Message", _quoted(said)),
    ]
    return [
        ChatMessage("system", f"{instructions[0]}\n" + "\n".join(instructions[1:])),
        ChatMessage("user", "\n\n".join(_sections(matter, empty=""))),
    ]


def reflection(question: str, answer: str, said: str, memories: Sequence[ShownMemory]) -> list[ChatMessage]:
    """Build the question what to learn from an answer, of which the user may have said something."""
    parts: list[tuple[str, Iterable[str]]] = [("Question", _quoted(question)), ("Answer", _quoted(answer))]
    parts += [("What the user said of it", _quoted(said))] if said else []
    matter = "\n\n".join(_sections([*parts, ("Memories", map(_memory, memories))], empty="None."))
    return [ChatMessage("system", prompt(_file(REFLECT))), ChatMessage("user", matter)]


def response(shown: Shown) -> str:
    """Build the system prompt for answering a message in plain text; empty sections are left out."""
    return "\n\n".join([prompt(_file("respond")).rstrip(), *_sections(_known(shown), empty="")])


def _file(name: str, suffix: str = "md") -> str:
    return f"cognition-{name}-v{VERSIONS[name]}.{suffix}"


def _known(shown: Shown, *, ids: bool = False) -> list[tuple[str, Iterable[str]]]:
    """Return the sections of what is known, with a section for each level of memories."""
    told = {name for one in shown.recent for name in (*one.ids, *one.alike)}
    told |= {topic.id for topic in shown.topics} if ids else set()
    rest = sorted((one for one in shown.memories if one.id not in told), key=lambda one: one.at)
    return [
        ("Today", [f"- {one_line(shown.today)}"] if shown.today else []),
        ("What the user demands", [f"- {one_line(demand)}" for demand in shown.demands]),
        *(
            (
                title,
                [
                    f"- [{one.id}] {_dated(one)}" if ids else f"- {_dated(one)}"
                    for one in rest
                    if one.level == level
                ],
            )
            for level, title in _LEVELS
        ),
        ("The conversation so far", _spoken(shown.recent, ids=ids)),
    ]


def _spoken(recent: Sequence[Exchange], *, ids: bool) -> Iterator[str]:
    """Yield the lines of a conversation, with each date once."""
    day = ""
    for one in recent:
        if one.at and one.at != day:
            day = one.at
            yield f"- {one_line(day)}:"
        marks = f" [{' '.join(one.ids)}]" if ids and one.ids else ""
        yield f"- User{marks}: {clip(with_dates(one_line(one.message), one.at), EXCHANGE_CHARACTERS)}"
        if answer := one_line(one.answer):
            yield f"- You: {clip(answer, EXCHANGE_CHARACTERS)}"


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
