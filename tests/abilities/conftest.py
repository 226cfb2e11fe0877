"""The doors that users have: the command line, Python's public names, hooks, MCP and HTTP. Nothing else is used here.

A test in this folder says in the first line of its docstring which ability it holds. It imports from ``agentx`` alone,
never from a module inside it, and it asserts only what a user relies on: a status, a field, a file, the user's own words.
So the parts behind the doors can be replaced, and a loss is seen.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

PAYLOADS = Path(__file__).resolve().parents[1] / "payloads"
"""What real hosts wrote to their hooks."""

OLD_PROJECT = {
    "claude-code": "parcel",
    "codex": "p-codex",
    "gemini-cli": "p-gemini",
    "opencode": "p-opencode",
}
"""The directory below /home/u that the payloads of a host name as the project."""

CLOCK = Path(__file__).resolve().parent / "clock"
"""On Python's path, it puts the clock forward by the seconds in ``TESTS_CLOCK_LATER_S``."""

_WAIT_S = 60.0


@dataclass(frozen=True)
class Done:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Its output as one JSON document a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """The program ``agentx``, called in a directory."""

    def __init__(self, program: Path, cwd: Path, environ: Mapping[str, str]):
        self.program, self.cwd, self.environ = program, cwd, dict(environ)

    def __call__(self, *words: object, stdin: str | bytes = "", ok: bool = True) -> Done:
        """Call it; a status other than 0 fails the test, unless ``ok`` is false."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [str(self.program), *(str(word) for word in words)],
            cwd=self.cwd,
            env=self.environ,
            input=given,
            capture_output=True,
            check=False,
            timeout=_WAIT_S,
        )
        found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert found.code == 0 or not ok, f"agentx {' '.join(map(str, words))}: {found}"
        return found

    def json(self, *words: object, **options: Any) -> Any:
        """Call it with ``--json`` and read what it printed."""
        return self("--json", *words, **options).json

    def events(self, *types: str) -> list[dict[str, Any]]:
        """The lines of the history of these types, or all, oldest first, as the files hold them."""
        found = [
            json.loads(line)
            for file in [*sorted(self.cwd.glob("history/*/*.jsonl")), self.cwd / "history.jsonl"]
            if file.exists()
            for line in file.read_text("utf-8").splitlines()
        ]
        return [event for event in found if not types or event["type"] in types]

    def at(self, cwd: Path) -> "CommandLine":
        """The same program in another directory."""
        return CommandLine(self.program, cwd, self.environ)

    def later(self, **span: float) -> "CommandLine":
        """The program when so much time has passed, in words of ``timedelta``; it starts as a process of its own."""
        environ = {
            **self.environ,
            "PYTHONPATH": f"{CLOCK}{os.pathsep}{self.environ['PYTHONPATH']}",
            "TESTS_CLOCK_LATER_S": str(timedelta(**span).total_seconds()),
        }
        return CommandLine(Path(sys.executable).with_name("agentx"), self.cwd, environ)

    def write(self, name: str, text: str) -> Path:
        """Write a file as a person does, with an editor."""
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path


@pytest.fixture(autouse=True, scope="session")
def _no_model(tmp_path_factory):
    """No embedding model, also where a test opens a workspace in its own process: search goes by words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTX_CACHE_DIR", str(tmp_path_factory.mktemp("no-models")))
        yield


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    """The environment of a user without a server and without an embedding model."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "AGENTX_CACHE_DIR": str(tmp_path / "no-models"),
        "AGENTX_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def shell(programs, tmp_path, environ) -> CommandLine:
    """The command line in an empty directory that is no workspace."""
    folder = tmp_path / "work"
    folder.mkdir()
    return CommandLine(programs / "agentx", folder, environ)


@pytest.fixture
def agentx(shell) -> CommandLine:
    """The command line inside a new workspace, ``task``."""
    shell("init", "task", "--title", "A task")
    return shell.at(shell.cwd / "task")


@pytest.fixture
def script(tmp_path):
    """Write the words of a scripted model, one turn a line; returns its name for ``model.name``."""

    def script(*turns: Mapping[str, Any], name: str = "turns.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
        return f"script:{path}"

    return script


@pytest.fixture(scope="session")
def runtime():
    """The environment of a user whose server runs, and answers commands, hooks and the inspector."""
    with tempfile.TemporaryDirectory(prefix="agentx-ab-", dir="/tmp") as name:
        environ = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "AGENTX_NO_SERVER": "",
            "AGENTX_RUNTIME_DIR": f"{name}/rt",
            "AGENTX_CACHE_DIR": f"{name}/no-models",
            "AGENTX_STATE_DIR": f"{name}/state",
            "AGENTX_HOOK_WAIT_S": "30",
        }
        command = [sys.executable, "-P", "-m", "agentx", "serve"]
        with subprocess.Popen(
            command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            deadline = time.monotonic() + _WAIT_S
            while not any(Path(f"{name}/rt").glob("*sock*")):
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.05)
            yield environ
            server.terminate()
            server.wait(_WAIT_S)


@pytest.fixture
def served(programs, runtime, tmp_path) -> CommandLine:
    """The command line of a user whose server runs, in a project of Git."""
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    (project / "postage.py").write_text("def postage():\n    return 1\n")
    return CommandLine(programs / "agentx", project, runtime)


class Hooks:
    """The hooks of a host in a project, called with payloads that the real host wrote."""

    def __init__(self, host: str, command: CommandLine):
        self.host, self.command = host, command

    def payload(self, name: str, **changes: Any) -> dict[str, Any]:
        """A recorded payload, moved into the project, with some fields changed."""
        text = (PAYLOADS / self.host / f"{name}.json").read_text("utf-8")
        text = text.replace(f"/home/u/{OLD_PROJECT[self.host]}", str(self.command.cwd))
        return {**json.loads(text), **changes}

    def __call__(self, name: str, **changes: Any) -> dict[str, Any]:
        """Call the hook as the host does; what it is answered, as JSON."""
        sent = json.dumps(self.payload(name, **changes))
        done = self.command("hook", self.host, stdin=sent)
        return json.loads(done.out) if done.out.strip() else {}


@pytest.fixture
def hooks(served):
    """Install beside a host in the project, and give its hooks."""

    def hooks(host: str) -> Hooks:
        served("install", host, "--yes")
        return Hooks(host, served)

    return hooks


@dataclass(frozen=True)
class Page:
    """What a browser asks of the inspector."""

    url: str

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        parts = urlsplit(self.url)
        fields = {"authorization": f"Bearer {parts.fragment}", **headers}
        sent = None if body is None else json.dumps(body)
        if sent is not None:
            fields["content-type"] = "application/json"
        with closing(
            http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_WAIT_S)
        ) as connection:
            connection.request(method, path, sent, fields)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def get(self, path: str, status: int = 200) -> Any:
        """The answer to a question, as JSON."""
        found, body = self.send("GET", path)
        assert found == status, body
        return json.loads(body)


@pytest.fixture
def inspect():
    """Open the inspector of a workspace on a user's server; its page and the identifier of the workspace in paths."""

    def inspect(command: CommandLine) -> tuple[Page, str]:
        page = Page(command.json("inspect", ".", "--no-open")["url"])
        (found,) = page.get("/inspect/api/workspaces")["workspaces"]
        return page, str(found["id"])

    return inspect


@pytest.fixture
def mcp(programs):
    """Call tools of ``agentx mcp`` over its standard streams, each with its arguments; gives their results."""
    from mcp import Client, StdioServerParameters

    def mcp(command: CommandLine, *calls: tuple[str, Mapping[str, Any]], use=None) -> list[Any]:
        async def work() -> list[Any]:
            parameters = StdioServerParameters(
                command=str(command.program), args=["mcp", "-C", str(command.cwd)], env=command.environ
            )
            async with asyncio.timeout(_WAIT_S), Client(parameters, mode="auto") as client:
                if use is not None:
                    return [await use(client)]
                return [await client.call_tool(name, dict(arguments)) for name, arguments in calls]

        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(work())

    return mcp
