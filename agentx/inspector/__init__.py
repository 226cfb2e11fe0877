"""The inspector: a page on this machine that shows a workspace, and the API behind it.

May import: cognition, context, core, directing, engine, history, memory, pipelines, policy, recording,
search, settings, storage, synthesis, workspace.
"""
