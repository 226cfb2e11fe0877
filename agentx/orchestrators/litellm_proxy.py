"""LiteLLM's proxy: a callback that records what goes through it, adds context, and refuses answers.

It acts on chat completions; requests of other kinds pass unchanged and unrecorded. A conversation is what the
client names by a session id (the header ``x-litellm-session-id``, or ``metadata.session_id``), otherwise by
``user``; requests without either are one conversation.
"""

import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentx.importing.lines import as_json, fields_in, parts_in, text_in
from agentx.orchestrators.kept_conversation import (
    CONTEXT_TOKENS,
    AnswerRefused,
    Item,
    KeptConversation,
    broken_rule,
    call_arguments,
    in_thread,
)
from agentx.storage.events.transcript_events import HostRecordKept
from agentx.storage.text import clip
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from litellm.integrations.custom_logger import CustomLogger

HOST = "litellm-proxy"
"""The framework, as events name it."""

_CHATS = ("completion", "acompletion")
_CONVERSATIONS = 256
_ERROR_CHARACTERS = 2_000


class _Proxied:
    """What the callback does, in one process; the workspace is opened at the first request."""

    def __init__(
        self, place: str | Path, agent: str, *, refuse: bool, max_tokens: int, user_speaks: bool
    ) -> None:
        self.refuse = refuse
        self._place = place
        self._agent = agent
        self._max_tokens = max_tokens
        self._user_speaks = user_speaks
        self._ws: Workspace | None = None
        self._talks: OrderedDict[str, KeptConversation] = OrderedDict()
        self._lock = threading.Lock()

    def talk(self, data: Mapping[str, Any]) -> KeptConversation:
        """Return the conversation of a request."""
        metadata = fields_in(data.get("metadata"))
        given = (data.get("litellm_session_id"), metadata.get("session_id"), data.get("user"))
        name = next((text for text in map(text_in, given) if text.strip()), "proxy")
        with self._lock:
            self._ws = self._ws or Workspace.open(self._place)
            talk = self._talks.pop(name, None) or KeptConversation(
                self._ws, name, host=HOST, agent=self._agent, user_speaks=self._user_speaks
            )
            self._talks[name] = talk
            while len(self._talks) > _CONVERSATIONS:
                self._talks.popitem(last=False)
        return talk

    def before(self, data: dict[str, Any]) -> dict[str, Any]:
        """Record what is new in a request, and add the context after its own system messages."""
        talk = self.talk(data)
        messages: list[Item] = [_plain(message) for message in data["messages"]]
        talk.hear(messages)
        if self._max_tokens and (text := talk.context("", max_tokens=self._max_tokens)):
            place = 0
            while place < len(messages) and messages[place].get("role") in ("system", "developer"):
                place += 1
            own = list(data["messages"])
            return {**data, "messages": [*own[:place], {"role": "system", "content": text}, *own[place:]]}
        return data

    def after(
        self, data: Mapping[str, Any], text: str, calls: Sequence[Mapping[str, Any]], key: str, model: str
    ) -> tuple[str, ...]:
        """Record an answer; return a sentence for each rule that it or one of its calls breaks."""
        talk = self.talk(data)
        broken = tuple(map(broken_rule, talk.answer(text, key=key, model=model, final=not calls)))
        if broken and self.refuse:  # the client never sees its calls
            return broken
        for call in calls:
            asked = fields_in(call.get("function"))
            reason = talk.gate(
                text_in(asked.get("name")), call_arguments(asked.get("arguments")), text_in(call.get("id"))
            )
            broken += (reason,) if reason else ()
        return broken

    def failed(self, data: Mapping[str, Any], error: Exception) -> None:
        """Keep why a request has no answer."""
        talk = self.talk(data)
        body = talk.ws.body(clip(f"{type(error).__name__}: {error}", _ERROR_CHARACTERS))
        talk.note(HostRecordKept(host=HOST, sort="failed request", body=body))


def proxy_callback(  # noqa: C901 - the hooks of one class
    workspace: str | Path,
    *,
    agent: str = "proxy",
    refuse: bool = True,
    hold_streams: bool = False,
    max_tokens: int = CONTEXT_TOKENS,
    user_speaks: bool = True,
) -> "CustomLogger":
    """Return a callback for ``litellm_settings.callbacks`` of a proxy's configuration.

    What it records is durable before the client has the answer. It opens the workspace at the first request;
    every worker of the proxy may.

    Args:
        workspace: Directory of the workspace.
        agent: Name of the agent behind the proxy, which becomes the actor ``agent:<name>``.
        refuse: Whether an answer, or a tool call in it, that breaks a rule is an error of status 400 with the
            user's sentence; otherwise it passes, and the record names the rules.
        hold_streams: Whether a stream is held back until it is whole and checked. Otherwise it passes as it
            comes; at its end, the error follows if a rule is broken and ``refuse`` is set.
        max_tokens: Budget of the context that is added to a request; 0 for none.
        user_speaks: Whether messages of the role ``user`` are the user's words; false for a proxy that
            programs use.
    """
    from litellm.exceptions import ContentPolicyViolationError  # noqa: PLC0415 - heavy
    from litellm.integrations.custom_logger import CustomLogger  # noqa: PLC0415

    proxied = _Proxied(workspace, agent, refuse=refuse, max_tokens=max_tokens, user_speaks=user_speaks)

    def refusal(broken: Sequence[str], model: str) -> ContentPolicyViolationError:
        return ContentPolicyViolationError(
            message=str(AnswerRefused(broken)), model=model, llm_provider="agentx"
        )

    class WorkspaceCallback(CustomLogger):
        async def async_pre_call_hook(
            self,
            user_api_key_dict: Any,  # noqa: ARG002 - the proxy passes it by name
            cache: Any,  # noqa: ARG002
            data: dict[str, Any],
            call_type: Any,
        ) -> dict[str, Any]:
            if not _is_chat(data, call_type):
                return data
            return await in_thread(proxied.before, data)

        async def async_post_call_success_hook(
            self,
            data: dict[str, Any],
            user_api_key_dict: Any,  # noqa: ARG002
            response: Any,
        ) -> None:
            choices = getattr(response, "choices", None)
            if not choices or not _is_chat(data):
                return
            text, calls = _said([_plain(choice.message) for choice in choices])
            model = str(getattr(response, "model", "") or "")
            broken = await in_thread(proxied.after, data, text, calls, str(response.id), model)
            if broken and proxied.refuse:
                raise refusal(broken, model)

        async def async_post_call_failure_hook(
            self,
            request_data: dict[str, Any],
            original_exception: Exception,
            user_api_key_dict: Any,  # noqa: ARG002
            traceback_str: str | None = None,  # noqa: ARG002
        ) -> None:
            ours = isinstance(original_exception, ContentPolicyViolationError) and (
                original_exception.llm_provider == "agentx"
            )
            if not ours and _is_chat(request_data):
                await in_thread(proxied.failed, request_data, original_exception)

        async def async_post_call_streaming_iterator_hook(
            self,
            user_api_key_dict: Any,  # noqa: ARG002
            response: Any,
            request_data: dict[str, Any],
        ) -> AsyncGenerator[Any, None]:
            chunks: list[Any] = []
            async for chunk in response:
                chunks.append(chunk)
                if not hold_streams:
                    yield chunk
            if not _is_chat(request_data) or not chunks:
                return
            text, calls = _said(_joined(chunks))
            key, model = str(getattr(chunks[0], "id", "")), str(getattr(chunks[0], "model", "") or "")
            broken = await in_thread(proxied.after, request_data, text, calls, key, model)
            if broken and proxied.refuse:
                raise refusal(broken, model)
            if hold_streams:
                for chunk in chunks:
                    yield chunk

    return WorkspaceCallback()


def _is_chat(data: Mapping[str, Any], call_type: Any = "acompletion") -> bool:
    return str(getattr(call_type, "value", call_type)) in _CHATS and isinstance(data.get("messages"), list)


def _plain(message: Any) -> Item:
    """Return a message as JSON has it."""
    dump = getattr(message, "model_dump", None)
    value = dump(mode="json") if dump else message
    return value if isinstance(value, dict) else {"role": "unknown", "content": as_json(value)}


def _said(messages: Sequence[Item]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of the choices of a response, and their tool calls."""
    text = "\n".join(text_in(message.get("content")) for message in messages).strip()
    return text, [call for message in messages for call in parts_in(message.get("tool_calls"))]


def _joined(chunks: Sequence[Any]) -> list[Item]:
    """Return the messages that the chunks of a stream are parts of."""
    messages: dict[int, Item] = {}
    for chunk in chunks:
        for choice in getattr(chunk, "choices", None) or ():
            delta = _plain(choice.delta)
            whole = messages.setdefault(choice.index, {"content": "", "tool_calls": []})
            whole["content"] += text_in(delta.get("content"))
            for part in parts_in(delta.get("tool_calls")):
                _add_call(whole["tool_calls"], part)
    return list(messages.values())


def _add_call(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a part of a tool call to those that a stream has given; its first part names the tool."""
    number, asked = part.get("index"), fields_in(part.get("function"))
    call = next((one for one in calls if one["index"] == number), None)
    if call is None:
        call = {"index": number, "id": "", "function": {"name": "", "arguments": ""}}
        calls.append(call)
    call["id"] = call["id"] or text_in(part.get("id"))
    for name in ("name", "arguments"):
        call["function"][name] += text_in(asked.get(name))
