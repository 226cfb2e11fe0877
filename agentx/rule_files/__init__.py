"""Files of rules that other agents read: imported as proposals, exported between markers, kept up to date.

May import: core, engine, history, memory, recording, storage, synthesis.
"""
