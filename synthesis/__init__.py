"""What is concluded: memory items, the fold, extractors, checks, embeddings, model clients.

May import: nothing of ours.
"""
