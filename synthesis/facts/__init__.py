"""Facts over time: what a message makes untrue, and what was true when.

May import: storage, synthesis.cognition, synthesis.language, synthesis.memory.
"""
