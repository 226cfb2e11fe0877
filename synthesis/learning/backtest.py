"""Propose flows and lessons from past runs.

Steps that worked repeatedly become a flow; what failed and then worked becomes a lesson. A step is a tool's
name, or a program with the arguments that its uses share. Names and triggers are the user's own words.
Everything is only proposed; memory changes only on approval.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.learning.past_lessons import lessons
from agentx.synthesis.learning.past_runs import EVIDENCE, MIN_TIMES, MOST, QUOTE_CHARACTERS, Run, common_form
from agentx.synthesis.memory.items import Evidence, FlowDetail, MemoryItem, free_id, sort_of
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

    Args:
        runs: Past runs.
        state: The current state.
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
        elif _share_a_word(fresh[twin], flow):  # different words for the same task
            fresh[twin] = _also_called(fresh[twin], flow)
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


def _share_a_word(one: MemoryItem, other: MemoryItem) -> bool:
    return bool(set(terms(one.text)) & set(terms(other.text)))


def _also_called(flow: MemoryItem, other: MemoryItem) -> MemoryItem:
    detail = _detail(flow)
    triggers = dict.fromkeys((*detail.triggers, *phrases(other)))
    triggers.pop(flow.text, None)
    detail = msgspec.structs.replace(detail, triggers=tuple(triggers)[:MAX_TRIGGERS])
    return msgspec.structs.replace(flow, detail=detail)


def _same(made: MemoryItem, known: MemoryItem) -> bool:
    """Return whether a flow is already known: it shares a run or a name, or most of its steps."""
    seen = {one.seq for one in known.evidence}
    names = {terms(phrase) for phrase in phrases(known)}
    if any(one.seq in seen for one in made.evidence) or any(
        terms(phrase) in names for phrase in phrases(made)
    ):
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
    common_paths = _common_paths(passed)
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
        status="proposed",
        reason=f"it worked in {len(followed)} past runs, and failed in {len(failed)}",
        detail=detail,
    )


def _common_paths(runs: Sequence[Run]) -> frozenset[str]:
    """Return the files that most of these runs changed; changing each of them is a separate step."""
    spread = Counter(path for run in runs for path in {path for move in run.moves for path in move.paths})
    return frozenset(path for path, count in spread.items() if count >= max(MIN_TIMES, MOST * len(runs)))


def _sequence(run: Run, common_paths: frozenset[str], *, only_worked: bool) -> tuple[str, ...]:
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
    told: Counter[str] = Counter()
    for run in runs:
        clauses = [_only(common, clause) for clause in _CLAUSE.split(run.task)]
        told[max(clauses, key=lambda clause: len(terms(clause)))] += 1
    del told[""]
    ranked = sorted(told, key=lambda words: (-len(terms(words)), -told[words], len(words), words))
    named = [
        words for words in ranked if len(words.split()) <= _NAME_WORDS and len(terms(words)) >= _NAME_TERMS
    ]
    distinct = list({frozenset(terms(words)): words for words in reversed(named)}.values())[::-1]
    return (distinct[0], tuple(distinct[1:MAX_TRIGGERS])) if distinct else ("", ())


def _only(common: set[str], clause: str) -> str:
    """Return a clause from its first to its last common word, without other content words."""
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
