"""Accepts an agent's verdicts on candidates as far as the user's words prove them; pure.

The trust of a kept item stays the user's; its wording may be the agent's. Refusals are reported one by one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.text import one_line, shorten
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.classify import readings
from agentx.synthesis.demands.lifecycle import contrary_demands, same_demand
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.reversals import Occurrence, Revision
from agentx.synthesis.judgement.book import DEMANDS, ClaimBook, Doubts, NotBelieved, no_doubts
from agentx.synthesis.judgement.check import Checked
from agentx.synthesis.judgement.judge_answer import RefusedEntry, shortened
from agentx.synthesis.judgement.quotes import MAX_QUOTE, OwnWords
from agentx.synthesis.judgement.wording import Comparison, compare
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Detail,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    NoteDetail,
    RejectionDetail,
    Scope,
    checks_of,
    free_id,
    joined,
    status_in_words,
    would_change,
)
from agentx.synthesis.memory.policies import may_be_made
from agentx.synthesis.state.state import State

Act = Literal["keep", "drop", "same", "ends", "replaces"]
KeptAs = Literal["", "constraint", "rejection", "decision", "task", "knowledge", "situation"]

KINDS: tuple[Kind, ...] = get_args(KeptAs)[1:]
"""Kinds that an agent may settle, and keep a candidate as."""

Modality = Literal["must", "must_not", "prefer"]

_FORBIDS = re.compile(
    r"\W*(?:please\s+)?(?:never|no|not|don't|do not|avoid|stop|must not|without)\b|.*\bnever\b", re.IGNORECASE
)
_PREFERS = re.compile(r"\b(?:prefer|rather|ideally|would like|would be nice)\b", re.IGNORECASE)


class SettleVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's verdict on one candidate, or on a rule that the user's words may have ended.

    Attributes:
        id: Its ID.
        verdict: ``keep`` it, ``drop`` it, or it says the ``same`` as another item, ``ends`` or ``replaces``
            one. A rule that is perhaps ended can be kept or dropped.
        quote: The user's words that show it, copied exactly from their message; only ``drop`` may omit them.
        kind: What to keep it as; empty for its own kind.
        text: A sentence that can be understood alone, in the agent's words; empty to keep the user's words.
        scope: The user's words that say where it applies; empty for everywhere.
        until: The user's words that say what ends it; empty for nothing.
        other: ID of the item that it repeats, ends or replaces.
        reason: One line for the user.
    """

    id: str
    verdict: Act
    quote: str = ""
    kind: KeptAs = ""
    text: str = ""
    scope: str = ""
    until: str = ""
    other: str = ""
    reason: str = ""


def can_be_settled(item: MemoryItem) -> bool:
    """Return whether an agent may settle an item: a candidate or a perhaps-ended rule of the user's words."""
    waits = item.status == "candidate" or (item.status == "active" and bool(item.perhaps_ended_by))
    proven = item.trust == "user" and any(one.quote for one in item.evidence)
    return waits and proven and item.kind in KINDS and not would_change(item)


def check_verdicts(
    verdicts: Iterable[SettleVerdict],
    said: Mapping[int, str],
    state: State,
    by: str,
    doubts: Doubts = no_doubts,
) -> Checked:
    """Check an agent's verdicts against the user's messages and the current state.

    Args:
        verdicts: The verdicts, in order.
        said: The user's messages that the items rest on, by seq.
        state: The current state.
        by: The agent's actor.
        doubts: Whether words may be somebody else's.
    """
    book = Settling(said, {}, state, by, doubts)
    refused: list[RefusedEntry] = []
    for verdict in verdicts:
        try:
            book.settle(verdict)
        except NotBelieved as error:
            refused.append(RefusedEntry(shortened(verdict.id), str(error)))
    return Checked(tuple(book.changes), book.touched, tuple(refused))


class _Quoted(msgspec.Struct, frozen=True):
    """The user's words that a verdict quotes, with the whole clauses around them."""

    message: OwnWords
    words: str
    evidence: Evidence


class Settling(ClaimBook):
    """The items while an agent's verdicts are processed.

    :func:`check_verdicts` uses it, and :mod:`agentx.synthesis.judgement.remembering`.
    """

    def settle(self, verdict: SettleVerdict) -> None:
        """Settle an item by a verdict."""
        item = self._waiting(verdict.id)
        if item.status == "active":
            self._confirm(item, verdict)
            return
        if item.by_hand:
            raise NotBelieved(f"A person decided on {item.id}, and no agent overturns that.")
        match verdict.verdict:
            case "drop":
                if verdict.quote:
                    self._quoted(item, verdict.quote, item.evidence, proves=False)
                self._patch(Patch(id=item.id, status="retired", reason=self._why(verdict.reason)))
            case "keep":
                self._keep_as(item, verdict, ())
            case "replaces":
                quoted = self._quoted(item, verdict.quote, item.evidence)
                other = self._named(item, verdict.other, quoted)
                if _is_enforced(other) and not (
                    _may_end(quoted, other)
                    or contrary_demands(quoted.words, _modality(item, quoted.words), (other,))
                ):
                    raise NotBelieved(f"The words do not say that {other.id} is replaced.")
                self._keep_as(item, verdict, (other,))
            case "ends":
                self._end(item, verdict)
            case "same":
                other = self._target(item, verdict.other)
                quoted = self._quoted(item, verdict.quote, item.evidence)
                self._require_words(quoted, item, other)
                self._same(item, other, quoted, verdict.reason)

    def _waiting(self, name: str) -> MemoryItem:
        """Return an item that waits for a verdict of this agent."""
        item = self.items.get(name)
        if item is None:
            raise NotBelieved(f"No item {shortened(name)} was found.")
        if item.status != "candidate" and not (item.status == "active" and item.perhaps_ended_by):
            raise NotBelieved(f"{item.id} is {status_in_words(item)}, not a candidate.")
        role = Actor.parse(self.by).name
        if item.agent and item.agent != role:
            raise NotBelieved(f"{item.id} concerns the agent {item.agent}, and this is {role}.")
        if not can_be_settled(item) or not any(one.seq in self.said for one in item.evidence):
            raise NotBelieved(f"{item.id} does not rest on the user's own words, so no agent can settle it.")
        return item

    def _confirm(self, item: MemoryItem, verdict: SettleVerdict) -> None:
        """Settle whether a rule that is perhaps ended still applies."""
        if verdict.verdict == "keep":
            self._patch(Patch(id=item.id, perhaps_ended_by=(), reason=self._why(verdict.reason)))
            return
        if verdict.verdict != "drop":
            raise NotBelieved(f"{item.id} is active and perhaps ended: keep or drop it.")
        if item.by_hand:
            raise NotBelieved(f"A person decided on {item.id}, and no agent overturns that.")
        quoted = self._quoted(item, verdict.quote, item.perhaps_ended_by)
        self._retire(item, quoted.evidence, verdict.reason)

    def _end(self, item: MemoryItem, verdict: SettleVerdict) -> None:
        quoted = self._quoted(item, verdict.quote, item.evidence)
        other = self._named(item, verdict.other, quoted)
        if same_demand(quoted.words, _modality(other, quoted.words), (other,)):
            raise NotBelieved(f"The words say the same as {other.id}; they do not end it.")
        if not _may_end(quoted, other):
            raise NotBelieved(f"The words do not say that {other.id} has ended.")
        self._retire(other, quoted.evidence, verdict.reason)
        self._patch(Patch(id=item.id, status="retired", reason=self._why(f"it ends {other.id}")))

    def _retire(self, item: MemoryItem, evidence: Evidence, reason: str) -> None:
        self._patch(
            Patch(
                id=item.id,
                status="retired",
                evidence=joined(item.evidence, (evidence,)),
                perhaps_ended_by=(),
                reason=self._why(reason),
            )
        )

    def _same(self, item: MemoryItem, other: MemoryItem, quoted: _Quoted, reason: str) -> None:
        """Record a candidate as a repetition of another item, which settles that one if it is a candidate."""
        patch = Patch(id=other.id, evidence=joined(other.evidence, (quoted.evidence,)))
        again = quoted.evidence.seq not in {one.seq for one in other.evidence}
        if other.status == "candidate" and again and not other.by_hand:
            patch = msgspec.structs.replace(patch, status="active", reason=self._why(reason))
        self._patch(patch)
        links = (*item.links, Link("superseded_by", other.id))
        self._patch(Patch(id=item.id, status="retired", links=links, reason=self._why(reason)))

    def _keep_as(self, item: MemoryItem, verdict: SettleVerdict, gone: Sequence[MemoryItem]) -> None:
        """Make a candidate active, in the agent's sentence as far as the words prove it."""
        quoted = self._quoted(item, verdict.quote, item.evidence)
        kind: Kind = verdict.kind or item.kind
        sentence, read = self._read(item, verdict, quoted)
        worded = bool(sentence) and not read.foreign
        text = sentence if worded else item.text if kind == item.kind else quoted.words
        modality = _modality(item, text)
        if kind in ("constraint", "rejection") and not gone:
            standing = [one for one in self._all(kind) if one.id != item.id and one.status == "active"]
            if same := same_demand(text, "rejection" if kind == "rejection" else modality, standing):
                self._same(item, same, quoted, verdict.reason)
                return
        gone = [*gone, *self._contradicted(item, kind, text, modality, gone)]
        scope, until = self._reach(item, verdict, quoted, text)
        reason = verdict.reason
        if sentence and not worded:
            reason = f"reads it as “{sentence}”; not in the user's words: {', '.join(read.foreign)}"
        made = msgspec.structs.replace(
            item,
            kind=kind,
            text=text[:1].upper() + text[1:],
            short=shorten(text),
            scope=scope,
            until=until,
            evidence=joined(
                tuple(one for one in item.evidence if not _overlap(one, quoted.evidence)), (quoted.evidence,)
            ),
            worded_by=self.by if worded else "",
            perhaps_ended_by=(),
            status="active",
            reason=self._why(reason),
            detail=_detail(item, kind, text, modality, quoted.words, scope, until, covered=read.covered),
        )
        if not may_be_made(made):
            raise NotBelieved(f"No {kind} may be made of it.")
        self._record(item, made, gone)

    def _record(self, item: MemoryItem, made: MemoryItem, gone: Sequence[MemoryItem]) -> None:
        if made.kind != item.kind:
            fresh = free_id(made.kind, made.evidence[0].seq, self.items)
            self._replace([item, *gone], msgspec.structs.replace(made, id=fresh, pinned=False))
            return
        for old in gone:
            links = (*old.links, Link("superseded_by", item.id))
            self._patch(
                Patch(id=old.id, status="retired", links=links, perhaps_ended_by=(), reason=made.reason)
            )
        names = ("text", "short", "scope", "until", "evidence", "worded_by", "status", "reason", "detail")
        values = {name: getattr(made, name) for name in names}
        links = (*item.links, *(Link("supersedes", old.id) for old in gone))
        self._patch(Patch(id=item.id, links=links, **values))

    def _read(self, item: MemoryItem, verdict: SettleVerdict, quoted: _Quoted) -> tuple[str, Comparison]:
        """Return the agent's sentence, empty if it is the user's words, and what the words say of it."""
        sentence = one_line(verdict.text)
        if len(sentence) > MAX_QUOTE:
            raise NotBelieved(f"The sentence is longer than {MAX_QUOTE} characters.")
        words = list(dict.fromkeys((quoted.words, *(one.quote for one in item.evidence))))
        if not sentence or _bare(sentence) in map(_bare, words):
            return "", Comparison(covered=True)
        read = compare(sentence, "\n".join(words), item.answers.quote if item.answers else "")
        if read.refused:
            raise NotBelieved(read.refused)
        # An agent's question never makes a check: its words may only explain the user's
        proven = read.covered and (not item.answers or compare(sentence, "\n".join(words)).covered)
        return sentence, msgspec.structs.replace(read, covered=proven)

    def _contradicted(
        self, item: MemoryItem, kind: Kind, text: str, modality: Modality, gone: Sequence[MemoryItem]
    ) -> list[MemoryItem]:
        """Return the active rules that a kept constraint contradicts, and so supersedes."""
        if kind != "constraint":
            return []
        known = {item.id, *(one.id for one in gone)}
        standing = [one for one in self._all(kind) if one.status == "active" and one.id not in known]
        contrary = list(contrary_demands(text, modality, standing))
        for one in contrary:
            if one.by_hand:
                raise NotBelieved(f"It contradicts {one.id}, which a person decided on; a person settles it.")
        return contrary

    def _reach(
        self, item: MemoryItem, verdict: SettleVerdict, quoted: _Quoted, text: str
    ) -> tuple[Scope, str]:
        """Return where and until when it applies, by the user's words or by what they answer."""
        reach = reach_of(text)
        scope = item.scope if item.scope != Scope() else reach.scope
        until = item.until or reach.until
        if verdict.scope:
            words = self._limit(item, quoted, verdict.scope, "scope")
            named = reach_of(words).scope
            scope = named if named != Scope() else Scope(topic=words.lower())
        if verdict.until:
            until = self._limit(item, quoted, verdict.until, "until")
        return scope, until

    def _limit(self, item: MemoryItem, quoted: _Quoted, words: str, what: str) -> str:
        span = quoted.message.find(words)
        places = [one for one in (*item.evidence, quoted.evidence) if one.seq == quoted.evidence.seq]
        if span is not None and any(one.start < span.end and span.start < one.end for one in places):
            return quoted.message.words(span)
        if item.answers and _bare(words) in _bare(item.answers.quote):
            return one_line(words)
        raise NotBelieved(f"Its {what} does not stand in the user's own words, nor in what they answer.")

    def _quoted(
        self, item: MemoryItem, quote: str, evidence: Sequence[Evidence], *, proves: bool = True
    ) -> _Quoted:
        """Find a quote in the user's own words that an item rests on; ``proves``: as the proof of a rule.

        Raises:
            NotBelieved: It does not stand there; the message says what it is instead, as far as is known.
        """
        if not quote.strip():
            raise NotBelieved("A quote of the user's words is missing.")
        seqs = [seq for seq in dict.fromkeys(one.seq for one in evidence) if seq in self.said]
        for seq in seqs:
            message = self._message(seq)
            span = message.find(quote)
            if span is None:
                continue
            found = self._evidence(seq, message.whole(span) or span)
            if not any(_overlap(one, found) for one in evidence):
                raise NotBelieved(f"The quote stands in message {seq}, but {item.id} rests on other words.")
            if proves:
                self._require_own((found,))
            return _Quoted(message, " ".join(found.quote.split()), found)
        where = " or ".join(map(str, seqs)) or "any"
        if any(_bare(quote) in _bare(self.said[seq]) for seq in seqs):
            raise NotBelieved(
                f"In message {where} the quote is quoted, pasted or code: not the user's own words."
            )
        if item.answers and _bare(quote) in _bare(item.answers.quote):
            raise NotBelieved("The quote is what the user answered: an agent's words, not the user's.")
        raise NotBelieved(f"The quote does not stand in the user's own words of message {where}.")

    def _target(self, item: MemoryItem, name: str) -> MemoryItem:
        if not name:
            raise NotBelieved("It does not say which other item it means.")
        other = self._standing(name, KINDS)
        if other.id == item.id:
            raise NotBelieved(f"{item.id} cannot be settled by itself.")
        return other

    def _named(self, item: MemoryItem, name: str, quoted: _Quoted) -> MemoryItem:
        """Return an item that the user's words may end or replace.

        Raises:
            NotBelieved: A person decided on it, or the words do not name what it is about.
        """
        other = self._target(item, name)
        if other.by_hand:
            raise NotBelieved(f"A person decided on {name}, and no agent overturns that.")
        if not any(_overlap(one, quoted.evidence) for one in other.perhaps_ended_by):
            self._require_words(quoted, item, other)
        return other

    def _require_words(self, quoted: _Quoted, item: MemoryItem, other: MemoryItem) -> None:
        heard = item.answers.quote if item.answers else ""
        about = " ".join((other.text, other.until, *(one.quote for one in other.evidence)))
        if not content_words(f"{quoted.words} {heard}") & content_words(about):
            raise NotBelieved(f"The words do not name what {other.id} is about.")


def _may_end(quoted: _Quoted, other: MemoryItem) -> bool:
    """Return whether words can mean that a demand has ended; other items end by any words about them."""
    if other.kind not in DEMANDS or other.status != "active":
        return True
    if any(_overlap(one, quoted.evidence) for one in other.perhaps_ended_by):
        return True
    return any(
        not isinstance(turn, Occurrence) and not (isinstance(turn, Revision) and not turn.sure)
        for reading in readings(quoted.evidence.quote)
        for turn in reading.reversals
    )


def _is_enforced(item: MemoryItem) -> bool:
    return item.status == "active" and bool(checks_of(item))


def _modality(item: MemoryItem, text: str) -> Modality:
    if isinstance(item.detail, ConstraintDetail) and item.detail.modality == "prefer":
        return "prefer"
    if _FORBIDS.match(text):
        return "must_not"
    return "prefer" if _PREFERS.search(text) else "must"


def _detail(
    item: MemoryItem,
    kind: Kind,
    text: str,
    modality: Modality,
    words: str,
    scope: Scope,
    until: str,
    *,
    covered: bool,
) -> Detail:
    if kind == "rejection":
        return item.detail if isinstance(item.detail, RejectionDetail) else RejectionDetail(idea=text)
    if kind != "constraint":
        return item.detail if kind == item.kind else NoteDetail()
    # A check that denies an action comes from the user's words only
    checks = compile_checks(text, modality, scope) if covered else ()
    checks = checks or compile_checks(words, _modality(item, words), scope)
    return ConstraintDetail(modality=modality, duration="for_now" if until else "for_good", checks=checks)


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.seq == other.seq and one.start < other.end and other.start < one.end


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold().replace("’", "'")))
