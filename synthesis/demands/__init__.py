"""The lasting demands of a user's message, taken without a model: what is certain is a rule, what is likely a proposal.

May import: storage, synthesis.demands.reading, synthesis.demands.tables, synthesis.language,
synthesis.memory, synthesis.state.
"""
