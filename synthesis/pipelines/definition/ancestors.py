"""The steps that are done before each step, as bit masks, which are quick to intersect."""

from collections.abc import Iterator

from agentx.synthesis.pipelines.definition.plan import Plan


def ancestors(plan: Plan) -> dict[str, int]:
    """Return for each step a bit mask of the steps that are done before it; bits in the order of the plan."""
    number = {key: n for n, key in enumerate(plan.steps)}
    before: dict[str, int] = {}
    bits: dict[str, int] = {}

    def of(need: str) -> int:
        if need not in bits:
            steps = plan.loops[need].steps if need in plan.loops else (need,)
            bits[need] = 0
            for one in steps:
                if one in before:  # otherwise its items are not known yet
                    bits[need] |= before[one] | (1 << number[one])
        return bits[need]

    for key, step in plan.steps.items():
        made = 0
        for need in (*step.inside, *step.needs):
            made |= of(need)
        before[key] = made
    return before


def numbers_in(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, in order.

    >>> list(numbers_in(0b1010))
    [1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
