"""Ranking what a search found, and summaries of files and memory.

May import: storage, synthesis.chunking, synthesis.gates, synthesis.language, synthesis.memory,
synthesis.similarity, synthesis.state.
"""
