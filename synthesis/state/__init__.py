"""The state of a workspace: a fold over its history.

May import: storage, synthesis.language, synthesis.memory.
"""
