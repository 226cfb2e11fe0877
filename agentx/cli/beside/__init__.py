"""Commands for scripts and other agents: watch, export, import rules, tool, check, record.

May import: cli, recording, rule_files, storage, synthesis, tools, trust, workspace.
"""
