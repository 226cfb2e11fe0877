"""The normal form of an instruction: what all wordings of one statement have in common.

"Use UTC in all timestamps." and "All timestamps should be in UTC." have the same normal form. Voice, mood,
word order and the words of a demand are left out; synonyms count as one word. What changes the meaning is
kept: each content word, negation, numbers with their bounds, the order of two steps, and the preposition
before a word.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

import msgspec

from agentx.synthesis.language.words import STOP_WORDS, meanings, stem, vocabulary
from agentx.synthesis.similarity.phrases import rephrased
from agentx.synthesis.similarity.synonyms import SAME_MEANING

_LABEL = re.compile(
    r"^\W*(?:(?:an?|the|our|my|one|key|new|general|golden|house|please|very)\s+)*"
    r"(?:lessons?(?: (?:we )?learn(?:ed|t))?|learnings?|rules?(?: of thumb)?|notes?(?: to self)?|remember"
    r"|reminder|tips?|take-?aways?|nb|ps|fyi|important|polic(?:y|ies)|principles?|guidelines?"
    r"|best practices?|hints?|conventions?|insights?|findings?|warning|caution|attention)\s*[:–—-]\s+",
    re.IGNORECASE,
)
"""A heading that says nothing about the subject of a statement: "Lesson learned: …"."""

_NUMBERS = dict(
    pair.split(":")
    for pair in vocabulary(
        """
        one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 eleven:11 twelve:12
        fifteen:15 thirteen:13 fourteen:14 sixteen:16 seventeen:17 eighteen:18 nineteen:19 twenty:20
        thirty:30 forty:40 fifty:50 sixty:60 seventy:70 eighty:80 ninety:90 hundred:100
        thousand:1000 dozen:12 twice:2 thrice:3 half:0.5
        """
    )
)
_IRREGULAR = dict(
    pair.split(":")
    for pair in vocabulary(
        """
        written:write wrote:write kept:keep sent:send built:build made:make ran:run told:tell
        held:hold left:leave paid:pay bought:buy sold:sell taken:take took:take given:give gave:give
        chosen:choose chose:choose driven:drive drove:drive drawn:draw drew:draw spoken:speak
        spoke:speak broken:broken worn:wear wore:wear shown:show showed:show said:say done:do did:do
        found:find lost:lose thrown:throw threw:throw frozen:freeze froze:freeze hidden:hide
        hid:hide stolen:steal bound:bind fed:feed met:meet began:begin begun:begin brought:bring
        taught:teach caught:catch sought:seek got:get gotten:get eaten:eat ate:eat forgotten:forget
        grown:grow grew:grow known:know knew:know seen:see saw:see sewn:sew spent:spend swept:sweep
        understood:understand wound:wind lent:lend dealt:deal meant:mean slept:sleep hung:hang
        shaken:shake beaten:beat data:data children:child people:person men:man women:woman
        mice:mouse feet:foot teeth:tooth indices:index analyses:analysis hypotheses:hypothesis
        axes:axis matrices:matrix criteria:criterion vertices:vertex knives:knife shelves:shelf
        leaves:leaf loaves:loaf lives:life
        """
    )
)
_BRITISH = ((re.compile(r"(?<=\w{3})is(?=(?:e|ed|es|ing|ation|ations)$)"), "iz"),
            (re.compile(r"(?<=\w{2}[aeiou]l)l(?=ed$|ing$)"), ""),
            (re.compile(r"(?<=\w{2})our(?=s?$|ed$|ing$)"), "or"),
            (re.compile(r"^tyre(?=s?$)"), "tire"))  # fmt: skip

_DENIES = vocabulary(
    """
    never no not none nothing nobody neither nor don't doesn't didn't isn't aren't won't can't
    cannot shouldn't
    mustn't mayn't avoid avoids avoided avoiding stop forbid forbids forbidden prohibit prohibited ban banned
    refuse skip skips skipped skipping omit omits omitted omitting forget forgot exclude excluded refrain
    disallow disallowed leave-out dont wont cant
    """
)
_PERMITS = vocabulary("may can might could allowed permitted optional optionally free")
_OBLIGES = vocabulary("must should shall need needs have has ought required always")
_RELATIVE = vocabulary("what which that who whom how where whatever whoever")
_KEPT_SMALL = vocabulary(
    """
    only most more few fewer less some both other same own since unless except during against through again
    until last first next either without old new off out up down above below under over between enough
    """
)
"""Function words that make a difference."""

_LEFT_OUT = (
    (STOP_WORDS - _KEPT_SMALL)
    | _DENIES
    | _PERMITS
    | _OBLIGES
    | vocabulary(
        """
        sure ensure ensures please whenever everywhere entire entirely really strictly absolutely totally
        completely properly generally usually explicitly simply must once across upon ever kindly any anyone
        anybody every everyone like always must mandatory obligatory compulsory necessary essential vital
        crucial important remember insist want wish expected supposed has have having had been item items
        also too therefore thus hence consistently immediately promptly side we you they one
        somebody someone person belong belongs belonging using used uses usage usages via per require
        requires requiring of
        off-limits permitted place give gives given see provide
        """
    )
)

_LIGHT = (
    "write add put enter note insert include place set contain",
    "show present",
    "make create produce generate do carry perform conduct",
    "keep hold leave let stay remain maintain retain store preserve",
    "take bring get obtain",
)
"""Verbs of little meaning, by their group. Two statements may differ in having one, not in the group."""

_REALISES = vocabulary(
    """
    wear follow observe apply send report mention state quote cite label mark format carry name
    specify attach express require contain print list take last come file
    """
)
"""Verbs that put something into effect, as a demand does: "wear gloves", "use gloves"."""

_BINDS = {
    word: group
    for group, row in {
        "to": "to into onto toward towards",
        "if": "if when while whenever unless",
        "above": "above over",
        "below": "below under beneath",
        "instead": "instead than",
        "in": "in at on inside",
        "of": "of for",
        **{
            word: word for word in vocabulary("from with without by about against during between until since")
        },
    }.items()
    for word in vocabulary(row)
}
_DIRECTED = frozenset({"to", "from", "instead"})
"""Prepositions whose word cannot be bound by another one without another meaning."""
_OPPOSED_PAIRS = (("from", "to"), ("to", "from"), ("above", "below"), ("below", "above"))
_PARTICLES = {"up": "down", "out": "in", "off": "on"}
_BOUNDS = ("atmost", "atleast")
_BINDS_UP_TO = 3
"""Number of content words that a preposition binds."""


_TOKEN = re.compile(r"(?<!\w)[-+]?\d[\d.,]*\d(?!\w)|[^\W_]+(?:['’.][^\W_]+)*|[,;:()!?]|\.(?=\s|$)|[%°$€£+]")
_NAME = re.compile(r"[^\s,;:!?\"'`()\[\]{}]*[_/\\.@#=<>][^\s,;:!?\"'`()\[\]{}]*\w|(?<!\w)--?[a-z][\w-]*")
_PAUSES = frozenset(",;:()!?.")


@cache
def _light() -> Mapping[str, str]:
    """Return the group of each verb of little meaning, by its stem."""
    return {stem(word): row.split()[0] for row in _LIGHT for word in row.split()}


@cache
def _realises() -> frozenset[str]:
    """Return the stems of the verbs that put something into effect."""
    return frozenset(map(_word, _REALISES))


class NormalForm(msgspec.Struct, frozen=True):
    """The normal form of a text, as far as it is compared.

    Attributes:
        words: Its content words, as stems of the first synonym of each.
        denies: Whether it forbids something; two negations are none.
        permits: Whether it permits something without demanding it.
        marks: Numbers with their bounds, names, and small words that make a difference.
        light: Groups of the verbs of little meaning.
        first: For two steps in order, the words of the first one.
        second: The words of the second step.
        ordered: Whether it orders two steps.
        bound: The words behind each preposition.
        chains: For a preposition that occurs more than once, what it binds each time.
        agent: The words before "must", if they do something to what follows.
        patient: The words that it is done to.
        shape: Its small words and its content words, both in order.
        soft: Those of its words that only put something into effect: "wear" in "wear gloves".
        particles: Words such as "up" and "down" in it.
    """

    words: frozenset[str]
    denies: bool
    permits: bool
    marks: frozenset[str]
    light: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    ordered: bool
    bound: dict[str, frozenset[str]]
    chains: dict[str, tuple[frozenset[str], ...]]
    agent: frozenset[str]
    patient: frozenset[str]
    shape: tuple[tuple[str, ...], tuple[str, ...]]
    soft: frozenset[str]
    particles: frozenset[str]

    @property
    def key(self) -> tuple[object, ...]:
        """What must be equal in all wordings of one statement, besides their words."""
        return self.denies, self.permits, self.marks, self.ordered


def bare(text: str) -> str:
    """Return a text without a heading such as "Lesson learned:".

    >>> bare("Lesson learned: rotate the keys.")
    'rotate the keys.'
    """
    while match := _LABEL.match(text):
        text = text[match.end() :]
    return text


@lru_cache(maxsize=16_384)
def normal_form(text: str) -> NormalForm:
    """Return the normal form of a text.

    >>> normal_form("Use UTC in all timestamps.").key == normal_form("All timestamps should be in UTC.").key
    True
    >>> sorted(normal_form("Test before the release.").first)
    ['test']
    """
    plain = rephrased(bare(text))
    tokens = [match.group().casefold().replace("’", "'") for match in _TOKEN.finditer(plain)]
    return _read(tokens, plain)


def _read(tokens: list[str], plain: str) -> NormalForm:
    """Read the tokens of a text whose phrases were replaced."""
    tokens = _contrasted(tokens)
    denials = [place for place, said in enumerate(tokens) if said in _DENIES]
    denies = len(denials) % 2 == 1
    permits = any(said in _PERMITS and not _is_relative(tokens, place) for place, said in enumerate(tokens))
    permits = permits and not denies and "only" not in tokens
    order, turned = _order(tokens, denies=denies)
    denies ^= turned
    dropped = {"only"} if order and "after" in tokens else set[str]()
    if turned:
        dropped.add("until")
    if "without" in tokens and not turned:
        denies = not denies
    bounds = [place for place, said in enumerate(tokens) if said in _BOUNDS]
    if denies and len(bounds) == 1:
        place = bounds[0]
        tokens[place] = "atleast" if tokens[place] == "atmost" else "atmost"
        denies = False
    words, light, bound, chains = _bound(tokens)
    verbs = _verbs(tokens)
    first, second = (_content(part) for part in order) if order else (frozenset[str](), frozenset[str]())
    agent, patient = _roles(tokens)
    return NormalForm(
        words=words,
        denies=denies,
        permits=permits,
        marks=frozenset(_marks(tokens, plain)) - dropped,
        light=light,
        first=first,
        second=second,
        ordered=order is not None,
        bound=bound,
        chains=chains,
        agent=agent,
        patient=patient,
        shape=_shape(tokens),
        soft=words & verbs,
        particles=frozenset(tokens) & (_PARTICLES.keys() | set(_PARTICLES.values())),
    )


def _is_relative(tokens: list[str], place: int) -> bool:
    """Return whether a word belongs to a relative clause, as in "what the user can do"."""
    return not _RELATIVE.isdisjoint(tokens[max(place - 4, 0) : place])


def _contrasted(tokens: list[str]) -> list[str]:
    """Return the tokens with one word for each way to prefer one thing to another."""
    found: list[str] = []
    prefers = any(said.startswith("prefer") for said in tokens)
    for place, said in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        contrast = said == "not" and before in (",", "and", "but")
        over = prefers and said in ("over", "to")
        found.append("instead" if contrast or over else said)
    return [said for said in found if not said.startswith("prefer")]


def _order(tokens: list[str], *, denies: bool) -> tuple[tuple[list[str], list[str]] | None, bool]:
    """Return the tokens of two steps in their order, and whether the order uses up a negation."""
    for place, said in enumerate(tokens):
        main, bound = _clauses(tokens, place)
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if said == "then" and place:
            return (tokens[:place], tokens[place + 1 :]), False
        if said == "after":
            return (bound, main), False
        if said == "before":
            waits = denies and any(word in _DENIES for word in main)
            return ((bound, main), True) if waits else ((main, bound), False)
        if denies and (said == "until" or (said == "without" and following.endswith("ing"))):
            return (bound, main), True
    return None, False


def _clauses(tokens: list[str], place: int) -> tuple[list[str], list[str]]:
    """Return the tokens of the main clause, and those that a conjunction binds."""
    end = next((n for n in range(place + 1, len(tokens)) if tokens[n] in _PAUSES), len(tokens))
    return tokens[:place] + tokens[end:], tokens[place + 1 : end]


def _content(tokens: Sequence[str]) -> frozenset[str]:
    return frozenset(word for said in tokens if (word := _word(said)) and word not in _light())


@lru_cache(maxsize=8_192)
def _word(said: str) -> str:
    """Return the stem that represents a content word; empty if the said is not one."""
    if said in _LEFT_OUT or said in _KEPT_SMALL or said in _BINDS or said in _PAUSES:
        return ""
    if said in _NUMBERS or said[:1].isdigit() or not said[-1].isalnum() or said in _BOUNDS:
        return ""
    word = said.removesuffix("'s").removesuffix("'")
    word = _IRREGULAR.get(word, word)
    for pattern, by in _BRITISH:
        word = pattern.sub(by, word)
    own = stem(word)
    return meanings(SAME_MEANING).get(own, own)


def _marks(tokens: list[str], plain: str) -> Iterator[str]:
    """Yield the numbers with their bounds, the names, and the small words that make a difference."""
    for place, said in enumerate(tokens):
        before = tokens[max(place - 2, 0) : place]
        behind = tokens[place + 1 : place + 3]
        limit = next((word for word in (*reversed(before), *behind) if word in _BOUNDS), "")
        number = _number(said)
        if said in ("a", "an") and limit and before[-1] == limit:
            number = "1"
        if number:
            yield f"{limit}{number}"
        elif said == "last" and not _is_ordinal(tokens, place):
            continue
        elif _matters(said) or (said in _BOUNDS and not _bounds_a_number(tokens, place)):
            yield said
        elif said in ("above", "over", "below", "under"):
            yield _BINDS[said]
        elif said in ("instead", "unless", "since", "until", "during", "against", "between", "%", "°"):
            yield said
    for name in _NAME.findall(plain):
        yield name.casefold().rstrip(".")


def _bounds_a_number(tokens: list[str], place: int) -> bool:
    near = (*tokens[max(place - 2, 0) : place], *tokens[place + 1 : place + 3])
    return any(map(_number, near)) or bool({"a", "an"} & set(tokens[place + 1 : place + 2]))


def _matters(said: str) -> bool:
    return said in _KEPT_SMALL and said not in _BINDS and said not in _PARTICLES and said != "down"


def _is_ordinal(tokens: list[str], place: int) -> bool:
    """Return whether the word "last" is not a verb here."""
    ends = place + 1 == len(tokens) or tokens[place + 1] in _PAUSES
    return ends or bool(place and tokens[place - 1] in ("the", "their", "its"))


def _number(said: str) -> str:
    return _NUMBERS.get(said) or (said if said[:1].isdigit() or said[1:2].isdigit() else "")


def _bound(
    tokens: list[str],
) -> tuple[frozenset[str], frozenset[str], dict[str, frozenset[str]], dict[str, tuple[frozenset[str], ...]]]:
    """Return the content words, the light verbs, and what each preposition binds."""
    words: set[str] = set()
    light: set[str] = set()
    chains: dict[str, list[set[str]]] = {}
    open_: set[str] | None = None
    for place, said in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        if said == "of" and before == "instead":
            continue
        if said == "to" and before in _OBLIGES:
            open_ = None
        elif said in _BINDS:
            open_ = set()
            chains.setdefault(_BINDS[said], []).append(open_)
        elif said in _PAUSES or said in _PERMITS or said in _OBLIGES or said in ("and", "before", "after"):
            open_ = None
        elif word := _word(said):
            if word in _light():
                light.add(_light()[word])
                continue
            words.add(word)
            if open_ is not None and len(open_) < _BINDS_UP_TO:
                open_.add(word)
    several = {name: tuple(map(frozenset, parts)) for name, parts in chains.items() if len(parts) > 1}
    bound = {name: frozenset().union(*parts) for name, parts in chains.items()}
    return frozenset(words), frozenset(light), bound, several


def _roles(tokens: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return who does something to what, if the text says so: "A must check B", "B is checked by A"."""
    place = next((n for n, said in enumerate(tokens) if said in _OBLIGES | _PERMITS), None)
    if "by" in tokens:
        by = tokens.index("by")
        return _content(_phrase(tokens[by + 1 :])), _content(tokens[:by])
    if place is None or "be" in tokens[place + 1 : place + 4]:
        return frozenset(), frozenset()
    if tokens[place] in ("need", "needs", "has", "have") and tokens[place + 1 : place + 2] != ["to"]:
        return frozenset(), frozenset()
    return _content(tokens[:place]), _content(_phrase(tokens[place + 1 :]))


def _verbs(tokens: list[str]) -> frozenset[str]:
    """Return the main verb, if it only puts something into effect: the first word, or after "must be"."""
    places = [
        0,
        *(n + 1 for n, said in enumerate(tokens) if said in _PAUSES or said in _OBLIGES | _PERMITS),
    ]
    found: set[str] = set()
    passed = _DENIES | {"be", "always", "please", "have", "to"}
    for place in places:
        said = next((said for said in tokens[place:] if said not in passed), "")
        if said and (word := _word(said)):
            found.add(word)
    return frozenset(found & _realises())


def _phrase(tokens: list[str]) -> list[str]:
    """Return the tokens up to the next preposition or pause."""
    end = next((n for n, said in enumerate(tokens) if said in _BINDS or said in _PAUSES), len(tokens))
    return tokens[:end]


def _shape(tokens: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the small words in order, with a gap for each content word, and the content words in order."""
    light = _light()
    kept = [
        (_BINDS.get(said, said), word and light.get(word, word))
        for said in tokens
        if said not in _PAUSES
        for word in [_word(said)]
    ]
    words = [word for _, word in kept if word]
    for place in range(1, len(kept) - 1):
        if kept[place][0] in ("and", "or") and kept[place - 1][1] and kept[place + 1][1]:
            pair = kept[place - 1][1], kept[place + 1][1]
            at = sum(bool(word) for _, word in kept[: place - 1])
            words[at : at + 2] = sorted(pair)
    return tuple("" if word else said for said, word in kept), tuple(words)


# --- comparison ---------------------------------------------------------------------------------------------


def same(one: NormalForm, other: NormalForm) -> bool:
    """Return whether two normal forms are of one statement."""
    return _same_words(one, other) and one.key == other.key and not differs(one, other)


def _same_words(one: NormalForm, other: NormalForm) -> bool:
    """Return whether two texts have the same words, save for a verb that only puts the rest into effect."""
    more, less = (one, other) if len(one.words) > len(other.words) else (other, one)
    if not less.words <= more.words or not less.words:
        return False
    extra = more.words - less.words
    return not extra or (extra <= more.soft and not less.light and not less.soft)


def differs(one: NormalForm, other: NormalForm) -> bool:
    """Return whether two texts with the same words say something else, as by another order."""
    return (
        bool(one.light and other.light and one.light.isdisjoint(other.light))
        or (one.shape[0] == other.shape[0] and one.shape[1] != other.shape[1])
        or turns_order(one, other)
        or changes_roles(one, other)
        or _bound_otherwise(one, other)
    )  # fmt: skip


def _turned(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether two texts have opposite particles: "scale up", "scale down"."""
    return any(
        (one in mine and other in theirs and one not in theirs)
        or (one in theirs and other in mine and one not in mine)
        for one, other in _PARTICLES.items()
    )


def _flipped(
    first: frozenset[str], second: frozenset[str], others: frozenset[str], last: frozenset[str]
) -> bool:
    """Return whether two words changed places between two parts of a text."""
    forward = (first - second) & (last - others)
    back = (second - first) & (others - last)
    return bool(forward and back)


def _moved(one: NormalForm, other: NormalForm) -> bool:
    """Return whether a step is not where it was. What both steps are about may be named in either of them."""
    stays = one.first & other.first and one.second & other.second
    return not stays and bool(one.first & other.second or one.second & other.first)


def turns_order(one: NormalForm, other: NormalForm) -> bool:
    """Return whether two texts put the same steps in another order."""
    return (
        _turned(one.particles, other.particles)
        or _flipped(one.first, one.second, other.first, other.second)
        or (one.ordered and other.ordered and _moved(one, other))
    )


def changes_roles(one: NormalForm, other: NormalForm) -> bool:
    """Return whether who does something to whom differs."""
    return _flipped(one.agent, one.patient, other.agent, other.patient)


def changes_direction(one: NormalForm, other: NormalForm) -> bool:
    """Return whether what goes from one place to another goes the other way."""
    none = frozenset[str]()
    for here, there in _OPPOSED_PAIRS:
        moved = one.bound.get(here, none) & other.bound.get(there, none)
        back = other.bound.get(here, none) & one.bound.get(there, none)
        if moved - one.bound.get(there, none) or back:
            return True
    return any(
        (one.bound[name] - other.bound[name]) & other.words
        or (other.bound[name] - one.bound[name]) & one.words
        for name in _DIRECTED & one.bound.keys() & other.bound.keys()
    )


def stem_of(word: str) -> str:
    """Return the stem that represents a content word; empty if it is not one.

    >>> stem_of("erase") == stem_of("deletes")
    True
    """
    stemmed = _word(word.casefold())
    return _light().get(stemmed, stemmed)


def _bound_otherwise(one: NormalForm, other: NormalForm) -> bool:
    """Return whether words changed the prepositions before them in a way that changes the meaning."""
    for name in one.chains.keys() & other.chains.keys():
        mine, theirs = one.chains[name], other.chains[name]
        if mine != theirs and frozenset().union(*mine) == frozenset().union(*theirs):
            return True
    if changes_direction(one, other):
        return True
    for name, words in one.bound.items():
        if name in other.bound and _flipped(
            words, one.words - words, other.bound[name], other.words - other.bound[name]
        ):
            return True
    return False
