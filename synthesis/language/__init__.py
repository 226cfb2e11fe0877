"""Words, sentences, spelling and tokens of English text.

May import: storage.
"""
