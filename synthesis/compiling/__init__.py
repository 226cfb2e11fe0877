"""Compile the words of a rule to checks that code can enforce.

May import: storage, synthesis.compiling.reading, synthesis.demands.reading, synthesis.demands.tables,
synthesis.enforcement, synthesis.enforcement.packages, synthesis.language, synthesis.memory,
synthesis.model, synthesis.pipelines.definition.
"""
