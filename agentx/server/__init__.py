"""The server: one resident process of a user, which keeps workspaces open and answers on a Unix socket.

May import: agentx, client, core, settings, storage, workspace.
"""
