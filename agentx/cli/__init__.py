"""The command line. Only this package prints.

May import: agentx, client, recording, search, settings, storage, synthesis, trust, workspace.
"""
