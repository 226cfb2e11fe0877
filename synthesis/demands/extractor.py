"""The extractor ``demands``: concludes constraints and rejections from what a user says, and from nothing else."""

from collections.abc import Iterator, Sequence

import msgspec

from agentx.storage.events import Event, UserMessageSent
from agentx.synthesis.conclusions import Add, Change, Patch
from agentx.synthesis.demands.classify import (
    Demand,
    Finding,
    Fulfilment,
    Permission,
    Rejection,
    Retraction,
    findings,
)
from agentx.synthesis.demands.compile import compile_check
from agentx.synthesis.demands.lifecycle import (
    allowed_by,
    contrary_demands,
    ended_by,
    fulfilled_by,
    same_demand,
)
from agentx.synthesis.demands.sentences import Span
from agentx.synthesis.extractor import ReadBody
from agentx.synthesis.items import (
    ConstraintDetail,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    RejectionDetail,
    Status,
    item_id,
    shorten,
)
from agentx.synthesis.state import State

_STANDING: tuple[Status, ...] = ("active", "proposed")


class DemandExtractor:
    """Takes the lasting demands out of a user's message, without a model.

    Only ``UserMessageSent`` by ``user`` or ``user:<name>`` is read: what a tool, a file, an agent or an import says
    never makes a rule. What is certain becomes active, what is likely is proposed.
    """

    name = "demands"
    version = 1

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """The rules that a message makes, repeats, replaces and ends; empty for most messages."""
        if not isinstance(event.data, UserMessageSent) or not (
            event.actor == "user" or event.actor.startswith("user:")
        ):
            return ()
        text = read(event.data.body)
        book = _Book(event.seq, text, state)
        for finding in findings(text):
            book.enter(finding)
        return tuple(book.changes)


class _Book:
    """The rules as they stand while one message is read, and the changes so far."""

    def __init__(self, seq: int, text: str, state: State) -> None:
        self.seq = seq
        self.text = text
        self.changes: list[Change] = []
        self.items = dict(state.items)
        self.known = frozenset((e.seq, e.start, e.end) for item in self.items.values() for e in item.evidence)

    def enter(self, finding: Finding) -> None:
        evidence = self._evidence(finding.evidence)
        if (evidence.seq, evidence.start, evidence.end) in self.known:
            return
        match finding:
            case Demand():
                self._demand(finding, evidence)
            case Rejection():
                self._reject(finding, evidence)
            case Retraction():
                item = ended_by(finding.what, self._standing("constraint", "rejection"), sure=finding.sure)
                if item:
                    self._patch(Patch(id=item.id, status="retired", evidence=(*item.evidence, evidence)))
            case Permission():
                for item in allowed_by(finding.what, self._standing("constraint", "rejection")):
                    self._patch(Patch(id=item.id, status="retired", evidence=(*item.evidence, evidence)))
            case Fulfilment():
                statement = self.text[finding.evidence.start : finding.evidence.end]
                for item in fulfilled_by(finding.what, statement, self._standing("constraint")):
                    self._patch(Patch(id=item.id, status="retired", evidence=(*item.evidence, evidence)))

    def _demand(self, demand: Demand, evidence: Evidence) -> None:
        standing = tuple(self._standing("constraint"))
        contrary = (
            contrary_demands(demand.text, demand.modality, standing) if demand.certainty == "active" else ()
        )
        contrary = tuple(item for item in contrary if _same_reach(item, demand))
        known = (*self._lapsed("constraint"), *standing)
        if not contrary and (same := same_demand(demand.text, demand.modality, known)):
            self._repeat(same, evidence, demand.certainty)
            return
        identity = self._identity("constraint")
        for item in contrary:
            links = (*item.links, Link("superseded_by", identity))
            self._patch(Patch(id=item.id, status="superseded", links=links))
        self._add(
            MemoryItem(
                id=identity,
                kind="constraint",
                text=demand.text,
                short=shorten(demand.text),
                scope=demand.scope,
                until=demand.until,
                evidence=(evidence,),
                trust="user",
                status=demand.certainty,
                links=tuple(Link("supersedes", item.id) for item in contrary),
                detail=ConstraintDetail(
                    modality=demand.modality,
                    duration="for_now" if demand.for_now else "for_good",
                    check=compile_check(demand.text, demand.modality, demand.scope),
                ),
            )
        )

    def _reject(self, rejection: Rejection, evidence: Evidence) -> None:
        known = (*self._lapsed("rejection"), *self._standing("rejection"))
        # Words that name nothing are never the same idea again, however often they are said.
        if rejection.idea and (same := same_demand(rejection.idea, "rejection", known)):
            self._repeat(same, evidence, rejection.certainty)
            return
        self._add(
            MemoryItem(
                id=self._identity("rejection"),
                kind="rejection",
                text=rejection.text,
                short=shorten(rejection.text),
                evidence=(evidence,),
                trust="user",
                status=rejection.certainty,
                detail=RejectionDetail(idea=rejection.idea or rejection.text, reason=rejection.reason),
            )
        )

    def _repeat(self, item: MemoryItem, evidence: Evidence, certainty: Status) -> None:
        """The same again: more evidence; a proposal becomes a rule when it is certain now, or said in another message.

        One that has lapsed is a proposal again.
        """
        again = item.status == "proposed" and item.evidence and item.evidence[-1].seq != self.seq
        settled = item.status == "active" or certainty == "active" or again
        status: Status = "active" if settled else "proposed"
        reason = msgspec.UNSET if item.status in _STANDING else ""
        self._patch(Patch(id=item.id, evidence=(*item.evidence, evidence), status=status, reason=reason))

    def _standing(self, *kinds: Kind) -> Iterator[MemoryItem]:
        return (item for item in self.items.values() if item.kind in kinds and item.status in _STANDING)

    def _lapsed(self, kind: Kind) -> Iterator[MemoryItem]:
        return (item for item in self.items.values() if item.kind == kind and item.status == "archived")

    def _evidence(self, span: Span) -> Evidence:
        return Evidence(self.seq, span.start, span.end, self.text[span.start : span.end])

    def _identity(self, kind: Kind) -> str:
        ordinal = 0
        while (identity := item_id(kind, self.seq, ordinal)) in self.items:
            ordinal += 1
        return identity

    def _add(self, item: MemoryItem) -> None:
        self.items[item.id] = item
        self.changes.append(Add(item))

    def _patch(self, patch: Patch) -> None:
        self.items[patch.id] = msgspec.structs.replace(self.items[patch.id], **patch.fields())
        self.changes.append(patch)


def _same_reach(item: MemoryItem, demand: Demand) -> bool:
    """Whether a rule and a demand apply to the same; a demand without a scope reaches over every scoped one."""
    return demand.scope in (item.scope, type(demand.scope)())
