import io
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.settings import read_settings
from agentx.trust.trust import Trust

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Done:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with a rule, a candidate, files and an undone moment; copied for each test."""
    root = tmp_path_factory.mktemp("template") / "report"
    with Workspace.create(root, title="Quarterly report") as ws:
        ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue grows.\n")
        ws.say("From now on, never create a requirements.txt file.")
        ws.say("please don't use emojis")
        ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue shrinks.\n")
        assert [item.id for item in ws.memory("constraint")] == ["c-3"]
        assert [item.id for item in ws.memory(status="candidate")] == ["c-5"]
    return root


@pytest.fixture
def root(template, tmp_path):
    copy = Path(shutil.copytree(template, tmp_path / "report", symlinks=True))
    Trust.read(copy, read_settings()).grant("trusted", commands=True)
    return copy


@pytest.fixture
def trusted():
    """Trust a workspace as it is, after a test has changed its settings by hand."""
    return lambda root: Trust.read(root, read_settings()).grant("trusted", commands=True)


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Call the command line in this process, from an empty directory."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def call(*words):
        code = main([str(word) for word in words])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def program(programs):
    """The path of the program ``agentx``."""
    return programs / "agentx"


@pytest.fixture
def process(program, environment, tmp_path):
    """Call the command line as a process of its own, as a person does."""

    def process(*words, **options):
        done = subprocess.run(
            [program, *words],
            cwd=options.pop("cwd", tmp_path),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **options,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return process


@pytest.fixture
def script(tmp_path):
    """Write a script for the model."""

    def script(*turns, name="turns.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
        return f"script:{path}"

    return script


@pytest.fixture
def use(root, trusted):
    """Set the model of the workspace."""

    def use(name, **more):
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, **more}.items()]
        with (root / "agentx.toml").open("a") as file:
            file.write("\n[model]\n" + "\n".join(lines) + "\n")
        trusted(root)

    return use
