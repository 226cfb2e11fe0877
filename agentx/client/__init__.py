"""Client of the server (`agentx serve`): finds its socket, starts it, sends requests. Standard library only.

May import: agentx, storage.
"""
