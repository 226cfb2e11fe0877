"""The effect of a setting beyond its workspace; every field of the configuration is marked with one.

A workspace that was copied from elsewhere brings its settings along, and with them what they run, call and
read. So a setting with an effect needs the user's trust. A field without a mark counts as having an effect.
"""

from enum import StrEnum


class Effect(StrEnum):
    """The effect that a setting has when AgentX uses it."""

    RUNS = "runs a program"
    CALLS = "calls an address"
    READS = "reads outside the workspace"
    LOOSENS = "loosens a guard"
    HARMLESS = "none"
