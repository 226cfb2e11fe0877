"""The parts of an open workspace wired together: the engine, the synthesizer, models, moments.

May import: config, core, recording, search, settings, storage, synthesis, trust.
"""
