"""Checks before an action: what memory says about it, and which rules it breaks.

May import: storage, synthesis.chunking, synthesis.demands.reading, synthesis.demands.tables,
synthesis.enforcement, synthesis.enforcement.packages, synthesis.language, synthesis.learning,
synthesis.memory, synthesis.scribe, synthesis.shell, synthesis.similarity, synthesis.state.
"""
