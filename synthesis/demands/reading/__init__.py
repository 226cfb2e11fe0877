"""Reads a clause of a message, and where and how long a demand applies.

May import: synthesis.attribution, synthesis.demands.tables, synthesis.language, synthesis.memory.
"""
