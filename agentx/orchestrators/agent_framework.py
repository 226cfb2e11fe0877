"""Microsoft's Agent Framework: history, context and middleware that a workspace keeps.

The framework asks for subclasses of its own classes, so the functions here make them when they are called.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    HostAside,
    RequestedCall,
    Thought,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.lines import as_json, fields_in, parts_in, text_in
from agentx.orchestrators.kept_conversation import (
    CONTEXT_TOKENS,
    AnswerRefused,
    Item,
    KeptConversation,
    call_arguments,
    in_thread,
)
from agentx.storage.extras import AGENT_FRAMEWORK, needs
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from agent_framework import AgentMiddleware, FunctionMiddleware, HistoryProvider

HOST = "agent-framework"
"""The framework, as events name it."""

SOURCE = "agentx"
"""Name of the provider, which the framework attributes the messages to that it loads."""

_UNNAMED = "default"


class WorkspaceConversations:
    """The conversations of an agent, one for each session, kept in a workspace.

    Args:
        ws: The workspace.
        agent: Name of the agent, which becomes the actor ``agent:<name>``.
        user_speaks: Whether messages of the role ``user`` are the user's words; false for an agent that a
            workflow or another agent prompts. A message with another author's name never is.

    Raises:
        UsageError: ``agent`` is not a name.
    """

    def __init__(self, ws: Workspace, *, agent: str = "main", user_speaks: bool = True) -> None:
        self.ws = ws
        self._agent = agent
        self._user_speaks = user_speaks
        self._kept: dict[str, KeptConversation] = {}
        self.of(None)

    def of(self, session_id: str | None) -> KeptConversation:
        """Return the conversation of a session."""
        name = session_id or _UNNAMED
        if name not in self._kept:
            self._kept[name] = KeptConversation(
                self.ws,
                name,
                host=HOST,
                agent=self._agent,
                read=message_entries,
                user_speaks=self._user_speaks,
            )
        return self._kept[name]

    def history(self, *, max_tokens: int = CONTEXT_TOKENS) -> "HistoryProvider":
        """Return the history provider, which also adds the context of the workspace to the instructions.

        The user's messages are durable, and their rules apply, before the model is asked; the rest of a turn
        is when the run returns.

        Args:
            max_tokens: Budget of the context; 0 for none.

        Raises:
            ExtraMissing: The framework is not installed.
        """
        with needs(AGENT_FRAMEWORK):
            from agent_framework import HistoryProvider, Message  # noqa: PLC0415
        conversations = self

        class WorkspaceHistoryProvider(HistoryProvider):
            async def get_messages(self, session_id: str | None, **_more: Any) -> list[Message]:
                items = await in_thread(conversations.of(session_id).items)
                return [Message.from_dict(item) for item in items]

            async def save_messages(
                self,
                session_id: str | None,
                messages: Sequence[Message],
                **_more: Any,
            ) -> None:
                items = [_item(message) for message in messages]
                await in_thread(conversations.of(session_id).append, items, perhaps_all=True)

            async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
                talk = conversations.of(context.session_id)
                items = [_item(message) for message in context.input_messages]
                await in_thread(talk.hear, items)
                await super().before_run(agent=agent, session=session, context=context, state=state)
                if max_tokens:
                    text = await in_thread(talk.context, "", max_tokens=max_tokens)
                    context.extend_instructions(self.source_id, text)

        return WorkspaceHistoryProvider(SOURCE)

    def function_middleware(self) -> "FunctionMiddleware":
        """Return middleware that asks the gate before each function call and records its result.

        A call that breaks a rule does not run; its result is the rule and the user's sentence.

        Raises:
            ExtraMissing: The framework is not installed.
        """
        with needs(AGENT_FRAMEWORK):
            from agent_framework import FunctionMiddleware  # noqa: PLC0415
        conversations = self

        class WorkspaceGate(FunctionMiddleware):
            async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
                talk = conversations.of(context.session.session_id if context.session else None)
                arguments, call_id = (
                    call_arguments(context.arguments),
                    str(context.metadata.get("call_id") or ""),
                )
                tool = context.function.name
                if reason := await in_thread(talk.gate, tool, arguments, call_id):
                    context.result = f"Denied. {reason}"
                    return
                try:
                    await call_next()
                except Exception as error:
                    await in_thread(talk.did, tool, arguments, call_id, str(error), failed=True)
                    raise
                await in_thread(talk.did, tool, arguments, call_id, _result(context.result))

        return WorkspaceGate()

    def agent_middleware(self) -> "AgentMiddleware":
        """Return middleware that raises :class:`AnswerRefused` in place of an answer that breaks a rule.

        Answers that are streamed pass: they are recorded with the rules that they break.

        Raises:
            ExtraMissing: The framework is not installed.
        """
        with needs(AGENT_FRAMEWORK):
            from agent_framework import AgentMiddleware  # noqa: PLC0415
        conversations = self

        class WorkspaceAnswers(AgentMiddleware):
            async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
                await call_next()
                if context.stream or context.result is None:
                    return
                talk = conversations.of(context.session.session_id if context.session else None)
                if broken := await in_thread(talk.check, context.result.text):
                    raise AnswerRefused(broken)

        return WorkspaceAnswers()


def _item(message: Any) -> Item:
    return {**message.to_dict(), "additional_properties": _plain(message.additional_properties)}


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a message without the framework's marks of one run."""
    return {name: value for name, value in properties.items() if not name.startswith("_")}


def message_entries(item: Item) -> Iterator[TranscriptEntry]:
    """Yield what a message tells.

    >>> said = {"type": "text", "text": "Hello."}
    >>> [entry.text for entry in message_entries({"role": "user", "contents": [said]})]
    ['Hello.']
    """
    role = text_in(item.get("role"))
    contents = parts_in(item.get("contents"))
    text = "\n".join(text_in(part.get("text")) for part in contents if part.get("type") == "text")
    if role == "user" and text:
        author = text_in(item.get("author_name"))
        if author in ("", "user"):
            yield UserWords(id="", text=text)
        else:  # a workflow hands on what another agent said
            yield HostAside(id="", sort=f"message of {author}", text=text)
    elif role == "assistant" and text:
        yield AgentWords(id="", text=text)
    for part in contents:
        call_id = text_in(part.get("call_id"))
        match part.get("type"):
            case "text_reasoning":
                yield Thought(id="", text=text_in(part.get("text")))
            case "function_call":
                tool, given = text_in(part.get("name")), call_arguments(part.get("arguments"))
                yield RequestedCall(id="", call_id=call_id, tool=tool, arguments=given)
            case "function_result":
                failed = bool(part.get("exception"))
                output = _result(part.get("result")) or text_in(part.get("exception"))
                yield CallResult(
                    id="", call_id=call_id, output=output, status="FAILED" if failed else "SUCCEEDED"
                )


def _result(result: Any) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    if isinstance(result, list):
        return "\n".join(
            text_in(getattr(part, "text", None)) or text_in(fields_in(part).get("text")) or as_json(part)
            for part in result
        )
    return as_json(result)
