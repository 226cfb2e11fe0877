"""Commands about memory: items, review, explanations, maintenance, notes, flows.

May import: cli, engine, memory, storage, synthesis, workspace.
"""
