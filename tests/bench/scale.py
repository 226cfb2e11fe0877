"""How much of everything is measured."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scale:
    """Sizes; the larger of a pair is what the smaller is compared with. ``measures``: what is measured by default; all if empty.
    ``kept``: a directory whose workspaces are used again."""

    few_files: int = 100
    many_files: int = 100_000
    few_events: int = 1_000
    many_events: int = 1_000_000
    writes: int = 200
    peer_writes: int = 10
    slow_peer_writes: int = 3
    packed_writes: int = 10_000
    items: int = 1_000
    chunks: int = 100_000
    searched: tuple[int, ...] = (10_000, 100_000)
    questions: int = 100
    day_events: int = 20_000
    chapters: int = 200
    memories: int = 10_000
    reopened_files: tuple[int, ...] = (100, 10_000, 20_000)
    killed_events: int = 10_000
    crowd_rounds: int = 3
    cold_rounds: int = 7
    warm_rounds: int = 40
    crowd_s: float = 4.0
    year_events: int = 100_000
    peer_held: int = 1_000
    peer_appends: int = 200
    peer_recalls: int = 100
    framework_turns: int = 400
    year_rounds: int = 7
    year_writes: int = 60
    measures: tuple[str, ...] = ()
    kept: Path | None = None


SCALES = {
    "tiny": Scale(  # for the tests: it shows that a measure runs, and its figures mean nothing
        few_files=20,
        many_files=200,
        few_events=100,
        many_events=2_000,
        writes=6,
        peer_writes=1,
        slow_peer_writes=1,
        packed_writes=60,
        items=10,
        chunks=100,
        searched=(100,),
        questions=5,
        day_events=200,
        chapters=3,
        memories=50,
        reopened_files=(20, 100),
        killed_events=100,
        cold_rounds=1,
        warm_rounds=2,
        year_events=2_000,
        peer_held=5,
        peer_appends=2,
        peer_recalls=2,
        framework_turns=3,
        year_rounds=2,
        year_writes=4,
    ),
    "small": Scale(
        many_files=3_000,
        many_events=30_000,
        writes=60,
        peer_writes=5,
        packed_writes=800,
        items=100,
        chunks=3_000,
        searched=(3_000,),
        questions=30,
        day_events=2_000,
        chapters=20,
        memories=800,
        reopened_files=(100, 1_000, 3_000),
        killed_events=1_000,
        crowd_rounds=1,
        crowd_s=1.5,
        year_events=20_000,
        peer_held=200,
        peer_appends=50,
        peer_recalls=20,
        framework_turns=100,
        year_writes=20,
    ),
    "default": Scale(),
    "year": Scale(year_events=1_000_000, measures=("year",)),
    "full": Scale(searched=(10_000, 100_000, 1_000_000), writes=500),
}
