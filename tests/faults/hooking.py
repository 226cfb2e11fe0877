"""Hooks of a host while something is broken: the host always goes on, in time, and no prompt is lost or doubled."""

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from agentx.client.place import SOCKET
from agentx.hosts.host import HOSTS

from .runs import Job, Outcome
from .serving import PATIENT_S, WHOLE_S, Environ, _killed, _own_server, _pid, _words

EVENTS = {
    "claude-code": ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionStart"),
    "codex": ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionStart"),
    "gemini-cli": ("BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionStart"),
    "cursor": ("beforeSubmitPrompt", "preToolUse", "postToolUse", "stop", "sessionStart"),
    "opencode": (
        "chat.message",
        "tool.execute.before",
        "tool.execute.after",
        "session.idle",
        "session.created",
    ),
}
FAULTS = ("killed", "stopped", "stale", "full", "malformed", "huge", "unwritable", "none")

_LIMIT_S = 8.0
"""A hook that takes longer is a finding: hosts wait 10 s."""

_DENIALS = ('"deny"', '"block"', '"ask"')


def hooked(job: Job, outcome: Outcome, place: Path) -> None:
    """``at`` hooks of all hosts, each while something of ``detail`` is broken; then what they kept is recorded."""
    draw = random.Random(job.seed)
    kinds = job.detail.split("+") if job.detail else FAULTS
    kept: list[str] = []
    with _own_server(place) as environ:
        for number in range(job.at):
            host, fault = draw.choice(tuple(HOSTS)), draw.choice(kinds)
            event = EVENTS[host][0] if draw.random() < 0.5 else draw.choice(EVENTS[host])
            text = f"Hook {number} says: look at the payments."
            _with_fault(fault, environ, lambda more, before, host=host, event=event, text=text: _call(
                outcome, place, host, event, text, fault, more, before
            ))  # fmt: skip
            if event == EVENTS[host][0] and fault not in ("full", "malformed", "unwritable"):
                kept.append(text)
            outcome.survived += fault != "none"
        _drain(environ, place)
        _look(outcome, place, kept)
        outcome.judge(place / "task", {})


def _call(
    outcome: Outcome,
    place: Path,
    host: str,
    event: str,
    text: str,
    fault: str,
    environ: Environ,
    before: Callable[[], None] | None,
) -> None:
    payload = {
        "hook_event_name": event,
        "session_id": "s",
        "cwd": str(place / "task" / "artifacts"),
        "prompt": text,
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "t",
        "tool_response": "a",
    }
    if fault == "huge":
        payload["tool_response"] = payload["last_assistant_message"] = "x" * 10_000_000
    data = json.dumps(payload).encode()
    if fault == "malformed":
        data = data[: len(data) // 2]
    began = time.monotonic()
    command = [sys.executable, "-P", "-m", "agentx", "hook", host]
    try:
        done = subprocess.run(
            command,
            input=data,
            env=environ,
            capture_output=True,
            check=False,
            timeout=WHOLE_S,
            preexec_fn=before,
        )
    except subprocess.TimeoutExpired:
        outcome.findings.append(f"{host} {event}, {fault}: the hook hung")
        return
    took, said = time.monotonic() - began, done.stdout.decode(errors="replace")
    what = f"{host} {event}, {fault}"
    if took > _LIMIT_S:
        outcome.findings.append(f"{what}: the host waited {took:.1f} s")
    if done.returncode or done.stderr:
        outcome.findings.append(f"{what}: status {done.returncode}, {done.stderr.decode()[-300:]!r}")
    if said:
        try:
            json.loads(said)
        except ValueError:
            outcome.findings.append(f"{what}: answered {said[:200]!r}")
    elif host not in ("claude-code", "codex"):
        outcome.findings.append(f"{what}: answered nothing")
    if any(one in said for one in _DENIALS):
        outcome.findings.append(f"{what}: blocked the host: {said[:200]}")


def _with_fault(
    fault: str, environ: Environ, call: Callable[[Environ, Callable[[], None] | None], None]
) -> None:
    """Break something, call a hook, and mend it."""
    there = Path(environ["AGENTX_RUNTIME_DIR"])
    match fault:
        case "killed":
            _killed(environ)
            call(environ, None)
        case "stopped":
            pid = _pid(environ)
            if pid:
                os.kill(pid, signal.SIGSTOP)
            try:
                call(environ, None)
            finally:
                if pid:
                    os.kill(pid, signal.SIGCONT)
                    (there / "unresponsive").unlink(missing_ok=True)
        case "stale":
            _killed(environ)
            there.mkdir(mode=0o700, exist_ok=True)
            (there / SOCKET).unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(f"{there}/{SOCKET}")
            call(environ, None)
        case "full":
            call({**environ, "AGENTX_RUNTIME_DIR": "/proc/none"}, _full)
        case "unwritable":
            call({**environ, "AGENTX_RUNTIME_DIR": "/proc/none", "AGENTX_STATE_DIR": "/proc/none"}, None)
        case _:
            call(environ, None)


def _full() -> None:
    """Let this process write to no file, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _drain(environ: Environ, place: Path) -> None:
    """Have a server record what was kept."""
    end = time.monotonic() + PATIENT_S * 3
    command = [sys.executable, "-P", "-m", "agentx", "hook", "--warm", str(place / "task")]
    while time.monotonic() < end:
        subprocess.run(command, env=environ, check=False, timeout=WHOLE_S)
        if not list(Path(environ["AGENTX_STATE_DIR"]).glob("hooks/spool/*/*.json")):
            return


def _look(outcome: Outcome, place: Path, kept: list[str]) -> None:
    often = Counter(_words(place / "task"))
    outcome.acknowledged += len(kept)
    for text in kept:
        if not often[text]:
            outcome.lost += 1
            outcome.findings.append(f"LOST: the prompt {text!r}")
    outcome.findings += [f"recorded {number} times: {text!r}" for text, number in often.items() if number > 1]
