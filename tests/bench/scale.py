"""How much of everything is measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes; the larger of a pair is what the smaller is compared with."""

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


SCALES = {
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
    ),
    "default": Scale(),
    "full": Scale(searched=(10_000, 100_000, 1_000_000), writes=500),
}
