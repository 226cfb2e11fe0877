"""Agno: a session with its runs in SQLite."""

import json
import uuid

from agno.db.base import SessionType
from agno.db.sqlite import SqliteDb
from agno.models.message import Message as Said
from agno.run.agent import RunOutput
from agno.session import AgentSession

from tests.compare.driver import Driver, Message, Shown, latest_within


class Agno(Driver):
    name = "Agno"
    package = "agno"
    kind = "session store of an agent framework"
    durability = "`SqliteDb` with a file; each message is a run of its own, added by `upsert_run`"

    def start(self) -> None:
        self._db = SqliteDb(db_file=str(self.folder / "agno.db"))
        if self._db.get_session("one", session_type=SessionType.AGENT) is None:
            self._db.upsert_session(AgentSession(session_id="one", agent_id="main", user_id="user"))

    def append(self, message: Message) -> None:
        self._put([message])

    def append_all(self, messages) -> None:
        for first in range(0, len(messages), 100):  # a run holds the messages of a turn
            self._put(messages[first : first + 100])

    def _put(self, messages) -> None:
        said = [
            Said(role=one.role, content=one.text, **({"tool_call_id": "call"} if one.role == "tool" else {}))
            for one in messages
        ]
        run = RunOutput(
            run_id=str(uuid.uuid4()), session_id="one", agent_id="main", user_id="user", messages=said
        )
        self._db.upsert_run(run, "one", user_id="user")

    def _messages(self) -> list[Said]:
        session = self._db.get_session("one", session_type=SessionType.AGENT)
        return session.get_messages() if session else []

    def read(self, last: int | None = None) -> list[str]:
        if last is None:
            return [one.content for one in self._messages()]
        found: list[str] = []
        runs, more = 1, True
        while len(found) < last and more:
            latest = self._db.get_runs(session_id="one", sort_by="run_index", sort_order="desc", limit=runs)
            found = [one.content for run in latest[::-1] for one in run.messages]
            more, runs = len(latest) == runs, runs * 4
        return found[-last:]

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        return latest_within([(one.content, one.role == "user") for one in self._messages()], max_tokens)

    def digest(self) -> bytes:
        session = self._db.get_session("one", session_type=SessionType.AGENT)
        return json.dumps(session.to_dict(), sort_keys=True, default=str).encode()

    def close(self) -> None:
        self._db.close()


DRIVER = Agno
