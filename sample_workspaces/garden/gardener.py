"""Works in a garden: a program that begins anew each time, and does all that its prompt names.

It speaks JSON Lines on stdin and stdout, and needs nothing but Python. What it takes from its prompt:

- ``below N``: a bed whose value is lower is watered
- ``prune the X``: that is pruned
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

Call = Callable[[str, dict[str, Any]], dict[str, str]]
"""Calls a tool by its name with arguments; gives ``status`` and ``output``."""


def work(prompt: str, call: Call) -> dict[str, str]:
    """Do what a prompt says; what came of it."""
    tried = {"measure": 0, "water": 0, "prune": 0}

    def try_to(tool: str, **arguments: Any) -> None:
        tried[tool] += call(tool, arguments)["status"] == "SUCCEEDED"

    limit = int(re.findall(r"below (\d+)", prompt)[-1])
    for bed in json.loads(call("beds", {})["output"]):
        try_to("measure", bed=bed)
        if int(call("measured", {"bed": bed})["output"]) < limit:
            try_to("water", bed=bed, litres=20)
    for plant in dict.fromkeys(re.findall(r"prune the (\w+)", prompt)):
        try_to("prune", plant=plant)
    done = ", ".join(f"{tool} {times}" for tool, times in tried.items() if times)
    return {"status": "COMPLETED", "summary": f"{done or 'nothing to do'}."}


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
