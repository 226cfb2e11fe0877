"""The steps of a pipeline that a run is asked to do."""

from collections.abc import Collection, Iterator

from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import key_of
from agentx.synthesis.pipelines.definition.faults import hint
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.steps import EVERY


class StepSelection:
    """Stages and loops that a run is asked for, in the words of ``--only`` and ``--until``."""

    def __init__(self, only: Collection[str] = (), until: Collection[str] = ()) -> None:
        self._only, self._until = only, until

    def steps(self, plan: Plan) -> set[str] | None:
        """Return the keys of the steps; ``None`` for all of them.

        A stage whose steps are not known yet has the key ``write[*]``.

        Raises:
            UsageError: A stage, loop or item is unknown.
        """
        if not (self._only or self._until):
            return None
        wanted = {key for word in self._only for key in _named(plan, word)}
        for word in self._until:
            wanted |= _with_needs(plan, _named(plan, word))
        return wanted


def _named(plan: Plan, word: str) -> set[str]:
    """Return the keys that a word names; ``write[*]`` for a stage whose steps are not known yet."""
    name, _, item = word.partition(":")
    if name in plan.open:
        return {key_of(name, EVERY)}
    steps = [one for one in plan.steps.values() if name in (one.stage, one.loop.partition("[")[0])]
    if not steps:
        known = [*plan.each, *plan.open]
        raise UsageError(f"There is no stage {name!r}{hint(name, known)}")
    found = {one.key for one in steps if not item or (one.of is not None and one.of.matches(item))}
    if not found:
        items = dict.fromkeys(one.item for one in steps if one.item)
        what = hint(item, items) if items else "; it runs once, without items"
        raise UsageError(f"Stage {name!r} has no item {item!r}{what}")
    # a round of a loop is done as a whole
    return found | {
        key for one in found if (loop := plan.loops.get(plan.steps[one].loop)) for key in loop.steps
    }


def _with_needs(plan: Plan, keys: Collection[str]) -> set[str]:
    """Return keys with those of all that they wait for."""
    found: set[str] = set()
    rest = list(keys)
    while rest:
        key = rest.pop()
        if key not in found:
            found.add(key)
            rest += _needed(plan, key)
    return found


def _needed(plan: Plan, key: str) -> Iterator[str]:
    step, open_ = plan.steps.get(key), plan.open.get(key.removesuffix(f"[{EVERY}]"))
    needs = (*step.needs, *step.inside) if step else open_.needs if open_ else ()
    for need in needs:
        loop = plan.loops.get(need)
        yield from loop.steps if loop else (need,)
