"""The items while claims about the user's words are checked, and the changes so far.

Both checks use it: of a model's answer (:mod:`agentx.synthesis.judgement.check`) and of an agent's verdicts
(:mod:`agentx.synthesis.judgement.settling`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.judgement.judge_answer import shortened
from agentx.synthesis.judgement.quotes import OwnWords
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import Evidence, Kind, Link, MemoryItem, Status, is_offered
from agentx.synthesis.state.state import State

REASON_CHARACTERS = 200

DEMANDS: tuple[Kind, ...] = ("constraint", "rejection")

Doubts = Callable[[Evidence], bool]
"""Returns whether words of the user's message may be somebody else's, because they stood elsewhere before."""


def no_doubts(_evidence: Evidence) -> bool:
    """Return that words are the user's own."""
    return False


_STANDING: tuple[Status, ...] = ("active", "candidate")


class NotBelieved(Exception):
    """An entry of an answer is refused; the message says why. It never leaves this package."""


class ClaimBook:
    """The items while claims are checked, and the changes so far.

    Args:
        said: The user's messages, by seq.
        heard: Messages of agents, by seq.
        state: The current state.
        by: Who claims it: the first words of each reason.
        doubts: Whether words may be somebody else's; such words never make, end or replace a rule.
    """

    def __init__(
        self,
        said: Mapping[int, str],
        heard: Mapping[int, str],
        state: State,
        by: str,
        doubts: Doubts = no_doubts,
    ) -> None:
        self.doubts = doubts
        self.texts = {**heard, **said}
        self.said = said
        self.by = one_line(by)[:REASON_CHARACTERS]
        self.items = dict(state.items)
        self.changes: list[Change] = []
        self._messages: dict[int, OwnWords] = {}

    @property
    def touched(self) -> tuple[MemoryItem, ...]:
        """The items that the changes add or change, in their new state."""
        names = dict.fromkeys(one.item.id if isinstance(one, Add) else one.id for one in self.changes)
        return tuple(self.items[name] for name in names)

    def _replace(self, gone: Sequence[MemoryItem], item: MemoryItem) -> None:
        """Add an item that supersedes others."""
        for old in gone:
            links = (*old.links, Link("superseded_by", item.id))
            self._patch(Patch(id=old.id, status="retired", links=links, reason=item.reason))
        item = msgspec.structs.replace(item, links=tuple(Link("supersedes", old.id) for old in gone))
        self.items[item.id] = item
        self.changes.append(Add(item))

    def _message(self, seq: int) -> OwnWords:
        if seq not in self.texts:
            raise NotBelieved(f"Message {seq} was not shown.")
        return self._messages.setdefault(seq, OwnWords(self.texts[seq]))

    def _evidence(self, seq: int, span: Span) -> Evidence:
        return Evidence(seq, span.start, span.end, self.texts[seq][span.start : span.end])

    def _all(self, kind: str) -> Iterator[MemoryItem]:
        return (
            item
            for item in self.items.values()
            if item.kind == kind and item.status in _STANDING and not is_offered(item)
        )

    def _standing(self, name: str, kinds: Iterable[str] = DEMANDS) -> MemoryItem:
        item = self.items.get(name)
        if item is None or item.kind not in kinds or item.status not in _STANDING:
            kind = " or ".join(kinds)
            raise NotBelieved(f"No active or candidate {kind} {shortened(name)} was found.")
        return item

    def _require_own(self, evidence: Iterable[Evidence]) -> None:
        """Refuse words of which none are certainly the user's."""
        if all(self.doubts(one) for one in evidence if one.quote):
            raise NotBelieved(
                "An agent or a tool wrote these words before the user did, so they are a candidate that only "
                "a person settles: `agentx memory review`."
            )

    def _own(self, name: str) -> MemoryItem:
        """Return an item that a model may change."""
        item = self._standing(name)
        if item.by_hand:
            raise NotBelieved(f"A person decided on {name}, and no model overturns that.")
        return item

    def _why(self, reason: str) -> str:
        said = one_line(reason[: 4 * REASON_CHARACTERS])[:REASON_CHARACTERS]
        return f"{self.by}: {said or 'it gave no reason'}"

    def _patch(self, patch: Patch) -> None:
        self.items[patch.id] = msgspec.structs.replace(self.items[patch.id], **patch.fields())
        self.changes.append(patch)


def located(message: OwnWords, words: str, what: str) -> Span:
    """Return where words stand in the user's own words of a message; ``what`` names them in the refusal."""
    span = message.find(words)
    if span is None:
        raise NotBelieved(f"Its {what} does not stand in the user's own words of that message.")
    return span


def rests_on(item: MemoryItem, evidence: Evidence) -> bool:
    """Return whether an item's evidence overlaps a span of words."""
    return any(
        one.seq == evidence.seq and one.start < evidence.end and evidence.start < one.end
        for one in item.evidence
    )
