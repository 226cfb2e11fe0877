"""Programs and models that play a role and misbehave: nothing false is proved, and the user reads why."""

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

from agentx.pipelines.runner import Ended, Runner
from agentx.quality import confine
from agentx.quality.sandbox import SandboxPolicy, isolation_for
from agentx.synthesis.model.port import Reply, Usage
from tests.agentx.pipelines.conftest import Desk

ONE = """\
pipeline: one
files:
  report: {path: report.md}
roles:
  reporter:
    by: [python, p.py]
    attempts: 1
    writes: [{file: report}]
stages:
  - {id: report, role: reporter}
"""
MARKED = ONE.replace("{file: report}", "{file: report, marker: DONE}")


def play(desk: Desk, code: str, pipeline: str = ONE) -> Ended:
    """Run a pipeline of one role, which is a program."""
    desk.path.write_text(pipeline, "utf-8")
    (desk.path.parent / "p.py").write_text(f"import json, os, subprocess, sys, time\n{code}", "utf-8")
    return desk.run()


def refused(desk: Desk, code: str, pipeline: str = ONE) -> str:
    """Return why the program's work was not accepted; nothing of it is proved."""
    ended = play(desk, code, pipeline)
    assert (ended.status, ended.proved) == ("FAILED", 0)
    assert not desk.facts("StageProved")
    return ended.failed["report"]


@pytest.mark.parametrize("count", [100_001, 4_000_000])
def test_an_output_of_any_size_up_to_the_limit_is_the_whole_file(desk, count):
    assert play(desk, f"print('  x' + 'é\\n' * {count // 3})").status == "COMPLETED"
    assert desk.text("report.md") == "  x" + "é\n" * (count // 3)


def test_an_output_over_the_limit_fails_at_once_and_the_limit_is_named(desk):
    endless = "while True: os.write(1, b'x' * 65536)"
    assert refused(desk, endless) == (
        "It printed more than 10 MB, so it was ended; `output` of role reporter in the pipeline's file allows more."
    )
    assert not (desk.ws.artifacts / "report.md").exists()


def test_a_role_has_a_limit_of_its_own(desk):
    small = ONE.replace("attempts: 1", "attempts: 1\n    output: 2 kB")
    assert "more than 2 kB" in refused(desk, "print('x' * 2001)", small)
    desk.path.write_text(small.replace("2 kB", "3 kB"))
    assert desk.run(retry=True).status == "COMPLETED"


SPOKEN = ONE.replace("attempts: 1", "attempts: 1\n    speaks: jsonl")
WRITE = """
sys.stdin.readline()
text = {text}
print(json.dumps({{"call": {{"tool": "write_file", "arguments": {{"path": "report.md", "content": text}}}}}}), flush=True)
sys.stdin.readline()
print(json.dumps({{"done": {{}}}}), flush=True)
"""


def test_a_line_over_the_limit_fails_and_one_below_it_is_whole(desk):
    assert (
        "more than 10 MB in one line, or in all that it says, so it was ended; `output` of role reporter"
        in refused(desk, WRITE.format(text="'x' * 10_000_001"), SPOKEN)
    )
    (desk.path.parent / "p.py").write_text(
        "import json, sys\n" + WRITE.format(text="'x' * 9_000_000"), "utf-8"
    )
    assert desk.run(retry=True).status == "COMPLETED"
    assert desk.text("report.md") == "x" * 9_000_000


LATER = "import time; time.sleep(60); print('the end')"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("pass", "It printed nothing. report.md was not written."),
        ("print('half'); sys.exit(3)", "It ended with exit status 3 and printed nothing on stderr."),
        ("os.write(1, b'one\\n\\xff')", "It printed the byte 0xFF in line 2, but its file is UTF-8 text."),
        ("print('x' * 9000 + chr(10) + chr(0))", "It printed a NUL in line 2, but its file is UTF-8 text."),
        ("os.write(1, os.urandom(2_000_000))", ", but its file is UTF-8 text."),
        ("os.write(1, b'x' * 50_000_000)", "It printed more than 10 MB, so it was ended;"),
        (
            f"print('begun', flush=True); subprocess.Popen([sys.executable, '-c', {LATER!r}])",
            "Let it wait for what it starts.",
        ),
    ],
)
def test_what_a_program_gets_wrong_is_a_failure_that_says_so(desk, code, told):
    assert told in refused(desk, code)


def test_a_program_does_not_fill_the_history_with_what_it_says(desk):
    endless = "sys.stdin.readline()\nwhile True: print(json.dumps({'say': 'word ' * 100}))"
    told = refused(desk, endless, SPOKEN.replace("attempts: 1", "attempts: 1\n    output: 20 kB"))
    assert told.startswith("It printed more than 20 kB in one line, or in all that it says, so it was ended;")
    assert len(desk.facts("AgentThoughtProcess")) < 50


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("'Text.'", "Its last line is not `<!-- DONE -->`: write the rest, and that line as its last."),
        ("'x' * 9000 + chr(0)", "The content has a NUL character in line 1, so it is not text; remove it."),
        ("'```\\nText.\\n\\n<!-- DONE -->\\n```'", "report.md is inside a code block: leave out its first"),
        ("'<!-- DONE -->'", "report.md is empty but for its marker."),
    ],
)
def test_what_a_program_with_tools_writes_is_held_to_the_same(desk, text, told):
    assert told in refused(
        desk, WRITE.format(text=text), MARKED.replace("attempts: 1", "attempts: 1\n    speaks: jsonl")
    )


class Cut:
    """A model whose answer is the file, as far as its output limit allows."""

    name = "own/cut"

    def __init__(self, text, cut_off):
        self.text, self.cut_off = text, cut_off

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        yield Reply(self.text, (), Usage(10, 10), self.name, self.cut_off)


def test_an_answer_that_is_cut_off_again_and_again_is_never_proved(desk):
    desk.path.write_text(ONE.replace("by: [python, p.py]", "by: model"), "utf-8")
    ended = Runner(desk.ws.engine, desk.path, lambda _name: Cut("# Report", cut_off=True)).run()
    assert "output limit" in ended.failed["report"]
    again = Runner(desk.ws.engine, desk.path, lambda _name: Cut("# Report", cut_off=False))
    assert again.run(retry=True).status == "COMPLETED"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "report.md was not written."),
        (
            "a\n\0",
            "report.md was not written. The content has a NUL character in line 2, so it is not text; re",
        ),
        (
            "x" * 50_000_000,
            "report.md was not written. 'report.md' has 50,000,001 bytes, over the limit of 20,000",
        ),
    ],
)
def test_what_a_model_answers_is_held_to_the_same(desk, text, told):
    desk.path.write_text(ONE.replace("by: [python, p.py]", "by: model"), "utf-8")
    ended = Runner(desk.ws.engine, desk.path, lambda _name: Cut(text, cut_off=False)).run()
    assert ended.failed["report"].startswith(told)
    assert not desk.facts("StageProved")


def test_a_file_in_a_code_block_is_taken_out_of_it(desk):
    assert play(desk, "print('```markdown\\n# Report\\n```')").status == "COMPLETED"
    assert desk.text("report.md") == "# Report\n"


# --- where programs run -----------------------------------------------------------------------------------------------

FREE = ONE.replace("attempts: 1", "attempts: 1\n    sandbox: false")
isolated = pytest.mark.skipif(
    isolation_for(SandboxPolicy(environ=os.environ))[0] == "none", reason="there is no sandbox here"
)


def meddle(desk: Desk) -> str:
    """Return a program that changes what others wrote, and prints its file."""
    (desk.ws.artifacts / "input.md").write_text("Input.\n", "utf-8")
    (desk.ws.artifacts / "other.md").write_text("Other.\n", "utf-8")
    return f"""
place = {str(desk.ws.artifacts)!r}
open(place + "/other.md", "w").write("Mine.")
os.remove(place + "/input.md")
print("Text.")
"""


@isolated
def test_a_program_in_the_sandbox_reaches_nothing_of_the_workspace(desk):
    reason = refused(desk, meddle(desk))
    assert reason.startswith("It ended with exit status 1: ")
    assert reason.endswith(
        "It ran in the sandbox, without network, home and other files: set `sandbox: false` for the role, or list "
        "what it reads under `checks.readable` in agentx.toml."
    )
    assert (desk.ws.artifacts / "input.md").exists()
    assert desk.text("other.md") == "Other.\n"


@isolated
def test_a_program_in_the_sandbox_reads_what_by_and_the_settings_name(desk):
    (desk.path.parent / "data.csv").write_text("1,2\n", "utf-8")
    (desk.path.parent / "more.csv").write_text("3,4\n", "utf-8")
    code = "print(open(sys.argv[1]).read(), os.listdir('.'), os.path.exists(os.environ['HOME']))"
    named = ONE.replace("by: [python, p.py]", "by: [python, p.py, data.csv]")
    assert play(desk, code, named).status == "COMPLETED"
    assert desk.text("report.md") == "1,2\n [] True\n"
    more = ONE.replace(
        "[python, p.py]", f"[python, p.py, {desk.path.parent}/../{desk.path.parent.name}/more.csv]"
    )
    desk.path.write_text(
        more.replace("pipeline: one", "pipeline: two").replace("report.md", "more.md"), "utf-8"
    )
    assert desk.run().status == "COMPLETED"
    assert desk.text("more.md").startswith("3,4\n")


def test_a_program_without_the_sandbox_that_changes_other_files_is_not_accepted(desk):
    reason = refused(desk, meddle(desk), FREE)
    assert re.fullmatch(
        r"While it ran without a sandbox, input\.md, other\.md changed, which its role does not write, "
        r"and was put back: `agentx diff \d+\.\.(\d+)` shows the change, `agentx restore PATH --at \1` makes it "
        r"again\.",
        reason,
    )
    seq = int(re.findall(r"--at (\d+)", reason)[0])
    for path, text in (("input.md", "Input.\n"), ("other.md", "Other.\n")):
        assert desk.text(path) == text
    desk.ws.restore("other.md", seq)
    assert desk.text("other.md") != "Other.\n"


def test_a_program_without_the_sandbox_that_keeps_to_its_files_is_accepted(desk):
    assert play(desk, "print('Text.')", FREE).status == "COMPLETED"


def test_a_program_that_changes_the_configuration_is_not_accepted(desk):
    code = f"open({str(desk.ws.root / 'agentx.toml')!r}, 'a').write('\\n'); print('Text.')"
    reason = refused(desk, code, FREE)
    assert (
        reason == "While it ran without a sandbox, agentx.toml changed, and was put back: "
        "`git log -p agentx.toml` shows how."
    )


def test_where_there_is_no_sandbox_the_user_is_told_once(desk, monkeypatch):
    monkeypatch.setattr("agentx.quality.bubblewrap.why_unavailable", lambda _path: "bwrap is missing")
    monkeypatch.setattr("agentx.quality.confine.why_unavailable", lambda: "Landlock is missing")
    desk.path.write_text(ONE, "utf-8")
    (desk.path.parent / "p.py").write_text("print('Text.')")
    told: list[str] = []
    assert desk.run(note=told.append).status == "COMPLETED"
    (note,) = told
    assert note == (
        "The programs of reporter run as you, for there is no sandbox here (bwrap is missing; Landlock is missing). "
        "Install bubblewrap, or run the pipeline in a container."
    )


SLOW = "agents: {general-purpose: {max_time_s: 1}}\nroles:\n"


@pytest.mark.parametrize("sandbox", ["true", "false"])
def test_an_endless_program_is_ended_with_all_that_it_started(desk, sandbox):
    mark = desk.path.parent / "late"
    child = f"import time; time.sleep(4); open({str(mark)!r}, 'w')"
    code = f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); time.sleep(60)"
    slow = ONE.replace("attempts: 1", f"attempts: 1\n    sandbox: {sandbox}").replace("roles:\n", SLOW)
    assert refused(desk, code, slow) == (
        "It took longer than 1 seconds and was ended; `max_time_s` of its type, under `agents` in the pipeline's "
        "file, allows more."
    )
    assert not list(Path("/proc").glob("[0-9]*/environ")) or not _runs(child)
    assert not mark.exists()


def _runs(code: str) -> bool:
    """Return whether a process has some code in its command line."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if code.encode() in entry.read_bytes():
                return True
    return False


def test_a_program_that_claims_more_than_the_engine_finds_is_not_accepted(desk):
    text = MARKED.replace("files:\n", "files:\n  draft: {path: draft.md}\n").replace(
        "writes: [{file: report, marker: DONE}]",
        "reads: [{file: draft, checks: [{sections: [Index]}]}]\n    writes: [{file: report, marker: DONE, verdict: true}]",
    )
    (desk.ws.artifacts / "draft.md").write_text("# Draft\n", "utf-8")
    assert refused(desk, "print('Verdict: PASS\\n\\n<!-- DONE -->')", text) == (
        "report.md says PASS against what was found for certain: draft.md: Section 'Index' is missing: write "
        "`## Index`, and its text below. Say FAIL."
    )


@pytest.fixture
def landlock(monkeypatch):
    """Landlock, where it works, in place of bubblewrap."""
    if confine.why_unavailable():
        pytest.skip("there is no Landlock here")
    monkeypatch.setattr("agentx.quality.bubblewrap.why_unavailable", lambda _path: "bwrap is missing")


@pytest.mark.usefixtures("landlock")
def test_under_landlock_a_program_reaches_nothing_of_the_workspace_and_leaves_no_process(desk):
    assert "It ran in the sandbox" in refused(desk, meddle(desk))
    assert desk.text("other.md") == "Other.\n"
    writing = f"print('begun', flush=True); subprocess.Popen([sys.executable, '-c', {LATER!r}])"
    (desk.path.parent / "p.py").write_text(f"import subprocess, sys\n{writing}", "utf-8")
    assert "Let it wait for what it starts." in desk.run(retry=True).failed["report"]
    assert not _runs(LATER)
    quiet = writing.replace("])", "], stdout=-3, stderr=-3)")
    (desk.path.parent / "p.py").write_text(f"import subprocess, sys\n{quiet}", "utf-8")
    ended = desk.run(retry=True)
    assert ended.status == "COMPLETED"
    assert ended.incidents == (
        "report, round 1: reporter: It left processes running when it ended; they were ended too.",
    )
