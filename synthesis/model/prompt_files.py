"""Load the prompts from the files in ``synthesis/prompts``."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec


@lru_cache
def prompt(name: str) -> str:
    """Return the text of a file in ``synthesis/prompts``."""
    return (files("agentx.synthesis") / "prompts" / name).read_text("utf-8")


def parameters(name: str) -> dict[str, Any]:
    """Return a JSON schema from a file in ``synthesis/prompts``, which defines the shape of an answer."""
    return msgspec.json.decode(prompt(name), type=dict[str, Any])
