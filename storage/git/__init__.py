"""The Git repository of a workspace: objects, trees, the branch and the index file. The only user of pygit2.

May import: storage.errors, storage.files, storage.stopping.
"""
