"""Commands that set up a workspace or a machine: config, models, doctor.

May import: cli, config, core, factory, integrity, quality, settings, storage, synthesis, trust,
workspace.
"""
