"""LangGraph: a graph of messages with a checkpoint in SQLite after each step, and its store for search."""

import sqlite3

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from tests.compare.driver import Driver, Message, Shown

_THREAD = {"configurable": {"thread_id": "one"}}


class LangGraph(Driver):
    name = "LangGraph"
    package = "langgraph-checkpoint-sqlite"
    kind = "checkpoints of an agent framework"
    durability = "`SqliteSaver`; each message is added by `update_state`, which writes one checkpoint before it returns"
    remarks = {  # noqa: RUF012
        "recall": "by its `InMemoryStore` with an index, which keeps nothing; its store in SQLite needs a Python that loads extensions",
        "secrets": "its `EncryptedSerializer`, which needs a key, encrypts checkpoints; it was not used",
        "size": "each checkpoint holds the whole state, so the size grows with the square of the messages",
        "crowd": "a checkpoint is a whole state: processes that write one thread at a time are not its purpose, and overwrite each other",
    }

    def start(self) -> None:
        connection = sqlite3.connect(self.folder / "checkpoints.db", check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        graph = StateGraph(MessagesState)
        graph.add_node("keep", lambda state: {})
        graph.add_edge(START, "keep")
        self._graph = graph.compile(checkpointer=saver)
        self._connection = connection
        self._store = None

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        added = {"messages": [_message(one) for one in messages]}
        self._graph.update_state(_THREAD, added, as_node="keep")

    def _messages(self) -> list:
        return self._graph.get_state(_THREAD).values.get("messages", [])

    def read(self, last: int | None = None) -> list[str]:
        found = [one.content for one in self._messages()]
        return found[-last:] if last else found

    def search(self, query: str, k: int) -> list[str]:
        return [hit.value["text"] for hit in self._store.search(("messages",), query=query, limit=k)]

    def index(self) -> None:
        index = {"dims": 384, "embed": self.embed, "fields": ["text"]}
        self._store = InMemoryStore(index=index)
        for number, text in enumerate(self.read()):
            self._store.put(("messages",), str(number), {"text": text})

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        kept = trim_messages(
            self._messages(), strategy="last", max_tokens=max_tokens, token_counter="approximate"
        )
        return [Shown(one.content, one.type == "human") for one in kept]

    def as_of(self, count: int) -> list[str]:
        for state in self._graph.get_state_history(_THREAD):
            if len(found := state.values.get("messages", [])) == count:
                return [one.content for one in found]
        return []

    def digest(self) -> bytes:
        return repr([(one.type, one.content) for one in self._messages()]).encode()

    def close(self) -> None:
        self._connection.close()


def _message(message: Message):
    if message.role == "tool":
        return ToolMessage(message.text, tool_call_id="call", name=message.tool or "tool")
    return (HumanMessage if message.role == "user" else AIMessage)(message.text)


DRIVER = LangGraph
