"""Microsoft Agent Framework: a history of JSON lines in files."""

import asyncio

from agent_framework import Content, FileHistoryProvider
from agent_framework import Message as Said
from agent_framework._compaction import CharacterEstimatorTokenizer, TruncationStrategy, apply_compaction

from tests.compare.driver import Driver, Message, Shown


class AgentFramework(Driver):
    name = "Agent Framework"
    package = "agent-framework-core"
    kind = "session store of an agent framework"
    durability = "`FileHistoryProvider` with its default format"
    remarks = {  # noqa: RUF012
        "crowd": "its documentation says that it does not lock files between processes",
        "compaction": "its `TruncationStrategy` can keep the first message of the user, which was not asked for",
        "secrets": "its documentation says that the files are plain text, and to review what is put there",
    }

    def start(self) -> None:
        self._loop = asyncio.Runner()
        self._history = FileHistoryProvider(self.folder / "sessions")

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        self._loop.run(self._history.save_messages("one", [_message(one) for one in messages]))

    def _messages(self) -> list[Said]:
        return self._loop.run(self._history.get_messages("one"))

    def read(self, last: int | None = None) -> list[str]:
        found = [_text(one) for one in self._messages()]
        return found[-last:] if last else found

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        tokenizer = CharacterEstimatorTokenizer()
        strategy = TruncationStrategy(max_n=max_tokens, compact_to=max_tokens, tokenizer=tokenizer)
        kept = self._loop.run(apply_compaction(self._messages(), strategy=strategy, tokenizer=tokenizer))
        return [Shown(_text(one), str(one.role) in ("user", "system")) for one in kept]

    def digest(self) -> bytes:
        return b"".join(sorted(path.read_bytes() for path in self.folder.rglob("*") if path.is_file()))

    def as_of(self, count: int) -> list[str]:
        return self.read()[:count]  # the file is its own history

    def close(self) -> None:
        self._loop.close()


def _message(message: Message) -> Said:
    if message.role == "tool":
        return Said("tool", [Content.from_function_result("call", result=message.text)])
    return Said(message.role, [message.text])


def _text(message: Said) -> str:
    return message.text or "".join(
        str(one.result) for one in message.contents if one.type == "function_result"
    )


DRIVER = AgentFramework
