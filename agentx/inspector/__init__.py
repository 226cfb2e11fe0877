"""The inspector: a page on this machine that shows a workspace, and the API behind it.

May import: agents, agentx, cognition, context, core, engine, fleet, history, memory, pipelines,
pipelines.pointing, pipelines.upkeep, policy, settings, storage, synthesis, trust, workspace.
"""
