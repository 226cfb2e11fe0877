"""Reads the answer to a question or a proposal of an agent.

An answer is kept whole: a yes or a no with its conditions and its reason, a choice, a value. Beside the
question, "20 is what the DBA gives us" needs no further mark to be a decision or a fact.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agentx.storage.text import one_line
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span, sentences
from agentx.synthesis.language.words import content_words
from agentx.synthesis.scribe.claims import claim_of
from agentx.synthesis.scribe.orders import asks, is_order
from agentx.synthesis.state.answered import names_option, proposes

MAX_ANSWER = 400
"""Maximum number of characters of an answer that are kept together."""

_LONG = 700
"""A longer message is not an answer as a whole: only its first paragraph can be one."""

_FRAGMENT = 14
"""Words of a statement that answers a question even if it shares no word with it."""

_ECHO = 6
"""Maximum number of words of a question that only repeats the agent's ("signature?")."""

_LEAD = (
    r"(?:(?:oh|ah|hm+|well|so|ok(?:ay)?|right|good (?:question|point)|thanks?|thank you|great|nice"
    r"|i think(?: so)?)\b[\s,.!…-]*)*"
)
YES = on_use(
    rf"{_LEAD}(?:(?:yes|yep|yeah|yup|ya|sure|of course|fine|sounds (?:good|great|right|fine)|perfect"
    rf"|agreed|go ahead"
    r"|go for it|(?:please |yes,? )?do (?:it|that|so)|works for me|lgtm|looks good|approved?|make it so"
    r"|ship it|that works|absolutely|exactly|correct|definitely|why not|let'?s do (?:it|that|this)"
    r"|(?:great|good) idea|i agree|i think so|happy with that|acceptable)\b(?! (?:but )?(?:can|could|what"
    r"|why|how)\b)|(?:ok(?:ay)?|please(?: do)?|pls)\b(?=\W*$|[.!] |,? but\b))",
    re.IGNORECASE,
)
"""The beginning of an agreement."""

NO = on_use(
    rf"{_LEAD}(?:no|nope|nah|never ?mind|not (?:now|yet|really|needed|necessary|this|today|at all)|(?:i"
    rf"|we)(?:'d| would) rather (?:not|"
    r"keep|stay|have)|rather not|please don'?t|(?:let'?s )?not\b|don'?t\b|neither|none of|leave (?:it|that"
    r"|them)|skip|too (?!bad\b)\w+|later\b|absolutely not|certainly not|god no|hell no)\b",
    re.IGNORECASE,
)
"""The beginning of a refusal."""

_MERE = on_use(
    r"\b(?:yes|yep|yeah|yup|ya|sure|of course|ok(?:ay)?|fine|sounds|good|great|right|perfect|agreed?|go"
    r"|ahead|for|it|do|that|this|so|please|pls|works|me|with|lgtm|looks|approved?|make|ship|absolutely"
    r"|exactly|correct|definitely|why not|let'?s|idea|i|think|thanks?|thank|you|nice|cool|to|a|the|then"
    r"|both|by|all|means|happy|acceptable|is|hm+|oh|ah|well|now|just)\b",
    re.IGNORECASE,
)
"""Words that add nothing to an agreement."""

_CHOICE = on_use(
    r"\b(?:shall|should|or|which|prefer|want me|would you like|rather|instead|suggest|propose|recommend"
    r"|could|would|may|(?:i|we)'(?:d|ll)|do you want|option|your call|up to you|go for|go with|keep)\b",
    re.IGNORECASE,
)
"""Words of a question whose answer settles something."""

_CHOOSES = on_use(
    r"\b(?:let'?s|go with|use|take|stay|stick|keep|leave|i'?d|we'?ll|i'?ll|rather)\b", re.IGNORECASE
)
"""Words of an answer that settles something, whatever the question."""

_CLOSES = on_use(
    r"\b(?:anything else|me to (?:help|assist|explain|show|guide|walk)|is there (?:a|an|any)(?:thing"
    r"| specific| particular| other)|questions\?|ready (?:to|for|when)|what(?:'s| is) next|what (?:would"
    r"|do) you (?:think|want|like|need)|how does (?:that|this)|does (?:that|this) (?:help|make sense|sound"
    r"|look|approach)|how can i|let me know|specific (?:issue|question)|clarif\w+)\b",
    re.IGNORECASE,
)
"""A closing phrase, which is a question only in form."""

_OFFERS = on_use(r"\b(?:shall i|should i|want me to|like me to|can i|may i|could i)\b", re.IGNORECASE)
_ALTERNATIVES = on_use(r"\b(?:or|which|how|what|where)\b", re.IGNORECASE)
_ALL = on_use(r"(?:both|either|all|whichever)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*\(?1[.):]\s")
_CONTINUES = on_use(
    r"\b(?:proceed|continue|go on|carry on|go ahead|move on|start|begin|next step)\b", re.IGNORECASE
)
_AGREED = on_use(
    r"(?:\b(?:shall|should|may|can|could) (?:i|we)|\b(?:want|like) me to|\b(?:i|we)(?:'d| would| could"
    r"| can| might|'ll| will)|\b(?:suggest|recommend|propose)(?: that we| to|:)?)(?: (?:also|then|just"
    r"|like to|prefer to|now|go ahead and))* (?P<do>[^?]+?)[?.!]*$",
    re.IGNORECASE,
)
_THANKS = on_use(
    r"(?:thanks?|thank you|thx|ty|cheers|great|nice|perfect|cool|awesome|wow)\b\W*$", re.IGNORECASE
)
_POINTS = on_use(
    r"\b(?:it|that|this|these|those|them|they|one|ones|so|he|she|her|him|there)\b", re.IGNORECASE
)
_FEW = 2


class GivenAnswer(NamedTuple):
    """An answer: the sentences of the message that it takes, and what it is.

    Attributes:
        first: Index of its first sentence.
        last: Index of its last sentence.
        sort: ``decision`` if the question asks for a choice or a permission, otherwise ``knowledge``.
        sure: Whether the agent asked, or the user clearly agreed or refused.
        mere: Whether it says no more than yes.
    """

    first: int
    last: int
    sort: Literal["decision", "knowledge"]
    sure: bool
    mere: bool = False


def read_answer(plain: str, parts: Sequence[Span], question: str) -> GivenAnswer | None:
    """Return what of a message answers a question or a proposal; ``None`` for nothing.

    Args:
        plain: The user's own words, with other material masked.
        parts: Its sentences.
        question: What the agent asked or proposed last.
    """
    if not parts:
        return None
    words = [plain[one.start : one.end] for one in parts]
    first = 1 if len(parts) > 1 and _repeats(words[0]) else 0
    begins = words[first]
    agrees, refuses = bool(YES.match(begins)), bool(NO.match(begins))
    if asks(begins) or _THANKS.match(begins):
        return None
    if not proposes(question):
        return _picked(parts, first, begins, question)
    numbered = bool(_NUMBERED.match(plain)) and len(plain) <= _LONG
    if not (agrees or refuses or numbered or _fits(plain, begins, question)):
        return None
    last = first
    while last + 1 < len(parts) and _belongs(plain, parts, first, last + 1, numbered=numbered):
        last += 1
    whole = plain[parts[first].start : parts[last].end]
    mere = agrees and first == last and not re.search(r"\w", _MERE.sub("", whole))
    if mere and _CONTINUES.search(_last(question)):
        return None
    short = len(begins.split()) <= _FRAGMENT or bool(content_words(begins) & content_words(question))
    sure = agrees or refuses or (short and question.rstrip().endswith("?"))
    chooses = _CHOICE.search(question) or _CHOOSES.search(begins)
    sort: Literal["decision", "knowledge"] = "decision" if chooses else "knowledge"
    return GivenAnswer(first, last, sort, sure, mere)


def _picked(parts: Sequence[Span], first: int, begins: str, question: str) -> GivenAnswer | None:
    """Return a choice among what the agent listed or named without asking."""
    if not question or len(begins.split()) > _FRAGMENT or claim_of(begins):
        return None
    last = min(first + 1, len(parts) - 1)
    if names_option(begins) and len(begins.split()) <= _ECHO:
        return GivenAnswer(first, last, "decision", sure=True)
    if is_order(begins) or not re.search(r"\bor\b", question):
        return None
    shared = content_words(begins) & content_words(question)
    return GivenAnswer(first, last, "decision", sure=False) if len(shared) >= _FEW else None


def _repeats(words: str) -> bool:
    """Return whether a question only repeats words of the agent's, before it is answered."""
    return words.endswith("?") and len(words.split()) <= _ECHO and not asks(words.rstrip("?"))


def _fits(plain: str, begins: str, question: str) -> bool:
    """Return whether a statement or a fragment answers a question."""
    last = _last(question)
    if len(plain) > _LONG or _CLOSES.search(last):
        return False
    if not last.endswith("?"):
        return False
    open_question = bool(_ALTERNATIVES.search(last))
    if is_order(begins):
        short = len(begins.split()) <= _FRAGMENT
        return open_question and (short or bool(_CHOICE.search(question)))
    if _OFFERS.search(last):
        shared = content_words(begins) & content_words(last)
        named = shared or names_option(begins) or _ALL.match(begins)
        return bool(named) if open_question else claim_of(begins) is not None
    return True


def _belongs(plain: str, parts: Sequence[Span], first: int, number: int, *, numbered: bool) -> bool:
    """Return whether a sentence continues an answer."""
    one, before = parts[number], parts[number - 1]
    words = plain[one.start : one.end]
    if one.end - parts[first].start > MAX_ANSWER or asks(words):
        return False
    if numbered:
        return True
    apart = plain.count("\n", before.end, one.start) > 1
    return not apart and (not is_order(words) or bool(NO.match(words)))


def _last(question: str) -> str:
    parts = list(sentences(question))
    return question[parts[-1].start : parts[-1].end].rstrip("\"')*_ ") if parts else ""


def agreed(question: str) -> str:
    """Return what a mere yes agrees to, as a sentence; empty if the question does not say it by itself.

    >>> agreed("I'd log rejected rows to stdout as JSON. Shall I?")
    'Log rejected rows to stdout as JSON.'
    >>> agreed("I looked at it. Should I move the cache to disk?")
    'Move the cache to disk.'
    """
    for one in reversed(list(sentences(question))):
        match = _AGREED.search(question[one.start : one.end])
        done = one_line(match["do"]) if match else ""
        if done and not _POINTS.search(done) and len(content_words(done)) >= _FEW:
            return done[:1].upper() + done[1:] + "."
    return ""


def with_question(words: str, question: str, limit: int) -> str:
    """Return an answer together with its question, so that it can be understood alone.

    >>> with_question("9000", "Which port?", 100)
    '9000 (asked: “Which port?”)'
    """
    asked = one_line(question)
    room = limit - len(words) - len(" (asked: “”)")
    if len(asked) > room:
        parts = [asked[one.start :] for one in sentences(asked)]
        asked = next((part for part in parts if len(part) <= room), "")
    return f"{words} (asked: “{asked}”)" if asked else words
