"""Flows: match a message to a procedure, rate its track record, and list the flows that need attention.

Words are checked first: a flow matches if one sentence contains the words of one of its phrases (its name and
triggers), in any order and inflection. Words that few flows share weigh most. If embeddings are given,
meaning finds paraphrases. If nothing is near enough, nothing is returned: no flow is better than the wrong
one.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

import msgspec

from agentx.storage.events.types import TaskGraded
from agentx.storage.index.port import Vector
from agentx.synthesis.attribution.material import own_words
from agentx.synthesis.language.requests import Act, acts, shape_of, speaks
from agentx.synthesis.language.verbs import is_base_verb
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
from agentx.synthesis.memory.items import FlowDetail, FlowRecord, MemoryItem
from agentx.synthesis.memory.vitality import days_between
from agentx.synthesis.state.state import State

CONFIDENCE_Z = 1.959964
"""Quantile of the normal distribution for 95%."""

RELIABLE = 0.7
"""Success rate above which a flow is reliable. ``proven`` is confidently above it, ``broken`` confidently
below.
"""

ENOUGH_RUNS = 5
"""Number of runs from which the current version of a flow is rated alone."""

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
    return _interval(rated(detail))


def _interval(record: FlowRecord) -> Effectiveness:
    tries = record.succeeded + record.failed
    if tries == 0:
        return Effectiveness(0.0, 0.0, 1.0, 0)
    share, z2 = record.succeeded / tries, CONFIDENCE_Z**2
    centre = (share + z2 / (2 * tries)) / (1 + z2 / tries)
    spread = math.sqrt(share * (1 - share) / tries + z2 / (4 * tries**2)) * CONFIDENCE_Z / (1 + z2 / tries)
    return Effectiveness(
        low=0.0 if record.succeeded == 0 else centre - spread,
        mean=share,
        high=1.0 if record.failed == 0 else centre + spread,
        tries=tries,
    )


def rated(detail: FlowDetail) -> FlowRecord:
    """Return the record that rates a flow: of its current version, or of all versions (version 0).

    The current version is enough if it has 5 runs, or if fewer prove it reliable or broken.
    """
    own = FlowRecord(detail.version, detail.succeeded, detail.failed)
    found = _interval(own)
    if not detail.earlier or found.tries >= ENOUGH_RUNS or found.high < RELIABLE:
        return own
    return all_versions(detail)


def all_versions(detail: FlowDetail) -> FlowRecord:
    """Return the record of all versions of a flow together, as version 0."""
    succeeded = detail.succeeded + sum(one.succeeded for one in detail.earlier)
    return FlowRecord(0, succeeded, detail.failed + sum(one.failed for one in detail.earlier))


def versions_told(detail: FlowDetail) -> str:
    """Return a flow's record by version; empty if it has only one.

    >>> detail = FlowDetail((), succeeded=4, version=3, since="2026-11-01T", earlier=(FlowRecord(2, 8, 2),))
    >>> versions_told(detail)
    'version 3 since 2026-11-01: 4 of 4; all versions: 12 of 14'
    """
    if detail.version == 1:
        return ""
    whole, tries = all_versions(detail), detail.succeeded + detail.failed
    own = f"{detail.succeeded} of {tries}" if tries else "never used"
    return (
        f"version {detail.version} since {detail.since[:10]}: {own}; "
        f"all versions: {whole.succeeded} of {whole.succeeded + whole.failed}"
    )


def rewritten(detail: FlowDetail, steps: tuple[str, ...], at: str) -> FlowDetail:
    """Return a flow with other steps: its next version, with a record that begins anew."""
    own = FlowRecord(detail.version, detail.succeeded, detail.failed)
    return msgspec.structs.replace(
        detail,
        steps=steps,
        succeeded=0,
        failed=0,
        not_followed=0,
        steps_seen=(0, 0),
        version=detail.version + 1,
        since=at,
        earlier=(*detail.earlier, own) if own.succeeded + own.failed else detail.earlier,
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
    low, high, record = round(found.low * 100), round(found.high * 100), rated(detail)
    of = f"version {record.version}" if record.version else "all versions"
    which = f"; {of}" if detail.earlier else ""
    return f"{found.mean:.0%} ({record.succeeded} of {found.tries}; {low}–{high}%{which})"


def graded(item: MemoryItem, grade: TaskGraded, at: str = "") -> Patch:
    """Return a flow's counters after one more task that called for it.

    Args:
        item: The flow.
        grade: The grade of the task; one that did not follow the flow is neither success nor failure.
        at: Time of use, formatted like :attr:`agentx.storage.events.types.Event.at`; empty leaves it
            unchanged.

    Raises:
        TypeError: The item is not a flow.
    """
    detail = item.detail
    if not isinstance(detail, FlowDetail):
        raise TypeError(f"{item.id} is not a flow")
    detail = msgspec.structs.replace(
        detail,
        succeeded=detail.succeeded + (grade.followed and grade.passed),
        failed=detail.failed + (grade.followed and not grade.passed),
        not_followed=detail.not_followed + (not grade.followed),
        steps_seen=(grade.steps_seen, grade.steps) if grade.steps else detail.steps_seen,
    )
    return Patch(id=item.id, detail=detail, used_at=at or msgspec.UNSET)


def advice(state: State) -> list[Advice]:
    """Return the flows that should be rewritten or retired, oldest first. The others need no attention."""
    found: list[Advice] = []
    for item, detail in _flows(state, "active"):
        how, record = standing(detail), rated(detail)
        age = days_between(item.created_at, state.at)
        untried = detail.version > 1 and not detail.succeeded + detail.failed
        if how == "broken" and untried:
            continue  # it was rewritten, and nobody followed it since
        if how == "broken" and record.succeeded:
            found.append(Advice(item.id, "rewrite", f"it works in {told(detail)}: change its steps"))
        elif how == "broken":
            which = f" of version {record.version}" if detail.earlier and record.version else ""
            found.append(Advice(item.id, "retire", f"it failed all {record.failed} times{which}"))
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
    (re.compile(r"\b(need|want|like|have) ((?:\w+ ){1,3})live\b", re.IGNORECASE), r"\1 \2deployed"),
    (
        re.compile(
            r"\b(?:go|going|went|put|push|bring|take|get)(?:ing)? ((?:\w+ ){0,3})live\b", re.IGNORECASE
        ),
        r"deploy \1",
    ),
    (
        re.compile(
            r"\b(?:get|getting|push|pushing) ((?:[\w.]+ ){1,4})out(?: of)?(?: the)? door\b", re.IGNORECASE
        ),
        r"ship \1",
    ),
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
send sent
build built
pay paid
write wrote written
sell sold
buy bought
bring brought
take took taken
draw drew drawn
teach taught
lay laid
sew sewed sewn
authentication auth
environment env
administrator admin
"""
"""One row of words that mean the same in a task; the first represents all. Includes the synonyms of demands.
"""

_DERIVED = """
draft script test template archive config docs guide note list log plan page bug issue error job code
copy title history schedule policy folder form
"""
"""Nouns that name another thing than the noun before them ("newsletter draft")."""

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
    for word in words_of(_united(text)):
        if word.casefold().replace("’", "'") not in _STOP:
            own = stem(word)
            yield same.get(own, own), own


def _united(text: str) -> str:
    return named(text, _PHRASES)


def phrases(item: MemoryItem) -> tuple[str, ...]:
    """Return the phrases that trigger a flow: its name and its triggers."""
    detail = item.detail
    return (item.text, *detail.triggers) if isinstance(detail, FlowDetail) else (item.text,)


def called(item: MemoryItem) -> str:
    """Return all phrases of a flow as one text, to be embedded as its meaning."""
    return ". ".join(phrases(item))


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def sentences(text: str) -> list[str]:
    """Return the first 40 sentences of a message."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()][:MAX_SENTENCES]


def requests(text: str) -> list[str]:
    """Return the sentences of a message that ask for an act or state a situation, of the first 40.

    >>> requests("How did you deploy? Please do it again. Do not deploy on Friday.")
    ['Please do it again.']
    """
    own = own_words(text)
    asked = [act for act in acts(own, is_base_verb) if not speaks(act)]
    found, end = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        if any(act.span.start < end and start < act.span.end for act in asked):
            found.append(sentence)
    return found


def match(
    state: State,
    text: str,
    vectors: Mapping[str, Vector] | None = None,
    *,
    command: str = "",
    status: Literal["active", "candidate"] = "active",
    meaning_enough: float = MEANING_ENOUGH,
) -> list[FlowMatch]:
    """Return the flows that a message asks for, best first; empty if none is near enough.

    Args:
        state: What is remembered.
        text: A request or an action, in any words.
        vectors: Unit vectors, by sentence of :func:`requests` and by :func:`called` text of each flow.
            Missing ones are ignored.
        command: A command line that is about to run. It has no grammar, so its words alone decide.
        status: Status of the flows to search.
        meaning_enough: Cosine from which meaning is enough.
    """
    flows = [item for item, _ in _flows(state, status)]
    if not flows or not (text.strip() or command.strip()):
        return []
    known = _lexicon(tuple((item.id, phrases(item)) for item in flows))
    by_words = _by_words(known, text)
    for line in sentences(command):
        for _, near in _covered(known, terms(line)):
            _better(by_words, near)
    by_meaning = _by_meaning(flows, requests(text), vectors) if vectors else {}
    found: list[tuple[float, FlowMatch]] = []
    for item in flows:
        words, meaning = by_words.get(item.id, _NOWHERE), by_meaning.get(item.id, 0.0)
        if words.share >= WORDS_ENOUGH or words.alone:
            found.append((words.weight, FlowMatch(item, words.share, words.why, "words")))
        elif meaning >= meaning_enough:
            why = f"“{item.text}” means much the same ({meaning:.2f})"
            found.append((0.0, FlowMatch(item, min(1.0, meaning), why, "meaning")))
    return [one for _, one in sorted(found, key=_order)]


_ALL = 0.999
"""Threshold for "all words": sums of weights differ in their last digits with the order of the words."""


class _Near(msgspec.Struct, frozen=True):
    """Match of a flow's nearest phrase with a message.

    Attributes:
        share: Share of the weight of the phrase's words that the message has.
        alone: Whether the message names the phrase's act without an object, and no other flow has that act.
    """

    flow: str = ""
    phrase: str = ""
    share: float = 0.0
    weight: float = 0.0
    alone: bool = False

    @property
    def why(self) -> str:
        """The reason, in one sentence."""
        if self.share < WORDS_ENOUGH:
            return f"it is the only flow with the act of “{self.phrase}”"
        how = "the words of" if self.share > _ALL else "most words of"
        return f"{how} “{self.phrase}” are in the message"


_NOWHERE = _Near()


def _order(found: tuple[float, FlowMatch]) -> tuple[bool, float, float, float, str]:
    """Sort words before meaning, then by the phrase's weight, by score, and by the flow's record."""
    weight, one = found
    detail = one.item.detail
    reliable = effectiveness(detail).low if isinstance(detail, FlowDetail) else 0.0
    return one.by == "meaning", -weight, -one.score, -reliable, one.item.id


class _Phrase(msgspec.Struct, frozen=True):
    """A phrase of a flow.

    Attributes:
        terms: Its words, as :func:`terms` returns them.
        act: The word that is the act; empty if it names a thing or a situation.
        verbal: Whether it begins with a verb.
        open: Whether its verb has no object of its own ("deploy to production"), so that any may follow.
    """

    flow: str
    text: str
    terms: frozenset[str]
    act: str
    verbal: bool
    open: bool


class _Lexicon(msgspec.Struct, frozen=True):
    """An index of the phrases of some flows by their words.

    Attributes:
        holding: By word, the phrases that contain it.
        weight: By word, how distinctive it is: the fewer flows have it, the more.
        acting: By act, the flows that have it.
    """

    holding: dict[str, list[_Phrase]]
    weight: dict[str, float]
    acting: dict[str, frozenset[str]]

    def is_verb(self, word: str) -> bool:
        """Return whether a word is the act of a phrase, in the form of an order."""
        return is_base_verb(word) and any(term in self.acting for term in terms(word))

    def weigh(self, words: Iterable[str]) -> float:
        """Return the weight of some words of the phrases."""
        return sum(self.weight[word] for word in words)


@lru_cache(maxsize=4)
def _lexicon(flows: tuple[tuple[str, tuple[str, ...]], ...]) -> _Lexicon:
    spread: Counter[str] = Counter()
    holding: defaultdict[str, list[_Phrase]] = defaultdict(list)
    acting: defaultdict[str, set[str]] = defaultdict(set)
    for name, own in flows:
        read = [_phrase(name, phrase, named=not number) for number, phrase in enumerate(own)]
        for phrase in read:
            for term in phrase.terms:
                holding[term].append(phrase)
            if phrase.act:
                acting[phrase.act].add(name)
        spread.update({term for phrase in read for term in phrase.terms})
    weight = {term: math.log(1 + len(flows) / count) for term, count in spread.items()}
    return _Lexicon(dict(holding), weight, {term: frozenset(names) for term, names in acting.items()})


def _phrase(flow: str, text: str, *, named: bool) -> _Phrase:
    """Read a phrase: a name says what to do unless it shows otherwise, a trigger only if it shows it."""
    shape = shape_of(_united(text))
    words, topic = terms(text), terms(shape.topic)
    verbal = bool(words) and (shape.verbal or (named and shape.maybe))
    if shape.supports:  # the object names the act, if one word does
        nouns = [word for word in topic if word != words[0]]
        act = nouns[0] if len(nouns) == 1 else ""
    else:
        act = words[0] if verbal or len(words) == 1 else ""
    return _Phrase(flow, text, frozenset(words), act, verbal, shape.open)


def _by_words(known: _Lexicon, text: str) -> dict[str, _Near]:
    """Return, by flow, its phrase that shares the most weight with one act of a message."""
    text = _united(text)
    asked = list(acts(own_words(text), known.is_verb))
    best: dict[str, _Near] = {}
    for number, act in enumerate(asked):
        words = set(terms(text[act.span.start : act.span.end]))
        if act.context is not None:
            words |= set(terms(text[act.context.start : act.context.end]))
        if act.bare and number + 1 < len(asked) and asked[number + 1].joined:
            words |= set(terms(text[asked[number + 1].span.start : asked[number + 1].span.end]))
        topic = terms(text[act.topic.start : act.topic.end])
        for phrase, near in _covered(known, words):
            if _is_asked(known, phrase, act, topic):
                _better(best, near)
        if (alone := _alone(known, act, topic)) is not None:
            _better(best, alone)
    return best


def _better(best: dict[str, _Near], near: _Near) -> None:
    before = best.get(near.flow, _NOWHERE)
    if (near.alone, near.share, near.weight) > (before.alone, before.share, before.weight):
        best[near.flow] = near


def _covered(known: _Lexicon, words: Iterable[str]) -> Iterator[tuple[_Phrase, _Near]]:
    """Yield the phrases that share words with a text."""
    common: defaultdict[_Phrase, float] = defaultdict(float)
    for term in words:
        for phrase in known.holding.get(term, ()):
            common[phrase] += known.weight[term]
    for phrase, weight in common.items():
        share = min(1.0, weight / known.weigh(phrase.terms))
        yield phrase, _Near(phrase.flow, phrase.text, share, weight)


def _is_asked(known: _Lexicon, phrase: _Phrase, act: Act, topic: Sequence[str]) -> bool:
    """Return whether an act of a message is the act of a phrase, and its object that of the phrase."""
    if act.form == "situation":
        return not phrase.verbal and not phrase.terms.isdisjoint(topic)
    if act.form == "supported":
        return bool(topic) and topic[-1] in phrase.terms
    verb, objects = _parted(act, topic)
    if verb in phrase.terms and phrase.terms.issuperset(objects):
        return True
    same = not phrase.terms.isdisjoint(objects) and objects[-1] not in _made_of() - phrase.terms
    if not phrase.verbal and phrase.flow in known.acting.get(verb, ()):  # a thing, with its flow's own verb
        return same
    if verb not in phrase.terms or (phrase.verbal and phrase.act and verb != phrase.act):
        return False
    return phrase.open or act.points or same


@cache
def _made_of() -> frozenset[str]:
    """Return nouns that name another thing than the noun before them ("newsletter draft")."""
    return frozenset(term for word in _DERIVED.split() for term in terms(word))


def _parted(act: Act, topic: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verb of an order, and the words of its object without numbers."""
    verb = next(iter(terms(act.head)), "")
    return verb, [word for word in topic if word != verb and not word.isdigit()]


def _alone(known: _Lexicon, act: Act, topic: Sequence[str]) -> _Near | None:
    """Return the phrase whose act is asked for without an object, if only one flow has that act."""
    verb, objects = _parted(act, topic)
    flows = known.acting.get(verb, ())
    if act.form == "situation" or objects or len(flows) != 1:
        return None
    whole = act.bare or act.form == "supported"
    fitting = [one for one in known.holding[verb] if one.act == verb and (whole or one.open)]
    if not fitting:
        return None
    phrase = min(fitting, key=lambda one: known.weigh(one.terms))
    weight = known.weight[verb]
    return _Near(phrase.flow, phrase.text, min(1.0, weight / known.weigh(phrase.terms)), weight, alone=True)


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
