"""Groups of alternatives that exclude each other: tabs or spaces, npm or yarn, 80 or 120 characters.

A later choice replaces an earlier one of the same group if both have the same purpose.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.language.words import stem, subject_words, vocabulary

_LANGUAGES = (
    "german french spanish italian portuguese dutch polish russian ukrainian turkish arabic hindi japanese"
    " korean"
    " swedish norwegian danish finnish greek czech hungarian romanian hebrew latin catalan english"
)
_GROUPS = rf"""
*spelling english language text word spell = (?:british|uk)\b ; american\b|us (?:english|spelling)
*language british american us uk speak talk practise = {_LANGUAGES.replace(" ", " ; ")} ; chinese|mandarin
indent indentation code = tabs?\b(?! (?:bar|view|order|key|component)) ; (?:\w+[- ])?spaces?
string quote literal = single[- ]quot\w+ ; double[- ]quot\w+
package dependency install manager javascript script = npm|npx ; yarn ; pnpm ; bun
package dependency install manager python environment = pip ; poetry ; uv ; conda ; pipenv ; pdm
test python = pytest ; unittest ; nose
format formatter python lint linter = black ; ruff ; yapf ; autopep8 ; flake8 ; pylint
*name naming = snake[ _-]?case ; camel[ _-]?case ; pascal[ _-]?case ; kebab[ _-]?case
unit measure measurement = metric ; imperial
temperature degree = celsius ; fahrenheit ; kelvin
distance unit = kilomet\w+|km ; miles?
date format time day = iso(?:[ -]?8601)?\b|yyyy-mm-dd ; dd[./-]mm[./-]yy\w*|day first ; mm[./-]dd[./-]yy\w*
price currency amount = euros?|eur ; (?:us )?dollars?|usd ; (?:british )?pounds?|gbp ; yen ; francs?|chf
database db sql = postgres(?:ql)? ; mysql ; mariadb ; sqlite ; mongo(?:db)? ; oracle
format file = markdown|\.md ; rst|restructuredtext ; asciidoc ; word|docx ; pdf ; latex ; html ; json ; ya?ml
* = present tense|imperative(?: mood)? ; past tense
*sentence text = active voice ; passive voice
*detail = short(?:er)?|brief(?:er)?|concise|terse|succinct ; long(?:er)?|detailed|verbose|lengthy|thorough
*tone style = informal\w*|casual\w* ; formal\w*
*format list point = bullets?|bullet[- ]points?|bulleted lists? ; paragraphs?|prose|full sentences ; tables?
citation reference style = apa ; mla ; chicago ; vancouver ; harvard ; ieee
*day = mondays? ; tuesdays? ; wednesdays? ; thursdays? ; fridays? ; saturdays? ; sundays?
"""
"""One group a line: the words that name the group and so are not a purpose, then a pattern per alternative.

A star marks a property of the demand's subject ("short answers"): two such demands collide only if they have
the same subject. Otherwise it is a thing to use, independent of a subject.
"""

LANGUAGE = re.compile(
    rf"\bin (?P<language>(?:\w+ )?(?:{_LANGUAGES.replace(' ', '|')}|chinese))\b", re.IGNORECASE
)

_CHOSEN = (
    r"(?:^|[,;:]\s*|\b(?:use|using|with|in|via|prefer|choose|pick|want|wants|to|by|on|only|let's|always|that"
    r"|as"
    r"|for|it)\s+)(?:(?:the|a|an|all|plain|just|only|proper|standard|only|our)\s+)*"
)
"""Words before the thing that is chosen: "run npm test" chooses nothing."""

_LIMIT = re.compile(
    r"\b(?P<number>\d[\d,.]*\d|\d|two|three|four|five|six|eight|ten|twelve|twenty)[- ]*(?P<unit>[a-z]{3,}"
    r"|%)(?!\w)",
    re.IGNORECASE,
)
_UNITS = {"char": "charact", "column": "charact", "col": "charact", "%": "percent"}
_WORDS_OF_LIMITS = vocabulary(
    "max maximum limit longer shorter most least exceed wide per than up fine enough allow length long short"
)
_TIMES = re.compile(
    r"\b(?:from (?:now|here|today) on(?:wards)?|going forward|for (?:now|the moment|today)|again|ever|any"
    r" ?more"
    r"|by default|in general|henceforth)\b",
    re.IGNORECASE,
)
_FILES = re.compile(r"\bfiles?\b", re.IGNORECASE)
_WHERE = r"(?:for|in|when|whenever|while|on|about|inside|within|under|throughout)"
_PURPOSE = re.compile(
    rf"\b{_WHERE}\s+(?P<what>[^,;.!?]{{1,120}}?)(?=\s+(?:{_WHERE}|because|since|instead|over|from)\b|[,;.!?]"
    rf"|$)",
    re.IGNORECASE,
)


class Wish(NamedTuple):
    """What a demand wants to be chosen: its wanted part, without what it only rules out."""

    text: str
    modality: str


class _Group(NamedTuple):
    members: tuple[re.Pattern[str], ...]
    generic: frozenset[str]
    quality: bool


def excludes(new: Wish, old: Wish) -> bool:
    """Return whether a later choice replaces an earlier one.

    It does if it wants another alternative, for the same purpose or a wider one.

    >>> excludes(Wish("US English everywhere", "must"), Wish("use British spelling in the docs", "must"))
    True
    >>> excludes(Wish("use sqlite for the tests", "must"), Wish("use postgres for the orders", "must"))
    False
    """
    if _limits_differ(new.text, old.text):
        return True
    if "must_not" in {new.modality, old.modality}:
        return False
    one, other = _chosen(new.text), _chosen(old.text)
    return any(
        other.get(group, member) != member and _collide(_groups()[group], new.text, old.text)
        for group, member in one.items()
    )


def _collide(group: _Group, new: str, old: str) -> bool:
    wanted, former = _purposes(group, new), _purposes(group, old)
    # A choice for one purpose does not replace a general one; a general choice replaces every other.
    return not wanted or bool(wanted & former)


@lru_cache(maxsize=1)
def _groups() -> tuple[_Group, ...]:
    found = []
    for row in _GROUPS.strip().split("\n"):
        names, _, members = row.partition(" = ")
        quality, generic = names.startswith("*"), names.strip("* ")
        before = "" if quality else _CHOSEN
        patterns = (re.compile(rf"{before}\b(?:{one})(?!\w)", re.IGNORECASE) for one in members.split(" ; "))
        stems = frozenset(map(stem, generic.split())) | subject_words(generic)
        found.append(_Group(tuple(patterns), stems, quality))
    return tuple(found)


@lru_cache(maxsize=2_048)
def _chosen(text: str) -> dict[int, int]:
    """Map each group to its wanted alternative; groups with none or several are left out."""
    found = {}
    for index, group in enumerate(_groups()):
        wanted = [number for number, pattern in enumerate(group.members) if pattern.search(text)]
        if len(wanted) == 1:
            found[index] = wanted[0]
    return found


def _purposes(group: _Group, text: str) -> frozenset[str]:
    """Return what an alternative is for; for a quality, what it is about."""
    for pattern in group.members:
        text = pattern.sub(" ", text)
    text = _TIMES.sub(" ", text)
    parts = [text] if group.quality else [match["what"] for match in _PURPOSE.finditer(text)]
    return frozenset[str]().union(*map(subject_words, parts)) - group.generic


@lru_cache(maxsize=2_048)
def _limits(text: str) -> dict[str, str]:
    found = {}
    for match in _LIMIT.finditer(text):
        unit = stem(match["unit"])
        found[_UNITS.get(unit, unit)] = match["number"].lower()
    return found


def _limits_differ(new: str, old: str) -> bool:
    """Return whether both give different numbers of the same unit for the same subject."""
    numbers, others = _limits(new), _limits(old)
    differ = [unit for unit in numbers if unit in others and numbers[unit] != others[unit]]
    if not differ:
        return False
    about = _limited(new)
    return not about or bool(about & _limited(old))


def _limited(text: str) -> frozenset[str]:
    # "File" is a stop word, but matters for a limit, so it is replaced by "document".
    return subject_words(_FILES.sub("document", _LIMIT.sub(" ", text))) - _WORDS_OF_LIMITS
