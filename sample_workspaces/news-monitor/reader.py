"""Reads news for somebody: a program that obeys its assignment, and knows nothing else.

It speaks JSON Lines on stdin and stdout, and needs nothing but Python. The titles that are done come as data
beside the prompt. What it takes from the prompt:

- the sources that stand in it, of those that the tool knows; all of them where it names none
- ``Do not send stories about X.``
- ``fewer than N``: then nothing is sent
- the first mail address; not one that ``Do not call send_email with to "…"`` names; none: the tool's own
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

Call = Callable[[str, dict[str, Any]], dict[str, str]]
"""Calls a tool by its name with arguments; gives ``status`` and ``output``."""

_NUMBERS = ("no", "one", "two", "three", "four", "five")


def work(
    prompt: str, tools: list[dict[str, Any]], call: Call, done: dict[str, list[dict[str, Any]]] | None = None
) -> dict[str, str]:
    """Do what a prompt says; what came of it.

    Args:
        prompt: The prompt.
        tools: The tools.
        call: Calls one.
        done: What was done already, by tool.
    """
    mailed = {mail["titles"] for mail in (done or {}).get("send_email", [])}
    found: list[str] = []
    for source in _sources(prompt, tools):
        page = call("fetch_feed", {"source": source})
        if page["status"] != "SUCCEEDED":
            return {"status": "FAILED", "reason": page["output"]}
        found += json.loads(page["output"])
    new = [title for title in dict.fromkeys(found) if title not in mailed and _wanted(title, prompt)]
    if not new or len(new) < _at_least(prompt):
        return {"status": "COMPLETED", "summary": f"New: {len(new)}. Nothing sent."}
    sent = call("send_email", {"titles": new} | _address(prompt))
    if sent["status"] != "SUCCEEDED":
        return {"status": "FAILED", "reason": sent["output"]}
    return {"status": "COMPLETED", "summary": f"New: {len(new)}. Sent."}


def _sources(prompt: str, tools: list[dict[str, Any]]) -> list[str]:
    feed = next(tool for tool in tools if tool["name"] == "fetch_feed")
    known: list[str] = feed["parameters"]["properties"]["source"]["enum"]
    return [source for source in known if source in prompt] or known


def _wanted(title: str, prompt: str) -> bool:
    ruled_out = re.findall(r"Do not send stories about (\w+)", prompt)
    return not any(word.casefold() in title.casefold() for word in ruled_out)


def _at_least(prompt: str) -> int:
    numbers = re.findall(r"fewer than (\w+)", prompt)
    if not numbers:
        return 0
    return int(numbers[-1]) if numbers[-1].isdigit() else _NUMBERS.index(numbers[-1])


def _address(prompt: str) -> dict[str, str]:
    ruled_out = re.findall(r'Do not call send_email with to "([^"]+)"', prompt)
    given = [one for one in re.findall(r"\w[\w.]*@[\w.]*\w", prompt) if one not in ruled_out]
    return {"to": given[0]} if given else {}


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
    say({"done": work(asked["prompt"], asked["tools"], call, asked["done"])})


if __name__ == "__main__":
    main()
