"""The server's side of hooks: what happens at each moment of a host's session.

One method, ``hook``: it takes a normalised action and returns the reply. Nobody can name an actor. A prompt
is the user's because the host's prompt event reports it, in a process outside of any agent's run; all else is
the agent's. What the spool holds is recorded first, in order.
"""

import contextlib
import json
import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from agentx.hosts.action import (
    AFTER,
    ANSWER,
    BEFORE,
    COMPACT,
    COMPACTED,
    END,
    PROMPT,
    START,
    STOP,
    SUBSTOP,
    TOOL,
)
from agentx.hosts.away import SAID, told_first
from agentx.hosts.hook import WARM
from agentx.hosts.place import read_plain, spool
from agentx.hosts.served.responses import Responder, SentAction, SessionMemory
from agentx.hosts.spooling import BAD, sweep
from agentx.policy import hook_checks
from agentx.server.calls import Emit, ServedCall
from agentx.server.errors import PARAMS, Refused
from agentx.settings import read_settings
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files.paths import PathRefused
from agentx.storage.text import one_line
from agentx.trust.trust import restricted
from agentx.workspace import Workspace

_SESSIONS_KEPT = 256
_MOST_SPOOLED_BYTES = 16 << 20
_SAID_S = 7 * 86_400


class NotNow(AgentXError):
    """What a hook kept cannot be recorded at the moment."""


class HostSessions:
    """What is remembered of the latest sessions while the process runs; the record does not depend on it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], SessionMemory] = OrderedDict()
        self._parents: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, root: Path, run: str) -> SessionMemory:
        """Return the memory of a session of a workspace."""
        key = str(root), run
        with self._lock:
            found = self._known.setdefault(key, SessionMemory())
            self._known.move_to_end(key)
            while len(self._known) > _SESSIONS_KEPT:
                self._known.popitem(last=False)
            return found

    def placed(self, root: Path, action: SentAction) -> SentAction:
        """Return an action; as a subagent's if its session was begun with the words of a call that runs.

        This is for hosts, and plugins of earlier versions, that do not say who began a session.
        """
        if action.agent or not action.session:
            return action
        key = str(root), action.session
        with self._lock:
            if action.moment == PROMPT and key not in self._parents and _is_new(self._known.get(key)):
                if parent := self._caller(key[0], action):
                    self._parents[key] = parent
                while len(self._parents) > _SESSIONS_KEPT:
                    self._parents.popitem(last=False)
            parent = self._parents.get(key, "")
        return msgspec.structs.replace(action, session=parent, agent=action.session) if parent else action

    def _caller(self, root: str, prompt: SentAction) -> str:
        """Return the session of which a running call has the words of a prompt; empty for none."""
        words = prompt.text.strip()
        memories = [memory for (where, _), memory in self._known.items() if where == root] if words else []
        for call in (call for memory in memories for call in memory.pending.values()):
            other = call.host == prompt.host and call.session != prompt.session and call.kind == TOOL
            if other and words in (str(one).strip() for one in call.arguments.values()):
                return call.session
        return ""


def _is_new(memory: SessionMemory | None) -> bool:
    return memory is None or not (memory.prompt or memory.calls)


SESSIONS = HostSessions()
"""The sessions of this process."""


def hook(call: ServedCall, params: dict[str, Any], emit: Emit) -> dict[str, str]:
    """Answer a hook.

    Returns:
        The fields of :class:`agentx.hosts.action.HostReply` that are not empty.

    Raises:
        Refused: The parameters are not those of a hook.
    """
    del emit
    action, key = _action(params.get("action")), params.get("key")
    if not isinstance(key, str) or not key:
        raise Refused(PARAMS, "`key` is a text that makes the event idempotent.")
    environ = call.peer.environ
    with call.workspace(params) as found, found.turn:
        call.check()
        return respond(found.workspace, action, key, environ)


def in_process(workspace: str, given: dict[str, Any], key: str) -> dict[str, str]:
    """Answer a hook in its own process, where the user wants no server."""
    settings = read_settings()
    with Workspace.open(workspace, settings=settings) as ws:
        memory = SESSIONS.of(ws.root, _run(action := _action(given)))
        memory.started = True  # what the session was shown, no process remembers
        return respond(ws, action, key, settings.environ)


def respond(ws: Workspace, action: SentAction, key: str, environ: Any) -> dict[str, str]:
    """Record what was spooled, then act on an action and return the reply."""
    dropped = _drain(ws, environ)
    if action.moment in (START, WARM):
        sweep(environ)
    reply, unrecorded = _respond(ws, action, key)
    if dropped:
        reply = {**reply, "message": _DROPPED.format(why=dropped)}
    elif unrecorded and told_first(action.session, str(ws.root), environ, about=".unrecorded"):
        reply = {**reply, "message": _UNRECORDED.format(why=unrecorded)}
    hook_checks.refresh(ws.engine, make=True)
    why = ws.restricted if action.moment == PROMPT else ""
    if why and told_first(action.session, str(ws.root), environ, about=".restricted"):
        reply = {**reply, "message": f"{restricted(why)}. {_RESTRICTED}"}
    return reply


_RESTRICTED = (
    "Checks, commands and models that it brings along are not used. If you trust it: `agentx trust`."
)


_DROPPED = "AgentX dropped what a hook had kept for it, since it can never be recorded: {why}"
_UNRECORDED = "AgentX records this call, but not what it wrote: {why} This is said once a session."


def _respond(
    ws: Workspace, action: SentAction, key: str, at: datetime | None = None
) -> tuple[dict[str, str], str]:
    """Return the reply, and why the content of a file that the call changed is not recorded."""
    action = SESSIONS.placed(ws.root, action)
    run = _run(action)
    responder = Responder(ws, action, run, SESSIONS.of(ws.root, run), key, at)
    responder.record_refused()
    found = {
        START: responder.start,
        PROMPT: responder.prompt,
        BEFORE: responder.before,
        AFTER: responder.after,
        ANSWER: responder.answer,
        STOP: responder.stop,
        SUBSTOP: responder.stop,
        COMPACT: responder.compact,
        COMPACTED: responder.compact,
        END: responder.end,
        WARM: responder.warm,
    }.get(action.moment)
    seq, task = (0, "") if action.moment == PROMPT else responder.asked()
    with ws.engine.answering(task if seq else None):
        reply = responder.delivered(found() if found else {})
    return reply, responder.unrecorded


def _run(action: SentAction) -> str:
    """Return the run of a session's events: the host's id of it, as an import of its transcript has it."""
    session = action.session or action.host
    return f"{session}/{action.agent}" if action.agent else session


def _action(given: object) -> SentAction:
    try:
        return msgspec.convert(given, SentAction)
    except msgspec.ValidationError as error:
        raise Refused(PARAMS, f"`action` is not the action of a hook: {error}.") from error


# --- the spool ----------------------------------------------------------------------------------------------


def _drain(ws: Workspace, environ: Any) -> str:
    """Record what hooks kept while no server answered, in order, and remove it.

    Returns:
        Why something was dropped, since no later attempt could record it; empty if nothing was.
    """
    folder, dropped = Path(spool(str(ws.root), environ)), ""
    try:
        names = sorted(one.name for one in folder.iterdir())
    except OSError:
        return ""
    for name in names:
        place = folder / name
        if name.startswith((SAID, BAD)):  # of a session that has long ended, or of an earlier version
            with contextlib.suppress(OSError):
                if time.time() - place.stat().st_mtime > _SAID_S:
                    place.unlink()
            continue
        if not name.endswith(".json") or name.startswith("."):
            continue
        try:
            why = _recorded(ws, place)
        except AgentXError:  # such as a full disk: this event and those after it wait
            break
        dropped = why or dropped
        with contextlib.suppress(OSError):
            place.unlink()
    return dropped


def _recorded(ws: Workspace, place: Path) -> str:
    """Record what a hook kept; return why that is not possible, now or later.

    Raises:
        AgentXError: It was not possible now.
    """
    try:
        kept = json.loads(read_plain(str(place), _MOST_SPOOLED_BYTES))
        action, key = _action(kept["action"]), str(kept["key"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, Refused):
        return f"{place} cannot be read."
    try:
        _respond(ws, action, key, _kept_at(place.name))
    except (ValueError, KeyError, TypeError, RecursionError, Refused, UsageError, PathRefused) as error:
        return one_line(str(error)) or type(error).__name__
    except (AgentXError, OSError) as error:
        raise NotNow(str(error)) from error
    return ""


_BEGAN = datetime(1970, 1, 1, tzinfo=UTC)


def _kept_at(name: str) -> datetime | None:
    """Return when an event of the spool happened, by the name of its file; ``None`` if that does not tell."""
    digits = name.partition("-")[0]
    if not (digits.isascii() and digits.isdigit()):
        return None
    try:
        at = _BEGAN + timedelta(microseconds=int(digits) // 1_000)
    except OverflowError:
        return None
    return min(at, datetime.now(UTC))
