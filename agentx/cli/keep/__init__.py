"""Commands that keep a workspace safe: verify, repair, purge, fork, push, pull, trust.

May import: cli, config, core, integrity, integrity.purge, policy, storage, synthesis, transfer, trust,
workspace.
"""
