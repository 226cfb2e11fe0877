"""A pipeline that dies in the middle: the next run goes on where it was, and takes nothing old for new."""

import contextlib
import os
import queue
import signal
from collections.abc import Callable

import pytest

from agentx.pipelines.runner import Runner, redo
from agentx.pipelines.tracked import pipelines
from agentx.storage.files.lock import WorkspaceBusy
from agentx.workspace import Workspace
from tests.agentx.pipelines.conftest import BOOK, Author, Desk, well


class Killed(BaseException):
    """Nothing in the engine catches it, as nothing catches a kill: whatever was under way stays as it is."""


class Dying(Author):
    """A model whose process dies when it is asked for the so-manieth time: an odd one before it wrote, an even one after."""

    def __init__(self, write: Callable[[str, str], str | None], dies_at: set[int]) -> None:
        super().__init__(write)
        self.dies_at = dies_at
        self.asked = 0

    def stream(self, *arguments, **named):
        self.asked += 1
        if self.asked in self.dies_at:
            raise Killed
        return super().stream(*arguments, **named)


def run(desk: Desk, write: Callable[[str, str], str | None], *dies_at: int) -> Dying:
    """Run until it ends; so many deaths lie between."""
    model = Dying(write, set(dies_at))
    ended = None
    while ended is None:
        with contextlib.suppress(Killed):
            ended = Runner(desk.ws.engine, desk.path, lambda _name: model).run()
    assert ended.status == "COMPLETED", ended
    return model


def stern(path: str, prompt: str) -> str:
    """The second chapter needs another round."""
    text = well(path, prompt)
    if path.startswith("drafts/"):
        return text.replace("About", "Again about") if "Round 2" in prompt else text
    return text.replace("PASS", "FAIL") if path == "reviews/02.md" and "Round 2" not in prompt else text


def test_wherever_it_dies_it_ends_with_the_same_files_and_no_step_is_proved_or_accepted_twice(
    desk, tmp_path, lexical
):
    run(desk, stern, 1, 2, 4, 7, 10, 12, 15, 18, 21)
    with Workspace.create(tmp_path / "calm", settings=lexical) as calm:
        run(Desk(calm, desk.path), stern)
        assert calm.engine.git.manifest() == desk.ws.engine.git.manifest()
    proved = [(one.stage, one.item, one.round) for one in desk.facts("StageProved")]
    assert len(proved) == len(set(proved)) == 9
    ends = [one.status for one in desk.facts("RunEnded")]
    assert (ends.count("COMPLETED") + ends.count("INTERRUPTED"), ends.count("FAILED")) == (len(ends), 0)
    assert ends.count("COMPLETED") <= 9
    assert not desk.ws.state.leases


def test_what_was_written_is_proved_and_nobody_is_sent_for_it_again(desk):
    model = run(desk, stern, 4)  # the writer of 01 has written, and says no more
    assert sum("drafts/01.md" in prompt and "You are writer" in prompt for prompt in model.prompts) == 1
    proved = next(one for one in desk.facts("StageProved") if (one.stage, one.item) == ("write", "01"))
    assert not proved.found


TWO = BOOK.replace(
    "writes: [{file: draft, marker: DRAFT_DONE",
    "writes: [{file: page, marker: PAGE_DONE}, {file: draft, marker: DRAFT_DONE",
).replace("files:\n", 'files:\n  page: {path: "pages/{{ chapter.id }}.md"}\n')


def test_of_two_files_one_that_is_of_an_earlier_round_proves_nothing(desk):
    desk.path.write_text(TWO, "utf-8")
    died = []

    def half(path, prompt):
        if path.startswith("pages/"):
            return f"Page of round {2 if 'Round 2' in prompt else 1}.\n\n<!-- PAGE_DONE -->\n"
        if path == "drafts/02.md" and "Round 2" in prompt and not died:
            died.append(path)
            model.dies_at.add(model.asked + 1)  # the page is written, the draft is not
            return None
        return stern(path, prompt)

    model = Dying(half, set())
    with pytest.raises(Killed):
        Runner(desk.ws.engine, desk.path, lambda _name: model).run()
    assert Runner(desk.ws.engine, desk.path, lambda _name: model).run().status == "COMPLETED"
    assert "Again about 02" in desk.text("drafts/02.md")


SPLIT = (
    BOOK.replace("roles:\n", "agents:\n  small: {window: 4000, system: 50, output: 50}\nroles:\n")
    .replace(
        "  architect:\n",
        "  indexer:\n    agent: small\n    split: every\n    reads: [{file: every}]\n"
        "    writes: [{file: index, marker: INDEX_DONE}]\n  architect:\n",
    )
    .replace("files:\n", "files:\n  every: {path: drafts/*.md}\n  index: {path: index.md}\n")
    + "  - {id: index, role: indexer, after: revise}\n"
)


def long(path: str, prompt: str) -> str:
    if path.startswith("index"):
        return "Index of the old.\n\n<!-- INDEX_DONE -->\n"
    text = well(path, prompt)
    return text.replace("About", "A very long way around it, and then about " * 200)


def test_a_task_that_was_split_goes_on_with_the_parts_that_are_missing(desk):
    desk.path.write_text(SPLIT, "utf-8")
    model = run(desk, long, 17, 19)  # in the second part: before it was written, and after
    parts = [one.part for one in desk.facts("Dispatched") if one.stage == "index"]
    assert parts == [1, 2, 2, 3, 0]
    assert sum("index.part-" in prompt for prompt in model.prompts) == 3
    assert desk.text("index.md").count("Index of") == 3


def test_a_split_task_that_is_done_again_takes_no_part_of_before(desk):
    desk.path.write_text(SPLIT, "utf-8")
    run(desk, long)
    redo(desk.ws.engine, Runner(desk.ws.engine, desk.path, lambda _: None).plan, "index", "", "it is dull")
    model = run(desk, lambda path, prompt: long(path, prompt).replace("the old", "the new"))
    assert len(model.prompts) == 3
    assert desk.text("index.md").count("the new") == 3


def test_nothing_is_done_again_while_others_rest_on_it(desk):
    asked = []

    def asks(path, prompt):
        if path == "drafts/02.md":
            with pytest.raises(WorkspaceBusy):
                redo(desk.ws.engine, runner.plan, "outline", "", "it is dull")
            asked.append(path)
        return well(path, prompt)

    runner = Runner(desk.ws.engine, desk.path, lambda _name: Author(asks))
    assert runner.run().status == "COMPLETED"
    assert asked


def test_ctrl_c_lets_those_at_work_come_to_their_end_and_sends_nobody_else(desk):
    before, told = signal.getsignal(signal.SIGINT), queue.SimpleQueue()

    def interrupted(path, prompt):
        if path == "drafts/02.md":
            os.kill(os.getpid(), signal.SIGINT)
            assert "Ctrl-C again" in told.get(timeout=60)  # it is still at work when a person is told
        return well(path, prompt)

    ended = Runner(desk.ws.engine, desk.path, lambda _name: Author(interrupted), jobs=2, note=told.put).run()
    assert (ended.status, ended.proved) == ("INTERRUPTED", 4)
    assert signal.getsignal(signal.SIGINT) is before
    assert (desk.run().status, len(desk.author.prompts)) == ("COMPLETED", 3)


def test_what_was_remembered_of_a_stage_that_is_done_again_is_replaced_for_all_who_read_it(desk):
    run(desk, well)
    redo(
        desk.ws.engine, Runner(desk.ws.engine, desk.path, lambda _: None).plan, "write", "02", "another word"
    )
    known = {item.text: item.id for item in desk.ws.state.items.values() if item.kind == "knowledge"}

    def renamed(path, prompt):
        return well(path, prompt).replace("- **term02**: what", "- **word02**: says what")

    model = run(desk, renamed, 1, 4, 6, 8, 9)
    prompts = [one for one in model.prompts if "You are writer" in one and "drafts/03.md" in one]
    assert {("word02" in prompt, "term02" in prompt) for prompt in prompts} == {(True, False)}
    glossary = desk.text("meta/glossary.md")
    assert "term02" in glossary
    assert "## Chapter 02\n\n<!-- In place of lines 5-7 (" in glossary
    assert [glossary.count(said) for said in ("In place of", "word02", "**term03**")] == [1, 1, 1]
    items = desk.ws.state.items
    assert items[known["term02: what 02 is about"]].status == "retired"
    assert [one.status for one in items.values() if "word02" in one.text] == ["active"]
    assert items[known["term03: what 03 is about"]].status == "active"
    digest, done = desk.ws.state.digest, pipelines(desk.ws.engine)
    desk.ws.rebuild()
    assert (desk.ws.state.digest, pipelines(desk.ws.engine)) == (digest, done)


LAST = (
    BOOK.replace("files:\n", "files:\n  index: {path: index.md}\n")
    .replace(
        "  reviewer:\n",
        "  printer:\n    by: engine\n    writes:\n"
        '      - {file: index, only: last, content: "The last is {{ chapter.id }}."}\n'
        '      - {file: page, content: "Page {{ chapter.id }}."}\n  reviewer:\n',
    )
    .replace("files:\n", 'files:\n  page: {path: "pages/{{ chapter.id }}.md"}\n')
    + "  - {id: print, role: printer, for_each: chapter, after: revise}\n"
)


def test_what_is_for_the_last_item_is_done_by_the_new_last_one_when_items_become_more_or_fewer(desk):
    for number in (3, 2, 3):
        desk.path.write_text(LAST.replace("chapter: 3", f"chapter: {number}"), "utf-8")
        assert desk.run().status == "COMPLETED"
        assert desk.text("index.md") == f"The last is 0{number}.\n"
    assert [(one.stage, one.item) for one in desk.facts("StageReopened")] == [
        ("print", "02"),
        ("print", "03"),
    ]
    for items, last in (("[{id: x}]", "x"), ("3", "03")):
        desk.path.write_text(LAST.replace("chapter: 3", f"chapter: {items}"), "utf-8")
        assert desk.run().status == "COMPLETED"
        assert desk.text("index.md") == f"The last is {last}.\n"


def test_parts_that_are_done_stay_as_they_were_cut_whatever_room_there_is_by_then(desk):
    six = SPLIT.replace("chapter: 3", "chapter: 6")

    def names(path, prompt):
        if not path.startswith("index"):
            return long(path, prompt)
        given = [f"drafts/0{n}.md" for n in range(1, 7) if f"File drafts/0{n}.md" in prompt]
        return f"Index of {' and '.join(given)}.\n\n<!-- INDEX_DONE -->\n"

    def dies(path, prompt):
        if path == "index.part-2.md":
            raise Killed
        return names(path, prompt)

    desk.path.write_text(six.replace("window: 4000", "window: 6000"), "utf-8")
    with pytest.raises(Killed):
        desk.run(dies)
    assert desk.text("index.part-1.md").startswith("Index of drafts/01.md and drafts/02.md.")
    desk.path.write_text(six, "utf-8")
    assert desk.run(names).status == "COMPLETED"
    sent = [(one.part, one.through) for one in desk.facts("Dispatched") if one.stage == "index"]
    first, second, *rest = ((n, f"drafts/0{n + 1}.md") for n in range(1, 6))
    assert sent == [first, (2, "drafts/04.md"), second, *rest, (0, "")]
    assert [line for line in desk.text("index.md").splitlines() if line][:2] == [
        "Index of drafts/01.md and drafts/02.md.",
        "Index of drafts/03.md.",
    ]
    assert all(desk.text("index.md").count(f"drafts/0{n}.md") == 1 for n in range(1, 7))


def test_a_file_that_came_among_those_of_a_part_that_is_done_is_not_passed_over(desk):
    def names(path, prompt):
        given = [name for name in ("01", "015", "02", "03") if f"File drafts/{name}.md" in prompt]
        return f"{given}\n\n<!-- INDEX_DONE -->\n" if path.startswith("index") else long(path, prompt)

    def dies(path, prompt):
        if path == "index.part-3.md":
            raise Killed
        return names(path, prompt)

    desk.path.write_text(SPLIT, "utf-8")
    with pytest.raises(Killed):
        desk.run(dies)
    (desk.ws.artifacts / "drafts/015.md").write_text(desk.text("drafts/01.md"), "utf-8")
    assert desk.run(names).status == "COMPLETED"
    sent = [one.part for one in desk.facts("Dispatched") if one.stage == "index"]
    assert sent == [1, 2, 3, 2, 3, 4, 0]
    assert desk.text("index.md").splitlines()[:7:2] == ["['01']", "['015']", "['02']", "['03']"]


def test_a_split_task_that_is_done_again_and_dies_takes_no_part_of_before(desk):
    desk.path.write_text(SPLIT, "utf-8")
    run(desk, long)
    redo(desk.ws.engine, Runner(desk.ws.engine, desk.path, lambda _: None).plan, "index", "", "it is dull")
    run(desk, lambda path, prompt: long(path, prompt).replace("the old", "the new"), 3)  # in the second part
    assert desk.text("index.md").count("the new") == 3


JOINED = SPLIT.replace(
    "split: every\n", "split: {over: every, join: Make one index of the parts.}\n"
).replace(
    "marker: INDEX_DONE}",
    "marker: INDEX_DONE, checks: [{length: {words: 90, within: 0.9}}, {sections: [All]}]}",
)


def index(path: str, prompt: str) -> str:
    if path == "index.md":
        return "## All\n\nOne index of many words, made of three.\n\n<!-- INDEX_DONE -->\n"
    return long(path, prompt)


def test_parts_that_cannot_be_put_one_after_the_other_are_joined_by_an_agent(desk):
    desk.path.write_text(JOINED, "utf-8")
    dull = iter([True])

    def once_dull(path, prompt):
        text = index(path, prompt)
        return text.replace("## All", "## Some") if path == "index.md" and next(dull, False) else text

    model = run(desk, once_dull, 17, 22)  # in a part, and in the joining
    sent = [(one.part, one.joins) for one in desk.facts("Dispatched") if one.stage == "index"]
    parts = [part for part, joins in sent if not joins]
    assert parts == [1, 2, 2, 3]  # they are kept when the joining dies, and when it is not accepted
    assert sum(joins for _, joins in sent) == 3
    part = next(prompt for prompt in model.prompts if "index.part-2" in prompt)
    assert "part 2 of 3" in part
    assert "Length: about 30 words." in part
    assert "It has these sections" not in part
    join = next(prompt for prompt in model.prompts if "Make one index of the parts." in prompt)
    assert join.count("Index of the old.") == 3
    assert "Length: 90 words" in join
    assert "One index" in desk.text("index.md")
