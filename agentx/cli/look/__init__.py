"""Commands that read: status, log, diff, bisect, context, search, audit, inspect.

May import: agents, cli, client, context, core, directing, fleet, history, pipelines, policy, search,
server, settings, storage, synthesis, trust, workspace.
"""
