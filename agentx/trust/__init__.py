"""Workspace trust: whether a workspace may run programs, call addresses and read files outside of itself.

A workspace that this user made is trusted. A workspace from elsewhere is restricted until the user runs
``agentx trust``. So is one whose executable settings were changed by anything but this user's own
``agentx config set``.

- ``store.py``: private files in the user's state directory.
- ``trusted_items.py``: what the history would run by itself; ``digests.py``: how trusted content is hashed.
- ``records.py``: signed, expiring records for machines where nobody can be asked.
- ``trust.py``: the decision, and the gate for everything that starts a program, calls or reads outside.

Trust never imports the engine.

May import: config, core, quality, settings, storage, synthesis.
"""
