"""Cognition: a buffer of memories that is worked on at every message. It is recognised, decayed and activated; then it answers.

May import: storage, synthesis.demands.reading, synthesis.judgement, synthesis.language,
synthesis.memory, synthesis.model, synthesis.scribe, synthesis.state.
"""
