"""A real MCP server over stdio, in plain Python: a test runs it as a program."""

import json
import os
import sys
import time

TOOLS = [
    {
        "name": "book",
        "description": "Book a slot.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "slot-id": {"type": "integer"},
                "from": {"type": "string", "default": "Ann"},
                "job": {"$ref": "#/$defs/Job"},
            },
            "required": ["slot-id"],
            "$defs": {"Job": {"type": "object"}},
        },
        "annotations": {"idempotentHint": True},
    },
    {"name": "slots", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
]
if "odd" in sys.argv:
    TOOLS[4]["inputSchema"] = json.loads(sys.argv[2])


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(name, arguments):
    if name == "hang":
        time.sleep(60)
    if name == "die":
        os._exit(3)
    if name == "refuse":
        return {"content": [{"type": "text", "text": "no such slot"}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps([name, arguments], sort_keys=True)}]}


def main():
    print("a log line that is not a message", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "initialize":
            send({"id": "of-the-server", "method": "ping"})
            send({"id": 1000, "method": "roots/list"})
            send({"method": "notifications/message", "params": {}})
            send(
                {
                    "id": asked["id"],
                    "result": {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {}},
                }
            )
        elif asked.get("method") == "tools/list":
            half = 2 if asked["params"].get("cursor") == "more" else 0
            page = {"tools": TOOLS[half : half + 2] if not half else TOOLS[half:]}
            send({"id": asked["id"], "result": page if half else {**page, "nextCursor": "more"}})
        elif asked.get("method") == "tools/call":
            send({"id": 0, "result": {}})  # an answer that nobody waits for
            send({"id": asked["id"], "result": call(**asked["params"])})


if __name__ == "__main__":
    main()
