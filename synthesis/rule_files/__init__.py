"""Rules in files of other agents (AGENTS.md, CLAUDE.md, Cursor rules): split, compared, rendered.

Everything here is pure: it reads texts and items, and returns statements, differences and texts. What a file
says is material. It becomes a rule only if a person accepts it.

May import: storage, synthesis.attribution, synthesis.demands, synthesis.demands.tables,
synthesis.language, synthesis.memory, synthesis.scribe, synthesis.state.
"""
