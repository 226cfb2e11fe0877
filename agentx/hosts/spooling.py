"""The spool: what hooks keep for a server that does not answer.

One file for each event, with names that sort in the order of events; the server records and removes them at
its next request. Invariant: no secret that a search finds reaches the disk, and the spool has an end: an
event waits :data:`KEPT_DAYS` days, and a workspace's are at most :data:`MOST_EVENTS` and :data:`MOST_BYTES`.

Loads next to nothing until there is something to keep: each hook of a host is a new process.
"""

import json
import os
import time

from agentx.client import place
from agentx.hosts.place import HOOKS, spool
from agentx.storage.errors import AgentXError

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from agentx.hosts.action import HostAction

KEPT_DAYS = 30
MOST_EVENTS = 20_000
MOST_BYTES = 256 << 20

BAD = "bad-"
"""Beginning of the names of files that could not be recorded."""

_KEPT_NS = KEPT_DAYS * 86_400 * 1_000_000_000
_SAID = ("text", "output", "arguments")
"""The fields of an action that hold what somebody said or a tool returned."""


class SpoolFull(AgentXError):
    """As much waits for the server as may wait."""


def keep(action: "HostAction", workspace: str, environ: "Mapping[str, str]", key: str) -> int:
    """Keep an event for the server, without its secrets.

    Returns:
        How many events were dropped, since they waited too long.

    Raises:
        SpoolFull: As much waits as may wait.
        OSError: It cannot be written.
    """
    folder = spool(workspace, environ)
    os.makedirs(folder, 0o700, exist_ok=True)
    dropped, waiting = _expired(folder)
    data = json.dumps({"key": key, "action": redacted(action.as_dict())}).encode()
    if len(waiting) >= MOST_EVENTS or sum(map(_size, waiting)) + len(data) > MOST_BYTES:
        raise SpoolFull(f"{folder} holds as much as may wait for the server. Start it with `agentx serve`.")
    # Its size stands in its name, so that the next hook need not look at each file.
    name = f"{time.time_ns():020}-{key}-{len(data)}"
    temporary = f"{folder}/.{name}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(file)
    os.rename(temporary, f"{folder}/{name}.json")
    return dropped


def redacted(action: "dict[str, Any]") -> "dict[str, Any]":
    """Return an action without the secrets in what was said, returned and asked for."""
    said = {name: action[name] for name in _SAID if action.get(name)}
    # Most texts hold no sign of a secret, and then the patterns need not be loaded.
    signs = __import__("agentx.storage.secrets.secret_signs", fromlist=["may_hold_json"])
    if not signs.may_hold_json(json.dumps(said, ensure_ascii=False)):
        return action
    finding = __import__("agentx.storage.secrets.finding", fromlist=["clean_value"])
    return {**action, **finding.clean_value(said)}


def sweep(environ: "Mapping[str, str]") -> None:
    """Drop what waited too long, of all workspaces: no hook may ever be called again in one of them."""
    above = f"{place.state_dir(environ)}/{HOOKS}/spool"
    try:
        folders = os.listdir(above)
    except OSError:
        return
    for folder in folders:
        try:
            _expired(f"{above}/{folder}")
        except OSError:
            continue


def _expired(folder: str) -> "tuple[int, list[str]]":
    """Drop the events that waited too long; return how many, and the names of the others.

    Raises:
        OSError: The directory cannot be read.
    """
    dropped, waiting = 0, []
    oldest = f"{max(0, time.time_ns() - _KEPT_NS):020}"
    for name in os.listdir(folder):
        event = name.endswith(".json")
        if not event and not name.startswith("."):  # one that a hook which was ended did not finish
            continue
        if name.removeprefix(BAD).lstrip(".") >= oldest:
            waiting += [name] * event
            continue
        try:
            os.unlink(f"{folder}/{name}")
        except OSError:
            continue
        dropped += event and not name.startswith(BAD)
    return dropped, waiting


def _size(name: str) -> int:
    digits = name.removesuffix(".json").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 12 else 0  # noqa: PLR2004 - of no size that is written
