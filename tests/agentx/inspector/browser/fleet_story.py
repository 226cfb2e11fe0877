"""A fleet with something in every part of its screen: rows of its queue as DBOS writes them, at chosen times."""

import json
import random
import sqlite3
import time
from pathlib import Path

from agentx.fleet import place as places
from agentx.scheduling.shared_queue import SetAside

MODELS = (("anthropic/claude-sonnet-4-5", 3e-6), ("openai/gpt-5-mini", 4e-7))
SPEED = {"atlas": 1.0, "newsletter": 0.5, "quarterly-report": 2.4, "support-triage": 0.35, "warehouse": 1.5, "glossary": 0.7}  # fmt: skip


def build(settings, root, *, hostile="", remote=""):
    """Create a fleet and fill its queue; return its place."""
    remote = remote or str(root / "remotes" / "{workspace}.git")
    place = places.initialise(settings, "", remote, lease_s=30)
    dice, now = random.Random(7), time.time()
    rows = []
    for number in range(90):
        name = dice.choice(list(SPEED))
        asked = now - 3_300 + number * 36 + dice.uniform(0, 30) - (400 if 40 < number < 60 else 0)
        waited = dice.uniform(0.05, 0.4) + (dice.uniform(20, 160) if 40 < number < 60 else 0)
        slow = SPEED[name] * dice.lognormvariate(0, 0.35)
        parts = {"fetch": 0.9 * slow, "open": 0.5 * slow, "run": 14 * slow, "push": 1.1 * slow}
        parts = {part: round(seconds, 3) for part, seconds in parts.items()}
        model, price = MODELS[number % 3 == 0]
        used = {"prompt_tokens": int(9_000 * slow), "completion_tokens": int(900 * slow)}
        result = {
            "status": "COMPLETED", "run": f"r-{number}", "commit": "0" * 40, "copy": "warm" if number % 5 else "cold",
            "seconds": parts, "model": model, **used, "cost_usd": (used["prompt_tokens"] + 5 * used["completion_tokens"]) * price,
        }  # fmt: skip
        match number:
            case 34:
                result |= {"status": "FAILED", "reason": "the model did not answer within 120 seconds"}
            case 62:
                result |= {"status": "REFUSED", "reason": "its settings changed since it was signed: tools.isolation", "seconds": {"fetch": 0.4, "open": 0.2, "run": 0.01}}  # fmt: skip
            case 77:
                parts["wait"] = 42.5
                result |= {"status": "LIMIT_REACHED", "reason": "It took 40 steps, as many as limits.max_steps allows."}  # fmt: skip
        ended = asked + waited + sum(result["seconds"].values())
        at_work = number in (83, 86, 88, 89)
        asked += (now - 60 - asked + number % 7 * 6) * at_work
        status = "PENDING" if at_work else "SUCCESS"
        rows.append((name, status, f"worker-{1 + number % 3}", asked, asked + waited, ended, result))
    for number in range(5):
        rows.append((list(SPEED)[number], "ENQUEUED", "", now - 50 + 9 * number, 0, 0, None))
    if hostile:
        bad = {"status": hostile[:40], "reason": hostile, "run": hostile, "copy": hostile, "model": hostile, "seconds": {"run": 3.0, hostile: 1.0}}  # fmt: skip
        rows.append((hostile, "SUCCESS", hostile, now - 60, now - 59, now - 55, bad))
        rows.append(("torn", "SUCCESS", "worker-1", now - 50, now - 49, now - 48, "}{"))
    with sqlite3.connect(place.database.removeprefix("sqlite:///")) as connection:
        for number, (name, status, worker, asked, started, ended, result) in enumerate(rows):
            uuid = hostile + str(number) if name == hostile else f"{number:032x}"
            done = status == "SUCCESS"
            connection.execute(
                "INSERT INTO workflow_status (workflow_uuid, status, name, queue_name, queue_partition_key, executor_id,"
                " created_at, updated_at, started_at_epoch_ms, completed_at, priority) VALUES (?, ?, 'carry_out', 'fleet', ?, ?, ?, ?, ?, ?, 100)",
                (uuid, status, name, worker or None, int(asked * 1000), int(asked * 1000), int(started * 1000) or None, int(ended * 1000) if done else None),
            )  # fmt: skip
            if done:
                text = result if isinstance(result, str) else json.dumps(result)
                connection.execute(
                    "INSERT INTO workflow_output (workflow_uuid, output) VALUES (?, ?)",
                    (uuid, json.dumps(text)),
                )
    with places.opened(place) as queue:
        for number in range(1, 4):
            queue.beat(
                f"worker-{number}",
                4,
                sum(row[1] == "PENDING" and row[2] == f"worker-{number}" for row in rows),
            )
        queue.beat(hostile or "worker-4", 4, 0)
        queue.drain("worker-3")
        queue.report(
            SetAside(
                ref=f"refs/agentx/stranded/{31:032x}-4be1d90c7a21", workspace=hostile or "warehouse",
                submission=f"{31:032x}", commit="4be1d90c7a21" + "0" * 28, worker=hostile or "worker-4", pushed=True,
            )
        )  # fmt: skip
    with sqlite3.connect(place.database.removeprefix("sqlite:///")) as connection:
        connection.execute(
            "UPDATE fleet_workers SET beat = beat - 95 WHERE name = ?", (hostile or "worker-4",)
        )
    return place


def database(place):
    """The file of its queue."""
    return Path(place.database.removeprefix("sqlite:///"))
