"""A passage is left out uncounted only where it cannot fit: the bound never exceeds what it takes."""

import random

import pytest

from agentx.context.rendering import least_tokens, passage, remembered
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.recall.retrieval import SearchHit

_PIECES = [
    "word",
    "x²3",
    "12345",
    "a_b",
    "--1",
    "'s",
    "(",
    ")",
    "é1",
    "寿司",
    "`",
    "```",
    "/d07",
    "#",
    "1²1",
    ":",
    "it's",
    "\n",
]


def _made(chosen, most):
    if chosen.random() < 0.5:
        return " ".join(["word"] * chosen.randint(1, most))
    return "".join(chosen.choices([*_PIECES, " ", " "], k=chosen.randint(1, most)))


@pytest.mark.parametrize("most", [20, 350])
def test_no_passage_takes_fewer_tokens_than_said(most):
    chosen = random.Random(most)
    for number in range(300):
        text = _made(chosen, 80)
        hit = SearchHit(
            id=f"a:{number}",
            text=text,
            score=1.0,
            kind=chosen.choice(["artifact", "message", "source"]),
            path=chosen.choice(["", _made(chosen, 6), "a", f"d{number:02}/2/f{number}.txt"]),
            start_line=chosen.choice([0, 7]),
            end_line=9,
            symbol=chosen.choice(["", "Client.fetch", "1²1"]),
            at=chosen.choice(["", "2026-11-24T00:00:00Z"]),
            actor="user:ann",
            seq=number,
        )
        took = passage(hit, most).tokens
        assert least_tokens(hit, None, most, free=took) <= took, hit


@pytest.mark.parametrize("most", [20, 350])
def test_no_memory_takes_fewer_tokens_than_said(most):
    chosen = random.Random(most)
    for number in range(300):
        item = MemoryItem(
            id=chosen.choice([f"k-{number}", f"{number}", "x"]),
            kind=chosen.choice(["knowledge", "hot_issue"]),
            text=_made(chosen, 80),
            created_at=chosen.choice(["", "2026-11-24T00:00:00Z"]),
        )
        hit = SearchHit(id=f"i:{number}", text=item.text, score=1.0, kind="memory", symbol=item.id)
        took = remembered(hit, item, most).tokens
        assert least_tokens(hit, item, most, free=took) <= took, item
