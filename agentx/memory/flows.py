"""The flows of a workspace: procedures that the user writes down, shown to whoever is about to act."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agentx.engine.engine import Engine
from agentx.memory import editing
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.text import shorten
from agentx.synthesis.memory.conclusions import PERSON, Patch
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, Status
from agentx.synthesis.state.flows import (
    MEANING_ENOUGH,
    MEANING_NEAR,
    FlowMatch,
    called,
    match,
    requests,
    rewritten,
    terms,
)
from agentx.synthesis.state.state import State

MAX_STEPS = 40
MAX_CHARACTERS = 5_000
"""Maximum length of all steps and triggers together: a flow is one line of the history."""

_SENTENCES_EMBEDDED = 5
_LISTED = re.compile(r"(?:\d{1,3}[.)]|[-*+])\s+(?:\[[ xX]\]\s+)?(.*)")


@dataclass(frozen=True)
class Flows:
    """The flows of an open workspace.

    Attributes:
        engine: The workspace.
    """

    engine: Engine

    def all(self, status: Status | None = "active") -> list[MemoryItem]:
        """Return the flows with a status (``None`` for all), oldest first."""
        return editing.listed(self.engine.snapshot(), "flow", status)

    def find(self, name: str) -> tuple[MemoryItem, FlowDetail]:
        """Return a flow by its ID, or an active one by its name, with its detail.

        Raises:
            NoSuchItem: The flow does not exist.
            UsageError: The item is not a flow.
        """
        item = self.named(name) or self.engine.snapshot().items.get(name)
        if item is None:
            raise editing.NoSuchItem(f"Unknown flow {name!r}; `agentx flow list --all` lists all flows.")
        if not isinstance(item.detail, FlowDetail):
            raise UsageError(
                f"{name} is a {item.kind.replace('_', ' ')}, not a flow; see `agentx flow list`."
            )
        return item, item.detail

    def check(self, text: str) -> list[FlowMatch]:
        """Return the flows that match an action, the best first; empty if none is near enough.

        Words decide if they can. Otherwise meaning is used, if a model is installed.
        """
        return called_for(self.engine, self.engine.snapshot(), text)

    def nearest(self, text: str) -> FlowMatch | None:
        """Return the flow that may be meant if none is near enough, by meaning alone; the user judges it."""
        found = called_for(self.engine, self.engine.snapshot(), text, meaning_enough=MEANING_NEAR)
        return found[0] if found else None

    def add(
        self,
        name: str,
        steps: Sequence[str],
        *,
        triggers: Sequence[str] = (),
        needs_approval: bool = False,
        domain: str = "",
        agent: str = "",
    ) -> MemoryItem:
        """Add a procedure.

        Args:
            name: What it does, as a user would ask for it: "deploy to production".
            steps: The steps, in order.
            triggers: Other phrases that call for it.
            needs_approval: Whether it needs approval before it begins.
            domain: Its domain ("payments").
            agent: Role of the agent that does it; empty for any.

        Raises:
            UsageError: The name or the steps are missing or too long, or another flow has that name.
        """
        name = _line(name)
        detail = _checked(name, FlowDetail(_lines(steps), _lines(triggers), needs_approval))
        with self.engine.write_path.exclusive():
            self._refuse_same_name(name)
            actor = self.engine.settings.actor
            return editing.write_down(
                self.engine, "flow", name, detail, actor, domain=_line(domain), agent=_line(agent)
            )

    def edit(
        self,
        flow: str,
        *,
        name: str | None = None,
        steps: Sequence[str] | None = None,
        triggers: Sequence[str] | None = None,
        needs_approval: bool | None = None,
    ) -> MemoryItem:
        """Change the given fields of the flow with an ID or a name.

        Other steps make a new version; the record of the earlier ones is kept.

        Raises:
            UsageError: It is not a flow, or a value is invalid.
        """
        with self.engine.write_path.exclusive():
            item, old = self.find(flow)
            text = item.text if name is None else _line(name)
            new = msgspec.structs.replace(
                old,
                triggers=old.triggers if triggers is None else _lines(triggers),
                needs_approval=old.needs_approval if needs_approval is None else needs_approval,
            )
            if steps is not None and _lines(steps) != old.steps:
                new = rewritten(new, _lines(steps), stamp())
            _checked(text, new)
            if text != item.text:
                self._refuse_same_name(text)
            patch = Patch(id=item.id, text=text, short=shorten(text), detail=new)
            self.engine.synthesizer.record((patch,), PERSON, actor=self.engine.settings.actor)
            return editing.find(self.engine, item.id)

    def retire(self, flow: str) -> MemoryItem:
        """Retire a flow; it stays in the history.

        Raises:
            UsageError: It is not a flow.
        """
        item, _ = self.find(flow)
        return editing.retire(self.engine, item.id, self.engine.settings.actor)

    def named(self, name: str) -> MemoryItem | None:
        """Return the active flow with a name, ignoring case; ``None`` if there is none."""
        wanted = _line(name).casefold()
        return next((one for one in self.all() if one.text.casefold() == wanted), None)

    def _refuse_same_name(self, name: str) -> None:
        if same := self.named(name):
            raise UsageError(
                f"A flow of that name already exists: {same.id}. Change it with `agentx flow edit {same.id}`."
            )


def called_for(
    engine: Engine,
    state: State,
    text: str,
    *,
    command: str = "",
    load: bool = True,
    meaning_enough: float = MEANING_ENOUGH,
) -> list[FlowMatch]:
    """Return the flows that a message asks for, by words, or by meaning if words do not decide.

    Args:
        engine: The workspace.
        state: The memory.
        text: The message.
        command: A command line that is about to run, read by its words.
        load: Load the embedding model if needed; otherwise it is used only if it is already loaded.
        meaning_enough: Minimum cosine for a match by meaning.
    """
    found = match(state, text, command=command)
    flows = [] if found else list(state.active("flow"))
    asked = requests(text) if flows else []
    if not asked or not terms(text):
        return found
    vectors = engine.meanings.of([*asked[:_SENTENCES_EMBEDDED], *map(called, flows)], load=load)
    return match(state, text, vectors, meaning_enough=meaning_enough) if vectors else []


def read_steps(text: str) -> list[str]:
    r"""Return the steps of a procedure written in Markdown: its list items, numbered or not.

    Indented and continued lines belong to the item above. Headings, and text before the first item, are left
    out.

    Raises:
        UsageError: The text has no list.

    >>> read_steps("# Deploy\n1. Back up\n2. Build,\n   with tests")
    ['Back up', 'Build, with tests']
    """
    found: list[list[str]] = []
    open_item = False
    for line in text.splitlines():
        listed = _LISTED.match(line.strip())
        if listed and (line[:2].strip() or not found):
            found.append([listed[1]])
            open_item = True
        elif line.strip().startswith("#"):
            open_item = False
        elif open_item and line.strip():
            found[-1].append(listed[1] if listed else line.strip())
    if not found:
        raise UsageError("No steps found; write them as a numbered list, one item for each step.")
    return [_line(" ".join(parts)) for parts in found]


def _line(text: str) -> str:
    return " ".join(text.split())


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    """Return each text in one line, without empty ones and duplicates."""
    return tuple(dict.fromkeys(line for text in texts if (line := _line(text))))


def _checked(name: str, detail: FlowDetail) -> FlowDetail:
    size = sum(map(len, (name, *detail.steps, *detail.triggers)))
    if not name:
        raise UsageError("A flow needs a name that says what it does.")
    if not detail.steps:
        raise UsageError(
            "A flow needs steps: give each with `--step`, or a numbered list with `--from FILE`."
        )
    if len(detail.steps) > MAX_STEPS or size > MAX_CHARACTERS:
        raise UsageError(
            f"A flow has at most {MAX_STEPS} steps and {MAX_CHARACTERS:,} characters; this one has "
            f"{len(detail.steps)} and {size:,}. Split it, or move long text to a file that a step names."
        )
    return detail
