"""Cognition: a buffer of memories that is worked on at every message. It is recognised, decayed and activated; then it answers."""
