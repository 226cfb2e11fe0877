"""Who carries out a prompt, as ``agentx.toml`` and the environment have it: a program, or a model in a loop."""

from agentx.agents.port import Limits
from agentx.directing.executors import Command, Executor, Loop, outside_environ
from agentx.engine.engine import Engine
from agentx.engine.models import model
from agentx.synthesis.model.port import ModelError


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
