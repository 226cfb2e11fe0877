"""The commands of ``agentx pipeline``: plan, matrix, run, status, amend, redo.

May import: agents, cli, cli.work, config, core, engine, pipelines, pipelines.drawing, pipelines.pointing,
pipelines.upkeep, policy, storage, synthesis, workspace.
"""
