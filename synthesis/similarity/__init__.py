"""Items that say the same in other words.

May import: synthesis.language, synthesis.memory.
"""
