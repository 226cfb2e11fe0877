"""Lessons from past runs: what failed, then worked in another form or after another step, at least twice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.checks.command import selection
from agentx.synthesis.learning.past_runs import EVIDENCE, MIN_TIMES, QUOTE_CHARACTERS, Move, Run, common_form
from agentx.synthesis.memory.items import Evidence, MemoryItem, NoteDetail, free_id


class Turn(msgspec.Struct, frozen=True):
    """A failure, and the next move of its kind, which worked.

    Attributes:
        of: Key that is equal for equal turns.
        between: The move in between, if it made the difference.
    """

    of: tuple[str, ...]
    failing: Move
    working: Move
    between: Move | None = None


def lessons(runs: Sequence[Run], taken: set[str]) -> Iterator[MemoryItem]:
    """Yield the lessons of some runs, most often measured first.

    Args:
        runs: Past runs.
        taken: Ids in use; the ids of the lessons are added.
    """
    seen: defaultdict[tuple[str, ...], dict[int, Turn]] = defaultdict(dict)
    for run in runs:
        for turn in turns_of(run):
            seen[turn.of].setdefault(run.seq, turn)
    found = [list(turns.values()) for turns in seen.values() if len(turns) >= MIN_TIMES]
    for turns in sorted(found, key=lambda turns: (-len(turns), turns[0].failing.seq)):
        text = told(turns)
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
            status="proposed",
            reason=f"measured in {len(turns)} past runs",
            detail=NoteDetail(sort="learning"),
        )


def turns_of(run: Run) -> Iterator[Turn]:
    """Yield the failures of a run after which the next move of the same kind worked, with one difference."""
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
    """Return the difference, if there was exactly one: a move in between, or how the command was written."""
    if any(move.key == "edit" for move in between):
        return None  # the edit made it work
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
    """Describe the first two turns in a sentence, so that it does not change when more are found."""
    first = turns[:MIN_TIMES]
    failing = common_form([turn.failing.words for turn in first])
    helped = [turn.between.words for turn in first if turn.between is not None]
    if helped:
        return f"`{failing}` failed, and worked once `{common_form(helped)}` had run."
    return f"`{failing}` failed, and `{common_form([turn.working.words for turn in first])}` worked instead."
