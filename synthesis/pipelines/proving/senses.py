"""Decide whether a word that a glossary forbids is used for its term, or in another sense.

Most words have several senses. Without a dictionary, these clues are checked in order:

1. A fixed phrase ("as a rule", "in other words", "in total") has its own sense.
2. Several words ("line item") have one sense.
3. A sentence about the subject of the term's definition is about the term.
4. A word has one sense in a text (Gale, Church and Yarowsky 1992): if it is used for the term once, it always
is.
5. A statement about each or many of something is about things of a kind.

Everything else is a doubt: to be reviewed, and not a fault.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from agentx.synthesis.language.words import STOP_WORDS, vocabulary
from agentx.synthesis.pipelines.proving.nouns import ALSO_VERBS
from agentx.synthesis.pipelines.proving.phrase_search import Phrase, Token, Words, singular

Sense = Literal["term", "doubt", "other"]
"""Whether a word is used for a term, may be, or is not."""

_ABSTRACT = vocabulary(
    """
    age area base basis beginning bit bottom case chance change condition course day degree detail
    difference effect end event experience extent eye face fact fashion field form front ground half hand
    head heart idea instance issue kind level life light line lot manner matter means measure mind minute
    moment need number occasion order page part past period person phase piece place point position practice
    principle purpose question range rate reason regard respect rest result role room round rule scale scope
    sense set side sight sign situation sort space stage start state step stretch sum thing thought time top
    total touch trouble truth turn use value view way week while whole word work world year
    """
)
"""Words common in any text: alone they mean little, and they have many senses in one text."""

_QUANTIFIERS = vocabulary(
    "each every per all both many several few most two three four five six seven eight nine ten"
)
_ADVERBIAL = vocabulary("in on at of under to into beyond off out")
_KINDS = vocabulary("kind sort type form piece")
_LIGHT = vocabulary(
    """
    do does did done go goes make makes made take takes took taken give gives given get gets hold holds come
    comes put puts say says
    """
)

_PHRASES = """
    a matter of; no matter; the matter with; matter of fact; question of; out of the question;
    the question is; beside the point; the point is; the point of; at this point; at that point;
    at some point; at one point; to the point; point of view; starting point; turning point; make a point;
    point at issue; up to a point; as a rule; rule of thumb; ground rule; golden rule; in any case;
    in that case; in this case; in the case of; in most cases; in many cases; in some cases; in each case;
    is the case; be the case; was the case; case for; case against; just in case; use case; edge case;
    corner case; special case; worst case; best case; in the first place; in the second place; take place;
    took place; taking place; taken place; in place of; out of place; at the same time; this time;
    next time; last time; first time; for the time being; at a time; by the time; all the time; at any time;
    at that time; every time; each time; take time; your time; time and again; time to; some time;
    long time; short time; the time when; in the event of; in any event; in the event that; for a change;
    change of heart; change of mind; change of plan; a word of; a word about; other words; in a word;
    word for word; my word; your word; his word; her word; their word; word of mouth; last word; few words;
    state of affairs; state of the art; state of mind; in line with; on the line; fine line;
    line of thought; bottom line; along the lines; on the other hand; on the one hand; in the long run;
    good hands; trial and error; an attempt to; attempts to; attempt at; margin of error; a set of;
    a number of; a range of; a series of; a bit of; a body of; at the age of; next step; first step;
    step back; step forward; step further; step ahead; at this stage; at that stage; set the stage;
    in the course of; of course; as a result; for the most part; on the part of; in the order of;
    at the end; in the end; end of the day; from the start; a good start; at the start; off the record;
    for the record; track record; new record; world record; set a record; the heart of; lose the thread;
    lost the thread; up to the task; no easy task; source code; dress code; in view of; point in time;
    the fact that; the idea of; in a sense; in the sense; common sense; in some sense; period of time;
    vicious cycle; a host of; in reverse order; in this order; in that order; by accident; rest of;
    in the way; by the way; on the way; this way; that way; in a way; way of; way to; all the way;
    on the side; side by side; on the whole; the whole of; in the middle; in the light of; in front of;
    for a while; once in a while; for example; for instance; by chance; by design; by hand; by heart;
    by mistake; by nature; by rights; by turns; by way of; day by day; these days; in the same way; kind of;
    sort of; in fact; in general; in particular; in part; in turn; in the main; on average; in short;
    to the letter
"""
"""Fixed phrases in which a word is not a subject of the text."""


def sense(said: Words, place: int, length: int, subject: frozenset[str]) -> Sense:
    """Return the sense of words at a place: that of a term, another one, or doubtful.

    Args:
        said: The words of a text.
        place: Index of the first word.
        length: Number of words.
        subject: Stems of the subject of the term's definition.
    """
    if length > 1:
        return "term"
    word = singular(said.all[place].text)
    adverb = word in ALSO_VERBS | _ABSTRACT and _is_adverbial(said.all, place)
    if adverb or _is_in_phrase(said.all, place):
        return "other"
    near = said.sentence(place) & subject - {said.all[place].stem}
    if len(near) > (word in _ABSTRACT) or (near and _is_joined(said.all, place, subject)):
        return "term"
    if word in _ABSTRACT:
        return "doubt"
    return "term" if _is_of_many(said.all, place) else "doubt"


def has_one_sense(word: str) -> bool:
    """Return whether a word has one sense in a text, so that one certain place decides for all."""
    return singular(word) not in _ABSTRACT


def subject_of(words: Phrase) -> frozenset[str]:
    """Return the stems of the content words."""
    bare = STOP_WORDS | _ABSTRACT | _LIGHT
    return frozenset(one.stem for one in words if one.word not in bare and singular(one.text) not in bare)


def _is_joined(words: Sequence[Token], place: int, subject: frozenset[str]) -> bool:
    """Return whether a word is joined to the subject.

    Examples: "the recipe's steps", "recipe step", "the steps of the recipe".
    """
    behind = [one for one in words[place + 1 : place + 5] if not one.begins]
    if behind and behind[0].word in {"of", "in"} and any(one.stem in subject for one in behind[1:]):
        return True
    return place > 0 and not words[place].pauses and words[place - 1].stem in subject


def _is_of_many(words: Sequence[Token], place: int) -> bool:
    before = [one.word for one in words[max(place - 2, 0) : place]] if not words[place].pauses else []
    return bool(_QUANTIFIERS & {*before}) or singular(words[place].text) != words[place].word.removesuffix(
        "'s"
    )


def _is_adverbial(words: Sequence[Token], place: int) -> bool:
    """Return whether a noun follows a preposition without the article of a thing: "in total", "on record"."""
    token = words[place]
    if (
        not place
        or token.pauses
        or words[place - 1].word not in _ADVERBIAL
        or singular(token.text) != token.word
    ):
        return False
    if place > 1 and singular(words[place - 2].text) in _KINDS:
        return False
    behind = words[place + 1] if place + 1 < len(words) else None
    return behind is None or behind.pauses or behind.word in STOP_WORDS


def _is_in_phrase(words: Sequence[Token], place: int) -> bool:
    for parts, at in _phrases().get(singular(words[place].text), ()):
        begin = place - at
        found = words[begin : begin + len(parts)] if begin >= 0 else ()
        if (
            len(found) == len(parts)
            and all(part in {one.word, singular(one.text)} for part, one in zip(parts, found, strict=True))
            and not any(one.pauses for one in found[1:])
        ):
            return True
    return False


@lru_cache(maxsize=1)
def _phrases() -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """Return the fixed phrases, by each of their words, with its index."""
    found: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for said in _PHRASES.replace("\n", ";").split(";"):
        words = tuple(said.split())
        for place, word in enumerate(words):
            found.setdefault(singular(word), []).append((words, place))
    return found
