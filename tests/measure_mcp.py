"""Measure what a thousand calls over MCP cost: memory and processor time of both processes, first and last hundreds.

    python -m tests.measure_mcp [CALLS]

The SDK's client calls `agentx mcp`, which asks a server of its own. Latency is processor time of the host's process and
the server together, so that another load on the machine does not count.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from agentx import Workspace
from agentx.client.client import Client as ServerClient
from agentx.settings import read_settings

CALLS = [
    ("context", {"message": "deploy to staging"}),
    ("search", {"query": "staging server"}),
    ("check", {"action": "deploy", "tool": "Bash", "arguments": {"command": "make deploy"}}),
    ("tasks", {}),
    ("history", {"limit": 20}),
    ("read_memory", {"kind": "constraint"}),
    ("remember", {"text": "Staging is in Oslo.", "quote": "our staging server lives in Oslo"}),
    ("read_memory", {"id": "c-2"}),
]
BLOCK = 100
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> float:
    """The processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def resident(pid: int) -> float:
    """Its resident memory, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def child() -> int:
    """The process that serves MCP."""
    for path in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in path.read_text().split():
            if b"mcp" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return int(pid)
    raise RuntimeError("No process serves MCP.")


async def measure(root: str, environ: dict[str, str], calls: int) -> None:
    """Print a line for each block of calls."""
    command = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "agentx", "mcp", "-C", root], env=environ
    )
    async with Client(command) as client:
        await client.call_tool("context", {})
        with ServerClient.connect(environ, start=False) as server:
            pids = {"host's process": child(), "server": server.call("hello")["pid"]}
        began = {name: spent(pid) for name, pid in pids.items()}
        print("calls   " + "   ".join(f"{name}: MB, ms a call" for name in pids) + "   wall ms")
        for done in range(0, calls, BLOCK):
            then = time.perf_counter()
            for number in range(BLOCK):
                name, arguments = CALLS[number % len(CALLS)]
                made = await client.call_tool(name, arguments)
                assert not made.is_error, made
            wall = (time.perf_counter() - then) / BLOCK * 1_000
            row = [f"{done + BLOCK:>5}"]
            for name, pid in pids.items():
                now = spent(pid)
                row.append(f"{resident(pid):>8.1f} MB {(now - began[name]) / BLOCK * 1_000:>6.1f} ms")
                began[name] = now
            print("   ".join(row), f"  {wall:.1f}")


def main() -> None:
    """Make a workspace, and measure."""
    calls = int(sys.argv[1]) if sys.argv[1:] else 1_000
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/tmp") as runtime:
        environ = {
            **os.environ,
            "AGENTX_NO_SERVER": "",
            "AGENTX_RUNTIME_DIR": f"{runtime}/rt",
            "AGENTX_STATE_DIR": f"{folder}/state",
            "AGENTX_CACHE_DIR": f"{folder}/no-models",
        }
        with Workspace.create(f"{folder}/task", settings=read_settings(environ)) as ws:
            ws.say("Never deploy on a Friday. By the way, our staging server lives in Oslo.")
            for number in range(200):
                ws.say(f"Page {number} of the report is about the harbour of town {number}.")
        try:
            asyncio.run(measure(f"{folder}/task", environ, calls))
        finally:
            with ServerClient.connect(environ, start=False) as server:
                server.call("server.stop")


if __name__ == "__main__":
    main()
