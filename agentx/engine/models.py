"""Opens the models that ``agentx.toml`` and the environment name, as far as the trust allows it."""

import threading
from collections.abc import Callable

from agentx.engine.engine import Engine
from agentx.synthesis.model.open import open_model
from agentx.synthesis.model.port import ModelClient

NO_MODEL = "none"


def director_model(engine: Engine) -> ModelClient | None:
    """Return the model that writes directives; ``None`` if code composes them.

    Code composes them if no model is named.
    """
    name, setting = engine.config.director.model, "director.model"
    if not name:
        name, setting = _named(engine)
    return None if name in ("", NO_MODEL) else open_named(engine, name, setting)


def model(engine: Engine, named: str = "") -> ModelClient:
    """Return the model that the user named, or the one from ``agentx.toml`` or the environment.

    Args:
        engine: The workspace.
        named: Name that the user gave on the command line.

    Raises:
        ModelError: No model is named, or it cannot be used.
        Restricted: The workspace names it, and is not trusted.
    """
    return open_named(engine, named) if named else open_named(engine, *_named(engine))


def named_models(engine: Engine, setting: str) -> Callable[[str], ModelClient]:
    """Return a function that opens each model by name once; an empty name gives the one in use.

    Args:
        engine: The workspace.
        setting: The setting that the names come from.
    """
    opened: dict[str, ModelClient] = {}
    lock = threading.Lock()

    def named(name: str) -> ModelClient:
        with lock:
            if name not in opened:
                opened[name] = open_named(engine, name, setting) if name else model(engine)
            return opened[name]

    return named


def open_named(engine: Engine, name: str, setting: str = "") -> ModelClient:
    """Open a model. The key is sent to an address from ``agentx.toml`` only if the workspace is trusted.

    Args:
        engine: The workspace.
        name: ``PROVIDER/NAME`` or ``script:FILE``.
        setting: The workspace setting that names it; empty if the user names it.

    Raises:
        ModelError: It cannot be used.
        Restricted: The workspace names it, and is not trusted.
    """
    if setting:
        engine.trust.require(setting)
    section, settings = engine.config.model, engine.settings
    base = section.api_base if section.api_base and engine.trust.trusted else settings.api_base
    return open_model(name, api_base=base, api_key=settings.api_key)


def model_name(engine: Engine) -> str:
    """Return the name of the model in use; empty if there is none, or a restricted workspace names it."""
    name, setting = _named(engine)
    return "" if setting and not engine.trust.trusted else name


def _named(engine: Engine) -> tuple[str, str]:
    """Return the model in use and the setting that names it.

    In a restricted workspace the environment takes precedence.
    """
    own, given = engine.config.model.name, engine.settings.model
    if not own or (given and not engine.trust.trusted):
        return given, ""
    return own, "model.name"
