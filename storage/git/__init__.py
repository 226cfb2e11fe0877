"""The Git repository of a workspace: objects, trees, the one ref, and the index file. The only home of pygit2.

May import: storage.errors, storage.files.
"""
