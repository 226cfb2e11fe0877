"""Automatic recall: rank the memories in a search result by relevance and vitality, without repetitions.

A memory is a memory item or a message. The record never fades, but the conclusions drawn from it do. Hits
that say no more than something already shown are left out, compared by their words: an item repeated by a
recalled message, a message repeated by a rule shown above, a second item in other words.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec

from agentx.storage.text import folded
from agentx.synthesis.language.tokens import cut
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.similarity.normal_form import NormalForm, normal_form, same
from agentx.synthesis.state.state import State

FADED_SHARE = 0.5
"""Weight of a completely faded memory: if nothing else is near, it still comes back."""

MOST_LONGER = 2
"""If one text has more than this many times the words of another, the two are not compared for meaning."""

MOST_WORDS = 60
"""Longer texts are not compared either: they say more than one thing, and a search does not return two that
are nearly the same.
"""


class Recollection(msgspec.Struct, frozen=True):
    """Search results in the order in which they are shown.

    Attributes:
        hits: Memory items, then messages, up to the requested number together; then the other hits in their
            order.
        repeated: Hits that were left out, each with the id of the text that says the same.
    """

    hits: tuple[SearchHit, ...]
    repeated: tuple[tuple[SearchHit, str], ...]


class _Shown(msgspec.Struct, frozen=True):
    """A text that is already shown, in the forms used for comparison; a long one has no normal form."""

    name: str
    plain: str
    words: int
    form: NormalForm | None


def recollect(
    hits: Sequence[SearchHit], state: State, most: int, shown: Mapping[str, str], most_tokens: int
) -> Recollection:
    """Move the memories that matter most for a message to the front.

    The hits come best first. ``shown`` are the texts above them, by id; ``most_tokens`` of a passage will be
    shown.

    >>> found = [SearchHit(id="a:1", text="retry()", score=1.0, kind="artifact")]
    >>> found.append(SearchHit(id="m:2:0", text="Payments are retried twice.", score=0.4, kind="message"))
    >>> [hit.id for hit in recollect(found, State(), 5, {}, 350).hits]
    ['m:2:0', 'a:1']
    """
    above = _Above()
    for name, text in shown.items():
        above.add(_as_shown(name, text))
    memories: list[SearchHit] = []
    repeated: dict[str, str] = {}
    # A hit that scores less than one behind it was put first for an exact match: it keeps its place.
    behind = reversed(list(accumulate((hit.score for hit in reversed(hits)), max)))
    levels = [
        (level if hit.score < level else hit.score * _weight(hit, state), hit)
        for level, hit in zip(behind, hits, strict=True)
        if is_memory(hit, state)
    ]
    for _, hit in sorted(levels, key=lambda one: -one[0]):
        if len(memories) == most:
            break
        if same := above.repeated(hit):
            repeated[hit.id] = same
        else:
            memories.append(hit)
            name = hit.symbol if hit.kind == "memory" else f"event {hit.seq}"
            above.add(_as_shown(name, cut(hit.text, most_tokens)))
    first = {hit.id for hit in memories}
    rest = [hit for hit in hits if hit.id not in first and hit.id not in repeated]
    repeated |= {hit.id: same for hit in rest if hit.kind == "memory" and (same := above.repeated(hit))}
    memories.sort(key=lambda hit: hit.kind != "memory")
    return Recollection(
        (*memories, *(hit for hit in rest if hit.id not in repeated)),
        tuple((hit, repeated[hit.id]) for hit in hits if hit.id in repeated),
    )


def is_memory(hit: SearchHit, state: State) -> bool:
    """Return whether a hit is a message, or an active or dormant item. A candidate is not a memory."""
    item = state.items.get(hit.symbol) if hit.kind == "memory" else None
    return hit.kind == "message" or (item is not None and item.status in ("active", "dormant"))


def _weight(hit: SearchHit, state: State) -> float:
    """Return the weight of a memory's score, from :data:`FADED_SHARE` to 1."""
    if hit.kind == "message":
        return 1.0
    return FADED_SHARE + (1 - FADED_SHARE) * vitality(state.items[hit.symbol], state.at)


def _as_shown(name: str, text: str) -> _Shown:
    return _Shown(name, *_forms(text))


@lru_cache(maxsize=2_048)
def _forms(text: str) -> tuple[str, int, NormalForm | None]:
    """Return the forms of a text; the same memories come back in one context after the other."""
    plain = folded(text).rstrip(".!")
    words = plain.count(" ") + 1
    return plain, words, normal_form(text) if words <= MOST_WORDS else None


class _Above:
    """The texts that are already shown, by their words: a hundred hits are compared with as many of them."""

    def __init__(self) -> None:
        self._shown: list[_Shown] = []
        self._plain = ""
        self._begins: list[int] = []
        self._having: dict[str, set[int]] = {}
        self._first_words: dict[str, list[int]] = {}

    def add(self, one: _Shown) -> None:
        """Add a text."""
        place = len(self._shown)
        self._shown.append(one)
        self._begins.append(len(self._plain))
        self._plain += f"{one.plain}\n"  # in no plain text
        if one.form is not None:
            for word in one.form.words:
                self._having.setdefault(word, set()).add(place)
            self._first_words.setdefault(min(one.form.words, default=""), []).append(place)

    def repeated(self, hit: SearchHit) -> str:
        """Return the id of the first text that contains all of a hit; empty if none does."""
        own = _as_shown(hit.id, hit.text)
        at = self._plain.find(own.plain) if self._shown else -1
        within = bisect_right(self._begins, at) - 1 if at >= 0 else len(self._shown)
        least, most = own.words / MOST_LONGER, min(MOST_WORDS, MOST_LONGER * own.words)
        for place in self._likely(own.form) if own.form is not None else ():
            one = self._shown[place]
            if place >= within:
                break
            if least <= one.words <= most and one.form is not None and own.form is not None:
                shares_words = own.form.words <= one.form.words or one.form.words <= own.form.words
                if shares_words and same(own.form, one.form):
                    return one.name
        return self._shown[within].name if within < len(self._shown) else ""

    def _likely(self, form: NormalForm) -> list[int]:
        """Return the places of the texts whose words may all be in a form, or have all of its words."""
        found = {place for word in (*form.words, "") for place in self._first_words.get(word, ())}
        having = set(range(len(self._shown))) if not form.words else None
        for word in form.words:
            some = self._having.get(word, set())
            having = some if having is None else having & some
            if not having:
                break
        return sorted(found | (having or set()))
