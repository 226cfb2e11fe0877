"""Finding and redacting secrets in text: by format, by context, and behind encodings.

May import: storage.events, storage.text.
"""
