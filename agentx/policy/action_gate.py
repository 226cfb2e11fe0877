"""The gates of an open workspace: what is looked at before each action, and what is kept of each task when it is over.

The engine runs them: before each tool call (:mod:`agentx.tools.toolset`) and at the end of a run (:mod:`agentx.agents.loop`).
So no agent chooses to look. As a library call, and as ``agentx gate pre`` and ``post``, any other agent has the same.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.memory.flows import Flows, called_for
from agentx.memory.lesson_evidence import look_for
from agentx.policy import resource_lookup
from agentx.policy.predicted_writes import command_of, paths_of, planned, words_of
from agentx.policy.resource_lookup import Scripts, is_script
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, Event, TaskGraded
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.gates.action_gate import Line, Verdict, fitted, judge, needs_approval, violation_of
from agentx.synthesis.gates.action_relevance import ACTION_CHARACTERS, Action, Board, suggested
from agentx.synthesis.gates.command_effects import looks_only
from agentx.synthesis.gates.enforcement import Violation
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.learning.grading import is_only_words, lasts, rule_that_says
from agentx.synthesis.learning.proposing import Proposal, propose
from agentx.synthesis.memory.items import MemoryItem, shorten
from agentx.synthesis.state.flows import FlowMatch, match
from agentx.synthesis.state.rules import triggered
from agentx.synthesis.state.state import State

EXTRACTOR = "gates"
"""The ``extractor`` of what a look through the gate changes: a rule that slept wakes."""

NOTED_ITEMS = 6
"""So many items stand in one note, the most urgent first."""

NOTED_WORDS = 30
"""Words of each."""

MAX_WORDS = 400
"""Characters of a task, or of a lesson."""

_READS = vocabulary(
    "read_file list_directory search_memory summarize_directory_purpose summarize_decisions "
    "Read Glob Grep LS NotebookRead WebSearch TodoWrite"
)
"""Tools that change nothing, of this and of other agents."""

_CHECKS = vocabulary("run_tests run_lint run_build check_document")
"""Tools that look whether what was done is right: no flow needs a person's word for that."""

_RUNS_KEPT = 64


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept of a task.

    Attributes:
        event: Seq of its ``TaskGraded``.
        task: Its one entry in the state; ``None`` where it has none.
        new: Whether that entry is new; otherwise an earlier one says it now.
        flow: The flow that it followed, with its counters as they are now.
        rules: The rules that it kept or broke, as they are now.
        lesson: The item that holds what was learned: a learning, or the rule that said so already.
        permanent: Whether the lesson is more than words; ``None`` where nothing was learned.
        proposal: What would make it permanent.
        unknown: Ids that name no flow or rule, and were passed over.
        unmade: Why it is not believed what the lesson is said to be made into; empty where it is.
    """

    event: int
    passed: bool
    task: MemoryItem | None = None
    new: bool = False
    flow: MemoryItem | None = None
    rules: tuple[MemoryItem, ...] = ()
    lesson: MemoryItem | None = None
    permanent: bool | None = None
    proposal: Proposal | None = None
    unknown: tuple[str, ...] = ()
    unmade: str = ""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson that is only words.

    Attributes:
        item: The learning or the rule.
        proposal: What would make it permanent.
    """

    item: MemoryItem
    proposal: Proposal


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate found before a tool call.

    Attributes:
        violations: Why it is denied; empty where it is not.
        ask: Why a person's word is needed; empty where it is not.
        flows: The flows that ask for it.
        note: What the agent is to read with the result; empty where it was told all of it.
    """

    violations: tuple[Violation, ...] = ()
    ask: str = ""
    flows: tuple[str, ...] = ()
    note: str = ""


class _Run(msgspec.Struct):
    """What a run was told, and what a person allowed it."""

    noted: set[str] = msgspec.field(default_factory=set)
    granted: set[str] = msgspec.field(default_factory=set)


class Gates:
    """The gates of an open workspace.

    Args:
        engine: The workspace.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._scripts = Scripts(engine.write_path.repo)
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._board: tuple[tuple[int, int], Board] | None = None

    # --- before ---------------------------------------------------------------------------------------------

    def before(
        self,
        action: str,
        *,
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
        domain: str = "",
        agent: str = "",
    ) -> Verdict:
        """What is remembered and what exists that touches an action, and whether it may go on. Nothing is run.

        Args:
            action: What is about to be done, in any words.
            tool: The tool that does it.
            arguments: What the tool is given: where it writes a file, the compiled checks see the file as it would be.
            domain: What it belongs to ("payments").
            agent: Role of the agent.

        Raises:
            UsageError: Nothing is said.

        >>> ws.gates.before("deploy to production").verdict  # doctest: +SKIP
        'allow_with_context'
        """
        arguments = arguments or {}
        text = one_line("; ".join(part for part in (action[:ACTION_CHARACTERS], words_of(arguments)) if part))
        command = command_of(arguments)
        text = text if text or command.strip() else one_line(tool)
        if not text and not command.strip():
            raise UsageError("Say what is about to be done: `agentx gate pre TEXT`.")
        self.engine.write_path.refresh()
        board = self._known()
        what = Action(
            text=text[:ACTION_CHARACTERS],
            command=command,
            tool=tool,
            paths=paths_of(self.engine, arguments),
            domain=domain.strip(),
            agent=agent.strip(),
            task=self.engine.last_user_message(),
            changes=tool not in _READS and not (tool and command and looks_only(command)),
        )
        flows = called_for(self.engine, board.state, what.said, load=False)
        verdict = judge(
            board,
            what,
            flows,
            violations=self.engine.check_write(planned(self.engine, tool, arguments)),
            needs_word=f"{tool} needs a person's word (tools.approve)." if self._asks_for(tool) else "",
            tools=lambda: self._existing(what),
        )
        self._wake(board, verdict)
        return fitted(verdict)

    def before_call(self, tool: str, arguments: Mapping[str, Any], *, run: str = "", agent: str = "") -> Look:
        """What the gate finds before a tool call of an agent; what the call would write is checked as it is written.

        Args:
            tool: Its name.
            arguments: As the agent gave them.
            run: What is noted is noted once in each run.
            agent: Role of the agent.
        """
        board, message = self._known(), self.engine.last_user_message()
        command, words = command_of(arguments), words_of(arguments)
        what = Action(
            text="" if command else (words or tool)[:ACTION_CHARACTERS],
            command=command,
            tool=tool,
            paths=paths_of(self.engine, arguments),
            agent=agent,
            task=message,
            changes=tool not in _READS | _CHECKS and not (command and looks_only(command)),
        )
        memory = self._memory(run)
        flows = self._flows(board, what, message, memory.granted)
        looks = bool(command) or any(map(is_script, what.paths))
        granted = frozenset(memory.granted)
        verdict = judge(
            board,
            what,
            flows,
            granted=granted,
            tools=(lambda: self._existing(what)) if looks and what.changes else tuple,
        )
        self._wake(board, verdict)
        # A command says what is done, and the name of a tool; the text and the name of a file can be about anything.
        denied = [board.items[name] for name in verdict.denied_by] if command or not words else []
        return Look(
            violations=tuple(map(violation_of, denied)),
            ask=verdict.reason if verdict.asked_by else "",
            flows=verdict.asked_by,
            note=_note(verdict, memory) if run else "",
        )

    def before_answer(self, answer: str, *, agent: str = "") -> tuple[Violation, ...]:
        """What an answer suggests again although the user ruled it out.

        Args:
            answer: What is about to be said to the user.
            agent: Role of the agent.
        """
        found = suggested(self._known(), answer, self.engine.last_user_message(), agent)
        return tuple(map(violation_of, found))

    def grant(self, run: str, flows: Sequence[str]) -> None:
        """A person gave their word on what these flows begin; the rest of the run is not asked about again."""
        self._memory(run).granted.update(flows)

    def _flows(self, board: Board, action: Action, message: str, granted: Collection[str]) -> list[FlowMatch]:
        """The flows that a call itself calls for; where none, and it changes something, those of the user's message.

        A flow of the message that still waits for a person's word comes first: no words of a call talk it away.
        """
        own = match(board.state, action.said)
        asked = match(board.state, message) if message and action.changes else []
        waits = [one for one in asked[:1] if needs_approval(one) and one.item.id not in granted]
        known = {one.item.id for one in waits}
        return [*waits, *(one for one in own or asked if one.item.id not in known)]

    def _known(self) -> Board:
        """The memory by its words; made again where it changed."""
        state = self.engine.write_path.state
        key = id(state), state.counts.get("Concluded", 0)
        if self._board is None or self._board[0] != key:
            with self.engine.write_path.exclusive():
                self._board = key, Board(self.engine.write_path.state)
        return self._board[1]

    def _memory(self, run: str) -> _Run:
        memory = self._runs.setdefault(run, _Run())
        self._runs.move_to_end(run)
        while len(self._runs) > _RUNS_KEPT:
            self._runs.popitem(last=False)
        return memory

    def _asks_for(self, tool: str) -> bool:
        return bool(tool) and tool in self.engine.config.tools.approve

    def _existing(self, action: Action) -> tuple[Line, ...]:
        path, settings = self.engine.write_path, self.engine.settings
        environ = settings.environ
        own = self._scripts.all(path.tree, path.manifest)
        keys: tuple[str, ...] = ()
        beside: list[resource_lookup.Script] = []
        if self.engine.trust.trusted:
            keys = resource_lookup.keychain(
                environ.get("PATH", ""), environ.get("DBUS_SESSION_BUS_ADDRESS", "")
            )
            beside = resource_lookup.scripts_beside(self.engine.root)
        found = resource_lookup.for_action(
            action.said, own, beside, resource_lookup.credentials({**environ, **settings.keys}), keys
        )
        return tuple(line for line in found if line.id not in action.paths)

    def _wake(self, board: Board, verdict: Verdict) -> None:
        if not verdict.woken or self.engine.write_path.read_only:
            return
        with self.engine.write_path.exclusive():
            state = self.engine.write_path.state
            patches = [triggered(board.items[name], state.at) for name in verdict.woken]
            self.engine.synthesizer.record(patches, EXTRACTOR)

    # --- after ----------------------------------------------------------------------------------------------

    def after(  # noqa: PLR0913 - each is a part of the fact that is recorded
        self,
        task: str,
        *,
        passed: bool,
        flow: str = "",
        lesson: str = "",
        made: str = "",
        broke: Sequence[str] = (),
        kept: Sequence[str] = (),
        domain: str = "",
        actor: str = "",
        run: str = "",
    ) -> Graded:
        """Grade a task: what it says of its flow and its rules is counted, and its lesson is kept.

        Args:
            task: What was done, in one sentence.
            passed: Whether it succeeded.
            flow: Id or name of the flow that it followed.
            lesson: What was learned, in one sentence.
            made: What the lesson was made into: ``check:ID``, ``flow:ID``, ``script:PATH`` or ``rule``. It is looked for: what
                is not there is told, and the lesson stays words. Without a name the words of the lesson find it.
            broke: Ids of rules that it broke.
            kept: Ids of rules that it kept.
            domain: What it belongs to ("payments").
            actor: Who grades; the person by default. Its word is what the lesson rests on.
            run: The run that it belongs to.

        Raises:
            UsageError: Nothing is said, or ``made`` is none of these, or is said without a lesson.
            ReadOnly: The workspace was written by a newer version.
        """
        task, lesson = one_line(clean(task))[:MAX_WORDS], one_line(clean(lesson))[:MAX_WORDS]
        if not task:
            raise UsageError("Say what was done: `agentx gate post TEXT --pass` (or `--fail`).")
        if made and not lesson:
            raise UsageError("Say what was learned, too: `--lesson TEXT`.")
        with self.engine.write_path.exclusive():
            before = self.engine.snapshot()
            made, unmade = look_for(self.engine, one_line(made), lesson) if made else ("", "")
            called = Flows(self.engine).named(flow)
            flow = called.id if called else flow
            names = tuple(dict.fromkeys(name for name in (flow, *broke, *kept) if name))
            unknown = tuple(name for name in names if not _is_graded(before, name, flow))
            graded = TaskGraded(
                task=task,
                passed=passed,
                flow="" if flow in unknown else flow,
                broke=_known_of(broke, unknown),
                kept=_known_of(kept, unknown),
                lesson=lesson,
                made=made,
                domain=one_line(domain)[:100],
            )
            (event,) = self.engine.write_path.record(
                [Draft(data=graded, actor=actor or self.engine.settings.actor, run=run)]
            )
        told = _graded(event, graded, before, self.engine.snapshot())
        return msgspec.structs.replace(told, unknown=unknown, unmade=unmade)

    def lessons(self) -> list[Lesson]:
        """The lessons and rules that nothing but their words enforces, the latest first."""
        items = reversed(self.engine.snapshot().items.values())
        return [Lesson(item=item, proposal=propose(item.text)) for item in items if is_only_words(item)]


def _is_graded(state: State, name: str, flow: str) -> bool:
    item = state.items.get(name)
    return item is not None and item.kind == ("flow" if name == flow else "rule")


def _known_of(names: Sequence[str], unknown: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in unknown)


def _graded(event: Event, graded: TaskGraded, before: State, after: State) -> Graded:
    """What a grading led to, found in what changed."""
    resting = [
        item for item in after.items.values() if any(place.seq == event.seq for place in item.evidence)
    ]
    task = next((item for item in resting if item.kind == "task"), None)
    lesson = next((item for item in resting if item.kind == "learning"), None)
    if lesson is None and graded.lesson:
        lesson = rule_that_says(after, graded.lesson, graded.domain)
    permanent = lasts(graded.made) if graded.lesson else None
    flow = after.items.get(graded.flow)
    names = dict.fromkeys((*graded.broke, *graded.kept))
    return Graded(
        event=event.seq,
        passed=graded.passed,
        task=task,
        new=task is not None and task.id not in before.items,
        flow=flow,
        rules=tuple(after.items[name] for name in names),
        lesson=lesson,
        permanent=permanent,
        proposal=propose(graded.lesson, flow) if permanent is False else None,
    )


# --- what an agent is told in passing -----------------------------------------------------------------------

_NOTED = ("flow", "rejections", "rules", "capabilities", "tools", "lessons")


def _note(verdict: Verdict, memory: _Run) -> str:
    """What touches a call and was not told in this run: a line each, so that a conversation does not grow with its calls."""
    fresh = [
        (part, line)
        for part in verdict.sections
        if part.touches and part.name in _NOTED
        for line in part.lines
        if line.kind != "step" and line.id not in memory.noted
    ][:NOTED_ITEMS]
    memory.noted.update(line.id for _, line in fresh)
    lines = [_noted(line) for _, line in fresh]
    return "\n".join(("[What the gate found before this call:", *lines)) + "]" if lines else ""


def _noted(line: Line) -> str:
    why = f" ({line.why})" if line.why else ""
    return f"- {line.kind} {line.id}: {shorten(line.text, NOTED_WORDS)}{why}"
