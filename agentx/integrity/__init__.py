"""Integrity checks and repair: commits, log, index, artifacts.

May import: config, core, recording, search, storage, synthesis.
"""
