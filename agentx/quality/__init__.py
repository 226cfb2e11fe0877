"""Quality checks: running a task's own commands safely, and reading prose for mistakes.

Everything here takes arguments and knows nothing of workspaces: a command runs in a copy of a tree
(``sandbox``), a text is checked where it stands (``document``), and which commands a project probably
has is read from its files (``commands``).

May import: settings, storage, synthesis.
"""
