"""Exchange with other places: push, pull, fork, links, external sources, imported material.

May import: config, core, engine, recording, storage, synthesis.
"""
