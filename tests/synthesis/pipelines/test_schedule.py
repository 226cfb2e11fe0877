"""What may be done now, over random pipelines to which anything happens: it is never too early, never twice, and it ends."""

import json
from dataclasses import dataclass, field

import msgspec
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from agentx.storage.events.pipeline_events import (
    Dispatched,
    PipelineStarted,
    StageKept,
    StageProved,
    StageReopened,
)
from agentx.storage.events.types import Event, Payload, RunEnded
from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.running.due_steps import Due, Schedule
from agentx.synthesis.pipelines.running.pipeline_progress import Pipelines
from tests.synthesis.pipelines.book import plan as plan_of

PATIENCE = 400
"""So many things happen at most; then all goes well, and it must come to its end."""


@st.composite
def plans(draw) -> Plan:
    """Up to five stages and loops, for each of up to three items or once, in any order that can be."""
    sizes = draw(
        st.lists(st.integers(0, 3), min_size=1, max_size=5)
    )  # 0 is a stage, the others loops of so many
    names = [f"u{number}" for number in range(len(sizes))]
    each = [draw(st.booleans()) for _ in names]
    files, roles, stages = {}, {}, []

    def stage(name, *, of_items, verdict=False, **more):
        files[name] = {"path": f"{name}/{{{{ part.id }}}}.md" if of_items else f"{name}.md"}
        write = {"file": name, "marker": "DONE", "verdict": verdict}
        roles[name] = {"attempts": draw(st.integers(1, 2)), "writes": [write]}
        return {"id": name, "role": name} | {key: value for key, value in more.items() if value}

    for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
        order = {"for_each": "part" if each[number] else ""}
        order["after"] = [one for one in names[:number] if draw(st.booleans())]
        if each[number]:
            alike = [one for one, other in zip(names, each, strict=True) if other]
            order["after_previous"] = [one for one in alike if draw(st.integers(0, 3)) == 0]
        if not size:
            stages.append(stage(name, of_items=each[number], **order))
            continue
        inner = [f"{name}s{place}" for place in range(size)]
        decides = draw(st.sampled_from(inner))
        loop = {"loop": name, "until": {"file": decides}, "at_most": draw(st.integers(1, 3))} | {
            key: value for key, value in order.items() if value
        }
        loop["otherwise"] = draw(st.sampled_from(["fail", "go-on"]))
        loop["stages"] = [
            stage(
                one,
                of_items=each[number],
                verdict=one == decides,
                after=[other for other in inner[:place] if draw(st.booleans())],
            )
            for place, one in enumerate(inner)
        ]
        stages.append(loop)
    text = {
        "pipeline": "p",
        "items": {"part": draw(st.integers(1, 3))},
        "files": files,
        "roles": roles,
        "stages": stages,
    }
    try:
        return plan_of(json.dumps(text))
    except PipelineInvalid:  # a circle through the item before
        return reject()


@dataclass
class World:
    """A pipeline, its history, and a schedule that lives while things happen."""

    plan: Plan
    known: Pipelines = field(default_factory=Pipelines)
    seq: int = 0
    given: dict[str, Due] = field(default_factory=dict)
    finals: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tell(PipelineStarted(name="p"))
        self.live = Schedule(self.plan, self.known.of("p"))

    def tell(self, data: Payload, run: str = "") -> None:
        self.seq += 1
        self.known.take(
            Event(seq=self.seq, at="", type=type(data).__name__, v=1, actor="a", data=data, run=run)
        )

    def take(self) -> None:
        """What the schedule offers: nothing that may not be done, nothing that is being done."""
        for due in self.live.ready():
            assert due.step.key not in self.given
            assert not self.live.is_proved(due.step.key, due.round)
            assert all(self.is_done(need) for need in due.step.needs)
            assert all(self.live.is_proved(one, due.round) for one in due.step.inside)
            self.given[due.step.key] = due

    def is_done(self, key: str) -> bool:
        """Told from the history alone, and not from what the schedule remembers."""
        progress = self.known.of("p")
        loop = self.plan.loops.get(key)
        if loop is None:
            return self.live.is_proved(key)
        number = progress.proved[loop.decides].round if loop.decides in progress.proved else 0
        ended = all(self.live.is_proved(one, number) for one in loop.steps)
        over = progress.proved[loop.decides].verdict == "PASS" if ended else False
        return ended and (over or loop.otherwise == "go-on")

    def anew(self) -> Schedule:
        """The schedule of a process that knows the history alone."""
        copied = msgspec.json.decode(msgspec.json.encode(self.known), type=Pipelines)
        return Schedule(self.plan, copied.of("p"))

    def dies(self) -> None:
        """The process that did all this is gone, with whoever was at work, and another one begins."""
        for run in list(self.known.of("p").running):
            self.tell(RunEnded(status="INTERRUPTED"), run)
        self.given.clear()
        self.finals.clear()
        self.live = Schedule(self.plan, self.known.of("p"))

    def send(self, due: Due) -> str:
        run = f"r-{self.seq}"
        step = due.step
        self.tell(
            Dispatched(pipeline="p", stage=step.stage, item=step.item, role=step.role, round=due.round), run
        )
        return run

    def proves(self, due: Due, *, passes: bool) -> None:
        step, run = self.given.pop(due.step.key).step, self.send(due)
        self.tell(RunEnded(status="COMPLETED"), run)
        decides = any(write.rule.verdict for write in step.writes)
        verdict = ("PASS" if passes else "FAIL") if decides else ""
        self.tell(
            StageProved(pipeline="p", stage=step.stage, item=step.item, round=due.round, verdict=verdict), run
        )
        self.live.done(step.key)

    def passes(self, due: Due) -> None:
        self.proves(due, passes=True)

    def fails(self, due: Due, *, final: bool) -> None:
        del self.given[due.step.key]
        if final:  # nobody was sent, so the history says nothing of it
            self.finals.add(due.step.key)
            self.live.fail(due.step.key, "it cannot be")
        else:
            self.tell(RunEnded(status="FAILED", reason="no marker"), self.send(due))
            self.live.offer(due.step.key)

    def keeps(self, due: Due) -> None:
        """What a step rests on is the same as before."""
        step = self.given.pop(due.step.key).step
        self.tell(StageKept(pipeline="p", stage=step.stage, item=step.item, round=due.round))
        self.live.done(step.key)

    def is_doubted(self, due: Due) -> bool:
        proof = self.known.of("p").proved.get(due.step.key)
        return proof is not None and self.live.in_doubt(due.step.key) and proof.round == due.round

    def reopens(self, key: str, *, if_changed: bool = False) -> None:
        """A person wants a step done again: that is said between two runs."""
        step = self.plan.steps[key]
        self.tell(StageReopened(pipeline="p", stage=step.stage, item=step.item, if_changed=if_changed))
        self.dies()


@settings(max_examples=60)
@given(plans(), st.data())
def test_whatever_happens_a_schedule_offers_what_may_be_done_and_one_that_is_made_anew_the_same(plan, data):
    world = World(plan)
    world.take()
    for _ in range(data.draw(st.integers(0, 30), label="things that happen")):
        offered = {due.step.key: (due.round, due.tries) for due in world.anew().ready()}
        assert {key: offered[key] for key in offered.keys() - world.finals} == {
            key: (due.round, due.tries) for key, due in world.given.items()
        }
        happens = data.draw(
            st.sampled_from(
                ["pass", "pass", "pass", "FAIL", "fail", "final", "dies", "reopened", "doubted", "retry"]
            )
        )
        if happens in ("reopened", "doubted"):
            world.reopens(data.draw(st.sampled_from(sorted(plan.steps))), if_changed=happens == "doubted")
        elif happens == "retry":
            world.tell(PipelineStarted(name="p", retry=True))
            world.dies()
        elif happens == "dies" or not world.given:
            world.dies()
        else:
            due = world.given[data.draw(st.sampled_from(sorted(world.given)))]
            if world.is_doubted(due) and data.draw(st.booleans(), label="the same as before"):
                world.keeps(due)
            elif happens in ("fail", "final"):
                world.fails(due, final=happens == "final")
            else:
                world.proves(due, passes=happens == "pass")
        world.take()
    world.tell(PipelineStarted(name="p", retry=True))
    world.dies()
    world.take()
    for _ in range(PATIENCE):
        if not world.given:
            break
        due = next(iter(world.given.values()))
        same = world.is_doubted(due) and data.draw(st.booleans(), label="the same as before")
        (world.keeps if same else world.passes)(due)
        world.take()
    assert world.live.is_done, world.live.failed
    assert world.anew().is_done
    proved = world.known.of("p").proved
    for step in plan.steps.values():
        behind = {
            one for need in step.needs for one in (plan.loops[need].steps if need in plan.loops else (need,))
        }
        looked = max(proved[step.key].seq, proved[step.key].kept)
        assert all(looked > proved[one].seq for one in behind.union(step.inside))


def test_a_retry_begins_no_loop_anew_that_went_on_without_a_pass():
    loop = {"loop": "revise", "until": {"file": "review"}, "at_most": 1, "otherwise": "go-on"}
    loop["stages"] = [{"id": "review", "role": "reviewer"}]
    text = {"pipeline": "p", "files": {"review": {"path": "review.md"}, "page": {"path": "page.md"}}}
    text["roles"] = {
        "reviewer": {"writes": [{"file": "review", "marker": "DONE", "verdict": True}]},
        "setter": {"writes": [{"file": "page", "marker": "DONE"}]},
    }
    text["stages"] = [loop, {"id": "set", "role": "setter", "after": "revise"}]
    world = World(plan_of(json.dumps(text)))
    world.take()
    world.proves(world.given["review"], passes=False)
    world.take()
    world.proves(world.given["set"], passes=True)
    world.tell(PipelineStarted(name="p", retry=True))
    world.dies()
    world.take()
    assert (world.given, world.live.is_done) == ({}, True)
