"""Compile the words of a rule to checks that code can enforce.

May import: synthesis.compiling.reading, synthesis.demands.reading, synthesis.demands.tables,
synthesis.enforcement, synthesis.enforcement.packages, synthesis.language, synthesis.memory,
synthesis.pipelines.definition.
"""
