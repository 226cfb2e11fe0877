"""Commands about memory: items, review, explanations, maintenance, notes, flows.

May import: cli, cli.beside, config, core, engine, history, memory, rule_files, storage, synthesis, trust,
workspace.
"""
