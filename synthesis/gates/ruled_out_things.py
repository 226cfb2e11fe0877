"""Compare what an action would bring in with the things that the user ruled out, by name.

Case, plural, hyphens and the usual spellings of packages do not matter: "Redis" is ``redis:7``,
``github.com/redis/go-redis`` and ``redis-py``; "MongoDB" is ``pymongo``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.demands.reading.rulings import MAX_WORDS, things_ruled_out
from agentx.synthesis.demands.reading.scope import FILE_TYPES
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.packages.requirements import meanings
from agentx.synthesis.gates.added_names import AddedName, names_in_change, names_in_command
from agentx.synthesis.language.words import content_words, stem, vocabulary
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, RejectionDetail, checks_of
from agentx.synthesis.shell.command_line import steps

_LEAST = 3
"""A shorter name counts only if it is written exactly so."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_ENDINGS = vocabulary(
    """
    css js ts py db sql ql lib sdk cli client server core api kit rb rs go io tab file pkg orm mq ui http bot
    net rc d x app web hq dev
    """
)
_BEGINNINGS = vocabulary("py aio go node async lib fake mock ng nest django flask react vue spring")
"""What packages put after and before the name of what they are for."""

_GENERIC = vocabulary(
    """
    job jobs test tests library libraries framework tool tools component components script scripts service
    services plugin plugins module modules notebook notebooks file files database databases queue queues image
    images container containers package packages store stores embed embeds widget widgets pipeline pipelines
    workflow workflows server servers cluster clusters index app apps cache caching integration
    """
)
"""Nouns after a name that only say of what sort it is."""

_NOTEBOOKS = {"notebook": ("ipynb",), "notebooks": ("ipynb",)}


class Thing(NamedTuple):
    """A thing that was ruled out.

    Attributes:
        item: The item that rules it out.
        said: The thing in the user's words.
        forms: Its names, without spaces, case and plural, that count in any place.
        packages: Names that count only for a package, image, program, import or file.
        words: Stems of all its words if it is described by several; empty if it is a name.
        endings: File name endings of it.
    """

    item: MemoryItem
    said: str
    forms: frozenset[str]
    packages: frozenset[str]
    words: frozenset[str]
    endings: frozenset[str]

    @property
    def is_long(self) -> bool:
        """Whether its name is long enough to be found within others."""
        return all(len(form) >= _LEAST for form in self.forms)


class Touched(NamedTuple):
    """A thing that an action would bring in, and where."""

    item: MemoryItem
    said: str
    place: str


def things_of(items: Iterable[MemoryItem]) -> tuple[Thing, ...]:
    """Return the things that items rule out: rejections and bans that stand or are not settled.

    An item with a check is left to that check.
    """
    return tuple(thing for item in items if _rules_out(item) for thing in _things(item))


def _rules_out(item: MemoryItem) -> bool:
    if item.status not in ("active", "candidate") or checks_of(item):
        return False
    return isinstance(item.detail, RejectionDetail | ConstraintDetail) and not getattr(
        item.detail, "call", None
    )


def _things(item: MemoryItem) -> Iterator[Thing]:
    said = things_ruled_out(item.text)
    if not said and isinstance(item.detail, RejectionDetail):
        idea = item.detail.idea.strip(" .")
        said = (idea,) if 0 < len(idea.split()) <= MAX_WORDS else ()
    for one in said:
        if thing := _thing(item, one):
            yield thing


def _thing(item: MemoryItem, said: str) -> Thing | None:
    words = re.findall(r"[^\s/]+", said)
    first_names = [
        word
        for word in words[:]
        if re.search(r"[A-Z]", word[1:]) or (word[:1].isupper() and word in item.text[1:])
    ]
    named = first_names if first_names and len(first_names) < len(words) else words
    core = [word for word in words if word.casefold() not in _GENERIC] or words
    whole, own = _joined(" ".join(words)), _joined(" ".join(named))
    if not whole:
        return None
    packages = {own, _joined(" ".join(core)), *_cores(own)}
    if len(words) == 1:
        packages |= {_joined(form) for form in meanings(words[0])}
    endings = {ending for word in words for ending in _endings(word)}
    is_name = len(words) == 1 or bool(first_names)
    stems = frozenset() if is_name else frozenset(stem(word) for word in content_words(said))
    return Thing(item, said, frozenset((whole,)), frozenset(packages), stems, frozenset(endings))


def _endings(word: str) -> tuple[str, ...]:
    globs = FILE_TYPES.get(word.casefold(), ()) if len(word) >= _LEAST else ()
    return (*_NOTEBOOKS.get(word.casefold(), ()), *(glob.rpartition(".")[2] for glob in globs))


def _joined(text: str) -> str:
    return _singular(re.sub(r"[\W_]+", "", text).casefold())


@lru_cache(maxsize=4_096)
def _singular(word: str) -> str:
    """Return a name without the ending of a plural."""
    if len(word) > _LEAST + 1 and word.endswith("ies"):
        return f"{word[:-3]}y"
    plain = len(word) > _LEAST and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plain else word


@lru_cache(maxsize=4_096)
def _cores(word: str) -> frozenset[str]:
    """Return a name without what packages put around it: ``mongo`` of ``pymongo`` and ``mongodb``."""
    found = {word}
    for _ in range(2):
        for one in tuple(found):
            found |= {
                one[: -len(end)] for end in _ENDINGS if one.endswith(end) and len(one) - len(end) > _LEAST
            }
            found |= {one.removeprefix(start) for start in _BEGINNINGS}
    return frozenset(_singular(one) for one in found if one == word or len(one) > _LEAST)


@lru_cache(maxsize=16_384)
def _grams(text: str) -> frozenset[str]:
    """Return all runs of up to four parts of a name, joined: ``serviceWorker`` is also ``worker``."""
    parts = [part.casefold() for part in _PART.findall(text)[:40]]
    runs = {"".join(parts[start : start + size]) for start in range(len(parts)) for size in range(1, 5)}
    return frozenset(map(_singular, runs))


def brought_in(
    things: Sequence[Thing], command: str, changes: Iterable[CheckedChange], text: str = ""
) -> list[Touched]:
    """Return the things that an action would bring in, each once.

    Args:
        things: What was ruled out.
        command: The command line; empty if none.
        changes: The files as the action would leave them.
        text: The action in words, if that is all there is.
    """
    changes = tuple(changes)
    plain = _squeezed(" ".join((command, text, *(f"{one.path} {one.after or ''}" for one in changes))))
    near = [thing for thing in things if _may_be_in(thing, plain)]
    if not near:
        return []
    names = list(names_in_command(command)) if command else []
    names += [name for change in changes for name in names_in_change(change)]
    found = ((thing, _place(thing, names) or _described(thing, command)) for thing in near)
    return [Touched(thing.item, thing.said, place) for thing, place in found if place]


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _may_be_in(thing: Thing, plain: str) -> bool:
    """Return whether a text without spaces can have a thing, so that most actions are not read further."""
    if any(form in plain for form in (*thing.forms, *thing.packages, *thing.endings)):
        return True
    return bool(thing.words) and all(word[:4] in plain for word in thing.words)


def _place(thing: Thing, names: Iterable[AddedName]) -> str:
    """Return where an action brings a thing in; empty if it does not."""
    long = len(thing.said.split()) > 1
    for name in names:
        match name.use:
            case "package":
                here = _is_package(thing, name)
            case "label":
                here = _joined(name.text) in thing.forms
            case use:
                here = (long or use == "used") and thing.is_long and bool(thing.forms & _grams(name.text))
        if here:
            return name.place
    return ""


def _is_package(thing: Thing, name: AddedName) -> bool:
    if name.text.casefold() in thing.endings:
        return True
    if not thing.is_long:
        return _joined(name.text) in thing.forms
    grams, wanted = _grams(name.text), thing.forms | thing.packages
    return bool(wanted & grams) or any(wanted & _cores(gram) for gram in grams)


def _described(thing: Thing, command: str) -> str:
    """Return the program that has all words of a described thing, as in "emailing the parents"."""
    for call in steps(command) if command and len(thing.words) > 1 else ():
        parts = {
            stem(part.casefold()) for word in (call.program, *call.arguments) for part in _PART.findall(word)
        }
        if all(any(_same(word, part) for part in parts) for word in thing.words):
            return f"runs `{call.program}`"
    return ""


def _same(word: str, part: str) -> bool:
    return word == part or (
        min(len(word), len(part)) > _LEAST and (word.endswith(part) or part.endswith(word))
    )
