"""Compiles rules about text: words, phrases, characters and secrets that may not be written."""

import re
from collections.abc import Iterator

from agentx.synthesis.compiling.places import is_path
from agentx.synthesis.compiling.reading import Clause, Reading
from agentx.synthesis.compiling.tables import CHARACTERS
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, Place, TextCheck

_ANSWERS = compiled(
    r"\b(?:answers?|repl(?:y|ies)|respon(?:se|ses|d|ding)|messages? to me|final message|chat|when you "
    r"(?:talk|write) to"
    r" me|talk(?:ing)? to me|summar(?:y|ies)|address(?:ing)? me|call(?:ing)? me)\b"
)
_FILES = compiled(
    r"\b(?:files?|code|source|repo(?:sitory)?|documents?|docs|documentation|comments?|commit(?:s|ted)?"
    r"|pages?|chapters?"
    r"|drafts?|articles?|posts?|manuscripts?|papers?|scripts?|texts?|prose|copy|newsletters?|tests?)\b"
)
_SAYS = compiled(
    r"\b(?:words?|phrases?|terms?|expressions?|strings?|names?|spelling|say(?:ing)?|mention(?:ing)?|writ"
    r"(?:e|ing)"
    r"|contain\w*|appear\w*|includ\w+|use|using|call(?:ing)?|refer\w*|put|abbreviations?|clich\w+|banned"
    r"|forbidden"
    r"|leave)\b"
)
_QUOTED = compiled(
    r"\"(?P<double>[^\"]{1,80})\"|(?<![\w])'(?P<single>[^']{1,80})'(?!\w)|`(?P<code>[^`]{1,80})`"
)
_FORMS = compiled(
    r"\bany forms?\b|\bin (?:any|all) (?:its |their )?forms?\b|\bderivatives?\b|\bvariants? of\b"
)
_SECRET = compiled(r"(?<![\w-])(?P<prefix>[A-Za-z]{2,8}[_-]?(?:[a-z]+[_-])*)(?:\.{3}|…|\*+|x{3,})(?!\w)")
_CODE_WORDS = compiled(
    r"\b(?:functions?|calls?|imports?|librar(?:y|ies)|packages?|dependenc(?:y|ies)|commands?|flags?"
    r"|modules?|methods?"
    r"|class(?:es)?|decorators?|annotations?|types?|exports?|operator|keyword|statements?|sections?"
    r"|heading|header"
    r"|branch|folders?|director(?:y|ies))\b"
)
_INSTEAD = compiled(
    r"[`\"'][^`\"']{1,80}[`\"'],? (?:not|never|rather than|instead of) (?P<banned>[`\"'][^`\"']{1,80}[`\"'])"
)

_MESSAGES = compiled(
    r"\b(?:commit|error|log|status) messages?\b|\bpull requests?\b|\bprs?\b|\bbranch(?:es)?\b"
)


def compile_texts(reading: Reading) -> tuple[Check, ...]:
    """Return the checks of a rule about text."""
    phrases: list[str] = []
    patterns: list[str] = []
    for clause in reading.clauses:
        if clause.bans or phrases or patterns:
            phrases += _phrases(clause) if clause.bans else ()
            patterns += _characters(clause) if clause.bans else ()
        if re.search(r"(?i)\b(?:credentials?|secrets?|keys?|tokens?|passwords?)\b", reading.words):
            patterns += [
                rf"{re.escape(one['prefix'])}[A-Za-z0-9]{{8,}}" for one in _SECRET.finditer(clause.words)
            ]
    if reading.unplaced and (patterns or _MESSAGES.search(reading.words)):
        return ()
    if not phrases and not patterns:
        return ()
    if phrases and _FORMS.search(reading.words):
        patterns += [rf"(?i)\b{re.escape(one.removesuffix('e').removesuffix('y'))}\w*" for one in phrases]
        phrases = []
    return (
        TextCheck(
            phrases=tuple(dict.fromkeys(phrases)),
            patterns=tuple(dict.fromkeys(patterns)),
            paths=reading.globs,
            exceptions=reading.exceptions,
            places=_places(reading),
            doubt="whether this is a place that the rule means" if reading.unplaced else "",
        ),
    )


def _places(reading: Reading) -> tuple[Place, ...]:
    if reading.globs:
        return ("files",)
    answers, files = _ANSWERS.search(reading.words), _FILES.search(reading.words)
    return (
        ("answers",)
        if answers and not files
        else ("files",)
        if files and not answers
        else ("files", "answers")
    )


def _phrases(clause: Clause) -> Iterator[str]:
    if not _SAYS.search(clause.words) or _CODE_WORDS.search(clause.words):
        return
    replaced = _INSTEAD.search(clause.words)
    for match in _QUOTED.finditer(replaced["banned"] if replaced else clause.words):
        phrase = (match["double"] or match["single"] or match["code"]).strip(" ,.")
        before = clause.words[: match.start()].rstrip().lower()
        if (
            (
                replaced
                or not before.endswith(("instead", "use", "say", "write", "use the word"))
                or clause.words.lower().startswith(("never", "don't", "do not", "avoid"))
            )
            and phrase
            and not is_path(phrase)
            and not re.search(r"\(\)|^--?\w", phrase)
        ):
            yield phrase


def _characters(clause: Clause) -> Iterator[str]:
    for name, pattern in CHARACTERS.items():
        if re.search(name, clause.words, re.IGNORECASE):
            yield pattern
