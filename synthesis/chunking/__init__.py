"""Cuts text along its own structure into passages that can be found: definitions, sections, turns.

Files go through :func:`chunk_file`, turns of a conversation through :func:`chunk_message`; :func:`outline` lists what a
long file defines. A piece is cut at lines and bounded in bytes, so that it fits what an embedding model reads.

May import: storage.
"""

from agentx.synthesis.chunking.files import chunk_file, outline
from agentx.synthesis.chunking.messages import chunk_message
from agentx.synthesis.chunking.pieces import OutlineEntry, Piece

__all__ = ["OutlineEntry", "Piece", "chunk_file", "chunk_message", "outline"]
