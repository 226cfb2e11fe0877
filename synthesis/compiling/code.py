"""Compiles rules about code: what may not be written, and what declarations must have."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from agentx.synthesis.compiling.concepts import Finder, concepts
from agentx.synthesis.compiling.declared import compile_arguments, compile_marks, compile_names
from agentx.synthesis.compiling.reading.mentions import Mention, is_coded, mentions_of
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import Stance, stance
from agentx.synthesis.compiling.reading.tables import CALLS
from agentx.synthesis.compiling.reading.where import Where, files_of, where_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, PathCheck, StructureCheck, TextCheck

_NOT_CODE = compiled(
    r"\b(?:packages?|librar(?:y|ies)|dependenc\w+|package\.json|requirements|install\w*|commands?|flags?"
    r"|commit messages?"
    r"|branch(?:es)?)\b"
)
_PLACED = compiled(r"\b(?:in|inside|within|from|into|under) (?:the |an? |any )?$")
_ANYTHING = r"(?:\w+(?:\.|::|->))?"
_TEST_BLOCK = {"inside": {"kind": "mod_item", "regex": r"^(?:pub\s+)?mod\s+tests?\b", "stopBy": "end"}}
_OUTSIDE_PACKAGE = compiled(
    r"\b(?:outside|except in|other than in|apart from)(?: of)? (?:the )?(?:package )?[`\"']?(?P<name>main)\b"
)


def compile_code(reading: RuleReading) -> tuple[Check, ...]:
    """Return the checks of a rule about code."""
    where = where_of(reading)
    if where.open:
        return ()
    if where.prose:
        named = tuple(one for one in compile_names(reading, where) if isinstance(one, PathCheck))
        return named or tuple(one for one in _mentioned(reading, where, []) if isinstance(one, TextCheck))
    for compiler in (compile_names, _required, compile_marks, compile_arguments):
        if checks := tuple(compiler(reading, where)):
            return checks
    taken: list[tuple[int, int]] = []
    checks = (*_concepts(reading, where, taken), *_mentioned(reading, where, taken))
    return checks or tuple(_opposites(reading, where))


def _doubt(where: Where, found: Stance) -> str:
    return where.doubt or ("whether the rule forbids it, or only reports of it" if found == "blamed" else "")


def _structure(where: Where, languages: Iterable[str], finder: Finder, doubt: str) -> StructureCheck:
    fields: dict[str, Any] = {"patterns": finder} if isinstance(finder, tuple) else {"rule": finder}
    languages = tuple(languages)
    if "rust" in languages and any("test" in glob for glob in where.exceptions):
        rule = fields.pop("rule", None) or {"any": [{"pattern": one} for one in fields.pop("patterns")]}
        fields = {"rule": {"all": [rule, {"not": _TEST_BLOCK}]}}
    return StructureCheck(
        languages=languages, paths=where.paths, exceptions=where.exceptions, doubt=doubt, **fields
    )


# --- what every programmer has a word for ---


def _by_language(
    where: Where, finders: dict[tuple[str, ...], Finder], doubt: str, words: str = ""
) -> Iterator[StructureCheck]:
    for languages, finder in finders.items():
        meant = [one for one in languages if not where.languages or one in where.languages]
        if "go" in meant and (package := _OUTSIDE_PACKAGE.search(words)):
            clause = {"kind": "package_clause", "regex": rf"\s{package['name']}$"}
            outside = {"not": {"inside": {"kind": "source_file", "has": clause, "stopBy": "end"}}}
            rule = {"any": [{"pattern": one} for one in finder]} if isinstance(finder, tuple) else finder
            yield _structure(where, meant, {"all": [rule, outside]}, doubt)
        elif meant:
            yield _structure(where, meant, finder, doubt)


def _concepts(reading: RuleReading, where: Where, taken: list[tuple[int, int]]) -> Iterator[Check]:
    for concept in concepts().forbidden:
        for match in concept.words.finditer(reading.words):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            if not any(_by_language(where, concept.finders, "")):
                break
            taken.append(match.span())
            found = stance(reading.words, *match.span())
            if found in ("banned", "blamed"):
                yield from _by_language(where, concept.finders, _doubt(where, found), reading.words)
                break


def _required(reading: RuleReading, where: Where) -> Iterator[Check]:
    for concept in concepts().required:
        for match in concept.words.finditer(reading.words):
            if stance(reading.words, *match.span()) == "wanted":
                yield from _by_language(where, concept.finders, where.doubt)
                return


def _opposites(reading: RuleReading, where: Where) -> Iterator[Check]:
    """Yield the checks of what is forbidden because its only alternative is demanded."""
    for words, concept in concepts().opposites:
        match = words.search(reading.words)
        if match and stance(reading.words, *match.span()) == "wanted":
            yield from _by_language(where, concept.finders, where.doubt)
            return


# --- pieces of code ---


def _mentioned(reading: RuleReading, where: Where, taken: list[tuple[int, int]]) -> Iterator[Check]:
    coded = bool(where.languages) or is_coded(reading.words)
    wanted: list[str] = []
    groups: dict[tuple[str, str], list[Mention]] = {}
    for one in mentions_of(reading.words, coded=coded):
        if (one.form != "call" and _PLACED.search(reading.words[: one.start])) or not one.text.strip():
            continue
        if one.form in ("phrase", "command") or any(
            start < one.end and one.start < end for start, end in taken
        ):
            continue
        found = stance(reading.words, one.start, one.end)
        if found in ("banned", "blamed") and not (one.form == "name" and _NOT_CODE.search(reading.words)):
            groups.setdefault((one.form, _doubt(where, found)), []).append(one)
        elif found in ("wanted", "allowed"):
            wanted.append(one.text)
    for (form, doubt), mentions in groups.items():
        names = list(dict.fromkeys(one.text for one in mentions if one.text not in wanted))
        for languages, some in _by_known_language(names, where).items():
            yield from _piece(where, form, languages, some, doubt)


def _by_known_language(names: list[str], where: Where) -> dict[tuple[str, ...], list[str]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(where.languages or _known(name), []).append(name)
    return groups


def _known(name: str) -> tuple[str, ...]:
    """Return the languages in which the name of a call is known."""
    bare = name.lstrip(".")
    found = [one for names, languages in CALLS.items() if re.fullmatch(names, bare) for one in languages]
    return tuple(dict.fromkeys(found))


def _piece(
    where: Where, form: str, languages: tuple[str, ...], names: list[str], doubt: str
) -> Iterator[Check]:
    if form == "snippet":
        patterns = tuple(_as_text(name) for name in names)
        paths = where.paths or files_of(languages)
        yield TextCheck(
            patterns=patterns, paths=paths, exceptions=where.exceptions, places=("files",), doubt=doubt
        )
        return
    calls = [one for one in names if form == "call" and not one.endswith("!") and "ruby" not in languages]
    dotted = [one for one in calls if re.search(r"\w(?:\.|::|->)\w", one)]
    patterns = tuple(pattern for one in calls if one not in dotted for pattern in _call(one, languages))
    if patterns:
        yield _structure(where, languages, patterns, doubt)
    if others := [one for one in names if one in dotted or one not in calls]:
        begins = "|".join(_begins(one) for one in others)
        yield _structure(where, languages, {"regex": begins}, doubt)


def _call(name: str, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield the patterns of a call: of a function, or of a method if it is not a known function."""
    bare = name.lstrip(".")
    method = not _known(bare) or languages == ("rust",)
    if not name.startswith("."):
        yield f"{bare}($$$)"
        if "javascript" in languages and not method:
            yield f"window.{bare}($$$)"
    if name.startswith(".") or method:
        yield f"$X->{bare}($$$)" if languages == ("php",) else f"$X.{bare}($$$)"


def _begins(name: str) -> str:
    """Return the regular expression of code that begins with a name."""
    if name.startswith("@"):
        return rf"^{re.escape(name)}\b"
    escaped = re.escape(name.lstrip("."))
    if name.startswith("."):
        return rf"^\w+\.{escaped}\b"
    prefix = _ANYTHING if re.search(r"\w(?:\.|::|->)\w", name) else ""
    return rf"^{prefix}{escaped}" + (r"\b" if re.search(r"\w$", name) else "")


def _as_text(code: str) -> str:
    """Return the regular expression of a piece of code in a text; spaces count as any space."""
    pattern = r"\s+".join(map(re.escape, code.split()))
    return (r"\b" if re.match(r"\w", code) else "") + pattern + (r"\b" if re.search(r"\w$", code) else "")
