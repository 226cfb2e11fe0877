"""Check the resolver of a dynamic field when a directive is written, so that it does not fail in a run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.text import clip
from agentx.synthesis.directing import fields
from agentx.synthesis.directing.fields import Lookup, NoAnswer
from agentx.synthesis.directing.past import Past
from agentx.synthesis.model.port import ToolSchema

_TOOLS = ("tool", "seen_by")
_PATHS = {"path": "tool", "seen": "seen_by"}
"""Parameters of resolvers that are paths, and the parameters that name their tools."""

_DEPTH = 6
_SHOWN = 300

Check = Callable[[Lookup], None]
"""Raises :class:`UsageError`, with a sentence for the director, if a lookup cannot be used."""


def checker(past_of: Callable[[int], Past], tools: Sequence[ToolSchema], *, text_only: bool = False) -> Check:
    """Return a check of lookups over the present history.

    Args:
        past_of: Returns the history of the last runs; 0 for all.
        tools: The tools of the executor. Without any, only those that were called before are known.
        text_only: Whether the executor has no tools at all.
    """
    schemas = {tool.name: tool.parameters for tool in tools}

    def check(lookup: Lookup) -> None:
        past = past_of(fields.runs_needed([lookup]))
        known = schemas.keys() | {call.tool for call in past.calls}
        for name in _TOOLS:
            tool = lookup.arguments.get(name)
            if tool is not None and tool not in known and (known or text_only):
                listed = f"the tools are {', '.join(sorted(known))}" if known else "the executor has no tools"
                raise UsageError(f"there is no tool {tool!r}; {listed}")
        for name, owner in _PATHS.items():
            if name in lookup.arguments and owner in lookup.arguments:
                of = "output" if owner == "seen_by" else str(lookup.arguments.get("of", "arguments"))
                tool = str(lookup.arguments[owner])
                _check_path(str(lookup.arguments[name]), tool, of, schemas.get(tool), past)
        try:
            fields.resolve(lookup, past)
        except NoAnswer as error:
            raise UsageError(f"{lookup.name} gives no value now ({error}); add default=…") from error

    return check


def _check_path(path: str, tool: str, of: str, schema: Mapping[str, Any] | None, past: Past) -> None:
    """Raise if a path matches neither the recorded calls of a tool nor, for arguments, its parameters."""
    query = fields.compiled(path)
    seen = [fields.document(call, of, past) for call in past.calls_of(tool) if call.status == "SUCCEEDED"]
    documents = [*seen, *([_example(schema, schema)] if of == "arguments" and schema else [])]
    if not documents or "?" in path or any(query.findall(one) for one in documents):
        return
    shown = clip(msgspec.json.encode(documents[-1]).decode(), _SHOWN)
    raise UsageError(f"the path {path!r} matches nothing in the {of} of {tool}, which look like {shown}")


def _example(schema: Any, whole: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value that has each part of a JSON schema once."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return {}
    if isinstance(schema.get("$ref"), str):
        name = schema["$ref"].rpartition("/")[2]
        return _example(whole.get("$defs", {}).get(name, {}), whole, depth + 1)
    for choice in ("anyOf", "oneOf", "allOf"):
        some = [_example(one, whole, depth + 1) for one in schema.get(choice, ()) if one != {"type": "null"}]
        if some:
            return max(some, key=lambda one: len(str(one)))
    if "properties" in schema:
        return {name: _example(one, whole, depth + 1) for name, one in schema["properties"].items()}
    if "items" in schema or schema.get("type") == "array":
        return [_example(schema.get("items", {}), whole, depth + 1)]
    return {} if schema.get("type", "object") == "object" else schema["type"]
