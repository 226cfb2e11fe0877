"""What is kept: events and their codec, the history log, the Git repository, artifacts, locks, the memory index.

May import: nothing of ours.
"""
