"""Extraction of a user's lasting demands without a model.

What is certain becomes a rule, what is likely a candidate.

May import: storage, synthesis.attribution, synthesis.compiling, synthesis.compiling.reading,
synthesis.demands.reading, synthesis.demands.tables, synthesis.language, synthesis.memory, synthesis.state.
"""
