"""Reminds patients: a careless program. It calls everybody that it sees in the calendar, every time.

It speaks JSON Lines on stdin and stdout, and needs nothing but Python. What it takes from its prompt:

- a number behind a patient's name is that patient's number now
- a number that ``Do not call send_reminder with phone "…"`` names is not called
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

Call = Callable[[str, dict[str, Any]], dict[str, str]]
"""Calls a tool by its name with arguments; gives ``status`` and ``output``."""

_NUMBER = r"\+\d[\d ]*\d"


def work(prompt: str, call: Call) -> dict[str, str]:
    """Remind everybody; what came of it."""
    shown = json.loads(call("coming", {})["output"])
    ruled_out = re.findall(rf'Do not call send_reminder with phone "({_NUMBER})"', prompt)
    reminded, waiting, failed = 0, 0, []
    for entry in shown:
        told = re.findall(rf"{re.escape(entry['patient'])}\b[^.]*?({_NUMBER})", prompt)
        phone = told[-1] if told else entry["phone"]
        if phone in ruled_out:
            waiting += 1
            continue
        made = call("send_reminder", entry | {"phone": phone})
        reminded += made["status"] == "SUCCEEDED"
        if made["status"] == "FAILED":
            failed.append(made["output"])
    if failed:
        return {"status": "FAILED", "reason": " ".join(failed)}
    waits = f", {waiting} without a number that works" if waiting else ""
    return {"status": "COMPLETED", "summary": f"{len(shown)} listed, {reminded} reminded{waits}."}


def main() -> None:
    """Speak with whoever started this."""

    def say(what: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, str]:
        say({"call": {"tool": tool, "arguments": arguments}})
        result: dict[str, str] = json.loads(sys.stdin.readline())["result"]
        return result

    asked = json.loads(sys.stdin.readline())
    say({"done": work(asked["prompt"], call)})


if __name__ == "__main__":
    main()
