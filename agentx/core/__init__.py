"""What every part of the engine uses: the event bus, the layout of a workspace, the cache directory.

May import: config, storage, synthesis.
"""
