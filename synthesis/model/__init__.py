"""Model clients: one small protocol, a client for litellm, and a scripted model that plays recorded turns.

May import: storage.
"""
