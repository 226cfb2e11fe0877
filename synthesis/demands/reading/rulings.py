"""Reads which things a text rules out, by the wordings of :mod:`agentx.synthesis.demands.tables.rulings`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.demands.tables.rulings import BAN_IT, RULINGS, Ruling
from agentx.synthesis.demands.tables.vocabulary import PROJECT, compiled
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.words import content_words, vocabulary

MAX_WORDS = 4
"""Maximum number of words of a thing; a longer phrase describes work, and names nothing."""

_MAX_CHARACTERS = 1_200
_MOST_CLAUSES = 8
_TAG = compiled(
    r"[,;]?\s*(?:ok(?:ay)?|right|alright|got it|understood|clear|please|thanks|full stop|period)\s*[?.!]*$"
)
_LEAD = compiled(
    r"^(?:(?:in|on|for"
    r"|at) (?:this|the|our|my"
    r"|all|any)(?: [\w-]+){1,3}?(?=\s+(?:there(?:'s| is| are| will| must| shall)|nobody|no one|we (?:do"
    r"|never|won't))\b)|(?:as of|from|starting|since|after|until)\b[^,]{1,30}?(?:now on|today|tomorrow|now"
    r"|on|week|month"
    r"|forward)|(?:for|in|on|within|inside) (?:this|the|our|my|all|any)\b[^,]{2,50},|for the record|per \w+"
    r"|by (?:decree|order|decision) of [^,]{2,30}|(?:just )?to be (?:very )?clear|honestly|once and for all"
    r"|for good|decided|decision|policy|final|(?:you|we|they) (?:all )?know(?: that)?|remember(?: that)?"
    r"|(?:as )?i(?:'ve| have)? (?:already )?(?:said|told you)(?: that)?|it's (?:settled|decided|final)(?:"
    r" that)?"
    r"|(?:i thought )?we(?:'ve| have|'d| had)? (?:agreed|settled|said)(?: on)?(?: that)?|let me be clear"
    r"|please note(?: that)?|(?:my|the|our|house|one) rule(?: is)?(?: that)?|(?:and )?still)"
    r"[,:]?\s+"
)
_CLAUSE_END = compiled(
    r"\s*[;!]+\s*|\s+[–—-]{1,2}\s+|,\s+|:\s+(?!or\b|and\b)|\.\s+"
    r"|(?<!thing)\s+(?=(?:because|since|but|and (?:i|we|it|they|that|nobody|no one)"
    r"|so|unless|until|if|when|as (?:they|it|we))\b)"
)
_IDEA_OF = (
    r"(?:(?:the|this|that|your|whole|entire) (?:whole |entire )?)?(?:idea|plan|thing|thought|business|stuff)"
)
_AROUND = compiled(
    rf"^(?:(?:{_IDEA_OF} (?:with|of|about|to)|\w+ing (?:to|with|via|through|from|on)(?= [A-Z])|a|an|any"
    rf"|all|more|another|such|using|use|to use|anything|like"
    r"|stuff|single|ever|(?:kinds?|sorts?) of|about|to|and|or|for)\s+)+"
)
_DEFINITE = compiled(r"^(?:the|this|that|these|those|my|our|your|its|his|her|their)\s+(?P<rest>.*)")
_REST = compiled(
    r"\s+(?:for|after|before|in|on|from|at|to|as|into|inside|within|under|here|again|any ?more"
    r"|any ?where|any longer"
    r"|at all|ever|please|now|today|either|because|since|so|unless|until|this|that|these|there|period|around"
    r"|of (?:any|this|our|the)|with (?:the|our|my|your)"
    r"|thing|stuff|idea|plan|experiment|approach|directly|once|by|back)\b.*$"
)
_NARROWED = compiled(r" (?:that|which|who|whose|where) (?!we\b|i\b|you\b)\w| on an? \w")
_IDEA = compiled(r" (?:ideas?|plans?|experiments?|approach|business|stuff|craze|nonsense|madness)\b")
_ADDED = compiled(
    r"^(?:and )?(?:(?:that|this|which) (?:also )?(?:includes|covers|goes for|means)|(?:the )?same (?:goes |is"
    r" true |holds )?(?:for|with)) (?P<idea>[^,;:!?\n]{2,40})$"
)
_NO_NOUN = compiled(r"(?:to|by|in|into|on|onto|from|at|with|within|inside|out|over|off|up|down|about)\b")
_POINTS = vocabulary(
    """
    it that this them these those you he she we i they one there what which everything nothing anything
    something who us me today tomorrow all more much many here rest same not nobody none anybody anyone
    someone somebody no
    """
)
_SHORT_NO = compiled(
    r"^\s*(?:(?:god |hell |heavens |lord |oh |certainly )?no|nope|never|nah|not again|never again"
    r"|no thanks?(?: you)?|absolutely not|hell no|no way|not"
    r" here"
    r"|hard pass|[^?!.]{0,40}\bnever again|firm no|[^?!]{0,60}\b(?:the answer is|it's a|that's a"
    r"|that is a) (?:hard |firm )?(?:no|pass)"
    r"|once was enough|not with (?:me|us)|over my dead body|not in (?:this|my|our) \w+)(?:\s*[.!…]+(?!\w)"
    r"|\s*$"
    r"|\s*[,;:–—-])"
)
_BANS_IT = compiled(rf"^(?:so |and |please |but |then |just |therefore |again )*(?:we |i |you )?{BAN_IT}")
_SEVERAL = compiled(r"\s*(?:[/,]|\bor\b|\band\b|\bnor\b|&)\s*")
_LASTS = compiled(
    rf"\b(?:(?:for|to) (?:us|me)\b|for good|ever(?! since)|any ?more|any longer|from (?:now|today|here) on"
    r"|as of|full stop|period|final|once and for all|never again|not again|end of story|case closed|going"
    r" forward|in future|or later"
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


@lru_cache(maxsize=1_024)
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
    forms = [_LEAD.sub("", words), _LEAD.sub("", words[lead_length(words) :])]
    pieces = _CLAUSE_END.split(forms[-1])[:_MOST_CLAUSES]
    found: list[RuledOut] = []
    clauses = [*((one, False) for one in (*forms, *pieces)), *((one, True) for one in forms)]
    for clause, refers in clauses:
        if found and refers:
            break
        row, things = _read(clause[lead_length(clause) :] or clause, refers=refers)
        if row and things:
            found.append(RuledOut(things, row.name, row.says_so, bool(_LASTS.search(sentence))))
            if clause in forms:
                break
    if not found:
        return None
    every = dict.fromkeys(thing for one in found for thing in one.things)
    return found[0]._replace(things=tuple(every), says_so=any(one.says_so for one in found))


@lru_cache(maxsize=1_024)
def _read(clause: str, *, refers: bool) -> tuple[Ruling | None, tuple[str, ...]]:
    for row in RULINGS:
        for pattern in row.patterns if row.refers == refers else ():
            if (match := pattern.search(clause)) and (things := tuple(_things(match["idea"]))):
                return row, things
    return None, ()


def _things(said: str) -> Iterator[str]:
    if _NO_NOUN.match(said) or _NARROWED.search(said):
        return  # "a migration that is in production" is not every migration
    around = _AROUND.match(said)
    for part in _SEVERAL.split(said[around.end() if around else 0 :]):
        thing = _AROUND.sub("", part.strip())
        definite = _DEFINITE.match(thing)
        thing = _REST.sub("", definite["rest"] if definite else thing).strip(" .\"'`“”‘’()*")
        at_hand = definite and not around and thing.islower() and not _IDEA.search(definite["rest"])
        few = len(thing.split()) <= MAX_WORDS
        names = (
            content_words(thing.replace(NAME, "x")) and re.split(r"[ '’]", thing.casefold())[0] not in _POINTS
        )
        if few and names and not at_hand:
            yield thing


@lru_cache(maxsize=4_096)
def things_ruled_out(text: str) -> tuple[str, ...]:
    """Return everything that the sentences of a text rule out.

    >>> things_ruled_out("I've decided against MongoDB for good. Don't suggest it again either.")
    ('MongoDB',)
    """
    plain = spelt_out(text[:_MAX_CHARACTERS]).text
    said = [plain[one.start : one.end] for one in sentences(plain)]
    found = (ruled_out_after(before, one) or ruled_out_in(one) for before, one in pairwise(("", *said)))
    return tuple(dict.fromkeys(thing for one in found if one for thing in one.things))


def ruled_out_after(before: str, sentence: str) -> RuledOut | None:
    """Return what a short "no" rules out: the thing of the question or the attempt before it.

    >>> ruled_out_after("Heroku?", "Never again.").things
    ('Heroku',)
    """
    if (more := _ADDED.match(sentence.strip(" .!"))) and (found := ruled_out_in(before)):
        return found._replace(things=(*_things(more["idea"]), *found.things))
    asked = before.endswith("?") and len(before.split()) <= MAX_WORDS + 2
    if asked and _SHORT_NO.match(sentence):
        found = ruled_out_in(f"{before.rstrip(' ?')}: no")
        return found and found._replace(lasts=bool(_LASTS.search(sentence)))
    if before and not before.endswith("?") and _BANS_IT.match(sentence):
        return ruled_out_in(f"{before.rstrip(' .!')}, {sentence}")
    return None
