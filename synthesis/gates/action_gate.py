"""The gate before an action: a verdict from the memory items that are relevant to it.

Pure: memory and an action in, a verdict out. What a check forbids or the user ruled out is denied. Everything
else is shown, so that it is read before the action, not after.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from agentx.storage.events.types import ToolCallExecuted
from agentx.storage.index.port import Vector
from agentx.storage.text import one_line, shorten
from agentx.synthesis.enforcement.evaluate import Violation, perhaps_ended, rule_of
from agentx.synthesis.gates.action_relevance import (
    STATE_SORTS,
    Action,
    MemoryBoard,
    Touch,
    applies,
    refused_before,
    ruled_out,
    touching,
)
from agentx.synthesis.gates.ruled_out_things import Touched, brought_in
from agentx.synthesis.gates.situations import woken
from agentx.synthesis.language.tokens import count_tokens, cut, most_tokens
from agentx.synthesis.learning.following import observe
from agentx.synthesis.memory.items import (
    CapabilityDetail,
    FlowDetail,
    HotIssueDetail,
    MemoryItem,
    RejectionDetail,
    checks_of,
    is_shown_only,
    sort_of,
)
from agentx.synthesis.state.flow_lessons import lessons_before
from agentx.synthesis.state.flows import FlowMatch, told

MAX_TOKENS = 3_000
"""Maximum size of a verdict."""

MAX_CORRECTED = 800
"""Maximum characters of a corrected action in the text of a verdict."""

_LINE_TOKENS = 120
_LONG = 400  # characters that can be more than that
_REASON_WORDS = 150
_HINT_TOKENS = 24

Decision = Literal["allow", "allow_with_context", "ask", "deny"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a verdict.

    Attributes:
        id: Id of the memory item; otherwise the name of the entry.
        kind: A memory kind, ``step``, ``script`` or ``credential``.
        text: The full text.
        why: Why it is shown, in a few words; empty if its section says so.
        good: For a capability, whether it works; ``None`` if unknown.
    """

    id: str
    kind: str
    text: str
    why: str = ""
    good: bool | None = None


class VerdictSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a verdict.

    Attributes:
        name: ``flow``, ``rejections``, ``rules``, ``lessons``, ``state``, ``critical``, ``capabilities`` or
            ``tools``.
        title: The heading.
        lines: The entries.
        touches: Whether it is relevant to the action; other sections are the same before every action.
        left: Number of further entries that are not shown.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    touches: bool = True
    left: int = 0


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's verdict on an action.

    Attributes:
        verdict: ``allow``, ``allow_with_context`` (relevant items exist: read them first), ``ask`` (approval
            is needed) or ``deny``.
        reason: One sentence.
        denied_by: Ids of the items that deny it.
        asked_by: Ids of the flows that need approval, and of the rejections that the user may have ended.
        sections: What to read first; at most 3,000 tokens.
        items: Ids of the memory items in the sections.
        woken: Ids of dormant or faded rules that this action wakes.
        omitted: Number of entries omitted for lack of room.
        corrected: The command line that would break no check, if the correction is mechanical.
        unread: Parts of the command line that were not analysed, where a check is about what commands do.
        checked: Number of active demands, rejections and rules that the action was compared with.
        took_ms: Milliseconds that this took.
    """

    verdict: Decision
    reason: str
    denied_by: tuple[str, ...] = ()
    asked_by: tuple[str, ...] = ()
    sections: tuple[VerdictSection, ...] = ()
    items: tuple[str, ...] = ()
    woken: tuple[str, ...] = ()
    omitted: int = 0
    corrected: str = ""
    unread: tuple[str, ...] = ()
    checked: int = 0
    took_ms: float = 0.0

    @property
    def text(self) -> str:
        """The whole verdict, as Markdown."""
        head = f"# {self.verdict.replace('_', ' ').capitalize()}: {self.reason}\n"
        head += f"\nCorrected: {_as_code(self.corrected)}\n" if self.corrected else ""
        head += f"\n{not_analysed(self.unread)}\n" if self.unread else ""
        left = f"\nLeft out for want of room: {self.omitted}.\n" if self.omitted else ""
        parts = (f"\n## {part.title}\n{''.join(map(_said, part.lines))}" for part in self.sections)
        return "".join((head, *parts, left))

    @property
    def tokens(self) -> int:
        """Size of :attr:`text` in tokens; counted here, because that loads the tokenizer."""
        return count_tokens(self.text)


def _as_code(corrected: str) -> str:
    """Return a corrected command line or text in Markdown; only the place of a long one."""
    if len(corrected) > MAX_CORRECTED:
        return "the whole text is in the field `corrected`."
    return f"\n\n```\n{corrected.rstrip()}\n```" if "\n" in corrected else f"`{corrected}`"


def not_analysed(parts: Sequence[str]) -> str:
    """Return the sentence that names the parts of a command line that were not analysed.

    >>> not_analysed(["bash deploy.sh", "rm $(cat list)"])
    'Not analysed: `bash deploy.sh`, `rm $(cat list)`.'
    """
    return f"Not analysed: {', '.join(f'`{part}`' for part in parts)}."


# --- the verdict --------------------------------------------------------------------------------------------

_SHOWN: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("rejections", "Ruled out: do not suggest or do this again", ("rejection",), 8),
    ("rules", "What holds here", ("constraint", "rule"), 10),
    ("lessons", "Learned before", ("learning", "discovery"), 5),
    ("capabilities", "Capabilities", ("capability",), 6),
)
"""Sections of relevant items: name, heading, kinds and sorts, and maximum number of entries."""

_ORDER = ("flow", "rejections", "rules", "critical", "capabilities", "tools", "lessons", "state")
"""Order of the sections; if there is not enough room, the first ones are kept."""

_STATE_SHOWN = 6
_ISSUES_SHOWN = 3


class _Findings(NamedTuple):
    """What memory has against an action.

    Attributes:
        violations: Rules that it would break, as found by a check.
        against: Rejections whose idea is exactly this action.
        doubted: The same, where the user may have ended them.
        refused: Rejections that are a refused call which it repeats.
        brought: Things that were ruled out and that it would bring in.
        asking: Flows that need approval before they start.
    """

    violations: Sequence[Violation]
    against: list[MemoryItem]
    doubted: list[MemoryItem]
    refused: list[MemoryItem]
    brought: list[Touched]
    asking: list[MemoryItem]

    @property
    def denied_by(self) -> tuple[str, ...]:
        names = (*(one.item_id for one in self.violations), *(item.id for item in self.against))
        return tuple(dict.fromkeys(names))

    @property
    def asked_by(self) -> tuple[str, ...]:
        items = (*self.asking, *self.doubted, *self.refused, *(one.item for one in self.brought))
        return tuple(dict.fromkeys(item.id for item in items))


def judge(
    board: MemoryBoard,
    action: Action,
    flows: Sequence[FlowMatch] = (),
    *,
    violations: Sequence[Violation] = (),
    needs_word: str = "",
    granted: frozenset[str] = frozenset(),
    tools: Callable[[], tuple[Line, ...]] = tuple,
    vectors: Mapping[str, Vector] = MappingProxyType({}),
) -> GateVerdict:
    """Return the gate's verdict on an action.

    Args:
        board: The indexed memory.
        action: The action that is about to be carried out.
        flows: The matching flows, best first.
        violations: Rules that the action would break, as found by a check.
        needs_word: Why approval is needed regardless of memory; empty if it is not.
        granted: Ids of flows, and of rejections, that were approved.
        tools: Returns existing tools for this action: scripts, credentials by name.
        vectors: Vectors of the phrases that may wake a rule.
    """
    flows = [one for one in flows if applies(one.item, action)][:2]
    found = _against(board, action, flows, violations, granted)
    awake = woken(board, action, vectors)
    touched = _touched(board, action, found, awake)
    sections = [*_flow_part(board, flows), *_parts(touched), *_standing(board, action, touched)]
    if existing := tools():
        title = "What exists already: use it before you make another"
        sections.append(VerdictSection(name="tools", title=title, lines=existing))
    sections.sort(key=lambda part: _ORDER.index(part.name))
    decision, reason = _decided(found, needs_word, sections)
    return GateVerdict(
        verdict=decision,
        reason=shorten(one_line(reason), _REASON_WORDS),
        denied_by=found.denied_by,
        asked_by=found.asked_by,
        sections=() if decision == "allow" else tuple(sections),
        woken=tuple(item.id for item in awake),
    )


def _against(
    board: MemoryBoard,
    action: Action,
    flows: Sequence[FlowMatch],
    violations: Sequence[Violation],
    granted: frozenset[str],
) -> _Findings:
    """Return what memory has against an action, without what was approved."""
    exact = ruled_out(board, action)
    refused = [item for item in refused_before(board, action) if item.id not in granted]
    if refused and _is_step_of_approved(action, flows, granted):
        refused = []
    words = "" if action.tool or action.command else action.text
    brought = brought_in(board.things, action.command, action.writes, words) if action.changes else []
    return _Findings(
        violations=violations,
        against=[item for item in exact if not item.perhaps_ended_by],
        doubted=[item for item in exact if item.perhaps_ended_by and item.id not in granted],
        refused=refused,
        brought=[one for one in brought if one.item.id not in granted and applies(one.item, action)],
        asking=[
            one.item
            for one in flows[:1]
            if action.changes and needs_approval(one) and one.item.id not in granted
        ],
    )


def _decided(found: _Findings, needs_word: str, sections: Sequence[VerdictSection]) -> tuple[Decision, str]:
    """Return the verdict and its reason: of several, the strictest."""
    if found.denied_by:
        breaks = dict.fromkeys(f"{one.reason} {one.item_id}: {one.rule}" for one in found.violations)
        ruled = (
            f"The user ruled this out ({one.item_id}): “{one.sentence}”"
            for one in map(violation_of, found.against)
        )
        return "deny", " ".join((*breaks, *ruled))
    if needs_word:
        return "ask", needs_word
    if found.asking:
        flow = found.asking[0]
        return "ask", f"The flow {flow.id}, “{one_line(flow.text)}”, needs approval before it starts."
    if found.refused:
        item = found.refused[0]
        return "ask", f"The user refused such a call on {item.created_at[:10]} ({item.id}: “{item.text}”)."
    if found.doubted:
        item = found.doubted[0]
        return "ask", f"The user ruled this out ({item.id}: “{item.text}”), {perhaps_ended(item)}."
    if found.brought:
        item, said, place = found.brought[0]
        return "ask", f"This {place}; the user ruled {said} out ({item.id}: “{item.text}”)."
    *first, last = [_NOUNS[part.name] for part in sections if part.touches] or [""]
    if listed := " and ".join(filter(None, (", ".join(first), last))):
        return "allow_with_context", f"Read first what touches this: {listed}."
    return "allow", "Nothing that is remembered touches this."


def _touched(
    board: MemoryBoard, action: Action, found: _Findings, awake: Sequence[MemoryItem]
) -> list[Touch]:
    """Return the items that concern an action, each once: the rules that it would break come first."""
    broken = [name for name in dict.fromkeys(one.item_id for one in found.violations) if name in board.items]
    touched = [
        *(Touch(board.items[name], 1.0, "it would be broken") for name in broken),
        *(Touch(item, 1.0, "its situation is back") for item in awake),
        *(Touch(item, 1.0, "a person refused this call before") for item in found.refused),
        *(Touch(one.item, 1.0, f"this {one.place}") for one in found.brought),
    ]
    touched += touching(board, action)
    return list({one.item.id: one for one in reversed(touched)}.values())[::-1]


def _is_step_of_approved(action: Action, flows: Sequence[FlowMatch], granted: frozenset[str]) -> bool:
    """Return whether an action carries out a step of a flow that the user approved for this run."""
    call = ToolCallExecuted("", action.tool, "SUCCEEDED", command=action.command)
    details = (one.item.detail for one in flows if one.item.id in granted)
    return any(observe(detail.steps, [call]).seen for detail in details if isinstance(detail, FlowDetail))


def needs_approval(called: FlowMatch) -> bool:
    """Return whether a flow needs approval before it begins."""
    detail = called.item.detail
    return isinstance(detail, FlowDetail) and detail.needs_approval


def violation_of(item: MemoryItem) -> Violation:
    """Return the violation for an action that the user ruled out, as used when a call is denied."""
    words = item.evidence[0].quote if item.evidence and item.evidence[0].quote else item.text
    return Violation(
        item_id=item.id,
        rule=rule_of(item),
        sentence=words,
        reason=f"This is what the user ruled out on {item.created_at[:10]}.",
    )


def _flow_part(board: MemoryBoard, flows: Sequence[FlowMatch]) -> Iterator[VerdictSection]:
    lines: list[Line] = []
    for one in flows:
        detail, why = one.item.detail, f"less near: {one.why}"
        if not lines and isinstance(detail, FlowDetail):
            record = told(detail)
            works = record if record == "never used" else f"works in {record}"
            why = f"{works}{'; needs approval' if detail.needs_approval else ''}; {one.why}"
        lines.append(Line(id=one.item.id, kind="flow", text=one.item.text, why=why))
        if one is flows[0] and isinstance(detail, FlowDetail):
            lessons = lessons_before(board.items.values(), one.item)
            for n, step in enumerate(detail.steps, start=1):
                lines += [
                    Line(id=it.id, kind=sort_of(it), text=it.text, why=f"before step {n}")
                    for it in lessons.get(n, ())
                ]
                lines.append(Line(id=str(n), kind="step", text=step))
    if lines:
        yield VerdictSection(
            name="flow", title="The procedure: follow its steps in order", lines=tuple(lines)
        )


def _parts(touched: Sequence[Touch]) -> Iterator[VerdictSection]:
    for name, title, kinds, most in _SHOWN:
        mine = [one for one in touched if sort_of(one.item) in kinds]
        if mine:
            lines = tuple(map(_line, mine[:most]))
            yield VerdictSection(name=name, title=title, lines=lines, left=len(mine) - len(lines))


def _why_open(issue: MemoryItem) -> str:
    silenced = isinstance(issue.detail, HotIssueDetail) and issue.detail.silenced
    return "no run shows that it passes" if silenced else "it still fails"


def _standing(board: MemoryBoard, action: Action, touched: Sequence[Touch]) -> Iterator[VerdictSection]:
    """Yield the active state, items relevant to the action first, and the rules that every agent follows."""
    mine = [one for one in touched if sort_of(one.item) in STATE_SORTS]
    here = [
        item
        for item in board.issues
        if isinstance(item.detail, HotIssueDetail) and item.detail.path in action.paths
    ]
    known = {one.item.id for one in mine}
    lines = [
        *(
            Line(id=item.id, kind="hot_issue", text=item.text, why=_why_open(item))
            for item in (here or board.issues)[:_ISSUES_SHOWN]
        ),
        *(_line(one) for one in mine[:_STATE_SHOWN]),
        *(
            Line(id=item.id, kind=sort_of(item), text=item.text, why=item.reason)
            for item in board.latest
            if item.id not in known
        ),
    ]
    if lines:
        kept = tuple(lines[: _STATE_SHOWN + _ISSUES_SHOWN])
        yield VerdictSection(name="state", title="What stands now", lines=kept, touches=bool(mine or here))
    shown = {one.item.id for one in touched}
    rules = [
        Line(id=item.id, kind="rule", text=item.text, why=f"{item.score:g}")
        for item in board.critical
        if item.id not in shown
    ]
    if rules:
        yield VerdictSection(name="critical", title="Critical rules", lines=tuple(rules[:10]), touches=False)


def _line(touch: Touch) -> Line:
    item, detail = touch.item, touch.item.detail
    why, good = touch.why, None
    if isinstance(detail, CapabilityDetail):
        good = detail.works
        said = f": {one_line(detail.said)}" if detail.said else ""
        checked = f"{'works' if good else 'does not work'}, checked {detail.checked_at[:10]}{said}"
        why = "never checked" if good is None else checked
    elif item.perhaps_ended_by:
        why = f"{perhaps_ended(item)}; not enforced"
    elif checks_of(item):
        why = f"{why}; a check enforces it"
    elif is_shown_only(item):
        why = f"{why}; shown only"
    elif isinstance(detail, RejectionDetail):
        reason = one_line(detail.reason)
        because = f"; because {reason}" if reason and reason.casefold() not in item.text.casefold() else ""
        why = f"said on {item.created_at[:10]}{because}"
    elif sort_of(item) in STATE_SORTS:
        why = item.reason or why
    return Line(id=item.id, kind=sort_of(item), text=item.text, why=why, good=good)


_NOUNS = {
    "flow": "a flow", "rejections": "rejections", "rules": "rules", "lessons": "lessons",
    "capabilities": "capabilities", "state": "active state", "tools": "existing tools",
}  # fmt: skip


# --- within its budget --------------------------------------------------------------------------------------


def fitted(verdict: GateVerdict) -> GateVerdict:
    r"""Trim a verdict to the token budget: omit entries without room, and cut long ones.

    >>> fitted(GateVerdict(verdict="allow", reason="Nothing touches this.")).text
    '# Allow: Nothing touches this.\n'
    """
    head = msgspec.structs.replace(verdict, sections=()).text
    parts = [(part, f"\n## {part.title}\n", [_cut(line) for line in part.lines]) for part in verdict.sections]
    room = MAX_TOKENS - _HINT_TOKENS
    whole = [head, *(text for _, title, lines in parts for text in (title, *map(_said, lines)))]
    size = count_tokens if sum(map(most_tokens, whole)) > room else most_tokens
    room -= size(head)
    kept: list[VerdictSection] = []
    omitted = 0
    for part, title, cut_lines in parts:
        room -= size(title)
        lines: list[Line] = []
        for line in cut_lines:
            cost = size(_said(line))
            if cost > room:
                break
            room -= cost
            lines.append(line)
        omitted += part.left + len(part.lines) - len(lines)
        if lines:
            kept.append(msgspec.structs.replace(part, lines=tuple(lines)))
    items = (
        line.id for part in kept for line in part.lines if line.kind not in ("step", "script", "credential")
    )
    return msgspec.structs.replace(
        verdict, sections=tuple(kept), items=tuple(dict.fromkeys(items)), omitted=omitted
    )


def _cut(line: Line) -> Line:
    """Return a line with each text on one line, and cut if it is long."""
    text, why = (
        cut(text, _LINE_TOKENS) if len(text) >= _LONG else text
        for text in (one_line(line.text), one_line(line.why))
    )
    return msgspec.structs.replace(line, text=text, why=why)


def _said(line: Line) -> str:
    if line.kind == "step":
        return f"  {line.id}. {line.text}\n"
    why = f" ({line.why})" if line.why else ""
    return f"- [{line.id}] {line.text}{why}\n"
