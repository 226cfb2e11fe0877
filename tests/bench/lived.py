"""What one workspace costs in a process of its own: ``python -m tests.bench.lived PART ROOT SCRATCH ROUNDS WRITES``.

Prints what each operation took, and the memory of the process at most, as JSON. It takes turns with the processes that
measure a workspace of another size; see :mod:`tests.bench.year`.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from agentx import Workspace
from agentx.integrity.verify import verify
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.parallel_fold import fold

from .clock import Taken
from .grown import Fixed, path_of, settings, text

_SETTLE_S = 300
_WARM_UP = 2
_THREADED = ("context", "search")
"""LanceDB works for these in threads; what else threads do meanwhile, as indexing, is not the cost of a call."""

_STATED = "Please look at how payment {0} is retried, and tell me what you find."
_DEMANDED = "From now on always log payment {0} in the ledger before it leaves the shop."

Parts = dict[str, Taken]


def opened(root: Path, scratch: Path, rounds: int, writes: int) -> Parts:
    """What a person and an agent do, one after another, in one process."""
    parts: Parts = {}
    ws = Workspace.open(root, settings=settings(scratch))  # this one looks at every file of a copy
    ws.status()
    ws.close()
    parts["open"] = whole = Taken(whole=True)
    for _ in range(rounds):
        held: list[Workspace] = []
        whole.run(lambda held=held: held.append(Workspace.open(root, settings=settings(scratch))))
        held[0].close()
    with Workspace.open(root, settings=settings(scratch)) as ws:
        ws.engine.indexer._open_embedder = lambda: (Fixed(), "")
        ws.settle(_SETTLE_S)
        for name, (count, do) in _operations(ws, rounds, writes).items():
            ws.settle(_SETTLE_S)
            for turn in range(min(_WARM_UP, count)):
                do(-1 - turn)
            parts[name] = Taken(whole=name in _THREADED)
            for turn in range(count):
                parts[name].run(lambda do=do, turn=turn: do(turn))
        parts["maintain"] = Taken(whole=True)
        parts["maintain"].run(ws.maintain)
    return parts


def _operations(ws: Workspace, few: int, many: int) -> Mapping[str, tuple[int, Callable[[int], object]]]:
    """Return how often each is done, and what is done in a round."""
    files = ws.status().files
    thought = Draft(data=AgentThoughtProcess(body=Body(text(1, 250))), actor="agent:main", run="r-1")
    return {
        "append": (4 * many, lambda _turn: ws.record(thought)),
        "write_file": (many, lambda turn: ws.tools.write_file(path_of(turn * 7919 % files), text(turn))),
        "say": (many // 2, lambda turn: ws.say(_STATED.format(turn))),
        "say_demand": (few, lambda turn: ws.say(_DEMANDED.format(turn))),
        "status": (few, lambda _turn: ws.status()),
        "log": (few, lambda _turn: list(ws.events(ws.state.seq - 20))),
        "memory_list": (few, lambda _turn: ws.memory()),
        "gate": (few, lambda turn: ws.gates.before(f"deploy service {turn} to production")),
        "boot": (few, lambda _turn: ws.boot()),
        "context": (many, lambda turn: ws.get_relevant_context(text(turn, 60), deadline_ms=None)),
        "search": (many, lambda turn: ws.search(text(turn, 40))),
        "maintain_again": (few, lambda _turn: ws.maintain(dry_run=True)),
    }


def rebuilt(root: Path, _scratch: Path, rounds: int, _writes: int) -> Parts:
    """A fold of the whole history."""
    taken = Taken(whole=True)
    for _ in range(min(2, rounds)):
        taken.run(lambda: fold(root, record_codec()))
    return {"rebuild": taken}


def verified(root: Path, _scratch: Path, _rounds: int, writes: int) -> Parts:
    """An integrity check, and each of its parts."""
    taken, found = Taken(whole=True), []
    taken.run(lambda: found.append(verify(root)))
    if not found[0].sound:
        raise SystemExit(f"The workspace is not sound: {found[0].findings[0]}")
    parts = {"verify": taken}
    for check in found[0].checks:
        parts[f"verify_{check.name}"] = Taken(clock=[check.duration_ms / 1e3])
    return parts


PARTS = {"opened": opened, "rebuilt": rebuilt, "verified": verified}


def main() -> None:
    part, root, scratch, rounds, writes = sys.argv[1:]
    parts = PARTS[part](Path(root), Path(scratch), int(rounds), int(writes))
    # Not getrusage: its figure begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    assert found
    print(
        json.dumps({"mb": int(found[1]) / 1024, "parts": {name: asdict(one) for name, one in parts.items()}})
    )


if __name__ == "__main__":
    main()
