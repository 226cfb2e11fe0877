"""The tools of an agent: typed Python functions, with JSON schemas generated from their signatures.

May import: config, core, engine, memory, policy, quality, recording, search, storage, synthesis, transfer,
trust.
"""
