"""The memory index: a small port with two backends, in memory (the exact reference) and LanceDB.

May import: storage.errors, storage.files, storage.text.
"""
