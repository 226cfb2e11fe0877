"""Model-based capture: a question to a model, its answer, and which parts of it are accepted.

A model only points: at the user's words, at existing items, at one of a few choices. Of its own text, only a
one-line reason is stored.

May import: storage, synthesis.demands, synthesis.demands.reading, synthesis.demands.tables,
synthesis.language, synthesis.memory, synthesis.model, synthesis.state.
"""
