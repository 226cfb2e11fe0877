"""Reads a message: the user's own words, quoted material, clauses, scope.

May import: synthesis.demands.tables, synthesis.language, synthesis.memory.
"""
