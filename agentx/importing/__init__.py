"""Import the transcripts of other agents: one reader for each format, one mechanism that records.

May import: engine, recording, storage, synthesis.
"""
