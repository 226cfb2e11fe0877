"""A process that does one thing to a workspace and dies in the middle of it, for the state machine.

It reads one job a line, does each in a child that it forks (it has no threads itself, so that is safe), and answers whether
the thing was acknowledged. ``["/root", 7, "write", ["a.txt", "text"]]`` dies before the seventh step that changes a file;
a step of -2 is the second one behind the append.
"""

import json
import os
import sys
from pathlib import Path

from agentx import Workspace
from agentx.settings import Settings
from tests.faults.children import Tell, start
from tests.faults.disk import Disk, Fault


def settings(root: Path) -> Settings:
    """An environment without a model, so that nothing heavy is loaded."""
    return Settings(environ=dict(os.environ), cache_dir=root / "no-models", state_dir=root.parent / "state")


def do(ws: Workspace, name: str, arguments: list[str]) -> None:
    """One of the things that the machine does."""
    if name == "say":
        ws.say(*arguments)
    elif name == "write":
        ws.tools.write_file(*arguments)
    elif name == "delete":
        ws.tools.delete_file(*arguments)
    elif name == "move":
        ws.tools.move_file(*arguments)
    elif name == "undo":
        ws.undo()
    elif name == "restore":
        ws.restore(".", int(arguments[0]))
    else:
        ws.flush()


class BehindTheAppend(Disk):
    """Dies some steps behind the first line that is written to the log: where most can be lost, and steps are few."""

    def __init__(self, root: Path, steps: int) -> None:
        super().__init__(root, Fault())
        self._behind = steps

    def step(self, name, place, run, half=None):
        if self._behind and name == "write" and place.endswith("/history.jsonl"):
            self._fault, self._behind = Fault("kill", self.steps + 1 + self._behind), 0
        return super().step(name, place, run, half)


def die(root: Path, step: int, name: str, arguments: list[str], tell: Tell) -> None:
    """Open the workspace, do it, and be gone without closing anything, at the latest when it is done."""
    ws = Workspace.open(root, settings=settings(root))
    disk = (
        Disk(root, Fault("kill" if step % 2 else "tear", step)) if step > 0 else BehindTheAppend(root, -step)
    )
    disk.install()
    do(ws, name, arguments)
    tell({"done": True})
    os._exit(0)


def main() -> None:
    """Answer jobs until there are no more."""
    for line in sys.stdin:
        root, step, name, arguments = json.loads(line)
        child = start(lambda tell, job=(Path(root), step, name, arguments): die(*job, tell))
        told = child.finish()
        answer = {"done": any("done" in one for one in told), "hung": child.hung}
        answer["errors"] = [one["error"] for one in told if "error" in one]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
