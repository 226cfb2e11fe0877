"""Finds where and how long a demand applies: topic, paths, file types, and its end."""

import re

import msgspec

from agentx.synthesis.demands.tables.places import frozen_globs
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.items import Scope

_EXTENSIONS = vocabulary(
    "python=py typescript=ts,tsx javascript=js,jsx,mjs java=java go=go golang=go rust=rs ruby=rb php=php"
    " c++=cpp,hpp,cc,h c#=cs kotlin=kt swift=swift shell=sh bash=sh sql=sql html=html css=css markdown=md"
    " yaml=yaml,yml json=json toml=toml latex=tex"
)
FILE_TYPES: dict[str, tuple[str, ...]] = {
    name: tuple(f"**/*.{extension}" for extension in extensions.split(","))
    for name, extensions in (row.split("=") for row in _EXTENSIONS)
}
"""Names of file types in messages, and the globs that they mean."""

_WHERE = (
    r"\b(?:in|for|inside|within|to|on|of|across|under|throughout)\s+(?:(?:all|any|every|each|new|our|your|my"
    r"|the) )*"
)
_PLACE = compiled(
    rf"(?:{_WHERE}|^no (?:new )?)(?P<type>{'|'.join(map(re.escape, sorted(FILE_TYPES, reverse=True)))})\b"
    r"(?=\s+(?:files?|code|modules?|sources?|scripts?|projects?|documents?|functions?|tests?|class(?:es)?)\b"
    r"|\s*,|\s*[.!]?\s*$)"
    rf"|{_WHERE}[`\"']?(?:\*?\.(?P<extension>[A-Za-z][A-Za-z0-9]{{0,7}})[`\"']?(?=[\s,.;!]|$)"
    r"|(?P<folder>[\w.-]{1,60})/?[`\"']?\s+(?:folder|directory|dir)\b"
    r"|(?P<path>(?:[\w.@-]{1,60}/){1,12}[\w.@*-]{0,60}|[\w-]{1,60}\.(?:py|tsx?|jsx?|md|go|rs|java|toml|ya?ml"
    r"|json|sql|html|css|txt|sh|rb))[`\"']?(?=[\s,.;!:]|$))"
)
"""A file type, an extension, a folder, or a path; of several places, the earlier group counts."""

_TOPIC = compiled(
    r"\b(?:(?:when|whenever|while|if|every time|each time|any ?time)\s+(?:(?:you|i|we)(?:'re|'m| are| am)?)?"
    r"\s*(?:(?:talk|speak|answer|discuss|report|ask|explain|mention)\w*|(?:writ|summari[sz]|describ)\w+)"
    r"(?:\s+(?:me|you|us|anything|something|questions?|texts?|a \w+))?\s+(?:about|on|regarding|for)"
    r"|\bin (?:(?:any|all|every) )?(?:text|answer|article|report|section|anything|question)s? (?:about|on)"
    r"|\bwhen it comes to|\bregarding|\bon the (?:topic|subject) of)\s+(?P<topic>[^,;:!?\n]{2,80}?)"
    r"(?=\s*(?:[,;:!?]|\.(?:\s|$)|$)|\s+(?:always|never|please|don't|do not)\b)"
)
_PERIOD = "(?:session|week|sprint|month|conversation|chat|afternoon|morning|evening)"
_UNTIL = compiled(
    r"\b(?:(?P<until>(?:until|till|'til|as long as|while (?:we're|we are))\s+(?:[^,;.!?\n]|\.(?=\w)){2,300}?)"
    r"(?=\s+(?:please|always|never|add|use|don't|do not)\b|[,;!?\n]|\.(?!\w)|$)"
    rf"|(?:for (?:the rest of )?|during )(?P<passing>today|tonight|(?:this|the) {_PERIOD})\b"
    rf"|(?P<only>today|tonight|this {_PERIOD}) only\b)"
)
_LEADS = compiled(
    r"^(?:(?:from now on(?:wards)?|for now|for the time being|going forward|in (?:the )?future|henceforth"
    r"|in (?:this|our) (?:project|repo(?:sitory)?|code ?base|team)(?: we)?|hereafter"
    r"|(?:in|for) (?:all |any |every )?[\w+#]+ (?:files|code|modules)|so|and|but|also|please|rule|remember"
    r"|important|you should(?! not\b)|you must(?! not\b)|make sure(?: that| to)?(?: you)?"
    r"|(?:when|whenever|while|if)\b[^,]{2,120}(?=,))[,:]?\s+|,\s*)+"
)


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
    topic, end = _TOPIC.search(clause), _UNTIL.search(clause)
    paths = frozen_globs(without_leads(clause)) or _paths(clause)
    scope = Scope(topic=_tidy(topic["topic"]).lower() if topic else "", paths=paths)
    return Reach(scope, _tidy(end[end.lastindex or 0]) if end else "")


def without_leads(words: str) -> str:
    """Return a demand without the words before the order: how long it applies, where, and when."""
    match = _LEADS.match(words)
    return words[match.end() if match else 0 :].lstrip(" ,")


def without_topic(clause: str) -> str:
    """Return a demand without the words that limit it to a topic.

    >>> without_topic("never mention Elon Musk when you write about Tesla")
    'never mention Elon Musk'
    """
    topic = _TOPIC.search(clause)
    return clause[: topic.start()].rstrip() + clause[topic.end() :] if topic else clause


def _paths(clause: str) -> tuple[str, ...]:
    match = min(_PLACE.finditer(clause), key=lambda one: one.lastindex or 0, default=None)
    if match and match["type"]:
        return FILE_TYPES[match["type"].lower()]
    if match and match["extension"]:
        return (f"**/*.{match['extension'].lower()}",)
    return (path_glob(match["path"] or match["folder"] + "/"),) if match else ()


def path_glob(path: str) -> str:
    """Return the glob for a path as users write it.

    A directory includes everything below it; a bare file name matches anywhere.

    >>> path_glob("src/api/"), path_glob("setup.py"), path_glob("src/api")
    ('src/api/**', '**/setup.py', 'src/api/**')
    """
    bare = path.strip().removeprefix("./").rstrip(".")
    if bare.endswith("/"):
        return f"{bare}**"
    last = bare.rpartition("/")[2].lstrip(".")
    return f"**/{bare}" if "/" not in bare else bare if "." in last or "*" in last else f"{bare}/**"


def _tidy(words: str) -> str:
    return " ".join(words.split()).strip(" .,;:\"'`")
