"""The one shape that every product is driven through, and what a driver may say of it.

A driver runs with the interpreter of its product's own environment, so this module imports the standard library alone. What a
product is not made for, its driver does not define: :class:`Driver` then raises :class:`NotItsPurpose`, and the table says so.
"""

import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Role = Literal["user", "assistant", "tool"]


class NotItsPurpose(Exception):
    """The product is not made for this operation."""


@dataclass(frozen=True)
class Message:
    """What is said or found.

    Attributes:
        role: Whose words; the output of a tool is ``tool``.
        text: The words, which come back as they were.
        tool: The tool's name.
    """

    role: Role
    text: str
    tool: str = ""


@dataclass(frozen=True)
class Shown:
    """A part of what the product would put before the model.

    Attributes:
        instruction: Whether it stands there as the words of the user or of the system; otherwise it is material: the output of a
            tool, the model's own words, or a text that is marked as such.
        memory: Whether it stands in the prompt as a memory, without whose words it rests on.
    """

    text: str
    instruction: bool
    memory: bool = False


class Driver:
    """Drives one product through its own documented interface.

    Attributes:
        name: As its makers write it.
        package: The distribution whose version is shown; empty for a floor.
        kind: What the product is, in a few words.
        durability: The configuration, and whether the documentation recommends it.
        record: The file that holds the records, relative to the folder; empty to look for their texts.
        remarks: By operation, what a reader must know to judge the figure.
    """

    name = ""
    package = ""
    kind = ""
    durability = ""
    record = ""
    remarks: dict[str, str] = {}  # noqa: RUF012 - a subclass has its own

    def __init__(self, folder: Path, endpoint: str = "") -> None:
        self.folder = folder
        self.endpoint = endpoint

    # --- what every product does ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Open what lies in the folder, or make it there."""
        raise NotImplementedError

    def append(self, message: Message) -> None:
        """Add a message; when this returns, it is acknowledged."""
        raise NotImplementedError

    def append_all(self, messages: Sequence[Message]) -> None:
        """Add many messages in the product's way for that."""
        for message in messages:
            self.append(message)

    def read(self, last: int | None = None) -> list[str]:
        """Return the texts of all messages, or of the latest ones, oldest first."""
        raise NotImplementedError

    def close(self) -> None:
        """End as the documentation says."""

    # --- what some do --------------------------------------------------------------------------------------------

    def search(self, query: str, k: int) -> list[str]:
        """Return the texts of the messages that the product's own search finds, best first."""
        raise NotItsPurpose

    def index(self) -> None:
        """Wait until what was appended can be found."""

    def context(self, question: str, max_tokens: int) -> list[Shown]:
        """Return what the product itself would put before a model that is asked a question."""
        raise NotItsPurpose

    def learn(self, messages: Sequence[Message]) -> None:
        """Let the product make memories of a conversation, with the model at the endpoint if it needs one."""
        self.append_all(messages)

    def check(self) -> str:
        """Return what the product's own check finds wrong, before it is opened; empty if nothing."""
        raise NotItsPurpose

    def repair(self) -> None:
        """Restore what can be restored, as the documentation says, before it is opened."""
        raise NotItsPurpose

    def rebuild(self) -> None:
        """Drop everything that was derived, and make it again from the history alone."""
        raise NotItsPurpose

    def as_of(self, count: int) -> list[str]:
        """Return the texts as they were after so many messages."""
        raise NotItsPurpose

    def digest(self) -> bytes:
        """Return the whole state in the product's own serialised form."""
        raise NotItsPurpose

    @property
    def by_meaning(self) -> bool:
        """Whether the endpoint's vectors mean something."""
        return "/minilm/" in self.endpoint

    # --- for drivers ---------------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts from the endpoint, which speaks OpenAI's protocol."""
        body = json.dumps({"model": "local", "input": list(texts)}).encode()
        request = urllib.request.Request(
            f"{self.endpoint}/embeddings", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            found = json.load(answer)["data"]
        return [one["embedding"] for one in sorted(found, key=lambda one: one["index"])]


def latest_within(messages: Sequence[tuple[str, bool]], max_tokens: int) -> list[Shown]:
    """Return the latest texts that fit, each with whether it is an instruction; a token is four characters."""
    taken: list[Shown] = []
    room = max_tokens * 4
    for text, instruction in reversed(messages):
        room -= len(text)
        if room < 0:
            break
        taken.append(Shown(text, instruction))
    return taken[::-1]
