"""The tools of an agent: typed functions of Python, with JSON schemas made from their signatures.

May import: config, core, engine, memory, policy, quality, recording, search, storage, synthesis, transfer,
trust.
"""
