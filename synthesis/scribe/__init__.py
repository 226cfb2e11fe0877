"""The scribe: deterministic notes of decisions, refusals, requests, findings and lessons, from each fact.

May import: storage, synthesis.attribution, synthesis.demands, synthesis.language, synthesis.learning,
synthesis.memory, synthesis.shell, synthesis.similarity, synthesis.state.
"""
