"""What was learned, for one screen: the user's own sentences, ranked, without repetitions.

The rank says how sure it is that a user would recognise a line as theirs. It rests on what the memory records
(status, evidence, what a sentence answers) and on the form of the sentence (an order, a yes, a no, a
question), not on topics.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.events.transcript_events import ModelUsage, TranscriptImported
from agentx.storage.events.types import AgentMessageSent, Event, ToolCallExecuted, UserMessageSent
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.demands.doubt import weigh
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.words import content_words, is_weak, words_of
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem, RejectionDetail
from agentx.synthesis.scribe.answers import NO, YES
from agentx.synthesis.scribe.orders import asks, is_order
from agentx.synthesis.shell.command_line import steps
from agentx.synthesis.similarity.near_duplicates import likeness
from agentx.synthesis.state.state import State

SURE = 2.0
"""Lines of at least this rank are shown."""

_SHARED = 2
"""Words that corrections have in common to be one that recurs, and times that something recurs."""

_CLAUSE = 20
_MOST, _CANDIDATE, _CERTAIN = 2.8, 0.5, 0.1
"""Largest weight of the signs of a demand, and what they count for: a candidate rests on them alone."""

_ADDRESS = re.compile(r"\S+://\S+")
_AT_LEAST = 2
"""Where nothing is sure, so many doubtful lines are shown."""

_FEW = 3
"""A sentence with fewer words of its own says nothing without what it answers."""


class LearnedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the screen.

    Attributes:
        id: The memory item; empty for a summary of several.
        text: What was learned: the user's own sentence where there is one.
        about: What it answers, or which call it refuses; empty for nothing.
        sure: Whether it is in force; otherwise nobody has confirmed it.
        at: When it was said or found.
        session: In which session; empty outside of sessions.
        times: How often.
        rank: How sure it is that the user recognises it.
    """

    id: str
    text: str
    about: str = ""
    sure: bool = True
    at: str = ""
    session: str = ""
    times: int = 1
    rank: float = 0.0


class LearnedPart(msgspec.Struct, frozen=True):
    """A part of the screen.

    Attributes:
        name: ``rules``, ``ruled_out``, ``decisions``, ``open_problems`` or ``recurring``.
        lines: Its lines, the surest first.
        doubtful: The others, which are not shown.
    """

    name: str
    lines: tuple[LearnedLine, ...]
    doubtful: tuple[LearnedLine, ...] = ()


class Learned(msgspec.Struct, frozen=True):
    """What was learned, and from how much.

    Attributes:
        parts: The parts, in order.
        sessions: Number of sessions.
        messages: Number of the user's messages.
        calls: Number of tool calls.
        began: Time of the earliest message; empty without one.
        ended: Time of the latest one.
        transcripts: Number of imported transcripts.
        usage: What their models used.
    """

    parts: tuple[LearnedPart, ...]
    sessions: int
    messages: int
    calls: int
    began: str
    ended: str
    transcripts: int
    usage: tuple[ModelUsage, ...]


class _Told(msgspec.Struct):
    """What a pass over the history found."""

    events: dict[int, Event] = msgspec.field(default_factory=dict)
    sessions: set[str] = msgspec.field(default_factory=set)
    files: dict[str, TranscriptImported] = msgspec.field(default_factory=dict)
    messages: int = 0
    calls: int = 0
    times: tuple[str, str] = ("", "")


def learned(engine: Engine) -> Learned:
    """Return what was learned so far; reads the history once."""
    state = engine.state
    told = _read(engine, state)
    lines = [(item, _line(item, told)) for item in state.items.values()]
    found = [pair for pair in lines if pair[0].status in ("active", "candidate", "dormant")]
    parts = (
        _part("rules", found, "constraint", "rule", "north_star"),
        _part("ruled_out", found, "rejection"),
        _part("decisions", found, "decision"),
        _part("open_problems", [pair for pair in found if pair[0].status == "active"], "hot_issue"),
        LearnedPart("recurring", tuple(_recurring(lines))),
    )
    return Learned(
        parts=_once(parts),
        sessions=len(told.sessions),
        messages=told.messages,
        calls=told.calls,
        began=told.times[0],
        ended=told.times[1],
        transcripts=len(told.files),
        usage=tuple(_usage(told.files.values())),
    )


def _read(engine: Engine, state: State) -> _Told:
    """Read when and in which session each item was said, and how much there was."""
    wanted = {seq for item in state.items.values() for seq in (*(one.seq for one in item.evidence[:1]),)}
    told = _Told()
    for event in engine.log.history.read(on_damage=told_already):
        if event.seq in wanted:
            told.events[event.seq] = event
        match event.data:
            case UserMessageSent():
                told.messages += 1
                told.times = (min(told.times[0] or event.at, event.at), max(told.times[1], event.at))
            case ToolCallExecuted():
                told.calls += 1
            case TranscriptImported():
                told.files[event.data.file] = event.data
        if event.run and isinstance(event.data, UserMessageSent | AgentMessageSent):
            told.sessions.add(event.run.partition("/")[0])
    return told


# --- one line -----------------------------------------------------------------------------------


def _line(item: MemoryItem, told: _Told) -> LearnedLine:
    event = told.events.get(item.evidence[0].seq) if item.evidence else None
    quote = one_line(item.evidence[0].quote) if item.evidence else ""
    text, about, call = item.text, "", None
    if isinstance(item.detail, HotIssueDetail):
        text, about = _failing(item.detail)
    elif item.trust == "user" and quote and not item.by_hand:
        text = quote
        if item.answers is not None:
            about = _asked(item.answers.quote)
    if isinstance(item.detail, RejectionDetail) and item.detail.call is not None:
        call = item.detail.call
        about = _shown(call.tool, call.arguments)
        text = one_line(item.detail.reason) if item.detail.reason else ""
    return LearnedLine(
        id=item.id,
        text=text,
        about=about,
        sure=item.status != "candidate",
        at=event.at if event else item.created_at,
        session=event.run.partition("/")[0] if event else "",
        times=len({one.seq for one in item.evidence}) or 1,
        rank=_rank(item, text, about),
    )


def _failing(detail: HotIssueDetail) -> tuple[str, str]:
    """Return the name of a check, and why it fails, as far as is known."""
    name = detail.check if detail.runner in ("", "exit") else f"{detail.check} ({detail.runner})"
    since = "; not run any more" if detail.silenced else ""
    return name, f"{one_line(detail.message).rstrip(' :;,.')}{since}"


def _asked(quote: str) -> str:
    """Return the last sentence of what an agent asked or proposed: what stands before leads to it."""
    parts = list(sentences(quote))
    return one_line(quote[parts[-1].start : parts[-1].end]) if parts else one_line(quote)


def _shown(tool: str, arguments: dict[str, str]) -> str:
    """Return a call as a person would name it: its command line, or its file without the directories."""
    command, path = arguments.get("command", ""), arguments.get("path", "")
    return f"{tool} `{one_line(command)}`" if command else f"{tool} {path.rpartition('/')[2]}".rstrip()


def _rank(item: MemoryItem, text: str, about: str) -> float:
    if item.by_hand or item.pinned:
        return 9.0
    if isinstance(item.detail, HotIssueDetail):
        return item.score + item.detail.failures / 10
    rank = {"active": 3.0, "dormant": 2.5}.get(item.status, 1.5) + _signs(item, text)
    rank += min(len({one.seq for one in item.evidence}) - 1, 3)
    if item.trust != "user":
        return rank - 1.0
    own = len(content_words(text))
    settles = bool(is_order(text) or NO.match(text) or YES.match(text))
    if asks(text):
        rank -= 2.0  # a question rules nothing out and decides nothing
    elif item.kind == "decision" and about and not settles:
        rank -= 1.5  # what was said after a question, and answers it with news
    elif settles or (item.kind == "constraint" and item.status == "active"):
        rank += 0.5
    if own < _FEW and not about:
        rank -= 1.5
    return rank + min(own, 10) / 100


def _signs(item: MemoryItem, text: str) -> float:
    """Return what the signs in a demand or refusal add, that it is meant to last."""
    if item.kind not in ("constraint", "rejection") or not text:
        return 0.0
    weight = weigh(text, first=True, alone=True, words_of_message=len(text.split())).weight
    return max(-_MOST, min(weight, _MOST)) * (_CANDIDATE if item.status == "candidate" else _CERTAIN)


def _part(name: str, found: Iterable[tuple[MemoryItem, LearnedLine]], *kinds: str) -> LearnedPart:
    lines = sorted(
        (line for item, line in found if item.kind in kinds and line.text),
        key=lambda line: (-line.rank, line.at),
    )
    sure = [line for line in lines if line.rank >= SURE] or lines[:_AT_LEAST]
    return LearnedPart(name, tuple(sure), tuple(lines[len(sure) :]))


def _once(parts: Sequence[LearnedPart]) -> tuple[LearnedPart, ...]:
    """Leave each sentence where it ranks highest."""
    best: dict[str, LearnedLine] = {}
    for line in (line for part in parts[:-1] for line in (*part.lines, *part.doubtful)):
        known = next((one for text, one in best.items() if _same(text, line.text)), None)
        if known is None:
            best[line.text] = line
        elif line.rank > known.rank:
            del best[known.text]
            best[line.text] = line
    kept = {line.id for line in best.values()}

    def only(lines: Iterable[LearnedLine]) -> tuple[LearnedLine, ...]:
        return tuple(line for line in lines if line.id in kept)

    return (
        *(LearnedPart(part.name, only(part.lines), only(part.doubtful)) for part in parts[:-1]),
        parts[-1],
    )


def _same(one: str, other: str) -> bool:
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return short == long or (len(short) > _CLAUSE and short in long) or bool(likeness(one, other))


# --- what recurs --------------------------------------------------------------------------------


def _recurring(lines: Sequence[tuple[MemoryItem, LearnedLine]]) -> Iterator[LearnedLine]:
    """Yield the corrections and failures that came again, the most frequent first."""
    standing = [pair for pair in lines if pair[0].status in ("active", "candidate", "dormant")]
    corrections = [line for item, line in standing if item.kind in ("constraint", "rejection")]
    again = [*_repeated(corrections), *_refused(standing), *_failed(lines)]
    yield from sorted(again, key=lambda line: (-line.times, line.at))


def _repeated(lines: Sequence[LearnedLine]) -> Iterator[LearnedLine]:
    """Yield what was said in other words again, in another message: sentences with words in common."""
    said = [(line, _own_words(line.text)) for line in lines if line.text and not asks(line.text)]
    taken: set[str] = set()
    for line, words in said:
        if line.id in taken:
            continue
        alike = [other for other, its in said if other.at != line.at and _overlap(words, its)]
        alike = [other for other in alike if other.id not in taken]
        if alike:
            group = [line, *alike]
            taken |= {one.id for one in group}
            latest = max(group, key=lambda one: one.at)
            first = min(group, key=lambda one: one.at)
            yield msgspec.structs.replace(latest, id="", times=len(group), about=f"as before: “{first.text}”")


def _overlap(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= _SHARED and 2 * shared >= min(len(one), len(other))


def _own_words(text: str) -> frozenset[str]:
    return frozenset(word for word in content_words(_ADDRESS.sub(" ", text)) if not is_weak(word))


def _refused(found: Sequence[tuple[MemoryItem, LearnedLine]]) -> Iterator[LearnedLine]:
    """Yield the programs and files whose calls were refused more than once."""
    groups: dict[str, list[LearnedLine]] = {}
    for item, line in found:
        call = item.detail.call if isinstance(item.detail, RejectionDetail) else None
        if call is not None:
            groups.setdefault(_target(call.tool, call.arguments), []).append(line)
    for name, lines in groups.items():
        if name and len(lines) >= _SHARED:
            lines.sort(key=lambda one: one.at)
            said = next((one.text for one in reversed(lines) if one.text), "")
            about = f"last: “{said}”" if said else ""
            text = f"You refused {name}"
            yield msgspec.structs.replace(lines[-1], id="", text=text, about=about, times=len(lines))


def _target(tool: str, arguments: dict[str, str]) -> str:
    ran = steps(arguments.get("command", ""))
    if ran:
        words = [
            ran[0].program,
            *(word for word in ran[0].arguments[:1] if words_of(word) and word[:1] != "-"),
        ]
        return f"`{' '.join(words)}`"
    return f"{tool} of {arguments['path']}" if arguments.get("path") else ""


def _failed(lines: Sequence[tuple[MemoryItem, LearnedLine]]) -> Iterator[LearnedLine]:
    """Yield the checks that failed again after they had passed."""
    groups: dict[tuple[str, str], list[LearnedLine]] = {}
    for item, line in lines:
        if isinstance(item.detail, HotIssueDetail):
            groups.setdefault((item.detail.runner, item.detail.check), []).append(line)
    for again in groups.values():
        if len(again) >= _SHARED:
            text = f"{again[-1].text} failed, passed, and failed again"
            yield msgspec.structs.replace(again[-1], id="", text=text, about="", times=len(again))


def _usage(files: Iterable[TranscriptImported]) -> Iterator[ModelUsage]:
    totals: dict[str, ModelUsage] = {}
    for used in (one for told in files for one in told.usage):
        known = totals.get(used.model, ModelUsage(used.model))
        totals[used.model] = ModelUsage(
            used.model,
            known.prompt_tokens + used.prompt_tokens,
            known.completion_tokens + used.completion_tokens,
            known.cost_usd + used.cost_usd,
        )
    yield from sorted(totals.values(), key=lambda one: -one.prompt_tokens)
