"""What is concluded: memory items and their policies, the fold, extractors, checks, embeddings, model clients.

May import: nothing of ours.
"""
