"""Finding and redacting secrets in text, by their format, their context and their wrapping.

May import: storage.events, storage.text.
"""
