"""File operations: durable writes, paths without symbolic links, and locks.

May import: storage.errors, storage.matching, storage.secrets, storage.stopping.
"""
