"""Quality checks: running a task's own commands safely, and reading prose for mistakes.

Everything here works on its arguments and knows nothing of workspaces. ``sandbox`` runs a command in a copy
of a tree, ``document`` checks a text in place, and ``commands`` suggests a project's commands from its files.

May import: settings, storage, synthesis.
"""
