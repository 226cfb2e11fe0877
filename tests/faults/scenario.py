"""What the processes do that are going to die: everything that the write path can, one thing after the other."""

import contextlib
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from agentx import Workspace
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import AgentMessageSent, Body, Draft
from agentx.storage.log.history import SEGMENT_BYTES

from .children import Tell
from .oracle import PERSON, settings

Work = Callable[[Path, Tell], None]

FILLER = Draft(data=AgentMessageSent(body=Body("0123456789abcdef " * 85)), actor="agent:main")
"""An event that only takes room."""

_NEARLY_FULL = SEGMENT_BYTES - 9_000
"""The live log is filled so far, and is sealed amid the work."""


def make(root: Path) -> None:
    """The workspace on which the work is done: some files, some memory, and a log that is about to be sealed."""
    with Workspace.create(root, title="A task", settings=settings(root)) as ws:
        ws.say("Never use tabs in Python files.")
        for name in ("kept.txt", "changed.txt", "gone.txt", "moved.txt", "deep/er/file.txt", PERSON):
            ws.tools.write_file(name, f"{name}\n")
        while (root / "history.jsonl").stat().st_size < _NEARLY_FULL:
            ws.record(FILLER)


def tasks(ws: Workspace, material: Path) -> list[Callable[[], object]]:
    """The things to do, each acknowledged when it returns."""
    tools = ws.tools
    return [
        lambda: ws.say("We always write in plain English."),
        lambda: tools.write_file("new/place.txt", "new\n"),
        lambda: tools.write_file("changed.txt", "changed\n"),
        lambda: tools.delete_file("gone.txt"),
        lambda: tools.move_file("moved.txt", "deep/moved.txt"),
        lambda: ws.say("0123456789abcdef " * 1_000),
        lambda: ws.add([material]),
        lambda: [ws.record(FILLER) for _ in range(5)],
        ws.flush,
        lambda: _edit(ws.artifacts / PERSON),
        lambda: tools.write_file(PERSON, "edited by the engine\n"),
        lambda: tools.write_file("changed.txt", "changed again\n"),
        ws.undo,
        lambda: ws.restore("deep/moved.txt", ws.state.seq),
        lambda: tools.delete_file("deep/er/file.txt"),
        ws.close,
    ]


def _edit(path: Path) -> None:
    """What a person's editor does: a disk that refuses is that person's to see."""
    with contextlib.suppress(OSError):
        path.write_text("edited by hand\n")


def create(root: Path, tell: Tell) -> None:
    """Make a workspace."""
    ws = Workspace.create(root, title="A task", settings=settings(root))
    acknowledge(ws, 0, tell)
    ws.close()


def make_again(root: Path, tell: Tell) -> None:
    """What a person does where making it was cut off: open it; where that is refused, remove it and make it anew."""
    try:
        Workspace.open(root, settings=settings(root)).close()
    except AgentXError as error:
        tell({"refused": f"{type(error).__name__}: {error}"})
        shutil.rmtree(root, ignore_errors=True)
        create(root, tell)


def only_open(root: Path, tell: Tell) -> None:
    """Open the workspace and close it."""
    with quiet(root) as ws:
        acknowledge(ws, 0, tell)


def work(root: Path, tell: Tell, *, clean: bool = True, deferring: bool = True) -> None:
    """Open the workspace and do everything; where it is not to end cleanly, die before the last flush."""
    with quiet(root, deferring=deferring) as ws:
        last = acknowledge(ws, 0, tell)
        *before, end = tasks(ws, root.parent / "material")
        for task in before:
            task()
            last = acknowledge(ws, last, tell)
        if not clean:
            os.kill(os.getpid(), signal.SIGKILL)
        end()


def work_against_refusals(
    root: Path, tell: Tell, mend: Callable[[], None], refuse: Callable[[], None] = lambda: None
) -> None:
    """Do everything though the disk refuses something; then, when it refuses nothing any more, something again."""
    try:
        with quiet(root) as ws:
            refuse()
            for task in tasks(ws, root.parent / "material"):
                _try(ws, task, tell)
            mend()
    except AgentXError as error:
        tell({"refused": f"{type(error).__name__}: {error}"})
        mend()
    with quiet(root) as ws:
        _try(ws, lambda: ws.tools.write_file("afterwards.txt", "it works again\n"), tell)


def _try(ws: Workspace, task: Callable[[], object], tell: Tell) -> None:
    before = ws.engine.log.state.seq
    try:
        result = task()
    except AgentXError as error:
        tell({"refused": f"{type(error).__name__}: {error}"})
        return
    except Exception:
        tell({"error": traceback.format_exc(limit=-8)})
        return
    found = result if isinstance(result, list) else [result]  # `record` returns one of one
    found = [one[0] if isinstance(one, list) else one for one in found]
    wanted = {one.seq for one in found if hasattr(one, "seq")} - {0}
    for event in ws.events(after=before):
        if event.seq in wanted:
            tell({"ack": (event.seq, event.hash)})


def acknowledge(ws: Workspace, last: int, tell: Tell) -> int:
    """Tell of every event behind ``last``: all that this process, the only one, has been given back."""
    event = None
    for event in ws.events(after=last):
        tell({"ack": (event.seq, event.hash)})
    return event.seq if event else last


@contextlib.contextmanager
def quiet(root: Path, *, deferring: bool = True) -> Iterator[Workspace]:
    """A workspace whose idle threads do nothing, so that each run takes the same steps.

    Commits are written together, as in a running workspace, or each by itself.
    """
    ws = Workspace.open(root, settings=settings(root))
    ws._keeper.stop()
    if deferring:
        ws.engine.write_path.defer(lambda: None)
    try:
        yield ws
    finally:
        with contextlib.suppress(AgentXError):
            ws.close()


def make_material(folder: Path) -> None:
    """Some files that are added at once."""
    for number in range(12):
        path = folder / f"part{number % 3}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"material {number}\n" * 20)
