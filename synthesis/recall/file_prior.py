"""What kind of file a query asks for, and the names in it.

"Where is X done?" asks for source, "how do I use X?" for docs and configuration, "is X tested?" for tests.
The answer is a weight for each kind, never a filter.
"""

import re
from collections.abc import Mapping

import msgspec

from agentx.storage.index.port import FileKind

_PLACE = re.compile(
    r"^\W*(?:(?:and|so|please|tell me|show me|find|explain)\b\W*)*where\b"
    r"|[,;:.(–—-]\s*where (?:is|are|was|were|do|does|did|gets?|would|should|exactly)\b"
    r"|\b(?:which|what) (?:\w+ )?(?:function|method|class|module|file|code|part|component|package|struct|type"
    r"|script|piece|bit|step|place|routine|helper|logic|line)s?\b"
    r"|\b(?:code|place|part|piece|spot|function|method|class|module|file|routine|helper|logic)s?"
    r" (?:that|which|where)\b"
    # "What stops a retry?" asks for what does something, "what tests cover it?" does not.
    r"|(?:^|[,;:.(–—-]\s*)\W*(?:what|who) (?:\w+ly )?(?!(?:is|was|does|has|this|its|his|us)\b)[a-z]+s\b"
    r"(?! (?:is|are|was|were|do|does|did|has|have|had|can|could|should|will|would|must|may|might|of)\b)"
    r"|\bhow (?:is|are|does|do (?:the|its|their)|was|were|did|come)\b",
    re.IGNORECASE,
)
_MAKING = re.compile(r"\b(?:implement(?:s|ed|ation)?|defined|source code)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"\W*(?:(?:and|so|please|tell me)\b\W*)*"
    r"(?:where|which|what|how|who|find|show|explain|i need|i want|code that)\b|.*\?",
    re.IGNORECASE,
)
_NAMES_PLACE = re.compile(r"\b(?:where|that)\b", re.IGNORECASE)
_USE = re.compile(
    r"\bhow (?:do|can|should|would|must|could) (?:i|we|you|one|users?|people)\b|\bhow to\b"
    r"|\b(?:configur(?:e|ed|ing|ation)|install(?:ed|ing|ation)?|documented|documentation|tutorial)\b"
    r"|\b(?:which|what) (?:setting|option|flag|parameter)s?\b",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"\btested\b|\b(?:unit |integration )?tests (?:for|of|that|cover\w*|check\w*)\b"
    r"|\b(?:which|what|any|are there|the) tests?\b(?! client| runner| server| case class)"
    r"|\bcovered by (?:a )?tests?\b|\btest (?:cases?|suite|coverage)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_IDENTIFIER = re.compile(
    r"(?<![\w./-])(?:[A-Za-z_]\w*(?:\.|::))*(?:[a-z]+\w*[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*|\w*[A-Za-z]_\w+|_\w+"
    r"|[A-Za-z]\w*(?=\(\))|(?<=\.)[A-Za-z]\w*)"
)
_ONE_NAME = re.compile(r"\s*[A-Za-z_][\w.:-]*(?:\(\))?\s*")


class FilePrior(msgspec.Struct, frozen=True):
    """Weights of the kinds of files for a query.

    Attributes:
        weights: The factor of a passage's score, by the kind of its file.
        first: The kind that is asked for; empty if none clearly is.
    """

    weights: Mapping[FileKind | str, float]
    first: FileKind | None = None


NO_PRIOR = FilePrior({"source": 1.0, "test": 0.92, "docs": 0.95, "config": 0.95, "data": 0.85})
_SOURCE = FilePrior({"source": 1.0, "test": 0.55, "docs": 0.55, "config": 0.65, "data": 0.45}, "source")
_DOCS = FilePrior({"source": 0.8, "test": 0.6, "docs": 1.0, "config": 0.95, "data": 0.6})
_TEST = FilePrior({"source": 0.75, "test": 1.0, "docs": 0.6, "config": 0.65, "data": 0.6}, "test")


def prior_of(query: str) -> FilePrior:
    """Return what kind of file the first line of a query asks for.

    >>> prior_of("Where are payments retried?").first, prior_of("Which tests cover retries?").first
    ('source', 'test')
    """
    line = query.strip().partition("\n")[0][:400]
    if _TESTS.search(line):
        return _TEST
    place = _PLACE.search(line) or _MAKING.search(line)
    if _USE.search(line) and not (place and _NAMES_PLACE.search(place[0])):
        return _DOCS
    return _SOURCE if place and _ASKS.match(line) else NO_PRIOR


def names(query: str) -> frozenset[str]:
    """Return the identifiers in a query; ``getUserName`` and ``get_user_name`` are the same.

    >>> sorted(names("where is retryPayment called by Client.fetch?"))
    ['client fetch', 'retry payment']
    """
    head = query[:2_000]
    found = [head] if _ONE_NAME.fullmatch(head) else _IDENTIFIER.findall(head)
    return frozenset(filter(None, map(_plain, found)))


def names_of(symbol: str) -> frozenset[str]:
    """Return the forms by which a definition is named: its name, and with the names around it."""
    forms = set()
    for name in symbol.split(", ") if symbol else ():
        parts = name.split(".")
        forms |= {_plain(".".join(parts[start:])) for start in range(len(parts))}
    return frozenset(forms)


def _plain(name: str) -> str:
    return " ".join(word.lower() for word in _WORD.findall(name))
