"""Dynamic fields: values for each ``{{name}}`` in a directive's prompt, looked up in history before each run.

A field is resolved by a named, typed resolver: a function of :class:`~agentx.synthesis.directing.past.Past`
whose keyword arguments are ``int``, ``float``, ``str`` or a :class:`JSONPath`. A program registers its own::

    @resolver("open_orders")
    def open_orders(past: Past, *, shop: str) -> int: ...

A directive calls it: ``open_orders(shop=berlin)``. Each resolver also takes ``default``, the value to use if
the history has no answer.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Self, TypeVar

import msgspec

from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import one_line
from agentx.synthesis.directing.acts import Listed, data_of, listing
from agentx.synthesis.directing.foreign_texts import quoted
from agentx.synthesis.directing.past import Call, Past, readable
from agentx.synthesis.memory.vitality import days_between
from agentx.synthesis.state.state import RECENT_RUNS

Value = int | float | str | list[str] | list[Listed]
"""What a resolver returns; a list becomes one line per entry."""

Resolver = Callable[..., Value]

RESOLVERS: dict[str, Resolver] = {}
"""All registered resolvers, by name."""

R = TypeVar("R", bound=Resolver)

VALUES_CHARACTERS = 60_000
"""Maximum length of a list in a prompt, since lists grow with the history; the number of omitted entries
follows."""

VALUE_CHARACTERS = 2_000
"""Longer texts are cut to this length."""

MAX_PATH, MAX_COMMAS = 200, 16
"""Maximum characters of a JSONPath, and alternatives in it; each alternative doubles the search."""

_FIELD = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\"[^\"]*\"|[^,\"]*?)\s*(?:,|$)")
_PATTERN = re.compile(r"\b(?:match|search)\s*\(|=~")
_HOURS_A_DAY = 24
_ROUND = 1e5
"""Numbers from this size on are shown without decimals."""
_RUNS = inspect.Parameter("runs", inspect.Parameter.KEYWORD_ONLY, default=RECENT_RUNS)
"""Default range of a resolver without a ``runs`` parameter."""


class FieldUnresolved(AgentXError):
    """A dynamic field of a directive has no value, so the run does not start."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(
            f"The field {{{{{field}}}}} of the directive cannot be resolved: {reason}. "
            "Nothing was given to the executor; have a new one written: `agentx agent direct --now`."
        )
        self.field = field


class Lookup(msgspec.Struct, frozen=True):
    """A resolver and its arguments."""

    name: str
    arguments: dict[str, Any]


class JSONPath(str):
    """A validated path (RFC 9535) whose search time grows only with the document.

    Raises:
        ValueError: The path is invalid or too long, searches every depth twice, or matches patterns.
    """

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        """Validate a path."""
        if (
            len(path) > MAX_PATH
            or path.count("..") > 1
            or path.count(",") > MAX_COMMAS
            or _PATTERN.search(path)
        ):
            raise ValueError(
                f"{path[:MAX_PATH]!r} is not a supported JSONPath: at most {MAX_PATH} characters, "
                f"{MAX_COMMAS} commas, one '..' and no patterns"
            )
        compiled(path)
        return super().__new__(cls, path)


@functools.lru_cache(maxsize=64)
def compiled(path: str) -> Any:
    """Return a path as a query that is run with ``findall(document)``.

    Raises:
        ValueError: It is not a JSONPath.
    """
    import jsonpath  # noqa: PLC0415 - 40 ms, and few prompts have such a field

    try:
        return jsonpath.compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise ValueError(f"{path!r} is not a valid JSONPath: {one_line(str(error))}") from error


_TYPES = (int, float, str, JSONPath)


class NoAnswer(UsageError):
    """The history has no answer to a resolver's question."""


def resolver(name: str) -> Callable[[R], R]:
    """Register a resolver under a name.

    Raises:
        UsageError: The name is taken or not an identifier, or a parameter has a type that a directive cannot
            give.
    """
    if not name.isidentifier() or name in RESOLVERS:
        raise UsageError(
            f"A resolver cannot be called {name!r}: it is taken, or not an identifier. Choose another."
        )

    def register(resolve: R) -> R:
        for parameter in _parameters(resolve).values():
            if parameter.annotation not in ((int,) if parameter.name == "runs" else _TYPES):
                raise UsageError(
                    f"The parameter {parameter.name} of the resolver {name} is not an int, float, str "
                    "or JSONPath; give it one of these types (runs is an int)."
                )
        RESOLVERS[name] = resolve
        return resolve

    return register


def names(prompt: str) -> list[str]:
    """Return the distinct fields of a prompt, in order.

    >>> names("Look at the last {{hours}} hours. {{ hours }} {{seen}}")
    ['hours', 'seen']
    """
    return list(dict.fromkeys(_FIELD.findall(prompt)))


def fill(prompt: str, values: Mapping[str, str]) -> str:
    """Replace the fields of a prompt by their values, once: a value that looks like a field is kept.

    Raises :class:`FieldUnresolved` if a field has no value.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise FieldUnresolved(found[1], "it has no value")
        return values[found[1]]

    return _FIELD.sub(value, prompt)


def parse(text: str) -> Lookup | None:
    """Parse a resolver call; return ``None`` for a description in words.

    Raises:
        UsageError: A known resolver is called with arguments that it does not take.

    >>> parse("values(tool=send_email, path=titles[*], runs=5)").arguments["runs"]
    5
    >>> parse("titles of the last five mails") is None
    True
    """
    found = _CALL.fullmatch(text.strip())
    if found is None or found[1] not in RESOLVERS:
        return None
    name, inner = found[1], (found[2] or "").strip()
    given = {key: value.strip('"') for key, value in _ARGUMENT.findall(inner)}
    if inner and _ARGUMENT.sub("", inner).strip():
        raise UsageError(f"{text!r} is not a call of {name}; write {name}(key=value, …).")
    return Lookup(name, _typed(name, given))


def _typed(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    parameters = _parameters(RESOLVERS[name])
    unknown = given.keys() - parameters.keys() - {"default"}
    missing = [key for key, one in parameters.items() if one.default is one.empty and key not in given]
    if unknown or missing:
        wrong = f"takes no {min(unknown)}" if unknown else f"needs {missing[0]}"
        raise UsageError(f"The resolver {name} {wrong}; it takes {', '.join([*parameters, 'default'])}.")
    try:
        kinds = {key: one.annotation for key, one in parameters.items()} | {"default": str}
        typed = {key: kinds[key](value) for key, value in given.items()}
    except ValueError as error:
        raise UsageError(f"The resolver {name} cannot read its arguments: {error}.") from error
    if int(typed.get("runs", 0)) < 0:
        raise UsageError(f"The resolver {name} looks at no negative number of runs.")
    return typed


def _parameters(resolve: Resolver) -> dict[str, inspect.Parameter]:
    """Return the parameters of a resolver after ``past``."""
    return dict(list(inspect.signature(resolve, eval_str=True).parameters.items())[1:])


def signatures() -> list[str]:
    """Describe how each resolver is called, and what it returns."""
    lines = []
    for name, resolve in sorted(RESOLVERS.items()):
        defaults = {key: one.default for key, one in _parameters(resolve).items()}
        shown = (f"{key}={'…' if one is inspect.Parameter.empty else one}" for key, one in defaults.items())
        about = inspect.cleandoc(resolve.__doc__ or "").partition("\n")[0]
        lines.append(f"{name}({', '.join(shown)})" + (f": {about}" if about else ""))
    return lines


def runs_needed(lookups: Iterable[Lookup]) -> int:
    """Return how many runs back the resolvers look; 0 for all runs."""
    wanted = [
        int(lookup.arguments.get("runs", _parameters(RESOLVERS[lookup.name]).get("runs", _RUNS).default))
        for lookup in lookups
    ]
    return 0 if 0 in wanted else max(wanted, default=1)


def resolve(lookup: Lookup, past: Past) -> str:
    """Return a resolver's result, formatted for a prompt.

    Raises :class:`NoAnswer` if the history has no answer and no default was given.
    """
    return shown(answer(lookup, past))


def answer(lookup: Lookup, past: Past) -> Value:
    """Return a resolver's result; the default if the history has no answer.

    Raises :class:`NoAnswer` if there is no default either.
    """
    arguments = dict(lookup.arguments)
    default = arguments.pop("default", None)
    try:
        value = RESOLVERS[lookup.name](past, **arguments)
        shown(value)
    except NoAnswer:
        if default is None:
            raise
        return str(default)
    except UsageError:
        raise
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}")[:VALUE_CHARACTERS]
        raise UsageError(f"The resolver {lookup.name} failed: {why}.") from error
    return value


def as_data(value: Value) -> Any:
    """Return a resolver's result as a JSON value; acts by name."""
    if isinstance(value, list) and any(isinstance(one, Listed) for one in value):
        return data_of(one for one in value if isinstance(one, Listed))
    return value


def shown(value: Value) -> str:
    r"""Format a value for a prompt: round a number, put a text on one line, a list on one line per entry.

    Raises:
        NoAnswer: The value is empty.
        TypeError: The value has another type.

    >>> shown(6.0), shown(2.4999), shown(["a", 'b"\n- "c'])
    ('6', '2.5', '- "a"\n- "b\' - \'c"')
    """
    match value:
        case list() if all(isinstance(one, Listed) for one in value) and value:
            return listing([one for one in value if isinstance(one, Listed)])
        case list():
            return _listed([one for one in value if isinstance(one, str)])
        case str():
            return one_line(value)[:VALUE_CHARACTERS] or _none("it is an empty text")
        case float() if math.isfinite(value):
            return f"{round(value, 1):g}" if abs(value) < _ROUND else f"{value:.0f}"
        case int():
            return str(value)
    raise TypeError(f"it returned {value!r}, which is not a number, a text or a list of texts")


def _listed(entries: Sequence[str]) -> str:
    lines: list[str] = []
    size = 0
    different = dict.fromkeys(f"- {quoted(entry)}" for entry in entries)
    for line in different:
        size += len(line)
        if size > VALUES_CHARACTERS:
            break
        lines.append(line)
    more = len(different) - len(lines)
    return "\n".join([*lines, *([f"({more:,} more are not shown)"] if more else ())]) or "(none)"


@resolver("hours_since_last_run")
def hours_since_last_run(past: Past) -> float:
    """Hours since the last run that ended began."""
    return _hours(past, past.latest(1)[0].at) if past.runs else _none("nothing ran yet")


@resolver("days_since_last_run")
def days_since_last_run(past: Past) -> float:
    """Days since the last run that ended began."""
    return hours_since_last_run(past) / _HOURS_A_DAY


@resolver("hours_since")
def hours_since(past: Past, *, tool: str) -> float:
    """Hours since a tool last succeeded in a run."""
    call = next((one for one in past.calls_of(tool) if one.status == "SUCCEEDED"), None)
    return _hours(past, call.at) if call else _none(f"{tool} never succeeded in the runs that are at hand")


@resolver("values")
def values(past: Past, *, tool: str, path: JSONPath, runs: int = 5, of: str = "arguments") -> list[str]:
    """What the calls of a tool in the last runs held that did not fail, the latest first, each once.

    A call that was cut off counts too, since its outcome is unknown.

    Args:
        past: The latest runs.
        tool: Name of the tool.
        path: JSONPath (RFC 9535) into the arguments, such as ``titles[*]``.
        runs: Number of runs to look at; 0 for all available.
        of: ``arguments``, or ``output`` where that is JSON.
    """
    calls = (call for call in past.calls_of(tool, runs) if call.may_be_done)
    found = (value for call in calls for value in compiled(path).findall(document(call, of, past)))
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in found)
    return list(dict.fromkeys(texts))


@resolver("values_seen")
def values_seen(
    past: Past, *, tool: str, path: JSONPath, seen_by: str, seen: JSONPath, within: int = 20, runs: int = 0
) -> list[str]:
    """As `values`, but only those that the tool `seen_by` also returned in the last `within` runs.

    Args:
        past: The latest runs.
        tool: Name of the tool.
        path: JSONPath into its arguments.
        seen_by: Another tool, which lists what exists.
        seen: JSONPath into the output of ``seen_by``, such as ``$[*].title``.
        within: Number of runs in which the output of ``seen_by`` is looked at.
        runs: Number of runs in which the calls of ``tool`` are looked at; 0 for all.
    """
    there = set(values(past, tool=seen_by, path=seen, runs=within, of="output"))
    return [text for text in values(past, tool=tool, path=path, runs=runs) if text in there]


def document(call: Call, of: str, past: Past) -> Any:
    """Return the arguments or the output of a call; an output that is not JSON is empty."""
    if of == "arguments":
        return call.arguments
    try:
        return msgspec.json.decode(readable(call.output, past.read))
    except ValueError:
        return {}


@resolver("done")
def done(past: Past, *, tool: str = "") -> list[Listed]:
    """The acts that were done within the windows that are open, the latest first; the engine refuses them.

    Args:
        past: The latest runs.
        tool: Name of the tool or act; all by default.
    """
    return [act for act in past.done if act.refused and tool in ("", act.name)]


@resolver("called")
def called(past: Past, *, tool: str = "") -> list[Listed]:
    """Calls that succeeded of tools that do not declare what makes two calls the same act.

    Args:
        past: The latest runs.
        tool: Name of the tool; all by default.
    """
    return [act for act in past.done if not act.refused and tool in ("", act.name)]


@resolver("count")
def count(past: Past, *, tool: str, runs: int = 0) -> int:
    """How often a tool succeeded in the last runs; 0 for all that are at hand."""
    return sum(call.status == "SUCCEEDED" for call in past.calls_of(tool, runs))


@resolver("failures")
def failures(past: Past, *, runs: int = 5) -> int:
    """How many of the last runs did not complete."""
    return sum(run.status != "COMPLETED" for run in past.latest(runs))


@resolver("run_number")
def run_number(past: Past) -> int:
    """The number of the run that is about to begin."""
    return past.ran + 1


@resolver("last_status")
def last_status(past: Past) -> str:
    """How the last run ended, ``COMPLETED`` or ``FAILED`` for example."""
    return past.runs[-1].status if past.runs else _none("nothing ran yet")


@resolver("last_summary")
def last_summary(past: Past) -> str:
    """What came of the last run that said so."""
    latest = next((run.summary for run in reversed(past.runs) if run.summary), "")
    return quoted(latest) if latest else _none("no run has a summary")


@resolver("summaries")
def summaries(past: Past, *, runs: int = 10) -> list[str]:
    """What came of the last runs that said so, the latest first, each once."""
    return [run.summary for run in reversed(past.latest(runs)) if run.summary]


@resolver("today")
def today(past: Past) -> str:
    """The date, in the time zone of the schedule."""
    return f"{past.local(past.at):%Y-%m-%d}"


@resolver("due")
def due(past: Past) -> str:
    """When the run is due, or the present if you start it: weekday, date and time in the schedule's zone."""
    return past.moment(past.due or past.at)


def _hours(past: Past, since: str) -> float:
    return days_between(since, past.at) * _HOURS_A_DAY


def _none(reason: str) -> NoReturn:
    raise NoAnswer(reason)
