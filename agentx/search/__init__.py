"""Feed and query the search index, and the background worker that does so.

May import: core, recording, storage, synthesis.
"""
