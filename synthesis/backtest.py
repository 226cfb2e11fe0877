"""Past runs, read once more: what was done in those that worked becomes a flow, what failed and then worked a lesson.

Nothing of what a tool printed goes in. A step is a tool's name, or a program with the arguments that its uses have in
common; a name and a trigger are the user's own words. Whether a run passed was measured: by its checks, by how it
ended, by its grade.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from agentx.storage.events import (
    Event,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
)
from agentx.synthesis.checks.command import Step, is_check_command, masks_exit_status, selection, steps
from agentx.synthesis.checks.registry import parse_output
from agentx.synthesis.extractor import ReadBody
from agentx.synthesis.flows import phrases, terms
from agentx.synthesis.items import Evidence, FlowDetail, MemoryItem, item_id, shorten
from agentx.synthesis.state import State

MIN_TIMES = 2
"""What happened once proves nothing."""

ALIKE = 0.4
"""Share of their words' weight that the tasks of one procedure have in common (Jaccard)."""

MAX_MOVES = 60
"""Moves of a run that are compared, its last ones."""

MAX_COMPARED = 12
"""Runs of one task that are compared, the latest."""

MAX_STEPS = 12
MAX_TRIGGERS = 4
_TASK_CHARACTERS = 300
_NAME_WORDS = 8
_COMMAND_CHARACTERS = 120
_ARGUMENT_CHARACTERS = 60
_EVIDENCE = 4
_QUOTE_CHARACTERS = 120
_MOST = 0.6
"""What so many of the uses of a program have in common belongs to the step."""

Outcome = Literal["passed", "failed", "unknown"]


class Move(msgspec.Struct, frozen=True):
    """Something that an agent did in a run.

    Attributes:
        seq: The event.
        key: What kind of thing: ``$ go test``, ``edit`` or a tool's name; the same in every run.
        words: Of a command: its program and arguments, bounded.
        paths: Of an edit: the files.
        worked: Whether it succeeded.
        check: Whether it is a test, a linter or a build, so that it tells of the task.
    """

    seq: int
    key: str
    words: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    worked: bool = True
    check: bool = False


class Run(msgspec.Struct):
    """What was asked, what was done, and what came of it.

    Attributes:
        seq: The event that asked.
        task: The user's words.
    """

    seq: int
    task: str
    moves: list[Move] = msgspec.field(default_factory=list)
    ended: str = ""
    graded: bool | None = None

    @property
    def outcome(self) -> Outcome:
        """As it was graded, else as its last check and its end say; a run that neither tells of is unknown."""
        if self.graded is not None:
            return "passed" if self.graded else "failed"
        checked = next((move.worked for move in reversed(self.moves) if move.check), None)
        if self.ended == "FAILED" or checked is False:
            return "failed"
        return "passed" if checked or self.ended == "COMPLETED" else "unknown"


# --- reading the runs ------------------------------------------------------------------------------------------------


def read_runs(events: Iterable[Event], read: ReadBody) -> list[Run]:
    """The runs of a history, oldest first: from a ``RunStarted``, or a user's message outside of one, to the next.

    Args:
        events: In order.
        read: Gives the whole text of a body; asked for the output of checks alone.
    """
    reader = _Reader(read)
    for event in events:
        reader.take(event)
    return [run for run in reader.runs if run.moves and run.task]


class _Reader:
    def __init__(self, read: ReadBody) -> None:
        self.runs: list[Run] = []
        self._read = read
        self._open: dict[str, Run] = {}
        self._started: set[str] = set()
        self._announced: set[str] = set()
        self._latest: Run | None = None

    def take(self, event: Event) -> None:
        """Read one event."""
        match event.data:
            case RunStarted() as started:
                self._start(event, started)
            case UserMessageSent() as said:
                if event.actor.partition(":")[0] == "user" and event.run not in self._started:
                    self._begin(event.run, Run(event.seq, _task(said.body.text)))
            case ToolCallRequested() as call:
                self._announced.add(call.call_id)
            case ToolCallExecuted() as call if call.status != "DENIED":
                self._do(event, call)
            case RunEnded() as end if event.run in self._open:
                self._open[event.run].ended = end.status
                self._started.discard(event.run)
            case TaskGraded() as grade:
                run = self._open.get(event.run) if event.run else self._latest
                if run is not None:
                    run.graded = grade.passed

    def _do(self, event: Event, call: ToolCallExecuted) -> None:
        run = self._open.get(event.run) or self._latest
        if run is not None:
            run.moves += self._moves(event, call)
            self._latest = run

    def _start(self, event: Event, started: RunStarted) -> None:
        before = self._open.get(started.resumes) if started.resumes else None
        if before is None:
            self._begin(event.run, Run(event.seq, _task(started.task.text)))
        else:
            self._open[event.run] = before
        self._started.add(event.run)

    def _begin(self, name: str, run: Run) -> None:
        self._open[name] = self._latest = run
        self.runs.append(run)

    def _moves(self, event: Event, call: ToolCallExecuted) -> list[Move]:
        argument = call.arguments.get("command", "")
        command = call.command or (argument if isinstance(argument, str) else "")
        worked = call.status == "SUCCEEDED"
        if (
            call.tool.startswith("run_") and call.tool != "run_command"
        ):  # as it is set up: the tool is the step
            return [Move(event.seq, call.tool, worked=worked, check=True)]
        if command:
            check = is_check_command(command)
            worked = self._checked(call, command) if check else worked
            done = [step for step in steps(command) if not _only_looks(step)]
            return [Move(event.seq, _key(step), _bounded(step), worked=worked, check=check) for step in done]
        if call.changes:
            paths = tuple(change.path for change in call.changes)
            return [Move(event.seq, "edit", paths=paths)] if worked else []
        return [Move(event.seq, call.tool, worked=worked)] if call.call_id in self._announced else []

    def _checked(self, call: ToolCallExecuted, command: str) -> bool:
        """Whether a check passed: by its exit status where that is its own, otherwise by what it printed."""
        if call.exit_code is not None and not masks_exit_status(command):
            return call.exit_code == 0
        outcome = parse_output(self._read(call.output), command=command, exit_code=call.exit_code).outcome
        return call.status == "SUCCEEDED" if outcome == "unknown" else outcome == "passed"


_TAG = re.compile(r"<[^<>]{1,80}>")


def _task(text: str) -> str:
    """A task in one line, without the tags that a program put around it, and each run of a word once."""
    words = _TAG.sub(" ", text[:_TASK_CHARACTERS]).split()
    return " ".join(word for before, word in pairwise(["", *words]) if word.strip("/") != before.strip("/"))


_LOOKS = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "grep",
        "egrep",
        "rg",
        "find",
        "fd",
        "pwd",
        "echo",
        "printf",
        "cd",
        "wc",
        "which",
        "type",
        "sed",
        "awk",
        "tree",
        "diff",
        "cmp",
        "less",
        "more",
        "file",
        "stat",
        "du",
        "df",
        "ps",
        "env",
        "printenv",
        "whoami",
        "date",
        "sleep",
        "true",
        "false",
        "test",
        "[",
        "jq",
        "sort",
        "uniq",
        "cut",
        "tr",
        "xargs",
        "tee",
        "set",
        "export",
        "read",
        "for",
        "do",
        "done",
        "while",
        "if",
        "fi",
        "then",
        "else",
        "exit",
        "wait",
        "kill",
        "lsof",
        "top",
        "uname",
        "hostname",
        "history",
        "man",
        "id",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "seq",
        "od",
        "xxd",
        "strings",
    ]
)
"""Programs that only look, or only steer a command line: what they show changes nothing."""

_LOOKING = frozenset(
    [
        "status",
        "diff",
        "log",
        "show",
        "branch",
        "rev-parse",
        "remote",
        "ls-files",
        "ls-tree",
        "cat-file",
        "blame",
        "describe",
        "reflog",
        "config",
        "shortlog",
        "grep",
        "list",
        "view",
        "version",
        "help",
        "get",
        "info",
    ]
)
"""Subcommands that only look."""

_GROUPS = frozenset(
    [
        "run",
        "compose",
        "pr",
        "issue",
        "release",
        "workflow",
        "rollout",
        "exec",
        "stack",
        "image",
        "container",
        "repo",
        "model",
        "db",
        "app",
    ]
)
"""Subcommands that take another one."""

_PROGRAM = re.compile(r"[\w./+-]+")
_BARE = re.compile(r"[A-Za-z][\w:-]*")


def _only_looks(step: Step) -> bool:
    words = _subcommands(step)
    looks = step.program in _LOOKS or bool(words and words[-1] in _LOOKING)
    return looks or not _PROGRAM.fullmatch(step.program)


def _subcommands(step: Step) -> tuple[str, ...]:
    """The words that say what a program does: one, or two where the first one names a group."""
    words: list[str] = []
    arguments = list(step.arguments)
    while arguments and arguments[0].startswith("-"):  # as in `git -C there push`
        del arguments[: 2 if arguments[0] in {"-C", "-c"} else 1]
    for word in arguments:
        if not _BARE.fullmatch(word) or (words and words[-1] not in _GROUPS):
            break
        words.append(word)
    return tuple(words)


def _key(step: Step) -> str:
    return " ".join(("$", step.program[:_ARGUMENT_CHARACTERS], *_subcommands(step)))


def _bounded(step: Step) -> tuple[str, ...]:
    """A program and its arguments; what is long, or words rather than a name, is left open."""
    return (step.program[:_ARGUMENT_CHARACTERS], *(_argument(word) for word in step.arguments[:20]))


def _argument(word: str) -> str:
    plain = len(word) <= _ARGUMENT_CHARACTERS and word.isprintable() and not re.search(r"[\s`$]", word)
    return word if plain else "…"


# --- flows -----------------------------------------------------------------------------------------------------------


class Proposals(msgspec.Struct, frozen=True):
    """What past runs suggest, the best supported first."""

    flows: tuple[MemoryItem, ...]
    lessons: tuple[MemoryItem, ...]


def propose(runs: Sequence[Run], state: State) -> Proposals:
    """Flows from what worked at least twice for the same task, and lessons from what failed and then worked twice.

    What memory holds already, in whatever status, is not proposed again.

    Args:
        runs: Past runs.
        state: What is remembered.
    """
    taken = set(state.items)
    made = [flow for group in _groups(runs) if (flow := _flow(group, taken)) is not None]
    made.sort(key=lambda item: (-_detail(item).succeeded, item.evidence[0].seq))
    known = [item for item in state.items.values() if item.kind == "flow"]
    fresh: list[MemoryItem] = []
    for flow in made:
        if any(_same(flow, one) for one in known):
            continue
        twin = next((number for number, one in enumerate(fresh) if _same(flow, one)), None)
        if twin is None:
            fresh.append(flow)
        elif _share_a_word(fresh[twin], flow):  # other words for the same task
            fresh[twin] = _also_called(fresh[twin], flow)
    learned = [item for item in state.items.values() if item.kind == "learning"]
    texts = {item.text for item in learned}
    read = {one.seq for item in learned if item.trust == "engine" for one in item.evidence}
    lessons = [
        item
        for item in _lessons(runs, taken)
        if item.text not in texts and not any(one.seq in read for one in item.evidence)
    ]
    return Proposals(tuple(fresh), tuple(lessons))


def _detail(item: MemoryItem) -> FlowDetail:
    return item.detail if isinstance(item.detail, FlowDetail) else FlowDetail(())


def _share_a_word(one: MemoryItem, other: MemoryItem) -> bool:
    return bool(set(terms(one.text)) & set(terms(other.text)))


def _also_called(flow: MemoryItem, other: MemoryItem) -> MemoryItem:
    detail = _detail(flow)
    triggers = dict.fromkeys((*detail.triggers, *phrases(other)))
    triggers.pop(flow.text, None)
    detail = msgspec.structs.replace(detail, triggers=tuple(triggers)[:MAX_TRIGGERS])
    return msgspec.structs.replace(flow, detail=detail)


def _same(made: MemoryItem, known: MemoryItem) -> bool:
    """Whether a flow is there already: under one of its names, or with mostly its steps."""
    seen = {one.seq for one in known.evidence}
    names = {terms(phrase) for phrase in phrases(known)}
    if any(one.seq in seen for one in made.evidence) or any(
        terms(phrase) in names for phrase in phrases(made)
    ):
        return True
    mine, theirs = set(_detail(made).steps), set(_detail(known).steps)
    return len(mine & theirs) >= _MOST * len(mine | theirs)


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same task, by its words: each run joins the first group whose first task is like its own."""
    words = [frozenset(terms(run.task)) for run in runs]
    spread = Counter(term for own in words for term in own)
    weight = {term: math.log(1 + len(runs) / count) for term, count in spread.items()}
    groups: list[list[Run]] = []
    leaders: list[frozenset[str]] = []
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for run, own in zip(runs, words, strict=True):
        near = sorted({number for term in own for number in holding[term]})
        home = next((number for number in near if _alike(leaders[number], own, weight) >= ALIKE), None)
        if home is not None:
            groups[home].append(run)
        elif own:
            for term in own:
                holding[term].append(len(groups))
            groups.append([run])
            leaders.append(own)
    return groups


def _alike(one: frozenset[str], other: frozenset[str], weight: dict[str, float]) -> float:
    return sum(weight[term] for term in one & other) / sum(weight[term] for term in one | other)


def _flow(group: Sequence[Run], taken: set[str]) -> MemoryItem | None:
    passed = [run for run in group if run.outcome == "passed"]
    if len(passed) < MIN_TIMES:
        return None
    common_paths = _common_paths(passed)
    done = {run.seq: _sequence(run, common_paths, only_worked=True) for run in group}
    pattern = _pattern([done[run.seq] for run in passed[-MAX_COMPARED:]])
    if len({key for key in pattern if not key.startswith("edit")}) < 2:  # noqa: PLR2004 - one command is no procedure
        return None
    followed = [run for run in passed if _is_within(pattern, done[run.seq])]
    tried = {run.seq: _sequence(run, common_paths, only_worked=False) for run in group}
    failed = [run for run in group if run.outcome == "failed" and _is_within(pattern, tried[run.seq])]
    name, triggers = _named(followed)
    if len(followed) < MIN_TIMES or not name:
        return None
    detail = FlowDetail(
        steps=tuple(_step(key, followed) for key in pattern),
        triggers=triggers,
        succeeded=len(followed),
        failed=len(failed),
    )
    flow = _free("flow", followed[0].seq, taken)
    taken.add(flow)
    return MemoryItem(
        id=flow,
        kind="flow",
        text=name,
        short=shorten(name),
        evidence=tuple(
            Evidence(run.seq, 0, len(run.task[:_QUOTE_CHARACTERS]), run.task[:_QUOTE_CHARACTERS])
            for run in followed[:_EVIDENCE]
        ),
        trust="engine",
        status="proposed",
        reason=f"it worked in {len(followed)} past runs, and failed in {len(failed)}",
        detail=detail,
    )


def _free(kind: Literal["flow", "learning"], seq: int, taken: set[str]) -> str:
    ordinal = 0
    while item_id(kind, seq, ordinal) in taken:
        ordinal += 1
    return item_id(kind, seq, ordinal)


def _common_paths(runs: Sequence[Run]) -> frozenset[str]:
    """The files that most of these runs changed: changing them is a step of its own."""
    spread = Counter(path for run in runs for path in {path for move in run.moves for path in move.paths})
    return frozenset(path for path, count in spread.items() if count >= max(MIN_TIMES, _MOST * len(runs)))


def _sequence(run: Run, common_paths: frozenset[str], *, only_worked: bool) -> tuple[str, ...]:
    """The keys of a run's moves in order, without repetitions: write, test, write, test is once write, test."""
    keys: list[str] = []
    for move in run.moves[-MAX_MOVES:]:
        if only_worked and not move.worked:
            continue
        own = [f"edit {path}" for path in move.paths if path in common_paths]
        keys += own or [move.key]
        _fold_repetition(keys)
    return tuple(keys)


def _fold_repetition(keys: list[str]) -> None:
    for length in (1, 2, 3, 4):
        while len(keys) >= 2 * length and keys[-length:] == keys[-2 * length : -length]:
            del keys[-length:]


def _pattern(sequences: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest sequence that most of the given ones contain, in order, with gaps.

    From each of them as a base: what its longest common subsequences with the others keep of it most of the time.
    """
    enough = max(MIN_TIMES, math.ceil(_MOST * len(sequences)))
    best: tuple[str, ...] = ()
    for base in sequences:
        kept: Counter[int] = Counter()
        for other in sequences:
            kept.update(_common(base, other))
        keys = [key for place, key in enumerate(base) if kept[place] >= enough]
        folded: list[str] = []
        for key in keys:
            folded.append(key)
            _fold_repetition(folded)
        made = tuple(folded[-MAX_STEPS:])
        support = sum(_is_within(made, other) for other in sequences)
        if support >= MIN_TIMES and len(set(made)) > len(set(best)):
            best = made
    return best


def _common(base: tuple[str, ...], other: tuple[str, ...]) -> list[int]:
    """Places in ``base`` of a longest common subsequence with ``other``."""
    rows = [[0] * (len(other) + 1) for _ in range(len(base) + 1)]
    for i in range(len(base) - 1, -1, -1):
        for j in range(len(other) - 1, -1, -1):
            same = base[i] == other[j]
            rows[i][j] = rows[i + 1][j + 1] + 1 if same else max(rows[i + 1][j], rows[i][j + 1])
    places: list[int] = []
    i = j = 0
    while i < len(base) and j < len(other):
        if base[i] == other[j]:
            places.append(i)
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
    return places


def _is_within(pattern: Sequence[str], keys: Iterable[str]) -> bool:
    rest = iter(keys)
    return all(key in rest for key in pattern)


def _step(key: str, runs: Sequence[Run]) -> str:
    """A step in words: a program with what its uses have in common, a file that is changed, or a tool."""
    if key == "edit":
        return "Make the change"
    if key.startswith("edit "):
        return f"Change `{key.removeprefix('edit ')}`"
    if not key.startswith("$ "):
        return f"Call `{key}`"
    uses = [move.words for run in runs for move in run.moves if move.key == key and move.worked]
    return f"Run `{_in_common(uses)}`"


def _in_common(uses: Sequence[tuple[str, ...]]) -> str:
    """The most usual form of a command, with ``…`` for what its uses do not share."""
    usual, _ = Counter(uses).most_common(1)[0]
    shared = Counter(word for use in uses for word in set(use))
    words: list[str] = []
    for number, word in enumerate(usual):
        kept = number == 0 or shared[word] >= _MOST * len(uses)
        if kept or words[-1] != "…":
            words.append(word if kept else "…")
    return " ".join(words)[:_COMMAND_CHARACTERS]


_CLAUSE = re.compile(r"[.!?;:,](?:\s|$)|\n")


def _named(runs: Sequence[Run]) -> tuple[str, tuple[str, ...]]:
    """A name and triggers for what several tasks have in common, in the user's words."""
    spread = Counter(term for run in runs for term in set(terms(run.task)))
    common = {term for term, count in spread.items() if count >= max(MIN_TIMES, _MOST * len(runs))}
    told: Counter[str] = Counter()
    for run in runs:
        clauses = [_only(common, clause) for clause in _CLAUSE.split(run.task)]
        told[max(clauses, key=lambda clause: len(terms(clause)))] += 1
    del told[""]
    ranked = sorted(told, key=lambda words: (-len(terms(words)), -told[words], len(words), words))
    named = [words for words in ranked if len(words.split()) <= _NAME_WORDS]
    distinct = list({frozenset(terms(words)): words for words in reversed(named)}.values())[::-1]
    return (distinct[0], tuple(distinct[1:MAX_TRIGGERS])) if distinct else ("", ())


def _only(common: set[str], clause: str) -> str:
    """A clause without the words that are not in common, from its first common word to its last."""
    words = clause.split()
    marks = [bool(set(terms(word)) & common) for word in words]
    if not any(marks):
        return ""
    first, last = marks.index(True), len(marks) - 1 - marks[::-1].index(True)
    kept = [
        word
        for word, mark in zip(words[first : last + 1], marks[first : last + 1], strict=True)
        if mark or not terms(word)
    ]
    return " ".join(kept).strip(" \"'`()").lower()


# --- lessons ---------------------------------------------------------------------------------------------------------


class _Turn(msgspec.Struct, frozen=True):
    """Where something failed and the next of its kind worked.

    Attributes:
        of: What is the same wherever the same turn was taken.
        between: What ran in between, where that made the difference.
    """

    of: tuple[str, ...]
    failing: Move
    working: Move
    between: Move | None = None


def _lessons(runs: Sequence[Run], taken: set[str]) -> Iterator[MemoryItem]:
    """What failed and then worked in at least two runs: in another form, or after something else had run."""
    seen: defaultdict[tuple[str, ...], dict[int, _Turn]] = defaultdict(dict)
    for run in runs:
        for turn in _turns(run):
            seen[turn.of].setdefault(run.seq, turn)
    found = [list(turns.values()) for turns in seen.values() if len(turns) >= MIN_TIMES]
    for turns in sorted(found, key=lambda turns: (-len(turns), turns[0].failing.seq)):
        text = _lesson(turns)
        name = _free("learning", turns[1].working.seq, taken)
        taken.add(name)
        moves = [move for turn in turns[:_EVIDENCE] for move in (turn.failing, turn.working)]
        yield MemoryItem(
            id=name,
            kind="learning",
            text=text,
            short=shorten(text),
            evidence=tuple(
                Evidence(move.seq, quote=" ".join(move.words)[:_QUOTE_CHARACTERS]) for move in moves
            ),
            trust="engine",
            status="proposed",
            reason=f"measured in {len(turns)} past runs",
        )


def _turns(run: Run) -> Iterator[_Turn]:
    for place, failing in enumerate(run.moves):
        if failing.worked or not failing.words:
            continue
        between: list[Move] = []
        for move in run.moves[place + 1 :]:
            if move.key == failing.key and move.seq != failing.seq and move.worked:
                if turn := _turn(failing, move, between):
                    yield turn
                break
            between.append(move)


def _turn(failing: Move, working: Move, between: Sequence[Move]) -> _Turn | None:
    """What made the difference, where it was one thing: what ran in between, or how the command was written."""
    if any(move.key == "edit" for move in between):
        return None  # what was changed made it work
    helped = {move.key: move for move in between if move.worked and move.seq != failing.seq}
    if failing.words == working.words and len(helped) == 1:
        ((key, only),) = helped.items()
        return _Turn((failing.key, key), failing, working, only) if only.words else None
    if failing.words == working.words or helped or "…" in (*failing.words, *working.words):
        return None
    added = tuple(word for word in working.words if word not in failing.words)
    dropped = tuple(word for word in failing.words if word not in working.words)
    if failing.check and (dropped or _selects(failing) != _selects(working)):
        return None  # fewer checks pass more easily
    return _Turn((failing.key, "+", *added, "-", *dropped), failing, working)


def _selects(move: Move) -> tuple[tuple[str, ...], tuple[str, ...]]:
    selected = selection(" ".join(move.words))
    return selected.paths, selected.names


def _lesson(turns: Sequence[_Turn]) -> str:
    """A sentence of the first two turns, so that it stays the same when more are seen."""
    first = turns[:MIN_TIMES]
    failing = _in_common([turn.failing.words for turn in first])
    helped = [turn.between.words for turn in first if turn.between is not None]
    if helped:
        return f"`{failing}` failed, and worked once `{_in_common(helped)}` had run."
    return f"`{failing}` failed, and `{_in_common([turn.working.words for turn in first])}` worked instead."
