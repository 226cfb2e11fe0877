"""Of many followed demands only those that share a mark with an own one are compared with it."""

import pytest

from agentx.synthesis.demands.lifecycle import contrary_demands, marks
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem

PAIRS = [
    (("Use spaces.", "must"), ("Use tabs.", "prefer")),
    (("I prefer spaces for indentation.", "prefer"), ("I prefer tabs for indentation.", "prefer")),
    (("Write US English everywhere.", "must"), ("Use British spelling in the docs.", "must")),
    (("Answers have at most 100 words.", "must"), ("Answers have at most 50 words.", "must")),
    (("Never write commit messages in English.", "must_not"), ("Always write commit messages in English.", "must")),
    (("Use emojis in commit messages.", "must"), ("Never use emojis in commit messages.", "must_not")),
    (("Use pnpm instead of npm.", "must"), ("Use npm.", "must")),
    (("Use Postgres for the orders.", "must"), ("Use SQLite for the orders.", "must")),
]  # fmt: skip


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_contrary_demands_share_a_mark(own, other):
    item = MemoryItem(id="c-1", kind="constraint", text=other[0], detail=ConstraintDetail(modality=other[1]))
    assert contrary_demands(*own, [item]) == (item,)
    assert marks(*own) & marks(*other)
