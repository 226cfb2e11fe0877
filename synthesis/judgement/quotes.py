"""Finding what a model quotes in what the user said, in the user's own words and nowhere else."""

import re

from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.demands.reading.material import own_words, straighten
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.language.sentences import Span, clauses, sentences

MAX_QUOTE = 400
"""Characters of the longest quote."""


class Message:
    """A message of the user in which quotes are looked for.

    Args:
        text: The whole of it, quotes and pasted material included.
    """

    def __init__(self, text: str) -> None:
        self.plain = own_words(text)
        self.original = straighten(text)[: len(self.plain)]

    def find(self, quote: str) -> Span | None:
        """Where a quote stands in the user's own words; ``None`` where it does not.

        White space may differ. Words of inline code may be part of it, but not all of it.
        """
        words = straighten(quote).split()
        if not words or len(quote) > MAX_QUOTE:
            return None
        pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)"
        for match in re.finditer(pattern, self.original):
            if self._is_own(match.start(), match.end()):
                return Span(match.start(), match.end())
        return None

    def _is_own(self, start: int, end: int) -> bool:
        pairs = zip(self.plain[start:end], self.original[start:end], strict=True)
        if not all(own in (said, NAME) for own, said in pairs):
            return False
        return re.search(r"\w\w", self.plain[start:end].replace(NAME, " ")) is not None

    def whole(self, span: Span) -> Span | None:
        """The clauses that a span stands in, so that no "never" is cut off; ``None`` where they are too long to quote."""
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
        """The words of a span, with single spaces."""
        return " ".join(self.original[span.start : span.end].split())
