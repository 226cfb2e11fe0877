"""Packing loose objects, taking damaged packs apart, and removing objects for a purge.

May import: storage.errors, storage.files, storage.git, storage.git.exchange.
"""
