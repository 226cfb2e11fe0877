"""Ranking of search results, and summaries of files and memory.

May import: storage, synthesis.chunking, synthesis.enforcement, synthesis.language, synthesis.memory,
synthesis.model, synthesis.similarity, synthesis.state.
"""
