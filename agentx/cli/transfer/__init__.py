"""Commands that import the transcripts of other agents, and show what was learned.

May import: cli, importing, storage, workspace.
"""
