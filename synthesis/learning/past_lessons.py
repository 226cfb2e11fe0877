"""Lessons of past runs: what failed and then worked, in another form or after something else had run, at least twice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from agentx.synthesis.checks.command import selection
from agentx.synthesis.learning.past_runs import EVIDENCE, MIN_TIMES, QUOTE_CHARACTERS, Move, Run, common_form
from agentx.synthesis.memory.items import Evidence, MemoryItem, free_id, shorten


class Turn(msgspec.Struct, frozen=True):
    """Where something failed and the next of its kind worked.

    Attributes:
        of: What is the same wherever the same turn was taken.
        between: What ran in between, where that made the difference.
    """

    of: tuple[str, ...]
    failing: Move
    working: Move
    between: Move | None = None


def lessons(runs: Sequence[Run], taken: set[str]) -> Iterator[MemoryItem]:
    """The lessons of some runs, the most often measured first.

    Args:
        runs: Past runs.
        taken: Ids that are in use; those of the lessons come with them.
    """
    seen: defaultdict[tuple[str, ...], dict[int, Turn]] = defaultdict(dict)
    for run in runs:
        for turn in turns_of(run):
            seen[turn.of].setdefault(run.seq, turn)
    found = [list(turns.values()) for turns in seen.values() if len(turns) >= MIN_TIMES]
    for turns in sorted(found, key=lambda turns: (-len(turns), turns[0].failing.seq)):
        text = told(turns)
        name = free_id("learning", turns[1].working.seq, taken)
        taken.add(name)
        moves = [move for turn in turns[:EVIDENCE] for move in (turn.failing, turn.working)]
        yield MemoryItem(
            id=name,
            kind="learning",
            text=text,
            short=shorten(text),
            evidence=tuple(
                Evidence(move.seq, quote=" ".join(move.words)[:QUOTE_CHARACTERS]) for move in moves
            ),
            trust="engine",
            status="proposed",
            reason=f"measured in {len(turns)} past runs",
        )


def turns_of(run: Run) -> Iterator[Turn]:
    """Where something failed in a run, and the next of its kind worked for one difference."""
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


def _turn(failing: Move, working: Move, between: Sequence[Move]) -> Turn | None:
    """What made the difference, where it was one thing: what ran in between, or how the command was written."""
    if any(move.key == "edit" for move in between):
        return None  # what was changed made it work
    helped = {move.key: move for move in between if move.worked and move.seq != failing.seq}
    if failing.words == working.words and len(helped) == 1:
        ((key, only),) = helped.items()
        return Turn((failing.key, key), failing, working, only) if only.words else None
    if failing.words == working.words or helped or "…" in (*failing.words, *working.words):
        return None
    added = tuple(word for word in working.words if word not in failing.words)
    dropped = tuple(word for word in failing.words if word not in working.words)
    if failing.check and (dropped or _selects(failing) != _selects(working)):
        return None  # fewer checks pass more easily
    return Turn((failing.key, "+", *added, "-", *dropped), failing, working)


def _selects(move: Move) -> tuple[tuple[str, ...], tuple[str, ...]]:
    selected = selection(" ".join(move.words))
    return selected.paths, selected.names


def told(turns: Sequence[Turn]) -> str:
    """A sentence of the first two turns, so that it stays the same when more are seen."""
    first = turns[:MIN_TIMES]
    failing = common_form([turn.failing.words for turn in first])
    helped = [turn.between.words for turn in first if turn.between is not None]
    if helped:
        return f"`{failing}` failed, and worked once `{common_form(helped)}` had run."
    return f"`{failing}` failed, and `{common_form([turn.working.words for turn in first])}` worked instead."
