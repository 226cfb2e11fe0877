"""The process that matches one pattern that may take for ever; its parent ends it. Only Python's own modules.

It reads one request as JSON from standard input, and writes for each text the lines of the matches.
"""

import json
import re
import resource
import sys
from typing import Any

_MOST_BYTES = 1 << 30


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    limit = int(request["limit_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    compiled = re.compile(request["pattern"], re.MULTILINE if request["multiline"] else 0)
    json.dump([lines(compiled, text, request) for text in request["texts"]], sys.stdout)


def lines(compiled: "re.Pattern[str]", text: str, request: dict[str, Any]) -> list[int]:
    """Return the lines of the matches, as :func:`agentx.storage.matching.matcher.lines` does."""
    if request["whole"]:
        return [1] if compiled.fullmatch(text) else []
    found: list[int] = []
    for match in compiled.finditer(text):
        found.append(text.count("\n", 0, match.start()) + 1)
        if len(found) >= request["most"]:
            break
    return found


if __name__ == "__main__":
    main()
