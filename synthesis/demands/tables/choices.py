"""Groups of alternatives that exclude each other: tabs or spaces, npm or yarn, 80 or 120 characters.

A later choice replaces an earlier one of the same group if both have the same purpose.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.language.words import stem, subject_words, vocabulary

_GROUPS = r"""
*spelling english language text word spell = (?:british|uk)\b ; american\b|us (?:english|spelling)
*language speak talk practise = english ; german ; french ; spanish ; italian ; portuguese ; dutch ; chinese
indent indentation code = tabs?\b(?! (?:bar|view|order|key|component)) ; (?:\w+[- ])?spaces?
string quote literal = single[- ]quot\w+ ; double[- ]quot\w+
package dependency install manager javascript script = npm|npx ; yarn ; pnpm ; bun
package dependency install manager python environment = pip ; poetry ; uv ; conda
test python = pytest ; unittest ; nose
format formatter python lint linter = black ; ruff ; yapf ; flake8 ; pylint
*name naming = snake[ _-]?case ; camel[ _-]?case ; pascal[ _-]?case ; kebab[ _-]?case
unit measure measurement distance temperature = metric|celsius|km|kilomet\w+ ; imperial|fahrenheit|miles?
date format time day = iso(?:[ -]?8601)?\b|yyyy-mm-dd ; dd[./-]mm[./-]yy\w* ; mm[./-]dd[./-]yy\w*
price currency amount = euros? ; (?:us )?dollars? ; pounds?
database db sql = postgres(?:ql)? ; mysql ; mariadb ; sqlite ; mongo(?:db)?
format file = markdown ; restructuredtext ; asciidoc ; word|docx ; pdf ; latex ; html ; json ; ya?ml
* = present tense|imperative(?: mood)? ; past tense
*detail = short(?:er)?|brief(?:er)?|concise|terse ; long(?:er)?|detailed|verbose|thorough
*tone style = informal\w*|casual\w* ; formal\w*
*format list point = bullets?|bullet[- ]points?|bulleted lists? ; paragraphs?|prose|full sentences ; tables?
"""
"""One group a line: the words that name the group and so are not a purpose, then a pattern per alternative.

A star marks a property of the demand's subject ("short answers"): two such demands collide only if they have
the same subject. Otherwise it is a thing to use, independent of a subject.
"""

# fmt: off
_CHOSEN = (
    r"(?:^|[,;:]\s*|\b(?:use|using|with|in|via|prefer|choose|pick|wants?|to|by|on|only|let's|always|that"
    r"|as|for|it)\s+)(?:(?:the|an?|all|plain|just|only|proper|standard|our)\s+)*"
)
"""Words before the thing that is chosen: "run npm test" chooses nothing."""

_LIMIT = re.compile(
    r"\b(?P<number>\d[\d,.]*\d|\d|two|three|four|five|six|eight|ten|twenty)[- ]*(?P<unit>[a-z]{3,}|%)"
    r"(?!\w)", re.IGNORECASE,
)
_UNITS = {"char": "charact", "column": "charact", "col": "charact", "%": "percent"}
_WORDS_OF_LIMITS = vocabulary(
    "max maximum limit longer shorter most least exceed wide per than up fine enough allow length long short"
)
_TIMES = re.compile(
    r"\b(?:from (?:now|here|today) on(?:wards)?|going forward|for (?:now|the moment|today)|again|ever"
    r"|any ?more|by default|in general|henceforth)\b", re.IGNORECASE,
)
_FILES = re.compile(r"\bfiles?\b", re.IGNORECASE)
_WHERE = r"(?:for|in|when|whenever|while|on|about|inside|within|under|throughout)"
_PURPOSE = re.compile(
    rf"\b{_WHERE}\s+(?P<what>[^,;.!?]{{1,120}}?)"
    rf"(?=\s+(?:{_WHERE}|because|since|instead|over|from)\b|[,;.!?]|$)", re.IGNORECASE,
)
# fmt: on


class _Group(NamedTuple):
    members: tuple[re.Pattern[str], ...]
    generic: frozenset[str]
    quality: bool


def excludes(new: str, old: str, *, only_numbers: bool = False) -> bool:
    """Return whether a later choice replaces an earlier one.

    It does if it wants another alternative, or another number, for the same purpose or a wider one.

    Args:
        new: What is wanted, without what is only ruled out.
        old: The same of the earlier demand.
        only_numbers: Whether one of them is a ban, which chooses nothing but may set a limit.

    >>> excludes("US English everywhere", "use British spelling in the docs")
    True
    >>> excludes("use sqlite for the tests", "use postgres for the orders")
    False
    """
    limits, former = _limits(new), _limits(old)
    if any(former.get(unit, number) != number for unit, number in limits.items()):
        about = _limited(new)
        if not about or about & _limited(old):
            return True
    one, other = _chosen(new), _chosen(old)
    for number in () if only_numbers else one:
        if other.get(number, one[number]) != one[number]:
            # A choice for one purpose does not replace a general one; a general choice replaces every other.
            wanted = _purposes(_groups()[number], new)
            if not wanted or wanted & _purposes(_groups()[number], old):
                return True
    return False


def marks(text: str) -> frozenset[str]:
    """Return what a demand chooses among and limits; a demand that excludes another shares one of them.

    >>> bool(marks("US English everywhere") & marks("use British spelling in the docs"))
    True
    """
    return frozenset(
        (*(f"choice {one}" for one in _chosen(text)), *(f"limit {one}" for one in _limits(text)))
    )


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


def _limited(text: str) -> frozenset[str]:
    # "File" is a stop word, but matters for a limit, so it is replaced by "document".
    return subject_words(_FILES.sub("document", _LIMIT.sub(" ", text))) - _WORDS_OF_LIMITS
