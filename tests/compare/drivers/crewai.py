"""CrewAI: its unified memory in LanceDB, without a model."""

import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai.memory.unified_memory import Memory

from tests.compare.driver import Driver, Message, Shown


class CrewAI(Driver):
    name = "CrewAI"
    package = "crewai"
    kind = "memory of an agent framework"
    durability = "`Memory` with a directory; all fields are given, and similar records are not consolidated, so that no model is asked"
    remarks = {  # noqa: RUF012
        "append": "the vectors come from the endpoint, over HTTP",
        "recall": '`depth="shallow"`, which asks no model',
        "poison": "memories stand in the task's prompt, under a heading; all messages were remembered, because without a model nobody chooses",
    }

    def start(self) -> None:
        os.environ["CREWAI_STORAGE_DIR"] = str(self.folder / "crewai")
        self._memory = Memory(
            storage=str(self.folder / "memory"), embedder=self.embed, consolidation_threshold=1.0
        )
        self._fields = {"scope": "/one", "categories": ["message"], "importance": 0.5}

    def append(self, message: Message) -> None:
        self._memory.remember(
            message.text, **self._fields, source=message.role, metadata={"role": message.role}
        )

    def append_all(self, messages) -> None:
        for first in range(0, len(messages), 100):
            some = [one.text for one in messages[first : first + 100]]
            self._memory.remember_many(some, **self._fields)
        self._memory.drain_writes()

    def learn(self, messages) -> None:
        for message in messages:
            self.append(message)

    def _records(self, last: int | None = None) -> list:
        return self._memory.list_records(scope="/one", limit=last or 1_000_000)[::-1]

    def read(self, last: int | None = None) -> list[str]:
        return [one.content for one in self._records(last)]

    def search(self, query: str, k: int) -> list[str]:
        return [hit.record.content for hit in self._memory.recall(query, limit=k, depth="shallow")]

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        return [Shown(text, instruction=False, memory=True) for text in self.search(question, 10)]

    def digest(self) -> bytes:
        return repr([(one.id, one.content, one.metadata) for one in self._records()]).encode()

    def close(self) -> None:
        self._memory.close()


DRIVER = CrewAI
