"""The command line. Only this package prints.

May import: agentx, recording, search, settings, storage, trust, workspace.
"""
