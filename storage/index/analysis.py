"""The text analysis shared by all backends: it turns text into the index terms used for ranking.

Words are folded to ASCII if possible, lower-cased and stemmed (Snowball English). A compound
(``getUserName``, ``user_name``, ``app.users``, ``src/app/users.py``) is kept whole, so that an exact name,
version or hash finds exactly its occurrences, and is also split, so that its words find it. Backends never
analyse text themselves: they receive the terms, joined by spaces, so all of them see the same terms.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from agentx.storage.index.port import Chunk
from agentx.storage.text import encodable

MAX_CHARS = 200_000
"""Characters of one chunk that are analysed; the rest is stored and shown, but not found."""

MAX_QUERY_CHARS = 20_000
"""Characters of a query that are used: a pasted log is cut here."""

MAX_TERM_CHARS = 64
"""Longer terms are replaced by a head and a digest, so that they still match exactly and nothing else."""

STOPWORDS = frozenset(
    """
    a an and are as at be by for from in is it of on or that the this to was were with
    """.split()  # noqa: SIM905 - a list of words reads best as words
)

# A run of word characters, and further runs joined by the separators of names, paths, versions, dates and
# addresses. Separators and word characters are disjoint, so matching takes linear time.
_COMPOUND = re.compile(r"\w+(?:[./\\:@\-]{1,3}\w+)*")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+|[^\W_A-Za-z0-9]+")
_HASH = re.compile(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,}")
# Scripts written without spaces: their runs are split into pairs of characters.
_UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿ｦ-ﾟ฀-๿]{2,}")


_stemming = threading.Lock()
_stemmers: list[Any] = []


@lru_cache(maxsize=1 << 16)
def english_stem(word: str) -> str:
    """Return the stem of a word, by Snowball's English stemmer."""
    # A Snowball stemmer stores the word in itself, so it serves one thread at a time.
    with _stemming:
        if not _stemmers:  # loaded when text is first analysed
            from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415

            _stemmers.append(EnglishStemmer())
        stem: str = _stemmers[0].stemWord(word)
        return stem


def fold(text: str) -> str:
    """Remove accents, compatibility forms and lone surrogates; other scripts are unchanged.

    >>> fold("Café ﬁle")
    'Cafe file'
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", encodable(text))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def analyse(text: str) -> list[str]:
    """Split text into index terms, in order, including repetitions.

    >>> analyse("The getUserName calls in src/users.py")
    ['getusernam', 'get', 'user', 'name', 'call', 'src/users.py', 'users.py', 'src', 'user', 'py']
    """
    folded = fold(text[:MAX_CHARS])
    return [_bounded(term) for match in _COMPOUND.finditer(folded) for term in _terms(match.group())]


def tokens_of(chunk: Chunk) -> list[str]:
    """Return the terms by which a chunk is found: those of its context and its text.

    The context of a file passage counts twice: it is path and symbol, the file's own name for the passage.

    >>> tokens_of(Chunk(id="a", kind="artifact", path="pay.py", context="retry", text="wait"))
    ['retri', 'retri', 'wait']
    """
    if not chunk.context:
        return analyse(chunk.text)
    before = f"{chunk.context}\n{chunk.context}" if chunk.path else chunk.context
    return analyse(f"{before}\n{chunk.text}")


def query_terms(query: str) -> dict[str, int]:
    """Return how often each term occurs in a query, in order of first occurrence.

    The query is never parsed as a query language.

    >>> query_terms('title:"users" AND users')
    {'titl': 1, 'user': 2}
    """
    return dict(Counter(analyse(query[:MAX_QUERY_CHARS])))


def _terms(compound: str) -> Iterator[str]:
    words = _WORD.findall(compound)
    if len(words) > 1:
        whole = compound.lower()
        yield whole
        name = max(whole.rfind("/"), whole.rfind("\\")) + 1
        if name and _WORD.fullmatch(whole, name) is None:
            yield whole[name:]
    for word in words:
        yield from _word_terms(word)


def _word_terms(word: str) -> Iterator[str]:
    lower = word.lower()
    if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
        if lower not in STOPWORDS:
            yield english_stem(lower) if len(lower) <= MAX_TERM_CHARS else lower
        return
    if _UNSPACED.fullmatch(word):
        yield from (word[i : i + 2] for i in range(len(word) - 1))
        return
    yield english_stem(lower) if lower.isalpha() and lower.isascii() else lower
    if _HASH.fullmatch(lower):
        return
    parts = _PART.findall(word)
    if len(parts) > 1:
        for part in parts:
            if len(part) > 1:
                yield from _word_terms(part) if part.isalpha() and part.isascii() else (part.lower(),)


def _bounded(term: str) -> str:
    if len(term) <= MAX_TERM_CHARS:
        return term
    return f"{term[:40]}~{blake2b(term.encode(), digest_size=8).hexdigest()}"
