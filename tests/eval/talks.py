"""The section ``talks``: long conversations with an agent that has no model, at the times that their lines name.

``DATA/talks/*.jsonl`` has one message a line: a statement ``{"say", "at"}``, a question ``{"say", "at", "holds": […],
"without": […]}`` (``a|b`` in an entry are alternatives; all entries must occur, and none of ``without``), or
a question on what was never told, ``{"say", "at", "untold": true}``. Every conversation is played twice: with MiniLM, where it is
installed, and without embeddings.

For development, ``python -m tests.eval.talks FILE …`` prints each answer that is not right (``--all``: each answer).
"""

import argparse
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

import msgspec

from agentx import Workspace
from agentx.cognition.agent import CognitiveAgent
from agentx.cognition.recall import DECLINED, UNSURE
from agentx.settings import Settings, read_settings
from agentx.storage.clock import stamp
from tests.figures import Figure

Told = Callable[[str], None]

RIGHT, AIMED = 32 / 40, 36 / 40
"""Shares of the questions on what was told, required and aimed at."""

ANSWERED_UNTOLD = 1 / 10

_KINDS = (
    ("how much", r"how (?:much|many|long|old|far|often|big|high|tall)\b"),
    *(
        (word, rf"{word}(?:m|se|['’]s)?\b")
        for word in ("who", "when", "where", "why", "how", "which", "what")
    ),
    ("yes or no", r"(?:is|are|was|were|do|does|did|am|has|have|had|can|could|will|would|should|may)\b"),
)


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a conversation."""

    say: str
    at: str
    holds: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    untold: bool = False

    @property
    def kind(self) -> str:
        """What is asked for, by the first word that asks."""
        found = [
            (match.start(), -len(match[0]), kind)
            for kind, form in _KINDS
            if (match := re.search(rf"\b{form}", self.say.lower()))
        ]
        return min(found)[2] if found else "other"  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """A question and its answer."""

    line: Line
    answer: str

    @property
    def declined(self) -> bool:
        return self.answer.startswith(DECLINED)

    @property
    def reserved(self) -> bool:
        """Whether it only tells what is nearest."""
        return self.answer.startswith(UNSURE)

    @property
    def held(self) -> bool:
        return not self.declined and all(occurs(one, self.answer) for one in self.line.holds)

    @property
    def outdated(self) -> bool:
        return any(occurs(one, self.answer) for one in self.line.without)

    @property
    def right(self) -> bool:
        return self.declined if self.line.untold else self.held and not self.outdated


def talks(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Answers that are right, those with something outdated, and those to what was never told."""
    files = sorted((data / "talks").glob("*.jsonl"))
    if not files:
        return
    for key, words, cache in (
        ("minilm", "MiniLM", read_settings().cache_dir),
        ("none", "no embeddings", scratch / "no-models"),
    ):
        found = []
        for file in files:
            told(f"{file.stem}, {words}")
            found.append(play(file, scratch / f"talk-{key}-{file.stem}", cache))
        yield from _figures(key, words, found)


def read_lines(file: Path) -> list[Line]:
    """The lines of a conversation."""
    return [
        msgspec.json.decode(line, type=Line)
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def play(file: Path, root: Path, cache: Path) -> list[Answered]:
    """Say every line to an agent without a model, each at its own time, and return the answers to the questions."""
    settings = Settings(environ=dict(os.environ), cache_dir=cache, state_dir=root.parent / "state")
    with Workspace.create(root, settings=settings) as ws:
        agent, found = CognitiveAgent(ws), []
        for line in read_lines(file):
            with at(line.at):
                answer = agent.answer(line.say).text
            if line.holds or line.untold:
                found.append(Answered(line, answer))
    return found


@contextmanager
def at(moment: str) -> Iterator[None]:
    """Record whatever is recorded in a ``with`` body at a time in the past."""
    fixed = stamp(datetime.fromisoformat(moment))
    with patch("agentx.storage.events.codec.stamp", lambda _at=None: fixed):
        yield


def occurs(alternatives: str, answer: str) -> bool:
    """Whether one of the alternatives begins a word or a number of an answer, with at most three letters after it.

    >>> occurs("inherit|aunt", "You inherited it."), occurs("450", "It is 1,450."), occurs("10", "on the 10th")
    (True, False, True)
    """
    return any(
        re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(one.strip())}(?!\w{{4}}|\d)", answer, re.IGNORECASE)
        for one in alternatives.split("|")
    )  # fmt: skip


# --- figures -----------------------------------------------------------------------------------------------------


def _figures(key: str, words: str, found: Sequence[Sequence[Answered]]) -> Iterator[Figure]:
    every = [one for part in found for one in part]
    asked = [one for one in every if not one.line.untold]
    untold = [one for one in every if one.line.untold]
    each = ", ".join(f"{sum(one.right for one in part if not one.line.untold)}" for part in found)
    reserved = sum(one.right and one.reserved for one in asked)
    beside = f"by conversation {each}; {reserved} of them with reserve; {_by_kind(asked)}"
    right = _share(one.right for one in asked)
    yield Figure(f"talks.{key}.right", f"{words}: right and nothing outdated beside it", right, RIGHT, AIMED, True, beside)  # fmt: skip
    yield Figure(f"talks.{key}.held", f"{words}: holds the answer", _share(one.held for one in asked), more_is_better=True)  # fmt: skip
    yield Figure(f"talks.{key}.outdated", f"{words}: something outdated in the answer", _share(one.outdated for one in asked))  # fmt: skip
    yield Figure(f"talks.{key}.declined", f"{words}: declined although it was told", _share(one.declined for one in asked))  # fmt: skip
    plainly = [not (one.declined or one.reserved) for one in untold]
    beside = f"{sum(plainly)} of {len(untold)}; with reserve {sum(one.reserved for one in untold)}"
    answered = _share(plainly)
    yield Figure(f"talks.{key}.untold", f"{words}: never told, and answered without reserve", answered, ANSWERED_UNTOLD, 0, beside=beside)  # fmt: skip


def _share(hits: Iterable[bool]) -> float:
    known = list(hits)
    return sum(known) / max(1, len(known))


def _by_kind(asked: Iterable[Answered]) -> str:
    kinds: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for one in asked:
        kinds[one.line.kind][one.right] += 1
    return ", ".join(f"{kind} {of[True]} of {of.total()}" for kind, of in sorted(kinds.items()))


def _tell(one: Answered) -> None:
    mark = "✓" if one.right else "OUTDATED" if one.held else "DECLINED" if one.declined else "✗"
    wanted = "untold" if one.line.untold else f"{one.line.holds} without {one.line.without}"
    print(f"{mark} [{one.line.kind}] {one.line.say}\n      {wanted}\n      {one.answer}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.eval.talks")
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true", help="print the right answers, too")
    parser.add_argument("--none", action="store_true", help="without embeddings")
    wanted = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "no-models" if wanted.none else read_settings().cache_dir
        for file in wanted.file:
            print(f"--- {file.name}")
            found.append(play(file, Path(folder) / file.stem, cache))
            for one in found[-1]:
                if wanted.all or not one.right:
                    _tell(one)
    for figure in _figures("dev", "no embeddings" if wanted.none else "MiniLM", found):
        print(f"{figure.measure}: {figure.value:.3f} {figure.beside}")


if __name__ == "__main__":
    main()
