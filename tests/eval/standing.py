"""Whether the ideas that stand as ruled out are such, by labels made by hand.

Each session's messages and refused calls are told to a workspace in their order, and every rejection that is active right
after one of them is looked up in :data:`LABELS`. A row there is a place of the labelled data, named by a digest, and
``stands`` where its words forbid an idea beyond the one call, otherwise ``once``; no word of the data is kept.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.events.types import Event
from tests.eval.data import Row
from tests.figures import Figure

LABELS = Path(__file__).with_name("standing_rejections.csv")

Refuse = Callable[[Workspace, int, Row], Event]


def place(session: str, text: str) -> str:
    """The digest of something that a person said in a session."""
    return blake2b(f"{session}\n{text}".encode(), digest_size=8).hexdigest()


def standing(
    refused: list[Row],
    said: list[Row],
    settings: Settings,
    scratch: Path,
    refuse: Refuse,
) -> Iterator[Figure]:
    """Precision and recall of the rejections that stand, where there are labels; otherwise how many have none.

    Args:
        refused: Refused calls.
        said: Messages of the same sessions.
        settings: Of the workspaces.
        scratch: Where these are made.
        refuse: Records a refused call.
    """
    with LABELS.open(encoding="utf-8") as lines:
        by_hand = {row["place"]: row["label"] == "stands" for row in csv.DictReader(lines)}
    made = list(_made(refused, said, settings, scratch, refuse))
    known = [by_hand[one] for one in made if one in by_hand]
    key, name = "refusals.standing", "ideas that stand, of messages and refusals"
    if len(known) < len(made):
        yield Figure(f"{key}_unlabelled", f"{name}: no label, so nobody knows whether they are right", len(made) - len(known),
                     beside=f"of {len(made)}; labels stand in tests/eval/{LABELS.name}")  # fmt: skip
    if known:
        yield Figure(f"{key}_precision", f"{name}: right", sum(known) / len(known), 0.8, 0.95, more_is_better=True,
                     beside=f"{sum(known)} of {len(known)} labelled by hand")  # fmt: skip
    labelled = [
        one for row in refused if (one := place(row.get("session") or "", row.get("reason") or "")) in by_hand
    ]
    wanted = {one for one in labelled if by_hand[one]}
    if wanted:
        found = len(wanted & set(made))
        yield Figure(f"{key}_recall", "refusals that forbid an idea beyond the call: stand at once", found / len(wanted), more_is_better=True,
                     beside=f"{found} of {len(wanted)}, among {len(labelled)} refusals with a reason that were labelled")  # fmt: skip


def _made(
    refused: list[Row], said: list[Row], settings: Settings, scratch: Path, refuse: Refuse
) -> Iterator[str]:
    """Where each rejection was said, for the first time or again, that stood right after it."""
    sessions: defaultdict[str, list[Row]] = defaultdict(list)
    for row in (*said, *refused):
        sessions[row.get("session") or ""].append(row)
    for number, (session, rows) in enumerate(sessions.items()):
        with Workspace.create(scratch / str(number), settings=settings) as ws:
            for turn, row in enumerate(sorted(rows, key=lambda row: row.get("ts") or "")):
                text = row["text"] if "text" in row else row.get("reason") or ""
                if "text" in row and not text.strip():
                    continue
                event = ws.say(text, actor="user") if "text" in row else refuse(ws, turn, row)
                for item in ws.memory("rejection"):
                    if any(one.seq == event.seq for one in item.evidence):
                        yield place(session, text)
