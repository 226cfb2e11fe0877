"""LlamaIndex: its ``Memory`` over a chat store in SQLite, and a vector index of its own for search."""

import asyncio

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import Memory
from llama_index.core.schema import TextNode

from tests.compare.driver import Driver, Message, Shown


class LlamaIndex(Driver):
    name = "LlamaIndex"
    package = "llama-index-core"
    kind = "memory of an agent framework"
    durability = "`Memory` with `async_database_uri` of a file of SQLite"
    remarks = {  # noqa: RUF012
        "recall": "by a `VectorStoreIndex` in memory, with its defaults",
    }

    def start(self) -> None:
        self._loop = asyncio.Runner()
        self._memory = self._opened(1_000_000)

    def _opened(self, max_tokens: int) -> Memory:
        return Memory.from_defaults(
            session_id="one",
            token_limit=max_tokens,
            async_database_uri=f"sqlite+aiosqlite:///{self.folder / 'memory.db'}",
        )

    def append(self, message: Message) -> None:
        self._loop.run(self._memory.aput(_message(message)))

    def append_all(self, messages) -> None:
        self._loop.run(self._memory.aput_messages([_message(one) for one in messages]))

    def _all(self) -> list[ChatMessage]:
        return self._loop.run(self._memory.aget_all())

    def read(self, last: int | None = None) -> list[str]:
        if last is None:
            return [one.content for one in self._all()]
        return self._loop.run(self._latest(last))

    async def _latest(self, last: int) -> list[str]:
        store = self._memory.sql_store
        count = await store.count_messages("one")
        found = await store.get_messages("one", limit=last, offset=max(0, count - last))
        return [one.content for one in found]

    def search(self, query: str, k: int) -> list[str]:
        return [hit.text for hit in self._index.as_retriever(similarity_top_k=k).retrieve(query)]

    def index(self) -> None:
        nodes = [TextNode(text=text) for text in self.read()]
        self._index = VectorStoreIndex(nodes, embed_model=Served(self))

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        memory = self._opened(max_tokens)
        asked = ChatMessage(role=MessageRole.USER, content=question)
        self._loop.run(memory.aput(asked))  # where it moves old messages out
        return [
            Shown(one.content, one.role in (MessageRole.USER, MessageRole.SYSTEM))
            for one in self._loop.run(memory.aget())
        ]

    def digest(self) -> bytes:
        return repr([(one.role, one.content) for one in self._all()]).encode()

    def close(self) -> None:
        engine = self._memory.sql_store._async_engine
        if engine is not None:
            self._loop.run(engine.dispose())
        self._loop.close()


class Served(BaseEmbedding):
    """The embedder behind the endpoint."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(model_name="served", embed_batch_size=64)
        self._driver = driver

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._driver.embed(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._driver.embed([text])[0]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._driver.embed([query])[0]


def _message(message: Message) -> ChatMessage:
    return ChatMessage(role=MessageRole(message.role), content=message.text)


DRIVER = LlamaIndex
