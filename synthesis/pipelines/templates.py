"""Pipeline templates: Jinja in its sandbox, strict about names, deterministic, and guaranteed to terminate.

Only text that the user wrote in a pipeline's file is ever a template. File contents and agents' output are
values in one, so braces in them have no meaning. A template can print values, branch and loop. It has no
macros or includes, its loops share one limit of rounds, and constructs that could expand a short text to any
length are not available.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from agentx.storage.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from jinja2.nodes import Node
    from jinja2.runtime import Context

MAX_FILLED = 2_000_000
"""Maximum number of characters of a filled template."""

MAX_ROUNDS = 100_000
"""Maximum number of rounds of all loops of a template together; also the maximum length of a ``range``."""

MAX_WORK = 20_000_000
"""Maximum of what all steps of a template look at together, in characters."""

_ELEMENT = 10
"""An element of a list counts as so many characters."""

_SPEND = "_spend"
"""Name of the filter that counts what a step looks at."""

_ROUNDS = "_rounds"
"""Name of the counters among the values of a template: rounds, and work."""

_MAX_NUMBER = 10**15
_MAX_POWER = 64
_CACHED = 4_000

_SHORT = 10_000
"""Maximum length of a template that is filled without Jinja; a longer one is rare."""

_NAME = re.compile(r"\{\{ *([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?) *\}\}", re.ASCII)
_SIGN = re.compile(r"[{}\r]")
_CONSTANTS = frozenset(("true", "false", "none"))

_FILTERS = (
    "abs capitalize count d default dictsort first float int items join last length list lower map max min"
    " reject rejectattr replace reverse round select selectattr sort string sum title trim truncate unique"
    " upper wordcount"
)
_METHODS = (
    "capitalize count endswith get index items keys lower lstrip removeprefix removesuffix replace rstrip"
    " split splitlines startswith strip title upper values"
)
_ALLOWED = frozenset(_METHODS.split())
_REFUSED = ("Macro", "CallBlock", "Include", "Import", "FromImport", "Extends", "Block")
_ASKING = ("default", "d", "defined", "undefined")
_OPERATORS = {"+": operator.add, "*": operator.mul, "**": operator.pow, "%": operator.mod}


class TemplateInvalid(UsageError):
    """A template is not well-formed, or uses an undefined name."""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a template.

    Raises:
        TemplateInvalid: It is not a valid template, uses an undefined name, or does what the sandbox forbids.

    >>> fill("drafts/ch{{ chapter.id }}-draft.md", {"chapter": {"id": "03"}})
    'drafts/ch03-draft.md'
    """
    if "{" not in template:
        return template
    if (parts := _simple(template)) and (filled := _inserted(parts, values)) is not None:
        return filled
    made: list[str] = []
    size = 0
    with _translated():
        for part in _compiled(template).generate({**values, _ROUNDS: [0, 0]}):
            made.append(part)
            size += len(part)
            if size > MAX_FILLED:
                raise TemplateInvalid(f"the filled template is longer than {MAX_FILLED:,} characters")
    return "".join(made)


def has_names_alone(template: str) -> bool:
    """Return whether a template has nothing but text and names, so that its values stand in it as they are.

    >>> has_names_alone("Part {{ part.id }}"), has_names_alone("{% if part.last %}The end{% endif %}")
    (True, False)
    """
    return "{" not in template or bool(_simple(template))


@lru_cache(maxsize=_CACHED)
def _simple(template: str) -> tuple[str, ...]:
    """Return a template of names alone as text, name, text, … text; empty for any other.

    Jinja takes ten times as long for them, and plans of thousands of steps have little else.

    >>> _simple("{{ chapter.id }}-{{ words }}"), _simple("{{ words | int }}")
    (('', 'chapter.id', '-', 'words', ''), ())
    """
    parts = tuple(_NAME.split(template))
    other = any(_SIGN.search(part) for part in parts) or not _CONSTANTS.isdisjoint(
        map(str.lower, parts[1::2])
    )
    return () if other or len(template) > _SHORT else parts


def _inserted(parts: tuple[str, ...], values: Mapping[str, Any]) -> str | None:
    """Fill in a template of names alone; ``None`` if a value is not a text or a number, or is missing."""
    made = list(parts)
    for place in range(1, len(parts), 2):
        name, _, key = parts[place].partition(".")
        value = values.get(name)
        if key:
            value = value.get(key) if isinstance(value, dict) else None
        if type(value) is not str and type(value) is not int:
            return None
        made[place] = str(value)
    filled = "".join(made)
    return filled if len(filled) <= MAX_FILLED else None


def names_in(template: str) -> frozenset[tuple[str, str]]:
    """Return the names that a template requires, and the keys it requires of them.

    Raises:
        TemplateInvalid: It is not a valid template.

    >>> sorted(names_in("{{ chapter.id }}, {{ words | default(100) }}"))
    [('chapter', ''), ('chapter', 'id')]
    """
    if "{" not in template:
        return frozenset()
    with _translated():
        return _needed(template)


@contextmanager
def _translated() -> Iterator[None]:
    from jinja2 import TemplateError, TemplateSyntaxError  # noqa: PLC0415 - 60 ms, and only pipelines need it

    try:
        yield
    except TemplateSyntaxError as error:
        line = f" (line {error.lineno})" if error.lineno > 1 else ""
        raise TemplateInvalid(f"invalid template{line}: {error.message}") from error
    except TemplateError as error:
        raise TemplateInvalid(f"the template cannot be filled: {error.message or error}") from error
    except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise TemplateInvalid(f"the template cannot be filled: {error}") from error
    except (RecursionError, MemoryError) as error:
        why = "it is too deeply nested or too large"
        raise TemplateInvalid(f"the template cannot be filled: {why}") from error


@lru_cache(maxsize=_CACHED)
def _compiled(template: str) -> "Template":
    return _environment().from_string(template)


@lru_cache(maxsize=_CACHED)
def _needed(template: str) -> frozenset[tuple[str, str]]:
    from jinja2 import nodes  # noqa: PLC0415 - as above
    from jinja2.meta import find_undeclared_variables  # noqa: PLC0415

    tree = _environment().parse(template)
    asking = (*tree.find_all(nodes.Filter), *tree.find_all(nodes.Test))
    asked = [one.node for one in asking if one.name in _ASKING]
    spared = {id(one) for one in asked}
    maybe = {one.name for one in asked if isinstance(one, nodes.Name)}
    free = find_undeclared_variables(tree) - {"range", _ROUNDS} - maybe
    made = {(name, "") for name in free}
    got: Any
    for got in tree.find_all((nodes.Getattr, nodes.Getitem)):
        key = got.attr if isinstance(got, nodes.Getattr) else getattr(got.arg, "value", None)
        named = isinstance(got.node, nodes.Name) and got.node.name in free and isinstance(key, str)
        if named and id(got) not in spared:
            made.add((got.node.name, str(key)))
    return frozenset(made)


class _Limits:
    """Our stricter rules, mixed in before Jinja's sandbox."""

    intercepted_binops = frozenset(_OPERATORS)

    def call_binop(self, context: "Context", sign: str, left: Any, right: Any) -> Any:
        if sign == "+":
            return _spent(context, left) + _spent(context, right)
        small = all(isinstance(one, int | float) and abs(one) <= _MAX_NUMBER for one in (left, right))
        if not small or (sign == "**" and abs(right) > _MAX_POWER):
            raise TemplateInvalid(f"the template cannot be filled: operands of `{sign}` are too large")
        return _OPERATORS[sign](left, right)

    def call(self, context: "Context", called: Any, /, *args: Any, **kwargs: Any) -> Any:
        from jinja2 import Undefined  # noqa: PLC0415 - as above

        owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
        method = isinstance(owner, str | dict | list) and name in _ALLOWED
        if not (method or called is _range or isinstance(called, Undefined)):
            raise TemplateInvalid("the template cannot be filled: it calls a function that is not allowed")
        own = {key: one for key, one in kwargs.items() if key not in ("_loop_vars", "_block_vars")}
        for one in (owner if method else None, *args, *own.values()):
            _spent(context, one)
        return called(*args, **own)

    def is_safe_attribute(self, owner: Any, name: str, value: Any) -> bool:
        parent: Any = super()
        plain = isinstance(owner, str | dict | list | tuple | int | float)
        return name in _ALLOWED if plain else bool(parent.is_safe_attribute(owner, name, value))

    def getattr(self, owner: Any, name: str) -> Any:
        parent: Any = super()
        known = isinstance(owner, Mapping) and name in owner  # a key named `items` is meant, not the method
        return owner[name] if known else parent.getattr(owner, name)

    def _parse(self, source: str, name: str | None, filename: str | None) -> "Node":
        from jinja2 import TemplateSyntaxError, nodes  # noqa: PLC0415 - as above

        parent: Any = super()
        tree: nodes.Template = parent._parse(source, name, filename)  # noqa: SLF001 - Jinja's extension point
        _count_steps(tree)
        for one in tree.find_all(nodes.Stmt):
            if type(one).__name__ in _REFUSED:
                raise TemplateSyntaxError(f"{{% {type(one).__name__.lower()} %}} is not allowed", one.lineno)
            if isinstance(one, nodes.For):
                if one.recursive:
                    raise TemplateSyntaxError("recursive loops are not allowed", one.lineno)
                text = nodes.Const(sum(len(part.data) for part in one.find_all(nodes.TemplateData)))
                one.iter = nodes.Filter(one.iter, _ROUNDS, [text], [], None, None, lineno=one.lineno)
        return tree


def _count_steps(tree: "Node") -> None:
    """Have what is printed, joined, cut and compared counted; filters, tests and calls do so themselves."""
    from jinja2 import nodes  # noqa: PLC0415 - as above

    def counted(one: Any) -> Any:
        plain = isinstance(one, nodes.TemplateData | nodes.Const)
        return one if plain else nodes.Filter(one, _SPEND, [], [], None, None, lineno=one.lineno)

    kinds = (nodes.Output, nodes.Concat, nodes.Compare, nodes.Getitem)
    for one in list(tree.find_all(kinds)):
        match one:
            case nodes.Output() | nodes.Concat():
                one.nodes = [counted(part) for part in one.nodes]
            case nodes.Compare():
                one.expr = counted(one.expr)
                for other in one.ops:
                    other.expr = counted(other.expr)
            case nodes.Getitem() if isinstance(one.arg, nodes.Slice):
                one.node = counted(one.node)


class _Missing:
    """Represents an undefined name."""

    @property
    def _undefined_message(self) -> str:
        value: Any = self
        owner, name = value._undefined_obj, value._undefined_name  # noqa: SLF001 - documented for subclasses
        if isinstance(owner, Mapping):
            return f"undefined key {name!r}; known: {', '.join(map(str, owner)) or 'none'}"
        return f"undefined name {name!r}"


def _range(*numbers: int) -> range:
    made = range(*numbers)
    if len(made) > MAX_ROUNDS:
        raise TemplateInvalid(f"the template cannot be filled: a range has at most {MAX_ROUNDS:,} numbers")
    return made


def _spent(context: "Context", value: Any) -> Any:
    """Return a value that a step looks at; it counts. What is only met one by one is met now."""
    if isinstance(value, Iterator):
        value = list(value)
    counts = context[_ROUNDS]
    waiting = [value]
    while waiting and counts[1] <= MAX_WORK:
        one = waiting.pop()
        if isinstance(one, str):
            counts[1] += len(one)
        elif isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list | tuple | set | frozenset | range):
            if isinstance(one, range):
                counts[1] += _ELEMENT * len(one)
            else:
                waiting += one
        counts[1] += _ELEMENT
    if counts[1] > MAX_WORK:
        raise TemplateInvalid(
            "the template cannot be filled: its steps together look at too much "
            f"(more than {MAX_WORK:,} characters, of which an element of a list counts as {_ELEMENT})"
        )
    return value


def _bounded(name: str, function: Any) -> Callable[..., Any]:
    """Return a filter, or a test, that counts what it looks at, and what it makes of it."""
    from jinja2 import pass_context  # noqa: PLC0415 - as above
    from jinja2.utils import _PassArg  # noqa: PLC0415 - what Jinja's compiler asks, too

    needs = _PassArg.from_obj(function)

    @pass_context
    def filtered(context: "Context", *args: Any, **kwargs: Any) -> Any:
        given = [_spent(context, one) for one in args]
        named = {key: _spent(context, one) for key, one in kwargs.items()}
        if name == "sum" and not isinstance(named.get("start", [*given, 0, 0, 0][2]), int | float):
            raise TemplateInvalid("the template cannot be filled: `sum` adds numbers alone")
        if name in ("replace", "join"):
            _spend_growth(context, given, named)
        first = {
            _PassArg.context: context,
            _PassArg.eval_context: context.eval_ctx,
            _PassArg.environment: context.environment,
        }
        return function(*([first[needs]] if needs else []), *given, **named)

    return filtered


def _spend_growth(context: "Context", given: list[Any], named: Mapping[str, Any]) -> None:
    """Count what `replace` and `join` make, in which one text may stand many times."""
    texts = [one for one in (*given[1:], *named.values()) if isinstance(one, str)]
    places = len(given[0]) + 1 if hasattr(given[0], "__len__") else len(str(given[0])) + 1
    longest = max(map(len, texts), default=0)
    if len(given) + len(named) > 2 and isinstance(given[0], str) and texts[0]:  # noqa: PLR2004 - old, new
        places = given[0].count(texts[0])
    _spent(context, range(places * longest // _ELEMENT))


def _counted(context: "Context", values: Iterable[Any], text: int) -> list[Any]:
    made = list(values)
    _spent(context, range(len(made) * text // _ELEMENT))
    count = context[_ROUNDS]
    count[0] += max(1, len(made))
    if count[0] > MAX_ROUNDS:
        raise TemplateInvalid(f"the template cannot be filled: its loops run more than {MAX_ROUNDS:,} times")
    return made


@cache
def _environment() -> "Environment":
    from jinja2 import StrictUndefined, pass_context  # noqa: PLC0415 - as above
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    limited: Any = type("Limited", (_Limits, ImmutableSandboxedEnvironment), {})
    missing = type("Missing", (_Missing, StrictUndefined), {"__slots__": ()})
    made: Environment = limited(
        undefined=missing, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    made.filters = {name: made.filters[name] for name in _FILTERS.split()}
    made.filters["escape"] = lambda value: escape(str(value))
    made.filters = {name: _bounded(name, one) for name, one in made.filters.items()}
    made.tests = {name: one if name in _ASKING else _bounded(name, one) for name, one in made.tests.items()}
    made.filters |= {_SPEND: pass_context(_spent), _ROUNDS: pass_context(_counted)}
    made.globals = {"range": _range}
    return made
