"""What real runners printed in tiny projects, one file for each in ``outputs/``, with what is to be read in it.

A file holds cases, each a title, a head and the output: the command, its exit status, the runner that spoke, the outcome,
the outcome where the exit status is hidden (``hidden``, where it differs) and the checks that are named without it (``fails``).
"""

from dataclasses import dataclass
from pathlib import Path

_TITLE = "######## "
_RULE = "\n========"
FOLDER = Path(__file__).parent / "outputs"


@dataclass(frozen=True)
class Kept:
    """One kept output."""

    name: str
    command: str
    exit_code: int
    runner: str
    outcome: str
    hidden: str
    fails: tuple[str, ...]
    text: str


def kept_outputs() -> list[Kept]:
    return [_case(path.stem, part) for path in sorted(FOLDER.glob("*.txt")) for part in _parts(path)]


def _parts(path: Path) -> list[str]:
    return f"\n{path.read_text(encoding='utf-8')}".split(f"\n{_TITLE}")[1:]


def _case(family: str, part: str) -> Kept:
    head, _, text = part.partition(_RULE)
    title, *rows = head.splitlines()
    pairs = [row.split(": ", 1) for row in rows]
    values = dict(pairs)
    return Kept(
        name=f"{family}-{title}",
        command=values["command"],
        exit_code=int(values["exit"]),
        runner=values["runner"],
        outcome=values["outcome"],
        hidden=values.get("hidden", values["outcome"]),
        fails=tuple(value for name, value in pairs if name == "fails"),
        text=text.removeprefix("\n"),
    )
