"""Model clients: one small protocol, litellm behind it, and a scripted model that plays recorded turns.

May import: storage.
"""
