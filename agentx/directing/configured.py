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
    name = engine.config.director.model or engine.config.model.name or engine.settings.model
    return None if name in ("", NO_MODEL) else _open(engine, name)


def executor(engine: Engine) -> Executor:
    """Who carries out a prompt: the program that is named, or the model in a loop.

    Raises:
        ModelError: Neither a program nor a model is named.
    """
    section = engine.config.director
    if section.executor:
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


def model(engine: Engine) -> ModelClient:
    """The model of ``agentx.toml`` or of the environment.

    Raises:
        ModelError: None is named, or it cannot be used.
    """
    return _open(engine, engine.config.model.name or engine.settings.model)


def named_models(engine: Engine) -> Callable[[str], ModelClient]:
    """Gives the model of a name, each opened once; of an empty name, that of ``agentx.toml`` or of the environment."""
    opened: dict[str, ModelClient] = {}
    lock = threading.Lock()

    def named(name: str) -> ModelClient:
        with lock:
            if name not in opened:
                opened[name] = _open(engine, name) if name else model(engine)
            return opened[name]

    return named


def _open(engine: Engine, name: str) -> ModelClient:
    section, settings = engine.config.model, engine.settings
    return open_model(name, api_base=section.api_base or settings.api_base, api_key=settings.api_key)
