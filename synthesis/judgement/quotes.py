"""Finds a model's quotes in the user's own words of a message, and nowhere else."""

import re

from agentx.synthesis.attribution.material import own_words, straighten
from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.language.sentences import Span, clauses, sentences

MAX_QUOTE = 400
"""Maximum length of a quote in characters."""


class OwnWords:
    """The user's own words of a message, in which quotes are searched."""

    def __init__(self, text: str) -> None:
        self.plain = own_words(text)
        self.original = straighten(text)[: len(self.plain)]

    def find(self, quote: str) -> Span | None:
        """Return the position of a quote in the user's own words, or ``None``.

        White space may differ. A quote may contain words of inline code, but not consist of them only.
        """
        words = straighten(quote).split()
        if not words or len(quote) > MAX_QUOTE:
            return None
        pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)"
        for match in re.finditer(pattern, self.original):
            own = self.plain[match.start() : match.end()]
            is_own = all(letter in (shown, NAME) for letter, shown in zip(own, match[0], strict=True))
            if is_own and re.search(r"\w\w", own.replace(NAME, " ")):
                return Span(match.start(), match.end())
        return None

    def whole(self, span: Span) -> Span | None:
        """Return the clauses that contain a span, or ``None`` if they are too long to quote.

        Whole clauses are quoted so that no "never" is cut off.
        """
        parts = [
            clause
            for sentence in sentences(self.plain)
            if sentence.start < span.end and span.start < sentence.end
            for clause in clauses(self.plain, sentence)
            if clause.start < span.end and span.start < clause.end
        ]
        if not parts:
            return None
        start = parts[0].start
        start = min(span.start, start + lead_length(self.plain[start : parts[0].end]))
        whole = Span(start, max(span.end, parts[-1].end))
        return whole if whole.end - whole.start <= MAX_QUOTE else None

    def words(self, span: Span) -> str:
        """Return the words of a span, separated by single spaces."""
        return " ".join(self.original[span.start : span.end].split())
