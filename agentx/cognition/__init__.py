"""The cognition loop of a workspace: the agent, its logs, and the report on them.

May import: core, engine, search, storage, synthesis, telemetry, workspace.
"""
