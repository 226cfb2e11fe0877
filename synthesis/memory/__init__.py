"""The memory item, the policy of each kind, decay, and the event that changes memory.

May import: storage.
"""
