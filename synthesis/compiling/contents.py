"""Compiles rules about what each file must contain: a header, a section, an ending, a piece of code."""

import re
from typing import Any

from agentx.synthesis.compiling.reading.mentions import mentions_of
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import sentences_of, stance
from agentx.synthesis.compiling.reading.where import files_of, where_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, ContentCheck

_SECTION = compiled(
    r"(?:[\"'`]?(?P<hash>#{1,4}) ?(?P<marked>[A-Z][^\"'`#,.;]{1,50})[\"'`]"
    r"|[\"'`](?P<quoted>[^\"'`]{2,60})[\"'`] (?:section|heading|part|chapter)"
    r"|(?:section|heading) (?:called |named |titled |headed |with the title "
    r"|that says )?[\"'`](?P<after>[^\"'`]{2,60})[\"'`]"
    r"|(?:an?|the|its|with|own) (?P<bare>(?-i:[A-Z]\w+(?: (?:[A-Z]\w+|and|of|the|for|to))*)) (?:section"
    r"|heading)"
    r"|\b(?:section|heading) (?:called|named|titled"
    r"|headed) (?P<named>(?-i:[A-Z]\w+(?: [A-Za-z]\w+){0,4}?))(?=$|[,.;]| (?:at|in|with|so|that|because)\b)"
    r"|(?:an?|its|own) (?P<lower>(?!(?:new|separate|short|own|extra|single|whole|first|last|final"
    r"|closing)\b)[a-z]+) (?:section|heading))"
)
_TOP = compiled(
    r"\b(?:at|on) the (?:very )?(?:top|beginning|start|head)\b|\b(?:very )?(?:first|1st) lines?\b"
    r"|\bline (?:1|one)\b|\b(?:starts?|begins?"
    r"|opens?|starting|beginning|kicks? off)\b.{0,40}?\b(?:with|by|in)\b|\bheaders?\b|\b(?:below|under"
    r"|after|following) the shebang\b|\bsecond line\b|\btop of (?:each"
    r"|every|all|any|the|your|our)\b|\bup top\b"
)
_FIRST_LINE = compiled(r"\b(?:very )?(?:first|1st) line\b|\bline (?:1|one)\b")
_BOTTOM = compiled(
    r"\b(?:ends?|ending|finish(?:es)?|close[sd]?)\b.{0,20}?\b(?:with|in|on)\b|\b(?:at"
    r"|on) the (?:very )?(?:bottom|end)\b|\blast line\b"
)
_SPDX = compiled(r"\bSPDX[\w-]*(?:: ?(?P<name>[\w.-]+))?")
_FRONT = compiled(
    r"\b(?:yaml )?front[ -]?matter\b(?:.{0,40}?\b(?:with|containing|including|has"
    r"|have)\b (?P<keys>[^.;]{2,80}))?"
)
_EVERY = compiled(r"\b(?:every|each|all|any|always|without|new|must|needs?|has to|have to|forget)\b")
_NOT_FILES = compiled(
    r"\b(?:commits?|branch(?:es)?|pull requests?|prs?|answers?|repl(?:y|ies)|functions?"
    r"|methods?|calls?|names?|named)\b"
)
_CODE = "python javascript typescript tsx go rust java kotlin c cpp csharp ruby php swift scala bash"
_SOURCES = files_of(tuple(_CODE.split()))


_LICENSE = compiled(
    r"\b(?:licen[cs]e|copyright|licensing) (?:headers?|notices?|comments?|banners?|blurbs?)\b"
)
_LICENSE_HEADER = r"(?i)\A(?:.*\n){0,9}?.*(?:copyright|licen[sc]e|\(c\)|©|SPDX)"
"""What a header about a licence has near its beginning, as long as its text is not known."""


def compile_contents(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of a rule about what each file must contain."""
    where, words = where_of(reading), reading.words
    if where.open or (not _EVERY.search(words) and not where.paths):
        return ()
    for start, end in sentences_of(words):
        sentence = words[start:end]
        if _NOT_FILES.search(sentence):
            continue
        paths = where.paths or files_of(where.languages)
        paths = paths or (_SOURCES if re.search(r"(?i)\b(?:source|code)\b", words) else ())
        if paths and (check := _content(sentence)):
            fields = {"paths": paths, "exceptions": where.exceptions, "doubt": where.doubt} | check
            return (ContentCheck(**fields),)
    return ()


def _is_demanded(words: str, start: int, end: int) -> bool:
    found = stance(words, start, end)
    without = re.search(
        r"(?i)\b(?:without|lacks?|lacking|miss(?:es|ing)?|forget\w*|has no|have no"
        r"|omit\w*)\b[^,;]*$",
        words[:start],
    )
    return found in ("wanted", "") or bool(without) or (found == "blamed")


def _content(words: str) -> dict[str, Any] | None:
    sections = [
        next(filter(None, match.group("marked", "quoted", "after", "bare", "named", "lower"))).strip("# ")
        for match in _SECTION.finditer(words)
        if _is_demanded(words, *match.span())
    ]
    if sections:
        return {"sections": tuple(dict.fromkeys(sections))}
    if match := _FRONT.search(words):
        keys = re.findall(r"\b(?!and\b|an?\b|the\b|or\b|its\b)[a-z_]+\b", match["keys"] or "")
        return (
            {"patterns": (r"\A---\r?\n", *(rf"^{key}:" for key in keys))}
            if _is_demanded(words, *match.span())
            else None
        )
    if (match := _SPDX.search(words)) and _is_demanded(words, *match.span()):
        text = match.group() if match["name"] else "SPDX-License-Identifier"
        return {"patterns": (_first_line(text),)} if _FIRST_LINE.search(words) else {"header": text}
    if _LICENSE.search(words):
        return {"patterns": (_LICENSE_HEADER,), "doubt": "which header the rule means"}
    top, bottom = _TOP.search(words), _BOTTOM.search(words)
    if not top and not bottom:
        return None
    for one in mentions_of(words, coded=True):
        if not _is_demanded(words, one.start, one.end):
            continue
        if top and one.form == "phrase":
            return (
                {"patterns": (_first_line(one.text),)} if _FIRST_LINE.search(words) else {"header": one.text}
            )
        text = re.escape(one.text.split("(")[0] if one.form == "name" else one.text)
        return {"patterns": (rf"\A(?:.*\n){{0,14}}?.*{text}",) if top else (rf"{text}\W*\Z",)}
    return None


def _first_line(text: str) -> str:
    """Return the regular expression of a text on the first line; comment marks make no difference."""
    return rf"\A(?:#!.*\n|<\?php\s+)?[^\w\n]*{re.escape(text.strip('/#*-;<!> '))}"
