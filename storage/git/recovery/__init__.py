"""Repair a damaged repository: find copies of objects, rebuild them, go back to an intact commit.

May import: storage.artifacts, storage.errors, storage.events, storage.files, storage.git,
storage.git.packs, storage.log.
"""
