"""Flows: match a message to a procedure, rate its track record, and list the flows that need attention.

Words are checked first: a flow matches if one sentence contains the words of one of its phrases (its name and
triggers), in any order and inflection. Words that few flows share weigh most. If embeddings are given,
meaning finds paraphrases. If nothing is near enough, nothing is returned: no flow is better than the wrong
one.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from agentx.storage.index.port import Vector
from agentx.synthesis.language.words import (
    STOP_WORDS,
    SYNONYMS,
    Phrases,
    meanings,
    named,
    stem,
    vocabulary,
    words_of,
)
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import FlowDetail, MemoryItem
from agentx.synthesis.memory.vitality import days_between
from agentx.synthesis.state.state import State

CONFIDENCE_Z = 1.959964
"""Quantile of the normal distribution for 95%."""

RELIABLE = 0.7
"""Success rate above which a flow is reliable. ``proven`` is confidently above it, ``broken`` confidently
below.
"""

UNUSED_DAYS = 30
"""Days without use, counted from its creation, after which a flow is not needed or its triggers do not fit.
"""

WORDS_ENOUGH = 0.75
"""Share of a phrase's weight from which its words alone are enough for a match."""

MEANING_ENOUGH = 0.55
"""Cosine between a sentence and a flow's :func:`called` text from which meaning is enough (measured with
MiniLM).
"""

MEANING_NEAR = 0.4
"""Cosine from which a flow may be suggested to the user, though it is not near enough to be followed unasked.
"""

MAX_SENTENCES = 40
"""Maximum number of sentences of a message that are read."""

Standing = Literal["proven", "unproven", "broken", "unused"]


class Effectiveness(msgspec.Struct, frozen=True):
    """Success rate of a flow, with its confidence interval.

    Attributes:
        low: Lower bound of the success rate, from 0 to 1, at 95% confidence.
        mean: The observed success rate; 0 if there are no tries.
        high: Upper bound of the success rate.
        tries: Number of tasks it is based on.
    """

    low: float
    mean: float
    high: float
    tries: int


class FlowMatch(msgspec.Struct, frozen=True):
    """A flow that matches a message.

    Attributes:
        item: The flow.
        score: From 0 to 1, of words and meaning together.
        why: One sentence: which phrase matched, and how.
        by: Whether words or meaning decided.
    """

    item: MemoryItem
    score: float
    why: str
    by: Literal["words", "meaning"]


class Advice(msgspec.Struct, frozen=True):
    """A recommendation to the user about a flow.

    Attributes:
        item: Id of the flow.
        action: ``rewrite`` if it works only sometimes, ``retire`` if it never worked or nobody uses it.
        why: One sentence.
    """

    item: str
    action: Literal["rewrite", "retire"]
    why: str


# --- track record -------------------------------------------------------------------------------------------


def effectiveness(detail: FlowDetail) -> Effectiveness:
    """Return the share of tasks that passed, with the Wilson score interval at 95%.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927), 209-212; recommended for few tries by Brown, Cai and DasGupta,
    Statistical Science 16 (2001), 101-133.

    >>> few = effectiveness(FlowDetail(steps=(), succeeded=2))
    >>> round(few.low, 2), few.mean, few.high
    (0.34, 1.0, 1.0)
    """
    tries = detail.succeeded + detail.failed
    if tries == 0:
        return Effectiveness(0.0, 0.0, 1.0, 0)
    share, z2 = detail.succeeded / tries, CONFIDENCE_Z**2
    centre = (share + z2 / (2 * tries)) / (1 + z2 / tries)
    spread = math.sqrt(share * (1 - share) / tries + z2 / (4 * tries**2)) * CONFIDENCE_Z / (1 + z2 / tries)
    return Effectiveness(
        low=0.0 if detail.succeeded == 0 else centre - spread,
        mean=share,
        high=1.0 if detail.failed == 0 else centre + spread,
        tries=tries,
    )


def standing(detail: FlowDetail) -> Standing:
    """Return whether a flow's record proves it reliable, proves it broken, or proves nothing yet.

    >>> standing(FlowDetail(steps=(), succeeded=2)), standing(FlowDetail(steps=(), succeeded=32, failed=2))
    ('unproven', 'proven')
    """
    found = effectiveness(detail)
    if found.tries == 0:
        return "unused"
    if found.low >= RELIABLE:
        return "proven"
    return "broken" if found.high < RELIABLE else "unproven"


def told(detail: FlowDetail) -> str:
    """Return a short description of a flow's record.

    >>> told(FlowDetail(steps=(), succeeded=32, failed=2)), told(FlowDetail(steps=()))
    ('94% (32 of 34; 81–98%)', 'never used')
    """
    found = effectiveness(detail)
    if found.tries == 0:
        return "never used"
    low, high = round(found.low * 100), round(found.high * 100)
    return f"{found.mean:.0%} ({detail.succeeded} of {found.tries}; {low}–{high}%)"


def graded(item: MemoryItem, *, passed: bool, at: str = "") -> Patch:
    """Return a flow's counters after one more task that followed it.

    Args:
        item: The flow.
        passed: Whether the task succeeded.
        at: Time of use, formatted like :attr:`agentx.storage.events.types.Event.at`; empty leaves it
            unchanged.

    Raises:
        TypeError: The item is not a flow.
    """
    detail = item.detail
    if not isinstance(detail, FlowDetail):
        raise TypeError(f"{item.id} is not a flow")
    detail = msgspec.structs.replace(
        detail, succeeded=detail.succeeded + passed, failed=detail.failed + (not passed)
    )
    return Patch(id=item.id, detail=detail, used_at=at or msgspec.UNSET)


def advice(state: State) -> list[Advice]:
    """Return the flows that should be rewritten or retired, oldest first. The others need no attention."""
    found: list[Advice] = []
    for item, detail in _flows(state, "active"):
        how = standing(detail)
        age = days_between(item.created_at, state.at)
        if how == "broken" and detail.succeeded:
            found.append(Advice(item.id, "rewrite", f"it works in {told(detail)}: change its steps"))
        elif how == "broken":
            found.append(Advice(item.id, "retire", f"it failed all {detail.failed} times"))
        elif how == "unused" and age >= UNUSED_DAYS and not item.pinned:
            why = f"nobody followed it in {age:.0f} days: its triggers do not fit, or it is not needed"
            found.append(Advice(item.id, "retire", why))
    return found


def _flows(state: State, status: str) -> Iterator[tuple[MemoryItem, FlowDetail]]:
    for item in state.items.values():
        if item.kind == "flow" and item.status == status and isinstance(item.detail, FlowDetail):
            yield item, item.detail


# --- matching -----------------------------------------------------------------------------------------------

_PHRASES: Phrases = (
    (re.compile(r"\b(?:pull|merge)[ -]requests?\b", re.IGNORECASE), "pr"),
    (re.compile(r"\broll(?:ed|ing|s)?[ -]((?:\w+ ){0,3})back\b", re.IGNORECASE), r"revert \1"),
    (re.compile(r"\broll(?:ed|ing|s)?[ -]((?:\w+ ){0,3})out\b", re.IGNORECASE), r"deploy \1"),
    (re.compile(r"\b(?:go|going|went|put|push)(?:ing)? ((?:\w+ ){0,3})live\b", re.IGNORECASE), r"deploy \1"),
    (re.compile(r"\bback(?:ed|ing|s)?[ -]up\b", re.IGNORECASE), "backup"),
    (re.compile(r"\b(?:set(?:ting|s)?|spin(?:ning|s)?)[ -]up\b", re.IGNORECASE), "setup"),
    (re.compile(r"\bclean(?:ed|ing|s)?[ -]((?:\w+ ){0,3})up\b", re.IGNORECASE), r"cleanup \1"),
    (re.compile(r"\b(?:take|taking|taken|took)[ -]down\b", re.IGNORECASE), "unpublish"),
)
"""Phrases whose words name one thing only together; the words between them say which."""

_SYNONYMS = f"""{SYNONYMS}
production prod
deploy ship deployment
revert rollback undo
dependency package library lib
database db postgres
certificate cert
pr mr
documentation docs doc document readme manual
repository repo
invoice bill
customer client buyer
employee hire colleague staff
credentials credential secret secrets password passwords token tokens
setup provision
incident outage
vulnerability vulnerabilities cve cves
gdpr privacy
fix repair
unpublish depublish
update upgrade bump
meeting appointment call
configuration config settings
kubernetes k8s
authentication auth
environment env
administrator admin
"""
"""One row of words that mean the same in a task; the first represents all. Includes the synonyms of demands.
"""

_KEPT = vocabulary("new down up off out over live")
_STOP = (STOP_WORDS | vocabulary("please hey hello today ready")) - _KEPT


@lru_cache(maxsize=16_384)
def terms(text: str) -> tuple[str, ...]:
    """Return the words that describe a task, in order, each once.

    They are stems, with synonyms mapped to one word.

    >>> terms("Can you ship this to prod?") == terms("deploy to production")
    True
    """
    return tuple(dict.fromkeys(term for term, _ in terms_as_said(text)))


def terms_as_said(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words of :func:`terms` with duplicates, each with its own stem.

    For example, "billing" gives ``invoic`` and ``bill``.
    """
    same = meanings(_SYNONYMS)
    for word in words_of(named(text, _PHRASES)):
        if word.casefold().replace("’", "'") not in _STOP:
            own = stem(word)
            yield same.get(own, own), own


def phrases(item: MemoryItem) -> tuple[str, ...]:
    """Return the phrases that trigger a flow: its name and its triggers."""
    detail = item.detail
    return (item.text, *detail.triggers) if isinstance(detail, FlowDetail) else (item.text,)


def called(item: MemoryItem) -> str:
    """Return all phrases of a flow as one text, to be embedded as its meaning."""
    return ". ".join(phrases(item))


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def sentences(text: str) -> list[str]:
    """Return the first 40 sentences of a message.

    A flow must match within one sentence, not in fragments of several.
    """
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()][:MAX_SENTENCES]


def match(
    state: State,
    text: str,
    vectors: Mapping[str, Vector] | None = None,
    *,
    status: Literal["active", "candidate"] = "active",
    meaning_enough: float = MEANING_ENOUGH,
) -> list[FlowMatch]:
    """Return the flows that match a message, best first; empty if none is near enough.

    Args:
        state: What is remembered.
        text: A description of the task at hand, in any words.
        vectors: Unit vectors, by sentence of the text and by :func:`called` text of each flow. Missing ones
            are ignored.
        status: Status of the flows to search.
        meaning_enough: Cosine from which meaning is enough.
    """
    flows = [item for item, _ in _flows(state, status)]
    said = sentences(text)
    if not flows or not said:
        return []
    by_words = _by_words(flows, said)
    by_meaning = _by_meaning(flows, said, vectors) if vectors else {}
    found: list[tuple[float, FlowMatch]] = []
    for item in flows:
        words, meaning = by_words.get(item.id, _NOWHERE), by_meaning.get(item.id, 0.0)
        if words.share >= WORDS_ENOUGH:
            how = "the words of" if words.share > _ALL else "most words of"
            why = f"{how} “{words.phrase}” are in the message"
            found.append((words.weight, FlowMatch(item, words.share, why, "words")))
        elif meaning >= meaning_enough:
            why = f"“{item.text}” means much the same ({meaning:.2f})"
            found.append((0.0, FlowMatch(item, min(1.0, meaning), why, "meaning")))
    return [one for _, one in sorted(found, key=_order)]


_ALL = 0.999
"""Threshold for "all words": sums of weights differ in their last digits with the order of the words."""


class _Near(msgspec.Struct, frozen=True):
    """Match of a flow's nearest phrase with a message: share of its words' weight, and that weight."""

    share: float = 0.0
    phrase: str = ""
    weight: float = 0.0


_NOWHERE = _Near()


def _order(found: tuple[float, FlowMatch]) -> tuple[bool, float, float, float, str]:
    """Sort words before meaning, then by the phrase's weight, by score, and by the flow's record."""
    weight, one = found
    detail = one.item.detail
    reliable = effectiveness(detail).low if isinstance(detail, FlowDetail) else 0.0
    return one.by == "meaning", -weight, -one.score, -reliable, one.item.id


class _Lexicon(msgspec.Struct, frozen=True):
    """An index of the phrases of some flows by their words.

    Attributes:
        holding: By word, the flows and phrases that contain it.
        weight: By word, how distinctive it is: the fewer flows have it, the more.
        whole: By phrase, the weight of all its words.
    """

    holding: dict[str, list[tuple[str, str]]]
    weight: dict[str, float]
    whole: dict[str, float]


@lru_cache(maxsize=4)
def _lexicon(flows: tuple[tuple[str, tuple[str, ...]], ...]) -> _Lexicon:
    spread: Counter[str] = Counter()
    holding: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, own in flows:
        for phrase in own:
            for term in terms(phrase):
                holding[term].append((name, phrase))
        spread.update({term for phrase in own for term in terms(phrase)})
    weight = {term: math.log(1 + len(flows) / count) for term, count in spread.items()}
    whole = {phrase: sum(weight[term] for term in terms(phrase)) for _, own in flows for phrase in own}
    return _Lexicon(dict(holding), weight, whole)


def _by_words(flows: Sequence[MemoryItem], said: Sequence[str]) -> dict[str, _Near]:
    """Return, by flow, its phrase that shares the most weight with one sentence."""
    known = _lexicon(tuple((item.id, phrases(item)) for item in flows))
    best: dict[str, _Near] = {}
    for sentence in said:
        common: defaultdict[tuple[str, str], float] = defaultdict(float)
        for term in terms(sentence):
            for pair in known.holding.get(term, ()):
                common[pair] += known.weight[term]
        for (name, phrase), weight in common.items():
            near = _Near(min(1.0, weight / known.whole[phrase]), phrase, weight)
            before = best.get(name)
            if before is None or (near.share, near.weight) > (before.share, before.weight):
                best[name] = near
    return best


def _by_meaning(
    flows: Sequence[MemoryItem], said: Sequence[str], vectors: Mapping[str, Vector]
) -> dict[str, float]:
    """Return, by flow, the cosine between its :func:`called` text and the nearest sentence."""
    asked = [vectors[sentence] for sentence in said if sentence in vectors]
    known = {item.id: vector for item in flows if (vector := vectors.get(called(item))) is not None}
    if not asked or not known:
        return {}
    import numpy as np  # noqa: PLC0415  (slow to import, and needed only with vectors)

    cosines = (np.stack(list(known.values())) @ np.stack(asked).T).max(axis=1)
    return dict(zip(known, cosines.tolist(), strict=True))
