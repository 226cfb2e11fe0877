"""Builds a text within a token budget: counts what is in it, and records what is not.

What must not be forgotten comes first: in full if there is room, otherwise in its short form; if that does
not fit either, as many short forms as fit. Everything else is added as long as there is room. A last line
states how much was left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from agentx.context.rendering import (
    Context,
    ContextItem,
    Omitted,
    by_weight,
    collapsed,
    in_scope,
    memory_line,
    on_one_line,
)
from agentx.storage.text import shorten
from agentx.synthesis.language.tokens import count_tokens, cut
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem, checks_of, followed_from
from agentx.synthesis.memory.policies import POLICIES, Section
from agentx.synthesis.state.rule_lifecycle import boot_rules, is_critical
from agentx.synthesis.state.state import State

NO_ROOM = "no room within the budget"

_TITLE_TOKENS = 60
_RESERVE_TOKENS = 24
"""Reserve, because the tokens of a text are not exactly the sum of those of its parts."""

_HINT_TOKENS = 40
"""Tokens reserved for the line on what was left out."""

_NAMES_SHARE = 0.25
"""Maximum share of the budget for naming what must not be forgotten and has no room."""

_ORDER = {"critical": 0, "high": 1, "normal": 2}
_NAMES = {"recap": "earlier turn", "log": "earlier event", "knowledge": "piece of knowledge"}


class Page:
    """A context, or what an agent is given at its start.

    Args:
        state: The state.
        titles: Its sections, in order.
        max_tokens: Its budget.
        message: What it is for; empty for everything.
        more: Command that shows more than it has room for.
        counted: Sections for which the last line counts what was left out. Search results are not among them:
            a search can always find more.
    """

    def __init__(
        self,
        state: State,
        titles: Mapping[Section, str],
        max_tokens: int,
        *,
        message: str = "",
        more: str = "",
        counted: Collection[Section],
    ) -> None:
        self.state = state
        self.titles = titles
        self.max_tokens = max_tokens
        self.message = message
        self.more = more
        self.counted = counted
        self.shown: dict[Section, list[ContextItem]] = {section: [] for section in titles}
        self.left_out: list[Omitted] = []
        self.unshown: Counter[str] = Counter()
        self.notices: list[str] = []
        self.weak: list[MemoryItem] = []
        self.crowded: list[str] = []
        self.held = _HINT_TOKENS
        title = cut(on_one_line(state.title), _TITLE_TOKENS)
        head = f"# Task: {title}\n" if title else ""
        self.head = head if count_tokens(head) <= max_tokens else ""
        self.used = count_tokens(self.head) + _RESERVE_TOKENS

    # --- what must not be forgotten ---------------------------------------------------------------

    def must(self, *, weak_rules: bool = True) -> None:
        """Add mission, constraints, rejections and hot issues: in full if in scope and there is room.

        If not even their short forms fit, the failing checks are reported in one line for each runner, and as
        many of the others are shown as fit, the most important first; the last line names the rest. Rules
        that are neither critical nor pinned may wait for :meth:`weak_rules`.
        """
        pinned = (item for item in self.state.active() if item.pinned and not POLICIES[item.kind].always)
        mission = [*self.state.active("north_star"), *boot_rules(self.state), *pinned]
        rules = [] if weak_rules else [item for item in mission if item.kind == "rule" and not item.pinned]
        self.weak = [rule for rule in rules if not is_critical(rule)]
        items: list[tuple[MemoryItem, Section]] = [
            *((item, "mission") for item in mission if item not in self.weak),
            *((item, "rules") for item in by_weight(self.state.active("constraint"))),
            *((item, "rejections") for item in by_weight(self.state.active("rejection"))),
        ]
        short = [self._line(item, section, brief=True) for item, section in items]
        urgent = [
            (_ORDER[item.detail.priority], -item.changed_seq, item)
            for item in self.state.active("hot_issue")
            if isinstance(item.detail, HotIssueDetail)
        ]
        issues = [item for *_, item in sorted(urgent, key=lambda found: found[:2])]
        each = [self._line(item, "problems", brief=True) for item in issues]
        if self._needed([*short, *each]) <= self.max_tokens:
            items += ((item, "problems") for item in issues)
            short += each
        else:
            for item in issues:
                self.omit(item.id, item.kind, item.text, "no room, so it is counted in its runner's line")
            kept = self._choose(items, short, collapsed(issues))
            items = [one for one, line in zip(items, short, strict=True) if line.id in kept]
            short = [line for line in short if line.id in kept]
        self.used = self._needed(short)
        self._widen(items, short)

    def _choose(
        self,
        items: Sequence[tuple[MemoryItem, Section]],
        short: Sequence[ContextItem],
        problems: Sequence[ContextItem],
    ) -> set[str]:
        """Return the ids of the short forms that fit with the lines on problems, the most important first."""
        ranked = sorted(
            zip(items, short, strict=True), key=lambda one: (_importance(one[0][0]), -_last_said(one[0][0]))
        )
        first = [line for (item, _), line in ranked if _importance(item) < _ENFORCED]
        order = [*first, *problems, *(line for _, line in ranked[len(first) :])]
        room = self.max_tokens
        if self._needed(order) > room:
            names = sum(count_tokens(f", {line.id}") for line in order)
            room -= min(names + _HINT_TOKENS, int(room * _NAMES_SHARE))
        kept: list[ContextItem] = []
        for line in order:
            if self._needed([*kept, line]) <= room:
                kept.append(line)
        fitting = {line.id for line in kept}
        for line in order:
            if line.id not in fitting:
                self.omit(line.id, line.kind, line.text, NO_ROOM)
                self.crowded.append(line.id)
        lines = [line for line in problems if line.id in fitting]
        self.used = self._needed(lines)
        self.shown["problems"] += lines
        return fitting

    def weak_rules(self) -> None:
        """Add the optional rules, the strongest first."""
        for item in self.weak:
            self.fit(self._line(item, "mission", brief=True), item.text)

    def _widen(self, items: Sequence[tuple[MemoryItem, Section]], short: Sequence[ContextItem]) -> None:
        """Show the full text of items in scope, as long as that takes at most half of the free tokens."""
        most = self.used + (self.max_tokens - self.used) // 2
        for brief, (item, section) in zip(short, items, strict=True):
            whole = self._line(item, section)
            matches = in_scope(item, self.message)
            if matches and self.used - brief.tokens + whole.tokens <= most:
                self.used += whole.tokens - brief.tokens
                self.shown[section].append(whole)
                continue
            self.shown[section].append(brief)
            if brief.text != whole.text:
                why = "no room for the whole text" if matches else "outside its scope, so in short form"
                self.omit(item.id, item.kind, item.text, why)

    def _needed(self, items: Sequence[ContextItem]) -> int:
        """Return the tokens used with some items added, including the titles of their sections."""
        return self.used + sum(one.tokens for one in items) + self._titles({one.section for one in items})

    def _titles(self, sections: set[Section]) -> int:
        return sum(count_tokens(f"\n## {self.titles[section]}\n") for section in sections)

    def _line(self, item: MemoryItem, section: Section, *, brief: bool = False) -> ContextItem:
        return memory_line(item, section, self.message, brief=brief)

    # --- what there is room for -------------------------------------------------------------------

    @property
    def free(self) -> int:
        """Tokens that are left."""
        return self.max_tokens - self.used - self.held

    @property
    def listed(self) -> set[str]:
        """Ids of the items shown."""
        return {item.id for items in self.shown.values() for item in items}

    def has_room(self, item: ContextItem) -> bool:
        """Return whether an item fits, with the title of its section if it is the first one there."""
        title = 0 if self.shown[item.section] else self._titles({item.section})
        return item.tokens + title <= self.free

    def put(self, *items: ContextItem) -> None:
        """Show some items."""
        for item in items:
            if not self.shown[item.section]:
                self.used += self._titles({item.section})
            self.used += item.tokens
            self.shown[item.section].append(item)

    def fit(self, item: ContextItem, text: str) -> bool:
        """Show an item if there is room; return whether there was."""
        if self.has_room(item):
            self.put(item)
            return True
        self.miss(item, text)
        return False

    def fit_latest(self, newest_first: Iterable[ContextItem]) -> Iterator[ContextItem]:
        """Show, in order, the latest items of a section up to the first that does not fit.

        Returns:
            The others, newest first.
        """
        items = iter(newest_first)
        kept: list[ContextItem] = []
        for item in items:
            tokens = item.tokens + (0 if kept else self._titles({item.section}))
            if tokens > self.free:
                items = chain([item], items)
                break
            self.used += tokens
            kept.append(item)
        if kept:
            self.shown[kept[0].section] += reversed(kept)
        return items

    def miss(self, item: ContextItem, text: str) -> None:
        """Record an item that did not fit; the last line counts it."""
        self.omit(item.id, item.kind, text, NO_ROOM)
        if item.section in self.counted:
            self.unshown[item.kind] += 1

    def omit(self, name: str, kind: str, text: str, reason: str) -> None:
        """Record what is not shown, and why."""
        self.left_out.append(Omitted(id=name, kind=kind, text=shorten(text), reason=reason))

    def done(self) -> Context:
        """Return the context with its text, in the fixed order of sections."""
        parts = [self.head]
        ordered: list[ContextItem] = []
        for section, title in self.titles.items():
            if items := self.shown[section]:
                parts.append(f"\n## {title}\n" + "".join(f"{item.text}\n" for item in items))
                ordered += items
        text = whole = "".join(parts)
        for hint in self._hints():
            if (tokens := count_tokens(text + hint)) <= self.max_tokens:
                whole = text + hint
                break
        else:
            tokens = count_tokens(text)
        return Context(
            text=whole,
            items=tuple(ordered),
            omitted=tuple(self.left_out),
            tokens=tokens,
            max_tokens=self.max_tokens,
            seq=self.state.seq,
        )

    def _hints(self) -> Iterator[str]:
        """Yield the last lines on what was left out, and shorter forms of them."""
        total = self.unshown.total()
        each = ", ".join(_count(number, _NAMES.get(kind, kind)) for kind, number in self.unshown.items())
        more = f" `{self.more}` shows more." if self.more else ""
        full = [f"Left out for want of room: {each}.{more}"] if total else []
        tails = (
            " ".join([*full, *self.notices]),
            f"Left out for want of room: {total} items." * bool(total),
            "",
        )
        for most in self._crowded():
            for tail in tails:
                if line := " ".join(filter(None, (most, tail))):
                    yield f"\n{line}\n"

    def _crowded(self) -> list[str]:
        """Return a sentence on what must not be forgotten and has no room, and shorter forms of it."""
        count = len(self.crowded)
        if not count:
            return [""]
        lead = f"No room for {count} more that must not be forgotten"
        shorter: list[str] = []
        shown = count
        while shown:
            names = ", ".join(self.crowded[:shown]) + (", …" if shown < count else "")
            shorter.append(f"{lead}: {names} (`agentx memory show ID`).")
            shown //= 2
        return [*shorter, f"{lead}."]


_PINNED, _MISSION, _ENFORCED, _OTHER = range(4)


def _importance(item: MemoryItem) -> int:
    """Return the rank of an item that must not be forgotten; 0 is the most important."""
    if item.pinned:
        return _PINNED
    if item.kind not in ("constraint", "rejection"):
        return _MISSION
    return _ENFORCED if checks_of(item) and not item.perhaps_ended_by else _OTHER


def _last_said(item: MemoryItem) -> int:
    """Return the event in which the user last said an item; 0 for a rule of a followed workspace."""
    if followed_from(item):
        return 0
    return max((one.seq for one in item.evidence), default=item.created_seq)


def _count(number: int, name: str) -> str:
    """Format a number of items of a kind.

    >>> _count(1, "decision"), _count(3, "agent_state")
    ('1 decision', '3 agent states')
    """
    words = name.replace("_", " ")
    return f"{number:,} {words}" if number == 1 else f"{number:,} {words}s"
