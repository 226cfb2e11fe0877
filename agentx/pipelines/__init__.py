"""Pipelines: dispatch agents without memory, each with its own files, and prove what they did.

May import: agents, core, directing, engine, policy, quality, recording, storage,
synthesis, tools, trust.
"""
