"""OpenAI Agents SDK: a session that a workspace keeps, and guardrails made of its gates.

The session follows the SDK's `Session` protocol, which it needs no import for. Items are in the form of the
Responses API.
"""

import dataclasses
from collections.abc import Callable, Iterator
from inspect import isawaitable
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
from agentx.importing.lines import as_json, parts_in, text_in
from agentx.orchestrators.kept_conversation import (
    CONTEXT_TOKENS,
    Item,
    KeptConversation,
    call_arguments,
    in_thread,
)
from agentx.storage.extras import OPENAI_AGENTS, needs
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from agents import Agent, InputGuardrail, OutputGuardrail, ToolInputGuardrail, ToolOutputGuardrail

HOST = "openai-agents"
"""The framework, as events name it."""


class WorkspaceSession:
    """A session of the SDK that a workspace keeps; give it to ``Runner.run`` as ``session``.

    What a method acknowledges is durable. Several processes may use a session at once.

    Args:
        session_id: Name of the conversation; becomes the run of its events.
        ws: The workspace.
        agent: Name of the agent, which becomes the actor ``agent:<name>``.
        user_speaks: Whether input of the role ``user`` is the user's words; false for a session that a
            program or another agent writes to.

    Raises:
        UsageError: The id is empty, or ``agent`` is not a name.
    """

    def __init__(
        self, session_id: str, ws: Workspace, *, agent: str = "main", user_speaks: bool = True
    ) -> None:
        self.session_id = session_id
        self.session_settings: Any = None
        self.conversation = KeptConversation(
            ws, session_id, host=HOST, agent=agent, read=item_entries, user_speaks=user_speaks
        )

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items in order; with ``limit``, the last so many."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        return await in_thread(self.conversation.items, limit)

    async def add_items(self, items: list[Any]) -> None:
        """Append items, and record the messages and calls that they tell.

        Raises:
            KeptItemInvalid: One of them is not a JSON object; none is appended.
        """
        await in_thread(self.conversation.append, list(items))

    async def pop_item(self) -> Any:
        """Remove the last item and return it; ``None`` if there is none. The history keeps it."""
        return await in_thread(self.conversation.pop)

    async def clear_session(self) -> None:
        """Remove all items. The history keeps them."""
        await in_thread(self.conversation.clear)


def guarded(
    agent: "Agent[Any]", session: WorkspaceSession, *, max_tokens: int = CONTEXT_TOKENS
) -> "Agent[Any]":
    """Return an agent with all guardrails, whose instructions end with the context of the workspace.

    Args:
        agent: The agent; it is not changed.
        session: The session that its runs are given.
        max_tokens: Budget of the context; 0 for none.

    Raises:
        ExtraMissing: The SDK is not installed.
    """
    before, after = tool_guardrails(session)
    given: list[Any] = list(agent.tools)  # only function tools have guardrails
    tools = [
        dataclasses.replace(
            tool,
            tool_input_guardrails=[*(tool.tool_input_guardrails or ()), before],
            tool_output_guardrails=[*(tool.tool_output_guardrails or ()), after],
        )
        if hasattr(tool, "tool_input_guardrails")
        else tool
        for tool in given
    ]
    changes: dict[str, Any] = {
        "tools": tools,
        "input_guardrails": [*agent.input_guardrails, input_guardrail(session)],
        "output_guardrails": [*agent.output_guardrails, output_guardrail(session)],
    }
    if max_tokens:
        changes["instructions"] = _instructions(agent.instructions, session.conversation, max_tokens)
    return agent.clone(**changes)


def input_guardrail(session: WorkspaceSession) -> "InputGuardrail[Any]":
    """Return a guardrail that records the user's message, so that its rules apply before the model runs.

    It never stops a run.

    Raises:
        ExtraMissing: The SDK is not installed.
    """
    with needs(OPENAI_AGENTS):
        from agents import GuardrailFunctionOutput, InputGuardrail  # noqa: PLC0415

    async def hear(_context: Any, _agent: Any, given: str | list[Any]) -> GuardrailFunctionOutput:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        await in_thread(session.conversation.hear, items)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    return InputGuardrail(guardrail_function=hear, name="agentx", run_in_parallel=False)


def tool_guardrails(
    session: WorkspaceSession,
) -> "tuple[ToolInputGuardrail[Any], ToolOutputGuardrail[Any]]":
    """Return the guardrails of a function tool: the gate before a call, and the record of its result.

    A call that breaks a rule does not run; the model is told the rule and the user's sentence.

    Raises:
        ExtraMissing: The SDK is not installed.
    """
    with needs(OPENAI_AGENTS):
        from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail  # noqa: PLC0415

    talk = session.conversation

    async def before(data: Any) -> ToolGuardrailFunctionOutput:
        call = data.context
        reason = await in_thread(
            talk.gate, call.tool_name, call_arguments(call.tool_arguments), call.tool_call_id
        )
        if reason:
            return ToolGuardrailFunctionOutput.reject_content(f"Denied. {reason}", output_info=reason)
        return ToolGuardrailFunctionOutput.allow()

    async def after(data: Any) -> ToolGuardrailFunctionOutput:
        call = data.context
        await in_thread(
            talk.did,
            call.tool_name,
            call_arguments(call.tool_arguments),
            call.tool_call_id,
            _text(data.output),
        )
        return ToolGuardrailFunctionOutput.allow()

    return (
        ToolInputGuardrail(guardrail_function=before, name="agentx"),
        ToolOutputGuardrail(guardrail_function=after, name="agentx"),
    )


def output_guardrail(session: WorkspaceSession) -> "OutputGuardrail[Any]":
    """Return a guardrail that trips on an answer that breaks a rule.

    Its ``output_info`` has a sentence for each rule.

    Raises:
        ExtraMissing: The SDK is not installed.
    """
    with needs(OPENAI_AGENTS):
        from agents import GuardrailFunctionOutput, OutputGuardrail  # noqa: PLC0415

    async def check(_context: Any, _agent: Any, output: Any) -> GuardrailFunctionOutput:
        broken = await in_thread(session.conversation.check, _text(output))
        return GuardrailFunctionOutput(output_info=list(broken), tripwire_triggered=bool(broken))

    return OutputGuardrail(guardrail_function=check, name="agentx")


def _instructions(given: Any, talk: KeptConversation, max_tokens: int) -> Callable[[Any, Any], Any]:
    async def instructions(context: Any, agent: Any) -> str:
        own = given(context, agent) if callable(given) else given
        own = await own if isawaitable(own) else own
        added = await in_thread(talk.context, "", max_tokens=max_tokens)
        return "\n\n".join(filter(None, (own, added)))

    return instructions


def item_entries(item: Item) -> Iterator[TranscriptEntry]:
    """Yield what an item of the Responses API tells; most items of other types tell nothing.

    >>> [entry.text for entry in item_entries({"role": "user", "content": "Hello."})]
    ['Hello.']
    """
    sort = text_in(item.get("type")) or "message"
    name = text_in(item.get("call_id")) or text_in(item.get("id"))
    if sort == "message":
        text = _text(item.get("content"))
        match item.get("role"):
            case "user":
                yield UserWords(id="", text=text)
            case "assistant":
                yield AgentWords(id="", text=text)
            case other:
                yield HostAside(id="", sort=f"role {other}", text=text)
    elif sort == "reasoning":
        yield Thought(id="", text=_text(item.get("summary")) or _text(item.get("content")))
    elif sort.endswith("_call_output"):
        yield CallResult(id="", call_id=name, output=_text(item.get("output")))
    elif sort.endswith("_call") and name:
        tool = text_in(item.get("name")) or sort.removesuffix("_call")
        given = item.get("arguments", item.get("input", item.get("action")))
        yield RequestedCall(id="", call_id=name, tool=tool, arguments=call_arguments(given))
        if item.get("output") is not None:  # a hosted tool: one item for call and result
            yield CallResult(id="", call_id=name, output=_text(item["output"]))


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if dump := getattr(content, "model_dump", None):
        content = dump(mode="json")
    parts = parts_in(content)
    if not parts:
        return as_json(content) if content else ""
    return "\n".join(
        text_in(part.get("text")) or text_in(part.get("refusal")) or f"[{text_in(part.get('type'))}]"
        for part in parts
    )
