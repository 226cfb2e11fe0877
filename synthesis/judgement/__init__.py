"""Checks what a model or an agent concludes from the user's words, and accepts what the words prove.

A model only points: at the user's words, at existing items, at one of a few choices. Of its own text, only a
one-line reason is stored. An agent that settles a candidate may also word it, as far as numbers, names and
negation are those of the user.

May import: storage, synthesis.attribution, synthesis.compiling, synthesis.demands,
synthesis.demands.reading, synthesis.language, synthesis.memory, synthesis.model, synthesis.state.
"""
