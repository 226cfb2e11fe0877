"""What a pipeline may use is not overrun, however many agents are at work at once."""

import os
import queue
import signal
import threading
import time

import pytest

from tests.agentx.pipelines.conftest import well
from tests.agentx.pipelines.test_resume import SPLIT, long

EIGHT = """\
pipeline: notes
items: {note: 8}
files: {note: {path: "drafts/{{ note.id }}.md"}}
roles:
  writer:
    writes: [{file: note, marker: DRAFT_DONE, checks: [{length: {words: 12, within: 0.9}}]}]
stages:
  - {id: write, role: writer, for_each: note}
price: {prompt: 1000.0, output: 1000.0}
limits: {LIMIT}
"""


@pytest.mark.parametrize(("limit", "sent"), [("max_dispatches: 3", 3), ("max_tokens: 200", 2)])
def test_no_more_agents_are_sent_than_the_limits_allow_with_eight_at_once(desk, limit, sent):
    desk.path.write_text(EIGHT.replace("LIMIT", limit), "utf-8")
    ended = desk.run(jobs=8)
    assert (ended.status, ended.failed) == ("LIMIT_REACHED", {})
    assert len(desk.facts("Dispatched")) == ended.dispatches == sent  # each takes 121 tokens
    assert limit.partition(":")[0] in ended.reason
    desk.path.write_text(EIGHT.replace("LIMIT", ""), "utf-8")
    ended = desk.run(jobs=8)
    assert (ended.status, ended.dispatches) == ("COMPLETED", 8)


@pytest.mark.parametrize("limit", ["max_tokens: 1400", "max_cost_usd: 1.4"])
def test_those_at_work_are_counted_with_what_the_plan_estimates(desk, limit):
    """Each may take some 400 tokens, and takes 121 then: all are sent, but never many at once."""
    desk.path.write_text(EIGHT.replace("LIMIT", limit), "utf-8")
    at_work: list[str] = []
    most: list[int] = []

    def counted(path, prompt):
        at_work.append(path)
        most.append(len(at_work))
        time.sleep(0.01)
        at_work.remove(path)
        return well(path, prompt)

    assert desk.run(counted, jobs=8).status == "COMPLETED"
    tokens = [one.tokens for one in desk.facts("Dispatched")]
    assert all(350 < 2 * one < 450 for one in tokens)
    assert max(most) <= 4


def test_many_are_at_work_at_once_as_long_as_there_is_enough_for_all(desk):
    desk.path.write_text(EIGHT.replace("LIMIT", "max_tokens: 1000000"), "utf-8")
    all_here = threading.Barrier(8, timeout=60)

    def together(path, prompt):
        all_here.wait()
        return well(path, prompt)

    assert desk.run(together, jobs=8).status == "COMPLETED"


def test_limits_are_looked_at_before_each_part_of_a_task_that_was_split(desk):
    desk.path.write_text(f"{SPLIT}limits: {{max_dispatches: 9}}\n", "utf-8")
    ended = desk.run(long, jobs=4)
    assert (ended.status, ended.dispatches) == ("LIMIT_REACHED", 9)
    assert "It has used its 9 dispatches (max_dispatches)" in ended.reason
    assert [one.part for one in desk.facts("Dispatched") if one.stage == "index"] == [1, 2]
    desk.path.write_text(SPLIT, "utf-8")
    assert desk.run(long).status == "COMPLETED"
    assert [one.part for one in desk.facts("Dispatched") if one.stage == "index"] == [1, 2, 3, 0]


def test_ctrl_c_sends_nobody_for_the_next_part_of_a_task(desk):
    desk.path.write_text(SPLIT, "utf-8")
    told: queue.SimpleQueue[str] = queue.SimpleQueue()

    def interrupted(path, prompt):
        if path == "index.part-1.md":
            os.kill(os.getpid(), signal.SIGINT)
            told.get(timeout=60)
        return long(path, prompt)

    assert desk.run(interrupted, jobs=2, note=told.put).status == "INTERRUPTED"
    assert [one.part for one in desk.facts("Dispatched") if one.stage == "index"] == [1]
    assert desk.run(long).status == "COMPLETED"
    assert len(desk.author.prompts) == 2
