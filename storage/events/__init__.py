"""The types of events and their codec: one event is one line of the log.

May import: storage.errors.
"""
