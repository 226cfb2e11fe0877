"""What a setting can do beyond its workspace: the mark that every field of the configuration bears.

A workspace that came from elsewhere brings its settings along, and with them whatever they run, call and read. So the
fields that have an effect are bound to a person's trust, and one without a mark counts as having one.
"""

from enum import StrEnum


class Effect(StrEnum):
    """What a setting makes AgentX do."""

    RUNS = "runs a program"
    CALLS = "calls an address"
    READS = "reads outside the workspace"
    LOOSENS = "loosens a guard"
    HARMLESS = "none"
