"""Commands that set up a workspace or a machine: config, models, doctor.

May import: cli, client, config, core, factory, hosts, hosts.setup, integrity, mcp, quality, server,
settings, storage, synthesis, trust, workspace.
"""
