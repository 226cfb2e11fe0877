"""``agentx chat``: talk with a cognitive agent, message by message, in one process."""

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

import typer
from rich.console import RenderableType
from rich.text import Text

from agentx.cli.opened import opened, say_restricted
from agentx.cli.terminal import Terminal, counted, facts, table
from agentx.cognition.agent import SESSION, Answer, CognitiveAgent
from agentx.engine import models
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import encodable, folded, one_line, plain, shorten
from agentx.synthesis.facts.validity import is_true
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.workspace import Workspace

PROMPT = "> "

HELP = {
    "/help": "these commands",
    "/memory": "what is remembered, with dates",
    "/why": "which memories the last answer used",
    "Ctrl-C": "stops the answer",
    "Ctrl-D": "ends the chat",
}

REMEMBERED = ("knowledge", "learning", "episode")
"""Sorts of memories that are shown; topics only group them."""

_NAMED = 3
"""Maximum number of memories that the line after an answer names."""

_WORDS = 8
"""Maximum number of words of each."""

_RECALLED = 200
"""Maximum number of earlier messages that the arrow keys bring back."""


def chat(
    terminal: Terminal,
    session: Annotated[
        str, typer.Option(metavar="NAME", help="The conversation; each has its own buffer.")
    ] = SESSION,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="PROVIDER/NAME, as litellm writes it, or script:FILE.")
    ] = "",
) -> None:
    """Talk with an agent that remembers, with a model or without one; Ctrl-D ends it.

    In a pipe, each line is a message. With --json, each answer is one object. /help lists the commands.
    """
    with opened(terminal, look=True) as ws:
        talk = ChatSession(terminal, ws, session=encodable(session), model=model)
        if talk.interactive:
            talk.greet()
        for line in talk.lines():
            talk.take(line)


def answer_once(terminal: Terminal, message: str, model: str) -> int:
    """Answer one message; return the exit status.

    Raises:
        UsageError: There is no message.
    """
    if not message.strip():
        raise UsageError('A cognitive agent answers a message: `agentx run --agent cognitive "…"`.')
    with opened(terminal, look=True) as ws:
        answer = ChatSession(terminal, ws, model=model).say(message)
    return int(bool(answer.failed))


class ChatSession:
    """A conversation on a terminal or in a pipe."""

    def __init__(self, terminal: Terminal, ws: Workspace, *, session: str = SESSION, model: str = "") -> None:
        say_restricted(terminal, ws)
        ws.engine.write_path.require_writable()
        named = model or ws.config.model.name or terminal.settings.model
        client = models.model(ws.engine, model) if named else None
        self.terminal, self.ws = terminal, ws
        self.agent = CognitiveAgent(ws, model=client, session=session, timeout_s=ws.config.model.timeout_s)
        self.interactive = sys.stdin.isatty() and terminal.out.is_terminal and not terminal.json
        self.last: Answer | None = None

    # --- input ----------------------------------------------------------------------------------------------

    def greet(self) -> None:
        """Say what is going on, and where the conversation was left."""
        mind, model = self.agent.mind, self.agent.model
        by = model.name if model else "without a model"
        held = counted(len(mind.buffer), "memory").replace("memorys", "memories")
        begun = (
            f"{counted(mind.interactions, 'message')} so far, {held} at hand" if mind.interactions else "new"
        )
        self.terminal.show(Text(plain(f"session {self.agent.session}: {begun} · {by} · /help"), "dim"), "")

    def lines(self) -> Iterator[str]:
        """Yield what the user types, or the lines of a pipe."""
        if not self.interactive:
            if isinstance(sys.stdin, io.TextIOWrapper):
                sys.stdin.reconfigure(errors="surrogateescape")
            yield from (encodable(line) for line in sys.stdin)
            return
        self.recall()
        while True:
            try:
                yield encodable(input(PROMPT))
            except KeyboardInterrupt:
                print()
            except EOFError:
                print()
                return

    def recall(self) -> None:
        """Let the arrow keys bring back what the user said in this session."""
        # readline is not available everywhere, and some versions write to the terminal on import.
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415

            state = self.ws.state
            recent = [one.message for one in self.agent.mind.recent[-_RECALLED:]]
            said = self.agent.conversation.said(state, recent)
            readline.clear_history()
            for seq in recent:
                if seq in said:
                    readline.add_history(one_line(said[seq][1]))

    def take(self, line: str) -> None:
        """Carry out a command, or answer a message; an error ends the chat only in a pipe."""
        words = line.strip()
        try:
            if words in COMMANDS:
                COMMANDS[words](self)
            elif self.interactive and words.startswith("/") and len(words.split()) == 1:
                self.terminal.note(f"{words} is not a command; /help lists them.")
            elif words:
                self.say(words)
        except KeyboardInterrupt:
            if not self.interactive:
                raise
            self.terminal.note("Stopped.")
        except AgentXError as error:
            if not self.interactive:
                raise
            self.terminal.fail(str(error))

    def told(self, sort: str, value: Any, *parts: RenderableType) -> None:
        """Print a result, as one line if it is JSON."""
        if self.terminal.json:
            self.terminal.line({"type": sort, "data": value})
        else:
            self.terminal.show(*parts, "")

    def show_help(self) -> None:
        """List the commands."""
        self.told("Help", HELP, facts(HELP.items()))

    # --- answers --------------------------------------------------------------------------------------------

    def say(self, message: str) -> Answer:
        """Answer a message and show it, as it arrives on a terminal."""
        arriving = _ArrivingText(self.terminal)
        with arriving:
            self.last = answer = self.agent.answer(message, arriving.take)
        if self.terminal.json:
            self.terminal.line({"type": "Answered", "data": _document(self.agent, message, answer)})
        else:
            arriving.end(answer.text)
        if answer.stopped:
            if not self.interactive:
                raise KeyboardInterrupt
            self.terminal.note("Stopped.")
        elif answer.failed:
            self.terminal.note(answer.failed)
        if not self.terminal.json:
            self.terminal.show(Text(self.moved(answer), "dim"), "")
        return answer

    def moved(self, answer: Answer) -> str:
        """Return in one line what left the buffer and what came back."""
        mind = self.agent.mind
        parts = [f"{len(answer.used)} of {len(mind.buffer)} memories at hand were used"]
        if answer.metrics.input_type == "statement":
            new = len(answer.metrics.new_memories_stored)
            parts = [f"{new} new, {len(mind.buffer)} memories at hand"]
        for name, ids in (("came back", answer.returned), ("left", answer.metrics.evicted_memory_ids)):
            if ids:
                parts.append(f"{name}: {self.named(ids)}")
        return " · ".join(parts)

    def named(self, ids: Sequence[str]) -> str:
        """Return the beginnings of memories, as many as fit in a line."""
        items = self.ws.state.items
        texts = [
            f"“{shorten(one_line(plain(items[name].text)), _WORDS)}”"
            for name in ids[:_NAMED]
            if name in items
        ]
        more = [f"{len(ids) - _NAMED} more"] if len(ids) > _NAMED else []
        return ", ".join([*texts, *more])

    def show_memory(self) -> None:
        """Show what is remembered, oldest first; what has left the buffer is dim."""
        held, state = self.agent.mind.buffer, self.ws.state
        true = [
            item for item in state.items.values() if sort_of(item) in REMEMBERED and is_true(item, state.at)
        ]
        # Other extractors may have taken the same sentence; what is at hand is shown
        by_text = {folded(item.text): item for item in sorted(true, key=lambda item: item.id in held)}
        items = sorted(by_text.values(), key=lambda item: item.created_seq)
        if not items:
            self.told("Memory", [], Text("Nothing is remembered yet.", "dim"))
            return
        rows = [_row(item, at_hand=item.id in held) for item in items]
        self.told(
            "Memory",
            [_memory(item) | {"at_hand": item.id in held} for item in items],
            table("date", "id", "what", rows=rows),
        )

    def show_why(self) -> None:
        """Show which memories the last answer used."""
        items = self.ws.state.items
        used = [items[name] for name in (self.last.used if self.last else ()) if name in items]
        if not used:
            why = "It used none of the memories." if self.last else "Nothing was asked yet."
            self.told("Why", [], Text(why, "dim"))
            return
        rows = [_row(item) for item in used]
        self.told("Why", [_memory(item) for item in used], table("date", "id", "what", rows=rows))


COMMANDS = {"/help": ChatSession.show_help, "/memory": ChatSession.show_memory, "/why": ChatSession.show_why}


def _row(item: MemoryItem, *, at_hand: bool = True) -> tuple[Text, Text, Text]:
    style = "" if at_hand else "dim"
    return Text(item.created_at[:10], "dim"), Text(item.id, "dim"), Text(plain(one_line(item.text)), style)


def _memory(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "kind": sort_of(item), "at": item.created_at, "text": item.text}


def _document(agent: CognitiveAgent, message: str, answer: Answer) -> dict[str, Any]:
    """Return an answer for programs."""
    return {
        "session": agent.session,
        "interaction": answer.interaction,
        "message": message,
        "answer": answer.text,
        "input_type": answer.metrics.input_type,
        "stored": answer.metrics.new_memories_stored,
        "used": answer.used,
        "came_back": answer.returned,
        "left": answer.metrics.evicted_memory_ids,
        "failed": answer.failed,
        "stopped": answer.stopped,
        "faults": answer.metrics.faults,
        "model": agent.responder.name if agent.responder else "",
        "calls": answer.calls,
        "usage": answer.usage,
    }


class _ArrivingText:
    """Shows an answer on a terminal as it arrives; a sign of work until then."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._shown = ""
        self._busy = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._busy.enter_context(self._terminal.busy("Thinking …"))
        return self

    def __exit__(self, *_: object) -> None:
        self._busy.close()

    def take(self, text: str) -> None:
        """Show what has been added to the answer."""
        if self._terminal.out.is_terminal and not self._terminal.json:
            self._write(plain(text))

    def end(self, text: str) -> None:
        """Show the rest of the answer, or all of it if it became another one."""
        whole = plain(text)
        if not self._shown:
            self._terminal.show(whole)
            return
        if not whole.startswith(self._shown):
            self._terminal.show("")
            self._shown = ""
        self._write(whole)
        self._terminal.show("")

    def _write(self, text: str) -> None:
        if text.startswith(self._shown) and len(text) > len(self._shown):
            self._busy.close()
            self._terminal.out.out(text[len(self._shown) :], end="", highlight=False)
            self._terminal.out.file.flush()
            self._shown = text
