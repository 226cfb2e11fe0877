"""What enters and leaves a workspace: push, pull, fork, links, external sources, imported material.

May import: config, core, engine, recording, search, storage, synthesis.
"""
