"""Reads what a clause decides about the things that it names, in any wording.

A thing that is named is marked (:data:`MARK`), so that only the words around it count: whether it is ruled
out, demanded, or neither.
"""

import re
from collections.abc import Iterable

from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import STOP_WORDS, stem, vocabulary

MARK = "▮"
"""Takes the place of a thing that is named."""

NEGATION = (
    r"(?:never|not|no|none|nothing|nobody|no[- ]one|neither|nor|without|cannot|(?:do|does|did|is|are"
    r"|was|were|must"
    r"|should|would|could|ca|wo|has|have|had|need|sha)n['’]?t|avoid(?:ing)?|stop|quit|refrain from"
    r"|under no circumstances|forbidden to|keep from|steer clear of|refuse to|instead of|rather than)"
)
RULED_OUT = (
    r"(?:banned|forbidden|prohibited|disallowed|verboten|taboo|unwelcome|retired|blacklisted|blocked"
    r"|gone|dead"
    r"|history|out(?! of| in| to| for| from| by| with)|over(?= |$)|off(?! by)|no[- ]go|off[- ]limits"
    r"|off the (?:table|menu|list)|out of (?:the )?(?:question|bounds)|not\b|never\b|no (?:longer|more)"
    r"|n['’]?t\b"
    r"|no (?:place|business|room|home|go)\b|a (?:hard )?(?:no|non-starter|dealbreaker|no-go)\b|nowhere|to go"
    r"|had (?:its|their) day|ruled out|thrown out|left out|kept out|frowned upon)"
)
_AFTER_THING = compiled(
    r"^[`\"']?(?:\s+(?!(?:is|are|was|has|to|and|or|in|for|with|it)\b)\w+)?(?:\s+(?:package|library|gem|crate|module|command"
    r"|call|flag|option|too|either)s?)?(?:(?:\s+(?:is|are|was|were|has|have|had|stays?|remains?|must"
    r"|may|should|shall|can"
    r"|will|does|did|gets?|needs?|comes?|goes|counts? as)\b|['’](?:s|re)\b)"
    r"(?:\s+(?:strictly|simply|just|completely|absolutely|always|already|now|hereby|also|both|all"
    r"|officially|been|be))*\s+"
    rf"{RULED_OUT}|\s+(?:(?:is|are|was|must|should|ca|wo|does|has|had|need|could|would)n['’]?t|cannot)\b)"
    r"|^[`\"']?\s*(?:,|:|\s[–—-]+)?\s*(?:never|no thanks?|no way|(?:is )?out)\b"
)
_CUE = compiled(
    rf"\b(?P<no>{NEGATION}|ditch|drop|ban|forbid|get(?:ting)? rid of|got rid of|moved? (?:off"
    rf"|away from)|away from"
    r"|leave out|no more|hate|can['’]t stand|rip(?:ped)? out|threw out|phase out)\b"
    r"|\b(?P<yes>us(?:e|es|ing)|prefer|go(?:es)? with|stick (?:to|with)|always|must|needs?|should"
    r"|ha(?:s|ve) to"
    r"|takes?|pick|choose|reach for|switch(?:ed)? to|moved? to|through|via|with|gets?|give|pass|carr(?:y|ies)"
    r"|it['’]s|we['’]re|only|replaced (?:by|with)|we have|works? with|comes? (?:in )?with|belongs?)\b"
    r"|(?P<stop>[,;:(]|\s[-–—]+\s|\b(?:but|so|then|and|because|since)\b)"
)
_BEFORE = compiled(
    r"\b(?:instead of|rather than|in place of|over|and not|not|never|no more|no|nor|ahead of|replaces?)\s+"
    r"(?:(?:the|an?|any|another|more|new|plain|raw|good old|old)\s+){0,2}[`\"']?$"
)
_PREFERRED = compiled(r"^[`\"']?\s*,?\s*(?:instead of|rather than|in place of|over(?! the)|not|never)\s+")


def verdict(words: str, start: int, end: int) -> str:
    """Return what words decide about the thing named from ``start`` to ``end``: ``no``, ``yes`` or nothing.

    >>> words = "don't use lodash, take ramda"
    >>> verdict(words, 10, 16), verdict(words, 23, 28)
    ('no', 'yes')
    """
    before, after = words[:start], words[end:]
    if _BEFORE.search(before):
        return "no"
    if _PREFERRED.match(after):
        return "yes"
    if _AFTER_THING.match(after):
        return "no"
    state, fresh = "", False
    for cue in _CUE.finditer(before):
        if cue["stop"]:
            fresh = False
        elif cue["no"]:
            state, fresh = "no", True
        elif not (state == "no" and fresh):
            state = "yes"
    return state


_TOLD = compiled(
    r"\b(?:was|were|had|did|took|broke|lost|got|went|came|made|found|gave|ran|cost|burn(?:ed|t)|shipped|spent"
    r"|forgot|\w{3,}ed)\b"
)
_ORDERED = compiled(
    rf"\b(?:{NEGATION}|must|should|shall|always|needs?|ha(?:s|ve) to|please|only|use|keep|run|leave"
    rf"|every|each)\b"
)


def is_story(words: str) -> bool:
    """Return whether a clause only tells what happened.

    >>> is_story("somebody bumped a replica count"), is_story("every file needs one")
    (True, False)
    """
    return bool(_TOLD.search(words)) and not _ORDERED.search(words)


GENERIC = STOP_WORDS | vocabulary(
    """
    folder folders directory directories dir tree subtree stuff thing things content contents whole rest
    entire
    area part parts document documents page pages chapter chapters copy copies line lines byte bytes single
    existing old older already new another else else's inside below beneath within around near nearby outside
    manually hand hands yourself myself directly ever again anymore any please circumstance circumstances
    be been
    gets get got being may might allow allowed permission single-handedly text texts data note notes record
    records even either both neither agent ai you're i'm under no nothing none nobody anyone everything place
    places somewhere anywhere nowhere elsewhere work change changes edit edits write writes there here go
    going
    go's let's touch stay stays keep keeps read reading fine free welcome happy unless root level top hey
    ok project repo repository codebase workspace my our something
    """
)
"""Words that name no thing of their own beside a marked one."""


def is_generic(words: Iterable[str]) -> bool:
    """Return whether words name nothing but files in general."""
    return all(word in GENERIC or word == MARK or word.isdigit() for word in map(str.lower, words))


def stems(words: str) -> frozenset[str]:
    """Return the stems of words, to compare verbs in any form."""
    return frozenset(map(stem, words.split()))


def tokens(words: str) -> list[str]:
    """Return words and marks in order, without punctuation other than commas and colons."""
    return re.findall(rf"{MARK}|[^\W_][\w'’-]*|[,:()]", words)
