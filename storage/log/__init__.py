"""The append-only history: segments, the hash chain, snapshots, long texts, idempotency keys.

May import: storage.errors, storage.events, storage.files, storage.git.
"""
