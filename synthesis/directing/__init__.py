"""Directing, as pure code over history: when to ask a director, what to show it, how to apply its answer.

Nothing here calls a model or reads a clock: the same history gives the same decision and the same prompt.

May import: storage, synthesis.language, synthesis.memory, synthesis.model, synthesis.scribe,
synthesis.similarity, synthesis.state.
"""
