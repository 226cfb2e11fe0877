"""Checks that a file is finished: its completion marker, and checks with messages for its writer.

Every check takes time linear in the length of the file: nothing in it can make a check run for ever.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.chunking.headings import fenced
from agentx.synthesis.pipelines.definition.pipeline import Check, Length
from agentx.synthesis.pipelines.proving.markdown import lines_of, prose, sections, stripped, title_words
from agentx.synthesis.pipelines.proving.phrase_search import (
    Words,
    count,
    is_longer,
    is_one_word,
    phrase,
    told_lines,
)
from agentx.synthesis.pipelines.templates import fill

_COMMENTS = {
    "# {}": "py pyi sh bash zsh fish yaml yml toml rb pl r jl mk cmake tf nix nim ex exs cfg conf env ps1"
    " dockerfile makefile",
    "/* {} */": "css scss less js mjs cjs jsx ts mts tsx c h cc cpp hpp java go rs swift kt kts scala cs php"
    " dart proto jsonc",
    "-- {}": "sql lua hs elm ada",
    "% {}": "tex sty erl",
    "; {}": "lisp clj cljs el scm asm ini",
    ".. {}": "rst",
}
"""How a comment is written, and the file extensions that use this form."""

_COMMENT_OF = {end: comment for comment, ends in _COMMENTS.items() for end in ends.split()}
_MARKDOWN = {"", "md", "markdown", "mdx", "txt"}

_VERDICT = re.compile(r"verdict\s*[:：=|–—-]+\s*(pass|fail)(?:ed)?(?![^\W_])(.*)", re.IGNORECASE)
_DRESS = re.compile(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+|\|[ \t]*)*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_UNWRITTEN = re.compile(
    r"[\W_]*(?:(?:todo|tbd|tba|to be (?:done|written|added)|placeholder|lorem ipsum)\b.{0,40})?",
    re.IGNORECASE,
)


class CheckInvalid(UsageError):
    """A check in a pipeline's file cannot be applied to any file."""


def marker_line(marker: str, path: str) -> str:
    """Return the last line of a finished file: the marker as a comment.

    >>> marker_line("DRAFT_COMPLETE", "drafts/ch01.md"), marker_line("CODE_COMPLETE", "app.py")
    ('<!-- DRAFT_COMPLETE -->', '# CODE_COMPLETE')
    """
    return _COMMENT_OF.get(_end_of(path), "<!-- {} -->").format(marker)


def has_marker(text: str, marker: str, path: str) -> bool:
    """Return whether a file is finished: its last non-blank line is the marker, or no marker is required.

    In Markdown, a line within a code block does not count.
    """
    return not marker_fault(text, marker, path)


def marker_fault(text: str, marker: str, path: str) -> str:
    """Return a sentence for the writer why a file is not finished.

    Empty if it is finished, or if no marker is required.
    """
    if not marker:
        return ""
    wanted, lines = marker_line(marker, path), lines_of(text)
    places = [number for number, line in enumerate(lines, 1) if _squeezed(line) == _squeezed(wanted)]
    last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
    if not places:
        return f"Its last line is not `{wanted}`: write the rest, and that line as its last."
    if places[-1] != last:
        where = f"`{wanted}` is in line {places[-1]}, but more text follows up to line {last}"
        return f"{where}: it is the last line of a finished file."
    if _end_of(path) in _MARKDOWN and list(fenced(lines))[last - 1]:
        where = f"`{wanted}` in line {last} is inside a code block that is never closed"
        return f"{where}: close that, and write the marker behind it."
    return ""


def wrapping_fault(text: str, path: str) -> str:
    """Return a sentence for the writer if a whole file is in a code block, like an answer in a chat."""
    lines = stripped(lines_of(text))
    *fences, after = fenced([*lines, ""])
    if len(lines) > 1 and all(fences) and not after:
        return (
            f"{path} is inside a code block: leave out its first line, ` {lines[0].strip()} `, and its last."
        )
    return ""


def body_of(text: str, marker: str, path: str) -> str:
    """Return a file without its marker line, and without blank lines at either end."""
    lines = stripped(lines_of(text))
    if marker and lines and _squeezed(lines[-1]) == _squeezed(marker_line(marker, path)):
        lines = stripped(lines[:-1])
    return "\n".join(lines).rstrip()


def verdict_of(text: str) -> str:
    """Return the verdict of a review.

    It is a line ``Verdict: PASS`` or ``Verdict: FAIL``, outside quotations and code. Nothing may follow
    ``PASS`` in its line, because a conditional pass is not a verdict. A reason may follow ``FAIL``.

    Returns:
        ``PASS``, ``FAIL``, or empty if there is none or there are both.

    >>> verdict_of("## **Verdict:** FAIL, for two terms are off")
    'FAIL'
    >>> verdict_of("Verdict: PASS or FAIL")
    ''
    """
    lines = lines_of(_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text))
    said = [line for line, code in zip(lines, fenced(lines), strict=True) if not code]
    found = {verdict for line in said if "erdict" in line.lower() and (verdict := _verdict_in(line))}
    return found.pop() if len(found) == 1 else ""


def _verdict_in(line: str) -> str:
    # _DRESS also matches the empty text, so there is always a match.
    bare = re.sub(r"[*_`~]", "", line[_DRESS.match(line).end() :])  # type: ignore[union-attr]
    said = _VERDICT.match(bare)
    if said is None:
        return ""
    verdict, behind = said[1].upper(), said[2]
    if verdict == "FAIL":
        return "" if re.search(r"\bPASS\b", behind) else verdict
    return "" if re.search(r"[^\W_]", behind) else verdict


def _end_of(path: str) -> str:
    name = PurePosixPath(path).name.lower()
    return name.rpartition(".")[2]


def _squeezed(line: str) -> str:
    return "".join(line.split())


def look(check: Check, text: str, values: Mapping[str, Any]) -> list[str]:
    """Return the faults of a file by one check, each as a sentence that its writer can act on.

    Handles all checks except ``command``.

    The text is without its marker line, and the values are for the templates of the check.

    Returns:
        Empty if the check passes. The sentences do not name the file; the caller does.

    Raises:
        CheckInvalid: The check cannot be applied.
        TemplateInvalid: A template of it cannot be filled.
    """
    if check.length:
        return list(_length_faults(check.length, text, values))
    if check.sections:
        return list(_section_faults([fill(title, values) for title in check.sections], text))
    if check.uses:
        return list(_uses_faults([fill(terms, values) for terms in check.uses], text))
    if check.absent:
        return list(_absent_faults([fill(words, values) for words in check.absent], text))
    if not check.matches or _matcher(check.matches).isinstance_python("\n".join(lines_of(text))):
        return []
    pattern = one_line(check.matches)
    return [f"Nothing in it matches the regular expression `{pattern}`: write what it asks for."]


def count_words(text: str) -> int:
    """Count the words of a text.

    A word is a run of letters and digits, with the apostrophes, hyphens and points inside it. In scripts
    without spaces (Chinese, Japanese) each character counts. Code blocks, comments and link targets are not
    counted.

    >>> count_words("It's a well-known fact: 3.14 is `pi`."), count_words("读文件")
    (7, 3)
    """
    return count("\n".join(prose(text, spans=True)))


def _length_faults(length: Length, text: str, values: Mapping[str, Any]) -> Iterator[str]:
    wanted = number_of_words(fill(length.words, values))
    least, most = math.ceil(wanted * (1 - length.within)), math.floor(wanted * (1 + length.within))
    least, most = min(least, wanted), max(most, wanted)
    has = count_words(text)
    if not least <= has <= most:
        much = f"add at least {least - has:,}" if has < least else f"cut at least {has - most:,}"
        asked = f"{least:,} to {most:,} are asked for (blocks of code are not counted)"
        yield f"It has {has:,} words, and {asked}: {much}."


def number_of_words(words: str) -> int:
    """Parse the number of words that a length asks for.

    Raises:
        CheckInvalid: It is not a number above 0.
    """
    bare = re.sub(r"[\s,_']", "", words)
    try:
        wanted = int(float(bare))
    except (ValueError, OverflowError):
        wanted = 0
    if wanted <= 0:
        raise CheckInvalid(f"`length.words` is {one_line(words)[:50]!r}; it must be a number greater than 0.")
    return wanted


def _section_faults(titles: list[str], text: str) -> Iterator[str]:
    there = [(title_words(section.title), section) for section in sections(text) if section.line]
    for title in titles:
        wanted = title_words(title)
        found = [section for name, section in there if name[: len(wanted)] == wanted]
        if not found:
            yield f"Section {title!r} is missing: write `## {title}`, and its text below."
        elif not any(_says_something(section.whole) for section in found):
            line = found[0].line
            yield f"Line {line}: no text follows the heading {found[0].title!r}: write it."


def _says_something(lines: tuple[str, ...]) -> bool:
    heads = {section.line for section in sections("\n".join(lines)) if section.line}
    kept = _COMMENT.sub("", "\n".join("" if n in heads else line for n, line in enumerate(lines, 1)))
    return any(not _UNWRITTEN.fullmatch(line) for line in kept.split("\n"))


def _uses_faults(required: list[str], text: str) -> Iterator[str]:
    found = Words("\n".join(prose(text, spans=True)))
    for term in re.split(r"[,;\n]", "\n".join(required)):
        if (wanted := phrase(term)) and next(found.find(wanted, is_one_word), None) is None:
            yield f"The term {one_line(term)!r} does not occur in it: use it."


def _absent_faults(forbidden: list[str], text: str) -> Iterator[str]:
    lines = prose(text)
    said = Words("\n".join(lines))
    for words in forbidden:
        sign = words.strip()
        if wanted := phrase(words):
            if found := [said.all[place].line for place in said.find(wanted, is_longer)]:
                yield f"{told_lines(found)}: {one_line(words)!r} must not be used: use other words."
        elif places := [number for number, line in enumerate(lines, 1) if sign and sign in line]:
            yield f"Line {places[0]}: {sign!r} must not be used: remove it."


def pattern_fault(pattern: str) -> str:
    """Return why a regular expression cannot be used; empty if it can.

    Expressions have the syntax of Rust's ``regex``, which takes linear time: no look-around and no
    back-references. ``^`` and ``$`` match at the ends of every line.
    """
    try:
        _matcher(pattern)
    except CheckInvalid as error:
        return str(error)
    return ""


@lru_cache(maxsize=100)
def _matcher(pattern: str) -> SchemaValidator:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=f"(?m){pattern}", regex_engine="rust-regex"))
    except SchemaError as error:
        last = str(error).strip().rpartition("\n")[2].strip()
        why = f"{one_line(pattern)!r}: {last.removeprefix('error: ').removeprefix('SchemaError: ')}"
        raise CheckInvalid(f"`matches` is not a valid regular expression: {why}.") from error
