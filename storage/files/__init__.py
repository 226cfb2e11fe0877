"""File operations that are durable, never follow a symbolic link, and are locked.

May import: storage.errors, storage.secrets.
"""
