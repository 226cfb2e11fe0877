"""Fetch, push and clone with the git program.

May import: storage.errors, storage.files, storage.git, storage.progress, storage.text.
"""
