"""The state of a workspace: a fold over its history.

May import: storage, synthesis.attribution, synthesis.language, synthesis.memory.
"""
