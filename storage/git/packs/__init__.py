"""Pack loose objects, take damaged packs apart, and remove objects for a purge.

May import: storage.errors, storage.files, storage.git, storage.git.exchange, storage.progress,
storage.stopping.
"""
