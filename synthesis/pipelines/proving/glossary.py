"""Parse a Markdown glossary: a list, a table, or a definition list, below a heading for each item.

::

    ## Chapter 02
    - **posting**: one side of an entry (not: record, line item)

    | Not    | Term    | Meaning                    |
    |--------|---------|----------------------------|
    | book   | journal | the entries, order of date |

    ledger
    :   what holds the postings (not: log)
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agentx.synthesis.chunking.headings import fenced
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.pipelines.proving.growing import Growing, Placed, placed
from agentx.synthesis.pipelines.proving.markdown import entries
from agentx.synthesis.pipelines.proving.phrase_search import Phrase, phrase
from agentx.synthesis.pipelines.proving.senses import subject_of

_BOLD = r"(?:\*\*|__)"
_TERM = re.compile(
    rf"{_BOLD}(?P<term>[^*_\n]{{1,100}}?)\s*:?{_BOLD}\s*(?:[:：]|[-–—](?=\s)|=)?\s*(?P<meaning>.*)"
)
_PLAIN_TERM = re.compile(r"(?P<term>[^:：*_]{1,60}?)\s*[:：]\s+(?P<meaning>.+)")
_NOT = re.compile(
    r"\(\s*(?:not|never|avoid)\s*:\s*([^()]*)\)|(?:^|[\s;.,—–-])(?:not|never|avoid)\s*:\s*([^().;\n]+)",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[,;/]|<br\s*/?>|\s+or\s+|\s+and\s+")
_DRESS = "*_`\"'“”‘’ \t."

_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r":?-+:?")
_TERM_HEAD = vocabulary("term terms word words name names concept concepts expression entry")
_MEANING_HEAD = vocabulary("meaning means definition description explanation")
_NOT_HEAD = vocabulary("not never avoid avoided forbidden")
_NOTHING = vocabulary("none nothing - – — n/a")

_DEFINITION = re.compile(r" {0,3}[:~][ \t]+(?P<meaning>\S.*)")


class Term(Placed, frozen=True):
    """An entry of a glossary.

    Attributes:
        term: The term as written.
        words: Its words.
        avoided: Words that must not be used for it.
        meaning: Its definition.
        subject: Stems of the words of its definition and of its own words.
        firsts: Stems of the first words of the term and of its forbidden words. A text without any of them
            contains none of these.
    """

    term: str
    words: Phrase
    avoided: tuple[tuple[str, Phrase], ...]
    meaning: str
    subject: frozenset[str]
    firsts: frozenset[str]


@lru_cache(maxsize=16)
def read_glossary(text: str) -> tuple[Term, ...]:
    """Return the entries of a glossary, in the order of their lines."""
    return _GLOSSARIES.of(text)


def without_avoided(text: str) -> str:
    """Return a text with its own lists of forbidden words blanked.

    Naming a forbidden word in such a list is not using it.
    """
    return _NOT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


@lru_cache(maxsize=1 << 12)
def _terms(lines: tuple[str, ...]) -> list[Term]:
    """Return the entries of one section, with lines from 0.

    Cached, so that earlier items' sections are parsed once.
    """
    listed = (_listed(entry.text, entry.line) for entry in entries(lines, 0) if entry.listed)
    found = [*(term for term in listed if term), *_in_tables(lines), *_defined(lines)]
    return sorted(found, key=lambda term: term.line)


_GLOSSARIES = Growing(lambda section: placed(_terms(section.own), section))


def _listed(text: str, line: int) -> Term | None:
    found = _TERM.match(text) or _PLAIN_TERM.match(text)
    return _made(found["term"], found["meaning"], "", line) if found else None


def _made(term: str, meaning: str, avoided: str, line: int) -> Term | None:
    words, meaning = phrase(term), " ".join(meaning.split())
    said = [avoided, *(found[1] or found[2] for found in _NOT.finditer(meaning))]
    variants = tuple(
        (variant, named)
        for part in _SPLIT.split(",".join(said))
        if (variant := re.sub(r"^(?:an?|the)\s+", "", part.strip(_DRESS))) and (named := phrase(variant))
    )
    subject = subject_of((*words, *phrase(_NOT.sub(" ", meaning))))
    firsts = frozenset(one[0].stem for one in (words, *(named for _, named in variants)) if one)
    return Term(term.strip(_DRESS), words, variants, meaning, subject, firsts, line=line) if words else None


# --- tables -------------------------------------------------------------------------------------------------


def _in_tables(lines: Sequence[str]) -> Iterator[Term]:
    """Yield the terms of tables whose headers name a term and its meaning, or forbidden words."""
    code = [bool(one) for one in fenced(lines)]
    columns: tuple[int, ...] = ()
    width = 0
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if code[number] or "|" not in line:
            columns = ()
        elif not columns and _is_rule(below) and not code[number + 1]:
            heads = _cells(line)
            columns, width = _columns(heads), len(heads)
        elif columns and not _is_rule(line):
            cells = [*_cells(line), *[""] * width]
            term, meaning, avoided = (cells[at] if at >= 0 else "" for at in columns)
            avoided = "" if avoided.casefold() in _NOTHING else avoided
            if made := _made(term, meaning, avoided, number):
                yield made


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and all(map(_DASHES.fullmatch, _cells(line)))


def _cells(line: str) -> list[str]:
    cells = [cell.strip().replace("\\|", "|") for cell in _PIPE.split(line.strip())]
    return cells[not cells[0] : len(cells) - (not cells[-1])]


def _columns(heads: Sequence[str]) -> tuple[int, ...]:
    """Return the columns of the term, its meaning and its forbidden words.

    -1 stands for a missing column. Empty for other tables.
    """
    said = [{one.word for one in phrase(head)} for head in heads]
    avoided = next(
        (at for at, words in enumerate(said) if words & _NOT_HEAD or {"instead", "of"} <= words), -1
    )
    rest = [at for at in range(len(heads)) if at != avoided]
    meaning = next((at for at in rest if said[at] & _MEANING_HEAD), -1)
    named = [at for at in rest if at != meaning]
    term = next((at for at in named if said[at] & _TERM_HEAD), -1)
    if avoided < 0 and (term < 0 or meaning < 0):
        return ()
    term = term if term >= 0 else next(iter(named), -1)
    if meaning < 0:
        meaning = next((at for at in named if at != term), -1)
    return (term, meaning, avoided) if term >= 0 else ()


# --- lists of definitions -----------------------------------------------------------------------------------


def _defined(lines: Sequence[str]) -> Iterator[Term]:
    """Yield the terms of definition lists: each on its own line, with its meaning below, after a colon."""
    begin, term, meaning = 0, "", list[str]()
    last, before = "", 0  # the last line with content, and its number
    for number, (line, code) in enumerate(zip(lines, fenced(lines), strict=True)):
        found = None if code else _DEFINITION.fullmatch(line)
        if found and (last or term):
            if last:
                yield from _ended(term, meaning, begin)
                begin, term, meaning = before, last, []
            meaning.append(found["meaning"])
            last = ""
        elif term and not code and line.strip() and line[:1] in {" ", "\t"}:
            meaning.append(line.strip())
        elif code or line.strip():
            last, before = ("" if code else line.strip()), number
    yield from _ended(term, meaning, begin)


def _ended(term: str, meaning: Sequence[str], line: int) -> Iterator[Term]:
    if term and (made := _made(term, " ".join(meaning), "", line)):
        yield made
