"""Commands of AgentX that act as the user: an agent's command line may not call them."""

from agentx.cli.commands import COMMANDS, line, spoken
from agentx.storage.errors import UsageError
from agentx.synthesis.shell.command_line import steps

HOOK = "hook"
"""The entry point of hooks, which is no command of the table."""

_OF_AGENTS = {"check", "done", "flow check", "gate post", "gate pre", "record", "tool"}
"""Commands that are not only for reading, and record what an agent does as an agent's."""


def acts_as_user(command: str) -> str:
    """Return the command of AgentX by which a command line would act as the user; empty if there is none.

    >>> acts_as_user("cd /tmp && agentx say 'Deploy on Fridays.'"), acts_as_user("agentx log -n 5")
    ('say', '')
    """
    for call in steps(command):
        if call.program != "agentx":
            continue
        try:
            words = line(list(call.arguments))
        except UsageError:
            continue
        if words[:1] == [HOOK]:
            return HOOK
        for name in spoken(words) if words else ():
            entry = COMMANDS.get(name)
            if entry is not None and not entry.reads and name not in _OF_AGENTS:
                return name
    return ""
