"""Commands that import the transcripts of other agents, and show what was learned.

May import: cli, core, engine, history, importing, memory, storage, synthesis, workspace.
"""
