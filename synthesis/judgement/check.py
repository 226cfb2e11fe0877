"""Accepts from a model's answer only what can be checked against the user's words and the existing items.

So a message cannot change more through a model than its author could by saying it, and what the user decided
by hand is never overturned. Refusals are reported; the rest is accepted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.lifecycle import contrary_demands, same_demand
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.judgement.book import (
    DEMANDS,
    ClaimBook,
    Doubts,
    NotBelieved,
    located,
    no_doubts,
    rests_on,
)
from agentx.synthesis.judgement.judge_answer import (
    Found,
    JudgeAnswer,
    ProposalVerdict,
    RefusedEntry,
    shortened,
)
from agentx.synthesis.judgement.quotes import OwnWords
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Change, Patch
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Evidence,
    Kind,
    MemoryItem,
    NoteDetail,
    NoteSort,
    RejectionDetail,
    Scope,
    free_id,
    sort_of,
)
from agentx.synthesis.memory.policies import may_be_made
from agentx.synthesis.state.state import State

MAX_FOUND = 8
"""Maximum number of entries read for one message."""

NOTES: dict[str, tuple[Kind, NoteSort]] = {
    "decision": ("decision", ""),
    "task": ("task", ""),
    "context": ("situation", "context"),
    "discovery": ("knowledge", "discovery"),
    "learning": ("knowledge", "learning"),
}
"""What may also be noted from an agent's words, as a model names it: its kind and its sort within it."""


class Checked(msgspec.Struct, frozen=True):
    """The accepted part of an answer.

    Attributes:
        items: The items that they add or change, in their new state.
        refused: Entries that were not accepted, and why.
    """

    changes: tuple[Change, ...]
    items: tuple[MemoryItem, ...]
    refused: tuple[RefusedEntry, ...]


def check(
    answer: JudgeAnswer,
    said: Mapping[int, str],
    state: State,
    model: str,
    heard: Mapping[int, str] | None = None,
    doubts: Doubts = no_doubts,
) -> Checked:
    """Check an answer against the messages shown to the model and the current state; pure.

    The state may have changed since the model was asked. Only notes are made from ``heard``, the agents'
    messages. Both kinds of messages are given by seq; ``model`` is the model's name, for the reasons.
    ``doubts`` tells whether words of the user may be somebody else's.
    """
    book = _Answered(said, heard or {}, state, f"model {model}", doubts)
    entries = [(found.quote, partial(book.enter, found)) for found in answer.found]
    entries += [(verdict.id, partial(book.settle, verdict)) for verdict in answer.verdicts]
    refused = list(answer.refused)
    for what, enter in entries:
        try:
            enter()
        except NotBelieved as error:
            refused.append(RefusedEntry(shortened(what), str(error)))
    return Checked(tuple(book.changes), book.touched, tuple(refused))


class _Answered(ClaimBook):
    """The items while a model's answer is processed."""

    def __init__(
        self, said: Mapping[int, str], heard: Mapping[int, str], state: State, by: str, doubts: Doubts
    ) -> None:
        super().__init__(said, heard, state, by, doubts)
        self._counted: Counter[int] = Counter()

    def enter(self, found: Found) -> None:
        self._counted[found.message] += 1
        if self._counted[found.message] > MAX_FOUND:
            raise NotBelieved(f"More than {MAX_FOUND} entries are of one message.")
        message = self._message(found.message)
        span = located(message, found.quote, "quote")
        whole = message.whole(span)
        evidence = self._evidence(found.message, whole or span)
        if found.kind in NOTES:
            self._note(found, message.words(whole or span), evidence)
            return
        if found.message not in self.said:
            raise NotBelieved("Only the user's own words make or end a rule.")
        if found.kind == "ending":
            self._require_own((evidence,))
            self._end(found, evidence)
            return
        if found.lasting == "no":
            return
        replaced = self._resting_on(evidence, found)
        if replaced is None:
            return
        text = message.words(whole or span)
        modality = "rejection" if found.kind == "rejection" else found.modality
        if found.repeats:
            self._repeat(self._standing(found.repeats, (found.kind,)), evidence, found)
        elif same := same_demand(text, modality, self._all(found.kind)):
            self._repeat(same, evidence, found)
        else:
            scope, until = self._reach(message, found, text)
            sure = found.lasting == "yes" and whole is not None and not self.doubts(evidence)
            self._add(found, text, evidence, scope, until, replaced, sure=sure)

    def _note(self, found: Found, text: str, evidence: Evidence) -> None:
        """Note a decision, task, situation, discovery or learning; the user's own notes are not replaced."""
        kind, sort = NOTES[found.kind]
        alike = [
            item
            for item in self.items.values()
            if sort_of(item) == (sort or kind) and item.status == "active"
        ]
        if found.lasting == "no" or any(rests_on(item, evidence) for item in alike):
            return
        own = (sort or kind,)
        same = self._standing(found.repeats, own) if found.repeats else same_demand(text, "must", alike)
        if same:
            self._patch(Patch(id=same.id, evidence=(*same.evidence, evidence)))
            return
        theirs = evidence.seq in self.said and self.doubts(evidence)
        gone = [] if theirs else [self._standing(name, own) for name in found.replaces]
        item = MemoryItem(
            id=free_id(kind, evidence.seq, self.items),
            kind=kind,
            text=text[:1].upper() + text[1:],
            short=shorten(text),
            evidence=(evidence,),
            trust="user" if evidence.seq in self.said else "agent",
            status="active" if found.lasting == "yes" and not theirs else "candidate",
            reason=self._why(found.reason),
            detail=NoteDetail(sort=sort),
        )
        self._replace([old for old in gone if not old.by_hand], item)

    def _resting_on(self, evidence: Evidence, found: Found) -> list[MemoryItem] | None:
        """Return the candidates of another kind that rest on the same words.

        ``None`` if any other item rests on them, or one that the user decided on by hand. A candidate of this
        kind is then settled; everything else on these words, in whatever status, is left unchanged.
        """
        mine = [item for item in self.items.values() if item.kind in DEMANDS and rests_on(item, evidence)]
        others = [item for item in mine if item.kind != found.kind and item.status == "candidate"]
        if not mine or (len(others) == len(mine) and not any(item.by_hand for item in mine)):
            return others
        for item in mine:
            settled = item.kind == found.kind and item.status == "candidate" and found.lasting == "yes"
            if settled:
                self._require_own(item.evidence)
            if settled and not any(one.by_hand for one in self._contrary(found, item.text)):
                self._keep(item, found.reason)
        return None

    def _repeat(self, item: MemoryItem, evidence: Evidence, found: Found) -> None:
        """Record a repetition as more evidence, which settles a candidate."""
        patch = Patch(id=item.id, evidence=(*item.evidence, evidence))
        if item.status == "candidate" and not item.by_hand and not self.doubts(evidence):
            patch = msgspec.structs.replace(patch, status="active", reason=self._why(found.reason))
        self._patch(patch)

    def _end(self, found: Found, evidence: Evidence) -> None:
        if not found.ends:
            raise NotBelieved("It ends something, and does not say what.")
        said = content_words(evidence.quote)
        for item in [self._own(name) for name in found.ends]:
            if not said & content_words(f"{item.text} {item.until}"):
                raise NotBelieved(f"The words do not name what {item.id} is about.")
            grown = (*item.evidence, evidence)
            self._patch(Patch(id=item.id, status="retired", evidence=grown, reason=self._why(found.reason)))

    def _contrary(self, found: Found, text: str) -> list[MemoryItem]:
        """Return the rules that a demand replaces or contradicts."""
        contrary = [self._standing(name) for name in found.replaces]
        if found.kind == "constraint":
            contrary += contrary_demands(text, found.modality, self._all("constraint"))
        return list({item.id: item for item in contrary}.values())

    def _add(
        self,
        found: Found,
        text: str,
        evidence: Evidence,
        scope: Scope,
        until: str,
        replaced: Sequence[MemoryItem],
        *,
        sure: bool,
    ) -> None:
        contrary = self._contrary(found, text) if sure else [self._standing(name) for name in found.replaces]
        # The user's decision has precedence: they must choose between the two.
        if any(item.by_hand for item in contrary):
            sure, contrary = False, []
        kind: Kind = "rejection" if found.kind == "rejection" else "constraint"
        item = MemoryItem(
            id=free_id(kind, evidence.seq, self.items),
            kind=kind,
            text=text[:1].upper() + text[1:],
            short=shorten(text),
            scope=scope,
            until=until,
            evidence=(evidence,),
            trust="user",
            status="active" if sure else "candidate",
            reason=self._why(found.reason),
            detail=RejectionDetail(idea=text)
            if kind == "rejection"
            else ConstraintDetail(
                modality=found.modality,
                duration="for_now" if until else "for_good",
                checks=compile_checks(text, found.modality, scope),
            ),
        )
        if not may_be_made(item):
            raise NotBelieved(f"No {kind} may be made of it.")
        self._replace([*replaced, *(contrary if sure else ())], item)

    def _reach(self, message: OwnWords, found: Found, text: str) -> tuple[Scope, str]:
        """Return where and until when it applies, by the user's words alone."""
        reach = reach_of(text)
        scope, until = reach.scope, reach.until
        if found.scope:
            words = message.words(located(message, found.scope, "scope"))
            named = reach_of(words).scope
            scope = scope if scope != Scope() else named if named != Scope() else Scope(topic=words.lower())
        if found.until:
            until = message.words(located(message, found.until, "until"))
        return scope, until

    def settle(self, verdict: ProposalVerdict) -> None:
        """Settle a candidate by the model's verdict."""
        item = self._standing(verdict.id)
        if verdict.verdict == "leave":
            return
        if any(verdict.id == change.id for change in self.changes if isinstance(change, Patch)):
            return  # already settled by an entry found in the messages
        if item.status != "candidate":
            raise NotBelieved(f"It is {item.status}, not a candidate.")
        if verdict.verdict == "keep":
            self._keep(item, verdict.reason)
        else:
            self._patch(Patch(id=self._own(item.id).id, status="retired", reason=self._why(verdict.reason)))

    def _keep(self, item: MemoryItem, reason: str) -> None:
        self._own(item.id)
        if item.trust != "user" or not any(evidence.quote for evidence in item.evidence):
            raise NotBelieved("It does not rest on the user's own words, so no model can make it hold.")
        self._require_own(item.evidence)
        self._patch(Patch(id=item.id, status="active", reason=self._why(reason)))
