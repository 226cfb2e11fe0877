"""Compile the words of a rule to checks that code can enforce.

May import: synthesis.demands.reading, synthesis.demands.tables, synthesis.enforcement, synthesis.language,
synthesis.memory.
"""
