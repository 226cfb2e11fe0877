"""Parse a pipeline's file from YAML, with a line number for every fault."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agentx.synthesis.pipelines.definition.faults import Fault, Faults, PipelineInvalid, Place, Source, hint
from agentx.synthesis.pipelines.definition.pipeline import Pipeline
from agentx.synthesis.pipelines.definition.schema import BRANCHES, shape_at
from agentx.synthesis.pipelines.definition.yaml_lines import plain

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_BYTES = 1_000_000


def read(path: Path) -> tuple[Pipeline, Source]:
    """Read a pipeline's file.

    Raises:
        PipelineInvalid: It cannot be read, is not YAML, or does not have the form of a pipeline.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            line = data.count(b"\n", 0, error.start) + 1
            raise PipelineInvalid(str(path), [Fault(line, "", "the file is not valid UTF-8.")]) from error
        why = getattr(error, "strerror", None) or error
        meant = path.with_name(f"{path.name}.yaml")
        what = f"; did you mean {meant}?" if not path.exists() and meant.exists() else "."
        raise PipelineInvalid(str(path), [Fault(0, "", f"cannot read the file: {why}{what}")]) from error
    if len(data) > MAX_BYTES:
        raise PipelineInvalid(str(path), [Fault(0, "", f"the file is larger than {MAX_BYTES:,} bytes.")])
    return parse(text, str(path))


def with_variables(pipeline: Pipeline, source: Source, given: Mapping[str, str]) -> Pipeline:
    """Return a pipeline with other values for some of its variables.

    Raises:
        PipelineInvalid: It has no such variable.
    """
    faults = Faults(source)
    for name in given:
        if name not in pipeline.variables:
            faults.add(("variables",), f"there is no variable {name!r}{hint(name, pipeline.variables)}")
    faults.stop()
    return pipeline.model_copy(update={"variables": pipeline.variables | dict(given)})


def parse(text: str, path: str = "pipeline.yaml") -> tuple[Pipeline, Source]:
    """Parse the text of a pipeline's file.

    Raises:
        PipelineInvalid: As for :func:`read`.
    """
    if len(text) > MAX_BYTES:
        raise PipelineInvalid(path, [Fault(0, "", f"the file is larger than {MAX_BYTES:,} bytes.")])
    value, source = plain(text.removeprefix("\ufeff"), path)
    try:
        return Pipeline.model_validate(value), source
    except ValidationError as error:
        faults = Faults(source)
        for place, what in _faults(error.errors(include_url=False)):
            faults.add(place, what)
        faults.stop()
        raise


_SAID = {
    "missing": "required key is missing",
    "list_type": "expected a list, one `- ` line per entry",
    "tuple_type": "expected a list, one `- ` line per entry",
    "string_type": "expected a text",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "the number is too large",
    "int_type": "expected a whole number",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "finite_number": "expected a number",
    "bool_parsing": "expected `true` or `false`",
    "bool_type": "expected `true` or `false`",
    "string_too_short": "must not be empty",
    "too_short": "at least one entry is required",
    "too_long": "too many entries: {actual_length}, at most {max_length}",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "value_error": "{error}",
}
"""Message for a fault, by its pydantic type."""

_REMOVED = {
    "terms": "the check `terms` was removed; name forbidden words in `absent` and required terms in `uses`",
    "unused": "the check `unused` was removed; name the words that must not occur again in `absent`",
}
"""Message for a check of earlier versions."""

_NAMES = "a name consists of at most 64 letters, digits, - and _, and begins with a letter or digit"
_PATTERNS = (
    ("A-Z0-9_]*)?$", "a marker consists of capital letters, digits and _, like DRAFT_COMPLETE"),
    ("0-9_-]", _NAMES),
    ("0-9_]{", "a name used in templates consists of letters, digits and _, and begins with a letter"),
)


def _faults(errors: Sequence["ErrorDetails"]) -> Iterator[tuple[Place, str]]:
    """Yield the faults, without those that only follow from others."""
    meant: set[Place] = set()
    for error in errors:
        if error["type"] == "extra_forbidden":
            near = hint(str(error["loc"][-1]), shape_at(error["loc"][:-1]).get("properties", {}))
            meant.add((*_place(error["loc"][:-1]), near.removeprefix("; did you mean ").removesuffix("?")))
    places = [_place(error["loc"]) for error in errors]
    above = {place[:size] for place in places for size in range(len(place))}
    missing = {place for error, place in zip(errors, places, strict=True) if error["type"] == "missing"}
    torn = any(len(place) == 1 for place in missing - meant)
    for error, place in zip(errors, places, strict=True):
        elsewhere = torn and len(place) > 1  # it belongs to the missing part
        misspelt = error["type"] == "missing" and place in meant
        invalid = error["type"] == "too_short" and place in above  # the entries exist
        if not (elsewhere or misspelt or invalid):
            yield place, _said(error)


def _place(loc: Place) -> Place:
    """Convert a pydantic location to a place: it also names the branch of a union, and marks keys."""
    branch = 2 if loc[:1] in (("stages",), ("items",)) else -1
    return tuple(
        part
        for number, part in enumerate(loc)
        if part != "[key]" and not (number == branch and part in BRANCHES)
    )


def _said(error: "ErrorDetails") -> str:
    kind, context, given = error["type"], error.get("ctx", {}), error["input"]
    shown = str(given)[:50]
    if kind == "literal_error":
        return f"must be {context['expected']}, not {shown!r}"
    if kind == "string_pattern_mismatch":
        rule = next((said for part, said in _PATTERNS if part in str(context["pattern"])), _NAMES)
        return f"{shown!r} is not allowed here: {rule}"
    if kind == "extra_forbidden":
        key = str(error["loc"][-1])
        if key in _REMOVED and "checks" in error["loc"]:
            return _REMOVED[key]
        if ":" in key:
            return f"unknown key; put a space after the `:`, as in {key.replace(':', ': ', 1)}"
        return f"unknown key{hint(key, shape_at(error['loc'][:-1]).get('properties', {}))}"
    if error["loc"][-1:] == ("number",) and kind == "int_parsing":
        said = "expected the number of items, or a list of maps that each have an `id`"
    elif kind in ("model_type", "dict_type"):
        said = "expected a map of keys and values"
        needed = ["id"] if "list" in error["loc"] else shape_at(error["loc"]).get("required", [])
        first = given[:30] if isinstance(given, str) and given else "…"
        if example := [f"{key}: {'…' if number else first}" for number, key in enumerate(needed)]:
            said += f", like {{{', '.join(example)}}}"  # the keys that are needed, with the value found there
    else:
        said = _SAID.get(kind, error["msg"]).format(**context)
    if given == "" and "expected" in said:
        said = f"no value (is the indentation of the next lines wrong?); {said}"
    return said
