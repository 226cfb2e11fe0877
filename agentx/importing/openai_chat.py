"""Conversations in the form of OpenAI's chat messages: JSON with ``messages``, a list of them, or JSONL.

After the reference of the Chat Completions API (roles, ``tool_calls``) and of its training files (a
conversation on each line of a JSONL file). The form has no times, ids or projects.
"""

from collections.abc import Generator, Iterator
from typing import Any

import msgspec

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    HostAside,
    PassedOver,
    RequestedCall,
    Spent,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.lines import Lines, as_json, fields_in, number_in, parts_in, text_in


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a transcript; see :data:`agentx.importing.entries.Read`."""
    if lines.path.name.removesuffix(".gz").endswith(".jsonl"):
        for line in lines:
            record, session = line.value, f"{lines.name}:{line.number}"
            if record is None:
                yield HostAside(id=f"{session} line", sort="not JSON", text=line.text, known=False)
            elif isinstance(record.get("messages"), list):
                yield from _conversation(record, session)
            else:  # a message on each line
                yield from message_entries(record, lines.name, f"{session} message")
        return
    document = lines.document()
    chats = document if isinstance(document, list) else [document]
    if isinstance(document, list) and all("role" in one for one in parts_in(document)):
        chats = [{"messages": document}]
    lines.records = len(chats)
    for number, chat in enumerate(chats, 1):
        yield from _conversation(fields_in(chat), f"{lines.name}:{number}")


def _conversation(chat: dict[str, Any], session: str) -> Iterator[TranscriptEntry]:
    listed = chat.get("messages")
    if not isinstance(listed, list):
        yield HostAside(
            id=f"{session} file", session=session, sort="not a conversation", text=as_json(chat), known=False
        )
        return
    model = text_in(chat.get("model"))
    agents = {text_in(one.get("name")) for one in parts_in(listed) if one.get("role") == "assistant"} - {""}
    for number, message in enumerate(parts_in(listed), 1):
        for entry in message_entries(message, session, f"{session} message {number}", model):
            if (
                isinstance(entry, UserWords) and text_in(message.get("name")) in agents
            ):  # it speaks to another
                yield AgentWords(id=entry.id, session=entry.session, sub=True, text=entry.text, model=model)
            else:
                yield entry
    for number, choice in enumerate(parts_in(chat.get("choices")), 1):  # a response kept with its request
        own = fields_in(choice.get("message"))
        yield from message_entries(own, session, f"{session} choice {number}", model)
    if used := fields_in(chat.get("usage")):
        yield Spent(
            id=f"{session} usage",
            session=session,
            call=session,
            model=model,
            prompt_tokens=number_in(used.get("prompt_tokens")),
            completion_tokens=number_in(used.get("completion_tokens")),
            cached_tokens=number_in(fields_in(used.get("prompt_tokens_details")).get("cached_tokens")),
        )


def message_entries(
    message: dict[str, Any], session: str = "", name: str = "", model: str = ""
) -> Iterator[TranscriptEntry]:
    """Yield what one chat message tells.

    Args:
        message: The message, as the API has it.
        session: Id of the conversation; it begins the id of each call in it.
        name: Id of the message.
        model: Name of the model that made it.
    """
    own: dict[str, Any] = {"id": name, "session": session}
    text = _text(message.get("content"))
    match message.get("role"):
        case "user":
            yield UserWords(**own, text=text) if text else PassedOver(**own, sort="user without text")
        case "assistant":
            if text or not message.get("tool_calls"):
                yield AgentWords(**own, text=text or text_in(message.get("refusal")), model=model)
            for number, call in enumerate(parts_in(message.get("tool_calls"))):
                asked = fields_in(call.get("function")) or fields_in(call.get("custom"))
                raw = text_in(asked.get("arguments")) or text_in(asked.get("input"))
                yield RequestedCall(
                    **{**own, "id": f"{name} call {number}"},
                    call_id=f"{session} {text_in(call.get('id'))}".lstrip(),
                    tool=text_in(asked.get("name")),
                    arguments=_decoded(raw),
                )
        case "tool" | "function":
            answers = text_in(message.get("tool_call_id")) or text_in(message.get("name"))
            yield CallResult(**own, call_id=f"{session} {answers}".lstrip(), output=text)
        case "system" | "developer":
            yield HostAside(**own, sort=f"{message['role']} message", text=text)
        case other:
            yield HostAside(**own, sort=f"role {other}", text=as_json(message), known=False)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        text_in(part.get("text")) or f"[{text_in(part.get('type'))}]" for part in parts_in(content)
    )


def _decoded(text: str) -> dict[str, Any]:
    try:
        return fields_in(msgspec.json.decode(text)) or {"arguments": text}
    except (ValueError, RecursionError):
        return {"arguments": text}
