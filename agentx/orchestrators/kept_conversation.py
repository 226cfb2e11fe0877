"""A conversation of a framework, kept in a workspace: its items exactly, and what they tell, once each.

Every adapter of a framework uses this module, and so may a program without one. What identifies a message of
the user is the answer that it follows (by its number), its words, and how often they stand there. So a guard
that hears a message, a store that is given it later, and a request that sends the whole history again record
it once; and the same words said again after another answer are a new message.
"""

import asyncio
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    HostAside,
    RequestedCall,
    Thought,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.lines import as_json
from agentx.importing.openai_chat import message_entries
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.host_events import ConversationChanged
from agentx.storage.events.transcript_events import HostRecordKept
from agentx.storage.events.types import (
    REPORTED,
    AgentThoughtProcess,
    ContextProvided,
    Draft,
    Payload,
    ToolCallExecuted,
    ToolCallRequested,
    ToolStatus,
    UserMessageSent,
)
from agentx.storage.secrets.redaction import clean, clean_value
from agentx.storage.text import one_line
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.tools.reported import ReportedCall, agent_actor, answer_event, call_event
from agentx.tools.toolset import bounded
from agentx.workspace import Workspace

SAID = "said:"
"""Begins the key of a message of the user that a framework passed on."""

CONTEXT_TOKENS = 2_000
"""Default budget of the context that is added to an agent's instructions."""

_NAME_CHARACTERS = 200
_READ_BEFORE = 5_000
"""Items whose form without secrets is remembered."""

_APPROVAL = "It needs the user's approval: ask the user in your answer, and try again once they agreed."

Item = dict[str, Any]
"""An item in the framework's own form, as JSON has it."""

T = TypeVar("T")


class KeptItemInvalid(AgentXError):
    """An item of a conversation cannot be kept: it is not a JSON object."""


class AnswerRefused(AgentXError):
    """An answer breaks a rule of the user.

    Attributes:
        broken: A sentence for each rule: its id, the user's sentence, and what breaks it.
    """

    def __init__(self, broken: Sequence[str]) -> None:
        self.broken = tuple(broken)
        super().__init__("The answer breaks what the user demands: " + " ".join(self.broken))


class _Held(msgspec.Struct, frozen=True):
    """An item, its digest, what it tells, and the ends of the keys of the events that tell it."""

    item: Item
    digest: str
    entries: tuple[TranscriptEntry, ...]
    told: str = ""

    @property
    def is_users(self) -> bool:
        return any(isinstance(entry, UserWords) for entry in self.entries)

    @property
    def answers(self) -> bool:
        return any(isinstance(entry, AgentWords) for entry in self.entries)


class _Place:
    """A place in a conversation, which moves on with each item: what the keys of facts are made of."""

    def __init__(self, epoch: int, held: Iterable[_Held]) -> None:
        self.epoch = epoch
        self.answers = 0
        self._said: Counter[str] = Counter()
        for one in held:
            self.pass_by(one)

    def copy(self) -> "_Place":
        """Return the same place, to move on from."""
        other = _Place(self.epoch, ())
        other.answers, other._said = self.answers, self._said.copy()
        return other

    def pass_by(self, one: _Held) -> None:
        """Move on past an item that is known."""
        for entry in one.entries:
            self.after(entry)

    def after(self, entry: TranscriptEntry) -> int:
        """Move on past an entry, and return how often the same words of the user stood here before."""
        if isinstance(entry, AgentWords):
            self.answers += 1
            self._said.clear()
        elif isinstance(entry, UserWords):
            self._said[entry.text] += 1
            return self._said[entry.text] - 1
        return 0


class KeptConversation:
    """One conversation, by name, in a workspace that several processes may share.

    Whatever a call acknowledges is durable. Every method blocks while it reads or writes files; an event loop
    uses :func:`in_thread`.

    Args:
        ws: The workspace.
        name: Name of the conversation; becomes the run of its events.
        host: The framework, such as ``openai-agents``.
        agent: Name of the agent, which becomes the actor ``agent:<name>``.
        read: Returns what an item tells; by default items are chat messages of OpenAI's API.
        user_speaks: Whether messages of the role ``user`` are the user's words. Set it to false where a
            program or another agent writes them: then they are material.

    Raises:
        UsageError: The name is empty, or ``agent`` is not a name.

    >>> import tempfile
    >>> ws = Workspace.create(tempfile.mkdtemp() + "/report")
    >>> talk = KeptConversation(ws, "main")
    >>> talk.append([{"role": "user", "content": "Never use tabs."}])
    >>> talk.items(), [item.text for item in ws.memory("constraint")]
    ([{'role': 'user', 'content': 'Never use tabs.'}], ['Never use tabs.'])
    >>> ws.close()
    """

    def __init__(
        self,
        ws: Workspace,
        name: str,
        *,
        host: str = "openai",
        agent: str = "main",
        read: Callable[[Item], Iterable[TranscriptEntry]] = message_entries,
        user_speaks: bool = True,
    ) -> None:
        self.ws = ws
        self.name = one_line(clean(name))[:_NAME_CHARACTERS]
        if not self.name:
            raise UsageError("A conversation needs a name.")
        self.host = host
        self.agent = agent
        self.actor = agent_actor(agent)
        self.user_speaks = user_speaks
        self._read = read
        self._held: list[_Held] = []
        self._gone: dict[str, list[str]] = {}
        self._known: set[str] = set()
        self._calls: dict[str, RequestedCall] = {}
        self._own_calls: set[str] = set()
        self._told_calls: dict[tuple[str, str], list[str]] = {}
        self._seq = self._epoch = self._ever = 0
        self._shown = ""
        self._place = _Place(0, ())
        self._read_before: OrderedDict[str, _Held] = OrderedDict()

    # --- the items ----------------------------------------------------------------------------------------

    def items(self, limit: int | None = None) -> list[Item]:
        """Return the items in order; with ``limit``, the last so many."""
        with self.ws.engine.write_path.exclusive():
            self._catch_up()
            held = self._held if limit is None else self._held[len(self._held) - max(limit, 0) :]
            return [msgspec.json.decode(msgspec.json.encode(one.item)) for one in held]

    def append(self, items: Sequence[Item], *, perhaps_all: bool = False) -> None:
        """Append items, and record what they tell.

        Args:
            items: The items.
            perhaps_all: Whether they may begin with all that are there already, which is then left out.

        Raises:
            KeptItemInvalid: One of them is not a JSON object; none is appended.
        """
        fresh = [self._kept(item) for item in items]
        if fresh:
            with self.ws.engine.write_path.exclusive():
                self._catch_up()
                there = len(self._held)
                if perhaps_all and there > 1 and self._shared(fresh) == there:
                    fresh = fresh[there:]
                if fresh:
                    self._change(0, fresh)

    def pop(self) -> Item | None:
        """Remove the last item and return it; ``None`` if there is none. The history keeps it."""
        with self.ws.engine.write_path.exclusive():
            self._catch_up()
            if not self._held:
                return None
            last = self._held[-1].item
            self._change(1, [])
            return last

    def clear(self) -> None:
        """Remove all items. The history keeps them."""
        with self.ws.engine.write_path.exclusive():
            self._catch_up()
            if self._held:
                self._change(len(self._held), [])

    def replace(self, items: Sequence[Item]) -> None:
        """Make these the items: what they share with the present ones from the start on is not written again.

        Raises:
            KeptItemInvalid: One of them is not a JSON object; nothing is changed.
        """
        fresh = [self._kept(item) for item in items]
        with self.ws.engine.write_path.exclusive():
            self._catch_up()
            same = self._shared(fresh)
            if same < max(len(fresh), len(self._held)):
                self._change(len(self._held) - same, fresh[same:])

    def _shared(self, fresh: Sequence[_Held]) -> int:
        """Return how many items at the start are those that are there."""
        same = 0
        while same < min(len(fresh), len(self._held)) and fresh[same].digest == self._held[same].digest:
            same += 1
        return same

    # --- what happens in a turn ---------------------------------------------------------------------------

    def hear(self, items: Sequence[Item]) -> None:
        """Record what is new in a whole conversation, as a request sends it; its items are not kept.

        Messages after the last answer are new unless they were heard at this place; of the earlier ones,
        those whose words are not in the history.
        """
        fresh = [self._kept(item) for item in items]
        with self.ws.engine.write_path.exclusive():
            self._catch_up()
            tail = len(fresh)
            while tail and fresh[tail - 1].is_users:
                tail -= 1
            place = _Place(self._epoch, () if self._held else fresh[:tail])
            drafts: list[Draft] = []
            if self._held:  # the store records the rest; its own last messages may be among these
                own = len(self._held)
                while own and self._held[own - 1].is_users:
                    own -= 1
                place = _Place(self._epoch, self._held[:own])
            else:
                before = _Place(self._epoch, ())
                calls = _requested(fresh)
                for one in fresh[:tail]:
                    new = (entry for entry in one.entries if not self._is_known(entry))
                    drafts += self._facts(new, before, calls, f"heard {one.digest}", final=False)
                    before.pass_by(one)
            for one in fresh[tail:]:
                drafts += self._facts(one.entries, place, {}, "", final=False)
            if drafts:
                self.ws.record(*drafts)

    def answer(self, text: str, *, key: str, model: str = "", final: bool = True) -> tuple[Violation, ...]:
        """Record an answer that is not one of the items, and return the rules of the user that it breaks.

        Args:
            text: The answer.
            key: Makes it idempotent, such as the id of the response.
            model: Name of the model.
            final: Whether it ends the turn.
        """
        if not text.strip():
            return ()
        said, broken = answer_event(self.ws.engine, text, self.agent, final=final, model=model)
        self.ws.record(self._draft(said, f"{REPORTED}{self._digest('answer', key)}"))
        return broken

    def check(self, text: str) -> tuple[str, ...]:
        """Return a sentence for each rule of the user that an answer would break. Nothing is recorded."""
        if not text.strip():
            return ()
        return tuple(map(broken_rule, self.ws.check_answer(text)))

    def gate(self, tool: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """Ask the gate about a tool call of the framework; record that it begins, or that it was denied.

        Returns:
            Why it is denied, with the rule and the user's sentence; empty if it may run.
        """
        arguments = dict(arguments)
        verdict = self.ws.gates.before("", tool=tool, arguments=arguments, agent=self.agent)
        reason = verdict.reason
        if verdict.verdict == "ask":
            reason = f"{reason} {_APPROVAL}"
        denied = verdict.verdict in ("deny", "ask")
        if denied and verdict.corrected:
            reason = f"{reason} Allowed instead: `{verdict.corrected}`"
        made: Payload = self._requested(RequestedCall(id="", call_id=call_id, tool=tool, arguments=arguments))
        if denied:
            executed = self._executed(tool, arguments, call_id, f"Denied. {reason}", "DENIED")
            made = msgspec.structs.replace(executed, denied_by=verdict.denied_by or verdict.asked_by)
        self.ws.record(self._draft(made, f"{REPORTED}{uuid.uuid4().hex}"))
        return reason if denied else ""

    def did(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str,
        output: str,
        *,
        failed: bool = False,
        duration_ms: int = 0,
    ) -> None:
        """Record the result of a tool call of the framework."""
        status: ToolStatus = "FAILED" if failed else "SUCCEEDED"
        made = self._executed(tool, dict(arguments), call_id, output, status)
        made = msgspec.structs.replace(made, duration_ms=max(0, duration_ms))
        self.ws.record(self._draft(made, f"{REPORTED}{uuid.uuid4().hex}"))

    def note(self, record: HostRecordKept) -> None:
        """Record something that is nobody's word."""
        self.ws.record(self._draft(record, ""))

    def context(self, message: str = "", *, max_tokens: int = CONTEXT_TOKENS, tier: int = 0) -> str:
        """Return what the agent must not forget and what is relevant now, and record that it was shown.

        Args:
            message: What the agent is about to work on; the user's last message by default.
            max_tokens: The budget.
            tier: How much of the conversation it has; none by default, because the framework shows it.
        """
        context = self.ws.get_relevant_context(message, max_tokens=max_tokens, tier=tier)
        if context.text != self._shown:
            self._shown = context.text
            items = context.items
            shown = ContextProvided(
                items=tuple(one.id for one in items if one.section != "recalled"),
                recalled=tuple(one.id for one in items if one.section == "recalled"),
                tokens=context.tokens,
                max_tokens=max_tokens,
                as_of=context.seq,
                tier=tier,
                late=context.late,
            )
            self.ws.record(self._draft(shown, ""))
        return context.text

    # --- reading the history ------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Fold what was recorded since the last look, by whichever process."""
        for event in self.ws.events(self._seq):
            self._seq = event.seq
            data = event.data
            if isinstance(data, ToolCallExecuted) and not event.key.startswith(REPORTED):
                self._own_calls.add(data.call_id)
            if event.run != self.name:
                continue
            if isinstance(data, UserMessageSent):
                self._known.add(_words(self.ws.read_body(data.body)))
            elif isinstance(data, ToolCallRequested | ToolCallExecuted):
                self._told_calls.setdefault((data.call_id, event.type), []).append(_end(event.key))
            elif isinstance(data, ConversationChanged) and data.host == self.host:
                self._fold(data)

    def _fold(self, data: ConversationChanged) -> None:
        kept = max(0, len(self._held) - data.dropped)
        for one in self._held[kept:]:
            self._gone.setdefault(one.digest, []).append(one.told)
        del self._held[kept:]
        text = self.ws.read_body(data.items)
        items = msgspec.json.decode(text, type=list[Item]) if text else []
        self._epoch += bool(data.dropped) and not (kept or items)
        if data.dropped:
            self._place = _Place(self._epoch, self._held)
        for item, told in zip(items, data.facts, strict=True):
            one = self._understood(item, told)
            if self._gone.get(one.digest):
                self._gone[one.digest].pop()
            self._held.append(one)
            self._place.pass_by(one)
            self._ever += 1
            for entry in one.entries:
                if isinstance(entry, RequestedCall):
                    self._calls[entry.call_id] = entry
                    self._kept_call(entry.call_id, ToolCallRequested)
                elif isinstance(entry, CallResult):
                    self._kept_call(entry.call_id, ToolCallExecuted)

    def _kept_call(self, call_id: str, part: type[Payload]) -> str:
        """Return the end of the key of the event that told a part of a call before its item came, once."""
        events = self._told_calls.get((call_id, part.__name__))
        return events.pop(0) if events else ""

    def _kept(self, item: Item) -> _Held:
        """Return an item as it is kept: without secrets. A framework gives the same ones again and again."""
        given = _digest(as_json(item))
        if (known := self._read_before.get(given)) is not None:
            return known
        try:  # cleaned as a value and as a text: what is read back later is the same
            own = msgspec.json.decode(clean(as_json(clean_value(item))), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise KeptItemInvalid(
                f"An item of the conversation {self.name} cannot be kept: {error}. Give JSON objects."
            ) from error
        self._read_before[given] = one = self._understood(own, "")
        if len(self._read_before) > _READ_BEFORE:
            self._read_before.popitem(last=False)
        return one

    def _understood(self, own: Item, told: str) -> _Held:
        entries = tuple(self._read(own))
        if not self.user_speaks:
            entries = tuple(
                HostAside(id=one.id, sort="message of the role user", text=one.text)
                if isinstance(one, UserWords)
                else one
                for one in entries
            )
        digest = blake2b(msgspec.json.encode(own, order="deterministic"), digest_size=12).hexdigest()
        return _Held(own, digest, entries, told)

    def _is_known(self, entry: TranscriptEntry) -> bool:
        """Return whether an entry of an answered part of the conversation is in the history."""
        match entry:
            case UserWords(text=text):
                return _words(clean(text)) in self._known
            case CallResult(call_id=call_id):
                return (call_id, ToolCallExecuted.__name__) in self._told_calls or call_id in self._own_calls
            case _:
                return True  # an answer is recorded when it is given, by its response

    # --- recording ----------------------------------------------------------------------------------------

    def _change(self, dropped: int, fresh: Sequence[_Held]) -> None:
        """Record that items were dropped and appended, with the facts that those tell, all in one batch."""
        kept = len(self._held) - dropped
        gone = {digest: list(told) for digest, told in self._gone.items()}
        for one in self._held[kept:]:
            gone.setdefault(one.digest, []).append(one.told)
        place = _Place(self._epoch, self._held[:kept]) if dropped else self._place.copy()
        tail = len(fresh)
        while tail and fresh[tail - 1].is_users:
            tail -= 1
        calls = self._calls | _requested(fresh)
        drafts: list[Draft] = []
        facts: list[str] = []
        for number, one in enumerate(fresh):
            if number < tail and gone.get(one.digest):  # it comes back, as after a compaction
                facts.append(gone[one.digest].pop())
                place.pass_by(one)
                continue
            final = not any(map(_acts, fresh[number + 1 :]))
            known, new = self._told_before(one, {id_ for later in fresh[number:] for id_ in _results(later)})
            made = list(self._facts(new, place, calls, str(self._ever + number), final=final))
            drafts += made
            facts.append(" ".join(filter(None, (*known, *(_end(draft.key) for draft in made)))))
        changed = ConversationChanged(
            host=self.host,
            dropped=dropped,
            items=self.ws.body(as_json([one.item for one in fresh]) if fresh else ""),
            facts=tuple(facts),
        )
        self.ws.record(*drafts, self._draft(changed, ""))
        self._catch_up()

    def _told_before(self, one: _Held, answered: Collection[str]) -> tuple[list[str], list[TranscriptEntry]]:
        """Return the ends of the keys of events that a guard recorded, and what is still to be told.

        A call whose result is at hand as well is told by the result alone.
        """
        known: list[str] = []
        new: list[TranscriptEntry] = []
        for entry in one.entries:
            told: list[str] | None = None
            if isinstance(entry, RequestedCall):
                told = self._told_calls.get((entry.call_id, ToolCallRequested.__name__))
            elif isinstance(entry, CallResult):
                told = self._told_calls.get((entry.call_id, ToolCallExecuted.__name__))
            known += told[:1] if told else ()
            if not told and not (isinstance(entry, RequestedCall) and entry.call_id in answered):
                new.append(entry)
        return known, new

    def _facts(
        self,
        entries: Iterable[TranscriptEntry],
        place: _Place,
        calls: Mapping[str, RequestedCall],
        name: str,
        *,
        final: bool,
    ) -> Iterator[Draft]:
        """Yield the events of what an item tells; ``name`` is that of the item."""
        body = self.ws.body
        for number, entry in enumerate(entries):
            again = place.after(entry)
            key = f"{REPORTED}{self._digest(name, str(number))}"
            match entry:
                case UserWords(text=text) if text.strip():
                    said = self._digest("user", str(place.epoch), str(place.answers), text, str(again))
                    sent = UserMessageSent(body=body(text))
                    user = self.ws.settings.actor
                    yield Draft(data=sent, actor=user, run=self.name, key=f"{SAID}{said}")
                case AgentWords(text=text, model=model) if text.strip():
                    answer, _ = answer_event(self.ws.engine, text, self.agent, final=final, model=model)
                    yield self._draft(answer, key)
                case Thought(text=text) if text.strip():
                    yield self._draft(AgentThoughtProcess(body=body(text), model=entry.model), key)
                case RequestedCall() if entry.call_id not in self._own_calls:
                    yield self._draft(self._requested(entry), key)
                case CallResult() if entry.call_id not in self._own_calls:
                    call = calls.get(entry.call_id)
                    tool, arguments = (call.tool, call.arguments) if call else ("unknown", {})
                    done = self._executed(tool, arguments, entry.call_id, entry.output, entry.status)
                    yield self._draft(done, key)

    def _requested(self, call: RequestedCall) -> ToolCallRequested:
        return ToolCallRequested(
            call_id=clean(call.call_id)[:_NAME_CHARACTERS],
            tool=self._tool(call.tool),
            arguments=bounded(call.arguments),
        )

    def _executed(
        self, tool: str, arguments: dict[str, Any], call_id: str, output: str, status: ToolStatus
    ) -> ToolCallExecuted:
        command = arguments.get("command")
        call = ReportedCall(
            tool=self._tool(tool),
            arguments=arguments,
            output=output,
            status=status,
            command=command if isinstance(command, str) else "",
            id=call_id,
        )
        return call_event(self.ws.engine, call)

    def _tool(self, name: str) -> str:
        """Return the name that a tool is recorded by: it is never that of one of AgentX's own."""
        name = one_line(name) or "unknown"
        return f"{self.host}:{name}" if name in self.ws.tools.names() else name

    def _draft(self, data: Payload, key: str) -> Draft:
        return Draft(data=data, actor=self.actor, run=self.name, key=key)

    def _digest(self, *parts: str) -> str:
        return _digest(self.host, self.name, *parts)


def call_arguments(given: Any) -> dict[str, Any]:
    """Return the arguments of a call, as a mapping or as JSON; a model may write what is not JSON.

    >>> call_arguments('{"path": "a"}'), call_arguments("a"), call_arguments(None)
    ({'path': 'a'}, {'arguments': 'a'}, {})
    """
    if dump := getattr(given, "model_dump", None):
        given = dump(mode="json")
    if not isinstance(given, str):
        return dict(given) if isinstance(given, Mapping) else {}
    try:
        found = msgspec.json.decode(given or "{}")
    except (ValueError, RecursionError):
        found = given
    return found if isinstance(found, dict) else {"arguments": found}


def broken_rule(violation: Violation) -> str:
    """Return a sentence for an agent: the rule's id, the user's sentence, and what breaks it."""
    return f"{violation.item_id} (the user said: “{violation.sentence}”): {violation.reason}"


async def in_thread(call: Callable[..., T], *args: Any, **named: Any) -> T:
    """Run a blocking call in a thread, so that the event loop goes on.

    A caller that is cancelled waits for its end first: what was begun is whole when the caller goes on.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *args, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            await asyncio.wait([running])
        raise


def _digest(*parts: str) -> str:
    return blake2b(as_json(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _end(key: str) -> str:
    return key.rpartition(":")[2]


def _words(text: str) -> str:
    return _digest("words", text)


def _requested(held: Iterable[_Held]) -> dict[str, RequestedCall]:
    entries = (entry for one in held for entry in one.entries)
    return {entry.call_id: entry for entry in entries if isinstance(entry, RequestedCall)}


def _results(one: _Held) -> Iterator[str]:
    return (entry.call_id for entry in one.entries if isinstance(entry, CallResult))


def _acts(one: _Held) -> bool:
    """Return whether an agent goes on with an item: a message before it did not end the turn."""
    return any(isinstance(entry, AgentWords | RequestedCall) for entry in one.entries)
