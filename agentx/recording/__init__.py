"""The write path: append an event, stage files, commit; what people changed; recovery after a crash.

May import: config, core, storage, synthesis.
"""
