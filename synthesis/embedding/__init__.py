"""Convert text to vectors, with MiniLM on this machine or a hosted model; without either, search is lexical.

May import: storage, synthesis.model.
"""

from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.install import install_minilm
from agentx.synthesis.embedding.port import Embedder, ModelUnavailable

__all__ = ["Embedder", "ModelUnavailable", "install_minilm", "open_embedder"]
