"""What it costs to start: to fold a long history, to open, to import, to show the help."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from tests.figures import Figure

from .clock import Taken, in_turns
from .grown import settings, with_events
from .product import ROOT
from .scale import Scale
from .turns import hand_over

_OPENINGS = 7
_FOLDS = 2
_STARTS = 10

_FOLD = """
import json, re, sys, time
from pathlib import Path
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.parallel_fold import fold
start = time.perf_counter()
state = fold(Path(sys.argv[1]), record_codec())
seconds = time.perf_counter() - start
# Not getrusage: its figure begins with that of the process that started this one.
peak_kb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([state.seq, seconds, peak_kb / 1024]))
"""


def _run(*command: str) -> str:
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def long_history(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Uses the workspace that was measured before, where there is one."""
    root = next(scratch.glob(f"events-{scale.many_events}-of-*[0-9]"), None)
    if root is None:
        ws = with_events(scratch, scale.many_events, scale.few_files)
        root = ws.root
        ws.close()
    folded = []
    for _ in range(_FOLDS):
        hand_over()
        folded.append(json.loads(_run("-c", _FOLD, str(root))))
    events, seconds, memory = min(folded, key=lambda one: one[1])
    said = f"rebuild of {events:,} events (parse, check the chain, fold)"
    promised = (150_000, 400_000) if scale.many_events >= 1_000_000 else (None, None)
    yield Figure(
        "rebuild_events_per_s", f"{said}, events/s", events / seconds, *promised, more_is_better=True
    )
    yield Figure("rebuild_peak_mb", "  its memory at most, MB", memory, 300, 300)
    taken, opened = Taken(), []
    for _ in range(_OPENINGS):
        taken.run(lambda: opened.append(Workspace.open(root, settings=settings(scratch))))
        opened.pop().close()
    said = f"open with a snapshot, {events:,} events, p50, ms"
    beside, processor = f"processor {taken.processor_ms:.0f} ms", taken.processor_ms
    yield Figure("open_p50_ms", said, taken.median_ms, 100, 30, beside=beside, processor=processor)


def starts(_scratch: Path, _scale: Scale) -> Iterator[Figure]:
    taken = in_turns(
        {
            "python": lambda _turn: _run("-c", "pass"),
            "import": lambda _turn: _run("-c", "import agentx"),
            "workspace": lambda _turn: _run("-c", "from agentx import Workspace"),
            "help": lambda _turn: _run("-m", "agentx", "--help"),
        },
        _STARTS,
    )
    python, whole, face, shown = (one.median_ms / 1e3 for one in taken.values())
    beside = f"Python alone {python:.3f} s; `from agentx import Workspace` {face:.3f} s"
    used = {name: one.processor_ms / 1e3 for name, one in taken.items()}
    said = "python -c 'import agentx', s"
    yield Figure("import_s", said, whole, 0.15, 0.05, beside=beside, processor=used["import"])
    beside = f"processor {used['help']:.3f} s"
    yield Figure("help_s", "agentx --help, s", shown, 0.3, 0.15, beside=beside, processor=used["help"])
