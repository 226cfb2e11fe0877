"""Candidates on the messages of sources that the weights were not fitted on.

Each source of labelled messages is left out in turn. The weights of :mod:`agentx.synthesis.demands.tables.doubt` are
fitted on the others, the threshold is set there for :data:`BUDGET` candidates in 100 messages, and the source left out is
scored: how many of its clear demands and rejections are among the candidates, and how many candidates there are. Sources
are the transcripts, and the values of ``source`` in the files of ``conversations/``. A row with ``"picked": true`` was
chosen for its labels: it serves to fit, but is not scored, for the share of labels would not be the natural one.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentx.synthesis.attribution.material import own_words
from agentx.synthesis.demands.doubt import signs
from agentx.synthesis.demands.tables import doubt as table
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.sentences import sentences
from tests.eval.data import Row, rows
from tests.eval.labels import PLAIN
from tests.figures import Figure

LABELS = ("demand", "rejection")
BUDGET = 22
"""Candidates in 100 messages for which the threshold is set on the other sources."""

LEAST_CLEAR = 8
"""A source with fewer clear labels is scored together with the other small ones."""

MOST = 2
"""Candidates of one message at most, as in the product."""

_WEIGHT = {"clear": 4.0, "weak": 2.0, "": 1.0}
_PENALTY = 3.0
_STEPS = 12


@dataclass(frozen=True)
class Sentence:
    """A sentence: which signs it has, and how each label applies to it (``clear``, ``weak`` or empty)."""

    signs: tuple[bool, ...]
    words: str
    labels: dict[str, str]


@dataclass(frozen=True)
class Message:
    """A labelled message."""

    row: Row
    sentences: tuple[Sentence, ...]

    def clear(self) -> list[str]:
        weak = self.row.get("weak_labels", ())
        return [label for label in LABELS if label in self.row.get("labels", ()) and label not in weak]


Weights = dict[str, NDArray[np.float64]]
"""By label: the weight of each sign and place, and last that of a sentence without any."""


def left_out(data: Path, scratch: Path, told: Callable[[str], None]) -> Iterator[Figure]:
    """The section ``left_out`` of ``make eval``."""
    del scratch
    sources = _sources(data)
    if len(sources) < MOST:
        return
    hits = total = made = messages = plain_hits = plain_made = 0
    parts: list[Figure] = []
    for name, all_of_it in sources.items():
        told(name)
        held_out = [message for message in all_of_it if not message.row.get("picked")]
        others = [message for other, several in sources.items() if other != name for message in several]
        weights = fit(others)
        least = threshold([message for message in others if not message.row.get("picked")], weights)
        chosen = [_chosen(message, weights, least) for message in held_out]
        right, clear = _found(held_out, chosen)
        number = sum(map(len, chosen))
        plain = [
            [
                place
                for place, one in enumerate(message.sentences)
                if any(p.search(one.words) for p in PLAIN.values())
            ]
            for message in held_out
        ]
        plain_right, _ = _found(held_out, plain)
        parts += _part(name, right, clear, number, len(held_out), plain_right, sum(map(len, plain)))
        hits, total, made, messages = hits + right, total + clear, made + number, messages + len(held_out)
        plain_hits, plain_made = plain_hits + plain_right, plain_made + sum(map(len, plain))
    yield Figure(
        "left_out.recall", "clear demands and rejections among the candidates, all sources", hits / total, 0.77, 0.9,
        more_is_better=True,
        beside=f"{hits} of {total}; a plain pattern {plain_hits / total:.2f}",
    )  # fmt: skip
    yield Figure(
        "left_out.candidates_per_100", "candidates in 100 messages, all sources", 100 * made / messages, 25, 15,
        beside=f"{messages:,} messages; a plain pattern {100 * plain_made / messages:.0f}",
    )  # fmt: skip
    yield from parts


def _part(
    name: str, right: int, clear: int, number: int, messages: int, plain_right: int, plain: int
) -> Iterator[Figure]:
    share = right / clear if clear else 1.0
    beside = f"{right} of {clear}; a plain pattern {plain_right} of {clear}"
    yield Figure(f"left_out.{name}.recall", f"{name}: found", share, more_is_better=True, beside=beside)
    per_100 = f"{messages} messages; a plain pattern {100 * plain / messages:.0f}"
    yield Figure(
        f"left_out.{name}.candidates_per_100",
        f"{name}: candidates in 100",
        100 * number / messages,
        beside=per_100,
    )


def _sources(data: Path) -> dict[str, list[Message]]:
    """The messages by source; small sources together."""
    by_source = {"transcripts": [_read(row) for row in rows(data / "coding_transcripts" / "labels.jsonl.gz")]}
    for path in sorted((data / "conversations").glob("*.jsonl*")):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as lines:  # type: ignore[operator]
            for line in lines:
                row = json.loads(line)
                by_source.setdefault(str(row.get("source") or path.stem), []).append(_read(row))
    by_source = {name: several for name, several in by_source.items() if several}
    large: dict[str, list[Message]] = {}
    number = 0
    for name, several in by_source.items():
        if sum(len(message.clear()) for message in several if not message.row.get("picked")) >= LEAST_CLEAR:
            number += name != "transcripts"
            large["transcripts" if name == "transcripts" else f"project {number}"] = several
        else:
            large.setdefault("small projects", []).extend(several)
    return large


def _read(row: Row) -> Message:
    text = spelt_out(row["text"]).text
    plain = own_words(text)
    spans = list(sentences(plain))
    number = sum(len(plain[span.start : span.end].split()) for span in spans)
    made = []
    for place, span in enumerate(spans):
        words = plain[span.start : span.end]
        labels = {}
        for label in LABELS:
            if label in row.get("labels", ()):
                quote = (row.get("spans") or {}).get(label, "")
                at = row["text"].find(quote) if quote else -1
                if at < 0 or (span.start < at + len(quote) and at < span.end):
                    labels[label] = "weak" if label in row.get("weak_labels", ()) else "clear"
        has = signs(words, first=place == 0, alone=len(spans) == 1, words_of_message=number)
        made.append(Sentence(has, words, labels))
    return Message(row, tuple(made))


def fit(messages: Sequence[Message]) -> Weights:
    """Weights by logistic regression with an L2 penalty, by Newton's method from zero: the same each time."""
    every = [one for message in messages for one in message.sentences]
    has = np.array([(*one.signs, True) for one in every], dtype=np.float64)
    made: Weights = {}
    for label in LABELS:
        kinds = [one.labels.get(label, "") for one in every]
        wanted = np.array([bool(kind) for kind in kinds], dtype=np.float64)
        counts = np.array([_WEIGHT[kind] for kind in kinds])
        weights = np.zeros(has.shape[1])
        penalty = np.append(np.full(has.shape[1] - 1, _PENALTY), 1e-6)
        for _ in range(_STEPS):
            likely = 1 / (1 + np.exp(-(has @ weights)))
            slope = has.T @ (counts * (likely - wanted)) + penalty * weights
            curve = (has.T * (counts * likely * (1 - likely))) @ has + np.diag(penalty)
            weights -= np.linalg.solve(curve, slope)
        made[label] = weights
    return made


def _weighed(message: Message, weights: Weights) -> list[float]:
    has = np.array([(*one.signs, True) for one in message.sentences], dtype=np.float64)
    if not len(has):
        return []
    return [float(value) for value in np.max([has @ weights[label] for label in LABELS], axis=0)]


def threshold(messages: Sequence[Message], weights: Weights) -> float:
    """The weight above which there are :data:`BUDGET` candidates in 100 messages."""
    highest = sorted(
        (value for message in messages for value in sorted(_weighed(message, weights))[-MOST:]), reverse=True
    )
    return highest[min(len(highest) - 1, BUDGET * len(messages) // 100)]


def _chosen(message: Message, weights: Weights, least: float) -> list[int]:
    """The places of the sentences that are candidates, the heaviest first."""
    weighed = sorted(((value, place) for place, value in enumerate(_weighed(message, weights))), reverse=True)
    return [
        place
        for number, (value, place) in enumerate(weighed[:MOST])
        if value > least + (table.SECOND if number else 0)
    ]


def _found(messages: Sequence[Message], chosen: Sequence[Sequence[int]]) -> tuple[int, int]:
    """How many clear labels are among the chosen sentences, and how many there are."""
    found = total = 0
    for message, places in zip(messages, chosen, strict=True):
        for label in message.clear():
            total += 1
            found += any(message.sentences[place].labels.get(label) for place in places)
    return found, total
