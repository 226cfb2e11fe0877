"""Compare what an action would bring in with the things that the user ruled out, by name.

Case, plural, hyphens and the usual spellings of packages do not matter: "Redis" is ``redis:7``,
``github.com/redis/go-redis`` and ``redis-py``; "MongoDB" is ``pymongo``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.demands.reading.rulings import MAX_WORDS, things_ruled_out
from agentx.synthesis.demands.reading.scope import FILE_TYPES, reach_of
from agentx.synthesis.demands.tables.vocabulary import PROJECT, compiled
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.packages.requirements import meanings
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.gates.added_names import (
    AddedName,
    acting_calls,
    names_in_change,
    names_in_command,
    names_in_words,
)
from agentx.synthesis.gates.other_names import OtherNames, joined, other_names, singular
from agentx.synthesis.language.words import content_words, stem, vocabulary
from agentx.synthesis.memory.checks import Check, CommandCheck, DependencyCheck, PathCheck
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    MemoryItem,
    RejectionDetail,
    checks_of,
    is_offered,
)

_LEAST = 3
"""A shorter name counts only if it is written exactly so."""

_LONG = 4

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

_PLACE = re.compile(
    r"\b(?:in|for|on|from|of|into) (?:this|these|the|our|my|any|all|a|an) ([\w-]+(?: [\w-]+)?)", re.IGNORECASE
)
"""Where a thing is ruled out."""

_EVERYWHERE = compiled(rf"\b{PROJECT}\b")


_CLAUSE = re.compile(r"[;!]+\s*|,\s+|:\s+|\.\s+|\s+[–—-]+\s+|\s+(?=but\b)")
_ALLOWS = compiled(
    r"\b(?:fine|ok|okay|allowed|welcome|good|may|can|except\w*|besides|like)\b(?<!not allowed)"
)


class Thing(NamedTuple):
    """A thing that was ruled out.

    Attributes:
        item: The item that rules it out.
        said: The thing in the user's words.
        forms: Its names, without spaces, case and plural, that count in any place.
        packages: Names that count only for a package, image, program, import or file.
        parts: Its words, without case and plural, if it has several.
        described: Stems of its words, if they are not a name ("emailing the parents").
        endings: File name endings of it.
        places: Stems of the words that say where it is ruled out.
        is_sort: Whether it is a sort of content ("footnotes"), so that text can be it.
        others: What else it is called ("mongoose" for MongoDB).
        paths: Globs of the files in which it is ruled out; empty for everywhere.
    """

    item: MemoryItem
    said: str
    forms: frozenset[str]
    packages: frozenset[str]
    parts: tuple[str, ...]
    described: frozenset[str]
    endings: frozenset[str]
    places: frozenset[str]
    is_sort: bool
    others: OtherNames
    paths: tuple[str, ...]

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

    A thing that a check of its item is about is left to that check, unless the check knows only packages.
    """
    return tuple(thing for item in items if _rules_out(item) for thing in _things(item))


def _rules_out(item: MemoryItem) -> bool:
    if item.status not in ("active", "candidate") or is_offered(item):
        return False
    if isinstance(item.detail, ConstraintDetail):
        return item.detail.modality != "prefer"  # a wish is not enforced
    return isinstance(item.detail, RejectionDetail) and item.detail.call is None


def _things(item: MemoryItem) -> Iterator[Thing]:
    said = things_ruled_out(item.text)
    if not said and isinstance(item.detail, RejectionDetail):
        idea = item.detail.idea.strip(" .")
        labels = item.text.startswith(f"{idea}:")  # "Kotlin: the !! operator is out"
        said = (idea,) if 0 < len(idea.split()) <= MAX_WORDS and not labels else ()
    checks = [check for check in checks_of(item) if not isinstance(check, DependencyCheck)]
    if item.status != "active" or not checks:
        yield from filter(None, (_thing(item, one) for one in said))
        return
    # The rule may be one part of the sentence, such as "no redis, and never run git push".
    quote = item.evidence[0].quote if item.evidence else ""
    for one in dict.fromkeys((*said, *things_ruled_out(quote))):
        if not any(_knows(check, one, item.text) for check in checks):
            clauses = [clause for clause in _CLAUSE.split(quote) if one.casefold() in clause.casefold()]
            if thing := _thing(item, one, ". ".join(clauses)):
                yield thing


def _knows(check: Check, said: str, rule: str) -> bool:
    """Return whether a check of a rule is about a thing."""
    thing = _squeezed(said)
    if isinstance(check, CommandCheck):
        named = (*check.programs, *(entry.partition(" ")[0] for entry in check.programs))
        return any(name in (thing, thing.removesuffix("s")) for name in map(_squeezed, named))
    if isinstance(check, PathCheck):
        names = filter(None, map(_squeezed, (*check.paths, check.name)))
        return any(name in thing or thing in name for name in names)
    return said.casefold() in rule.casefold()  # what a text or code may not have is found by its form


def _thing(item: MemoryItem, said: str, quote: str = "") -> Thing | None:
    quote = quote or (item.evidence[0].quote if item.evidence else item.text)
    said = found[0] if (found := re.search(re.escape(said), quote, re.IGNORECASE)) else said
    at_hand = re.search(
        rf"\b(?:an?|another|the|this|that|these|those|your) (?:\w+ )?{re.escape(said)}", quote
    )
    if item.status == "candidate" and at_hand and said.islower() and not said.endswith("s"):
        return None  # "I don't want a lock here" is about one piece of work
    words = said.split()
    names = [
        word for word in words if re.search(r"[A-Z]", word[1:]) or f" {word[:1].upper()}{word[1:]}" in quote
    ]
    acts = bool(re.fullmatch(r"[a-z]+ing", words[0])) and len(words) > 1
    own = joined(" ".join(names))
    core = [word for word in words if word.casefold() not in _GENERIC]
    forms = {joined(said), *([own] if acts and own else ())}
    packages = {one for one in (own, joined(" ".join(core)), *_cores(own)) if len(one) >= _LEAST}
    if len(words) == 1:
        packages |= {joined(form) for form in meanings(said)}
    parts = tuple(joined(word) for word in words) if len(words) > 1 and not acts else ()
    others = other_names(words)
    around = (_EVERYWHERE.sub("", place) for place in _PLACE.findall(quote))
    return Thing(
        item=item,
        said=said,
        forms=frozenset(forms),
        packages=frozenset(packages),
        parts=parts,
        described=frozenset() if own or len(words) == 1 else frozenset(map(stem, content_words(said))),
        endings=others.endings | {ending for word in words for ending in _endings(word)},
        places=frozenset(stem(word) for place in around for word in content_words(place)),
        is_sort=not own[1:] and bool(re.search(r"[a-z]s$", words[-1])) and not acts,
        others=others,
        paths=_paths(quote) or item.scope.paths,
    )


def _paths(quote: str) -> tuple[str, ...]:
    """Return the globs of the places where a sentence rules something out, without those where it is fine."""
    clauses = (one for one in _CLAUSE.split(quote) if not _ALLOWS.search(one))
    return tuple(glob for clause in clauses for glob in reach_of(clause).scope.paths)


def _endings(word: str) -> tuple[str, ...]:
    globs = FILE_TYPES.get(word.casefold(), ()) if len(word) >= _LEAST else ()
    return tuple(glob.rpartition(".")[2] for glob in globs)


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
    return frozenset(singular(one) for one in found if one == word or len(one) > _LEAST)


@lru_cache(maxsize=16_384)
def _grams(text: str) -> frozenset[str]:
    """Return all runs of up to four parts of a name, joined: ``serviceWorker`` is also ``worker``."""
    parts = [part.casefold() for part in _PART.findall(text)[:40]]
    runs = {"".join(parts[start : start + size]) for start in range(len(parts)) for size in range(1, 5)}
    return frozenset(map(singular, runs))


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
    if not things:
        return []
    changes = tuple(changes)
    plain = _squeezed(" ".join((command, text, *(f"{one.path} {one.after or ''}" for one in changes))))
    near = [thing for thing in things if _may_be_in(thing, plain)]
    if not near:
        return []
    words = [*(names_in_command(command) if command else ()), *names_in_words(text)]
    written = [(change.path, list(names_in_change(change))) for change in changes]
    found = []
    for thing in near:
        names = [] if thing.paths and not _goes_to(thing, command) else words
        names = names + [one for path, each in written if _is_in(thing, path) for one in each]
        found.append((thing, _place(thing, names) or _described(thing, command)))
    return [Touched(thing.item, thing.said, place) for thing, place in found if place]


def _is_in(thing: Thing, path: str) -> bool:
    return not thing.paths or matches(thing.paths, path)


def _goes_to(thing: Thing, command: str) -> bool:
    """Return whether a command line names the folder in which a thing is ruled out."""
    return any(glob.rstrip("*/") in command for glob in thing.paths if glob.rstrip("*/"))


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _may_be_in(thing: Thing, plain: str) -> bool:
    """Return whether a text without spaces can have a thing, so that most actions are not read further."""
    others = (*thing.others.parts, *map(_squeezed, thing.others.wholes))
    if any(form in plain for form in (*thing.forms, *thing.packages, *thing.endings, *others)):
        return True
    several = bool(thing.parts) and all(part[:_LONG] in plain for part in thing.parts)
    return several or any(word[-_LONG:] in plain for word in thing.described)


def _place(thing: Thing, names: Iterable[AddedName]) -> str:
    """Return where an action brings a thing in; empty if it does not."""
    matchers = {
        "package": _is_package,
        "label": _is_label,
        "used": _is_used,
        "written": _is_written,
        "text": _is_text,
    }
    return next((name.place for name in names if matchers[name.use](thing, name)), "")


def _is_package(thing: Thing, name: AddedName) -> bool:
    if name.text.casefold() in thing.endings or _is_other(thing, name):
        return True
    if not thing.is_long:
        return joined(name.text) in thing.forms
    grams, wanted = _grams(name.text), thing.forms | thing.packages
    return (
        bool(wanted & grams)
        or any(wanted & _cores(gram) for gram in grams)
        or _has_all_parts(thing, name.text)
    )


def _is_label(thing: Thing, name: AddedName) -> bool:
    return joined(name.text) in thing.forms


def _is_used(thing: Thing, name: AddedName) -> bool:
    if _is_other(thing, name):
        return True
    return thing.is_long and (bool(thing.forms & _grams(name.text)) or _has_all_parts(thing, name.text))


def _is_other(thing: Thing, name: AddedName) -> bool:
    """Return whether a name is another name of a thing; a word in lower case only if it is a package."""
    if thing.others.parts and thing.others.parts & _grams(name.text):
        return True
    package = name.use == "package"
    whole = {name.text, *re.split(r"[./:@\s]", name.text)} if package else {name.text}
    return any(one in whole for one in thing.others.wholes if package or not one.islower())


def _is_written(thing: Thing, name: AddedName) -> bool:
    several = bool(thing.parts) and thing.is_long and bool(thing.forms & _grams(name.text))
    return several or _is_other(thing, name)


def _is_text(thing: Thing, name: AddedName) -> bool:
    """Return whether a sentence of a text is the thing itself, where it was ruled out."""
    if not thing.is_sort or not thing.forms & _grams(name.text):
        return False
    here = frozenset(map(stem, map(str.casefold, _PART.findall(name.place))))
    return not thing.places or bool(thing.places & here)


def _has_all_parts(thing: Thing, text: str) -> bool:
    """Return whether a name begins its parts with all words of a thing: ``fonts.googleapis.com``."""
    parts = [part.casefold() for part in _PART.findall(text)]
    return bool(thing.parts) and all(
        len(word) >= _LONG and any(part.startswith(word) for part in parts) for word in thing.parts
    )


def _described(thing: Thing, command: str) -> str:
    """Return the program that has all words of a described thing, as in "emailing the parents"."""
    if not command or len(thing.described) < 2:  # noqa: PLR2004 - one word is a name
        return ""
    for call in acting_calls(command):
        words = (call.program, *(word for word in call.arguments if not re.search(r"\s", word)))
        parts = {stem(part.casefold()) for word in words for part in _PART.findall(word)}
        if all(any(_same(word, part) for part in parts) for word in thing.described):
            return f"runs `{call.program}`"
    return ""


def _same(word: str, part: str) -> bool:
    return word == part or (
        min(len(word), len(part)) > _LEAST and (word.endswith(part) or part.endswith(word))
    )
