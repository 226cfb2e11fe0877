"""Decides what matters most when there is more than room: what touches the message first, then the latest."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from agentx.storage.events.actor import Actor
from agentx.synthesis.language.words import STOP_WORDS, content_words, vocabulary, words_of
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.memory.policies import most_shown
from agentx.synthesis.state.state import State

CANDIDATES_SHOWN = 50
"""Maximum number of candidates in a context."""

COMPARED = 500
"""Maximum number of items whose words are compared with a message: the latest. It limits the time."""

LATEST_SAID = 2
"""Number of user messages whose words bring back a candidate."""

SESSION = timedelta(hours=24)
"""Time before the newest candidate within which candidates are shown whatever they are about."""

_GOING_ON = vocabulary(
    """
    stop stopped stand stands stood standing left leave next continue continuing resume status state
    progress recap summary summarize remaining remains pending pause paused interrupted catch pick go going
    proceed further begin began start started finish finished done open todo last doing now
    """
)
"""Words that ask how the work goes on."""

_AROUND = vocabulary(
    """
    yesterday today tonight tomorrow morning afternoon evening night noon day days week weekend month monday
    tuesday wednesday thursday friday saturday sunday earlier recently previous previously ago time session
    conversation chat talk talking still far forward point place play things work working worked task tasks
    thing stuff happen happened back come came current currently exactly actually briefly quick quickly
    first good hello hi hey dear welcome thank thanks sorry remind tell show give say said know remember ask
    asked what's who's where's how's where'd here's
    """
)
"""Words that may surround those: times, greetings, and verbs without a subject."""


def only_resumes(message: str) -> bool:
    """Return whether a message asks how the work goes on, without naming a subject.

    >>> only_resumes("Good morning, where did we stop yesterday?"), only_resumes("What's next for the choir?")
    (True, False)
    """
    said = {word.casefold().replace("’", "'") for word in words_of(message)}
    asks = said & _GOING_ON or ("we" in said and said & {"where", "do", "did"})
    return bool(asks) and said <= _GOING_ON | _AROUND | STOP_WORDS


def most_relevant(items: Iterable[MemoryItem], message: str) -> list[MemoryItem]:
    """Sort items: those of the latest that share most words with the message first, then the latest."""
    asked = content_words(message)

    def shared(item: MemoryItem) -> int:
        return 0 if most_shown(item) == 1 else len(asked & _words_of(item))

    newest_first = list(items)[::-1]
    return [*sorted(newest_first[:COMPARED], key=shared, reverse=True), *newest_first[COMPARED:]]


def candidates(state: State, message: str, current: int = 0) -> list[MemoryItem]:
    """Return the candidates to show: those that touch the work, and those of the latest session.

    A candidate touches the work if it shares a word with the message, an open task or one of the user's
    latest messages; ``current`` is the event of the message itself.

    Returns:
        Those that touch the message first, then those that touch the work, then the others; newest first
        among equals.
    """
    said = [one.text for one in state.messages if one.seq != current and Actor.parse(one.actor).is_user]
    work = frozenset[str]().union(
        *map(content_words, said[-LATEST_SAID:]), *(content_words(task.text) for task in state.active("task"))
    )
    noted = {(one.seq, one.start) for item in state.active("decision", "knowledge") for one in item.evidence}
    found = [
        item
        for item in state.active(status="candidate")
        if item.trust == "user"
        and any(one.quote for one in item.evidence)
        and not any((one.seq, one.start) in noted for one in item.evidence)
    ][-COMPARED:]
    recent = _of_latest_session(found)
    asked = content_words(message)
    ranked = [
        (-len(asked & words), not words & work, item)
        for item in reversed(found)
        if (words := _words_of(item)) & (asked | work) or item.id in recent
    ]
    return [item for *_, item in sorted(ranked, key=lambda one: one[:2])][:CANDIDATES_SHOWN]


def _of_latest_session(items: Sequence[MemoryItem]) -> set[str]:
    """Return the ids of the items made within :data:`SESSION` of the newest one."""
    times = {item.id: at for item in items if (at := _time(item.created_at))}
    latest = max(times.values(), default=None)
    return {name for name, at in times.items() if latest is not None and latest - at <= SESSION}


def _time(at: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return None
    return found if found.tzinfo else None


def _words_of(item: MemoryItem) -> frozenset[str]:
    answered = content_words(item.answers.quote) if item.answers else frozenset[str]()
    return content_words(item.text).union(answered, *(content_words(one.quote) for one in item.evidence))
