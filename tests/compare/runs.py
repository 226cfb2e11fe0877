"""Runs operations in the products' environments, and keeps what they measured."""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.compare.peers import Peer
from tests.compare.synced import COMMAND, synced
from tests.eval.conversations import locomo_collections

ROOT = Path(__file__).parents[2]
_MODULES = {
    "kills": "durability",
    "syncs": "durability",
    "damage": "damage",
    "crowd": "crowd",
    "secrets": "content",
    "poison": "content",
    "replay": "replay",
    "compaction": "content",
    "size": "size",
    "load": "size",
    "recall": "recall",
}
OPERATIONS = tuple(_MODULES)
"""The operations, each of a module of ``operations``."""

BY_TURNS = {"crowd", "load"}
"""Measured of the floor right before each product, because the machine is never as fast as a minute ago."""

BY_MEANING = {"recall", "poison", "compaction"}
"""Measured with MiniLM's vectors, because what is found depends on them; the others with vectors that cost nothing."""

_FLOOR = Peer("sqlite", "sqlite")
NOT_RUN = "not run"
_SPARE_S = 360.0
_TOLD = {"name", "kind", "durability", "remarks"}


@dataclass(frozen=True)
class Runs:
    """How everything is measured.

    Attributes:
        cache: Where environments, results and scratch lie.
        address: Of the endpoint.
        data: The conversations for recall, as JSON; nothing without data.
        again: Whether to measure again what is kept.
        kept_only: Whether to measure nothing, and show what is kept.
    """

    cache: Path
    address: str
    n: int
    records: int
    limit_s: float
    data: Path | None
    again: bool
    kept_only: bool = False

    @property
    def scratch(self) -> Path:
        """Where the stores lie while they are measured; two runs do not share it."""
        return self.cache / "scratch" / str(os.getpid())

    def run(self, peer: Peer, python: str, operation: str) -> dict[str, Any]:
        """Return what an operation measured, now or earlier under the same conditions."""
        kept = self.cache / "results" / peer.key / f"{operation}.json"
        key = self._key(peer, operation)
        if kept.exists() and not self.again and operation in _MODULES:
            answer = json.loads(kept.read_text())
            if answer.get("key") == key:
                return answer
        if self.kept_only and operation in _MODULES:
            return {"error": NOT_RUN}
        print(f"{peer.key}: {operation}", file=sys.stderr, flush=True)
        answer = self._measured(peer, python, operation)
        if operation in BY_TURNS and peer.key != _FLOOR.key:
            answer["floor"] = self._measured(_FLOOR, sys.executable, operation).get("result")
        answer["key"] = key
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(answer, indent=1))
        if "error" in answer:
            print(f"{peer.key}: {operation} failed: {answer['error']}", file=sys.stderr, flush=True)
        return answer

    def _measured(self, peer: Peer, python: str, operation: str) -> dict[str, Any]:
        folder = self.scratch / f"{peer.key}-{operation}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        trace = folder.with_suffix(".trace")
        way = "minilm" if operation in BY_MEANING else "hash"
        told = {
            "folder": str(folder),
            "endpoint": f"{self.address}/{way}/v1",
            "n": self.n,
            "records": self.records,
            "limit_s": self.limit_s * (4 if operation == "recall" else 1),
            "data": str(self.data) if self.data else None,
        }
        command = [python, "-m", "tests.compare.child", peer.driver, operation, json.dumps(told)]
        if operation == "syncs":
            if not shutil.which("strace"):
                return {"result": {"skipped": "strace is missing"}}
            command = [*COMMAND, str(trace), *command]
        answer = self._child(command, folder, told["limit_s"] + _SPARE_S)
        if operation == "syncs" and "result" in answer:
            with trace.open(errors="replace") as lines:
                answer["result"] = synced(lines, str(folder))
        trace.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        return answer

    def _child(self, command: list[str], folder: Path, limit_s: float) -> dict[str, Any]:
        home = folder.parent / "home"
        home.mkdir(exist_ok=True)
        environ = {
            **{
                name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))
            },
            "HOME": str(home),
            "OPENAI_API_KEY": "none",
            "PYTHONPATH": str(ROOT),
            "AGENTX_NO_SERVER": "1",
            "ANONYMIZED_TELEMETRY": "False",
            "DO_NOT_TRACK": "1",
        }
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {limit_s:.0f} s"}
        for line in reversed(done.stdout.splitlines()):
            if line.startswith(('{"result"', '{"error"', '{"not_its_purpose"')):
                return json.loads(line)
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"error": last[:600]}

    def _key(self, peer: Peer, operation: str) -> str:
        here = Path(__file__).parent
        sources = [here / "drivers" / f"{peer.driver}.py", here / "texts.py"]
        if operation in _MODULES:
            sources.append(here / "operations" / f"{_MODULES[operation]}.py")
        held = hashlib.sha256(repr(asdict(peer)).encode())
        for source in sources:
            held.update(_meaning(source.read_text("utf-8")))
        counts = {"kills": self.n, "load": self.records, "recall": bool(self.data)}
        held.update(f"{operation} {counts.get(operation)}".encode())
        return held.hexdigest()[:16]


def _meaning(source: str) -> bytes:
    """Return what of a source decides on figures: not its form, and not what its driver tells a reader."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [
                one
                for one in node.body
                if not (
                    isinstance(one, ast.Assign)
                    and isinstance(one.targets[0], ast.Name)
                    and one.targets[0].id in _TOLD
                )
            ]
    return ast.dump(tree).encode()


def conversations(data: Path, cache: Path) -> Path | None:
    """Write LoCoMo's conversations as every product is told them; nothing if the data has none."""
    made = []
    for one in locomo_collections(data):
        first = {chunk.content_id: chunk for chunk in reversed(one.chunks)}
        speakers = sorted({chunk.actor for chunk in one.chunks})
        turns = [
            (name, "user" if first[name].actor == speakers[0] else "assistant", _said(first[name], text))
            for name, text in one.units.items()
            if name in first
        ]
        questions = [(question.text, sorted(question.gold)) for question in one.questions if question.gold]
        made.append({"turns": turns, "questions": questions})
    if not made:
        return None
    path = cache / "conversations.json"
    path.write_text(json.dumps(made))
    return path.resolve()


def _said(chunk, text: str) -> str:
    return f"{chunk.actor.partition(':')[2]} ({chunk.at[:10]}): {text}"
