"""Prices of hosted models, from the list that litellm brings along; litellm itself is not imported."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import msgspec

_LIST = "model_prices_and_context_window_backup.json"


class _Price(msgspec.Struct, frozen=True):
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None


def cost(model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
    """Return what a model call cost, in US dollars; 0 if the price is not known.

    Args:
        model: The model's name, with or without its provider.
        prompt_tokens: Tokens of the input, those read from a cache included.
        completion_tokens: Tokens of the output.
        cached_tokens: Tokens of the input that were read from a cache.
    """
    price = _prices().get(model) or _prices().get(model.rpartition("/")[2])
    if price is None:
        return 0.0
    each = price.input_cost_per_token or 0.0
    read = price.cache_read_input_token_cost
    fresh = max(prompt_tokens - cached_tokens, 0)
    reading = cached_tokens * (each if read is None else read)
    return fresh * each + reading + completion_tokens * (price.output_cost_per_token or 0.0)


@functools.cache
def _prices() -> dict[str, _Price]:
    found = importlib.util.find_spec("litellm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        try:
            listed = msgspec.json.decode(Path(folder, _LIST).read_bytes(), type=dict[str, Any])
        except (OSError, ValueError):
            continue
        return {name: price for name, fields in listed.items() if (price := _price(fields))}
    return {}


def _price(fields: Any) -> _Price | None:
    try:
        return msgspec.convert(fields, _Price)
    except ValueError:
        return None
