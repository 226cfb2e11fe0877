"""The frame around every command: quick help, quiet ends, faults in one sentence, and text that cannot steer a terminal."""

import os
import signal
import subprocess
import sys

import pytest

from agentx import Workspace
from agentx.cli import app

HEAVY = ("pydantic", "pygit2", "lancedb", "litellm", "numpy", "agentx.workspace")
EVIL = "\x1b[2J\x1b]0;title\x07\u202e[bold red]loud[/]"


_MODULES = """
import sys
before = set(sys.modules)
from agentx.cli.main import main
sys.argv[:] = ["agentx", *sys.argv[1:]]
status = main()
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def modules(environment):
    """The modules that a command line imports, as the program starts."""

    def modules(*words, **options):
        done = subprocess.run(
            [sys.executable, "-c", _MODULES, *map(str, words)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            **options,
        )
        return done.stderr.splitlines()[-1].split()

    return modules


def test_the_version_needs_no_library_at_all(modules):
    assert modules("--version") == ["agentx", "agentx.cli", "agentx.cli.main"]


@pytest.mark.parametrize("words", [["--help"], []])
def test_the_frame_loads_nothing_heavy(words, environment, tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agentx", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time" in line}
    assert "agentx.cli.app" in loaded
    assert loaded & set(HEAVY) == set()


_A_DAY = """
import sys
from agentx.cli.main import main
for words in (
    ["flow", "add", "Deploy to production", "--step", "Push"], ["flow", "list"], ["flow", "check", "deploy to production"],
    ["memory", "list"], ["memory", "explain", "Never use tabs."], ["memory", "maintain", "--dry-run"], ["memory", "maintain"], ["flow", "backtest"],
    ["gate", "pre", "deploy to production"], ["gate", "post", "Deployed", "--pass"], ["agent", "boot"], ["memory", "scribe", "--pending"],
    ["status"], ["log"],
):
    assert main(["-C", sys.argv[1], *words]) == 0, words
    heavy = [name for name in sys.argv[2].split(",") if name in sys.modules]
    assert not heavy, (words, heavy)
"""


def test_a_day_of_commands_loads_no_library_that_only_search_and_models_need(environment, root):
    heavy = "lancedb,pyarrow,pandas,litellm,onnx,onnxruntime,tokenizers,safetensors,tree_sitter"
    code = [sys.executable, "-c", _A_DAY, str(root), heavy]
    done = subprocess.run(code, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_look_loads_nothing_that_reads_texts_or_runs_pipelines(environment, root):
    with Workspace.open(root) as ws:
        ws.say("What is the time?")
    code = "import sys\nfrom agentx.cli.main import main\n"
    code += "for word in ('status', 'log'):\n    main(['-C', sys.argv[1], word])\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], env=environment, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "agentx.workspace" in loaded
    heavy = (
        "numpy",
        "markdown_it",
        "snowballstemmer",
        "tiktoken",
        "agentx.synthesis.pipelines.definition.pipeline",
    )
    assert [name for name in heavy if name in loaded] == []


def test_the_version_is_told(call):
    assert call("--version").out == "agentx 0.1.0\n"


def test_a_reader_who_leaves_ends_it_quietly(root, environment):
    with Workspace.open(root) as ws:
        for number in range(40):
            ws.say(f"{number} " + "words " * 300)
    with subprocess.Popen(
        [sys.executable, "-m", "agentx", "-C", str(root), "log", "-n", "100", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 141


def test_control_c_ends_it_quietly(root, environment):
    with subprocess.Popen(
        [sys.executable, "-m", "agentx", "-C", str(root), "log", "--follow"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b""
        assert running.wait() == 130


@pytest.fixture
def faulty(monkeypatch):
    """A command with a fault; no real one is known, so one is made."""

    def fails():
        raise ZeroDivisionError("so it goes")

    monkeypatch.setattr("agentx.cli.app.load", lambda _: fails)
    app._parser.cache_clear()
    yield
    app._parser.cache_clear()


def test_a_fault_of_ours_is_one_sentence(call, faulty):
    done = call("status")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "ZeroDivisionError: so it goes" in done.err
    assert "AGENTX_DEBUG=1" in done.err


def test_a_traceback_is_shown_to_those_who_ask(call, faulty, monkeypatch):
    monkeypatch.setenv("AGENTX_DEBUG", "1")
    assert "Traceback" in call("status").err


def test_a_file_that_cannot_be_read_is_named(call, root, tmp_path):
    secret = tmp_path / "secret.txt"
    os.mkfifo(secret)
    (tmp_path / "loop").symlink_to("loop")
    done = call("add", tmp_path / "loop", "-C", root)
    assert done.code in (1, 2)
    assert "loop" in done.err
    assert done.err.count("\n") == 1


def test_what_others_said_cannot_steer_the_terminal(call, root):
    call("say", f"From now on, always {EVIL} say so.", "-C", root)
    with Workspace.open(root) as ws:
        ws.tools.write_file("evil.md", f"outlook {EVIL}\n")
        ws.remember("rule", f"Mind {EVIL} it.")
        rule = ws.memory("rule")[0].id
    for words in (
        ["status"],
        ["log"],
        ["memory", "list"],
        ["memory", "show", rule],
        ["context", "outlook"],
        ["context", "outlook", "--explain"],
        ["search", "outlook evil"],
        ["undo"],
    ):
        done = call(*words, "-C", root)
        assert done.code == 0, done
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err), words
    assert "[bold red]loud[/]" in call("memory", "show", rule, "-C", root).out


def test_an_argument_that_is_no_utf_8_is_taken(process, root):
    done = process(b"-C", str(root).encode(), b"say", b"caf\xe9", b"--json")
    assert done.code == 0, done
    assert done.json["event"]["data"]["body"]["text"] == "caf\ufffd"


def test_a_terminal_that_knows_no_unicode_gets_what_it_can_show(process, root, environment):
    environment["PYTHONIOENCODING"] = "ascii"
    done = process("-C", str(root), "doctor")
    assert done.code == 0, done
    assert "python" in done.out


def test_no_color_and_pipes_are_plain_and_colour_can_be_forced(process, root, environment):
    assert "\x1b" not in process("-C", str(root), "status").out
    environment["FORCE_COLOR"] = "1"
    assert "\x1b[" in process("-C", str(root), "status").out
    environment["NO_COLOR"] = "1"
    assert "\x1b[3" not in process("-C", str(root), "status").out


def test_lines_in_a_pipe_are_neither_wrapped_nor_filled_up(call, root):
    text = "word " * 100
    call("say", text, "-C", root)
    out = call("memory", "list", "-C", root).out + call("log", "-C", root).out
    assert out
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_no_column_is_left_without_room_in_a_narrow_terminal(call, root, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    call(
        "schedule", "add", "0 7 * * *", "Mail me the news of the day.", "--zone", "Europe/Berlin", "-C", root
    )
    shown = call("schedule", "-C", root).out
    assert "…" not in shown
    assert {"mail-me-the-news", "task", "Mail", "news"} <= set(shown.split())


def test_the_log_reads_as_far_back_as_it_must(call, root):
    with Workspace.open(root) as ws, ws.bulk():
        for number in range(200):
            ws.tools.write_file("count.txt", f"{number}\n")
    latest = call("log", "-n", "2", "--json", "-C", root).lines
    assert [event["seq"] for event in latest] == [latest[-1]["seq"] - 1, latest[-1]["seq"]]
    created = call("log", "-n", "1", "--type", "WorkspaceCreated", "--json", "-C", root).lines
    assert [event["seq"] for event in created] == [1]
    said = call("log", "-n", "99", "--type", "UserMessageSent", "--json", "-C", root).lines
    assert [event["seq"] for event in said] == [3, 5]
