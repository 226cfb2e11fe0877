"""Checks of structure: code that may not or must be there, and decorators that functions must have."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentx.storage.matching import matcher
from agentx.storage.text import one_line, shorten
from agentx.synthesis.enforcement.breaches import Breach, CheckedChange, Side
from agentx.synthesis.enforcement.functions import CodeFunction, functions_of, is_meant, parses
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES, language_of, tree_of
from agentx.synthesis.memory.checks import DecoratorCheck, StructureCheck

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_META = re.compile(r"\$\$\$[A-Z_0-9]*|\$[A-Z_][A-Z_0-9]*")
_WORD = re.compile(r"[A-Za-z_]\w+")
_CALL = re.compile(r"[\w.:$>-]+\(.*\)", re.DOTALL)
_MEMBER = re.compile(r"->|::")
_CALL_CONTEXTS: dict[str, tuple[str, str]] = {
    "go": ("func f() { … }", "call_expression"),
    "rust": ("fn f() { …; }", "call_expression"),
    "c": ("void f() { …; }", "call_expression"),
    "cpp": ("void f() { …; }", "call_expression"),
    "java": ("class A { void f() { …; } }", "method_invocation"),
    "csharp": ("class A { void F() { …; } }", "invocation_expression"),
    "solidity": ("contract A { function f() { …; } }", "call_expression"),
    "php": ("<?php …;", "function_call_expression"),
}
"""By language in which a call alone is read as something else, a text around it, and the kind of a call."""

_NO_CODE = frozenset(("json", "yaml", "html", "css"))
"""Languages that a rule without languages does not mean."""

_LITERAL = re.compile(r"(?<![\\\w])\w{3,}(?![\w?*{])")
_SHOWN_WORDS = 12
_DIALECTS = {"tsx": "typescript"}
"""Languages that a check of another one covers, too."""


def broken_structures(check: StructureCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each new match, or one if a required match is missing."""
    if change.after is None or not _languages(check, change.path):
        return
    found = _matches(check, change, "after")
    if check.required:
        had = change.before is None or _matches(check, change, "before")
        if had and not found and not _is_blank(change):
            yield Breach(reason=f"{change.path} has no `{_wanted(check)}`.", line=1)
        return
    earlier = Counter(key for key, _ in _matches(check, change, "before"))
    instead = f" Use {check.instead} instead." if check.instead else ""
    for key, node in found:
        if earlier[key] > 0:
            earlier[key] -= 1
            continue
        line = node.range().start.line + 1
        shown = shorten(one_line(key), _SHOWN_WORDS)
        said = f"names `{shown}`" if check.names else f"has `{shown}`"
        yield Breach(reason=f"Line {line} of {change.path} {said}.{instead}", line=line)


def unreadable(pattern: str, language: str) -> str:
    """Return why a pattern cannot be read in a language; empty if it can.

    >>> unreadable("print($$$)", "python"), unreadable("import $X from 'lodash'", "python")
    ('', 'it is not valid python')
    """
    if language not in LANGUAGES.values():
        return f"{language} is not a known language"
    return "" if _reads(pattern, language) else f"it is not valid {language}"


def _languages(check: StructureCheck, path: str) -> str:
    """Return the language in which the check reads a file; empty if it is not about such files."""
    language = language_of(path)
    wanted = {language, _DIALECTS.get(language, language), "c" if path.casefold().endswith(".h") else ""}
    if check.languages:
        return language if wanted & set(check.languages) else ""
    if not check.patterns:
        return "" if language in _NO_CODE else language
    return language if all(_reads(pattern, language) for pattern in check.patterns) else ""


def _matches(check: StructureCheck, change: CheckedChange, side: Side) -> list[tuple[str, "SgNode"]]:
    """Return the matches that count, each with the text by which it is compared with the other side."""
    text = change.after if side == "after" else change.before
    if not text:
        return []
    found: list[tuple[str, SgNode]] = []
    for pattern in check.patterns:
        if all(word in text for word in _words(pattern)):
            found += _kept(check, _find(change, side, _rule_of(pattern, language_of(change.path))))
    if check.rule and all(word in text for word in _literals(_top_regex(check.rule))):
        nodes = _find(change, side, check.rule)
        found += _kept(check, nodes if check.names else _outermost(nodes))
    return found


def _outermost(nodes: Iterable["SgNode"]) -> Iterator["SgNode"]:
    """Yield the first of the nodes that begin at the same place: a statement rather than its expression."""
    begun: set[int] = set()
    for node in nodes:
        if (start := node.range().start.index) not in begun:
            begun.add(start)
            yield node


def _top_regex(rule: dict[str, Any]) -> str:
    """Return the regular expression that the text of each match satisfies; empty if there is none."""
    return str(rule.get("regex") or next(filter(None, map(_top_regex, rule.get("all", ()))), ""))


@lru_cache(maxsize=512)
def _literals(regex: str) -> tuple[str, ...]:
    r"""Return texts that each match of a regular expression contains, so that most files need not be parsed.

    >>> _literals(r"^GlobalScope\b"), _literals("^(?:one|two)")
    (('GlobalScope',), ())
    """
    plain = not re.search(r"[|\[(]", regex)
    return tuple(_LITERAL.findall(regex)) if plain else ()


def _rule_of(pattern: str, language: str) -> dict[str, Any]:
    """Return the rule for a pattern; a call gets a context where it would be read as something else."""
    context, kind = _CALL_CONTEXTS.get(language, ("", ""))
    if context and _CALL.fullmatch(pattern.strip()) and not (language == "php" and _MEMBER.search(pattern)):
        return {"pattern": {"context": context.replace("…", pattern), "selector": kind}}
    return {"pattern": pattern}


def _find(change: CheckedChange, side: Side, rule: dict[str, Any]) -> list["SgNode"]:
    root = tree_of(change, side)
    if root is None:
        return []
    try:
        found: list[SgNode] = root.find_all(**rule)
    except RuntimeError:  # the rule names nodes that this language does not have
        return []
    return found


def _kept(check: StructureCheck, nodes: Iterable["SgNode"]) -> Iterator[tuple[str, "SgNode"]]:
    for node in nodes:
        if not check.names:
            yield node.text(), node
        for variable, form in check.names.items():
            named = node.get_match(variable)
            if named is not None and not matcher.matches_whole(form, named.text()):
                yield named.text(), named


def _wanted(check: StructureCheck) -> str:
    return check.patterns[0] if check.patterns else "match of the rule"


def _is_blank(change: CheckedChange) -> bool:
    return not (change.after or "").strip()


@lru_cache(maxsize=512)
def _words(pattern: str) -> tuple[str, ...]:
    """Return words that each match contains, so that most texts need not be parsed."""
    return tuple(_WORD.findall(_META.sub(" ", pattern)))


@lru_cache(maxsize=512)
def _reads(pattern: str, language: str) -> bool:
    from ast_grep_py import SgRoot  # noqa: PLC0415 - loaded when the first file is parsed

    if language not in LANGUAGES.values():
        return False
    context, _ = _CALL_CONTEXTS.get(language, ("", "")) if _CALL.fullmatch(pattern.strip()) else ("", "")
    whole = (context or "…").replace("…", _META.sub("meta", pattern))
    return SgRoot(whole, language).root().find(kind="ERROR") is None


# --- decorators ---------------------------------------------------------------------------------------------


def missing_decorators(check: DecoratorCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each new function of the kind without the decorator."""
    if change.after is None:
        return
    known = {function.qualified for function in functions_of(change, "before")}
    kind = f"{check.functions} " if check.functions else ""
    for function in functions_of(change):
        if function.qualified in known or _carries(function, check.decorator):
            continue
        meant = is_meant(function, check.functions)
        if meant != "no" and parses(function):
            reason = (
                f"{function.qualified} at line {function.line} of {change.path} is a new {kind}function "
                f"without @{check.decorator}."
            )
            doubt = f"It is uncertain whether it is a {kind}function." if meant == "perhaps" else ""
            yield Breach(reason=reason, line=function.line, doubt=doubt)


def _carries(function: CodeFunction, decorator: str) -> bool:
    """Return whether a function has the decorator, or is the decorator itself."""
    wanted = re.split(r"\.|::", decorator)[-1]
    return function.name == wanted or any(
        name == decorator
        or re.split(r"\.|::", name)[-1] == decorator
        or (name == wanted and wanted != decorator)
        for name in function.decorators
    )
