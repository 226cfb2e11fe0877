"""The steps of a run that wait for an agent, in what order they begin, and which are not tried any more."""

from collections import Counter, deque

from agentx.pipelines.matrix import all_stages
from agentx.pipelines.results import Came
from agentx.pipelines.selection import StepSelection
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.running.breaker import Breaker
from agentx.synthesis.pipelines.running.due_steps import Due, Schedule
from agentx.synthesis.pipelines.running.pipeline_progress import Progress


class WorkQueue:
    """The steps that can begin; the caller holds the lock of ``progress``.

    At most ``jobs`` begin at once, and of a stage at most its own ``jobs``.

    Attributes:
        schedule: The standing of all steps.
    """

    def __init__(self, plan: Plan, progress: Progress, wanted: StepSelection, jobs: int) -> None:
        self.schedule = Schedule(plan, progress, wanted.steps(plan))
        self._wanted, self._jobs = wanted, jobs
        self._most = {stage.id: stage.jobs for stage in all_stages(plan.pipeline)}
        self._waiting: deque[Due] = deque()
        self._busy: dict[str, str] = {}  # the stage of each step at work
        self._breaker = Breaker()
        for key, reason in self.schedule.failed.items():
            if key in plan.steps:
                self._breaker.failed(plan.steps[key].stage, key, reason)

    @property
    def is_idle(self) -> bool:
        """Whether no step is at work."""
        return not self._busy

    def next(self) -> Due | None:
        """Return a step that begins now; ``None`` if none may."""
        if len(self._busy) >= self._jobs:
            return None
        for due in self.schedule.ready():
            if due.step.key in self._busy:  # a new schedule offers what is at work again
                continue
            if due.tries:  # an item that fails for good tells early that its stage cannot be done
                self._waiting.appendleft(due)
            else:
                self._waiting.append(due)
        at_work = Counter(self._busy.values())
        for due in list(self._waiting):
            stage = due.step.stage
            if why := self._breaker.stops(stage, self.schedule.failed):
                self._waiting.remove(due)
                self.schedule.fail(due.step.key, why)
            elif not self._most[stage] or at_work[stage] < self._most[stage]:
                self._waiting.remove(due)
                self._busy[due.step.key] = stage
                return due
        return None

    def give_back(self, due: Due) -> None:
        """Take back a step that could not begin; it comes first again."""
        del self._busy[due.step.key]
        self._waiting.appendleft(due)

    def over(self, due: Due, came: Came) -> None:
        """Note what came of a step."""
        key, stage = due.step.key, due.step.stage
        del self._busy[key]
        if came.reopened:
            self.follow(self.schedule.plan)
        elif came.status == "COMPLETED":
            self.schedule.done(key)
            self._breaker.done(stage)
        elif came.status in ("WAITING", "INTERRUPTED"):
            self.schedule.fail(key, came.reason)
        else:
            if came.final:
                self.schedule.fail(key, came.reason)
            else:
                self.schedule.offer(key)
            if key in self.schedule.failed:
                self._breaker.failed(stage, key, self.schedule.failed[key])

    def follow(self, plan: Plan) -> None:
        """Follow another plan of the same pipeline, or one of which steps were reopened."""
        self._waiting.clear()  # the new schedule offers them again
        self.schedule = self.schedule.again(plan, self._wanted.steps(plan))
