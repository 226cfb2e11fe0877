"""Estimate without a model whether a buffer suffices for a question, by words and by meaning.

A wider search pays off only if both tiers of uncertainty are high. If one memory is close in meaning, it
finds little that the first search did not. The same holds if several memories contain all that the question
names.
"""

from collections.abc import Sequence

import msgspec

from agentx.storage.index.port import Vector
from agentx.synthesis.cognition.informative_sentences import Rarity, terms_of
from agentx.synthesis.language.words import words_of

WORDS_THRESHOLD = 0.05
"""From this share of question words that the buffer lacks, the first tier is high.

It is low on purpose, as a question with several answers finds its words in one of them. From 0.2 on, a tenth
of what a wider search gains on such questions is lost. Measured."""

MEANING_THRESHOLD = 0.45
"""From this distance (1 - cosine) to the nearest memory, the second tier is high.

Measured with MiniLM, on questions without names of people. Nearer, a wider search gained next to nothing;
farther, 3 to 6 points of recall."""

SUPPORTING = 3
"""Number of memories that must contain what is asked, as an answer is seldom in one."""


class BufferUncertainty(msgspec.Struct, frozen=True):
    """Both tiers, each from 0 (certain) to 1.

    Attributes:
        words: Share of the question's content words, weighted by rarity, that the best :data:`SUPPORTING`
            memories lack.
        meaning: 1 - cosine of the question with the nearest memory; 1 without vectors.
    """

    words: float = 1.0
    meaning: float = 1.0

    @property
    def scaled(self) -> tuple[float, float]:
        """Both tiers on the scale of ``uncertainty_threshold``: 0.5 is the measured boundary of each."""
        return _scaled(self.words, WORDS_THRESHOLD), _scaled(self.meaning, MEANING_THRESHOLD)


def _scaled(value: float, boundary: float) -> float:
    if value < boundary:
        return 0.5 * value / boundary
    return 0.5 + 0.5 * (value - boundary) / (1 - boundary)


def missing(asked: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return what no text of a buffer has of a question, as one text to search for.

    >>> missing("What is the cat called?", ["The cat is here."])
    ('called',)
    """
    held = frozenset[str]().union(*map(terms_of, texts))
    words = [word for word in words_of(asked) if (own := terms_of(word)) and not own & held]
    return (" ".join(words),) if words else ()


def assess(
    asked: str, texts: Sequence[str], vector: Vector | None = None, vectors: Sequence[Vector] = ()
) -> BufferUncertainty:
    """Return how uncertain it is that a buffer answers a question.

    The question is given without names of people, the vectors of it and of the buffer's texts in unit length.

    >>> assess("What is the cat called?", [])
    BufferUncertainty(words=1.0, meaning=1.0)
    >>> assess("What is the cat called?", ["My cat is called Tom."] * 3).words
    0.0
    """
    meaning = 1.0
    if vector is not None and len(vectors):
        import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

        meaning = 1.0 - float(np.max(np.asarray(vectors) @ vector))
    return BufferUncertainty(_missing(asked, texts), min(max(meaning, 0.0), 1.0))


def _missing(asked: str, texts: Sequence[str]) -> float:
    wanted, rarity = terms_of(asked), Rarity(texts)
    total = rarity.of(wanted)
    if not texts or not wanted:
        return 1.0
    held = sorted((rarity.of(wanted & terms_of(text)) / total for text in texts), reverse=True)[:SUPPORTING]
    return 1.0 - sum(held) / SUPPORTING
