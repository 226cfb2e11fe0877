"""Pydantic AI: message history that a workspace keeps, its tools as a toolset, its context as instructions.

Messages are kept in the form of Pydantic AI's ``ModelMessagesTypeAdapter``, without the instructions of past
requests: an agent makes them anew for each run.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    RequestedCall,
    Thought,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.lines import as_json, fields_in, parts_in, text_in
from agentx.orchestrators.kept_conversation import (
    CONTEXT_TOKENS,
    Item,
    KeptConversation,
    call_arguments,
    in_thread,
)
from agentx.storage.events.types import ToolStatus
from agentx.storage.extras import PYDANTIC_AI, needs
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from pydantic_ai import FunctionToolset
    from pydantic_ai.messages import ModelMessage

HOST = "pydantic-ai"
"""The framework, as events name it."""

_STATUS: dict[str, ToolStatus] = {"failed": "FAILED", "retried": "FAILED", "denied": "DENIED"}


class WorkspaceHistory:
    """The message history of a conversation, kept in a workspace.

    Args:
        ws: The workspace.
        name: Name of the conversation; becomes the run of its events.
        agent: Name of the agent, which becomes the actor ``agent:<name>``.
        user_speaks: Whether user prompts are the user's words; false for an agent that another one prompts.

    Raises:
        UsageError: The name is empty, or ``agent`` is not a name.
    """

    def __init__(self, ws: Workspace, name: str, *, agent: str = "main", user_speaks: bool = True) -> None:
        self.ws = ws
        self.conversation = KeptConversation(
            ws, name, host=HOST, agent=agent, read=message_entries, user_speaks=user_speaks
        )

    async def load(self) -> "list[ModelMessage]":
        """Return the messages, for the ``message_history`` of a run.

        Raises:
            ExtraMissing: Pydantic AI is not installed.
        """
        with needs(PYDANTIC_AI):
            from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

        return ModelMessagesTypeAdapter.validate_python(await in_thread(self.conversation.items))

    async def save(self, messages: "Sequence[ModelMessage]") -> None:
        """Make these the messages, such as ``result.all_messages()``, and record what the new ones tell.

        On return they are durable. What was there before and is not among them stays in the history.

        Raises:
            ExtraMissing: Pydantic AI is not installed.
        """
        with needs(PYDANTIC_AI):
            from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

        items = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        await in_thread(self.conversation.replace, [{**item, "instructions": None} for item in items])

    async def keep(self, messages: list[Any]) -> list[Any]:
        """Save the messages and return them: a history processor, which makes each step durable.

        Give it to an agent as ``capabilities=[ProcessHistory(history.keep)]``: then the user's message is
        recorded, and its rules apply, before the model is asked.
        """
        await self.save(messages)
        return messages

    async def check(self, output: Any) -> Any:
        """Return an output if it breaks no rule: an output validator.

        Raises:
            ModelRetry: It breaks one; the model is told the rule and the user's sentence, and tries again.
        """
        with needs(PYDANTIC_AI):
            from pydantic_ai import ModelRetry  # noqa: PLC0415

        text = output if isinstance(output, str) else _json(output)
        if broken := await in_thread(self.conversation.check, text):
            raise ModelRetry("The answer breaks what the user demands: " + " ".join(broken))
        return output

    def instructions(self, max_tokens: int = CONTEXT_TOKENS) -> Callable[[Any], Awaitable[str]]:
        """Return the instructions of an agent: what the workspace knows that matters for the prompt.

        Args:
            max_tokens: Budget of the context.
        """

        async def instructions(context: Any) -> str:
            prompt = context.prompt if isinstance(context.prompt, str) else ""
            return await in_thread(self.conversation.context, prompt, max_tokens=max_tokens)

        # Pydantic AI reads the annotation to see that it takes the run's context.
        with needs(PYDANTIC_AI):
            from pydantic_ai import RunContext  # noqa: PLC0415
        instructions.__annotations__["context"] = RunContext[Any]
        return instructions

    def toolset(self, names: Collection[str] = ()) -> "FunctionToolset[Any]":
        """Return the tools of the workspace, each call through the gate and recorded.

        A call that is denied or fails is a failed result, with the reason; the model goes on.

        Args:
            names: Only these tools; all that the workspace allows by default.

        Raises:
            ExtraMissing: Pydantic AI is not installed.
        """
        with needs(PYDANTIC_AI):
            from pydantic_ai import FunctionToolset, Tool  # noqa: PLC0415
        talk = self.conversation
        toolset: FunctionToolset[Any] = FunctionToolset(id="agentx")
        for schema in self.ws.tools.schemas():
            if not names or schema.name in names:
                toolset.add_tool(
                    Tool.from_schema(
                        _caller(talk, schema.name),
                        schema.name,
                        schema.description,
                        schema.parameters,
                        takes_ctx=True,
                        sequential=True,
                    )
                )
        return toolset


def _caller(talk: KeptConversation, name: str) -> Callable[..., Awaitable[str]]:
    with needs(PYDANTIC_AI):
        from pydantic_ai import ToolFailed  # noqa: PLC0415

    async def call(context: Any, **arguments: Any) -> str:
        done = await in_thread(
            talk.ws.tools.call,
            name,
            arguments,
            call_id=context.tool_call_id or "",
            run=talk.name,
            actor=talk.actor,
        )
        if done.status != "SUCCEEDED":
            raise ToolFailed(done.output)
        return done.output

    return call


def message_entries(item: Item) -> Iterator[TranscriptEntry]:
    """Yield what a message tells; what the framework itself asks of a model is nobody's word.

    >>> said = {"part_kind": "user-prompt", "content": "Hello."}
    >>> [entry.text for entry in message_entries({"parts": [said]})]
    ['Hello.']
    """
    model = text_in(item.get("model_name"))
    for part in parts_in(item.get("parts")):
        call_id, tool = text_in(part.get("tool_call_id")), text_in(part.get("tool_name"))
        match part.get("part_kind"):
            case "user-prompt":
                yield UserWords(id="", text=_text(part.get("content")))
            case "text":
                yield AgentWords(id="", text=text_in(part.get("content")), model=model)
            case "thinking":
                yield Thought(id="", text=text_in(part.get("content")), model=model)
            case "tool-call" | "builtin-tool-call" | "native-tool-call":
                yield RequestedCall(
                    id="", call_id=call_id, tool=tool, arguments=call_arguments(part.get("args"))
                )
            case "tool-return" | "builtin-tool-return" | "native-tool-return":
                status = _STATUS.get(text_in(part.get("outcome")), "SUCCEEDED")
                yield CallResult(id="", call_id=call_id, output=_text(part.get("content")), status=status)
            case "retry-prompt" if tool:
                yield CallResult(id="", call_id=call_id, output=_text(part.get("content")), status="FAILED")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return as_json(content) if content is not None else ""
    return "\n".join(
        part if isinstance(part, str) else text_in(fields_in(part).get("content")) or _kind(part)
        for part in content
    )


def _kind(part: Any) -> str:
    return f"[{text_in(fields_in(part).get('kind')) or 'data'}]"


def _json(output: Any) -> str:
    dump = getattr(output, "model_dump_json", None)
    return str(dump()) if dump else as_json(output)
