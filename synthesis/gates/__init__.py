"""Checks before an action: what memory says about it, which rules it breaks, what a command changes.

May import: storage, synthesis.language, synthesis.learning, synthesis.memory, synthesis.shell,
synthesis.similarity, synthesis.state.
"""
