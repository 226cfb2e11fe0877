"""The OpenAI Agents SDK: its session in a file of SQLite."""

import asyncio

from agents import SQLiteSession

from tests.compare.driver import Driver, Message, Shown, latest_within


class OpenAIAgents(Driver):
    name = "OpenAI Agents SDK"
    package = "openai-agents"
    kind = "session store of an agent framework"
    remarks = {  # noqa: RUF012
        "secrets": "its `EncryptedSession`, an extra that needs a key, encrypts all items; it was not used",
    }
    durability = "`SQLiteSession` with a file; it sets `journal_mode=WAL` itself"

    def start(self) -> None:
        self._loop = asyncio.Runner()
        self._session = SQLiteSession("one", self.folder / "sessions.db")

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        self._loop.run(self._session.add_items([_item(one) for one in messages]))

    def _items(self, last: int | None = None) -> list[dict]:
        return self._loop.run(self._session.get_items(limit=last))

    def read(self, last: int | None = None) -> list[str]:
        return [_text(item) for item in self._items(last)]

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        return latest_within(
            [(_text(item), item.get("role") == "user") for item in self._items()], max_tokens
        )

    def digest(self) -> bytes:
        return repr(self._items()).encode()

    def close(self) -> None:
        self._session.close()
        self._loop.close()


def _item(message: Message) -> dict:
    if message.role == "tool":
        return {"type": "function_call_output", "call_id": "call", "output": message.text}
    return {"role": message.role, "content": message.text}


def _text(item: dict) -> str:
    return item.get("content") or item.get("output") or ""


DRIVER = OpenAIAgents
