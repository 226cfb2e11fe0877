"""Groups of alternatives that exclude each other: tabs or spaces, npm or yarn, 80 or 120 characters.

Rows to read and to extend. A later choice replaces an earlier one of the same group if both have the same
purpose.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import FEATURES
from agentx.synthesis.language.words import stem, subject_words, vocabulary


class Group(NamedTuple):
    """Alternatives; a demand can want only one of them.

    Attributes:
        members: Patterns, one for each alternative; spelled out if a single word would be ambiguous.
        generic: Words that name the group itself ("indentation"), and so are not a purpose.
        quality: Whether it is a property of the demand's subject ("short answers"). Two such demands collide
            only if they have the same subject. Otherwise it is a thing to use, independent of a subject.
    """

    members: tuple[str, ...]
    generic: str = ""
    quality: bool = False


_OTHER_LANGUAGES = sorted(
    vocabulary(
        """
        german french spanish italian portuguese dutch polish russian ukrainian turkish arabic hindi
        japanese korean swedish norwegian danish finnish greek czech hungarian romanian hebrew latin catalan
        """
    )
)

GROUPS: tuple[Group, ...] = (
    Group(
        (r"(?:british|uk)\b", r"american\b|us (?:english|spelling)|u\.s\. (?:english|spelling)"),
        "spelling english language text word spell",
        quality=True,
    ),
    Group(
        (
            *_OTHER_LANGUAGES,
            "english",
            "chinese|mandarin",
        ),
        "language british american us uk speak",
        quality=True,
    ),
    Group(
        (r"tabs?\b(?! (?:bar|view|order|key|component))", r"(?:\w+[- ])?spaces?"), "indent indentation code"
    ),
    Group((r"single[- ]quot\w+", r"double[- ]quot\w+"), "string quote literal"),
    Group((r"npm|npx", "yarn", "pnpm", "bun"), "package dependency install manager javascript script"),
    Group(
        ("pip", "poetry", "uv", "conda", "pipenv", "pdm"),
        "package dependency install manager python environment",
    ),
    Group(("pytest", "unittest", "nose"), "test python"),
    Group(("jest", "vitest", "mocha", "jasmine"), "test javascript"),
    Group(("playwright", "cypress", "selenium"), "test browser end"),
    Group(("black", "ruff", "yapf", "autopep8"), "format formatter python"),
    Group(("pylint", "flake8", "ruff"), "lint linter python"),
    Group(("prettier", "biome", "dprint"), "format formatter"),
    Group(("mypy", "pyright", "pyre"), "type check checker python"),
    Group(
        (r"snake[ _-]?case", r"camel[ _-]?case", r"pascal[ _-]?case", r"kebab[ _-]?case"),
        "name naming",
        quality=True,
    ),
    Group(
        (r"lower[ -]?case", r"upper[ -]?case", r"title[ -]case", r"sentence[ -]case"), "letter", quality=True
    ),
    Group(("metric", "imperial"), "unit measure measurement"),
    Group(("celsius", "fahrenheit", "kelvin"), "temperature degree"),
    Group((r"kilomet\w+|km", r"miles?"), "distance unit"),
    Group((r"kilos?|kilogram\w*|kg", r"pounds?|lbs?"), "weight unit"),
    Group(
        (
            r"iso(?:[ -]?8601)?\b",
            r"dd[./-]mm[./-]yy(?:yy)?|day first",
            r"mm[./-]dd[./-]yy(?:yy)?|month first",
            r"yyyy-mm-dd",
            r"month day,? year",
            r"day month,? year",
        ),
        "date format time day",
    ),
    Group((r"(?:12|twelve)[- ]?h(?:our)?", r"(?:24|twenty-four)[- ]?h(?:our)?"), "time clock format hour"),
    Group(("utc", r"local time"), "time zone timestamp date"),
    Group(
        (r"euros?|eur", r"(?:us )?dollars?|usd", r"(?:british )?pounds?|gbp", r"yen", r"francs?|chf"),
        "price currency amount",
    ),
    Group((r"postgres(?:ql)?", "mysql", "mariadb", "sqlite", r"mongo(?:db)?", "oracle"), "database db sql"),
    Group((r"squash\w*", r"rebas\w+", r"merge commits?"), "commit merge branch"),
    Group(("react", r"vue(?:\.js)?", "svelte", "angular"), "frontend component framework"),
    Group(("redux", "zustand", "mobx"), "state"),
    Group(("tailwind", "bootstrap"), "css style styling"),
    Group(("flask", "django", "fastapi"), "backend framework server"),
    Group(("requests", "httpx", "aiohttp", "urllib3?"), "http client call api"),
    Group(("docker", "podman"), "container image"),
    Group(
        (r"markdown|\.md", r"rst|restructuredtext", r"asciidoc", r"word|docx", "pdf", "latex", "html"),
        "format file",
    ),
    Group(("json", r"ya?ml", "toml", "xml", "csv"), "format file"),
    Group((r"common ?js|require\(\)", r"es ?modules|esm"), "module import"),
    Group((r"functional? components?", r"class components?"), "react"),
    Group((r"present tense|imperative(?: mood)?", r"past tense"), quality=True),
    Group((r"active voice", r"passive voice"), "sentence text"),
    Group((r"first person", r"third person"), "text"),
    Group((r"dark(?: mode| theme)", r"light(?: mode| theme)"), "theme mode"),
    Group(
        (
            r"short(?:er)?|brief(?:er)?|concise|terse|succinct",
            r"long(?:er)?|detailed|verbose|lengthy|thorough|in[- ]depth",
        ),
        "detail",
        quality=True,
    ),
    Group((r"informal\w*|casual\w*", r"formal\w*"), "tone style", quality=True),
    Group(
        (
            r"bullets?|bullet[- ]points?|bulleted lists?",
            r"paragraphs?|prose|full sentences|running text",
            r"tables?",
        ),
        "format list point",
        quality=True,
    ),
)

_CHOSEN = (
    r"(?:^|[,;:]\s*|\b(?:use|using|with|in|via|prefer|choose|pick|want|to|by|on|only|let's|always|that|as"
    r"|for|it)\s+)"
    r"(?:(?:the|a|an|all|plain|just|only|proper|standard|only|our)\s+)*"
)
"""Words before the thing that is chosen: "run npm test" chooses nothing."""

_LIMIT = re.compile(
    r"\b(?P<number>\d[\d,.]*\d|\d|two|three|four|five|six|eight|ten|twelve|twenty)[- ]*(?P<unit>characters?"
    r"|chars?|columns?|cols?|lines?|words?|spaces?|sentences?"
    r"|paragraphs?|bullets?|points?|seconds?|minutes?|hours?|days?|percent|%|pages?|steps?|items?|options?"
    r"|arguments?|parameters?|tests?|levels?|digits?|decimals?)(?!\w)",
    re.IGNORECASE,
)
_UNITS = {"char": "charact", "column": "charact", "col": "charact", "%": "percent"}
_WORDS_OF_LIMITS = vocabulary(
    "max maximum limit longer shorter most least exceed wide per than up fine enough allow length long short"
)
_FILES = re.compile(r"\bfiles?\b", re.IGNORECASE)
_PURPOSE = re.compile(
    r"\b(?:for|in|when|whenever|while|on|about|inside|within|under|throughout)\s+(?P<what>[^,;.!?]{1,120}?)"
    r"(?=\s+(?:for|in|when|whenever|while|on|about|inside|within|under|throughout|because|since|instead|over"
    r"|from)\b|[,;.!?]|$)",
    re.IGNORECASE,
)


class Wish(NamedTuple):
    """What a demand wants to be chosen: its wanted part, without what it only rules out."""

    text: str
    modality: str


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
        other.get(group, member) != member and _collide(group, new.text, old.text)
        for group, member in one.items()
    )


def _collide(index: int, new: str, old: str) -> bool:
    wanted, former = _purposes(index, new), _purposes(index, old)
    # A choice for one purpose does not replace a general one; a general choice replaces every other.
    return not wanted or bool(wanted & former)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], ...], ...]:
    return tuple(
        tuple(
            re.compile(rf"{'' if group.quality else _CHOSEN}\b(?:{member})(?![\w])", re.IGNORECASE)
            for member in group.members
        )
        for group in GROUPS
    )


@lru_cache(maxsize=2_048)
def _chosen(text: str) -> dict[int, int]:
    """Map each group to its wanted alternative; groups with none or several are left out."""
    found = {}
    for index, patterns in enumerate(_patterns()):
        wanted = [number for number, pattern in enumerate(patterns) if pattern.search(text)]
        if len(wanted) == 1:
            found[index] = wanted[0]
    return found


@lru_cache(maxsize=64)
def _generic(index: int) -> frozenset[str]:
    return frozenset(stem(word) for word in GROUPS[index].generic.split()) | subject_words(
        GROUPS[index].generic
    )


def _purposes(index: int, text: str) -> frozenset[str]:
    """Return what an alternative is for; for a quality, what it is about."""
    for pattern in _patterns()[index]:
        text = pattern.sub(" ", text)
    for name in ("standing", "for_now", "ever"):
        text = FEATURES[name].sub(" ", text)
    parts = [text] if GROUPS[index].quality else [match["what"] for match in _PURPOSE.finditer(text)]
    return frozenset[str]().union(*map(subject_words, parts)) - _generic(index)


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
