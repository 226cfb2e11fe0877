"""Checks before and after an action: hot issues, enforcement, the effects of a command.

May import: storage, synthesis.checks, synthesis.language, synthesis.learning, synthesis.memory,
synthesis.similarity, synthesis.state.
"""
