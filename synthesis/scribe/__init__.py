"""The scribe: deterministic notes of decisions, refusals, requests, findings and lessons, from each fact.

May import: storage, synthesis.demands, synthesis.demands.reading, synthesis.demands.tables,
synthesis.language, synthesis.learning, synthesis.memory, synthesis.similarity, synthesis.state.
"""
