"""Questions about the past and ways back to it: diff, bisect, undo, restore, status, audit.

May import: core, engine, memory, policy, recording, storage, synthesis.
"""
