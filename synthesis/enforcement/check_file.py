"""Checks as YAML: one mapping, or a list of them, each with its ``kind``.

Keys are the fields of the kind in :mod:`agentx.synthesis.memory.checks`.
A single value may be given for a list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from agentx.storage.matching import matcher
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES
from agentx.synthesis.memory.checks import (
    Check,
    CommandCheck,
    ContentCheck,
    DependencyCheck,
    PathCheck,
    StructureCheck,
    TextCheck,
)
from agentx.synthesis.pipelines.definition.faults import Faults, PipelineInvalid, Place, hint
from agentx.synthesis.pipelines.definition.yaml_lines import as_yaml, plain

KINDS: dict[str, type[Any]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Check)}
"""The kinds of checks by name."""

_OURS = frozenset(("by_hand", "written_by"))
"""Fields that the file does not have."""

_EXPRESSIONS: dict[type[Any], tuple[str, ...]] = {
    PathCheck: ("name",),
    TextCheck: ("patterns",),
    ContentCheck: ("patterns",),
    CommandCheck: ("arguments",),
    StructureCheck: ("names",),
}
"""By kind, the fields that hold regular expressions."""

_ANY_OF: dict[type[Any], tuple[str, ...]] = {
    PathCheck: ("paths",),
    TextCheck: ("phrases", "patterns"),
    StructureCheck: ("patterns", "rule"),
    DependencyCheck: ("packages",),
    ContentCheck: ("header", "sections", "patterns"),
}
"""By kind, fields of which one must be given; without it, the check would check nothing."""

_NAMED = {str: "a text", bool: "true or false", int: "a whole number", dict: "a mapping"}
_CLOSING = {")": "(", "]": "[", "}": "{"}


class CheckFileInvalid(PipelineInvalid):
    """A file does not describe checks; the message names each fault with its line."""


def parse_checks(text: str, path: str) -> tuple[Check, ...]:
    r"""Parse checks from YAML.

    Args:
        text: The YAML.
        path: The name of the file, for messages.

    Raises:
        CheckFileInvalid: The text does not describe checks.

    >>> (check,) = parse_checks("kind: path\npaths: '*.docx'", "rule.yaml")
    >>> check.paths
    ('*.docx',)
    """
    try:
        value, source = plain(text, path)
    except PipelineInvalid as error:
        raise CheckFileInvalid(path, error.faults) from error
    faults = Faults(source)
    made: list[Check] = []
    for number, one in enumerate(value if isinstance(value, list) else [value]):
        made += _check(one, (number,) if isinstance(value, list) else (), faults)
    if faults.found:
        raise CheckFileInvalid(path, faults.found)
    return tuple(made)


def format_checks(checks: Iterable[Check]) -> str:
    """Format checks as YAML, with only the fields that differ from their defaults.

    >>> print(format_checks([PathCheck(paths=("*.docx",), mode="warn")]), end="")
    kind: path
    mode: warn
    paths:
    - '*.docx'
    """
    values = [
        {key: value for key, value in msgspec.to_builtins(check).items() if key not in _OURS}
        for check in checks
    ]
    return as_yaml(values[0] if len(values) == 1 else values)


def expressions_of(check: Check) -> Iterator[str]:
    """Yield the regular expressions of a check.

    >>> list(expressions_of(PathCheck(name="[a-z]+")))
    ['[a-z]+']
    """
    for name in _EXPRESSIONS.get(type(check), ()):
        value = getattr(check, name)
        yield from [value] if isinstance(value, str) else value.values() if isinstance(value, dict) else value


def _check(value: Any, place: Place, faults: Faults) -> list[Check]:
    """Convert one mapping to a check; none if it has a fault."""
    if not isinstance(value, dict):
        faults.add(place, "a check is a mapping with a `kind`")
        return []
    if "kind" not in value:
        faults.add(place, f"missing key `kind`{hint('', KINDS)}")
        return []
    kind = KINDS.get(str(value["kind"]))
    if kind is None:
        faults.add((*place, "kind"), f"unknown kind {value['kind']!r}{hint(str(value['kind']), KINDS)}")
        return []
    before = len(faults.found)
    types = get_type_hints(kind)
    fields = {field.name: field for field in msgspec.structs.fields(kind) if field.name not in _OURS}
    for key in value.keys() - fields.keys() - {"kind"}:
        faults.add((*place, key), f"unknown key {key!r}{hint(key, fields)}")
    given = {
        key: _value(value[key], types[key], (*place, key), faults)
        for key in fields
        if value.get(key, "") != ""
    }
    for name, field in fields.items():
        if field.required and name not in given:
            faults.add(place, f"missing key `{name}`")
    if (
        len(faults.found) == before
        and (some := _ANY_OF.get(kind))
        and not any(given.get(name) for name in some)
    ):
        faults.add(place, f"give {' or '.join(some)}")
    if len(faults.found) == before:
        _look_inside(kind, given, place, faults)
    return [kind(**given, by_hand=True)] if len(faults.found) == before else []


def _value(value: Any, expected: Any, place: Place, faults: Faults) -> Any:
    """Convert a value, whose scalars are texts, to the type of its field."""
    arguments = get_args(expected)
    if get_origin(expected) is tuple:
        items = value if isinstance(value, list) else [value]
        return tuple(
            _value(one, arguments[0], (*place, number) if items is value else place, faults)
            for number, one in enumerate(items)
        )
    if get_origin(expected) is Literal:
        if value not in arguments:
            faults.add(place, f"unknown value {value!r}{hint(str(value), arguments)}")
        return value
    try:
        return msgspec.convert(value, expected, strict=False)
    except msgspec.ValidationError:
        wanted = _NAMED[get_origin(expected) or expected]
        shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
        faults.add(place, f"expected {wanted}, not {shown}")
        return value


def _look_inside(kind: type[Any], given: Mapping[str, Any], place: Place, faults: Faults) -> None:
    """Record regular expressions, languages and patterns that cannot be used."""
    for name in _EXPRESSIONS.get(kind, ()):
        value = given.get(name, ())
        keys: Iterable[tuple[Place, str]] = (
            [((name,), value)]
            if isinstance(value, str)
            else [((name, key), one) for key, one in value.items()]
            if isinstance(value, dict)
            else [((name, number), one) for number, one in enumerate(value)]
        )
        for key, expression in keys:
            if why := matcher.fault(expression):
                faults.add((*place, *key), f"not a regular expression: {why}: {expression!r}")
    if kind is StructureCheck:
        _look_at_patterns(given, place, faults)


def _look_at_patterns(given: Mapping[str, Any], place: Place, faults: Faults) -> None:
    known = sorted(set(LANGUAGES.values()))
    languages = given.get("languages", ())
    for number, language in enumerate(languages):
        if language not in known:
            faults.add((*place, "languages", number), f"unknown language {language!r}{hint(language, known)}")
            return
    rules: list[tuple[Place, dict[str, Any]]] = [
        (("patterns", number), {"pattern": pattern})
        for number, pattern in enumerate(given.get("patterns", ()))
    ]
    rules += [(("rule",), given["rule"])] if given.get("rule") else []
    for key, rule in rules:
        if not _balanced(rule.get("pattern", "")):
            faults.add((*place, *key), f"the brackets of the pattern {rule['pattern']!r} do not match")
            continue
        whys = [_unusable(rule, language) for language in languages or known]
        if any(whys) if languages else all(whys):
            faults.add((*place, *key), f"not a pattern of ast-grep: {next(filter(None, whys))}")


def _unusable(rule: dict[str, Any], language: str) -> str:
    """Return why ast-grep cannot use a rule in a language; empty if it can."""
    from ast_grep_py import SgRoot  # noqa: PLC0415 - only structure checks need it

    try:
        SgRoot("", language).root().find(cast("Any", {"rule": rule}))
    except Exception as error:  # noqa: BLE001 - ast-grep raises plain exceptions
        lines = str(error).partition("\n\nStack backtrace")[0].strip().splitlines()
        return re.sub(r"^\s*\d+: ", "", lines[-1]).strip() if lines else type(error).__name__
    return ""


def _balanced(pattern: Any) -> bool:
    if not isinstance(pattern, str):
        return True
    open_: list[str] = []
    for mark in re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", "", pattern):
        if mark in "([{":
            open_.append(mark)
        elif mark in _CLOSING and (not open_ or open_.pop() != _CLOSING[mark]):
            return False
    return not open_
