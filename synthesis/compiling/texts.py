"""Compiles rules about text: words, phrases, characters and secrets that may not be written."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from agentx.synthesis.compiling.concepts import concepts
from agentx.synthesis.compiling.reading.mentions import Mention, is_coded, mentions_of
from agentx.synthesis.compiling.reading.places import is_path
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import Stance, sentences_of, stance
from agentx.synthesis.compiling.reading.tables import PROGRAMS
from agentx.synthesis.compiling.reading.where import Where, where_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, Place, TextCheck

_ANSWERS = compiled(
    r"\b(?:answers?|answering|repl(?:y|ies|ying)|respon(?:se|ses|d|ding)|messages? to me|final message|chat"
    r"|when you (?:talk|write|speak) to me|talk(?:ing)? to me|summar(?:y|ies)|address(?:ing)? me"
    r"|call(?:ing)? me"
    r"|tell(?:ing)? me|report(?:ing)? (?:back|to me)|greet\w*|conversations?)\b"
)
_FILES = compiled(
    r"\b(?:files?|code|source|repo(?:sitory)?|documents?|docs|documentation|comments?|commit(?:s|ted)?|pages?"
    r"|chapters?|drafts?|articles?|posts?|manuscripts?|papers?|scripts?|prose|copy|newsletters?|tests?"
    r"|lessons?"
    r"|notes?|scenes?|strings?|variables?|config\w*|templates?|reports?|emails?|letters?)\b"
)
_NOT_TEXT = compiled(
    r"\b(?:packages?|librar(?:y|ies)|dependenc(?:y|ies)|commands?|flags?|modules?|branch(?:es)?|folders?"
    r"|director(?:y|ies)|(?:commit|error|log|status) messages?|pull requests?|prs?|sections?|headings?"
    r"|headers?"
    r"|suffix|prefix|decorators?|annotations?)\b"
)
_MESSAGES = compiled(
    r"\b(?:commit|error|log|status) (?:messages?|subjects?)\b|\bcommits?\b|\bpull requests?\b|\bprs?\b"
    r"|\bbranch(?:es)?\b"
)
_OR_FILES = compiled(
    r"\b(?:or|and) (?:in )?(?:the |our |any )?(?:code|files?|docs|documentation"
    r"|comments?|source)\b"
)
_SAID = (
    compiled(
        r"\b(?:say|spell|call (?:it|them|him|her)) (?:the )?\w+(?: \w+)?,? (?:and )?(?:not|never"
        r"|instead of"
        r"|rather than) (?:the )?(?P<list>[A-Za-z-]{3,})(?=[,.;!?]|$| in\b)"
    ),
    compiled(
        r"(?-i:(?P<list>[A-Z][\w&-]+(?: [A-Z][\w&-]+)*(?:(?:, | and | or |, and "
        r"|, or )[A-Z][\w&-]+(?: [A-Z][\w&-]+)*)+))"
        r" (?:must|may|should|can|shall|do|does|are|is)(?:n['’]t| not| never)[^.;]{0,20}?\b(?:appear"
        r"|show up|turn up|occur"
        r"|crop up|named?|mentioned)\b"
    ),
    compiled(r"\b(?:stop|don['’]t|never|not) call(?:ing)? me (?P<list>[a-z]+)\b"),
)
"""Words that may not be written, told by what is said about them."""

_FORMS = compiled(
    r"\bany forms?\b|\b(?:any|all|every) (?:of )?(?:its |their )?(?:other )?forms?\b|\bderivatives?\b"
    r"|\bvariants? of\b"
    r"|\bin whatever form\b|\bconjugat\w*\b"
)
_BARE_WORDS = compiled(
    r"\b(?:the )?(?:words?|terms?|phrases?|abbreviations?|acronyms?|spellings?|names?|buzzwords?)(?: like"
    r"| such as|:)? "
    r"(?P<list>(?!(?:below|above|following|here|in|for|of|that"
    r"|is|are|must|should|on|to|with|we|you|i|it|and|or|limit|count|order"
    r"|choice|which"
    r"|you|file|class|may|can|has|have|per|from|max\w*|long|at|by)\b)"
    r"[\w'-]+(?:(?:, | and | or |, and |, or )(?!(?:it|we|they|use|i|you)\b)[\w'-]+){0,8}?)"
    r"(?=$|[.;!?)]|,? (?:is|are|has|have|must|should|may|never|doesn|don|can|in|anywhere|ever|again|at"
    r"|please|when|it"
    r"|we|they|i|use|out|from|to|gets?|any|for|because|since|shall|will|belongs?|stays?|here)\b)"
)
_SECRET = compiled(
    r"(?<![\w-])[`\"']?(?P<prefix>[A-Za-z]{2,8}(?:[_-][A-Za-z0-9]+)*[_-]?)(?:\.{3}|…|\*+|x{3,})(?!\w)"
    r"|\b(?:start|begin)\w* with [`\"']?(?P<begins>[A-Za-z]{2,8}[_-])(?!\w)"
)
_SECRETS = compiled(r"\b(?:credentials?|secrets?|keys?|tokens?|passwords?|ids?)\b")
_OPENS = compiled(r"\b(?:start|begin|open|opening|lead|kick)\w*\b")
_CLOSES = compiled(r"\b(?:end|clos|finish|sign|conclud)\w*\b(?: off)?")
_NAMED = re.compile(r"[A-Za-z][A-Za-z-]*")
_PLACED = compiled(r"\b(?:in|into|under|to|from|folder|called|named|inside) $")
_MOST_LONG = 3

_PICTURES = 0x2190
"""First of the arrows and pictures of Unicode, whose names are also everyday words."""

_IN_EVERY_TEXT = frozenset(",.:'\"()-_/=")
"""Marks that no rule forbids altogether: what it says of them is about a use of them."""


def compile_texts(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of a rule about text."""
    where = where_of(reading)
    words = reading.words
    if where.open or (not where.paths and _MESSAGES.search(words) and not _OR_FILES.search(words)):
        return ()
    if check := _wanted_edge(words):
        return (check,)
    phrases, patterns, blamed = _phrases(words, where), [], False
    usual: dict[str, None] = {}
    for start, end, pattern, files in _forms(words):
        if (found := stance(words, start, end)) in ("banned", "blamed"):
            patterns.append(pattern)
            usual |= dict.fromkeys(files)
            blamed |= found == "blamed"
    if _SECRETS.search(words):
        found_ones = (one["prefix"] or one["begins"] for one in _SECRET.finditer(words))
        patterns += [rf"\b{re.escape(one)}[A-Za-z0-9]{{8,}}" for one in found_ones]
    if not phrases and not patterns:
        return ()
    if usual and not where.paths and not phrases:
        where = msgspec.structs.replace(where, paths=tuple(usual))
    places = _places(words, where)
    if phrases and _FORMS.search(words):
        patterns += [rf"(?i)\b{re.escape(one.removesuffix('e').removesuffix('y'))}\w*" for one in phrases]
        phrases = []
    if places == ("answers",) and phrases and (edge := _edge(words)):
        patterns += [edge.format(r"\W+".join(map(re.escape, re.findall(r"[\w']+", one)))) for one in phrases]
        phrases = []
    return (
        TextCheck(
            phrases=tuple(dict.fromkeys(phrases)),
            patterns=tuple(dict.fromkeys(patterns)),
            paths=where.paths if "files" in places else (),
            exceptions=where.exceptions,
            places=places,
            doubt=where.doubt or ("whether the rule forbids it, or only reports of it" if blamed else ""),
        ),
    )


_WANTED_EDGE = compiled(
    r"\b(?P<edge>start|begin|open|end|close|finish|sign)s?\b (?:off )?(?:(?:every|each|all|any|your|the"
    r"|my|of|final)\s)*"
    r"(?:answers?|repl(?:y|ies)|responses?|messages?|summar(?:y|ies))\s(?:\w+\s){0,2}?(?:with|by|in"
    r"|on) (?:either )?"
    r"(?:the (?:word|line|phrase|sentence)s? )?(?P<what>[^.;!?]+)"
    r"|\b(?:every|each|all|any|your) (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|messages?|summar(?:y|ies))"
    r" (?:must|should|has to|have to|needs? to|always) ?(?P<edge2>start|begin|open|end|close"
    r"|finish)s? (?:with|by|in|on)"
    r" (?:either )?(?:the (?:word|line|phrase|sentence)s? )?(?P<what2>[^.;!?]+)"
)
_WANTED_WORDS = compiled(r"[`\"'](?P<quoted>[^`\"']{2,60})[`\"']|(?-i:\b(?P<capitals>[A-Z][A-Z]+)\b)")


def _wanted_edge(words: str) -> TextCheck | None:
    """Return the check of words with which each answer must begin or end."""
    match = _WANTED_EDGE.search(words)
    if not match or stance(words, *match.span()) == "banned":
        return None
    found = [
        one["quoted"] or one["capitals"] for one in _WANTED_WORDS.finditer(match["what"] or match["what2"])
    ]
    wanted = "|".join(re.escape(one.strip()) for one in found)
    if not wanted:
        return None
    begins = (match["edge"] or match["edge2"]).lower() in ("start", "begin", "open")
    pattern = rf"\A(?!\W*(?:{wanted})(?!\w))\s*\S+" if begins else rf"\A(?![\s\S]*(?:{wanted})\W*\Z)\s*\S+"
    return TextCheck(patterns=(pattern,), places=("answers",))


def _places(words: str, where: Where) -> tuple[Place, ...]:
    answers, files = _ANSWERS.search(words), _FILES.search(words)
    if where.paths and not where.doubt:
        return ("files",)
    if answers and not files:
        return ("answers",)
    return ("files",) if where.paths or (files and not answers) else ("files", "answers")


def _edge(words: str) -> str:
    """Return the pattern for a phrase with which an answer may not begin or end; empty for neither."""
    if _OPENS.search(words):
        return r"(?i)\A\W*{}\b"
    return r"(?i)\b{}\W*\Z" if _CLOSES.search(words) else ""


# --- words and phrases ---


def _phrases(words: str, where: Where) -> list[str]:
    found: dict[str, None] = {}
    for start, end in sentences_of(words):
        sentence = words[start:end]
        if _NOT_TEXT.search(sentence):
            continue
        coded = is_coded(sentence) or bool(where.languages)
        for one in mentions_of(sentence, coded=coded):
            if (
                one.form == "phrase"
                and _is_phrase(one, sentence)
                and _meant(words, start + one.start, start + one.end)
            ):
                found[one.text.strip(" ,.")] = None
        for match in _BARE_WORDS.finditer(sentence):
            if _meant(words, start + match.start("list"), start + match.end("list")):
                found |= dict.fromkeys(re.split(r", (?:and |or )?| and | or ", match["list"]))
        for match in (match for pattern in _SAID for match in pattern.finditer(sentence)):
            found |= dict.fromkeys(re.split(r", (?:and |or )?| and | or ", match["list"]))
    return list(found)


def _is_phrase(one: Mention, sentence: str) -> bool:
    quoted = sentence[one.start] in "\"'"
    return bool(
        not _PLACED.search(sentence[: one.start])
        and (quoted or is_prose(sentence))
        and not is_path(one.text)
        and not re.search(r"\(\)|^--?\w|^[/~]", one.text)
        and one.text.split()[:1] != [""]
        and not (one.text.split() and one.text.split()[0] in PROGRAMS)
    )


def is_prose(words: str) -> bool:
    """Return whether words are about language: words, phrases, prose."""
    return not is_coded(words)


def _meant(words: str, start: int, end: int) -> bool:
    found: Stance = stance(words, start, end)
    return found == "banned"


# --- characters and other forms ---


def _forms(words: str) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Yield the position, the regular expression and the usual files of each form of text that words name."""
    taken: list[tuple[int, int]] = []
    for names, pattern, files in concepts().texts:
        for match in names.finditer(words):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                yield *match.span(), pattern, files
    for start, end, character in _characters(words):
        if not _IDIOM.search(words[:start]) and not any(
            first < end and start < last for first, last in taken
        ):
            yield start, end, re.escape(character), ()


_IDIOM = compiled(r"\bnot (?:a|one|even a|a single) $")


def _characters(words: str) -> Iterator[tuple[int, int, str]]:
    """Yield the position of each Unicode name of a mark in words, and the mark."""
    parts = list(_NAMED.finditer(words))
    for length in range(_MOST_LONG, 0, -1):
        for index in range(len(parts) - length + 1):
            some = parts[index : index + length]
            if character := _character(tuple(one.group() for one in some)):
                yield some[0].start(), some[-1].end(), character


@lru_cache(maxsize=4_096)
def _character(names: tuple[str, ...]) -> str:
    """Return the mark that words name, in the singular or plural; empty if they name none.

    >>> _character(("question", "marks")), _character(("Semicolons",)), _character(("house",))
    ('?', ';', '')
    """
    if [one.lower() for one in names] == ["full", "stop"]:  # an idiom
        return ""
    for last in (names[-1], names[-1].removesuffix("s"), names[-1].removesuffix("es")):
        try:
            character = unicodedata.lookup(" ".join([*names[:-1], last]))
        except KeyError:
            continue
        if character in _IN_EVERY_TEXT:
            continue
        is_mark = unicodedata.category(character)[0] in "PS"
        if is_mark and (len(names) > 1 or ord(character) < _PICTURES):
            return character
    return ""
