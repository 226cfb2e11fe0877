"""Propose flows and lessons from past runs.

Steps that worked repeatedly become a flow; what failed and then worked becomes a lesson. A step is a tool's
name, or a program with the arguments that its uses share. Names and triggers are the user's own words.
Everything is only proposed; memory changes only on approval.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.checks.command import selection
from agentx.synthesis.learning.past_runs import (
    EVIDENCE,
    MIN_TIMES,
    MOST,
    QUOTE_CHARACTERS,
    Run,
    RunMove,
    common_form,
)
from agentx.synthesis.memory.items import Evidence, FlowDetail, MemoryItem, NoteDetail, free_id, sort_of
from agentx.synthesis.state.flows import phrases, terms
from agentx.synthesis.state.state import State

ALIKE = 0.4
"""Minimum share of word weight that tasks of one procedure have in common (Jaccard)."""

MAX_MOVES = 60
"""Maximum number of moves per run that are compared, counted from its end."""

MAX_COMPARED = 12
"""Maximum number of runs per task that are compared, the latest ones."""

MAX_STEPS = 12
MAX_TRIGGERS = 4
_NAME_WORDS = 8
_NAME_TERMS = 2
"""A name of one word ("fix") would match too often."""


class Proposals(msgspec.Struct, frozen=True):
    """Proposals from past runs, best supported first."""

    flows: tuple[MemoryItem, ...]
    lessons: tuple[MemoryItem, ...]


def propose(runs: Sequence[Run], state: State) -> Proposals:
    """Propose flows and lessons from past runs.

    A flow comes from what worked at least twice for the same task. A lesson comes from what failed and then
    worked, at least twice. What memory already contains, in any status, is not proposed again.
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
        elif set(terms(fresh[twin].text)) & set(terms(flow.text)):  # different words for the same task
            first = fresh[twin]
            triggers = dict.fromkeys((*_detail(first).triggers, *phrases(flow)))
            triggers.pop(first.text, None)
            detail = msgspec.structs.replace(_detail(first), triggers=tuple(triggers)[:MAX_TRIGGERS])
            fresh[twin] = msgspec.structs.replace(first, detail=detail)
    # Lessons of a single session fade, and only an agent vouches for them. Measured twice, a lesson is
    # proposed as a permanent one.
    learned = [item for item in state.items.values() if sort_of(item) == "learning" and item.trust != "agent"]
    texts = {item.text for item in learned}
    read = {one.seq for item in learned if item.trust == "engine" for one in item.evidence}
    learnt = [
        item
        for item in lessons(runs, taken)
        if item.text not in texts and not any(one.seq in read for one in item.evidence)
    ]
    return Proposals(tuple(fresh), tuple(learnt))


def _detail(item: MemoryItem) -> FlowDetail:
    return item.detail if isinstance(item.detail, FlowDetail) else FlowDetail(())


def _same(made: MemoryItem, known: MemoryItem) -> bool:
    """Return whether a flow is already known: it shares a run or a name, or most of its steps."""
    seen = {one.seq for one in known.evidence}
    names = {terms(phrase) for phrase in phrases(known)}
    if any(one.seq in seen for one in made.evidence) or names & set(map(terms, phrases(made))):
        return True
    mine, theirs = set(_detail(made).steps), set(_detail(known).steps)
    return len(mine & theirs) >= MOST * len(mine | theirs)


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs by task words: each run joins the first group whose first task is similar."""
    words = [_subject(run.task) for run in runs]
    spread = Counter(term for own in words for term in own)
    weight = {term: math.log(1 + len(runs) / count) for term, count in spread.items()}
    groups: list[list[Run]] = []
    sizes: list[float] = []
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for run, own in zip(runs, words, strict=True):
        size = sum(weight[term] for term in own)
        common: defaultdict[int, float] = defaultdict(float)
        for term in own:
            for number in holding[term]:
                common[number] += weight[term]
        alike = (n for n in sorted(common) if common[n] >= ALIKE * (size + sizes[n] - common[n]))
        home = next(alike, None)
        if home is not None:
            groups[home].append(run)
        elif own:
            for term in own:
                holding[term].append(len(groups))
            groups.append([run])
            sizes.append(size)
    return groups


def _subject(task: str) -> tuple[str, ...]:
    """Return the terms of a task without numbers, which change from run to run."""
    return tuple(term for term in terms(task) if not any(map(str.isdigit, term)))


def _flow(group: Sequence[Run], taken: set[str]) -> MemoryItem | None:
    passed = [run for run in group if run.outcome == "passed"]
    if len(passed) < MIN_TIMES:
        return None
    # Changing a file that most of these runs changed is a separate step.
    spread = Counter(path for run in passed for path in {path for move in run.moves for path in move.paths})
    common_paths = {path for path, count in spread.items() if count >= max(MIN_TIMES, MOST * len(passed))}
    done = {run.seq: _sequence(run, common_paths, only_worked=True) for run in group}
    pattern = _pattern([done[run.seq] for run in passed[-MAX_COMPARED:]])
    # One command is not a procedure.
    if len({key for key in pattern if not key.startswith("edit")}) < 2:  # noqa: PLR2004
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
    identity = free_id("flow", followed[0].seq, taken)
    taken.add(identity)
    return MemoryItem(
        id=identity,
        kind="flow",
        text=name,
        short=shorten(name),
        evidence=tuple(
            Evidence(run.seq, 0, len(run.task[:QUOTE_CHARACTERS]), run.task[:QUOTE_CHARACTERS])
            for run in followed[:EVIDENCE]
        ),
        trust="engine",
        status="candidate",
        reason=f"it worked in {len(followed)} past runs, and failed in {len(failed)}",
        detail=detail,
    )


def _sequence(run: Run, common_paths: set[str], *, only_worked: bool) -> tuple[str, ...]:
    """Return the keys of a run's moves, repetitions folded: write, test, write, test is write, test."""
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
    """Return the longest sequence that most of the given ones contain, in order, with gaps.

    Each sequence serves as a base once. Of the base, the keys are kept that most of its longest common
    subsequences with the others contain.
    """
    enough = max(MIN_TIMES, math.ceil(MOST * len(sequences)))
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
    """Return positions in ``base`` of a longest common subsequence with ``other``."""
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
    """Describe a step: a program with the arguments its uses share, a file to change, or a tool."""
    if key == "edit":
        return "Make the change"
    if key.startswith("edit "):
        return f"Change `{key.removeprefix('edit ')}`"
    if not key.startswith("$ "):
        return f"Call `{key}`"
    uses = [move.words for run in runs for move in run.moves if move.key == key and move.worked]
    return f"Run `{common_form(uses)}`"


_CLAUSE = re.compile(r"[.!?;:,](?:\s|$)|\n")


def _named(runs: Sequence[Run]) -> tuple[str, tuple[str, ...]]:
    """Return a name and triggers for several tasks, from the user's words that they share."""
    spread = Counter(term for run in runs for term in _subject(run.task))
    common = {term for term, count in spread.items() if count >= max(MIN_TIMES, MOST * len(runs))}
    used: Counter[str] = Counter()
    for run in runs:
        clauses = [_only(common, clause) for clause in _CLAUSE.split(run.task)]
        used[max(clauses, key=lambda clause: len(terms(clause)))] += 1
    ranked = sorted(used, key=lambda words: (-len(terms(words)), -used[words], len(words), words))
    fit = [one for one in ranked if len(one.split()) <= _NAME_WORDS and len(terms(one)) >= _NAME_TERMS]
    distinct = list({frozenset(terms(words)): words for words in reversed(fit)}.values())[::-1]
    return (distinct[0], tuple(distinct[1:MAX_TRIGGERS])) if distinct else ("", ())


def _only(common: set[str], clause: str) -> str:
    """Return a clause from its first to its last common word, without other content words."""
    words = clause.split()
    marks = [bool(set(terms(word)) & common) for word in words]
    if not any(marks):
        return ""
    first, end = marks.index(True), len(marks) - marks[::-1].index(True)
    kept = [words[place] for place in range(first, end) if marks[place] or not terms(words[place])]
    return " ".join(kept).strip(" \"'`()").lower()


class FixedFailure(msgspec.Struct, frozen=True):
    """A failure, and the next move of its kind, which worked.

    Attributes:
        of: Key that is equal for equal turns.
        between: The move in between, if it made the difference.
    """

    of: tuple[str, ...]
    failing: RunMove
    working: RunMove
    between: RunMove | None = None


def lessons(runs: Sequence[Run], taken: set[str]) -> Iterator[MemoryItem]:
    """Yield the lessons of some runs, most often measured first.

    The ids of the lessons are added to those ``taken``.
    """
    seen: defaultdict[tuple[str, ...], dict[int, FixedFailure]] = defaultdict(dict)
    for run in runs:
        for turn in turns_of(run):
            seen[turn.of].setdefault(run.seq, turn)
    found = [list(turns.values()) for turns in seen.values() if len(turns) >= MIN_TIMES]
    for turns in sorted(found, key=lambda turns: (-len(turns), turns[0].failing.seq)):
        text = fix_described(turns)
        name = free_id("knowledge", turns[1].working.seq, taken)
        taken.add(name)
        moves = [move for turn in turns[:EVIDENCE] for move in (turn.failing, turn.working)]
        yield MemoryItem(
            id=name,
            kind="knowledge",
            text=text,
            short=shorten(text),
            evidence=tuple(
                Evidence(move.seq, quote=" ".join(move.words)[:QUOTE_CHARACTERS]) for move in moves
            ),
            trust="engine",
            status="candidate",
            reason=f"measured in {len(turns)} past runs",
            detail=NoteDetail(sort="learning"),
        )


def turns_of(run: Run) -> Iterator[FixedFailure]:
    """Yield the failures of a run after which the next move of the same kind worked, with one difference."""
    for place, failing in enumerate(run.moves):
        if failing.worked or not failing.words:
            continue
        between: list[RunMove] = []
        for move in run.moves[place + 1 :]:
            if move.key == failing.key and move.seq != failing.seq and move.worked:
                if turn := _turn(failing, move, between):
                    yield turn
                break
            between.append(move)


def _turn(failing: RunMove, working: RunMove, between: Sequence[RunMove]) -> FixedFailure | None:
    """Return the difference, if there was exactly one: a move in between, or how the command was written."""
    if any(move.key == "edit" for move in between):
        return None  # the edit made it work
    helped = {move.key: move for move in between if move.worked and move.seq != failing.seq}
    if failing.words == working.words and len(helped) == 1:
        ((key, only),) = helped.items()
        return FixedFailure((failing.key, key), failing, working, only) if only.words else None
    if failing.words == working.words or helped or "…" in (*failing.words, *working.words):
        return None
    added = tuple(word for word in working.words if word not in failing.words)
    dropped = tuple(word for word in failing.words if word not in working.words)
    if failing.check and (dropped or _selects(failing) != _selects(working)):
        return None  # fewer checks pass more easily
    return FixedFailure((failing.key, "+", *added, "-", *dropped), failing, working)


def _selects(move: RunMove) -> tuple[tuple[str, ...], tuple[str, ...]]:
    selected = selection(" ".join(move.words))
    return selected.paths, selected.names


def fix_described(turns: Sequence[FixedFailure]) -> str:
    """Describe the first two turns in a sentence, so that it does not change when more are found."""
    first = turns[:MIN_TIMES]
    failing = common_form([turn.failing.words for turn in first])
    helped = [turn.between.words for turn in first if turn.between is not None]
    if helped:
        return f"`{failing}` failed, and worked once `{common_form(helped)}` had run."
    return f"`{failing}` failed, and `{common_form([turn.working.words for turn in first])}` worked instead."
