"""The server's side of hooks: what is recorded and answered at each moment of a session, for all hosts alike.

May import: cli, context, engine, hosts, policy, server, settings, storage, synthesis, tools, trust,
workspace.
"""
