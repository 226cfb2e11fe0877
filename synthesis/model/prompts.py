"""The texts that models are asked with, from files in ``synthesis/prompts``."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec


@lru_cache
def prompt(name: str) -> str:
    """The text of a file in ``synthesis/prompts``."""
    return (files("agentx.synthesis") / "prompts" / name).read_text("utf-8")


def parameters(name: str) -> dict[str, Any]:
    """A JSON schema from a file in ``synthesis/prompts``: the shape of an answer."""
    return msgspec.json.decode(prompt(name), type=dict[str, Any])
