"""Compiles rules about files: which may not be written or deleted, and by whom."""

import re

from agentx.synthesis.compiling.reading import Reading
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, FileAction, PathCheck

_CHANGES = (
    r"touch\w*|(?:hand-?)?edit\w*|modif\w+|chang(?:e[sd]?|ing)|alter\w*|rewrit\w+|reformat\w*|mess with"
    r"|tamper\w*"
    r"|fiddle with|hand-edit\w*|overwrit\w+|updat(?:e[sd]?|ing)|writ(?:e|ing|ten) (?:to|in|into|anything)"
)
_DELETES = r"delet\w+|remov\w+|renam\w+|mov(?:e[sd]?|ing)\b(?! on)|drop\b"
_CREATES = (
    r"creat\w+|add(?:ing|ed)?|mak(?:e|ing)|generat(?:e|ing)|commit(?:ting|ted)?(?! to)|check in|save|put"
)
_ALL: tuple[FileAction, ...] = ("create", "change", "delete")

_FORBIDS = compiled(
    r"(?:\b(?:never|not|don'?t|mustn'?t|shouldn'?t|cannot|can'?t|nothing|no one|nobody|none|avoid|stop|no"
    r"|under no"
    r" circumstances)\b[^;]{0,60}?\b"
    rf"(?:(?P<change>{_CHANGES})|(?P<delete>{_DELETES})|(?P<create>{_CREATES}))\b)"
)
_FROZEN = compiled(
    r"\b(?:read[- ]only|off[- ]limits|frozen|hands[ -]off|out of bounds|untouchable|immutable|no-go(?:"
    r" area)?|sacred"
    r"|stay out of|stay away from|keep out of|(?:leave|keep) .{2,80}? (?:alone|untouched|unchanged|as "
    r"(?:it is|they"
    r" are|is))|is (?:mine|generated)\b|(?:i'm|i am) the only (?:one|person) who (?:may )?(?:touch|edit"
    r"|chang|writ)\w*"
    r"|only (?:i|me|humans?|people) (?:may |can |get to )?(?:touch|edit|chang|modif|writ)\w*"
    r"|append[- ]only)\b|^hands off\b"
)
_OLD = compiled(
    r"\b(?:existing|old|already (?:applied|released|published|run)|merged|applied|published|past)\b"
)
_ONLY_IN = compiled(
    r"\b(?:only|just|nothing but|exclusively)\b[^,;]{0,20}\b(?:touch|edit|change|modify|write|work|stay"
    r"|create|put)\b"
    r"[^,;]{0,30}?\b(?:in|to|under|inside|within|files?)\b|\b(?:touch|edit|change|modify|write|work|stay"
    r"|create)\b"
    r"[^,;]{0,30}\bonly (?:in|to|under|inside|within)\b|\b(?:nothing|no files?|never|don'?t|do"
    r" not)\b[^,;]{0,40}"
    r"\b(?:touch|edit|change|modify|write|create)?\w*\b[^,;]{0,30}\boutside\b"
)
_PRONOUN = compiled(
    r"\b(?:it|them|those|these|that|there|any of (?:it|them)|those files|that (?:folder|directory|file)|this"
    r" (?:folder|directory|file)|one)\b"
)
_NAMES_CODE = compiled(
    r"\b(?:functions?|methods?|class(?:es)?|calls?|imports?|words?|phrases?|lines?|characters?"
    r"|dependenc\w+|packages?"
    r"|librar\w+|comments?|secrets?|credentials?|keys?|tokens?|sections?|decorators?|columns?|tests? in"
    r"|todos?)\b"
)


def compile_files(reading: Reading) -> tuple[Check, ...]:
    """Return the checks of a rule about files."""
    carried: tuple[str, ...] = ()
    for clause in reading.clauses:
        globs = clause.globs or (carried if _PRONOUN.search(clause.words) else ())
        carried = clause.globs or carried
        if not globs or _ONLY_IN.search(clause.words):
            continue
        frozen = _FROZEN.search(clause.words)
        banned = _FORBIDS.search(clause.words)
        if banned and _NAMES_CODE.search(clause.words[banned.start() :]):
            continue
        if actions := _actions(clause.words, banned) if banned else _ALL if frozen else ():
            if (frozen or banned) and _OLD.search(clause.words):
                actions = ("change", "delete")
            return (PathCheck(paths=globs, actions=actions, exceptions=reading.exceptions),)
    return ()


def _actions(words: str, banned: re.Match[str]) -> tuple[FileAction, ...]:
    rest = words[banned.start() :]
    if re.search(rf"(?i)\b(?:{_CHANGES})\b", rest):
        return _ALL
    if re.search(rf"(?i)\b(?:{_CREATES})\b", rest):
        return ("create", "change")
    return ("delete",)
