"""Chroma: a collection in a directory."""

import uuid

import chromadb
from chromadb.config import Settings

from tests.compare.driver import Driver, Message


class Chroma(Driver):
    name = "Chroma"
    package = "chromadb"
    kind = "vector database in the process"
    durability = "`PersistentClient`"
    remarks = {  # noqa: RUF012
        "crowd": "its cookbook says that several processes may not write to one directory; its documentation recommends the server for production",
        "append": "the vectors come from the endpoint, over HTTP",
    }

    def start(self) -> None:
        client = chromadb.PersistentClient(str(self.folder / "chroma"), Settings(anonymized_telemetry=False))
        self._held = client.get_or_create_collection("messages", embedding_function=None)
        self._count = self._held.count()
        self._client = client

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        for first in range(0, len(messages), 1_000):
            some = messages[first : first + 1_000]
            self._held.add(
                ids=[str(uuid.uuid4()) for _ in some],
                documents=[one.text for one in some],
                metadatas=[
                    {"role": one.role, "number": self._count + first + n} for n, one in enumerate(some)
                ],
                embeddings=self.embed([one.text for one in some]),
            )
        self._count += len(messages)

    def read(self, last: int | None = None) -> list[str]:
        where = {"number": {"$gte": self._count - last}} if last else None
        found = self._held.get(where=where)
        numbers = [one["number"] for one in found["metadatas"]]
        return [text for _, text in sorted(zip(numbers, found["documents"], strict=True))]

    def search(self, query: str, k: int) -> list[str]:
        return self._held.query(query_embeddings=self.embed([query]), n_results=k)["documents"][0]

    def digest(self) -> bytes:
        return repr(self.read()).encode()

    def close(self) -> None:
        self._client.close()


DRIVER = Chroma
