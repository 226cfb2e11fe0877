"""Cognition: a buffer of memories that is updated at every message.

Memories are recognised, decayed and activated; then the agent answers.

May import: storage, synthesis.attribution, synthesis.judgement, synthesis.language, synthesis.memory,
synthesis.model, synthesis.scribe, synthesis.state.
"""
