"""Storage: events and their codec, history log, Git repository, artifacts, locks and memory index.

May import: nothing of ours.
"""
