"""Ground a memory that a model reports: which words of the message it rests on, and its trust."""

import re

import msgspec

from agentx.storage.events.cognition_events import Extracted
from agentx.storage.text import folded
from agentx.synthesis.attribution.material import straighten
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.judgement.quotes import MAX_QUOTE, OwnWords
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.memory.items import TRUST_ORDER, Trust

_AROUND = " \n\t.,;:!?…\"'“”‘’"
"""Marks that may surround a quote; they are not part of the words looked up in the message."""


def located(said: str, quote: str) -> Span | None:
    """Find quoted words in a message; return ``None`` if they do not occur.

    The user's own words come first, then quoted or attached material. White space, case, the shape of
    quotation marks and the final punctuation mark may differ.

    >>> located("Hi. Anna moved to  Oslo!", "Anna moved to Oslo."), located("Hi. Anna moved to  Oslo!", "Ann")
    (Span(start=4, end=23), None)
    """
    words = quote.strip(_AROUND)
    if (own := OwnWords(said).find(words)) or len(words) > MAX_QUOTE or not any(map(str.isalnum, words)):
        return own
    pattern = r"\s+".join(map(re.escape, straighten(words).split()))
    found = re.search(rf"(?<!\w){pattern}(?!\w)", straighten(said), re.IGNORECASE)
    return Span(found.start(), found.end()) if found else None


def trust_of(said: str, one: Extracted, sender: Trust) -> Trust:
    """Return the trust of a memory that a model reports: at most that of the sender of the message.

    The trust is the sender's if the memory repeats their own words, ``reported`` if it rephrases them, and
    ``material`` if it rests on words that the message only quotes or carries, or on none of it.

    >>> trust_of("Anna moved to Oslo.", Extracted("L2", "Anna moved to Oslo", 0, 18), "user")
    'user'
    """
    words = said[one.start : one.end]
    repeats = _plain(words) == _plain(one.text)
    mine: Trust = "material" if not OwnWords(said).find(words) else sender if repeats else "reported"
    return max(mine, sender, key=TRUST_ORDER.index)


def grounded(read: Recognition, said: str, model: str) -> Recognition:
    """Add to each recognised memory the words that it rests on and its maximum trust.

    Without a model, the message was read by code, which takes only the sender's own words.
    """
    memories = tuple(
        msgspec.structs.replace(
            one,
            quote="" if said[one.start : one.end] == one.text else said[one.start : one.end][:MAX_QUOTE],
            trust=trust_of(said, one, "user") if model and one.end else one.trust,
        )
        for one in read.memories
    )
    return msgspec.structs.replace(read, memories=memories)


def _plain(text: str) -> str:
    return folded(straighten(text)).strip(_AROUND)
