"""Compiles rules about sizes and about what each file must contain."""

import re
from typing import Any

from agentx.synthesis.compiling.reading import Clause, Reading
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, ContentCheck, Measured, SizeCheck, Unit

_NUMBERS = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
        ]
    )
} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "eighty": 80, "hundred": 100}
_AMOUNT = compiled(
    rf"\b(?P<number>\d{{1,3}}(?:[,' ]\d{{3}})+|\d{{1,6}}|(?:a |one )?(?:{'|'.join(_NUMBERS)}))(?: |-)?(?:"
    rf"(?:source|code|physical)"
    r" )?(?P<unit>lines?|loc|words?|char(?:acter)?s?|columns?|sentences?|letters?)\b"
)
_LIMIT = compiled(
    r"\b(?:at most|no more than|not more than|no longer than|not longer than|max(?:imum)?|up to|under"
    r"|below|within|less"
    r" than|fewer than|shorter than|limit\w*|cap(?:ped)?|exceed\w*|more than|longer than|over|beyond|keep"
    r"|stay|never)\b"
)
_BELOW = compiled(r"\b(?:under|below|less than|fewer than|shorter than)\b")
_AT_LEAST = compiled(r"\b(?:at least|minimum|no less than|not less than|no fewer than)\b")
_MEASURED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "answer",
        compiled(
            r"\b(?:answers?|repl(?:y|ies)|responses?|final message|summar(?:y|ies)|messages?"
            r" to me)\b"
        ),
    ),
    ("function", compiled(r"\b(?:functions?|methods?|procedures?|subroutines?)\b")),
    (
        "line",
        compiled(
            r"\b(?:lines?\b(?! of)(?=[^.]*(?:char|column))|line length|per line|a line|columns?"
            r"|wide|width|each line)\b"
        ),
    ),
    (
        "file",
        compiled(
            r"\b(?:files?|modules?|components?|class(?:es)?|documents?|chapters?|articles?|posts?|lessons?"
            r"|notes?|pages?|scripts?"
            r"|abstracts?|newsletters?|stylesheets?|templates?|essays?|scenes?|queries|drafts?|entries"
            r"|readme)\b"
        ),
    ),
)

_SECTION = compiled(
    r"(?:[\"'`]?(?P<hash>#{1,4}) ?(?P<marked>[A-Z][^\"'`#,.;]{1,50})[\"'`]|[\"'`]"
    r"(?P<quoted>[^\"'`]{2,60})[\"'`] (?:section|heading)"
    r"|(?:section|heading) (?:called |named |titled |headed |with the title )?[\"'`]"
    r"(?P<after>[^\"'`]{2,60})[\"'`]"
    r"|(?:an?|the) (?P<bare>[A-Z]\w+(?: [A-Z]\w+)?) (?:section|heading))"
)
_HAS = compiled(
    r"\b(?:must|needs?|has to|have to|ha(?:s|ve)|should|contains?|carr(?:y|ies)|gets?|requires?|starts?"
    r"|begins?|ends?|include"
    r"|add|put|with|opens?|comes? with)\b"
)
_HEADER = compiled(
    r"\b(?:starts?|begins?|opens?|beginning|starting|top of|first line|header)\b[^\"'`]{0,60}[\"'`]"
    r"(?P<text>[^\"`']{2,160})[\"'`]"
    r"|[\"'`](?P<before>[^\"`']{2,160})[\"'`] (?:at the top|as (?:the|its) first line|on (?:the first line"
    r"|line 1)|header)"
)
_SPDX = compiled(r"\bSPDX[\w-]*(?:: ?(?P<name>[\w.-]+))?")
_ENDING = compiled(
    r"\b(?:ends?|ending|finish(?:es)?|close[sd]?)\b (?:with|in|on)\b[^\"'`]{0,30}[\"'`]"
    r"(?P<text>[^\"`']{1,160})[\"'`]"
)
_FRONT = compiled(
    r"\b(?:yaml )?front[ -]?matter\b(?:.{0,40}?\b(?:with|containing|including)\b (?P<keys>[^.;]{2,80}))?"
)
_EVERY = compiled(r"\b(?:every|each|all|any|always|no .{2,40} without|new)\b")
_SOURCES = (
    "**/*.py",
    "**/*.js",
    "**/*.ts",
    "**/*.tsx",
    "**/*.jsx",
    "**/*.go",
    "**/*.rs",
    "**/*.java",
    "**/*.kt",
    "**/*.c",
    "**/*.h",
    "**/*.cpp",
    "**/*.hpp",
    "**/*.cs",
    "**/*.rb",
    "**/*.php",
    "**/*.swift",
    "**/*.sh",
)


def compile_sizes(reading: Reading) -> tuple[Check, ...]:
    """Return the check of a rule about a size."""
    for clause in reading.clauses:
        amount = _AMOUNT.search(clause.words)
        if not amount or not _LIMIT.search(clause.words) or _AT_LEAST.search(clause.words):
            continue
        unit = _unit(amount["unit"].lower())
        measured = _measured(clause, reading, amount)
        if not unit or not measured:
            continue
        below = _BELOW.search(clause.words[: amount.start()])
        paths = reading.globs if measured != "answer" else ()
        return (
            SizeCheck(
                of=measured,
                unit=unit,
                at_most=_number(amount["number"]) - bool(below),
                paths=paths,
                exceptions=reading.exceptions,
            ),
        )
    return ()


def _unit(word: str) -> Unit | None:
    if word.startswith(("char", "column", "letter")):
        return "characters"
    return "words" if word.startswith("word") else "lines" if word.startswith(("line", "loc")) else None


def _number(words: str) -> int:
    plain = words.lower().removeprefix("a ").removeprefix("one ") or words
    return _NUMBERS[plain] if plain in _NUMBERS else int(re.sub(r"\D", "", words))


def _measured(clause: Clause, reading: Reading, amount: re.Match[str]) -> Measured | None:
    rest = clause.words[: amount.start()] + clause.words[amount.end("number") :]
    if amount["unit"].lower().startswith(("char", "column")) and not re.search(
        r"(?i)\b(?:files?|answers?|repl|titles?|descriptions?|messages?|names?|subjects?|headings?"
        r"|headlines?|tweets?|summar)",
        rest,
    ):
        return "line"
    rest = re.sub(r"(?i)^\s*(?:lines?|words?)", "", rest)
    for name, pattern in _MEASURED:
        if pattern.search(clause.words if name == "line" else rest) and not (
            name == "line" and amount["unit"].lower().startswith(("line", "loc", "word"))
        ):
            return name  # type: ignore[return-value]
    return "file" if reading.globs else None


def compile_contents(reading: Reading) -> tuple[Check, ...]:
    """Return the check of a rule about what each file must contain."""
    for clause in reading.clauses:
        words = clause.words
        if not _HAS.search(words) or not (_EVERY.search(words) or reading.globs):
            continue
        if re.search(r"(?i)\b(?:never|don'?t|do not|mustn'?t|must not)\b", words):
            continue
        check = _content(words)
        if check is None or re.search(
            r"(?i)\b(?:commits?|branch(?:es)?|pull requests?|prs?|answers?|repl(?:y|ies)|functions?)\b", words
        ):
            continue
        paths = reading.globs or (_SOURCES if re.search(r"(?i)\b(?:source|code)\b", words) else ())
        if paths:
            return (ContentCheck(paths=paths, exceptions=reading.exceptions, **check),)
    return ()


def _content(words: str) -> dict[str, Any] | None:
    if match := _SECTION.search(words):
        return {
            "sections": ((match["marked"] or match["quoted"] or match["after"] or match["bare"]).strip("# "),)
        }
    if match := _SPDX.search(words):
        return {"header": match.group() if match["name"] else "SPDX-License-Identifier"}
    if match := _HEADER.search(words):
        text = match["text"] or match["before"]
        return {"header": text}
    if match := _ENDING.search(words):
        return {"patterns": (rf"{re.escape(match['text'])}\s*\Z",)}
    if match := _FRONT.search(words):
        keys = re.findall(r"\b(?!and\b|an?\b|the\b|or\b)[a-z_]+\b", match["keys"] or "")
        return {"patterns": (r"\A---\r?\n", *(rf"^{key}:" for key in keys))}
    return None
