"""Commands that do work: init, add, run, say, approve, undo, restore, and the samples.

May import: agents, cli, cli.memory, cli.setup, cognition, context, core, directing, engine, history, memory,
pipelines, policy, recording, storage, synthesis, tools, trust, workspace.
"""
