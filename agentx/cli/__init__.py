"""The command line: the only place that prints.

May import: agentx, recording, search, settings, storage, trust, workspace.
"""
