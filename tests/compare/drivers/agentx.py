"""AgentX itself, by the same shape."""

import os

from agentx import Workspace
from agentx.integrity.repair import repair
from agentx.integrity.verify import verify
from agentx.settings import Settings, read_settings
from agentx.storage.events.types import AgentMessageSent, Draft, Event, ToolCallExecuted, UserMessageSent
from tests.compare.driver import Driver, Message, Shown

_DEMANDED = {"mission", "rules", "rejections"}
"""Sections of a context that a model takes for the user's words; all others are marked as material or as somebody's message."""


class AgentX(Driver):
    name = "AgentX"
    package = "agentx-workspace"
    kind = "workspace: history, files, memory"
    record = "ws/history.jsonl"
    durability = "as installed: each event is synced before it is acknowledged"

    def start(self) -> None:
        root = self.folder / "ws"
        settings = Settings(
            environ={**os.environ, "AGENTX_NO_SERVER": "1"},
            cache_dir=read_settings().cache_dir if self.by_meaning else self.folder / "no-models",
            state_dir=self.folder / "state",
        )
        made = (root / "history.jsonl").exists()
        self._ws = (Workspace.open if made else Workspace.create)(root, settings=settings)
        if self.by_meaning:
            self._ws.engine.indexer._open_embedder = lambda: (Served(self), "")

    def append(self, message: Message) -> None:
        if message.role == "user":
            self._ws.say(message.text)
        else:
            self._ws.record(self._draft(message))

    def append_all(self, messages) -> None:
        with self._ws.bulk():
            for first in range(0, len(messages), 100):
                self._ws.record(*map(self._draft, messages[first : first + 100]))

    def learn(self, messages) -> None:
        for message in messages:
            self.append(message)

    def _draft(self, message: Message) -> Draft:
        body = self._ws.body(message.text)
        if message.role == "user":
            return Draft(data=UserMessageSent(body=body), actor="user")
        if message.role == "assistant":
            return Draft(data=AgentMessageSent(body=body, final=True), actor="agent:main")
        called = ToolCallExecuted(
            call_id="call", tool=message.tool or "tool", status="SUCCEEDED", arguments={}, output=body
        )
        return Draft(data=called, actor="agent:main")

    def read(self, last: int | None = None) -> list[str]:
        if last is None:
            return self._texts(self._ws.events())
        # A reader of the newest ones needs no older: events are numbered
        found: list[str] = []
        size = last + 10
        while len(found) < last and size < 2 * (self._ws.state.seq + size):
            found = self._texts(self._ws.events(after=max(0, self._ws.state.seq - size)))
            size *= 4
        return found[-last:]

    def _texts(self, events) -> list[str]:
        return [self._text(event) for event in events if _body(event) is not None]

    def _text(self, event: Event) -> str:
        return self._ws.read_body(_body(event))

    def search(self, query: str, k: int) -> list[str]:
        by_number = self._by_number
        found = dict.fromkeys(hit.seq for hit in self._ws.search(query, k))
        return [by_number[seq] for seq in found if seq in by_number]

    def index(self) -> None:
        self._ws.settle(900)
        self._by_number = {
            event.seq: self._text(event) for event in self._ws.events() if _body(event) is not None
        }

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        room = max_tokens
        while True:  # its tokens are those of a tokenizer; here a token is four characters
            context = self._ws.get_relevant_context(question, max_tokens=room, deadline_ms=None)
            if len(context.text) <= 4 * max_tokens:
                break
            room = int(room * 0.9)
        return [Shown(item.text, item.section in _DEMANDED) for item in context.items]

    def check(self) -> str:
        found = verify(self.folder / "ws")
        return "" if not found.findings else str(found.findings[0])

    def repair(self) -> None:
        repair(self.folder / "ws")

    def rebuild(self) -> None:
        self._ws.rebuild()

    def as_of(self, count: int) -> list[str]:
        numbers = [event.seq for event in self._ws.events() if _body(event) is not None]
        moment = numbers[count - 1]
        state = self._ws.state_at(moment)
        return self._texts(event for event in self._ws.events() if event.seq <= state.seq)

    def digest(self) -> bytes:
        return self._ws.state.digest.encode()

    def close(self) -> None:
        self._ws.close()


class Served:
    """The embedder behind the endpoint, in the shape that the index asks for."""

    name, dimensions, batch = "served", 384, 16

    def __init__(self, driver: AgentX) -> None:
        self._driver = driver

    def embed_passages(self, texts):
        import numpy as np

        return [np.array(one, np.float32) for one in self._driver.embed(texts)]

    def embed_query(self, text: str):
        return self.embed_passages([text])[0]


def _body(event: Event):
    data = event.data
    if isinstance(data, UserMessageSent | AgentMessageSent):
        return data.body
    return data.output if isinstance(data, ToolCallExecuted) else None


DRIVER = AgentX
