"""The server: one resident process of a user, which keeps workspaces open and answers on a Unix socket.

May import: agentx, cli, client, config, core, fleet, inspector, mcp, policy, settings, storage,
synthesis, workspace.
"""
