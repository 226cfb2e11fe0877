"""The world of this sample: a feed recorded over 60 fetches, and a mail server whose outbox is a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from agentx import act

FEED = Path(__file__).parent / "feed.json"

GONE, GONE_SINCE = "ines@fjordpost.example", 30
"""From this run on the address does not exist any more."""

Source = Literal["Hacker News", "Lobsters", "r/MachineLearning"]


def tools(world: Path, run: int, feed: dict[str, Any] | None = None) -> dict[str, Callable[..., Any]]:
    """The tools of a run.

    Args:
        world: A directory that is kept from run to run; the outbox lies in it.
        run: Number of the run, from 1.
        feed: Another feed than the recorded one.
    """
    recorded = feed or json.loads(FEED.read_text("utf-8"))
    shown = [recorded["stories"][place] for place in recorded["fetches"][run - 1]]

    @act(window="never")
    def fetch_feed(source: Source) -> list[str]:
        """Fetch the titles that stand on the front page of a source now."""
        return [story["title"] for story in shown if story["source"] == source]

    @act(key=("titles[]",))
    def send_email(titles: list[str], *, to: str = "editor@newsroom.example", idempotency_key: str) -> str:
        """Send one mail with these titles."""
        if to == GONE and run >= GONE_SINCE:
            raise ConnectionError(f"550 no such mailbox: {to}")
        if all(mail["key"] != idempotency_key for mail in outbox(world)):
            mail = {"run": run, "to": to, "titles": titles, "key": idempotency_key}
            with (world / "outbox.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(mail) + "\n")
        return f"sent {len(titles)} titles"

    return {"fetch_feed": fetch_feed, "send_email": send_email}


def outbox(world: Path) -> list[dict[str, Any]]:
    """Every mail that was sent: ``run``, ``to``, ``titles``, ``key``."""
    path = world / "outbox.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
