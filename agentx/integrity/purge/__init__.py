"""Purging events: what falls with one, what still says the same, and how all of it goes from log and Git.

May import: engine, recording, storage, synthesis.
"""
