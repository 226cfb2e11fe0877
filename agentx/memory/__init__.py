"""Change memory: editing by users, note taking by code and models, maintenance over time, flows.

May import: core, engine, recording, storage, synthesis.
"""
