"""Check that a text agrees with earlier ones: it keeps their terms, and repeats none of their metaphors.

A glossary and a registry of metaphors are Markdown: a heading for each item, and below it a list::

    ## Chapter 02
    - **posting**: one side of an entry (not: record, line item)

    ## Chapter 04
    - conveyor belt: how events move

Faults are reported only where they are certain. If a word that a glossary forbids may stand for the concept
or for something else, it is reported as a doubt, to be reviewed, and not as a fault.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from math import ceil
from typing import Any

import msgspec

from agentx.synthesis.language.words import STOP_WORDS, stem, vocabulary
from agentx.synthesis.pipelines.proving.glossary import Term, read_glossary, without_avoided
from agentx.synthesis.pipelines.proving.growing import Growing, Placed, placed
from agentx.synthesis.pipelines.proving.markdown import entries, prose, sections
from agentx.synthesis.pipelines.proving.nouns import is_noun
from agentx.synthesis.pipelines.proving.phrase_search import (
    Phrase,
    Words,
    is_one_word,
    phrase,
    told_lines,
)
from agentx.synthesis.pipelines.proving.senses import has_one_sense, sense

_BOLD = r"(?:\*\*|__)"
_DEFINES = re.compile(
    rf" {{0,3}}(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]+)?{_BOLD}(?P<term>[^*_\n]{{1,100}}?)"
    rf"(?:\s*[:：]\s*{_BOLD}|{_BOLD}\s*(?:[:：—–=]|-\s|(?:is|are|means?)\b|$))"
)
_ALTERNATIVES = re.compile(r"\s*[,/]\s*|\s+or\s+")
_NAME_ENDS = re.compile(r"\s*(?:[:：]|\s[-–—]\s|[—–]|\()")
_DRESS = "*_`\"'“”‘’ \t."
_WORD = re.compile(r"[^\W_](?:[\w.-]*[^\W_])?")

_LIKENESS = vocabulary(
    """
    like as imagine picture think resembles resemble analogy metaphor compare compared comparison akin
    reminds similar
    """
)
_RECURS, _WORDS_BETWEEN = 4, 500
"""A word that occurs this often, and at least once per this many words, names a concept of the text."""

_NEAR = 3
_LONG = 3


class Metaphor(Placed, frozen=True):
    """A registry entry: the image, and the words of what it was used for."""

    name: str
    images: tuple[tuple[str, ...], ...]
    tenor: frozenset[str]


@lru_cache(maxsize=16)
def read_registry(text: str) -> tuple[Metaphor, ...]:
    """Return the entries of a registry of metaphors."""
    return _REGISTRIES.of(text)


@lru_cache(maxsize=1 << 12)
def _metaphors(lines: tuple[str, ...]) -> list[Metaphor]:
    """Return the entries of one section, with lines from 0.

    Cached, so that earlier items' sections are parsed once.
    """
    return [
        made for entry in entries(lines, 0) if entry.listed and (made := _metaphor(entry.text, entry.line))
    ]


_REGISTRIES = Growing(lambda section: placed(_metaphors(section.own), section))


def _metaphor(text: str, line: int) -> Metaphor | None:
    ends = _NAME_ENDS.search(text)
    name, rest = (text[: ends.start()], text[ends.end() :]) if ends else (text, "")
    name = name.strip(_DRESS)
    images = tuple(image for part in _ALTERNATIVES.split(name) if (image := _content(part)))
    tenor = frozenset(_content(re.sub(r"\([^()]*\)", "", rest)))
    return Metaphor(name, images, tenor, line=line) if images else None


def _content(text: str) -> tuple[str, ...]:
    return tuple(token.stem for token in phrase(text) if token.word not in STOP_WORDS)


def is_of(item: str, under: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    """Return whether headings belong to an item.

    One of them names its key or number, or equals one of its values, such as its title.
    """
    return bool(item) and any(_names(title, item, values) for title in under)


def _names(title: str, item: str, values: Mapping[str, Any]) -> bool:
    words = _WORD.findall(title.casefold())
    if item.casefold() in words:
        return True
    first = next((word for word in words if word.isdecimal()), "")
    if item.isdecimal() and first:
        return int(first) == int(item)
    own = (one for one in values.values() if isinstance(one, Mapping) and one.get("id") == item)
    return any(
        isinstance(value, str) and value.casefold() == title.casefold()
        for one in own
        for value in one.values()
    )


# --- terms --------------------------------------------------------------------------------------------------


def terms_faults(
    text: str, glossary: str, name: str, uses: str, item: str, values: Mapping[str, Any]
) -> Iterator[str]:
    """Yield where a text departs from a glossary, each as a sentence for its writer.

    Args:
        text: The text.
        glossary: The current glossary.
        name: The name of its file.
        uses: Terms that the text must use, separated by commas or line ends.
        item: Key of the item that the text is about. The item may define its own entries of the glossary.
        values: Values of the item, to recognise its headings.
    """
    terms = read_glossary(glossary)
    lines = prose(text)
    yield from (found.fault(name) for found in _avoided(text, glossary) if found.certain)
    yield from _defined_anew(lines, terms, name, lambda term: is_of(item, term.under, values))
    yield from _unused_terms(text, terms, uses, name)


def terms_doubts(text: str, glossary: str, name: str) -> Iterator[str]:
    """Yield where a text may depart from a glossary: forbidden words that also have other senses."""
    yield from (found.doubt(name) for found in _avoided(text, glossary) if not found.certain)


class _Avoided(msgspec.Struct, frozen=True):
    """A forbidden word in a text that stands for a glossary term."""

    word: str
    term: Term
    lines: tuple[int, ...]
    certain: bool

    def fault(self, name: str) -> str:
        term = self.term
        return (
            f"{told_lines(self.lines)}: {self.word!r} is said for what the glossary ({name}, line "
            f"{term.line}) calls "
            f"{term.term!r}: write {term.term!r}."
        )

    def doubt(self, name: str) -> str:
        term = self.term
        return (
            f"{told_lines(self.lines)}: if {self.word!r} is said for what the glossary ({name}, line "
            f"{term.line}) calls "
            f"{term.term!r}, write {term.term!r}."
        )


@lru_cache(maxsize=16)
def _avoided(text: str, glossary: str) -> tuple[_Avoided, ...]:
    return tuple(_avoided_words(Words(without_avoided("\n".join(prose(text)))), read_glossary(glossary)))


def _avoided_words(said: Words, terms: tuple[Term, ...]) -> Iterator[_Avoided]:
    stems = said.stems
    near = [term for term in terms if not stems.isdisjoint(term.firsts)]
    covered = {
        place + n
        for term in near
        for place in said.find(term.words, is_one_word)
        for n in range(len(term.words))
    }
    for term in near:
        for _, words in term.avoided:
            places = [
                place
                for place in said.find(words, is_one_word)
                if place not in covered
                and place + len(words) - 1 not in covered
                and is_noun(said.all, place, len(words))
            ]
            covered.update(place + n for place in places for n in range(len(words)))
            for certain, same in _by_sense(said, places, words, term, terms) if places else ():
                found = " ".join(token.text for token in said.all[same[0] : same[0] + len(words)])
                yield _Avoided(found, term, tuple(said.all[place].line for place in same), certain)


def _by_sense(
    said: Words, places: list[int], words: Phrase, term: Term, terms: tuple[Term, ...]
) -> Iterator[tuple[bool, list[int]]]:
    """Yield the places where words certainly stand for a term, and those where they may."""
    own = {one.stem for one in term.words}
    subject = term.subject.union(*(one.subject for one in terms if own <= one.subject))
    senses = {place: sense(said, place, len(words), subject) for place in places}
    doubtful = sum(told == "doubt" for told in senses.values())
    told_once = "term" in senses.values() and has_one_sense(words[0].text)
    about = any(said.places(one) for one in subject - {words[0].stem})
    if told_once or (about and doubtful >= max(_RECURS, len(said.all) // _WORDS_BETWEEN)):
        senses = {place: "term" if told == "doubt" else told for place, told in senses.items()}
    for told in ("term", "doubt"):
        if same := [place for place in places if senses[place] == told]:
            yield told == "term", same


def _defined_anew(
    lines: list[str], terms: tuple[Term, ...], name: str, is_own: Callable[[Term], bool]
) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        found = _DEFINES.match(line)
        if found is None:
            continue
        stems = [token.stem for token in phrase(found["term"])]
        same = (term for term in reversed(terms) if [token.stem for token in term.words] == stems)
        term = next((term for term in same if not is_own(term)), None)
        if term and not _same_words(line, term.meaning):
            yield (
                f"Line {number}: {found['term'].strip()!r} is defined anew, and the glossary ({name}, line "
                f"{term.line}) "
                "defines it already: use it as it is there, and take the definition out."
            )


def _same_words(line: str, meaning: str) -> bool:
    wanted = _content(meaning)
    return bool(wanted) and _content(line)[-len(wanted) :] == wanted


def _unused_terms(text: str, terms: tuple[Term, ...], uses: str, name: str) -> Iterator[str]:
    named = [
        wanted for part in re.split(r"[,;\n]", uses) if (wanted := part.strip(_DRESS)) and phrase(wanted)
    ]
    if not named:
        return
    said = Words("\n".join(prose(text, spans=True)))
    for wanted in named:
        words = phrase(wanted)
        listed = any(_is_same(words, term.words) for term in terms)
        if next(said.find(words, is_one_word), None) is None:
            where = f", as the glossary ({name}) has it" if listed else ""
            yield f"The term {wanted!r} stands nowhere in it: use it{where}."
        elif not listed and not _introduces(text, words):
            yield (
                f"The term {wanted!r} stands in no entry of the glossary ({name}), and is not introduced "
                f"here: write it "
                f"in bold where it first stands, and say there what it means."
            )


def _is_same(one: Phrase, other: Phrase) -> bool:
    return len(one) == len(other) and all(map(is_one_word, one, other))


def _introduces(text: str, words: Phrase) -> bool:
    """Return whether a text introduces a term: in bold or italics, in quotation marks or in a heading."""
    marked = re.findall(
        r"[*_]{1,3}([^*_\n]{1,100})[*_]{1,3}|[\"“]([^\"”\n]{1,100})[\"”]", "\n".join(prose(text, spans=True))
    )
    shown = [part for pair in marked for part in pair] + [section.title for section in sections(text)]
    return any(next(Words(part).find(words, is_one_word), None) is not None for part in shown if part)


# --- metaphors ----------------------------------------------------------------------------------------------


def reused(text: str, registry: str, name: str, item: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metaphors of other items that a text repeats, each as a sentence for its writer."""
    known = read_registry(registry)
    said = Words("\n".join(prose(text)) if known else "")
    for metaphor in known:
        if said.stems.isdisjoint(image[0] for image in metaphor.images):
            continue
        places = sorted(
            {place for image in metaphor.images for place in _images(said, image, metaphor.tenor)}
        )
        if places and not is_of(item, metaphor.under, values):
            where = f" of {metaphor.under[-1]!r}" if metaphor.under else ""
            yield (
                f"{told_lines([said.all[place].line for place in places])}: {metaphor.name!r} is a "
                f"metaphor{where} "
                f"({name}, line {metaphor.line}) and may not come twice: find another image, or say it "
                f"plainly."
            )


def _images(said: Words, image: tuple[str, ...], tenor: frozenset[str]) -> Iterator[int]:
    """Yield the places of an image.

    An image of one word counts only if its sentence draws a comparison, or is about what the image was used
    for.
    """
    telling = _likeness() | (tenor - set(image))
    for place in said.places(image[0]):
        if _follows(said, place, image) if len(image) > 1 else said.sentence(place) & telling:
            yield place


@cache
def _likeness() -> frozenset[str]:
    return frozenset(map(stem, _LIKENESS))


def _follows(said: Words, place: int, image: tuple[str, ...]) -> bool:
    """Return whether the words of an image follow its first one, in order and near each other.

    Of a long image, most of its words are enough.
    """
    found, last = 1, place
    for wanted in image[1:]:
        near = said.all[last + 1 : last + 2 + _NEAR]
        for distance, token in enumerate(near, 1):
            if token.begins:
                break
            if token.stem == wanted:
                found, last = found + 1, last + distance
                break
    return found >= (len(image) if len(image) <= _LONG else max(_LONG, ceil(0.6 * len(image))))
