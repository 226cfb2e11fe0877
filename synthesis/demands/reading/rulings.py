"""Reads which things a text rules out, by the wordings of :mod:`agentx.synthesis.demands.tables.rulings`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.demands.tables.rulings import RULINGS
from agentx.synthesis.demands.tables.vocabulary import PROJECT, compiled
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.words import content_words, vocabulary

MAX_WORDS = 4
"""Maximum number of words of a thing; a longer phrase describes work, and names nothing."""

_MAX_CHARACTERS = 1_200
_TAG = compiled(
    r"[,;]?\s*(?:ok(?:ay)?|right|alright|got it|understood|clear|please|thanks|full stop|period)\s*[?.!]*$"
)
_LEAD = compiled(
    r"^(?:(?:as of|from|starting|since|after|until)\b[^,]{1,30}?(?:now on|today|tomorrow|now|on|week|month"
    r"|forward)|(?:for|in|on|within|inside) (?:this|the|our|my|all|any)\b[^,]{2,50},|for the record|per \w+"
    r"|by (?:decree|order|decision) of [^,]{2,30}|(?:just )?to be (?:very )?clear|honestly|once and for all)"
    r",?\s+"
)
_CLAUSE_END = compiled(
    r"\s*[;!]+\s*|\s+[–—-]{1,2}\s+|,\s+|:\s+|\.\s+"
    r"|\s+(?=(?:because|since|but|so|unless|until|if|when|as (?:they|it|we))\b)"
)
_LABELLED = compiled(
    r"^[^,;:!?]{2,40}(?:,|\s*[:–—?]|\s+-+)\s*(?:no|nope|never|nah|hell|absolutely|over my)\b"
)
_IDEA_OF = (
    r"(?:the|this|that|your|whole|entire) (?:whole |entire )?(?:idea|plan|thing|thought|business|stuff)"
)
_AROUND = compiled(
    rf"^(?:(?:{_IDEA_OF} (?:with|of|about|to)|a|an|any|all|more|another|such|using|use|to use|anything|like"
    r"|stuff|single|ever|(?:kinds?|sorts?) of|about|to|and|or|for)\s+)+"
)
_DEFINITE = compiled(r"^(?:the|this|that|these|those|my|our|your|its|his|her|their)\s+(?P<rest>.*)")
_REST = compiled(
    r"\s+(?:for|in|on|from|at|to|as|with|into|inside|within|under|here|again|any ?more|any ?where|any longer"
    r"|at all|ever|please|now|today|either|because|since|so|unless|until|this|that|these|there|period|around"
    r"|of (?:any|this|our|the)|thing|stuff|idea|directly|once|by)\b.*$"
)
_POINTS = vocabulary(
    """
    it that this them these those you he she we i they one there what which everything nothing anything
    something who us me today tomorrow all more much many here rest same not
    """
)
_SEVERAL = compiled(r"\s*(?:/|\bor\b|\band\b|\bnor\b|&)\s*")
_LASTS = compiled(
    rf"\b(?:(?:for|to) (?:us|me)\b|for good|ever(?! since)|any ?more|any longer|from (?:now|today|here) on"
    r"|as of|full stop|period|final|once and for all|never again|going forward|in future|or later"
    rf"|(?:in|for|on|to|from|of|into) (?:this|our|the) (?:[\w-]+ ){{0,3}}?(?:{PROJECT}|frontend|backend|code"
    r"|repo|stack|pipeline|website|suite|newsletter|theme|firmware|shop|library|service|team|company|kitchen"
    r"|office|class(?:room)?|school|house|studio|practice|shop|garden|club)s?|in here|around here"
    r"|dead(?: and buried)?|banned|forbidden|buried|verboten|taboo|outlawed|no place|stays? out|keep out)\b"
)
"""Words that extend a ruling beyond the work at hand."""


class RuledOut(NamedTuple):
    """What a sentence rules out.

    Attributes:
        things: The things, in the user's words.
        wording: Name of the wording.
        says_so: Whether the wording alone makes a candidate.
        lasts: Whether the sentence says that it goes beyond the work at hand.
    """

    things: tuple[str, ...]
    wording: str
    says_so: bool
    lasts: bool


def ruled_out_in(sentence: str) -> RuledOut | None:
    """Return what a sentence rules out; ``None`` if nothing that it names.

    >>> ruled_out_in("Redis for sessions is off the table, ops won't run another thing.").things
    ('Redis',)
    >>> ruled_out_in("please, no GraphQL or SOAP in this backend from now on").things
    ('GraphQL', 'SOAP')
    >>> ruled_out_in("it is out of date")
    """
    words = _TAG.sub("", sentence[:_MAX_CHARACTERS].strip()).strip()
    if words.endswith("?"):
        return None
    words = words.rstrip(" .!")
    own = words[lead_length(words) :]
    for form in dict.fromkeys(_LEAD.sub("", form) for form in (words, own)):
        for row in RULINGS:
            for clause in _clauses(form):
                match = row.pattern.search(clause)
                things = tuple(_things(match)) if match else ()
                if things:
                    return RuledOut(things, row.name, row.says_so, bool(_LASTS.search(sentence)))
    return None


def _clauses(form: str) -> tuple[str, ...]:
    """Return a sentence and its first clause; "X, no" has only one."""
    return (form,) if _LABELLED.match(form) else (form, _CLAUSE_END.split(form, maxsplit=1)[0])


def _things(match: re.Match[str]) -> Iterator[str]:
    said = next((text for key, text in match.groupdict().items() if key.startswith("idea") and text), "")
    around = _AROUND.match(said)
    for part in _SEVERAL.split(said[around.end() if around else 0 :]):
        thing = _AROUND.sub("", part.strip())
        definite = _DEFINITE.match(thing)
        thing = _REST.sub("", definite["rest"] if definite else thing).strip(" .\"'`“”‘’()*")
        at_hand = definite and not around and thing.islower()
        few = len(thing.split()) <= MAX_WORDS
        names = content_words(thing.replace(NAME, "x")) and thing.casefold().split(" ")[0] not in _POINTS
        if few and names and not at_hand:
            yield thing


@lru_cache(maxsize=4_096)
def things_ruled_out(text: str) -> tuple[str, ...]:
    """Return everything that the sentences of a text rule out.

    >>> things_ruled_out("I've decided against MongoDB for good. Don't suggest it again either.")
    ('MongoDB',)
    """
    plain = spelt_out(text[:_MAX_CHARACTERS]).text
    found = (ruled_out_in(plain[one.start : one.end]) for one in sentences(plain))
    return tuple(dict.fromkeys(thing for one in found if one for thing in one.things))
