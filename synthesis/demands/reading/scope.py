"""Finds where and how long a demand applies: topic, paths, file types, and its end."""

import re

import msgspec

from agentx.synthesis.demands.tables.places import frozen_globs
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.memory.items import Scope

FILE_TYPES: dict[str, tuple[str, ...]] = {
    "python": ("**/*.py",),
    "typescript": ("**/*.ts", "**/*.tsx"),
    "javascript": ("**/*.js", "**/*.jsx", "**/*.mjs"),
    "java": ("**/*.java",),
    "go": ("**/*.go",),
    "golang": ("**/*.go",),
    "rust": ("**/*.rs",),
    "ruby": ("**/*.rb",),
    "php": ("**/*.php",),
    "c++": ("**/*.cpp", "**/*.hpp", "**/*.cc", "**/*.h"),
    "c#": ("**/*.cs",),
    "kotlin": ("**/*.kt",),
    "swift": ("**/*.swift",),
    "shell": ("**/*.sh",),
    "bash": ("**/*.sh",),
    "sql": ("**/*.sql",),
    "html": ("**/*.html",),
    "css": ("**/*.css",),
    "markdown": ("**/*.md",),
    "yaml": ("**/*.yaml", "**/*.yml"),
    "json": ("**/*.json",),
    "toml": ("**/*.toml",),
    "latex": ("**/*.tex",),
}
"""Names of file types in messages, and the globs that they mean."""

_TYPES = "|".join(re.escape(name) for name in sorted(FILE_TYPES, key=len, reverse=True))
_WHERE = (
    r"\b(?:in|for|inside|within|to|on|of|across|under|throughout)\s+(?:all |any |every |each |new |our "
    r"|your |my |the )*"
)

_FILE_TYPE = on_use(
    rf"(?:{_WHERE}|^no (?:new )?)(?P<type>{_TYPES})\b(?=\s+(?:files?|code|modules?|sources?|scripts?"
    r"|projects?|documents?|functions?|tests?|class(?:es)?)\b|\s*,|\s*[.!]?\s*$)",
    re.IGNORECASE,
)
_EXTENSION = on_use(
    rf"{_WHERE}[`\"']?\*?\.(?P<ext>[A-Za-z][A-Za-z0-9]{{0,7}})[`\"']?(?:\s+files?)?(?=[\s,.;!]|$)",
    re.IGNORECASE,
)
_PATH = on_use(
    rf"{_WHERE}[`\"']?(?P<path>(?:[\w.@-]{{1,60}}/){{1,12}}[\w.@*-]{{0,60}}|[\w-]{{1,60}}\.(?:py|ts|tsx|js"
    r"|jsx|md|go|rs|java|toml|ya?ml|json|sql|html|css|txt|sh|rb))[`\"']?(?=[\s,.;!:]|$)",
    re.IGNORECASE,
)
_DIRECTORY = on_use(
    rf"{_WHERE}[`\"']?(?P<dir>[\w.-]{{1,60}})/?[`\"']?\s+(?:folder|directory|dir)\b", re.IGNORECASE
)

_TOPIC = on_use(
    r"\b(?:(?:when|whenever|while|if|every time|each time|any ?time)\s+(?:you(?:'re| are)?|i(?:'m| am)?"
    r"|we(?:'re| are)?)?\s*"
    r"(?:writ\w+|talk\w*|speak\w*|answer\w*|discuss\w*|report\w*|ask\w*|explain\w*|mention\w*|summari[sz]\w+"
    r"|describ\w+)"
    r"(?:\s+(?:me|you|us|anything|something|questions?|texts?|a \w+))?"
    r"\s+(?:about|on|regarding|concerning|for)"
    r"|\bin (?:any |all |every )?(?:texts?|answers?|articles?|reports?|sections?|anything|questions?)"
    r" (?:about|on|regarding)"
    r"|\bwhen it comes to|\bregarding|\bon the (?:topic|subject) of)\s+(?P<topic>[^,;:!?\n]{2,80}?)"
    r"(?=\s*(?:[,;:!?]|\.(?:\s|$)|$)|\s+(?:always|never|please|don't|do not)\b)",
    re.IGNORECASE,
)

_UNTIL = on_use(
    r"\b(?P<until>(?:until|till|'til|as long as|while (?:we're|we are))\s+(?:[^,;.!?\n]|\.(?=\w)){2,120})",
    re.IGNORECASE,
)
_FOR_A_WHILE = on_use(
    r"\b(?:(?:just |only )?for (?:the rest of )?|during )(?P<while>today|tonight|(?:this|the)"
    r" (?:session|week|sprint|month|conversation|chat|afternoon|morning|evening))\b"
    r"|\b(?P<only>today|tonight|this (?:session|week|sprint|month|conversation|chat|afternoon|morning"
    r"|evening)) only\b",
    re.IGNORECASE,
)
_UNTIL_TAIL = on_use(r"\s+(?:please|always|never|add|use|don't|do not)\b.*$", re.IGNORECASE | re.DOTALL)


class Reach(msgspec.Struct, frozen=True):
    """Where, and until when, a demand applies."""

    scope: Scope
    until: str


def reach_of(clause: str) -> Reach:
    """Return the scope and the end of a demand, read from its words.

    Args:
        clause: The demand, with typographic quotes straightened.

    >>> reach_of("When writing about Tesla's future, never mention Elon Musk.").scope.topic
    "tesla's future"
    >>> reach_of("in Python files, use tabs until we release").until
    'until we release'
    """
    topic = _TOPIC.search(clause)
    paths = frozen_globs(without_leads(clause)) or _paths(clause)
    scope = Scope(topic=_tidy(topic["topic"]).lower() if topic else "", paths=paths)
    if match := _UNTIL.search(clause):
        return Reach(scope, _tidy(_UNTIL_TAIL.sub("", match["until"])))
    passing = _FOR_A_WHILE.search(clause)
    return Reach(scope, _tidy(passing["while"] or passing["only"]) if passing else "")


_LEADS = on_use(
    r"^(?:(?:from now on(?:wards)?|for now|for the time being|going forward|in (?:the )?future|henceforth"
    r"|hereafter|in (?:this|our) (?:project|repo(?:sitory)?|code ?base|team)(?: we)?"
    r"|(?:in|for) (?:all |any |every )?[\w+#]+ (?:files|code|modules)|so|and|but|also|please|rule|remember"
    r"|important|you should(?! not\b)|you must(?! not\b)|make sure(?: that| to)?(?: you)?"
    r"|(?:when|whenever|while|if)\b[^,]{2,120}(?=,))[,:]?\s+|,\s*)+",
    re.IGNORECASE,
)


def without_leads(words: str) -> str:
    """Return a demand without the words before the order: how long it applies, where, and when."""
    match = _LEADS.match(words)
    rest = words[match.end() :] if match else words
    return rest.lstrip(" ,")


def without_topic(clause: str) -> str:
    """Return a demand without the words that limit it to a topic.

    >>> without_topic("never mention Elon Musk when you write about Tesla")
    'never mention Elon Musk'
    """
    topic = _TOPIC.search(clause)
    return clause[: topic.start()].rstrip() + clause[topic.end() :] if topic else clause


def _paths(clause: str) -> tuple[str, ...]:
    if match := _FILE_TYPE.search(clause):
        return FILE_TYPES[match["type"].lower()]
    if match := _EXTENSION.search(clause):
        return (f"**/*.{match['ext'].lower()}",)
    if match := _DIRECTORY.search(clause):
        return (f"{match['dir'].rstrip('/')}/**",)
    if match := _PATH.search(clause):
        return (path_glob(match["path"]),)
    return ()


def path_glob(path: str) -> str:
    """Return the glob for a path as users write it.

    A directory includes everything below it; a bare file name matches anywhere.

    >>> path_glob("src/api/"), path_glob("setup.py"), path_glob("src/api")
    ('src/api/**', '**/setup.py', 'src/api/**')
    """
    bare = path.strip().removeprefix("./").rstrip(".")
    if bare.endswith("/"):
        return bare + "**"
    last = bare.rpartition("/")[2]
    if "/" not in bare:
        return f"**/{bare}"
    return bare if "." in last.lstrip(".") or "*" in last else f"{bare}/**"


def _tidy(words: str) -> str:
    return " ".join(words.split()).strip(" .,;:\"'`")
