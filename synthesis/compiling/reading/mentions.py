"""Finds what a rule quotes: pieces of code, with or without backticks, and words in quotation marks."""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.compiling.reading.tables import CALLS, PROGRAMS
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import vocabulary

_NAME = r"[A-Za-z_$][\w$]*"
_QUOTED = re.compile(
    r"`(?P<code>[^`\n]{1,80})`|\"(?P<double>[^\"\n]{1,80})\"|(?<!\w)'(?P<single>[^'\n]{1,80})'(?!\w)"
)
_MACROS = (
    r"(?:panic|todo|unimplemented|unreachable|dbg|e?println|e?print|assert\w*|vec|try|as|save|update"
    r"|create|destroy"
    r"|\w+_\w+)!"
)
_BARE = re.compile(
    rf"(?<![\w.@/$`\"'-])(?:(?P<call>\.?{_NAME}(?:(?:\.|::|->){_NAME})*!?)\((?:(?:\.{{3}}|…)?\)|(?=\s|$))"
    rf"|(?P<macro>{_MACROS})(?!\w)"
    rf"|(?P<dotted>{_NAME}(?:(?:\.|::|->){_NAME})+)(?![\w/@-])"
    rf"|(?P<shebang>\#!/[\w./ -]*\w)|(?P<backslash>\\[a-z]{{2,30}})(?![\w\\])"
    rf"|(?<=\s)(?P<literal>-[A-Z]{{3,}})\b"
    rf"|(?P<member>\.[a-z]\w*[A-Z]\w*)"
    rf"|(?P<annotation>@(?!v\d)[A-Za-z][\w.]*\w)(?![/@\w])"
    rf"|(?P<directive>#(?:define|pragma|region|ifdef|ifndef|undef|nullable)\b)"
    rf"|(?P<camel>[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)(?![\w/.-]\w)"
    rf"|(?P<snake>[A-Za-z]+(?:_[A-Za-z0-9]+)+)(?![\w/.-]\w))"
)
_KNOWN = re.compile(rf"(?<![\w.@/$`\"'-])(?:{'|'.join(CALLS)})(?![\w/-]|\.\w|\()")
_FILE_ENDS = vocabulary(
    """
    py js ts tsx jsx md go rs java toml yaml yml json sql html css scss txt sh rb lock mod sum xml csv
    xlsx docx ini cfg proto graphql php cs kt kts tf c h cpp tex bib gradle env pdf rst ipynb prisma
    properties bak tfstate com org net io dev app example local swift vue svelte g e
    """
)
_PRODUCTS = vocabulary(
    """
    github gitlab typescript javascript postgresql mysql mongodb youtube linkedin powerpoint latex
    devops macos iphone ipad ios graphql openapi dynamodb bigquery jetbrains intellij cubemx sqlite
    coffeescript redux openai chatgpt whatsapp wordpress javadoc kdoc jsdoc docstring phpdoc webassembly
    nosql restful readme phpunit
    """
)
_LANGUAGE_WORDS = compiled(
    r"\b(?:words?|phrases?|terms?|expressions?|spelling|spell(?:ed|t)?|say(?:s|ing)?|mention\w*|clich\w+"
    r"|abbreviations?"
    r"|acronyms?|synonyms?|jargon|sentences?|greet\w*|repl(?:y|ies|ying)|answers?|tone|prose"
    r"|prefix(?:es)? answers"
    r"|opening|sign(?:ing)? off|refer(?:red)? to|called|wording|vocabulary|buzzwords?)\b"
)
_CODE_WORDS = compiled(
    r"\b(?:functions?|calls?|calling|imports?|methods?|class(?:es)?|decorators?|annotations?|annotated"
    r"|keywords?|operators?|"
    r"statements?|variables?|types?|code|macros?|exports?|interfaces?|modules?|structs?|tests?|handlers?"
    r"|controllers?|"
    r"components?|services?|apis?|queries|loops?|syntax|compil\w+|repo|library|selectors?|attributes?"
    r"|hooks?)\b"
)


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a rule quotes.

    Attributes:
        start: Position in the rule.
        end: End position, with quotation marks.
        text: The text without quotation marks and brackets.
        form: ``call``, ``name``, ``annotation``, ``snippet`` (other code), ``command`` or ``phrase``.
    """

    start: int
    end: int
    text: str
    form: str


def mentions_of(words: str, *, coded: bool) -> list[Mention]:
    """Return what a rule quotes, in order.

    Args:
        words: The rule.
        coded: Whether the rule is about code, so that a quoted word is rather a name than a phrase.

    >>> [(one.text, one.form) for one in mentions_of("no console.log() or `as any` here", coded=True)]
    [('console.log', 'call'), ('as any', 'snippet')]
    """
    found = list(_quoted(words, coded=coded))
    taken = [(one.start, one.end) for one in found]
    for pattern in (_BARE, _KNOWN):
        for match in pattern.finditer(words):
            inside = any(start < match.end() and match.start() < end for start, end in taken)
            if not inside and (mention := _bare(match, coded=coded)):
                found.append(mention)
                taken.append((mention.start, mention.end))
    return sorted(found, key=lambda one: one.start)


def is_coded(words: str) -> bool:
    """Return whether words are about code rather than about language."""
    return bool(_CODE_WORDS.search(words)) and not _LANGUAGE_WORDS.search(words)


def _quoted(words: str, *, coded: bool) -> Iterator[Mention]:
    for match in _QUOTED.finditer(words):
        text = next(filter(None, match.groups())).strip()
        if not text:
            continue
        code = bool(match["code"])
        yield Mention(
            start=match.start(),
            end=match.end(),
            text=_bare_name(text),
            form=_form(text, code=code, coded=coded),
        )


def _form(text: str, *, code: bool, coded: bool) -> str:
    if re.fullmatch(r"@[A-Za-z][\w.:]*(?:\(.*\))?", text):
        return "annotation"
    if re.fullmatch(rf"\.?{_NAME}(?:(?:\.|::|->){_NAME})*!?\([^()]{{0,20}}\)", text):
        return "call"
    if re.fullmatch(rf"\.?{_NAME}(?:(?:\.|::|->){_NAME})*!?", text):
        shaped = re.search(r"[a-z][A-Z]|_|\.|::|!$", text) or _KNOWN.fullmatch(text)
        if _KNOWN.fullmatch(text) and (code or coded):
            return "call"
        return "name" if (code and coded) or (shaped and (code or coded)) else "phrase"
    if text.split(maxsplit=1)[0] in PROGRAMS:
        return "command"
    return (
        "snippet"
        if code and re.search(r"[^\w\s',.!?-]|^\w+ \w+$", text) and (coded or not text.isalpha())
        else "phrase"
    )


def _bare_name(text: str) -> str:
    return (
        re.sub(r"\([^()]{0,20}\)$", "", text) if re.fullmatch(r"[@.\w:>$!-]+\([^()]{0,20}\)", text) else text
    )


def _bare(match: re.Match[str], *, coded: bool) -> Mention | None:
    kind = match.lastgroup or "known"
    text = match.group(match.lastgroup) if match.lastgroup else match.group()
    if re.match(r"_?(?:\.{3}|…|\*)", match.string[match.end() :]):  # the beginning of a secret
        return None
    if kind == "dotted" and (text.rpartition(".")[2].lower() in _FILE_ENDS or re.match(r"\w\.\w\b", text)):
        return None
    if kind == "camel" and (
        text.lower() in _PRODUCTS or re.match(r"(?:[A-Z][a-z]+)?(?:DB|SQL|JS|OS)$", text)
    ):
        return None
    if kind == "known" and text in _COMMON_WORDS and not _LISTED.search(match.string[: match.start()]):
        coded = coded and bool(_AS_CODE.match(match.string[match.end() :]))
    if kind == "known" and text in _COMMON_WORDS and not coded:
        return None
    if kind in ("shebang", "backslash", "literal"):
        return Mention(start=match.start(), end=match.end(), text=text, form="snippet")
    form = "annotation" if kind == "annotation" else "call" if kind in ("call", "known") else "name"
    return Mention(start=match.start(), end=match.end(), text=text.rstrip("."), form=form)


_LISTED = compiled(r"\b(?:\w*alloc|printf|strcpy|eval|memcpy|system|compile),? (?:or|and|nor|/) $")
_AS_CODE = compiled(r"\s+(?:calls?|statements?|functions?|macros?|in (?:the |our )?code)\b")
_COMMON_WORDS = vocabulary(
    """
    exec print free puts panic eval alert expect gets input clone require extract dump die pp dd fetch
    confirm
    """
)
"""Names of calls that are words of English, too."""
