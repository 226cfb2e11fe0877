"""The executor that ``agentx.toml`` and the environment configure: a program, or a model in a loop."""

from agentx.agents.run_types import Limits
from agentx.directing.executors import Command, Executor, ModelLoop, outside_environ
from agentx.engine.engine import Engine
from agentx.engine.models import model
from agentx.synthesis.model.port import ModelError


def executor(engine: Engine) -> Executor:
    """Return the configured executor: the named program, or else the model in a loop.

    Raises:
        ModelError: Neither a program nor a model is configured.
        Restricted: The configuration of an untrusted workspace names it.
    """
    section = engine.config.director
    if section.executor:
        engine.trust.require("director.executor")
        environ = program_environ(engine)
        return Command(section.executor, "jsonl" if section.speaks == "jsonl" else "text", environ)
    if not (engine.config.model.name or engine.settings.model):
        raise ModelError(
            "no executor is configured for runs; set a program with "
            '`agentx config set director.executor \'["claude", "-p"]\'`, '
            "or a model with `agentx config set model.name PROVIDER/NAME`"
        )
    return ModelLoop(model(engine), Limits.of(engine.config))


def program_environ(engine: Engine) -> dict[str, str]:
    """Return the environment of a program that plays a role.

    It is the caller's, without secret variables except those that ``director.keys`` lists.
    """
    settings = engine.settings
    keys = {name: value for name in engine.config.director.keys if (value := settings.keys.get(name))}
    return outside_environ({**settings.environ, **keys}, engine.root)
