"""The JSON schema of a pipeline's file, for editors."""

from functools import cache
from typing import Any

from agentx.synthesis.pipelines.definition import Pipeline


@cache
def schema() -> dict[str, Any]:
    """The schema, as JSON Schema 2020-12."""
    made = Pipeline.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "AgentX pipeline"}


@cache
def all_keys() -> frozenset[str]:
    """Every key that a pipeline's file may have somewhere."""
    shapes = [schema(), *schema()["$defs"].values()]
    return frozenset(key for shape in shapes for key in shape.get("properties", {}))
