"""Who directs a workspace and who carries out, as ``agentx.toml`` and the environment have it."""

import threading
from collections.abc import Callable

from agentx.agents.port import Limits
from agentx.directing.executors import Command, Executor, Loop, outside_environ
from agentx.engine import Engine
from agentx.synthesis.model.open import open_model
from agentx.synthesis.model.port import ModelClient, ModelError

NO_MODEL = "none"


def director_model(engine: Engine) -> ModelClient | None:
    """The model that writes directives; ``None`` where code composes them, which it does where no model is named."""
    name, setting = engine.config.director.model, "director.model"
    if not name:
        name, setting = _named(engine)
    return None if name in ("", NO_MODEL) else open_named(engine, name, setting)


def executor(engine: Engine) -> Executor:
    """Who carries out a prompt: the program that is named, or the model in a loop.

    Raises:
        ModelError: Neither a program nor a model is named.
        Restricted: The workspace names it, and is not trusted.
    """
    section = engine.config.director
    if section.executor:
        engine.trust.require("director.executor")
        environ = program_environ(engine)
        return Command(section.executor, "jsonl" if section.speaks == "jsonl" else "text", environ)
    if not (engine.config.model.name or engine.settings.model):
        raise ModelError(
            'nobody is set to carry out a run; name a program with `agentx config set director.executor \'["claude", "-p"]\'`, '
            "or a model with `agentx config set model.name PROVIDER/NAME`"
        )
    return Loop(model(engine), Limits.of(engine.config))


def program_environ(engine: Engine) -> dict[str, str]:
    """The environment of a program that plays a role: the caller's, without keys but those of ``director.keys``."""
    settings = engine.settings
    keys = {name: value for name in engine.config.director.keys if (value := settings.keys.get(name))}
    return outside_environ({**settings.environ, **keys}, engine.root)


def model(engine: Engine, named: str = "") -> ModelClient:
    """The model that a person named; without one, that of ``agentx.toml`` or of the environment.

    Args:
        engine: The workspace.
        named: As a person gave it, on the command line.

    Raises:
        ModelError: None is named, or it cannot be used.
        Restricted: The workspace names it, and is not trusted.
    """
    return open_named(engine, named) if named else open_named(engine, *_named(engine))


def named_models(engine: Engine, setting: str) -> Callable[[str], ModelClient]:
    """Gives the model of a name, each opened once; of an empty name, the one in use.

    Args:
        engine: The workspace.
        setting: Where the names come from.
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
    """Open a model. The key goes to an address of ``agentx.toml`` only where the workspace is trusted.

    Args:
        engine: The workspace.
        name: ``PROVIDER/NAME`` or ``script:FILE``.
        setting: What of the workspace names it; empty where this user does.

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
    """The name of the model in use; empty where there is none, or a restricted workspace names it."""
    name, setting = _named(engine)
    return "" if setting and not engine.trust.trusted else name


def _named(engine: Engine) -> tuple[str, str]:
    """The model in use and the setting that names it; in a restricted workspace the environment comes first."""
    own, given = engine.config.model.name, engine.settings.model
    if not own or (given and not engine.trust.trusted):
        return given, ""
    return own, "model.name"
