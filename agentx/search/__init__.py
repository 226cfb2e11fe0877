"""Feeding and asking the search index, and the background worker that does it.

May import: core, recording, storage, synthesis.
"""
