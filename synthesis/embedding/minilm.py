"""MiniLM on this machine: the int8 graph in onnxruntime, without torch and without network access."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.storage.extras import EMBEDDING, needs
from agentx.storage.index.port import Vector
from agentx.storage.text import encodable
from agentx.synthesis.embedding.port import READ_CHARACTERS, ModelUnavailable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

DIMENSIONS = 384
"""Length of a vector."""

MAX_TOKENS = 256
"""Input length of the model (``sentence_bert_config.json``); the shipped tokenizer stops at 128."""

THREADS = 1
"""Threads per calculation; indexing runs in the background and leaves the other cores to the agent."""

FILES = "minilm-int8-1"
"""Identifies the files of the model; raised when the graph is built differently."""

LEFT_OUT = ("SkipLayerNormFusion",)
"""Optimisations that onnxruntime leaves out: the fused kernel takes four times as long as its two parts."""


class MiniLM:
    """all-MiniLM-L6-v2 in int8; the model is loaded at its first use (0.2 s).

    Args:
        folder: Where :func:`agentx.synthesis.embedding.install.install_minilm` put ``model.onnx`` and
            ``tokenizer.json``.

    Attributes:
        name: ``minilm-int8-2``; the number is raised when the graph is built or run differently, so that old
            vectors are not compared with new ones.
        dimensions: 384.
        batch: 1, which is as fast as several at a time.
    """

    name = "minilm-int8-2"
    dimensions = DIMENSIONS
    batch = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[InferenceSession, Tokenizer] | None = None

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages, in order; only the first 256 tokens of a passage count.

        Passages are embedded one at a time. This is as fast as batches, and the vector of a passage does not
        depend on the others.
        """
        import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

        session, tokenizer = self._load()
        vectors: list[Vector] = []
        for text in texts:
            ids = np.array([tokenizer.encode(encodable(text.strip()[:READ_CHARACTERS])).ids], np.int64)
            (found,) = session.run(["embedding"], {"input_ids": ids})
            vectors.append(found[0])
        return vectors

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; the model does not distinguish it from a passage."""
        return self.embed_passages([text])[0]

    def _load(self) -> "tuple[InferenceSession, Tokenizer]":
        if self._loaded is None:
            with needs(EMBEDDING, ModelUnavailable):
                import onnxruntime  # noqa: PLC0415  (heavy: loaded when something is embedded)
                from tokenizers import Tokenizer  # noqa: PLC0415  (as above)

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = THREADS
            options.inter_op_num_threads = 1
            options.log_severity_level = 3
            # A thread that spins while it waits takes processor time from everything else on the machine.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            model, words = self._folder / "model.onnx", self._folder / "tokenizer.json"
            try:
                session = onnxruntime.InferenceSession(
                    model, options, providers=["CPUExecutionProvider"], disabled_optimizers=LEFT_OUT
                )
                tokenizer = Tokenizer.from_file(str(words))
            except Exception as error:  # both libraries raise various exception types
                raise ModelUnavailable(
                    f"The embedding model in {self._folder} cannot be read ({error}). "
                    "Delete that directory and run `agentx models install minilm`."
                ) from error
            tokenizer.enable_truncation(MAX_TOKENS)
            tokenizer.no_padding()
            self._loaded = session, tokenizer
        return self._loaded
