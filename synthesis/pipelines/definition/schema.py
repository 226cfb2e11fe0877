"""The JSON schema of a pipeline's file, for editors."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from agentx.synthesis.pipelines.definition.pipeline import Pipeline

Shape = dict[str, Any]

_TEXT = ["string", "number", "boolean"]
"""Types accepted for a text: YAML reads ``220`` as a number, and the pipeline takes it as written."""


@cache
def schema() -> Shape:
    """Return the schema, as JSON Schema 2020-12."""
    made = _with_texts(Pipeline.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "AgentX pipeline"}


def _with_texts(shape: Any) -> Any:
    if isinstance(shape, list):
        return [_with_texts(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    made = {key: _with_texts(one) for key, one in shape.items()}
    if made.get("type") == "string" and "enum" not in made:
        made["type"] = _TEXT
    return made


def shape_at(place: tuple[str | int, ...]) -> Shape:
    """Return the schema at a pydantic location; empty if nothing is allowed there.

    The location may name branches of unions.
    """
    shapes = [schema()]
    for part in place:
        inside = [one for shape in shapes for one in _inside(shape, part)]
        shapes = inside or [shape for shape in shapes if isinstance(part, str) and part in BRANCHES]
    return next((one for shape in shapes for one in _branches(shape) if one.get("properties")), {})


BRANCHES = ("Loop", "Stage", "list", "number", "found")
"""Tags of unions in :mod:`agentx.synthesis.pipelines.definition.pipeline`."""


def _branches(shape: Shape) -> Iterator[Shape]:
    """Yield a schema, or each of its alternatives."""
    if "$ref" in shape:
        shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]]
    several = shape.get("anyOf") or shape.get("oneOf")
    if several is None:
        yield shape
        return
    for one in several:
        yield from _branches(one)


def _inside(shape: Shape, part: str | int) -> Iterator[Shape]:
    for one in _branches(shape):
        if isinstance(part, int):
            found = one.get("items")
        elif part in BRANCHES and one.get("title") == part:
            found = one
        else:
            several = (one.get("additionalProperties"), *one.get("patternProperties", {}).values())
            found = one.get("properties", {}).get(part) or next(
                (s for s in several if isinstance(s, dict)), None
            )
        if isinstance(found, dict):
            yield found
