"""Commands about memory: items, review, explanations, maintenance, notes, flows.

May import: cli, cli.beside, engine, memory, rule_files, storage, synthesis, workspace.
"""
