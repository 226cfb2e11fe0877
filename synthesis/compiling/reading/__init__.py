"""Read the words of a rule: what they name, what they decide about it, and where that applies.

May import: synthesis.demands.tables, synthesis.enforcement, synthesis.language, synthesis.memory.
"""
