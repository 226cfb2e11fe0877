"""The cognition loop at work in a workspace: the agent, its logs, and the report on them.

May import: agents, core, engine, search, storage, synthesis, workspace.
"""
