"""Repair of a damaged repository: find copies of objects, rebuild them, move the branch to a whole commit.

May import: storage.artifacts, storage.errors, storage.events, storage.files, storage.git,
storage.git.packs, storage.log.
"""
