"""Mem0: memories in an embedded Qdrant, with the model and the embedder at a local endpoint."""

import os

from tests.compare.driver import Driver, Message, Shown

os.environ.update(MEM0_TELEMETRY="False", ANONYMIZED_TELEMETRY="False")
_USER = {"user_id": "user"}


class Mem0(Driver):
    name = "Mem0"
    package = "mem0ai"
    kind = "memory of facts that a model extracts"
    durability = "Qdrant in a directory with `on_disk`, and `infer=False`: messages as they are"
    remarks = {  # noqa: RUF012
        "crowd": "an embedded Qdrant belongs to one process; its error says to run the server for more",
        "recall": "without its extra for keyword search, which fetches a model",
        "poison": "memories stand in the system prompt, as its documentation shows; what a tool said is not handed to the model",
        "append": "the vectors come from the endpoint, over HTTP",
    }

    def start(self) -> None:
        os.environ["MEM0_DIR"] = str(self.folder / "mem0")
        from mem0 import Memory

        local = {"api_key": "none", "openai_base_url": self.endpoint, "model": "local"}
        store = {"path": str(self.folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "openai", "config": local},
                "embedder": {"provider": "openai", "config": {**local, "embedding_dims": 384}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(self.folder / "history.db"),
            }
        )

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        said = [{"role": one.role, "content": one.text} for one in messages]
        self._memory.add(said, **_USER, infer=False)

    def learn(self, messages) -> None:
        self._memory.add([{"role": one.role, "content": one.text} for one in messages], **_USER)

    def read(self, last: int | None = None) -> list[str]:
        found = self._memory.get_all(filters=_USER, top_k=1_000_000)["results"]
        texts = [one["memory"] for one in sorted(found, key=lambda one: one["created_at"])]
        return texts[-last:] if last else texts

    def search(self, query: str, k: int) -> list[str]:
        return [one["memory"] for one in self._memory.search(query, filters=_USER, top_k=k)["results"]]

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        return [Shown(text, instruction=False, memory=True) for text in self.search(question, 10)]

    def digest(self) -> bytes:
        found = self._memory.get_all(filters=_USER, top_k=1_000_000)["results"]
        return repr(sorted(sorted(one.items()) for one in found)).encode()

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


DRIVER = Mem0
