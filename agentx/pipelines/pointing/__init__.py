"""The files that a pipeline's roles are pointed to: reading them, an agent's tools for them, what changed.

May import: directing, engine, policy, recording, storage, synthesis, tools, trust.
"""
