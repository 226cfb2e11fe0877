"""Ask a model what a directory is for, when none of its files says so."""

import msgspec

from agentx.storage.text import plain
from agentx.synthesis.model.port import ChatMessage, ModelClient, Reply, ToolSchema, Usage
from agentx.synthesis.model.structured import AnswerUnreadable, ask, object_of, parameters, prompt

TOOL = "describe_directory"
"""Name of the tool that a model answers with; calling it runs nothing."""

MAX_PURPOSE = 240
"""Maximum length of a purpose, in characters."""

MAX_OUTLINE = 6_000
"""Maximum length of the outline that a model is shown, in characters."""


class _Answer(msgspec.Struct, frozen=True):
    purpose: str = ""


def purpose_by(model: ModelClient, outline: str, deadline: float) -> tuple[str, Usage]:
    """Return a model's sentence about a directory, empty if it has none, and what the call used.

    Args:
        model: The model.
        outline: The files of the directory, and what they define.
        deadline: ``time.monotonic()`` by which the answer must have arrived.

    Raises:
        ModelError: The model could not be reached, or its answer could not be read.
    """
    return ask(
        model,
        [ChatMessage("system", prompt("describe_directory.md")), ChatMessage("user", outline[:MAX_OUTLINE])],
        ToolSchema(TOOL, "Say what a directory is for.", parameters("describe_directory.json")),
        _read,
        prompt("describe_directory_repair.md"),
        deadline=deadline,
    )


def _read(reply: Reply) -> str:
    try:
        answer = msgspec.convert(object_of(reply, TOOL), _Answer)
    except msgspec.ValidationError as error:
        raise AnswerUnreadable(f"its arguments have another shape ({error})") from error
    return " ".join(plain(answer.purpose).split())[:MAX_PURPOSE]
