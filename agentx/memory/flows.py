"""The flows of a workspace: procedures that a person writes down, and that whoever is about to act is shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agentx.engine.engine import Engine
from agentx.memory import editing
from agentx.storage.errors import UsageError
from agentx.synthesis.memory.conclusions import PERSON, Patch
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, Status, shorten
from agentx.synthesis.state.flows import (
    MEANING_ENOUGH,
    MEANING_NEAR,
    FlowMatch,
    called,
    match,
    sentences,
    terms,
)
from agentx.synthesis.state.state import State

MAX_STEPS = 40
MAX_CHARACTERS = 5_000
"""Of all steps and triggers together: a flow is one line of the history."""

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
        """The flows with a status (``None`` for all), oldest first."""
        return editing.listed(self.engine.snapshot(), "flow", status)

    def find(self, name: str) -> tuple[MemoryItem, FlowDetail]:
        """A flow by its id, or an active one by its name, with its detail.

        Raises:
            NoSuchItem: There is none.
            UsageError: It is no flow.
        """
        item = self.named(name) or self.engine.snapshot().items.get(name)
        if item is None:
            raise editing.NoSuchItem(f"There is no flow {name!r}; `agentx flow list --all` shows them all.")
        if not isinstance(item.detail, FlowDetail):
            raise UsageError(f"{name} is a {item.kind.replace('_', ' ')}, no flow; see `agentx flow list`.")
        return item, item.detail

    def check(self, text: str) -> list[FlowMatch]:
        """The flows that something calls for, the best first; empty where none is near enough.

        Words decide where they can; only where they do not, meaning is asked, if a model is installed.

        Args:
            text: What is about to be done, in any words.
        """
        return called_for(self.engine, self.engine.snapshot(), text)

    def nearest(self, text: str) -> FlowMatch | None:
        """The flow that may be meant where none is near enough: by meaning alone, and for a person to judge.

        Args:
            text: What is about to be done.
        """
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
        """Write down a procedure.

        Args:
            name: What it does, as one would ask for it: "deploy to production".
            steps: What to do, in order.
            triggers: Other words that call for it.
            needs_approval: Whether a person's word is needed before it begins.
            domain: What it belongs to ("payments").
            agent: Role of the agent that does it; empty for any.

        Raises:
            UsageError: There is no name or no step, too much of it, or another flow of that name.
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
        """Change what is given; with other steps it is another procedure, so its record begins anew.

        Args:
            flow: Its id or its name.
            name: What it is called from now on.
            steps: All of its steps.
            triggers: All of its triggers.
            needs_approval: Whether a person's word is needed before it begins.

        Raises:
            UsageError: It is no flow, or what is given cannot be.
        """
        with self.engine.write_path.exclusive():
            item, old = self.find(flow)
            text = item.text if name is None else _line(name)
            new = msgspec.structs.replace(
                old,
                steps=old.steps if steps is None else _lines(steps),
                triggers=old.triggers if triggers is None else _lines(triggers),
                needs_approval=old.needs_approval if needs_approval is None else needs_approval,
            )
            if new.steps != old.steps:
                new = msgspec.structs.replace(new, succeeded=0, failed=0)
            _checked(text, new)
            if text != item.text:
                self._refuse_same_name(text)
            patch = Patch(id=item.id, text=text, short=shorten(text), detail=new)
            self.engine.synthesizer.record((patch,), PERSON, actor=self.engine.settings.actor)
            return editing.find(self.engine, item.id)

    def retire(self, flow: str) -> MemoryItem:
        """End a flow; it stays in the history.

        Raises:
            UsageError: It is no flow.
        """
        item, _ = self.find(flow)
        return editing.retire(self.engine, item.id, self.engine.settings.actor)

    def named(self, name: str) -> MemoryItem | None:
        """The active flow of a name, whatever its case; ``None`` where there is none."""
        wanted = _line(name).casefold()
        return next((one for one in self.all() if one.text.casefold() == wanted), None)

    def _refuse_same_name(self, name: str) -> None:
        if same := self.named(name):
            raise UsageError(
                f"There is a flow of that name, {same.id}: change it with `agentx flow edit {same.id}`."
            )


def called_for(
    engine: Engine, state: State, text: str, *, load: bool = True, meaning_enough: float = MEANING_ENOUGH
) -> list[FlowMatch]:
    """The flows that a message calls for, by words, and by meaning where words do not decide.

    Args:
        engine: The workspace.
        state: What is remembered.
        text: The message.
        load: Load the embedding model where that is needed; otherwise it is asked only where it is loaded already.
        meaning_enough: From this cosine on, meaning is enough.
    """
    found = match(state, text)
    flows = [] if found else list(state.active("flow"))
    if not flows or not terms(text):
        return found
    wanted = [*sentences(text)[:_SENTENCES_EMBEDDED], *map(called, flows)]
    vectors = engine.meanings.of(wanted, load=load)
    return match(state, text, vectors, meaning_enough=meaning_enough) if vectors else []


def read_steps(text: str) -> list[str]:
    r"""The steps of a procedure that is written down in Markdown: its list items, numbered or not.

    What stands indented below an item, or goes on without a new one, belongs to it; headings and what stands before the
    first item do not.

    Raises:
        UsageError: There is no list.

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
        raise UsageError("No steps are listed there; write them as a numbered list, one step an item.")
    return [_line(" ".join(parts)) for parts in found]


def _line(text: str) -> str:
    return " ".join(text.split())


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    """Each in one line, without what is empty or stands twice."""
    return tuple(dict.fromkeys(line for text in texts if (line := _line(text))))


def _checked(name: str, detail: FlowDetail) -> FlowDetail:
    size = sum(map(len, (name, *detail.steps, *detail.triggers)))
    if not name:
        raise UsageError("A flow needs a name: what it does, as one would ask for it.")
    if not detail.steps:
        raise UsageError(
            "A flow needs steps: give each with `--step`, or a numbered list with `--from FILE`."
        )
    if len(detail.steps) > MAX_STEPS or size > MAX_CHARACTERS:
        raise UsageError(
            f"A flow has at most {MAX_STEPS} steps and {MAX_CHARACTERS:,} characters; this one has {len(detail.steps)} "
            f"and {size:,}. Make two flows of it, or keep what is long in a file that a step names."
        )
    return detail
