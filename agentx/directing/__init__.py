"""Directed runs: a director sees the whole history and writes a prompt; an executor sees only the prompt.

May import: agents, agentx, config, engine, memory, policy, quality, settings, storage, synthesis, tools.
"""
