"""What a run begins, and what it does not try: jobs of a stage, a breaker, models that cannot be reached, limits."""

import threading

import pytest

from agentx.pipelines.costs import outlook_of
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.runner import PipelineStopped, Runner
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.pipelines.running.breaker import Breaker
from tests.agentx.pipelines.conftest import Author

MANY = """\
pipeline: many
items: {part: 12}
files:
  note: {path: "notes/{{ part.id }}.md"}
  page: {path: "pages/{{ part.id }}.md"}
  all: {path: "notes/*.md"}
  sum: {path: sum.md}
roles:
  noter: {writes: [{file: note, marker: DONE}]}
  writer: {reads: [{file: note}], writes: [{file: page, marker: DONE, checks: [{sections: [Body]}]}]}
  adder: {reads: [{file: all}], writes: [{file: sum, marker: DONE}]}
stages:
  - {id: note, role: noter, for_each: part, jobs: 2}
  - {id: write, role: writer, for_each: part, after: note}
  - {id: sum, role: adder, after: note}
"""


def good(path, _prompt):
    return f"## Body\n\nAbout {path}.\n\n<!-- DONE -->\n"


@pytest.fixture
def many(desk):
    desk.path.write_text(MANY, "utf-8")
    return desk


def test_a_stage_has_at_most_its_own_jobs_at_once(many):
    at_work, most, lock = {"note": 0, "page": 0}, {"note": 0, "page": 0}, threading.Lock()
    together = threading.Barrier(4, timeout=0.2)

    def busy(path, prompt):
        kind = "note" if path.startswith("notes") else "page"
        with lock:
            at_work[kind] += 1
            most[kind] = max(most[kind], at_work[kind])
        try:
            together.wait()
        except threading.BrokenBarrierError:
            together.reset()
        with lock:
            at_work[kind] -= 1
        return good(path, prompt)

    assert many.run(busy, jobs=8).status == "COMPLETED"
    assert most["note"] == 2
    assert most["page"] > 2


def test_when_the_first_items_of_a_stage_fail_alike_the_rest_is_not_tried(many):
    ended = many.run(lambda path, prompt: good(path, prompt).replace("Body", path) if "page" in path else good(path, prompt))  # fmt: skip
    assert ended.status == "FAILED"
    tried = [prompt for prompt in many.author.prompts if "Write: pages/" in prompt]
    assert len(tried) == 3 * 3  # three items, each with its three attempts
    assert "Not tried: write[01], write[02], write[03] failed the same way: pages/01.md: Section 'Body' is missing" in ended.failed["write[12]"]  # fmt: skip
    assert ended.proved == 13  # other stages go on
    again = many.run(good)
    assert again.status == "FAILED"
    assert not many.author.prompts  # the cause is still the same
    assert many.run(good, retry=True).status == "COMPLETED"


def test_items_that_fail_each_in_its_own_way_do_not_stop_the_stage(many):
    def odd(path, prompt):
        if "page" not in path:
            return good(path, prompt)
        number = int(path[6:8])
        return (
            good(path, prompt).replace("Body", "x") if number % 3 == 0 else None if number % 3 == 1 else "No."
        )

    ended = many.run(odd)
    assert not any("Not tried" in why for why in ended.failed.values())
    assert len(ended.failed) == 12


def test_a_stage_with_an_item_that_was_done_is_not_stopped():
    breaker = Breaker()
    for number in range(5):
        breaker.failed("write", f"write[{number}]", f"pages/{number}.md is empty")
    assert breaker.stops("write", {"write[0]": "empty"}) == "Not tried: write[0], write[1], write[2] failed the same way: empty"  # fmt: skip
    breaker.done("write")
    assert not breaker.stops("write", {})


def test_a_model_that_cannot_be_reached_is_tried_again_for_a_while(many, monkeypatch):
    monkeypatch.setattr("agentx.pipelines.dispatcher._FIRST_PAUSE_S", 0.01)
    asked = []

    def shaky(path, prompt):
        asked.append(path)
        if asked.count(path) < 3:
            raise ModelError("the server cannot be reached", retryable=True)
        return good(path, prompt)

    assert many.run(shaky, jobs=2).status == "COMPLETED"
    assert many.facts("RunEnded")[0].status == "COMPLETED"
    asked.clear()


def test_an_error_that_no_wait_mends_is_told_at_once(many):
    def wrong(_path, _prompt):
        raise ModelError("the key is wrong")

    ended = many.run(wrong)
    assert "No model answered (the key is wrong)" in ended.reason
    assert len(many.author.prompts) == 1


class Named(Author):
    """A model with a name that is known, or not."""

    def __init__(self, name):
        super().__init__(good)
        self.name = name


@pytest.mark.parametrize(
    ("more", "model", "told"),
    [
        ("limits: {max_cost_usd: 1}", "house/model", "`limits.max_cost_usd` is $1.00, but the price of house/model is not known: add `price`"),
        ("", "gpt-3.5-turbo-1106", "Agent type general-purpose has `window: 128,000` tokens, but gpt-3.5-turbo-1106 has 16,385: set `agents.general-purpose.window`"),
        ("agents: {general-purpose: {output: 20000}}", "gpt-4o-mini", "has `output: 20,000` tokens, but gpt-4o-mini has 16,384"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_do_is_told_before_anything_is_sent(many, more, model, told):
    many.path.write_text(f"{MANY}{more}\n", "utf-8")
    author = Named(model)
    runner = Runner(many.ws.engine, many.path, lambda _name: author)
    with pytest.raises(PipelineStopped) as caught:
        runner.run()
    assert told in str(caught.value)
    assert not author.prompts
    files = Files(many.ws.engine.artifacts, runner.plan.pipeline, many.path.parent)
    assert any(told in sentence for sentence in outlook_of(runner.plan, files, model).missing)


def test_a_price_makes_the_cost_known_so_that_its_limit_holds(many):
    many.path.write_text(f"{MANY}limits: {{max_cost_usd: 0.001}}\nprice: {{prompt: 1, output: 5}}\n", "utf-8")
    author = Named("house/model")
    ended = Runner(many.ws.engine, many.path, lambda _name: author).run()
    assert ended.status == "LIMIT_REACHED"
    assert 0.001 <= ended.usage.cost_usd < 0.002


def test_files_that_earlier_stages_write_are_in_the_plan_of_who_reads_them_all(many):
    plan = Runner(many.ws.engine, many.path).plan
    files = Files(many.ws.engine.artifacts, plan.pipeline, many.path.parent)

    def budget(text):
        many.path.write_text(text, "utf-8")
        plan = Runner(many.ws.engine, many.path).plan
        return next(one.budget for one in outlook_of(plan, files).planned if one.key == "sum")

    found = budget(MANY)
    assert len(found.rows) == 12
    assert found.reads >= 12 * 900
    assert not found.problem
    assert "21 files" in budget(MANY.replace("part: 12", "part: 21")).problem
