"""Pipelines at work: agents without memory are sent out, each with its own files, and what they did is proved.

May import: agents, core, directing, engine, policy, quality, recording, storage, synthesis, tools, trust.
"""
