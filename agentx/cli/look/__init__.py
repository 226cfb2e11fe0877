"""Commands that read: status, log, diff, bisect, context, search, audit.

May import: agents, cli, context, directing, history, pipelines, policy, search, storage, synthesis,
workspace.
"""
