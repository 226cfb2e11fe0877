"""The section ``source_files``: questions about a tree of files, each answered by one or a few of its files.

``source_files/NAME.jsonl`` holds the questions of the tree in ``source_files/NAME/``, one a line: ``{"question": "where are
redirects followed?", "files": ["src/redirect.py"]}``. Each tree is imported into a workspace, which is searched as a user
searches it, once by passage and once by file. Measured is whether the first file found is a right one, and MRR. The floor is
BM25 over whole files.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from agentx import Workspace
from tests.eval.ranked import bm25_orders, mean, reciprocal_rank
from tests.figures import Figure

Told = Callable[[str], None]

FIRST = 0.6
HITS = 20
EMBED_S = 1_800.0
FLOOR = "BM25"


class Question(msgspec.Struct, frozen=True):
    """A question and the files that answer it; any of them counts."""

    question: str
    files: tuple[str, ...]


Rankings = dict[str, list[list[str]]]
"""For each way of asking, the paths found for each question, best first."""


def source_files(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Score every tree that has questions, and all of them together."""
    asked: dict[str, list[Question]] = {}
    found: dict[str, Rankings] = {}
    for listed in sorted((data / "source_files").glob("*.jsonl")):
        lines = filter(str.strip, listed.read_text(encoding="utf-8").splitlines())
        questions = [msgspec.convert(json.loads(line), Question) for line in lines]
        tree = listed.with_suffix("")
        if questions and tree.is_dir():
            asked[tree.name] = questions
            found[tree.name] = _ask(tree, scratch / f"source-files-{tree.name}", questions, told)
    if not asked:
        return
    for way, key, said in (("passages", "", ""), ("files", "files_", ", files=True")):
        firsts = {name: _scores(asked[name], found[name][way], _is_first) for name in asked}
        ranks = {name: _scores(asked[name], found[name][way], reciprocal_rank) for name in asked}
        floor = mean(one for name in asked for one in _scores(asked[name], found[name][FLOOR], _is_first))
        beside = "; ".join(f"{name} {sum(some):.0f} of {len(some)}" for name, some in firsts.items())
        yield Figure(
            f"source_files.{key}first",
            f"the right file first{said}",
            mean(one for some in firsts.values() for one in some),
            FIRST,
            FIRST,
            more_is_better=True,
            beside=f"{FLOOR} over whole files {floor:.3f}; {beside}",
        )
        yield Figure(
            f"source_files.{key}mrr",
            f"MRR of the right file{said}",
            mean(one for some in ranks.values() for one in some),
            more_is_better=True,
            beside="; ".join(f"{name} {mean(some):.3f}" for name, some in ranks.items()),
        )


def _ask(tree: Path, root: Path, questions: Sequence[Question], told: Told) -> Rankings:
    """Import a tree and ask every question of it, in each way."""

    def progress(step: str, done: int, of: int) -> None:
        told(f"{tree.name}: {step} {done} of {of}")

    with Workspace.create(root) as ws:
        ws.import_project(tree)
        ws.settle(EMBED_S, progress)
        ways = {
            way: [[hit.path for hit in ws.search(q.question, HITS, files=way == "files")] for q in questions]
            for way in ("passages", "files")
        }
    paths = [path for path in sorted(tree.rglob("*")) if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in paths]
    names = [path.relative_to(tree).as_posix() for path in paths]
    orders = bm25_orders(texts, [question.question for question in questions])
    return ways | {FLOOR: [[names[place] for place in order[:HITS]] for order in orders]}


def _scores(
    questions: Sequence[Question],
    rankings: Sequence[list[str]],
    measure: Callable[[list[str], frozenset[str]], float],
) -> list[float]:
    """Score each ranking; a file counts once, at its best place."""
    return [
        measure(list(dict.fromkeys(filter(None, ranking))), frozenset(question.files))
        for question, ranking in zip(questions, rankings, strict=True)
    ]


def _is_first(ranking: list[str], right: frozenset[str]) -> float:
    return float(bool(ranking) and ranking[0] in right)
