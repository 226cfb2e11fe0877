"""The environment, read in this one place; everything below takes arguments."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment says.

    Attributes:
        model: ``AGENTX_MODEL``: the model to use where neither a command nor ``agentx.toml`` names one.
        api_base: ``AGENTX_API_BASE``: address of a server that speaks the provider's protocol.
        api_key: ``AGENTX_API_KEY``: key for it; the provider's own variables (``OPENAI_API_KEY``, …) work as well.
        cache_dir: ``AGENTX_CACHE_DIR``: where installed models lie; ``~/.cache/agentx`` by default.
        state_dir: ``AGENTX_STATE_DIR``: where the daemon keeps its database; ``~/.local/state/agentx`` by default.
        user: ``AGENTX_USER``: name of the person, so that the actor is ``user:<name>``; plain ``user`` by default.
        debug: ``AGENTX_DEBUG``: whether the command line shows tracebacks.
        environ: All of it, for the commands of the quality tools, which are passed a part that holds no secret.
    """

    model: str = ""
    api_base: str = ""
    api_key: str = ""
    cache_dir: Path = Path()
    state_dir: Path = Path()
    user: str = ""
    debug: bool = False
    environ: Mapping[str, str] = {}

    @property
    def actor(self) -> str:
        """The actor that stands for the person at this terminal."""
        return f"user:{self.user}" if self.user else "user"


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the environment.

    Args:
        environ: Variables to read instead of the process's own.
    """
    found = os.environ if environ is None else environ
    cache = (
        found.get("AGENTX_CACHE_DIR")
        or (found.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) + "/agentx"
    )
    state = (
        found.get("AGENTX_STATE_DIR")
        or (found.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")) + "/agentx"
    )
    return Settings(
        model=found.get("AGENTX_MODEL", ""),
        api_base=found.get("AGENTX_API_BASE", ""),
        api_key=found.get("AGENTX_API_KEY", ""),
        cache_dir=Path(cache),
        state_dir=Path(state),
        user=found.get("AGENTX_USER", ""),
        debug=found.get("AGENTX_DEBUG", "") not in ("", "0"),
        environ=dict(found),
    )
