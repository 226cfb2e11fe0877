"""Pipelines: dispatch agents without memory, each with its own files, and prove what they did.

May import: agents, config, core, directing, engine, pipelines.pointing, policy, quality, recording,
storage, synthesis, tools.
"""
