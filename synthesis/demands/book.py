"""The user's rules while one message is read: each sentence changes an existing rule or adds a new one."""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.compiling.compile import asking, compile_checks
from agentx.synthesis.compiling.reading.rule import in_context
from agentx.synthesis.demands.classify import Demand, Reading, Rejection, as_sentence, doubted, is_brief
from agentx.synthesis.demands.lifecycle import contrary_demands, same_demand
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.reversals import (
    Fulfilment,
    Occurrence,
    Retraction,
    Reversal,
    Revision,
    Withdrawal,
    is_decisive,
)
from agentx.synthesis.demands.targets import (
    ended_by,
    fulfilled_by,
    perhaps_ended_by,
    perhaps_fulfilled_by,
    perhaps_revised_by,
    revised_by,
)
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    WOULD_END,
    ConstraintDetail,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    RejectionDetail,
    Scope,
    Status,
    free_id,
    is_offered,
)
from agentx.synthesis.state.answered import answered
from agentx.synthesis.state.state import State

_STANDING: tuple[Status, ...] = ("active", "candidate")
_NOTES: tuple[Kind, ...] = ("task", "decision", "situation", "knowledge")
_MOSTLY = 0.6
"""Share of a message that a rule must fill, so that "scratch that" in the next message refers to it."""
_SENTENCE_END = re.compile(r"[.!?]\s|\n")


class Book:
    """The current rules while one message is read, and the changes so far.

    Args:
        seq: Sequence number of the message's event.
        text: The message text.
        state: The state before the message.
        is_task: Whether the message is no more than the task of a run.
        is_spoken: Whether the user said a quote of an earlier message of their own accord, by its number.
    """

    def __init__(
        self,
        seq: int,
        text: str,
        state: State,
        *,
        is_task: bool = False,
        is_spoken: Callable[[int, str], bool] = lambda _seq, _quote: True,
    ) -> None:
        self.changes: list[Change] = []
        self._is_task, self._is_spoken = is_task, is_spoken
        self._copied = False
        self._seq = seq
        self._text = text
        self._brief = is_brief(text)
        self._items = dict(state.items)
        self._messages = state.messages
        self._state = state
        self._known = frozenset(  # passages whose items changed after this message
            (e.seq, e.start, e.end)
            for item in state.items.values()
            if item.changed_seq >= seq
            for e in (*item.evidence, *item.perhaps_ended_by)
        )

    def enter(self, reading: Reading, *, copied: bool = False) -> None:
        """Apply a sentence: change an existing rule or, where it changes none, add the rules it states.

        What may be somebody else's, because they wrote it before (``copied``), changes no rule: it is a
        candidate.
        """
        self._copied = copied
        if copied:
            self._propose(Reading(reading.reversals, doubted(reading.rules)))
            return
        certain = any(isinstance(rule, Demand) and rule.certainty == "active" for rule in reading.rules)
        turns = [turn for turn in reading.reversals if is_decisive(turn) or not certain]
        for turn in turns:
            if self._is_known(turn.evidence):
                return
            if self._turn(turn) and not isinstance(turn, Withdrawal):
                return
        if not certain and self._ask(turns):
            return
        self._state_rules(reading)
        if certain:
            self._ask([turn for turn in reading.reversals if isinstance(turn, Revision)])

    def _state_rules(self, reading: Reading) -> None:
        """Add what a sentence demands or rejects, or repeats."""
        for rule in () if reading.closed else reading.rules:
            if self._is_known(rule.evidence):
                continue
            if isinstance(rule, Demand):
                self._demand(rule, self._evidence(rule.evidence))
            else:
                self._reject(rule, self._evidence(rule.evidence))

    def _propose(self, reading: Reading) -> None:
        """Enter a sentence that others wrote before: as candidates, which a person settles.

        A rule that it would end stands as it was: the proposal to end it stands beside it.
        """
        before = len(self.changes)
        self._state_rules(reading)
        if len(self.changes) > before:
            return
        standing = self._standing("constraint", "rejection")
        rules = [item for item in standing if all(one.seq != self._seq for one in item.evidence)]
        for turn in reading.reversals:
            if self._is_known(turn.evidence):
                return
            if found := self._would_end(turn, rules) or self._may_end(turn, rules):
                for item in found:
                    self._propose_end(item, self._evidence(turn.evidence))
                return

    def _propose_end(self, rule: MemoryItem, evidence: Evidence) -> None:
        for item in tuple(self._items.values()):
            if item.status == "candidate" and Link(WOULD_END, rule.id) in item.links:
                self._patch(Patch(id=item.id, evidence=(*item.evidence, evidence)))
                return
        text = evidence.quote.strip()
        self._add(
            MemoryItem(
                id=free_id("decision", self._seq, self._items),
                kind="decision",
                text=text,
                short=shorten(text),
                evidence=(evidence,),
                trust="user",
                status="candidate",
                reason=f"It would end {rule.id}, and somebody else wrote it first.",
                links=(Link(WOULD_END, rule.id),),
            )
        )

    # --- changes to existing rules ----------------------------------------------------------------

    def _turn(self, turn: Reversal) -> bool:
        """Apply a reversal; return whether it clearly changed a rule."""
        rules = tuple(self._standing("constraint", "rejection"))
        match turn:
            case Retraction():
                return self._end(ended_by(turn, rules), turn.evidence)
            case Fulfilment():
                return self._end(fulfilled_by(turn, rules), turn.evidence)
            case Withdrawal():
                return self._end(self._said_before(turn.evidence), turn.evidence)
            case Revision():
                return self._revise(turn, rules)
        return False

    def _ask(self, turns: Sequence[Reversal]) -> bool:
        """Mark the rules that a sentence may end; return whether it says nothing else."""
        standing = self._standing("constraint", "rejection")
        rules = [item for item in standing if all(one.seq != self._seq for one in item.evidence)]
        for turn in turns:
            found = self._may_end(turn, rules)
            for item in found:
                words = (*item.perhaps_ended_by, self._evidence(turn.evidence))
                self._patch(Patch(id=item.id, perhaps_ended_by=words))
            if found:
                # What may end a candidate only may be something else as well.
                alone = not isinstance(turn, Retraction) or turn.alone
                return alone and any(item.status == "active" for item in found)
        return False

    def _may_end(self, turn: Reversal, rules: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
        """Return the rules that a sentence may end or replace."""
        match turn:
            case Retraction():
                return perhaps_ended_by(turn, rules)
            case Fulfilment() | Occurrence():
                return perhaps_fulfilled_by(turn, rules)
            case Revision(sure=True):
                return perhaps_revised_by(self._text[turn.evidence.start : turn.evidence.end], rules)
        return ()

    def _would_end(self, turn: Reversal, rules: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
        """Return the rules that a sentence would end or replace if it were certainly the user's."""
        match turn:
            case Retraction():
                return ended_by(turn, rules)
            case Fulfilment():
                return fulfilled_by(turn, rules)
            case Withdrawal():
                return self._said_before(turn.evidence)
            case Revision():
                old = revised_by(as_sentence(turn.what), turn.unwanted, rules)
                return (old,) if old else ()
        return ()

    def _end(self, items: Sequence[MemoryItem], span: Span) -> bool:
        for item in items:
            evidence = (*item.evidence, self._evidence(span))
            self._patch(Patch(id=item.id, status="retired", evidence=evidence, perhaps_ended_by=()))
            self._end_what_came_of(item)
        return bool(items)

    def _end_what_came_of(self, rule: MemoryItem) -> None:
        """End what rests on the same words as a rule that ended, and proposals to end the rule."""
        places = [(one.seq, one.start, one.end) for one in rule.evidence[:1]]
        for item in tuple(self._items.values()):
            if item.status == "candidate" and Link(WOULD_END, rule.id) in item.links and not is_offered(item):
                self._patch(Patch(id=item.id, status="closed", reason=f"{rule.id} ended."))
                continue
            rests = item.kind in _NOTES and item.status in _STANDING and item.evidence[:1]
            for seq, start, end in places if rests else ():
                one = item.evidence[0]
                if one.seq == seq and one.start < end and start < one.end:
                    reason = f"{rule.id} ended, from the same words."
                    self._patch(Patch(id=item.id, status="closed", reason=reason))

    def _revise(self, turn: Revision, rules: Sequence[MemoryItem]) -> bool:
        """Replace a rule by another choice.

        The new rule inherits what the words leave open: its scope, its end and its certainty.
        """
        text = as_sentence(turn.what)
        old = revised_by(text, turn.unwanted, rules)
        reach = reach_of(text)
        detail = old.detail if old else None
        if not old or not isinstance(detail, ConstraintDetail) or reach.scope not in (old.scope, Scope()):
            return False
        demand = Demand(
            text=text,
            evidence=turn.evidence,
            modality="prefer" if detail.modality == "prefer" else "must",
            certainty="active" if old.status == "active" else "candidate",
            scope=old.scope,
            until=reach.until or old.until,
            for_now=bool(reach.until) or detail.duration == "for_now",
            shape="revision",
        )
        self._make(demand, (old,))
        return True

    def _said_before(self, span: Span) -> list[MemoryItem]:
        """Return the one rule made just before a position: in this message or, at its start, in the last."""
        seqs, least = [self._seq], 0.0
        if not self._text[: span.start].strip(" \t\r\n.!"):
            said = (one for one in reversed(self._messages) if one.seq < self._seq and from_user(one.actor))
            before = next(said, None)
            seqs, least = ([before.seq], _MOSTLY * len(before.text)) if before else ([], 0.0)
        standing = self._standing("constraint", "rejection")
        made = [item for item in standing if item.evidence and item.evidence[0].seq in seqs]
        return made if len(made) == 1 and len(made[0].evidence[0].quote) >= least else []

    # --- new rules --------------------------------------------------------------------------------

    def _demand(self, demand: Demand, evidence: Evidence) -> None:
        standing = tuple(self._standing("constraint"))
        certain = demand.certainty == "active"
        contrary = contrary_demands(demand.text, demand.modality, standing) if certain else ()
        # A demand without a scope covers every scope.
        contrary = tuple(item for item in contrary if demand.scope in (item.scope, Scope()))
        known = (*self._lapsed("constraint"), *standing)
        if self._is_task and not certain:  # what a person dropped does not come back with each run
            known = tuple(item for item in self._items.values() if item.kind == "constraint")
        if not contrary and (same := same_demand(demand.text, demand.modality, known)):
            self._repeat(same, evidence, demand.certainty, ordered=demand.ordered)
            return
        self._make(demand, contrary)

    def _make(self, demand: Demand, replaced: Sequence[MemoryItem]) -> None:
        identity = free_id("constraint", self._seq, self._items)
        evidence = self._evidence(demand.evidence)
        checks = compile_checks(demand.text, demand.modality, demand.scope)
        scope = demand.scope
        if not checks and (words := in_context(self._text, demand.evidence)) and not scope.topic:
            checks = compile_checks(words, demand.modality, Scope())
            scope = Scope() if checks else scope
        for item in replaced:
            self._end_what_came_of(item)
            links = (*item.links, Link("superseded_by", identity))
            self._patch(Patch(id=item.id, status="retired", links=links, perhaps_ended_by=()))
        self._add(
            MemoryItem(
                id=identity,
                kind="constraint",
                text=demand.text,
                short=shorten(demand.text),
                scope=scope,
                until=demand.until,
                evidence=(evidence,),
                trust="user",
                answers=self._answers(evidence) if demand.certainty == "candidate" else None,
                status=demand.certainty,
                links=tuple(Link("supersedes", item.id) for item in replaced),
                detail=ConstraintDetail(
                    modality=demand.modality,
                    duration="for_now" if demand.for_now else "for_good",
                    checks=checks,
                ),
            )
        )

    def _reject(self, rejection: Rejection, evidence: Evidence) -> None:
        known = (*self._lapsed("rejection"), *self._standing("rejection"))
        if self._is_task and rejection.certainty == "candidate":
            known = tuple(item for item in self._items.values() if item.kind == "rejection")
        # Words that name nothing never count as the same idea, however often they are repeated.
        if rejection.idea and (same := same_demand(rejection.idea, "rejection", known)):
            self._repeat(same, evidence, rejection.certainty)
            return
        self._add(
            MemoryItem(
                id=free_id("rejection", self._seq, self._items),
                kind="rejection",
                text=rejection.text,
                short=shorten(rejection.text),
                evidence=(evidence,),
                trust="user",
                answers=self._answers(evidence) if rejection.certainty == "candidate" else None,
                status=rejection.certainty,
                detail=RejectionDetail(
                    idea=rejection.idea or rejection.text,
                    reason=rejection.reason,
                    checks=asking(compile_checks(rejection.text, "must_not", Scope())),
                ),
            )
        )

    def _repeat(
        self, item: MemoryItem, evidence: Evidence, certainty: Status, *, ordered: bool = False
    ) -> None:
        """Record a repetition as more evidence.

        A candidate becomes a rule if it is certain now, or if it is an order that another message repeats. A
        rule that lapsed becomes a candidate again. A brief that is sent again counts as one statement. So do
        the task of a run that is started again, and words that somebody else wrote first.
        """
        if self._is_task and certainty == "candidate":
            return
        before = item.evidence[-1].seq if item.evidence else self._seq
        again = (
            ordered
            and item.status == "candidate"
            and before != self._seq
            and not (self._brief or self._copied)
            and any(self._is_spoken(one.seq, one.quote) for one in item.evidence if one.seq != self._seq)
        )
        settled = item.status == "active" or certainty == "active" or again
        status: Status = "active" if settled else "candidate"
        reason = msgspec.UNSET if item.status in _STANDING else ""
        asked = msgspec.UNSET if self._copied or not item.perhaps_ended_by else ()
        places = (*item.evidence, evidence)
        self._patch(Patch(id=item.id, evidence=places, status=status, reason=reason, perhaps_ended_by=asked))

    def _standing(self, *kinds: Kind) -> Iterator[MemoryItem]:
        return (
            item
            for item in self._items.values()
            if item.kind in kinds and item.status in _STANDING and not is_offered(item)
        )

    def _lapsed(self, kind: Kind) -> Iterator[MemoryItem]:
        return (item for item in self._items.values() if item.kind == kind and item.status == "closed")

    def _answers(self, evidence: Evidence) -> Evidence | None:
        """Return the agent's sentence that the first sentence of the message answers."""
        first = not _SENTENCE_END.search(self._text[: evidence.start])
        return answered(self._state, evidence.quote, self._seq) if first else None

    def _evidence(self, span: Span) -> Evidence:
        return Evidence(self._seq, span.start, span.end, self._text[span.start : span.end])

    def _add(self, item: MemoryItem) -> None:
        self._items[item.id] = item
        self.changes.append(Add(item))

    def _patch(self, patch: Patch) -> None:
        self._items[patch.id] = msgspec.structs.replace(self._items[patch.id], **patch.fields())
        self.changes.append(patch)

    def _is_known(self, span: Span) -> bool:
        return (self._seq, span.start, span.end) in self._known


def from_user(actor: str) -> bool:
    """Return whether an actor is the user, named or unnamed."""
    return actor == "user" or actor.startswith("user:")
