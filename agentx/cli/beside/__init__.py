"""Commands for scripts and other agents: watch, export, import rules, tool, check, record.

May import: cli, config, core, memory, recording, rule_files, storage, synthesis, tools, workspace.
"""
