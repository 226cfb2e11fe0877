"""Import the transcripts of other agents: one reader for each format, one mechanism that records.

May import: config, core, engine, recording, storage, synthesis.
"""
