"""Content words: the subject of a sentence as a set of English stems, to compare two wordings of it.

Nothing here learns or guesses: two words mean the same only if a row of :data:`SYNONYMS` says so.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from agentx.storage.index.analysis import english_stem

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_WORDS = 2_000
"""Maximum number of words read of one text; a subject that is named only later is not its subject."""


def vocabulary(words: str) -> frozenset[str]:
    """Return a set of words from a text that separates them by white space.

    >>> sorted(vocabulary("one two"))
    ['one', 'two']
    """
    return frozenset(words.split())


STOP_WORDS = vocabulary(
    """
    a about above after again all also although am an and any anything are as at be because been before
    being below but by can could did do does doing don down during each else ever every everything few for
    from further get had has have having he her here hers him his how i if in into is it its itself just
    kind let like lot make many may me might mine more most much must my myself need no nor not now of off
    ok okay on once one only or other our ours out over own per please quite rather really same shall she
    should since so some something such than that the their theirs them then there these they thing things
    this those though through to too toward try under until up upon us use used uses using very via want was
    way we well were what when whenever where whether which while who whom whose why will with within
    without would yes yet you your yours always never anymore instead now on don't doesn't i'm i'd i'll i've
    we're we've it's that's let's can't won't shouldn't mustn't isn't aren't sure ensure file files
    """
)
"""Words that say nothing about a subject: function words, and the verbs and adverbs of any demand."""


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """Return the English stem of one word.

    >>> stem("fetching"), stem("Decorators")
    ('fetch', 'decor')
    """
    bare = word.casefold().replace("’", "'").removesuffix("'s").removesuffix("'")
    return english_stem(bare)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, with identifiers split; at most 2,000.

    >>> words_of("fetch_userOrders in Tesla's app")
    ('fetch', 'user', 'Orders', 'in', "Tesla's", 'app')
    """
    parted = _CAMEL.sub(" ", unicodedata.normalize("NFKC", text))
    found: list[str] = []
    for match in _WORD.finditer(parted):
        found.append(match.group())
        if len(found) == _MAX_WORDS:
            break
    return tuple(found)


@lru_cache(maxsize=8_192)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a text is about.

    >>> sorted(content_words("Always answer in British English, please"))
    ['answer', 'british', 'english']
    """
    return frozenset(
        stem(word) for word in words_of(text) if word.casefold().replace("’", "'") not in STOP_WORDS
    )


SYNONYMS = """
answer reply respond response replies
short brief concise terse succinct crisp compact small
long lengthy verbose elaborate
docs document documents documentation
function method func
dependency package library lib
delete remove erase
emoji emoticon smiley
repo repository
config configuration settings
folder directory dir
variable var
parameter param argument arg
image picture photo
explanation explain
summary summarise summarize recap
lint linter
database db
javascript js
typescript ts
python py
environment env
colour color
abbreviation abbreviate
start begin
finish end
bullet bullets
example sample
info information
jargon buzzword
typehint annotation
merge merging
freeze frozen
reference cite citation
apologise apologize sorry
"""
"""Each row holds words with the same meaning for a rule; the first one represents them."""

Phrases = tuple[tuple[re.Pattern[str], str], ...]

_PHRASES: Phrases = (
    (re.compile(r"\bpull[ -]requests?\b", re.IGNORECASE), "pr"),
    (re.compile(r"\btype[ -](?:hints?|hinting|annotations?)\b", re.IGNORECASE), "typehint"),
    (re.compile(r"\bdoc[ -]strings?\b", re.IGNORECASE), "docstring"),
    (re.compile(r"\b(?:bullet[ -]points?|bulleted lists?|bullet lists?)\b", re.IGNORECASE), "bullet"),
    (re.compile(r"\b(?:global variables?|globals)\b", re.IGNORECASE), "global"),
    (re.compile(r"\b(?:up[ -]to[ -]date)\b", re.IGNORECASE), "update"),
    (re.compile(r"\bunit[ -]tests?\b", re.IGNORECASE), "test"),
)
"""Words that name one thing only together."""

_WEAK = vocabulary(
    """
    add write create make put includ have want insert introduc keep leav see give show provid prefer produc
    generat get bother go code new realli stop avoid skip favor favour like love hate annoy forget forgot
    insist still rememb everywher anywher alway wherev repeat said told ask pleas strict absolut total
    complet entir use thing okay ani some one time run omit ignor drop lose again chang day
    """
)
"""Stems of words that express a demand, whatever it is about."""


def is_weak(stemmed: str) -> bool:
    """Return whether a stem expresses a demand, whatever it is about."""
    return stemmed in _WEAK


@lru_cache(maxsize=4)
def meanings(synonyms: str) -> Mapping[str, str]:
    """Map the stems of a table like :data:`SYNONYMS` to the first stem of their row.

    If a word is in two rows, the later one counts.
    """
    rows = (row.split() for row in synonyms.split("\n") if row.strip())
    return {stem(word): stem(row[0]) for row in rows for word in reversed(row)}


def named(text: str, phrases: Phrases) -> str:
    """Replace words that name one thing only together by one word."""
    for pattern, word in phrases:
        text = pattern.sub(word, text)
    return text


@lru_cache(maxsize=8_192)
def subject_words(text: str) -> frozenset[str]:
    """Return what a demand is about, independent of its wording.

    Synonyms are unified, and verbs such as "add" or "keep" are dropped.

    >>> subject_words("Keep your answers short") == subject_words("please give brief replies")
    True
    """
    same = meanings(SYNONYMS)
    text = named(text, _PHRASES)
    return frozenset(same.get(word, word) for word in content_words(text)) - _WEAK
