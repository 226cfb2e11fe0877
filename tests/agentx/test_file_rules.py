"""A file's class holds for every agent, and a file that is leased has one writer; a person's word is asked for, or noticed."""

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx.agents.turn import alone
from agentx.policy import file_policy
from agentx.policy.amendments import amend, breaches
from agentx.policy.file_policy import FileLeased, FileRuleBroken, take
from agentx.recording.staging import Content
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import Dispatched, FileAmended, FileRule, PipelineStarted
from agentx.storage.events.types import Body, Draft, RunEnded, RunStarted, ToolCallExecuted, changes_of
from agentx.storage.git.objects import blob_id
from agentx.synthesis.state.state import RECENT_RUNS

GLOSSARY = "# 01\n\n- **event**: a line of the log.\n"
RULES = (
    FileRule("outline.md", "static"),
    FileRule("plans/ch*.md", "static"),
    FileRule("meta/glossary.md", "append-only"),
)


@pytest.fixture
def book(ws):
    """A workspace whose pipeline has set its rules, and whose writer wrote each file once."""
    begin(ws, *RULES)
    tools = ws.tools.acting("agent:writer", "")
    tools.write_file("outline.md", "Six chapters.\n")
    tools.write_file("meta/glossary.md", GLOSSARY)
    return ws


def begin(ws, *rules, name="book"):
    ws.record(Draft(data=PipelineStarted(name=name, files=rules), actor="engine:pipeline"))


def calls(ws):
    return [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]


def amendments(ws):
    return [event.data for event in ws.events() if isinstance(event.data, FileAmended)]


def text_of(ws, path):
    return (ws.artifacts / path).read_text()


def sent(*paths, until=None, item="01", role="writer"):
    until = until or (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return Dispatched(pipeline="book", stage="write", role=role, item=item, writes=paths, until=until)


def lease(ws, *paths, wait_s=0.0, **more):
    run = RunStarted(task=Body("Write."), agent="writer", model="scripted")
    return take(ws.engine, run, sent(*paths, **more), actor="agent:writer", wait_s=wait_s)


# --- static files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("write_file", {"path": "outline.md", "content": "Seven chapters.\n"}, "outline.md"),
        ("edit_file", {"path": "outline.md", "old": "Six", "new": "Seven"}, "outline.md"),
        ("move_file", {"path": "outline.md", "to": "old.md"}, "outline.md"),
        ("delete_file", {"path": "plans"}, "plans/ch01.md"),
    ],
)
def test_a_static_file_waits_for_a_persons_word_and_refused_the_sentence_names_agent_file_and_rule(
    book, tool, arguments, path
):
    writer = book.tools.acting("agent:writer", "")
    writer.write_file("plans/ch01.md", "The log.\n")
    before = text_of(book, path)
    asked = writer.call(tool, arguments, call_id="c-1")
    assert asked.approval_needed
    assert f"Role writer may not change {path}, which is static in pipeline book" in asked.output
    book.approve("c-1", approved=False, reason="The outline stands.")
    refused = writer.call(tool, {}, call_id="c-1")
    assert refused.status == "DENIED"
    assert "The outline stands." in refused.output
    assert f"Role writer may not change {path}, which is static in pipeline book" in refused.output
    assert text_of(book, path) == before
    assert calls(book)[-1].status == "DENIED"
    assert amendments(book) == []


def test_an_approved_change_of_a_static_file_is_recorded_as_an_amendment_with_the_reason(book):
    before = blob_id(b"Six chapters.\n")
    arguments = {"path": "outline.md", "content": "Seven chapters.\n"}
    book.tools.call("write_file", arguments, call_id="c-1")
    book.approve("c-1", reason="The publisher wants seven.")
    assert book.tools.call("write_file", arguments, call_id="c-1").status == "SUCCEEDED"
    assert text_of(book, "outline.md") == "Seven chapters.\n"
    (amended,) = amendments(book)
    assert amended == FileAmended(
        path="outline.md",
        before=before,
        after=blob_id(b"Seven chapters.\n"),
        reason="The publisher wants seven.",
        call_id="c-1",
    )
    assert breaches(book.engine, "book") == []
    assert len(amendments(book)) == 1


def test_an_amendment_that_a_power_cut_tore_off_its_write_is_made_up_for_once(book):
    book.tools.call("delete_file", {"path": "outline.md"}, call_id="c-1")
    book.approve("c-1", reason="No outline.")
    done = ToolCallExecuted(call_id="c-1", tool="delete_file", status="SUCCEEDED")
    book.engine.write_path.write(  # what is left of the append without its last line
        {"outline.md": None},
        lambda changes: msgspec.structs.replace(done, changes=changes),
        actor="agent:main",
    )
    for _ in range(2):
        assert breaches(book.engine, "book") == []
        (amended,) = amendments(book)
        assert (amended.after, amended.reason, amended.call_id) == ("", "No outline.", "c-1")


def test_a_person_is_asked_once_about_a_static_file_and_a_secret_in_it(book):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    arguments = {"path": "outline.md", "content": f"token = {secret}\n"}
    asked = book.tools.call("write_file", arguments, call_id="c-1")
    assert "static in pipeline book" in asked.output
    assert "secret" in asked.output
    book.approve("c-1")
    assert book.tools.call("write_file", {}, call_id="c-1").status == "SUCCEEDED"
    assert len(amendments(book)) == 1


def test_what_leaves_a_static_file_as_it_is_needs_nobodys_word(book):
    book.tools.write_file("outline.md", "Six chapters.\n")
    book.tools.write_file("plans/more/ch01.md", "No star stands for a slash.\n")
    book.tools.write_file("plans/more/ch01.md", "So this is free.\n")
    assert amendments(book) == []


# --- append-only files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (GLOSSARY + "- **lease**: who may write.\n", 0),
        (GLOSSARY, 0),
        (GLOSSARY[:-1], 3),
        ("# 01\n", 2),
        ("", 1),
        (GLOSSARY.replace("log", "history") + "- **lease**: who may write.\n", 3),
        (GLOSSARY.replace("\n", "\r\n"), 1),
        ("\n" + GLOSSARY, 1),
    ],
    ids=["more", "the same", "last end", "cut", "empty", "rewritten", "line ends", "more before"],
)
def test_an_append_only_file_keeps_every_byte_and_the_refusal_names_the_first_line_that_differs(
    book, content, line
):
    arguments = {"path": "meta/glossary.md", "content": content}
    result = book.tools.acting("agent:r2", "").call("write_file", arguments)
    assert result.status == ("DENIED" if line else "SUCCEEDED")
    assert text_of(book, "meta/glossary.md") == (GLOSSARY if line else content)
    if line:
        named = (
            f"Role r2 may not change line {line} of meta/glossary.md, which is append-only in pipeline book"
        )
        assert named in result.output
        assert calls(book)[-1].status == "DENIED"
        assert named in calls(book)[-1].output.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("delete_file", {"path": "meta"}), ("move_file", {"path": "meta", "to": "old"})],
)
def test_an_append_only_file_is_neither_deleted_nor_moved(book, tool, arguments):
    result = book.tools.call(tool, arguments)
    assert result.status == "DENIED"
    assert "meta/glossary.md, which is append-only" in result.output
    assert text_of(book, "meta/glossary.md") == GLOSSARY


def test_what_a_command_does_to_such_files_is_left_out_with_the_sentence_and_that_is_on_record(configured):
    ws = configured('[tools]\nrun_command = true\nisolation = "none"\n')
    begin(ws, *RULES)
    ws.tools.write_file("outline.md", "Six.\n")
    ws.tools.write_file("meta/glossary.md", GLOSSARY)
    lease(ws, "drafts/ch01.md")
    for command, told in {
        "echo Seven > outline.md": "outline.md, which is static",
        "sed -i s/log/book/ meta/glossary.md": "line 3 of meta/glossary.md, which is append-only",
        "mkdir drafts; echo Mine > drafts/ch01.md": "drafts/ch01.md: it is leased to role writer",
    }.items():
        result = ws.tools.call("run_command", {"command": f"echo said; {command}"})
        assert told in result.output
        assert told in calls(ws)[-1].output.text
    ws.tools.call("run_command", {"command": "echo '- **run**: one go.' >> meta/glossary.md"})
    assert text_of(ws, "outline.md") == "Six.\n"
    assert text_of(ws, "meta/glossary.md") == GLOSSARY + "- **run**: one go.\n"
    assert not (ws.artifacts / "drafts/ch01.md").exists()


def test_the_engine_asks_nobody_and_passes_the_same_check(book):
    def write(path, text, **more):
        contents = {path: Content(text.encode(), **more)}
        file_policy.require(book.engine, contents, actor="engine:pipeline")

    write("meta/glossary.md", GLOSSARY + "more\n")
    with pytest.raises(FileRuleBroken, match=r"engine:pipeline may not change line 1 of meta/glossary\.md"):
        write("meta/glossary.md", "more\n")
    with pytest.raises(FileRuleBroken, match=r"engine:pipeline may not change outline\.md, which is static"):
        write("outline.md", "more\n")
    with pytest.raises(FileRuleBroken, match=r"delete, move or link meta/glossary\.md"):
        write("meta/glossary.md", GLOSSARY, link=True)


def test_rules_hold_until_the_pipeline_is_started_with_others(book):
    begin(book, FileRule("outline.md", "append-only"), name="other")
    assert not book.tools.call("write_file", {"path": "outline.md", "content": "Six"}).approval_needed
    begin(book)
    book.tools.write_file("outline.md", "Six chapters.\nOr seven.\n")
    with pytest.raises(FileRuleBroken, match="pipeline other"):
        book.tools.write_file("outline.md", "Six")


# --- people ----------------------------------------------------------------------------------------------------------


def test_a_person_is_never_refused_and_what_they_did_is_noticed_until_restored_or_amended(book):
    book.tools.acting("user:pat", "").write_file("outline.md", "Seven chapters.\n")
    (book.artifacts / "meta/glossary.md").write_text(GLOSSARY.replace("log", "journal"))
    glossary, outline = breaches(book.engine, "book")
    assert (outline.path, outline.sort, outline.before) == (
        "outline.md",
        "static",
        blob_id(b"Six chapters.\n"),
    )
    assert outline.after == blob_id(b"Seven chapters.\n")
    edit = next(iter(book.events(after=glossary.seq - 1)))
    assert [made.path for made in changes_of(edit)] == ["meta/glossary.md"]
    assert "meta/glossary.md is append-only in pipeline book" in glossary.sentence
    assert f"Event {glossary.seq} changed it in line 3" in glossary.sentence
    # what is written behind it does not make it whole
    book.tools.write_file("meta/glossary.md", text_of(book, "meta/glossary.md") + "more\n")
    assert [one.seq for one in breaches(book.engine, "book")] == [glossary.seq, outline.seq]
    book.restore("meta/glossary.md", glossary.seq - 1)
    assert [one.path for one in breaches(book.engine, "book")] == ["outline.md"]
    event = amend(book.engine, "outline.md", "The publisher wants seven.", actor="user:pat")
    assert event.data == FileAmended(
        path="outline.md", before=outline.before, after=outline.after, reason="The publisher wants seven."
    )
    assert breaches(book.engine, "book") == []


def test_what_a_person_appends_or_made_before_the_pipeline_was_set_going_is_no_breach(ws):
    (ws.artifacts / "outline.md").write_text("Five.\n")
    ws.engine.settle()
    (ws.artifacts / "outline.md").write_text("Six.\n")
    ws.engine.settle()
    begin(ws, *RULES)
    (ws.artifacts / "plans").mkdir()
    (ws.artifacts / "plans/ch01.md").write_text("By hand.\n")
    (ws.artifacts / "meta").mkdir()
    for _ in range(2):
        with (ws.artifacts / "meta/glossary.md").open("a") as file:
            file.write("more\n")
        assert breaches(ws.engine, "book") == []
    (ws.artifacts / "meta/glossary.md").write_text("more\n")
    assert [one.path for one in breaches(ws.engine, "book")] == ["meta/glossary.md"]
    (ws.artifacts / "meta/glossary.md").unlink()
    (ws.artifacts / "outline.md").unlink()
    gone = breaches(ws.engine, "book")
    assert [(one.path, one.after) for one in gone] == [("meta/glossary.md", ""), ("outline.md", "")]


def test_amending_says_what_it_cannot_do(book):
    for path, reason, said in (
        ("outline.md", " ", "Give a reason"),
        ("notes.md", "because", "No pipeline declares notes.md .* have been run: book"),
        (
            "outline.md",
            "because",
            "Nothing to amend: outline.md complies with its class .static in pipeline book",
        ),
    ):
        with pytest.raises(UsageError, match=said):
            amend(book.engine, path, reason, actor="user")


# --- leases ----------------------------------------------------------------------------------------------------------


def test_a_leased_file_has_one_writer_until_its_run_ends_or_the_lease_expires(ws):
    run = lease(ws, "drafts/ch01.md")
    ws.tools.acting("agent:writer", run).write_file("drafts/ch01.md", "Once.\n")
    for tools in (ws.tools, ws.tools.acting("agent:r1", "r-9")):
        refused = tools.call("write_file", {"path": "drafts/ch01.md", "content": "Twice.\n"})
        assert refused.status == "DENIED"
        assert "leased to role writer for stage write of item 01 (r-1) until 2" in refused.output
    with pytest.raises(FileLeased, match=r"Role writer may not write to drafts/ch01\.md"):
        lease(ws, "drafts/ch02.md", "drafts/ch01.md", wait_s=0.02)
    assert "drafts/ch02.md" not in ws.state.leases
    ws.record(Draft(data=RunEnded(status="COMPLETED"), actor="agent:writer", run=run))
    past = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert lease(ws, "drafts/ch01.md", until=past) == "r-2"
    assert lease(ws, "drafts/ch01.md") == "r-3"
    with pytest.raises(FileLeased):
        ws.tools.acting("agent:writer", "r-2").write_file("drafts/ch01.md", "Late.\n")
    ws.tools.acting("user", "").write_file("drafts/ch01.md", "A person's.\n")


def test_who_waits_for_a_lease_gets_it_when_the_other_run_ends(ws):
    first = lease(ws, "a.md")
    got = []
    waiting = threading.Thread(target=lambda: got.append(lease(ws, "a.md", wait_s=30)))
    waiting.start()
    ws.record(Draft(data=RunEnded(status="COMPLETED"), actor="agent:writer", run=first))
    waiting.join(30)
    assert got == ["r-2"]
    assert ws.state.leases["a.md"].run == "r-2"


_TAKERS = """
import sys, threading
from agentx.policy.file_policy import FileLeased, take
from agentx.storage.events.types import Body, RunStarted
from agentx.storage.events.pipeline_events import Dispatched

def try_all():
    for number in range(12):
        sent = Dispatched(pipeline="b", stage="s", role="w", writes=(f"{number}.md", f"{number}.html"))
        try:
            take(ws.engine, RunStarted(task=Body("x"), agent="w", model="m"), sent, actor="agent:w", wait_s=0)
        except FileLeased:
            pass

threads = [threading.Thread(target=try_all) for _ in range(2)]
print("ready", flush=True)
sys.stdin.readline()
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_processes_and_threads_that_want_the_same_files_at_once_never_get_one_twice(ws):
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom agentx import Workspace\nfrom agentx.settings import Settings\n"
        f"ws = Workspace.open(sys.argv[1], settings=Settings(environ=dict(os.environ), cache_dir=Path('none')))\n{_TAKERS}"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(ws.root)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for taker in takers:
        assert taker.stdout.readline() == "ready\n"
    for taker in takers:
        taker.stdin.write("go\n")
        taker.stdin.flush()
    assert [taker.communicate(timeout=60) and taker.returncode for taker in takers] == [0, 0, 0]
    given = [event for event in ws.events() if isinstance(event.data, Dispatched)]
    assert sorted(event.data.writes[0] for event in given) == sorted(f"{n}.md" for n in range(12))
    assert len({event.run for event in given}) == 12


def test_all_runs_whose_process_is_gone_are_ended_and_their_leases_with_them(ws):
    runs = [lease(ws, *[f"{n}.md"] * (n < RECENT_RUNS)) for n in range(RECENT_RUNS + 2)]
    for run in runs[5:-2]:
        ws.record(Draft(data=RunEnded(status="COMPLETED"), actor="agent:writer", run=run))
    with alone(ws.engine):
        state = ws.state
    assert state.leases == {}
    assert not [run for run in state.runs if run.status == "RUNNING"]
    ends = [event for event in ws.events() if event.actor == "engine:runs"]
    assert {event.run for event in ends} == {*runs[:5], *runs[-2:]}
    assert {event.data.status for event in ends} == {"INTERRUPTED"}
    with alone(ws.engine):
        assert ws.state.seq == state.seq
