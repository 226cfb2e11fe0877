"""The gates of an open workspace: checks before each action, and grading after each task.

The engine runs them: before each tool call (:mod:`agentx.tools.toolset`) and at the end of a run
(:mod:`agentx.agents.loop`). So no agent can skip them. Any other agent gets the same as a library call, and
as ``agentx gate pre`` and ``post``.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.memory.flows import Flows, called_for
from agentx.memory.lesson_evidence import look_for
from agentx.policy import resource_lookup
from agentx.policy.predicted_writes import command_of, located_command, paths_of, planned, words_of
from agentx.policy.resource_lookup import Scripts
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import AgentMessageSent, Draft, Event, TaskGraded, ToolCallExecuted
from agentx.storage.index.port import Vector
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line, shorten
from agentx.synthesis.enforcement.evaluate import Evaluation, Violation, all_of, why_asked
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.gates.action_gate import (
    GateVerdict,
    Line,
    fitted,
    judge,
    needs_approval,
    not_analysed,
    violation_of,
)
from agentx.synthesis.gates.action_relevance import (
    ACTION_CHARACTERS,
    Action,
    MemoryBoard,
    is_script,
    suggested,
)
from agentx.synthesis.gates.situations import phrases
from agentx.synthesis.learning.following import (
    READING_TOOLS,
    StepsSeen,
    can_change,
    checked_rules,
    observe,
    only_denied,
)
from agentx.synthesis.learning.grading import is_only_words, lasts, rule_that_says
from agentx.synthesis.learning.proposing import Proposal, propose
from agentx.synthesis.memory.checks import PathCheck
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, checks_of, sort_of
from agentx.synthesis.shell.effects import looks_only
from agentx.synthesis.state.flows import FlowMatch, match
from agentx.synthesis.state.rule_lifecycle import triggered
from agentx.synthesis.state.state import State

EXTRACTOR = "gates"
"""The ``extractor`` of the changes that the gate makes: it wakes dormant rules."""

NOTED_ITEMS = 6
"""Maximum number of items in one note, the most urgent first."""

NOTED_WORDS = 30
"""Maximum number of words per item."""

MAX_WORDS = 400
"""Maximum number of characters of a task or a lesson."""

EMBED_S = 0.05
"""Longest time that one look embeds phrases; the next look continues."""

_RUNS_KEPT = 64


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded of a task.

    Attributes:
        event: Seq of its ``TaskGraded``.
        task: Its entry in the state; ``None`` if it has none.
        new: Whether that entry is new; otherwise an earlier entry was updated.
        flow: The flow that it followed, with its updated counters.
        rules: The rules that it kept or broke, as updated.
        lesson: The item that holds the lesson: a learning, or an existing rule that says the same.
        permanent: Whether the lesson is enforced by more than words; ``None`` if nothing was learned.
        proposal: A check, flow or script that would make the lesson permanent.
        unknown: IDs that name no flow or rule, and were ignored.
        unmade: Why the claim about what the lesson was made into is not accepted; empty if it is.
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


class UncheckedLesson(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson without an automated check.

    Attributes:
        item: The learning or the rule.
        proposal: A check, flow or script that would make it permanent.
    """

    item: MemoryItem
    proposal: Proposal


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's findings before a tool call.

    Attributes:
        violations: Why the call is denied; empty if it is not.
        ask: Why approval is needed; empty if it is not.
        flows: The flows that require approval, and the rejections that the user may have ended.
        note: What the agent should read with the result; empty if it has been shown all of it.
        evaluation: What the checks found about the command line.
    """

    violations: tuple[Violation, ...] = ()
    ask: str = ""
    flows: tuple[str, ...] = ()
    note: str = ""
    evaluation: Evaluation = Evaluation()


class _RunMemory(msgspec.Struct):
    """What a run was shown, and what the user approved in it."""

    noted: set[str] = msgspec.field(default_factory=set)
    granted: set[str] = msgspec.field(default_factory=set)
    unread: set[str] = msgspec.field(default_factory=set)


class Gates:
    """The gates of an open workspace.

    Args:
        engine: The workspace.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._scripts = Scripts(engine.git.repo)
        self._runs: OrderedDict[str, _RunMemory] = OrderedDict()
        self._board: tuple[tuple[object, ...], MemoryBoard] | None = None

    # --- before ---------------------------------------------------------------------------------------------

    def before(
        self,
        action: str,
        *,
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
        domain: str = "",
        agent: str = "",
        writes: Sequence[str] | None = None,
    ) -> GateVerdict:
        """Return what memory and resources exist for an action, and whether it may proceed. Nothing is run.

        Args:
            action: What is about to be done, in any words.
            tool: The tool that does it.
            arguments: The tool's arguments. If it writes a file, the compiled checks see the file as it would
                be.
            domain: The domain of the action ("payments").
            agent: Role of the agent.
            writes: The arguments that name files which the tool writes; by default what ``agentx.toml``
                declares for it, else every string that is a path under a rule.

        Raises:
            UsageError: No action is given.

        >>> ws.gates.before("deploy to production").verdict  # doctest: +SKIP
        'allow_with_context'
        """
        arguments = arguments or {}
        text = one_line("; ".join(part for part in (action[:ACTION_CHARACTERS], words_of(arguments)) if part))
        command = command_of(arguments)
        text = text if text or command.strip() else one_line(tool)
        if not text and not command.strip():
            raise UsageError("Describe the planned action: `agentx gate pre TEXT`.")
        self.engine.write_path.refresh()
        began = time.perf_counter()
        board = self._known()
        changes = tool not in READING_TOOLS and not (tool and command and looks_only(command))
        what = self._action(
            text,
            tool,
            arguments,
            agent.strip(),
            changes=changes,
            plans=changes,
            domain=domain.strip(),
            writes=writes,
        )
        flows = called_for(self.engine, board.state, what.text, command=what.command, load=False)
        named = tool in self.engine.config.tools.approve
        located = located_command(self.engine.artifacts, arguments)
        evaluation = all_of(self.engine.evaluate_changes(what.writes), self.engine.evaluate_command(located))
        verdict = judge(
            board,
            what,
            flows,
            violations=evaluation.stopping,
            needs_word=f"{tool} needs approval (tools.approve)." if named else why_asked(evaluation),
            tools=lambda: self._existing(what),
            vectors=self._vectors(board, what),
        )
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        corrected = evaluation.corrected.removeprefix(located.removesuffix(command))
        verdict = msgspec.structs.replace(
            verdict,
            corrected=clean(corrected),
            unread=tuple(map(clean, evaluation.unread)),
            checked=self.engine.standing_rules,
            took_ms=took_ms,
        )
        self._wake(board, verdict)
        return fitted(verdict)

    def before_call(self, tool: str, arguments: Mapping[str, Any], *, run: str = "", agent: str = "") -> Look:
        """Return the gate's findings before a tool call of an agent.

        The content that the call writes is checked later, when it is written.

        Args:
            tool: Name of the tool.
            arguments: The arguments as the agent gave them.
            run: The run; each item is noted once per run.
            agent: Role of the agent.
        """
        board = self._known()
        command, words = command_of(arguments), words_of(arguments)
        text = "" if command else words or tool
        changes = can_change(tool, command)
        what = self._action(text, tool, arguments, agent, changes=changes, plans=changes and board.may_stop)
        memory = self._memory(run)
        flows = self._flows(board, what, what.task, memory.granted)
        looks = bool(command) or any(map(is_script, what.paths))
        granted = frozenset(memory.granted)
        verdict = judge(
            board,
            what,
            flows,
            granted=granted,
            tools=(lambda: self._existing(what)) if looks and what.changes else tuple,
            vectors=self._vectors(board, what),
        )
        self._wake(board, verdict)
        # A command, or the name of a tool, says what is done; a file's text and name can be about anything.
        clear = bool(command or not words)
        denied = [board.items[name] for name in verdict.denied_by] if clear else []
        evaluation = self.engine.evaluate_command(command)
        doubtful = {item.id for item in board.items.values() if item.perhaps_ended_by}
        asked = [name for name in verdict.asked_by if clear or name not in doubtful]
        if asked and what.writes:  # a check that denies the write decides, when it is made
            denies = {one.item_id for one in self.engine.evaluate_changes(what.writes).of("deny", "fix")}
            asked = [name for name in asked if name not in denies]
        return Look(
            violations=(*evaluation.stopping, *map(violation_of, denied)),
            ask=" ".join(filter(None, (verdict.reason if asked else "", why_asked(evaluation)))),
            evaluation=evaluation,
            flows=tuple(asked),
            note="\n".join(filter(None, (_note(verdict, memory), _unread(evaluation, memory))))
            if run
            else "",
        )

    def note_once(self, verdict: GateVerdict, run: str) -> str:
        """Return what a verdict found that was not noted in this run before, for the agent; mostly empty."""
        return _note(verdict, self._memory(run))

    def paths_of(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the artifacts that a call names, as relative paths; paths elsewhere are left out.

        That is also in another work tree of the project, though rules hold there as well.
        """
        return paths_of(self.engine.artifacts, arguments, own=True)

    def _action(
        self,
        text: str,
        tool: str,
        arguments: Mapping[str, Any],
        agent: str,
        *,
        changes: bool,
        plans: bool,
        domain: str = "",
        writes: Sequence[str] | None = None,
    ) -> Action:
        """Return a call as an action; with ``plans``, also the files as it would leave them."""
        engine = self.engine
        try:
            written = self._planned(tool, arguments, writes) if plans else {}
            changed = engine.changes(written, f"agent:{agent}" if agent else "")
        except (AgentXError, OSError):  # a path that cannot be; the call itself says so
            changed = ()
        return Action(
            text=text[:ACTION_CHARACTERS],
            command=command_of(arguments),
            tool=tool,
            paths=paths_of(engine.artifacts, arguments),
            domain=domain,
            agent=agent,
            task=engine.last_user_message(),
            changes=changes,
            arguments=arguments,
            root=str(engine.artifacts.root),
            writes=changed,
        )

    def _planned(
        self, tool: str, arguments: Mapping[str, Any], writes: Sequence[str] | None
    ) -> dict[str, Content | None]:
        """Return the files as a call would leave them, by what is declared of its tool."""
        engine = self.engine
        if writes is None:
            declared = engine.config.tools.writes  # hosts name a server's tool `mcp__SERVER__TOOL`
            writes = declared.get(tool, declared.get(tool.rpartition("__")[2]))
        checks = [check for item in engine.checked() for check in checks_of(item)]
        ruled = [check.paths for check in checks if isinstance(check, PathCheck) and check.paths]

        def is_ruled(path: str) -> bool:
            return any(matches(paths, path) and _is_named(paths, path) for paths in ruled)

        return planned(engine.artifacts, engine.git, tool, arguments, writes=writes, is_ruled=is_ruled)

    def before_answer(self, answer: str, *, agent: str = "") -> tuple[Violation, ...]:
        """Return the rejections that an answer suggests again.

        Args:
            answer: The text about to be sent to the user.
            agent: Role of the agent.
        """
        found = suggested(self._known(), answer, self.engine.last_user_message(), agent)
        return tuple(map(violation_of, found))

    def grant(self, run: str, flows: Sequence[str]) -> None:
        """Record the user's approval of these flows; the rest of the run does not ask again."""
        self._memory(run).granted.update(flows)

    def _flows(
        self, board: MemoryBoard, action: Action, message: str, granted: Collection[str]
    ) -> list[FlowMatch]:
        """Return the flows that a call matches; otherwise those of the user's message.

        The message counts only if the call changes something. A flow of the message that still needs approval
        always comes first, so that no wording of a call can avoid it.
        """
        own = match(board.state, action.text, command=action.command)
        asked = match(board.state, message) if message and action.changes else []
        waits = [one for one in asked[:1] if needs_approval(one) and one.item.id not in granted]
        known = {one.item.id for one in waits}
        return [*waits, *(one for one in own or asked if one.item.id not in known)]

    def _known(self) -> MemoryBoard:
        """Return the memory that applies, indexed by its words; rebuilt after it changed."""
        state, followed = self.engine.log.state, self.engine.following.current()
        key = id(state), state.counts.get("Concluded", 0), self.engine.serves, followed
        if self._board is None or self._board[0] != key:
            with self.engine.write_path.exclusive():
                self._board = key, MemoryBoard(self.engine.applying(self.engine.log.state, followed))
        return self._board[1]

    def _memory(self, run: str) -> _RunMemory:
        memory = self._runs.setdefault(run, _RunMemory())
        self._runs.move_to_end(run)
        while len(self._runs) > _RUNS_KEPT:
            self._runs.popitem(last=False)
        return memory

    def _existing(self, action: Action) -> tuple[Line, ...]:
        git, settings = self.engine.git, self.engine.settings
        environ = settings.environ
        own = self._scripts.all(git.tree, git.manifest)
        beside: list[resource_lookup.Script] = []
        if self.engine.trust.trusted:
            beside = resource_lookup.scripts_beside(self.engine.root)
        found = resource_lookup.for_action(
            action.said, own, beside, resource_lookup.credentials({**environ, **settings.keys})
        )
        return tuple(line for line in found if line.id not in action.paths)

    def _vectors(self, board: MemoryBoard, action: Action) -> dict[str, Vector]:
        """Return what may wake a rule by meaning; nothing if the model is not loaded."""
        asked = phrases(board, action) if action.changes else []
        return self.engine.meanings.of(asked, load=False, within_s=EMBED_S) if asked else {}

    def _wake(self, board: MemoryBoard, verdict: GateVerdict) -> None:
        if not verdict.woken or self.engine.write_path.read_only:
            return
        with self.engine.write_path.exclusive():
            state = self.engine.log.state
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
        steps: StepsSeen | None = None,
    ) -> Graded:
        """Grade a task: update the counters of its flow and rules, and keep its lesson.

        Args:
            task: What was done, in one sentence.
            passed: Whether it succeeded.
            flow: ID or name of the flow that it followed.
            lesson: What was learned, in one sentence.
            made: What the lesson was made into: ``check:ID``, ``flow:ID``, ``script:PATH`` or ``rule``. The
                claim is verified: if it does not exist, this is reported, and the lesson stays without a
                check. Without a name, it is searched by the words of the lesson.
            broke: IDs of rules that it broke.
            kept: IDs of rules that it kept.
            domain: Its domain ("payments").
            actor: Who grades; the user by default. The trust in the lesson depends on this.
            run: The run that it belongs to.
            steps: The steps of the flow that its run showed, if that was measured.

        Raises:
            UsageError: The task is empty, ``made`` has an unknown kind, or ``made`` is given without a
                lesson.
            ReadOnly: The workspace was written by a newer version.
        """
        task, lesson = one_line(clean(task))[:MAX_WORDS], one_line(clean(lesson))[:MAX_WORDS]
        if not task:
            raise UsageError("Describe what was done: `agentx gate post TEXT --pass` (or `--fail`).")
        if made and not lesson:
            raise UsageError("`--made` needs a lesson, too: `--lesson TEXT`.")
        with self.engine.write_path.exclusive():
            before = self.engine.snapshot()
            made, unmade = look_for(self.engine, one_line(made), lesson) if made else ("", "")
            called = Flows(self.engine).named(flow)
            flow = called.id if called else flow
            names = tuple(dict.fromkeys(name for name in (flow, *broke, *kept) if name))
            kinds = {name: item.kind for name in names if (item := before.items.get(name))}
            unknown = tuple(n for n in names if kinds.get(n) != ("flow" if n == flow else "rule"))
            graded = TaskGraded(
                task=task,
                passed=passed,
                flow="" if flow in unknown else flow,
                broke=_known_of(broke, unknown),
                kept=_known_of(kept, unknown),
                lesson=lesson,
                made=made,
                domain=one_line(domain)[:100],
                followed=steps is None or steps.followed,
                steps_seen=len(steps.seen) if steps else 0,
                steps=len(steps.observable) if steps else 0,
            )
            (event,) = self.engine.write_path.record(
                [Draft(data=graded, actor=actor or self.engine.settings.actor, run=run)]
            )
        told = _graded(event, graded, before, self.engine.snapshot())
        return msgspec.structs.replace(told, unknown=unknown, unmade=unmade)

    def after_run(
        self,
        task: str,
        facts: Sequence[ToolCallExecuted | AgentMessageSent],
        *,
        passed: bool,
        flows: bool,
        run: str,
    ) -> Graded | None:
        """Grade a run by what was measured: its outcome, the steps of its flow, and the rules checked in it.

        Args:
            task: The message that it answered.
            facts: Its tool calls and messages.
            passed: Whether it completed, and no check is left failing.
            flows: Whether it can count for a flow.
            run: Its ID.

        Returns:
            ``None`` if every change that it tried was denied: that proves nothing.
        """
        calls = [fact for fact in facts if isinstance(fact, ToolCallExecuted)]
        if only_denied(calls):
            return None
        items = self.engine.snapshot().items
        kept, broke = (
            [name for name in names if name in items and items[name].kind == "rule"]
            for names in checked_rules(facts)
        )
        flow, steps = self._followed(task, calls) if flows else ("", None)
        failed = steps is not None and steps.followed and bool(steps.failed)
        return self.after(
            task,
            passed=passed and not failed,
            flow=flow,
            kept=kept,
            broke=broke,
            actor="engine:gates",
            run=run,
            steps=steps,
        )

    def _followed(self, task: str, calls: Sequence[ToolCallExecuted]) -> tuple[str, StepsSeen | None]:
        """Return the flow of which a run shows most, of those that its task calls for; else the best match.

        Similarity alone is not a record: a flow found by meaning counts only if it was followed.
        """
        found = [
            (one, observe(one.item.detail.steps, calls))
            for one in called_for(self.engine, self.engine.snapshot(), task, load=False)
            if isinstance(one.item.detail, FlowDetail)
        ]
        if not found:
            return "", None
        best, steps = max(found, key=lambda pair: (pair[1].followed, pair[1].share))
        if not steps.followed:
            best, steps = found[0]
        return (best.item.id, steps) if steps.followed or best.by == "words" else ("", None)

    def lessons(self) -> list[UncheckedLesson]:
        """Return the lessons and rules without an automated check, the latest first."""
        items = reversed(self.engine.snapshot().items.values())
        return [
            UncheckedLesson(item=item, proposal=propose(item.text)) for item in items if is_only_words(item)
        ]


def _is_named(globs: Collection[str], path: str) -> bool:
    """Return whether a text is a path by its form, or one that a glob spells out, and not just any word."""
    name = path.rpartition("/")[2].casefold()
    return bool(re.search(r"/|\.\w", path)) or any(
        glob.rpartition("/")[2].casefold() == name for glob in globs
    )


def _known_of(names: Sequence[str], unknown: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in unknown)


def _graded(event: Event, graded: TaskGraded, before: State, after: State) -> Graded:
    """Return the result of a grading, from the changes in the state."""
    resting = [
        item for item in after.items.values() if any(place.seq == event.seq for place in item.evidence)
    ]
    task = next((item for item in resting if item.kind == "task"), None)
    lesson = next((item for item in resting if sort_of(item) == "learning"), None)
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


# --- notes for the agent ------------------------------------------------------------------------------------

_NOTED = ("flow", "rejections", "rules", "capabilities", "tools", "lessons")


def _unread(evaluation: Evaluation, memory: _RunMemory) -> str:
    """Return which parts of a command line were not analysed, each part once per run."""
    fresh = [part for part in evaluation.unread if part not in memory.unread]
    memory.unread.update(fresh)
    return f"[{not_analysed(fresh)}]" if fresh else ""


def _note(verdict: GateVerdict, memory: _RunMemory) -> str:
    """Return what touches a call and was not yet shown in this run.

    It has one line per item, so that a conversation does not grow with the number of its calls.
    """
    fresh = [
        (part, line)
        for part in verdict.sections
        if part.touches and part.name in _NOTED
        for line in part.lines
        if line.kind != "step" and line.id not in memory.noted
    ][:NOTED_ITEMS]
    memory.noted.update(line.id for _, line in fresh)
    lines = [
        f"- {line.kind} {line.id}: {shorten(line.text, NOTED_WORDS)}{f' ({line.why})' if line.why else ''}"
        for _, line in fresh
    ]
    return "\n".join(("[What the gate found before this call:", *lines)) + "]" if lines else ""
