"""A tool that a JSON schema describes, as a function with a typed signature."""

import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agentx.tools.toolset import IDEMPOTENCY_KEY, OWN_PARAMETERS

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": None,
}


def described(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    run: Callable[[dict[str, Any]], Any],
    *,
    repeatable: bool = False,
) -> Callable[..., Any]:
    """Return a function that calls ``run`` with the arguments by their names in a schema.

    A model reads the schema as it is. The types of its properties are checked before a call; what is inside
    an object or a list is left to the tool.

    Args:
        name: Name of the tool.
        description: Shown to models.
        schema: JSON schema of an object.
        run: Carries out a call.
        repeatable: Whether a call whose outcome is unknown may be made again with the same arguments.
    """
    names: dict[str, str] = {}
    parameters: list[inspect.Parameter] = []
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    for given, shape in properties.items():
        if given == IDEMPOTENCY_KEY:
            continue
        own = _identifier(given, names)
        names[own] = given
        kind = _type(shape)
        default = shape.get("default") if isinstance(shape, Mapping) else None
        parameters.append(
            inspect.Parameter(
                own,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if given in required else default,
                annotation=kind if own == given else Annotated[kind, Field(alias=given)],
            )
        )
    keyed = IDEMPOTENCY_KEY in properties
    if keyed or repeatable:
        parameters.append(
            inspect.Parameter(IDEMPOTENCY_KEY, inspect.Parameter.KEYWORD_ONLY, annotation=str, default="")
        )

    def function(**arguments: Any) -> Any:
        key = arguments.pop(IDEMPOTENCY_KEY, "")
        told = {
            names[own]: value
            for own, value in arguments.items()
            if value is not None or names[own] in required
        }
        return run(told | ({IDEMPOTENCY_KEY: key} if keyed else {}))

    shown = {"type": "object", **schema}
    if keyed:  # the engine fills it
        shown["properties"] = {one: of for one, of in properties.items() if one != IDEMPOTENCY_KEY}
        shown["required"] = [one for one in schema.get("required") or () if one != IDEMPOTENCY_KEY]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.schema = shown  # type: ignore[attr-defined]
    return function


def _identifier(given: str, taken: Mapping[str, str]) -> str:
    """Return a name for a parameter that Python and pydantic accept.

    >>> _identifier("user-id", {}), _identifier("from", {}), _identifier("patient", {})
    ('user_id', 'from_', 'patient')
    """
    name = re.sub(r"\W", "_", given).lstrip("_") or "argument"
    name = f"n{name}" if name[0].isdigit() else name
    while (
        keyword.iskeyword(name)
        or name in taken
        or name in OWN_PARAMETERS
        or name.startswith("model_")
        or hasattr(BaseModel, name)
    ):
        name = f"{name}_" if not name.startswith("model_") else f"the_{name}"
    return name


def _type(shape: Any) -> Any:
    """Return the Python type of a property; anything where its schema states none."""
    kinds = shape.get("type") if isinstance(shape, Mapping) else None
    known = [_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds or ()) if kind in _TYPES]
    return reduce(or_, known) if known and known != [None] else Any
