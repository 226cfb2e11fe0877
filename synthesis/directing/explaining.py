"""Dynamic fields described only in words: ask a model once for the resolver or the current value."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.synthesis.directing import briefing, fields
from agentx.synthesis.directing.past import Past
from agentx.synthesis.model.port import ChatMessage, Reply, ToolSchema
from agentx.synthesis.model.structured import AnswerUnreadable, object_of, parameters, prompt

TOOL = "explain_field"
"""Name of the tool that a model answers with; calling it runs nothing."""

MAX_VALUE, MAX_RESOLVER = 2_000, 400
"""Maximum length of a value, and of a resolver call, in characters."""


LINE_CHARACTERS = 600
"""Maximum length of each run's line, in characters."""


class Explained(msgspec.Struct, frozen=True):
    """A model's explanation of a field: a resolver that was tried, or a value."""

    resolver: Annotated[str, msgspec.Meta(max_length=MAX_RESOLVER)] = ""
    value: str = ""


def question(field: str, words: str, past: Past) -> list[ChatMessage]:
    """Build the conversation that asks a model about a field."""
    resolvers = "; ".join(f"`{one}`" for one in fields.signatures())
    asked = prompt("explain_field.md").format(resolvers=resolvers, field=field, words=words)
    runs = "\n".join(f"- {line[:LINE_CHARACTERS]}" for line in briefing.runs(past)) or "Nothing ran yet."
    return [ChatMessage("system", asked), ChatMessage("user", f"Now: {past.at}\n\nRuns:\n{runs}")]


def shape() -> ToolSchema:
    """Return the schema of an answer, as a tool."""
    return ToolSchema(TOOL, "Give a value for the field.", parameters("explain_field.json"))


def reader(past: Past) -> Callable[[Reply], Explained]:
    """Return a function that parses a reply and tries its resolver on the history.

    The function raises :class:`AnswerUnreadable` if neither part can be used.
    """

    def read(reply: Reply) -> Explained:
        try:
            said = msgspec.convert(object_of(reply, TOOL), Explained)
            lookup = fields.parse(said.resolver) if said.resolver.strip() else None
            if lookup is not None:
                fields.resolve(lookup, past)
                return Explained(resolver=said.resolver.strip())
        except (msgspec.ValidationError, UsageError) as error:
            raise AnswerUnreadable(
                f"the answer of {reply.model} does not explain the field: {error}"
            ) from error
        if not said.value.strip() or len(said.value) > MAX_VALUE:
            raise AnswerUnreadable(
                f"the answer of {reply.model} has neither a known resolver "
                f"nor a value of at most {MAX_VALUE:,} characters"
            )
        return Explained(value=plain(said.value).strip())

    return read
