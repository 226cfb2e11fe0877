"""Near-duplicate memory items: the same statement in different words.

May import: synthesis.language, synthesis.memory.
"""
