"""A pipeline at work: what is proved, what is sent again, and where it goes on."""

import pytest

from agentx.pipelines.dispatcher import Dispatcher
from agentx.pipelines.runner import PipelineStopped
from agentx.pipelines.tracked import pipelines
from agentx.storage.errors import AgentXError
from agentx.synthesis.model.port import ModelError
from tests.agentx.pipelines.conftest import well


def test_each_step_is_proved_once_and_the_memory_file_grows_by_each_item(desk):
    ended = desk.run(jobs=3)
    assert (ended.status, ended.proved, ended.steps) == ("COMPLETED", 7, 7)
    assert ended.dispatches == 7
    assert len(desk.facts("StageProved")) == 7
    glossary = desk.text("meta/glossary.md")
    assert [f"term{n}" in glossary for n in ("01", "02", "03")] == [True] * 3
    assert glossary.index("term01") < glossary.index("term02") < glossary.index("term03")
    assert [event.status for event in desk.facts("RunEnded")] == ["COMPLETED"] * 7


def test_a_later_item_reads_what_an_earlier_one_left(desk):
    desk.run()
    (prompt,) = [one for one in desk.author.prompts if "drafts/03.md" in one and "You are writer" in one]
    assert "term01" in prompt
    assert "term02" in prompt


def test_a_second_run_sends_nobody(desk):
    desk.run()
    again = desk.run()
    assert (again.status, again.dispatches) == ("COMPLETED", 7)
    assert desk.author.prompts == []


def test_a_file_without_its_marker_is_unfinished_and_its_agent_is_sent_again_with_the_reason(desk):
    def careless(path, prompt):
        text = well(path, prompt)
        return (
            text
            if "Attempt 2" in prompt or path != "drafts/02.md"
            else text.replace("<!-- DRAFT_DONE -->\n", "")
        )

    assert desk.run(careless).status == "COMPLETED"
    (failed,) = [one for one in desk.facts("RunEnded") if one.status == "FAILED"]
    assert "drafts/02.md is unfinished. Its last line is not `<!-- DRAFT_DONE -->`" in failed.reason
    (prompt,) = [one for one in desk.author.prompts if "Attempt 2" in one]
    assert "drafts/02.md is unfinished" in prompt


def test_an_agent_is_sent_as_often_as_the_pipeline_allows_and_a_person_gives_it_another_chance(desk):
    def bad(path, prompt):
        return "no marker" if path == "drafts/01.md" else well(path, prompt)

    ended = desk.run(bad)
    assert ended.status == "FAILED"
    assert list(ended.failed) == ["write[01]"]
    assert "drafts/01.md is unfinished" in ended.reason
    assert sum(one.stage == "write" for one in desk.facts("Dispatched")) == 3
    assert desk.run().status == "FAILED"
    assert sum(one.stage == "write" for one in desk.facts("Dispatched")) == 3
    assert desk.run(retry=True).status == "COMPLETED"


def test_a_review_that_fails_leads_to_another_round_that_reads_it(desk):
    def stern(path, prompt):
        text = well(path, prompt)
        return text.replace("PASS", "FAIL") if path == "reviews/02.md" and "Round 2" not in prompt else text

    assert desk.run(stern).status == "COMPLETED"
    rounds = [(one.stage, one.item, one.round) for one in desk.facts("Dispatched") if one.item == "02"]
    assert rounds == [("write", "02", 1), ("review", "02", 1), ("write", "02", 2), ("review", "02", 2)]
    second = next(one for one in desk.author.prompts if "Round 2" in one and "drafts/02.md" in one)
    assert "Verdict: FAIL" in second


def test_a_loop_ends_at_its_limit(desk):
    ended = desk.run(lambda path, prompt: well(path, prompt).replace("PASS", "FAIL"))
    assert ended.status == "FAILED"
    assert ended.failed == {"revise[01]": "the verdict in reviews/01.md was not PASS in 2 rounds"}


def test_a_file_that_is_there_with_its_marker_is_proved_and_nobody_is_sent_for_it(desk):
    (desk.ws.artifacts / "outline.md").write_text("# Mine\n\nBy hand.\n\n<!-- OUTLINE_DONE -->\n", "utf-8")
    assert desk.run().dispatches == 6
    proved = next(one for one in desk.facts("StageProved") if one.stage == "outline")
    assert proved.found


def test_a_proved_file_that_is_deleted_is_made_again(desk):
    desk.run()
    (desk.ws.artifacts / "drafts" / "03.md").unlink()
    desk.run()
    assert [one for one in desk.author.prompts if "You are writer" in one]
    assert desk.facts("StageReopened")[0].reason == "drafts/03.md is gone."
    assert desk.text("drafts/03.md")


def test_what_a_pipeline_may_use_ends_it_and_more_lets_it_go_on(desk):
    text = desk.path.read_text("utf-8")
    desk.path.write_text(text + "limits: {max_dispatches: 3}\n", "utf-8")
    ended = desk.run()
    assert (ended.status, ended.dispatches) == ("LIMIT_REACHED", 3)
    desk.path.write_text(text, "utf-8")
    ended = desk.run()
    assert (ended.status, ended.dispatches) == ("COMPLETED", 7)


def test_an_agent_that_reaches_beyond_its_pointers_is_denied_by_role_file_and_rule(desk):
    ended = desk.run()
    assert ended.status == "COMPLETED"
    run = desk.ws.engine
    from agentx.pipelines.pointing.pointers import PointerHands, Pointers, PointerTools

    pointers = Pointers(
        role="reviewer",
        stage="review[01]",
        readable={"drafts/01.md": "text"},
        writable=("reviews/01.md",),
        why_not={"meta/glossary.md": "it reviews the code"},
    )
    hands = PointerHands(PointerTools(run, pointers, actor="agent:reviewer", run="r-99"))
    read = hands.call("read_file", {"path": "drafts/02.md"})
    assert read.status == "DENIED"
    assert read.output.startswith(
        "Denied. Role reviewer (stage review[01]) may not read drafts/02.md: a role sees the files"
    )
    listed = hands.call("read_file", {"path": "meta/glossary.md"})
    assert "does not read (it reviews the code)" in listed.output
    wrote = hands.call("write_file", {"path": "drafts/01.md", "content": "mine now"})
    assert wrote.status == "DENIED"
    assert (
        "may not write drafts/01.md: a role writes its own files only, and these are reviews/01.md."
        in wrote.output
    )
    assert hands.call("write_file", {"path": "../../etc/passwd", "content": ""}).status == "DENIED"
    denied = [one for one in desk.facts("ToolCallExecuted") if one.status == "DENIED"]
    assert len(denied) == 4


def test_how_far_it_is_is_known_to_any_process_and_the_same_from_the_log_alone(desk):
    desk.run()
    known = pipelines(desk.ws.engine).of("book")
    assert (known.status, len(known.proved), known.running) == ("COMPLETED", 7, {})
    desk.ws.rebuild()
    assert pipelines(desk.ws.engine).of("book") == known


def test_a_missing_source_is_told_before_anything_runs(desk):
    desk.path.write_text(desk.path.read_text("utf-8") + "sources: {code: nowhere}\n", "utf-8")
    with pytest.raises(AgentXError, match="directory of the pipeline's source 'code' does not exist"):
        desk.run()


def test_a_file_that_nobody_writes_and_that_is_not_there_is_told_before_anything_runs(desk):
    book = desk.path.read_text("utf-8")
    desk.path.write_text(
        book.replace("files:", "files:\n  brief: {path: breif.md}").replace(
            "reads:", "reads:\n      - {file: brief}", 1
        )
    )
    with pytest.raises(PipelineStopped, match=r"Role writer .stage write.01.. reads brief: no file breif.md"):
        desk.run()
    assert not desk.facts("PipelineStarted")
    (desk.ws.artifacts / "breif.md").write_text("Write a book.\n")
    assert desk.run().status == "COMPLETED"
    desk.path.write_text(desk.path.read_text("utf-8").replace("breif.md", "br**f.md").replace(": 3", ": 4"))
    (desk.ws.artifacts / "breif.md").unlink()
    with pytest.raises(PipelineStopped, match=r"reads brief: no file br\*\*f.md"):
        desk.run()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Sell\nthe café.\n".encode("latin-1"), "line 2 has the byte 0xE9, which may be Latin-1; save the file as UTF-8"),
        ("Sell.\n".encode("utf-16"), "it is in UTF-16; save it as UTF-8"),
        (b"%PDF\n\0\0", "it is a binary file (NUL in line 2); convert it to text"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_is_told_before_anything_runs_with_what_to_do(desk, content, told):
    book = desk.path.read_text("utf-8").replace("files:", "files:\n  brief: {path: brief.md}")
    desk.path.write_text(book.replace("reads:", "reads:\n      - {file: brief}", 1), "utf-8")
    (desk.ws.artifacts / "brief.md").write_bytes(content)
    with pytest.raises(PipelineStopped) as error:
        desk.run()
    wanted = (
        "Role writer (stage write[01]) reads brief: brief.md is not UTF-8 text, so no agent can read it: "
    )
    assert str(error.value).startswith(wanted + told)
    assert not desk.facts("PipelineStarted")


def test_no_secret_of_what_is_read_reaches_a_model_or_the_log(desk):
    token = "ghp_" + "a" * 36
    code = desk.path.parent / "code"
    code.mkdir()
    (code / "a.py").write_text(f"token = '{token}'\n", "utf-8")
    book = desk.path.read_text("utf-8").replace(", marker: OUTLINE_DONE", "")
    book = book.replace("files:", "sources: {code: code}\nfiles:\n  code: {path: a.py, source: code}", 1)
    book = book.replace("  architect:\n", "  architect:\n    by: [cat]\n    reads: [{file: code}]\n", 1)
    desk.path.write_text(book, "utf-8")
    assert desk.run().status == "COMPLETED"
    assert "token = '[redacted: github token]'" in desk.text("outline.md")
    assert token[:12] not in (desk.ws.root / "history.jsonl").read_text("utf-8")


def test_a_model_that_does_not_answer_stops_the_pipeline_and_counts_as_no_try(desk):
    def down(path, prompt):
        if path == "drafts/02.md":
            raise ModelError("the server cannot be reached", retryable=True)
        return well(path, prompt)

    text = desk.path.read_text("utf-8")
    desk.path.write_text(f"{text}limits: {{model_wait_s: 0}}\n", "utf-8")
    for _ in range(4):  # more often than there are attempts
        ended = desk.run(down, jobs=2)
        assert ended.status == "FAILED"
        assert "No model answered (the server cannot be reached)" in ended.reason
    assert desk.run().status == "COMPLETED"


def test_a_fault_of_the_engine_is_on_record_before_it_is_raised(desk, monkeypatch):
    monkeypatch.setattr(Dispatcher, "do", lambda *_: 1 / 0)  # nothing else raises so on purpose
    with pytest.raises(ZeroDivisionError):
        desk.run()
    (ended,) = desk.facts("PipelineEnded")
    assert (ended.status, "ZeroDivisionError" in ended.reason) == ("FAILED", True)


def test_a_command_that_finds_fault_sends_the_agent_again_with_what_it_printed(desk):
    text = desk.path.read_text("utf-8")
    check = '{command: [sh, -c, "grep -c proven $0 || { echo no proof in $0; exit 3; }"]}'
    desk.path.write_text(text.replace("{sections: [Text, New terms]}", check), "utf-8")

    def unproven_at_first(path, prompt):
        made = well(path, prompt)
        return (
            made
            if path == "drafts/01.md" and "Attempt 2" not in prompt
            else made.replace("About", "A proven")
        )

    ended = desk.run(unproven_at_first)
    assert ended.status == "COMPLETED"
    (failed,) = [one for one in desk.facts("RunEnded") if one.status == "FAILED"]
    assert "drafts/01.md: `sh -c" in failed.reason
    assert "ended with 3: 0 no proof in drafts/01.md" in failed.reason
