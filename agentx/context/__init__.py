"""What an agent is shown: the context within its token budget, the startup text, and the replay of both.

May import: engine, memory, recording, search, storage, synthesis.
"""
