"""Renders a text for an agent: its items, what was left out, and how each thing is shown on a line.

Whatever a user, a model or a tool wrote is put on one line, or in a fence that it cannot close, so that it
cannot pose as a section.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.engine.daily_recap import Told
from agentx.search.event_chunks import place
from agentx.storage.events.types import ContextProvided, Followed
from agentx.storage.text import one_line, shorten
from agentx.synthesis.language.tokens import BYTES_PER_TOKEN, count_tokens, cut
from agentx.synthesis.memory.items import (
    CONTRARY,
    ConstraintDetail,
    FlowDetail,
    HotIssueDetail,
    MemoryItem,
    followed_from,
    is_shown_only,
    sort_of,
)
from agentx.synthesis.memory.policies import Section
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.flow_lessons import Lessons
from agentx.synthesis.state.flows import told as record_of
from agentx.synthesis.state.rule_lifecycle import is_critical
from agentx.synthesis.state.state import Message, PendingCall, RunRecord

_MESSAGE_TOKENS = 1_000
"""Maximum size of a message; those in the state have at most 2,000 characters."""

_CHECK_TOKENS = 30
_QUOTE_WORDS = 25
"""Maximum number of words of a quote beside an item."""

_FRAME_TOKENS = 40
"""Above it, the place of a passage is not read to tell whether there may be room for it."""

_MARKS, _MARKS_OF_MEMORY = 2, 4
"""Tokens of the marks around a passage or a memory item, at least."""

_ASCII_PIECES = re.compile("[A-Za-z]+|[0-9]{1,3}|[^A-Za-z0-9](?=[0-9])")
"""What is at least one token each, in a text of ASCII."""

_MEMORY = ("mission", "rules", "rejections", "problems", "state", "flow")
"""Sections of a context whose items come from memory."""


class ContextItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a context.

    Attributes:
        id: Id of the memory item, the chunk or the message (``event-12``).
        kind: Its kind: a memory kind, the origin of a chunk, or ``message``.
        section: Its section.
        text: Its text as shown.
        source: The event, or path and lines, that it comes from.
        why: One sentence on why it is shown.
    """

    id: str
    kind: str
    section: Section
    text: str
    source: str
    why: str
    tokens: int


def unmarked(text: str) -> str:
    """Return the text of an item on one line, without its ID and the marks around it."""
    lines = [line for line in text.splitlines() if not line.startswith(("### ", "```", "~~~"))]
    shown = one_line(" ".join(lines)).removeprefix("- ")
    return shown.partition("] ")[2] if shown.startswith("[") else shown


class Omitted(msgspec.Struct, frozen=True, kw_only=True):
    """An item that was left out, and why."""

    id: str
    kind: str
    text: str
    reason: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A context as an agent is shown it.

    Attributes:
        text: All of it, as Markdown.
        items: Its items, in order.
        omitted: What was left out, with the reason.
        tokens: Number of tokens in ``text``.
        max_tokens: The token budget.
        seq: The last event of the state that it shows.
        tier: The tier that was given.
        asked: The requested tier, if it was higher; 0 otherwise.
        late: What a deadline cut off: ``lock``, ``search``, ``recap``, ``log:`` and the number of its lines
            that were read.
        replays: The ``ContextProvided`` event that it replays; 0 for a new context.
        exact: For a replay: whether ``text`` is byte for byte what was shown.
        followed: The workspaces whose rules it shows besides its own.
    """

    text: str
    items: tuple[ContextItem, ...]
    omitted: tuple[Omitted, ...]
    tokens: int
    max_tokens: int
    seq: int
    tier: int = 0
    asked: int = 0
    late: tuple[str, ...] = ()
    replays: int = 0
    exact: bool = False
    followed: tuple[Followed, ...] = ()

    @property
    def digest(self) -> str:
        """Hex blake2b-128 of ``text``; proves that a replay is the same to the byte."""
        return blake2b(self.text.encode(), digest_size=16).hexdigest()

    @property
    def recalled(self) -> tuple[str, ...]:
        """Ids of the recalled passages."""
        return tuple(item.id for item in self.items if item.section == "recalled")


def provided(context: Context) -> ContextProvided:
    """Return the record of what an agent is shown, from which it can be assembled again."""
    return ContextProvided(
        items=tuple(item.id for item in context.items if item.section in _MEMORY),
        recalled=context.recalled,
        tokens=context.tokens,
        max_tokens=context.max_tokens,
        omitted=len(context.omitted),
        as_of=context.seq,
        tier=context.tier,
        asked=context.asked,
        late=context.late,
        digest=context.digest,
        followed=context.followed,
    )


# --- the form of each item ------------------------------------------------------------------------


def reworded(item: ContextItem, text: str, **fields: Any) -> ContextItem:
    """Return an item with another text, its tokens counted, and other fields."""
    return msgspec.structs.replace(item, text=text, tokens=count_tokens(text + "\n"), **fields)


def _item(text: str, **fields: Any) -> ContextItem:
    return ContextItem(text=text, tokens=count_tokens(text + "\n"), **fields)


def memory_line(item: MemoryItem, section: Section, message: str, *, brief: bool = False) -> ContextItem:
    """Render a memory item on a line with its id, if ``brief`` in its short form.

    The message that the context is for explains why the item is shown.
    """
    return _line_of(_Same(item), section, message if item.scope.topic else "", brief)


class _Same:
    """An item as a key: itself, not one that is equal, which takes longer to tell."""

    __slots__ = ("item",)

    def __init__(self, item: MemoryItem) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.item is self.item


@lru_cache(maxsize=1 << 13)
def _line_of(same: _Same, section: Section, message: str, brief: bool) -> ContextItem:  # noqa: FBT001
    """Render with a cache: most items are the same at each step of an agent."""
    item = same.item
    text = (item.short or shorten(item.text)) if brief else item.text
    whose = f" (the mission of {on_one_line(item.agent)})" if item.kind == "north_star" and item.agent else ""
    line = f"- [{item.id}] {on_one_line(text)}{whose}{marks(item)}"
    reason = why(item, message)
    return _item(line, id=item.id, kind=sort_of(item), section=section, source=source(item), why=reason)


def collapsed(issues: Sequence[MemoryItem]) -> list[ContextItem]:
    """Render failing checks in one line for each runner, naming the most urgent ones."""
    by_runner: dict[str, list[tuple[MemoryItem, str]]] = {}
    for item in issues:
        if isinstance(item.detail, HotIssueDetail):
            by_runner.setdefault(item.detail.runner, []).append((item, item.detail.check))
    lines = []
    for runner, found in by_runner.items():
        names = [cut(on_one_line(check), _CHECK_TOKENS) for _, check in found[:2]]
        what = "fail or are not run" if any(_is_silenced(item) for item, _ in found) else "fail"
        lines.append(
            _item(
                f"- {on_one_line(runner)}: {len(found)} checks {what}, like {' and '.join(names)}",
                id=f"runner-{runner}",
                kind="hot_issue",
                section="problems",
                source=source(found[0][0]),
                why="the checks still fail",
            )
        )
    return lines


def by_weight(items: Iterable[MemoryItem]) -> list[MemoryItem]:
    """Sort demands before preferences, oldest first: an order that a new item does not disturb."""

    def preferred(item: MemoryItem) -> bool:
        return isinstance(item.detail, ConstraintDetail) and item.detail.modality == "prefer"

    return sorted(items, key=lambda item: (not item.pinned, preferred(item), item.created_seq, item.id))


def in_scope(item: MemoryItem, message: str) -> bool:
    """Return whether an item's scope admits the message: no topic, or one of its words in the message."""
    if not item.scope.topic:
        return True
    words = {word.strip(".,;:!?'\"()").lower() for word in message.split()}
    topic = {
        word.removesuffix("'s")
        for word in item.scope.topic.lower().split()
        if len(word) > 3  # noqa: PLR2004
    }
    return any(word.removesuffix("'s") in topic for word in words)


def flow_text(item: MemoryItem, lessons: Lessons) -> str:
    """Render a flow: its name, its record, and its steps, each after the lessons that concern it."""
    head = f"- [{item.id}] {on_one_line(item.text)}"
    if not isinstance(item.detail, FlowDetail):
        return head
    approval = "; ask the user for approval before you begin" if item.detail.needs_approval else ""
    steps = (
        line
        for number, step in enumerate(item.detail.steps, start=1)
        for line in (
            *(f"  before {number}: [{one.id}] {on_one_line(one.text)}" for one in lessons.get(number, ())),
            f"  {number}. {on_one_line(step)}",
        )
    )
    record = record_of(item.detail)
    works = "" if record == "never used" else "works in "
    return "\n".join((f"{head} ({works}{record}{approval})", *steps))


def marks(item: MemoryItem) -> str:
    """Return what an agent must know besides the text: until when, in whose words, what may have ended it.

    A rule that no check enforces is marked as shown only.
    """
    notes = [_duration(item), _origin(item)]
    if item.worded_by and item.evidence:
        notes.append(f"the user: {_quoted(item.evidence[0].quote)}")
    if item.perhaps_ended_by:
        notes.append(f"perhaps ended by {_quoted(item.perhaps_ended_by[-1].quote)}")
    if is_shown_only(item):
        notes.append("shown only")
    notes += [f"contrary to {link.target}" for link in item.links if link.relation == CONTRARY]
    return "".join(f" ({note})" for note in notes if note)


def _origin(item: MemoryItem) -> str:
    """Return where a rule of a followed workspace comes from, with the user's words if its text differs."""
    source = followed_from(item).partition(" (")[0]
    quote = item.evidence[0].quote if source and item.evidence and not item.worded_by else ""
    same = on_one_line(quote).strip(" .") == on_one_line(item.text).strip(" .")
    return f"from {source}: {_quoted(quote)}" if quote and not same else f"from {source}" if source else ""


def _duration(item: MemoryItem) -> str:
    if not isinstance(item.detail, ConstraintDetail):
        return ""
    until = on_one_line(item.until).removeprefix("until ")
    if until:
        return "" if until.lower() in item.text.lower() else f"until {until}"
    lasts = item.detail.duration != "for_now" or "for now" in item.text.lower()
    return "" if lasts else "for now"


def _quoted(text: str) -> str:
    return f"“{shorten(text, _QUOTE_WORDS)}”"


def candidate_line(item: MemoryItem, most: int) -> ContextItem:
    """Render a candidate: the user's words, cut to a number of tokens, and the sentence that they answer."""
    quote = next((one.quote for one in item.evidence if one.quote), item.text)
    text = f"“{cut(on_one_line(quote), most)}”"
    if item.worded_by:
        text = f"{cut(on_one_line(item.text), most)} (the user: {_quoted(quote)})"
    if item.answers:
        text += f" (answers {_quoted(item.answers.quote)})"
    return _item(
        f"- [{item.id}] {text}",
        id=item.id,
        kind=sort_of(item),
        section="candidates",
        source=source(item),
        why="the user may have meant it to last; nobody has settled it",
    )


def source(item: MemoryItem) -> str:
    """Return the events that are an item's evidence, in the workspace that it comes from."""
    if followed := followed_from(item):
        return followed
    return ", ".join(f"event {one.seq}" for one in item.evidence[:3]) or f"event {item.created_seq}"


def why(item: MemoryItem, message: str) -> str:
    """Return why an item is shown, in a few words."""
    reason = {
        "constraint": "the user demands it",
        "rejection": "the user ruled it out",
        "hot_issue": "no run shows that the check passes" if _is_silenced(item) else "the check still fails",
        "rule": "it is critical" if is_critical(item) else "it is among the 20 strongest rules",
    }.get(item.kind, "it stands now")
    if item.pinned:
        reason += ", and a person pinned it"
    if item.scope.topic and in_scope(item, message):
        reason += f"; its topic is {item.scope.topic}"
    return reason


def _is_silenced(item: MemoryItem) -> bool:
    return isinstance(item.detail, HotIssueDetail) and bool(item.detail.silenced)


def unknown(call: PendingCall) -> ContextItem:
    """Render a call without a result, so that it is not mistaken for done or undone."""
    arguments = shorten(str(call.arguments))
    text = (
        f"- {call.tool} {arguments} was begun (event {call.seq}) and has no result: its outcome is unknown."
    )
    return _of_event(call.seq, "tool", "state", text, "its outcome is unknown")


def said(message: Message, section: Section = "messages", most: int = _MESSAGE_TOKENS) -> ContextItem:
    """Render a message; of a longer one than ``most`` tokens, its beginning and its end."""
    text = f"- {message.actor}: {_ends(message.text, most)}"
    return _of_event(message.seq, "message", section, text, "it was said lately")


def _ends(text: str, most: int) -> str:
    """Return the beginning and the end of a text: an answer often ends with what it asks.

    >>> _ends("One two three four five six seven eight nine ten eleven twelve. Shall I?", 15)
    'One two three four five six seven eight nine ten … Shall I?'
    """
    if count_tokens(text) <= most:
        return text
    last = text[-most:]
    return f"{cut(text, most - most // 3)} … {cut(last.partition(' ')[2] or last, most // 3)}"


def ended_run(run: RunRecord) -> ContextItem:
    """Render how a run ended that did not complete."""
    reason = f": {shorten(run.reason)}" if run.reason else ""
    text = f"- The last run (“{shorten(run.task)}”) ended {run.status}{reason}"
    return _of_event(run.ended_seq or run.seq, "run", "stopped", text, "it was not completed")


def _of_event(seq: int, kind: str, section: Section, text: str, reason: str) -> ContextItem:
    where = f"event {seq}"
    return _item(on_one_line(text), id=f"event-{seq}", kind=kind, section=section, source=where, why=reason)


def happened(told: Told, section: Section) -> ContextItem:
    """Render what happened, on a line."""
    if section == "messages":
        return _of_event(told.first, "message", section, f"- {told.text}", "it was said before that")
    return _item(
        f"- {on_one_line(told.text)}",
        id=f"{section}-{told.first}",
        kind=section,
        section=section,
        source=f"event{f's {told.first} to' * (told.first != told.last)} {told.last}",
        why="it happened lately" if section == "recap" else "the whole log was asked for",
    )


def passage(hit: SearchHit, most: int) -> ContextItem:
    """Render a passage, cut to a number of tokens.

    A message of one line is put on a line; everything else in a fence that it cannot close.
    """
    whole = _item(
        _placed(hit, hit.text),
        id=hit.id,
        kind=hit.kind,
        section="recalled",
        source=place(hit),
        why=_how_found(hit),
    )
    return whole if whole.tokens <= most else reworded(whole, _placed(hit, cut(hit.text, most)))


def remembered(hit: SearchHit, item: MemoryItem, most: int) -> ContextItem:
    """Render a recalled memory item, cut to a number of tokens, on a line with its kind and date."""
    line = memory_line(msgspec.structs.replace(item, text=cut(item.text, most)), "recalled", "")
    return reworded(
        line, f"{line.text} ({_kind_and_day(item)})", id=hit.id, kind="memory", why=_how_found(hit)
    )


def _kind_and_day(item: MemoryItem) -> str:
    return ", ".join(part for part in (sort_of(item).replace("_", " "), item.created_at[:10]) if part)


def least_tokens(hit: SearchHit, item: MemoryItem | None, most: int, free: int) -> int:
    """Return how many tokens a passage or a memory item takes at least, read as far as it matters.

    No token spans two words, nor letters and digits; a cut text has nearly as many tokens as it may have.
    """
    text = item.text if item else hit.text
    words = min(len(text.split()), most // 2)
    if words > free or words + _FRAME_TOKENS <= free:
        return words
    frame = f" {_kind_and_day(item)} [{item.id}]" if item else f" {place(hit)}"
    pieces = len(_ASCII_PIECES.findall(frame)) if frame.isascii() else 0
    marks = _MARKS_OF_MEMORY if item else _MARKS
    return min(words + pieces + marks, (len(frame) + len(text)) // BYTES_PER_TOKEN)  # counted, or estimated


def _how_found(hit: SearchHit) -> str:
    ranks = (("words", hit.lexical_rank), ("meaning", hit.vector_rank))
    return "found " + (" and ".join(f"by its {by} (rank {rank})" for by, rank in ranks if rank) or "exactly")


def _placed(hit: SearchHit, text: str) -> str:
    if hit.kind == "message" and len(text.strip().splitlines()) <= 1:
        return f"- {place(hit)}: {on_one_line(text)}"
    # Longer than any run of backticks, so that the text cannot close it (CommonMark 0.31, 4.5)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"### {place(hit)}\n{fence}\n{text}\n{fence}"


def on_one_line(text: str) -> str:
    """Return the text with single spaces and without line ends."""
    return " ".join(text.split())
