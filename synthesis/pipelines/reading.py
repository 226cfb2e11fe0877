"""Reads a pipeline's file: YAML in, a pipeline out, and for every fault the line that it stands in.

Scalars are text until the shape of a pipeline says what they are, so ``01`` stays ``01`` and ``no`` is a word.
"""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from agentx.storage.errors import UsageError
from agentx.synthesis.pipelines.definition import Pipeline
from agentx.synthesis.pipelines.schema import all_keys

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from yaml.nodes import Node

MAX_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 50

Place = tuple[str | int, ...]
"""Where something stands in the file: keys, and numbers in lists."""


class Fault(msgspec.Struct, frozen=True):
    """Something that is wrong with a pipeline's file.

    Attributes:
        line: From 1; 0 where it is no one line.
        place: The keys down to it, like ``roles.writer.reads[0]``.
        what: What is wrong, and what to do.
    """

    line: int
    place: str
    what: str


class PipelineInvalid(UsageError):
    """A pipeline's file cannot be read, or says what no pipeline can be.

    Attributes:
        faults: All that were found, in the order of their lines.
    """

    def __init__(self, path: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line))
        told = [
            f"{path}{f', line {fault.line}' if fault.line else ''}: {f'{fault.place}: ' if fault.place else ''}{fault.what}"
            for fault in self.faults
        ]
        super().__init__("\n".join(told))


class Source(msgspec.Struct, frozen=True):
    """A pipeline's file as it was read.

    Attributes:
        path: As the user named it.
        text: What it says.
        lines: The line of each place.
    """

    path: str
    text: str
    lines: dict[Place, int]

    def fault(self, place: Place, what: str) -> Fault:
        """A fault at a place, or at the nearest one above it that the file has."""
        at = place
        while at and at not in self.lines:
            at = at[:-1]
        return Fault(self.lines.get(at, 0), told(place), what)


def told(place: Place) -> str:
    """A place in words.

    >>> told(("roles", "writer", "reads", 0))
    'roles.writer.reads[0]'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def read(path: Path) -> tuple[Pipeline, Source]:
    """Read a pipeline's file.

    Raises:
        PipelineInvalid: It cannot be read, is no YAML, or has not the shape of a pipeline.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise PipelineInvalid(str(path), [Fault(0, "", f"it cannot be read: {error.strerror}.")]) from error
    except UnicodeDecodeError as error:
        raise PipelineInvalid(str(path), [Fault(0, "", f"it is not UTF-8 (byte {error.start}).")]) from error
    if len(data) > MAX_BYTES:
        raise PipelineInvalid(str(path), [Fault(0, "", f"it is larger than {MAX_BYTES:,} bytes.")])
    return parse(text, str(path))


def parse(text: str, path: str = "pipeline.yaml") -> tuple[Pipeline, Source]:
    """Read the text of a pipeline's file.

    Raises:
        PipelineInvalid: As for :func:`read`.
    """
    value, source = _parsed(text, path)
    try:
        return Pipeline.model_validate(value), source
    except ValidationError as error:
        raise PipelineInvalid(path, [_fault(one, value, source) for one in error.errors()]) from error


def _parsed(text: str, path: str) -> tuple[Any, Source]:
    from yaml import SafeLoader, YAMLError, compose  # noqa: PLC0415 - only pipelines need it

    try:
        node = compose(text, SafeLoader)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", "") or str(error).split("\n", 1)[0]
        raise PipelineInvalid(
            path, [Fault(mark.line + 1 if mark else 0, "", f"it is no YAML: {said}.")]
        ) from error
    except RecursionError as error:
        raise PipelineInvalid(path, [Fault(0, "", "it is nested too deep.")]) from error
    source = Source(path, text, {})
    if node is None:
        raise PipelineInvalid(
            path, [Fault(1, "", "it is empty; `agentx pipeline new` writes one to begin with.")]
        )
    faults: list[Fault] = []
    value = _Builder(source, faults).value(node, ())
    if faults:
        raise PipelineInvalid(path, faults)
    return value, source


class _Builder:
    """Makes plain values of nodes, and notes their lines."""

    def __init__(self, source: Source, faults: list[Fault]) -> None:
        self.source = source
        self.faults = faults
        self.count = 0

    def value(self, node: "Node", place: Place) -> Any:
        self.count += 1
        self.source.lines.setdefault(place, node.start_mark.line + 1)
        if self.count > MAX_NODES or len(place) > MAX_DEPTH:
            if not self.faults:
                self.faults.append(
                    self.source.fault(place, "it is too much, or it holds itself through an alias.")
                )
            return None
        if node.id == "scalar":
            return node.value
        if node.id == "sequence":
            return [self.value(one, (*place, number)) for number, one in enumerate(node.value)]
        made: dict[str, Any] = {}
        for key, one in node.value:
            name = key.value if key.id == "scalar" else ""
            if not name or name in made:
                what = f"{name!r} stands here twice." if name else "a key is one word."
                self.faults.append(Fault(key.start_mark.line + 1, told(place), what))
                continue
            self.source.lines[*place, name] = key.start_mark.line + 1
            made[name] = self.value(one, (*place, name))
        return made


_SAID = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such key",
    "list_type": "write a list, a line with `- ` for each",
    "tuple_type": "write a list, a line with `- ` for each",
    "dict_type": "write keys and values",
    "model_type": "write keys and values",
    "model_attributes_type": "write keys and values",
    "string_type": "write a text",
    "int_parsing": "write a whole number",
    "float_parsing": "write a number",
    "bool_parsing": "write true or false",
    "too_short": "at least one is needed",
}
"""What to say of a fault, by its type in pydantic."""

_UNIONS = ("loop", "stage", "list[dict[str,any]]", "int")
"""Words that pydantic puts into a place for the branch of a union that it tried."""


def _fault(error: "ErrorDetails", value: Any, source: Source) -> Fault:
    place = tuple(_places(error["loc"], value))
    said = _SAID.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    if error["type"] == "literal_error":
        said = (
            f"it is one of {error.get('ctx', {}).get('expected', '')}, and not {str(error['input'])[:50]!r}"
        )
    elif error["type"] == "string_pattern_mismatch":
        said = f"{str(error['input'])[:50]!r} is no name that can stand here"
    elif error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(place[-1]), all_keys(), 1)
        said += f"; is it {near[0]}?" if near else ""
    return source.fault(place, f"{said.rstrip('.')}.")


def _places(loc: Place, value: Any) -> Iterator[str | int]:
    """The parts of a place that the file has too; behind the last one, what is missing."""
    for part in loc:
        inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int)
        )
        if inside:
            value = value[part]
        elif part in _UNIONS:
            continue
        yield part
