"""The server's side of hooks: what is recorded and answered at each moment of a session, alike for all hosts.

May import: cli, context, core, engine, hosts, policy, server, settings, storage, synthesis, tools, trust,
workspace.
"""
