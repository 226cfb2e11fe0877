"""Workspace trust: whether what a workspace brings along may run, be called and read outside.

A workspace that this user made is trusted. One that came from elsewhere, or whose executable settings were changed
by anything but this user's own ``agentx config set``, is restricted until a person runs ``agentx trust``.

- ``store.py``: private files in the user's state directory.
- ``items.py``: what the history would run by itself; ``digests.py``: how what is trusted is hashed.
- ``records.py``: signed and expiring records, for machines where no person can be asked.
- ``trust.py``: the decision, and the gate that everything goes through that starts a program, calls or reads outside.

May import ``agentx.config``, ``agentx.settings``, ``synthesis/`` and ``storage/``; never the engine.

May import: config, core, quality, settings, storage, synthesis.
"""
