"""The extractor ``direction``: turns the checkpoints and knowledge of a directive into memory."""

from collections.abc import Iterator, Sequence

from agentx.storage.events.direction_events import DirectiveIssued, NewKnowledge
from agentx.storage.events.types import Event
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.memory.items import CheckpointDetail, Evidence, MemoryItem, sort_of
from agentx.synthesis.scribe.ledger import Ledger, Note
from agentx.synthesis.similarity.near_duplicates import likeness
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

SAME_SUBJECT = 0.5
"""Share of common words from which two facts of one topic have the same subject.

If they differ in a number, a name or a "not", the later one replaces the earlier one."""


class Direction:
    """Draws conclusions from directives."""

    name = "direction"
    version = 1
    reads = (DirectiveIssued,)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return what a directive adds to memory; nothing for other events."""
        del read
        if not isinstance(event.data, DirectiveIssued):
            return ()
        ledger, issued = Ledger(event, state), event.data
        texts = [mark.text for mark in issued.checkpoints] + [fact.text for fact in issued.knowledge]
        places = _places(event.seq, texts)
        own = (run.run for run in reversed(state.runs) if run.schedule == issued.schedule)
        run = next(own, "")
        for mark in issued.checkpoints:
            place, detail = next(places), CheckpointDetail(mark.sort, mark.actionable, run, issued.schedule)
            ledger.add(Note(kind="situation", text=mark.text, evidence=place, trust="agent", detail=detail))
        for fact in issued.knowledge:
            _learn(ledger, fact, next(places))
        return tuple(ledger.changes)


def _places(seq: int, texts: Sequence[str]) -> Iterator[Evidence]:
    """Yield the position of each text, as if the texts were joined by a separator of one character."""
    start = 0
    for text in texts:
        yield Evidence(seq, start, start + len(text), text)
        start += len(text) + 1


def _learn(ledger: Ledger, fact: NewKnowledge, evidence: Evidence) -> None:
    """Reinforce a known fact, replace one that the new fact corrects, or add the fact."""
    facts = (item for item in ledger.standing("knowledge") if sort_of(item) == "knowledge")
    known = [item for item in facts if item.domain.casefold() == fact.topic.casefold()]
    same = max(known, key=lambda item: likeness(item.text, fact.text), default=None)
    if same is not None and likeness(same.text, fact.text):
        ledger.again(same, evidence)
        return
    domain = known[0].domain if known else fact.topic
    corrected = [item for item in known if _shared(item, fact.text) >= SAME_SUBJECT and not item.by_hand]
    note = Note(kind="knowledge", text=fact.text, evidence=evidence, trust="agent", domain=domain)
    ledger.add(note, corrected[:1])


def _shared(item: MemoryItem, text: str) -> float:
    """Return the share of words that two texts have in common, numbers aside (Jaccard)."""
    one, other = (
        {word for word in content_words(said) if not any(map(str.isdigit, word))}
        for said in (item.text, text)
    )
    return len(one & other) / len(one | other) if one | other else 0.0
