"""Event types and their codec; each event is one line of the log.

May import: storage.clock, storage.errors, storage.text.
"""
