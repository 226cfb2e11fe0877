"""Regular expressions that come as data, of a history, an item or a check: matched in a time that is bounded.

May import: storage.errors.
"""
