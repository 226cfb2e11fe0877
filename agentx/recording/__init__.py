"""The write path: append an event, stage files, commit; detect the user's edits; recovery after a crash.

May import: config, core, storage, synthesis.
"""
