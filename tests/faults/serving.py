"""A server that dies: clients of every kind write and read meanwhile, and the next one to come starts it again."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from agentx.client.client import Client, RequestFailed, ServerLost, ServerUnavailable
from agentx.client.place import LOCK, SOCKET
from agentx.storage.events.types import UserMessageSent
from agentx.storage.log.history import History
from agentx.synthesis.memory.record_codec import record_codec

from . import disks
from .children import Child, Tell, listen, start
from .runs import Job, Outcome

MESSAGES = 6
"""So many each client has to say."""

PATIENT_S = 20.0
"""A single request that takes longer is a finding, whatever dies meanwhile."""

WHOLE_S = 240.0
_ATTEMPTS = 40
_OTHER_VERSION, _LEAVING = -32001, -32004

Environ = dict[str, str]
Say = Callable[[Path, Environ, str], "dict[str, Any] | None"]


def served(job: Job, outcome: Outcome, place: Path) -> None:
    """``at`` kills of the server at moments of chance, while clients of the kinds in ``detail`` write and read."""
    draw = random.Random(job.seed)
    with _own_server(place) as environ:
        crowd = [start(partial(_client, place / "task", environ, f"{kind}{number}", kind))
                 for number, kind in enumerate(job.detail.split("+"))]  # fmt: skip
        end = time.monotonic() + WHOLE_S
        while outcome.survived < job.at and any(child.status is None for child in crowd):
            listen(crowd, min(end, time.monotonic() + draw.uniform(0.02, 0.9)))
            outcome.survived += _killed(environ)
        listen(crowd, end)
        _judge(outcome, place, crowd)


def stale(job: Job, outcome: Outcome, place: Path) -> None:
    """What a dead server left: its socket, its lock, or both; then clients come."""
    with _own_server(place) as environ:
        there = Path(environ["AGENTX_RUNTIME_DIR"])
        there.mkdir(mode=0o700)
        if "socket" in job.detail:
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(f"{there}/{SOCKET}")
        if "lock" in job.detail:
            (there / LOCK).write_text("999999\n")
        crowd = [start(partial(_client, place / "task", environ, kind, kind)) for kind in CLIENTS]
        listen(crowd, time.monotonic() + WHOLE_S)
        outcome.survived = 1
        _judge(outcome, place, crowd)


def twins(job: Job, outcome: Outcome, place: Path) -> None:
    """So many servers start at once: one of them serves, the others end and say why."""
    command = [sys.executable, "-P", "-m", "agentx", "serve"]
    with _own_server(place) as environ, contextlib.ExitStack() as ending:
        many = [
            ending.enter_context(subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True))
            for _ in range(int(job.detail))
        ]
        ending.callback(lambda: [one.kill() for one in many])
        end = time.monotonic() + PATIENT_S
        while sum(one.poll() is None for one in many) > 1 and time.monotonic() < end:
            time.sleep(0.05)
        running = [one for one in many if one.poll() is None]
        if len(running) != 1:
            outcome.findings.append(f"{len(running)} of {len(many)} servers run")
        told = [one.stderr.read() for one in many if one not in running and one.stderr]
        outcome.findings += [
            f"a second server ended with {said!r}" for said in told if "runs already" not in said
        ]
        crowd = [start(partial(_client, place / "task", environ, kind, kind)) for kind in CLIENTS]
        listen(crowd, time.monotonic() + WHOLE_S)
        outcome.survived = len(told)
        _judge(outcome, place, crowd)


def versions(job: Job, outcome: Outcome, place: Path) -> None:
    """Clients of other code make the server finish again and again, while others write."""
    draw = random.Random(job.seed)
    with _own_server(place) as environ:
        crowd = [start(partial(_client, place / "task", environ, kind, kind)) for kind in CLIENTS]
        while outcome.survived < job.at and any(child.status is None for child in crowd):
            listen(crowd, time.monotonic() + draw.uniform(0.1, 0.6))
            with contextlib.suppress(OSError):
                told = _exchange(environ, {"id": 1, "method": "hello", "agentx": "another version"})
                outcome.survived += "error" in told
        listen(crowd, time.monotonic() + WHOLE_S)
        _judge(outcome, place, crowd)


def crammed(job: Job, outcome: Outcome, place: Path) -> None:
    """The server's disk has ``detail`` KB of room, then more: what is refused is refused in a sentence."""
    disk = place / "disk"
    with disks.small(place, disk) as mounted, _own_server(place) as environ:
        if not mounted:
            return  # only root may; the survivors are counted, so this shows
        disks.fill(int(job.detail))(disk)
        crowd = [start(partial(_crammed, disk / "task", environ, disk))]
        listen(crowd, time.monotonic() + WHOLE_S)
        outcome.survived = 1
        _stop(environ)
        _judge(outcome, disk, crowd)


# --- clients ---------------------------------------------------------------------------------------------------------


def _client(root: Path, environ: Environ, name: str, kind: str, tell: Tell) -> None:
    """Say a number of things, each until it is acknowledged or its outcome is unknown, and read them again."""
    for number in range(MESSAGES):
        text = f"{name} says number {number}."
        began = time.monotonic()
        event = CLIENTS[kind](root, environ, text)
        if event is not None:
            tell({"ack": (event["seq"], event["hash"]), "text": text})
        else:
            tell({"unknown": text})
        if (took := time.monotonic() - began) > PATIENT_S:
            tell({"finding": f"{kind}: one message took {took:.0f} s"})


def _crammed(root: Path, environ: Environ, disk: Path, tell: Tell) -> None:
    for number in range(60):
        text = f"number {number}: " + "much " * 200
        try:
            with Client.connect(environ) as client:
                event = client.call("say", workspace=str(root), text=text)
        except (RequestFailed, ServerUnavailable) as error:
            tell({"refused": f"{type(error).__name__}: {error}"})
            if isinstance(error, RequestFailed) and "A fault in AgentX itself" in str(error):
                tell({"finding": f"no sentence for a full disk: {error}"})
            break
        tell({"ack": (event["seq"], event["hash"]), "text": text})
    disks.mend(disk)
    _client(root, environ, "afterwards", "python", tell)


def _by_python(root: Path, environ: Environ, text: str) -> dict[str, Any] | None:
    key = uuid.uuid4().hex
    for _ in range(_ATTEMPTS):
        try:
            with Client.connect(environ) as client:
                event: dict[str, Any] = client.call("say", workspace=str(root), text=text, key=key)
                after = client.call("events", workspace=str(root), after=event["seq"] - 1, limit=1)
        except (ServerLost, ServerUnavailable):
            continue
        except RequestFailed as error:
            if error.code in (_OTHER_VERSION, _LEAVING):
                continue
            raise
        assert after["events"][0]["hash"] == event["hash"], "an acknowledged event is not read"
        return event
    raise AssertionError("never acknowledged")


def _by_hand(root: Path, environ: Environ, text: str) -> dict[str, Any] | None:
    """As a hook in any language may: one line over the socket, and the same key for each attempt."""
    request = {
        "id": 7,
        "method": "say",
        "params": {"workspace": str(root), "text": text, "key": uuid.uuid4().hex},
    }
    for _ in range(_ATTEMPTS):
        try:
            told = _exchange(environ, request)
        except (OSError, ValueError):
            with contextlib.suppress(ServerUnavailable):
                Client.connect(environ).close()
            continue
        if "result" in told:
            result: dict[str, Any] = told["result"]
            return result
        assert told["error"]["code"] in (_OTHER_VERSION, _LEAVING), told
        time.sleep(0.05)
    raise AssertionError("never acknowledged")


def _exchange(environ: Environ, request: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(PATIENT_S)
        one.connect(f"{environ['AGENTX_RUNTIME_DIR']}/{SOCKET}")
        one.sendall(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
        with one.makefile("rb") as heard:
            told: dict[str, Any] = json.loads(heard.readline())
            return told


def _by_line(root: Path, environ: Environ, text: str) -> dict[str, Any] | None:
    command = [sys.executable, "-P", "-m", "agentx", "-C", str(root), "say", text, "--json"]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=2 * PATIENT_S, check=False
    )
    if "unknown whether" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    seq = json.loads(done.stdout)["event"]["seq"]
    there = (
        event for event in History(root, record_codec()).read(on_damage=lambda _: None) if event.seq == seq
    )
    event = next(there, None)
    return {"seq": seq, "hash": event.hash if event else "gone already"}


CLIENTS: dict[str, Say] = {"python": _by_python, "hand": _by_hand, "line": _by_line}


# --- the server, and the judgement -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _own_server(place: Path) -> Iterator[Environ]:
    """An environment in which a server is started on demand, which ends with the body."""
    environ = {name: value for name, value in os.environ.items() if name != "AGENTX_NO_SERVER"} | {
        "AGENTX_RUNTIME_DIR": str(place / "rt"),
        "AGENTX_CACHE_DIR": str(place / "no-models"),
        "AGENTX_STATE_DIR": str(place / "state"),
    }
    try:
        yield environ
    finally:
        _stop(environ)


def _stop(environ: Environ) -> None:
    """End the server, and wait until it holds its lock no longer."""
    end = time.monotonic() + PATIENT_S
    while (pid := _pid(environ)) and time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.05)
    _killed(environ)


def _pid(environ: Environ) -> int:
    """The process of the server; 0 if none runs."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(Path(environ["AGENTX_RUNTIME_DIR"], LOCK).read_text())
        own = f"AGENTX_RUNTIME_DIR={environ['AGENTX_RUNTIME_DIR']}".encode()
        if own in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return pid
    return 0


def _killed(environ: Environ) -> bool:
    pid = _pid(environ)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pid)


def _judge(outcome: Outcome, place: Path, crowd: list[Child]) -> None:
    acknowledged: dict[int, str] = {}
    said, unknown = list[str](), set[str]()
    for child in crowd:
        child.finish()
        acknowledged |= outcome.hear(child)
        outcome.findings += [message["finding"] for message in child.told if "finding" in message]
        said += [message["text"] for message in child.told if "ack" in message]
        unknown |= {message["unknown"] for message in child.told if "unknown" in message}
    root = place / "task"
    often = Counter(_words(root))
    outcome.findings += [
        f"LOST: {text!r} was acknowledged and is not there" for text in said if not often[text]
    ]
    outcome.findings += [
        f"recorded {often[text]} times: {text!r}" for text in {*said, *unknown} if often[text] > 1
    ]
    outcome.judge(root, acknowledged)


def _words(root: Path) -> Iterator[str]:
    for event in History(root, record_codec()).read(on_damage=lambda _: None):
        if isinstance(event.data, UserMessageSent):
            yield event.data.body.text
