"""The scribe's deterministic form: what was decided, refused, asked, found and learned, taken from each fact as it comes.

May import: storage, synthesis.demands, synthesis.demands.reading, synthesis.demands.tables,
synthesis.language, synthesis.learning, synthesis.memory, synthesis.similarity, synthesis.state.
"""
