"""The model form of capture: a question to a model, its answer, and what of the answer may be believed.

A model only points: at words that the user said, at items that are there, at one of a few choices. Nothing that it writes
itself becomes memory but one line that says why.

May import: storage, synthesis.demands, synthesis.demands.reading, synthesis.demands.tables,
synthesis.language, synthesis.memory, synthesis.model, synthesis.state.
"""
