"""The steps that can be done now: those whose dependencies are proved, loops round by round.

Pure bookkeeping over a plan and its progress. The caller does the steps and reports their results.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec

from agentx.synthesis.pipelines.definition.plan import LoopStep, Plan, Step
from agentx.synthesis.pipelines.running.pipeline_progress import Progress

_NAMED = 3
"""Maximum number of steps that a reason names."""

Standing = Literal["waiting", "ready", "done", "failed"]


class Due(msgspec.Struct, frozen=True):
    """A step that can be done now.

    Attributes:
        round: Round of its loop, from 1.
        tries: Number of agents that have failed at it in this round.
        reason: Why the last of them failed.
        wish: Why it has to be done again although it was done before, in the words of the requester.
        remembered: The earlier proofs of it that added something to the long-term memory, and people's
            corrections of that memory.
        judged: Content ids of the files that it was given for its last verdict, by path.
    """

    step: Step
    round: int
    tries: int = 0
    reason: str = ""
    wish: str = ""
    remembered: tuple[int, ...] = ()
    judged: Mapping[str, str] = {}


class Schedule:
    """Determines which steps of a plan can be done now.

    Attributes:
        standing: State of each step and loop, by key.
        rounds: Round of each step, by key.
        failed: Reasons of failures, by key.
        only: Keys of the steps to do now; all of them by default.
        floor: For each step, the latest event that reopened it or a dependency; earlier proofs do not count.
        doubt: The same for events that reopened it only if its inputs have changed.
    """

    def __init__(self, plan: Plan, progress: Progress, only: Collection[str] | None = None) -> None:
        self.plan, self.progress, self._only = plan, progress, only
        self.standing: dict[str, Standing] = {}
        self.rounds: dict[str, int] = {}
        self.failed: dict[str, str] = {}
        self.floor = self._floors(progress.reopened)
        self.doubt = self._floors(progress.doubted)
        self._open: dict[str, int] = {}
        self._waiters: defaultdict[str, list[str]] = defaultdict(list)
        self._ready: deque[str] = deque()
        for key in self._units():
            self._enter(key)

    def again(self, plan: Plan, only: Collection[str] | None) -> "Schedule":
        """Return a schedule of another plan of the same pipeline, with the failures so far."""
        made = Schedule(plan, self.progress, only)
        for key, reason in self.failed.items():
            if made.standing.get(key, "done") != "done":
                made.fail(key, reason)
        return made

    def waits_for(self) -> str:
        """Return what the first step that is to be done now waits for, in words; empty for nothing."""
        for key in sorted(self._only or ()):
            step = self.plan.steps.get(key)
            if step is None:
                return f"the items of {key.partition('[')[0]} are not known yet"
            open_ = [need for need in (*step.needs, *step.inside) if self.standing.get(need) != "done"]
            if self.standing.get(key) == "waiting" and open_:
                return f"{key} waits for {', '.join(open_[:_NAMED])}{' …' * (len(open_) > _NAMED)}"
        return ""

    # --- progress -------------------------------------------------------------------------------------------

    def _floors(self, reopened: Mapping[str, int]) -> dict[str, int]:
        floor = dict[str, int]()
        if not reopened:
            return dict.fromkeys(self.plan.steps, 0)
        for key, step in self.plan.steps.items():
            own = max(reopened.get(key, 0), reopened.get(step.stage, 0))
            needs = (*step.inside, *step.needs)
            steps = (self.plan.loops[need].steps if need in self.plan.loops else (need,) for need in needs)
            floor[key] = max(own, *(floor.get(one, 0) for some in steps for one in some), 0)
        return floor

    def amended(self, key: str) -> list[str]:
        """Return the files of a step that the user amended after it was reopened.

        Amendments before the user's last decision on one of its calls do not count either.
        """
        progress = self.progress
        waits = progress.running.get(progress.waiting.get(key, ""))
        since = max(self.floor[key], waits.decided if waits else 0)
        return [one.path for one in self.plan.steps[key].writes if progress.amended.get(one.path, 0) > since]

    def is_proved(self, key: str, number: int = 0) -> bool:
        """Return whether a step is proved, in a given round if one is named."""
        proof = self.progress.proved.get(key)
        return (
            self.stands(key) and not self.in_doubt(key) and proof is not None and number in (0, proof.round)
        )

    def stands(self, key: str) -> bool:
        """Return whether a step is proved, also if that holds only as long as its inputs are the same."""
        proof = self.progress.proved.get(key)
        return proof is not None and proof.seq > self.floor[key]

    def in_doubt(self, key: str) -> bool:
        """Return whether the inputs of a proved step are to be compared with what it was given."""
        proof = self.progress.proved.get(key)
        return self.stands(key) and proof is not None and max(proof.seq, proof.kept) <= self.doubt[key]

    def _units(self) -> Iterator[str]:
        """Yield the loops, and the steps outside of loops, in topological order."""
        seen: set[str] = set()
        for key, step in self.plan.steps.items():
            unit = step.loop or key
            if unit not in seen:
                seen.add(unit)
                yield unit

    # --- starting -------------------------------------------------------------------------------------------

    def _enter(self, unit: str) -> None:
        loop = self.plan.loops.get(unit)
        if loop is None:
            self.rounds[unit] = 1
        if self._loop_stands(loop) == "done" if loop else self.is_proved(unit):
            self.standing[unit] = "done"
            for key in loop.steps if loop else ():
                self.standing[key] = "done"
                proof = self.progress.proved.get(key)
                self.rounds[key] = proof.round if proof else 1
            return
        named = self.plan.steps[loop.steps[0] if loop else unit].needs
        # If a unit waits for a step in a loop, it waits for the whole loop.
        inside = {need: self.plan.steps[need].loop for need in named if need in self.plan.steps}
        units = dict.fromkeys(inside.get(need) or need for need in named)
        needs = [need for need in units if self.standing.get(need) != "done"]
        self.standing[unit], self._open[unit] = "waiting", len(needs)
        for need in needs:
            self._waiters[need].append(unit)
        if not needs:
            self._begin(unit)

    def _begin(self, unit: str) -> None:
        """Start a step or loop whose dependencies are done."""
        loop = self.plan.loops.get(unit)
        if loop is None:
            self.offer(unit)
            return
        stands = self._loop_stands(loop)
        if stands == "failed":
            self.fail(unit, f"the verdict in {loop.verdict} was not PASS in {self._fails(loop)} rounds")
            return
        self.standing[unit] = "ready"
        number = self._round(loop)
        for key in loop.steps:
            self.rounds[key] = number
            if self.is_proved(key, number):
                self.standing[key] = "done"
                continue
            inside = self.plan.steps[key].inside
            self.standing[key] = "waiting"
            if all(self.standing[one] == "done" for one in inside):
                self.offer(key)

    def offer(self, key: str) -> None:
        """Offer a step, also again after a failed attempt, or fail it for good."""
        tries, reason = self.tries(key)
        if tries >= self.plan.role(self.plan.steps[key]).attempts:
            self.fail(key, reason)
            return
        self.standing[key] = "ready"
        self._ready.append(key)

    def tries(self, key: str) -> tuple[int, str]:
        """Return how many agents failed at a step in its round since the last retry, and the last reason."""
        since = max(self.floor[key], self.doubt[key], self.progress.retried)
        every = self.progress.failures.get(key, ())
        failures = [one for one in every if one.round == self.rounds[key] and one.seq > since]
        return len(failures), failures[-1].reason if failures else ""

    # --- loops ----------------------------------------------------------------------------------------------

    def _loop_stands(self, loop: LoopStep) -> Standing:
        proof = self.progress.proved.get(loop.decides)
        if proof is None or not self.is_proved(loop.decides):
            return "waiting"
        # a round with reopened steps is not finished, whatever its verdict was
        if not all(self.is_proved(key, proof.round) for key in loop.steps):
            return "waiting"
        if proof.verdict == "PASS":
            return "done"
        if self._fails(loop) < loop.at_most:
            return "waiting"
        return "done" if loop.otherwise == "go-on" else "failed"

    def _fails(self, loop: LoopStep) -> int:
        """Count the rounds without a PASS since the last retry.

        A loop that goes on without one needs no retry.
        """
        since = self.floor[loop.decides]
        if any(self.progress.proved[key].seq > self.doubt[key] for key in loop.steps if self.stands(key)):
            since = max(
                since, self.doubt[loop.decides]
            )  # some of it was done again, so it has all its rounds
        if loop.otherwise == "fail":
            since = max(since, self.progress.retried)
        verdicts = self.progress.verdicts.get(loop.decides, ())
        return sum(not one.passed and one.seq > since for one in verdicts)

    def _round(self, loop: LoopStep) -> int:
        """Return the current round of a loop."""
        proofs = [(key, self.progress.proved[key]) for key in loop.steps if key in self.progress.proved]
        valid = [proof.round for key, proof in proofs if self.stands(key)]
        if not valid:
            return max((proof.round for _, proof in proofs), default=0) + 1
        number = max(valid)
        over = all(self.is_proved(key, number) for key in loop.steps)
        return number + 1 if over else number

    # --- execution ------------------------------------------------------------------------------------------

    def ready(self) -> Iterator[Due]:
        """Yield the steps that can be done now, each once."""
        while self._ready:
            key = self._ready.popleft()
            if self.standing[key] != "ready" or (self._only is not None and key not in self._only):
                continue
            step, proof = self.plan.steps[key], self.progress.proved.get(key)
            seq, latest = max(
                (known.get(name, 0), name)
                for name in (key, step.stage)
                for known in (self.progress.reopened, self.progress.doubted)
            )
            wish = self.progress.wishes[latest] if proof and seq > proof.seq else ""
            earlier = tuple(sorted((*self.progress.remembered.get(key, ()), *self.progress.corrected)))
            judged = self.progress.judged.get(key, {})
            yield Due(step, self.rounds[key], *self.tries(key), wish, earlier, judged)

    def done(self, key: str) -> None:
        """Mark a step as done. The progress must contain its proof already."""
        self.standing[key] = "done"
        step = self.plan.steps[key]
        if not step.loop:
            self._release(key)
            return
        loop = self.plan.loops[step.loop]
        if not all(self.standing[one] == "done" for one in loop.steps):
            for one in loop.steps:
                inside = self.plan.steps[one].inside
                if self.standing[one] == "waiting" and all(self.standing[i] == "done" for i in inside):
                    self.offer(one)
        elif self._loop_stands(loop) == "done":
            self.standing[loop.key] = "done"
            self._release(loop.key)
        else:
            self._begin(loop.key)

    def _release(self, unit: str) -> None:
        for waiter in self._waiters.pop(unit, ()):
            self._open[waiter] -= 1
            if not self._open[waiter]:
                self._begin(waiter)

    def fail(self, key: str, reason: str) -> None:
        """Fail a step without further attempts."""
        self.standing[key] = "failed"
        self.failed[key] = reason
        if key in self.plan.steps and self.plan.steps[key].loop:
            self.standing[self.plan.steps[key].loop] = "failed"

    def not_passed(self) -> dict[str, str]:
        """Return the steps that are done although their last verdict is FAIL, with a sentence for the user.

        Of the steps of a loop only the one that decides it counts.
        """
        found: dict[str, str] = {}
        for key, step in self.plan.steps.items():
            proof, loop = self.progress.proved.get(key), self.plan.loops.get(step.loop)
            decides = loop is None or loop.decides == key
            stands = self.standing.get(step.loop or key)
            if proof and proof.verdict == "FAIL" and decides and stands == "done":
                path = next(write.path for write in step.writes if write.rule.verdict)
                rounds = f" after {proof.round} rounds" if proof.round > 1 else ""
                found[key] = f"the verdict in {path} is FAIL{rounds}"
        return found

    @property
    def is_done(self) -> bool:
        """Whether everything is proved."""
        return not self.plan.open and all(self.standing[unit] == "done" for unit in self._units())

    @property
    def is_done_so_far(self) -> bool:
        """Whether everything is proved that is to be done now."""
        return self._only is not None and all(self.standing.get(key) == "done" for key in self._only)
