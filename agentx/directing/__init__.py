"""A director that sees the whole history and writes the prompt; an executor that carries it out and knows nothing else.

May import: agents, engine, memory, policy, quality, storage, synthesis, tools.
"""
