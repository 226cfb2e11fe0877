"""The users of a fleet: they make workspaces and submit runs, and try again when the network or the database is away."""

import time

from agentx.fleet import place as places
from agentx.fleet.submission import submit
from agentx.scheduling.shared_queue import QueueFailed
from agentx.settings import read_settings
from agentx.storage.git.exchange.remotes import RemoteFailed
from agentx.workspace import Workspace

TOKEN = "ghp_" + "A1b2C3d4E5" * 3 + "f6G7h8"
_PAUSE_S = 0.5


def create(workspace, runs, folder, environ, tenant):
    """Make a workspace and submit its runs; return their ids, the seconds of each submission, and how often it failed."""
    settings = read_settings(environ)
    place = places.load(settings, tenant)
    ids, times, failed = [], [], 0
    with Workspace.create(folder / workspace, settings=settings) as ws, places.opened(place) as queue:
        for number in range(1, runs + 1):
            name = f"{workspace}-task-{number:03}"
            secret = f" The token is {TOKEN}." if number == 1 else ""
            while True:
                began = time.monotonic()
                try:
                    # With its own id: a second try is the same submission, whether the first came through or not.
                    submit(ws, place, queue, f"Do task {number:03}.{secret}", submission=name)
                except (QueueFailed, RemoteFailed):
                    failed += 1
                    time.sleep(_PAUSE_S)
                else:
                    break
            times.append(time.monotonic() - began)
            ids.append(name)
    return workspace, ids, times, failed


def script(path, runs):
    """Write the model's script: in each task it writes a file, then changes another, then answers."""
    import json

    turns = []
    for number in range(runs, 0, -1):  # the first turn that fits is played, and earlier tasks stay in sight
        task, note = f"Do task {number:03}", f"notes/note-{number:03}.md"
        said = f"report-{number:03}"
        turns += [
            {"when": [task, f"{said} is"], "answer": "It is done."},
            {
                "when": [task, note],
                "thought": f"The {said} is next.",
                "tool_calls": [write("report.md", f"# Report\n\n{said}: all {number} notes are read.\n")],
            },
            {
                "when": [task],
                "thought": "I write a note first.",
                "tool_calls": [write(note, f"# Note {number}\n\n" + f"Line of note {number}.\n" * 20)],
            },
        ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in turns))


def write(path, text):
    return {"name": "write_file", "arguments": {"path": path, "content": text}}
