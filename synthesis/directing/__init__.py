"""Directing, as pure code over history: when a director is asked, what it is shown, and what its words come to.

Nothing here calls a model or reads a clock: the same history gives the same decision and the same prompt.

May import: storage, synthesis.language, synthesis.memory, synthesis.model, synthesis.scribe,
synthesis.similarity, synthesis.state.
"""
