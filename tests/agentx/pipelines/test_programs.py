"""Programs and models that play a role and misbehave: nothing false is proved, and the user reads why."""

import pytest

from agentx.pipelines.runner import Ended, Runner
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
        "It printed more than 10 MB, so it was ended; `output` of the role in the pipeline's file allows more. "
        "report.md was not written."
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
    assert "more than 10 MB in one line, so it was ended; `output` of the role" in refused(
        desk, WRITE.format(text="'x' * 10_000_001"), SPOKEN
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
        ("pass", "report.md was not written."),
        ("print('half'); sys.exit(3)", "It ended with exit status 3. report.md was not written."),
        ("os.write(1, b'one\\n\\xff')", "It printed what is not UTF-8 text: the byte 0xFF in line 2."),
        ("print('x' * 9000 + chr(10) + chr(0))", "It printed what is not UTF-8 text: a NUL in line 2."),
        ("os.write(1, os.urandom(2_000_000))", "It printed what is not UTF-8 text: "),
        (
            "print('```markdown\\n# Report\\n```')",
            "report.md is inside a code block: leave out its first line, ` ```markdown `, and its last.",
        ),
        ("os.write(1, b'x' * 50_000_000)", "It printed more than 10 MB, so it was ended;"),
        (
            f"print('begun', flush=True); subprocess.Popen([sys.executable, '-c', {LATER!r}])",
            "Let it wait for what it starts.",
        ),
    ],
)
def test_what_a_program_gets_wrong_is_a_failure_that_says_so(desk, code, told):
    assert told in refused(desk, code)


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


def test_an_answer_that_was_cut_off_is_never_proved(desk):
    desk.path.write_text(ONE.replace("by: [python, p.py]", "by: model"), "utf-8")
    ended = Runner(desk.ws.engine, desk.path, lambda _name: Cut("# Report", cut_off=True)).run()
    assert ended.failed["report"] == (
        "The answer of own/cut was cut off by its output limit: let it write less, or split the task. "
        "report.md was not written."
    )
    again = Runner(desk.ws.engine, desk.path, lambda _name: Cut("# Report", cut_off=False))
    assert again.run(retry=True).status == "COMPLETED"


def test_an_answer_in_a_code_block_is_not_the_file_and_its_writer_reads_why(desk):
    desk.path.write_text(MARKED.replace("by: [python, p.py]", "by: model"), "utf-8")
    fenced = "```markdown\n# Report\n\n<!-- DONE -->\n```"
    ended = Runner(desk.ws.engine, desk.path, lambda _name: Cut(fenced, cut_off=False)).run()
    assert ended.failed["report"].startswith("report.md was not written. The answer is inside a code block:")
