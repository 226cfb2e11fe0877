"""The timetable of a town's buses: stops, and the times at which a bus leaves them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stop:
    """A stop; one that is closed keeps its number, for old tickets name it."""

    number: int
    name: str
    closed: bool = False
