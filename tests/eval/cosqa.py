"""The section ``cosqa``: questions that people asked a search engine, and the one function that answers each.

Every function is a file of its own, cut by the product's chunker; a long one has several passages, and a hit names the function
that it belongs to. The figure is the mean of one over the place of the right function, 0 where it is not found.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from agentx.storage.index.port import Chunk
from agentx.synthesis.chunking import chunk_file
from tests.eval.data import rows
from tests.eval.ranked import Collection, Question, ask, beside, filled, floors, least, mean, reciprocal_rank
from tests.figures import Figure

Told = Callable[[str], None]


def cosqa(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """MRR of the right function among all of them."""
    functions = cosqa_collection(data)
    if not functions.questions:
        return
    found = {"": ask(filled(functions, told), functions.questions, told)} | floors(functions, told)
    ranks = {
        way: [reciprocal_rank(ranking, question.gold) for ranking, question in zip(rankings, functions.questions, strict=True)]
        for way, rankings in found.items()
    }  # fmt: skip
    own = ranks.pop("")
    means = {way: mean(several) for way, several in ranks.items()}
    words = f"{beside(means)}; {len(own)} questions; halves {mean(own[::2]):.3f}, {mean(own[1::2]):.3f}"
    target = least(0.52, means.values())
    yield Figure(
        "cosqa.mrr", "CoSQA, MRR of functions", mean(own), target, target, more_is_better=True, beside=words
    )


def cosqa_collection(data: Path) -> Collection:
    """Functions, and questions in a few words."""
    units = {str(row["id"]): row["code"] or "" for row in rows(data / "cosqa" / "corpus.jsonl.gz")}
    questions = [
        Question(row["query"], frozenset([str(row["gold"])]))
        for row in rows(data / "cosqa" / "queries.jsonl.gz")
        if str(row["gold"]) in units
    ]
    return Collection(
        "cosqa", [chunk for unit in units.items() for chunk in _chunks(*unit)], units, questions
    )


def _chunks(name: str, code: str) -> Iterator[Chunk]:
    path = f"functions/{name}.py"
    for number, piece in enumerate(chunk_file(path, code)):
        yield Chunk(
            id=f"a:{name:>7}:{number}", text=piece.text, context=piece.context, kind="artifact", path=path,
            symbol=piece.symbol, start_line=piece.start_line, end_line=piece.end_line, content_id=name,
        )  # fmt: skip
