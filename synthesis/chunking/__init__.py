"""Split text along its structure into passages for search: definitions, sections, conversation turns.

Files go through :func:`chunk_file`, turns of a conversation through :func:`chunk_message`. :func:`outline`
lists the definitions of a long file. A piece is cut at lines and bounded in bytes, so that it fits the input
of an embedding model.

May import: storage.
"""

from agentx.synthesis.chunking.file_kinds import kind_of_file
from agentx.synthesis.chunking.passages import chunk_file, chunk_message, outline, split_file
from agentx.synthesis.chunking.pieces import OutlineEntry, Piece

__all__ = ["OutlineEntry", "Piece", "chunk_file", "chunk_message", "kind_of_file", "outline", "split_file"]
