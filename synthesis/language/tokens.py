"""Counts and cuts text in model tokens, offline: a budget is only kept if it is measured.

The tokenizer is OpenAI's ``cl100k_base``, whose vocabulary ships as a file inside litellm. The file is found
and read without importing litellm and without network access, and is checked against the official SHA-256.
Counts of other vendors differ a little; litellm itself estimates Claude, Gemini and Llama with the same
encoding.
"""

import hashlib
import importlib.util
import re
import threading
from binascii import a2b_base64
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.storage.text import encodable

if TYPE_CHECKING:
    from tiktoken import Encoding

VOCABULARY_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""The file's name in a tiktoken cache: SHA-1 of its download address."""

VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""SHA-256 of the official file, as in ``tiktoken_ext.openai_public.cl100k_base``."""

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
"""How the encoding splits text into words before it merges bytes; from the same source."""

WINDOW = 16_384
"""Number of characters encoded at a time; limits the cost of text without any word boundary."""

_REMEMBERED_CHARS = 2_000
"""Maximum length in characters of a piece of text whose count is cached."""

BYTES_PER_TOKEN = 3
"""Used for estimates if the vocabulary is missing: high for prose, about right for code."""

_PIECE = re.compile(r"\n*[^\n]+(?:\n+(?!\S)[^\n]*)*\n*|\n+")
"""A line with the ends of lines after it, and with what follows them if that begins with white space.

No word of the encoding spans the end of a line and a character that is not white space, so a text has as many
tokens as its pieces.
"""

_BOUNDARY = re.compile(r".*[0-9A-Za-z](?=\s)", re.DOTALL)


class Tokenizer:
    """Counts and cuts text; without a vocabulary it estimates from the size in bytes.

    The vocabulary is the content of ``cl100k_base.tiktoken``.
    """

    def __init__(self, vocabulary: bytes | None) -> None:
        self._encoding = None if vocabulary is None else _encoding(vocabulary)

    @property
    def exact(self) -> bool:
        """Whether tokens are counted; ``False`` if they are estimated at three bytes each."""
        return self._encoding is not None

    def count(self, text: str) -> int:
        """Return the number of tokens of a text; names of special tokens count as plain text.

        Exact if every window of :data:`WINDOW` characters contains a letter or digit followed by white space;
        otherwise high by at most a few tokens a window.
        """
        if self._encoding is None:
            return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
        return sum(len(self._encoding.encode_ordinary(window)) for window in _windows(text))

    def cut(self, text: str, max_tokens: int) -> str:
        """Return the longest start of a text with at most ``max_tokens`` tokens; never splits a character."""
        if max_tokens <= 0:
            return ""
        if self._encoding is None:
            kept = text.encode(errors="replace")[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")
            return text[: len(kept)]
        length, left = 0, max_tokens
        for window in _windows(text):
            tokens = self._encoding.encode_ordinary(window)
            if len(tokens) > left:
                return text[: length + self._fit(self._encoding, tokens, left)]
            length, left = length + len(window), left - len(tokens)
        return text

    @staticmethod
    def _fit(encoding: "Encoding", tokens: list[int], most: int) -> int:
        """Return the length in characters of the first tokens.

        A cut word can take more tokens on its own, so the result is counted again.
        """
        for kept in range(most, 0, -1):
            start = encoding.decode_bytes(tokens[:kept]).decode(errors="ignore")
            if len(encoding.encode_ordinary(start)) <= most:
                return len(start)
        return 0


_LOADING = threading.Lock()


def tokenizer() -> Tokenizer:
    """Return the process-wide tokenizer.

    It is loaded on first use (0.3 s), by only one of several concurrent threads.
    """
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> Tokenizer:
    return Tokenizer(_find_vocabulary())


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text.

    >>> count_tokens("never create a requirements.txt file")
    6
    """
    return sum(
        _counted(piece) if len(piece) <= _REMEMBERED_CHARS else tokenizer().count(piece)
        for piece in _PIECE.findall(text)
    )


def most_tokens(text: str) -> int:
    """Return how many tokens a text has at most: one for each byte. Does not load the vocabulary.

    >>> most_tokens("never create a requirements.txt file")
    36
    """
    return len(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1 << 13)
def _counted(piece: str) -> int:
    """Count with a cache: contexts share most of their lines, and a line is counted again with the whole."""
    return tokenizer().count(piece)


def cut(text: str, max_tokens: int) -> str:
    """Return the longest start of a text with at most ``max_tokens`` tokens.

    >>> cut("one two three four", 2)
    'one two'
    """
    if most_tokens(text) <= max_tokens or (
        len(text) <= _REMEMBERED_CHARS and count_tokens(text) <= max_tokens
    ):
        return text
    return tokenizer().cut(text, max_tokens)


def _find_vocabulary() -> bytes | None:
    """Return the vocabulary inside litellm, or ``None`` if it is missing or not the official file."""
    spec = importlib.util.find_spec("litellm")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "litellm_core_utils" / "tokenizers" / VOCABULARY_FILE
        if path.is_file():
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() == VOCABULARY_SHA256:
                return content
    return None


def _encoding(vocabulary: bytes) -> "Encoding":
    from tiktoken import Encoding  # noqa: PLC0415  (heavy: loaded when tokens are first counted)

    words = vocabulary.split()  # a token and its rank, a line each
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return Encoding("cl100k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def _windows(text: str) -> Iterator[str]:
    """Split a text where the encoding splits, too.

    No word of the encoding spans a letter or digit and the white space after it. A window without such a
    place is cut at its end. A lone surrogate, which no encoding can represent, becomes U+FFFD.
    """
    start = 0
    while start < len(text):
        end = start + WINDOW
        if end < len(text) and (found := _BOUNDARY.match(text, start, end)):
            end = found.end()
        yield encodable(text[start:end])
        start = end
