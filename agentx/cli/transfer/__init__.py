"""Commands that import the transcripts of other agents, and show what was learned.

May import: cli, core, importing, memory, storage, workspace.
"""
