"""Takes down what an agent says the user demanded, as far as the user's own words prove it; pure.

The words become a candidate of the user's, and the agent's verdict settles it: so an agent that remembers can
do no more than one that settles (:mod:`agentx.synthesis.judgement.settling`).
"""

from collections.abc import Mapping

import msgspec

from agentx.storage.text import one_line, shorten
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.judgement.book import DEMANDS, Doubts, NotBelieved, located, no_doubts, rests_on
from agentx.synthesis.judgement.check import Checked
from agentx.synthesis.judgement.settling import KINDS, Act, SettleVerdict, Settling
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Detail,
    Evidence,
    Kind,
    MemoryItem,
    NoteDetail,
    RejectionDetail,
    free_id,
    status_in_words,
)
from agentx.synthesis.state.state import State

_KEEP: Act = "keep"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent wants remembered of the user's words.

    Attributes:
        kind: What it is.
        quote: The user's words, copied exactly.
        text: A sentence that can be understood alone, in the agent's words; empty to keep the user's.
        seq: The user's message that the words stand in.
    """

    kind: Kind
    quote: str
    text: str
    seq: int


def check_remembered(
    given: Remembered, said: Mapping[int, str], state: State, by: str, doubts: Doubts = no_doubts
) -> Checked:
    """Check what an agent wants remembered against the user's message.

    Args:
        given: What it is.
        said: The message, by seq.
        state: The current state.
        by: The agent's actor.
        doubts: Whether words may be somebody else's.

    Returns:
        The changes; none if an active item of this kind rests on the words already, which is then the item.

    Raises:
        NotBelieved: The words do not stand there, or were decided on already; the message says why.
    """
    book = _Remembering(said, {}, state, by, doubts)
    standing = book.remember(given)
    return Checked(tuple(book.changes), (standing,) if standing else book.touched, ())


class _Remembering(Settling):
    """The items while something is remembered."""

    def remember(self, given: Remembered) -> MemoryItem | None:
        """Add a candidate and settle it; return the item that says so already, if there is one.

        Raises:
            NotBelieved: The words do not prove it.
        """
        if given.kind not in KINDS:
            raise NotBelieved(f"A {given.kind} cannot be remembered; what can: {', '.join(KINDS)}.")
        message = self._message(given.seq)
        span = located(message, given.quote, "quote")
        whole = message.whole(span) or span
        evidence = self._evidence(given.seq, whole)
        candidate = None
        for item in [one for one in self.items.values() if rests_on(one, evidence)]:
            if item.kind == given.kind and item.status == "active":
                return item
            if item.by_hand or (item.kind in DEMANDS and item.status in ("retired", "closed")):
                raise NotBelieved(
                    f"{item.id} rests on these words and is {status_in_words(item)}; the user would have to "
                    "say it again."
                )
            candidate = item if item.status == "candidate" else candidate
        if candidate is None:
            candidate = self._candidate(given.kind, message.words(whole), evidence)
        self.settle(
            SettleVerdict(id=candidate.id, verdict=_KEEP, quote=given.quote, text=given.text, kind=given.kind)  # type: ignore[arg-type]
        )
        return None

    def _candidate(self, kind: Kind, words: str, evidence: Evidence) -> MemoryItem:
        text = one_line(words)
        reach = reach_of(text)
        detail: Detail = NoteDetail()
        if kind == "constraint":
            detail = ConstraintDetail()
        elif kind == "rejection":
            detail = RejectionDetail(idea=text)
        item = MemoryItem(
            id=free_id(kind, evidence.seq, self.items),
            kind=kind,
            text=text[:1].upper() + text[1:],
            short=shorten(text),
            scope=reach.scope,
            until=reach.until,
            evidence=(evidence,),
            trust="user",
            status="candidate",
            detail=detail,
        )
        self.items[item.id] = item
        self.changes.append(Add(item))
        return item
