"""Purge events: find everything that belongs to or repeats one, and remove it from the log and from Git.

May import: engine, recording, storage, synthesis.
"""
