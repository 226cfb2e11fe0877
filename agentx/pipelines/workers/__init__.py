"""Steps at work: which are selected, the threads that do them, and how they end.

May import: storage, synthesis.
"""
