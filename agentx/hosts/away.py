"""What a hook does while the server does not answer: compiled checks from a file, and a spool.

The checks are those parts of rules that text, paths and command lines alone decide; the engine writes them
(:mod:`agentx.policy.hook_checks`). The spool is :mod:`agentx.hosts.spooling`.

Loads next to nothing: each hook of a host is a new process.
"""

import json
import os
import re
import signal

from agentx.client import place
from agentx.core import worktrees
from agentx.core.beside import checks_file
from agentx.hosts import spooling
from agentx.hosts.action import AFTER, BEFORE, DELETE, EDIT, PROMPT, SHELL, WRITE, HostAction, HostReply
from agentx.hosts.place import read_plain, spool

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SAID = "said-"
"""Beginning of the names of files that say that a session was told about a server that is away."""

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MOST_CHECKS = 4 << 20
_MOST_LINE = 64 << 10
_MOST_S = 1.0
_SEPARATORS = {";", "&", "|", "&&", "||", "(", ")", "\n", "|&", ";;"}
_BEFORE_PROGRAM = {"sudo", "command", "env", "nohup", "time", "exec", "xargs", "then", "do", "else", "!", "{"}
_UNASKED = (
    "AgentX's server does not answer. Until it does, only {checked} of your rules can be applied, and no "
    "memory is shown. What happens is recorded when it is back."
)

_REFUSED = "AgentX cannot record here: {why} Until then {checked} of your rules apply, and events wait."
"""What a session is told if the workspace is read-only, or no server can run or write for another reason."""

_UNDECIDED = "AgentX's server does not answer, and a compiled check of your rules could not be made in time."

_FULL = (
    "AgentX's server does not answer, and as much waits for it as may: what happens now will not be "
    "remembered. Start it with `agentx serve`."
)
_DROPPED = (
    f"{{number}} event{{s}} waited {spooling.KEPT_DAYS} days for AgentX's server, and will not be "
    "remembered. Start it with `agentx serve`."
)
_LOST = "AgentX's server does not answer, and this could not be kept for it: it will not be remembered."


def answer(
    action: HostAction, workspace: str, environ: "Mapping[str, str]", key: str, *, why: str = ""
) -> HostReply:
    """Answer without the server: apply the compiled checks, and keep the event for later.

    Args:
        action: What the host reports.
        workspace: The workspace of the project.
        environ: Variables that say where the user's state directory is.
        key: Makes the event idempotent that the server may have recorded.
        why: Why it cannot be recorded now; empty if the server did not answer.
    """
    action.unasked = True
    checks = read_checks(workspace, environ)
    reply = _checked_in_time(action, checks) if action.moment == BEFORE else HostReply()
    kept = action.moment != BEFORE or reply.decision == "deny"
    trouble = _keep(action, workspace, environ, key) if kept else ""
    shown = action.moment in (PROMPT, BEFORE, AFTER)
    if shown and told_first(action.session, workspace, environ, about=".refused" * bool(why)):
        number = len(checks.get("checks", ()))
        said = _REFUSED if why else _UNASKED
        reply.message = said.format(why=why, checked=f"{number or 'no'} compiled check{'s' * (number != 1)}")
    if trouble:
        reply.message = trouble
    return reply


def _keep(action: HostAction, workspace: str, environ: "Mapping[str, str]", key: str) -> str:
    """Keep an event for the server; return what the user has to know about the spool, once a session."""
    try:
        dropped = spooling.keep(action, workspace, environ, key)
    except spooling.SpoolFull:
        return _FULL if told_first(action.session, workspace, environ, about=".full") else ""
    except OSError:  # where it was said cannot be kept either
        return _LOST
    if dropped and told_first(action.session, workspace, environ, about=".dropped"):
        return _DROPPED.format(number=dropped, s="s" * (dropped != 1))
    return ""


# --- compiled checks ----------------------------------------------------------------------------------------


def _checked_in_time(action: HostAction, checks: "Mapping[str, Any]") -> HostReply:
    """Check a tool call; if that takes long, or a pattern cannot be read, the user is asked.

    A pattern may be written to take for ever, and a host goes on when its hook takes too long. The engine of
    Python's patterns looks for signals while it searches.
    """

    def too_late(*_: object) -> None:
        raise TimeoutError

    try:
        before = signal.signal(signal.SIGALRM, too_late)
    except ValueError:  # not the main thread: no process of a hook
        return check(action, checks)
    try:
        signal.setitimer(signal.ITIMER_REAL, _MOST_S)
        return check(action, checks)
    except (TimeoutError, re.error, RecursionError):
        return HostReply("ask", _UNDECIDED)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check(action: HostAction, checks: "Mapping[str, Any]") -> HostReply:
    """Return what the compiled checks say about a tool call; ``deny`` before ``ask``."""
    reply = HostReply()
    for one in checks.get("checks", ()):
        if reply.decision == one["decision"] or not _breaks(one, action, checks.get("root", "")):
            continue
        reply = HostReply(one["decision"], f"{one['item']}: {one['text']}")
        if reply.decision == "deny":
            break
    return reply


def read_checks(workspace: str, environ: "Mapping[str, str]") -> "dict[str, Any]":
    """Return the compiled checks of a workspace; none if the engine has not written them.

    They are the user's own, in their state directory. What lies in a workspace may have come with a clone.
    """
    state = place.state_dir(environ)
    try:
        found = json.loads(read_plain(checks_file(workspace, state), _MOST_CHECKS)) if state else None
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("v") != 1 or found.get("workspace") != workspace:
        return {}
    begins = _beginning(workspace)
    return found if begins in ("", found.get("begins")) else {}


def _beginning(workspace: str) -> str:
    """Return the hash that the first event of a workspace bears; empty if it cannot be told.

    With another one, somebody else's workspace was put in the place of the user's.
    """
    for name in ("history/000/001.jsonl", "history.jsonl"):
        try:
            first = json.loads(read_plain(f"{workspace}/{name}", _MOST_LINE).partition(b"\n")[0])
        except (OSError, ValueError, RecursionError):
            continue
        found = first.get("hash") if isinstance(first, dict) and first.get("seq") == 1 else None
        return found if isinstance(found, str) else ""
    return ""


def _breaks(one: "Mapping[str, Any]", action: HostAction, root: str) -> bool:
    if action.kind == SHELL:
        command = action.arguments.get("command")
        if not isinstance(command, str):
            return False
        if one["kind"] == "command":
            return any(_breaks_command(one, words) for words in commands(command))
        return one["kind"] == "text" and "commands" in one["places"] and _found(one, command)
    if action.kind not in (WRITE, EDIT, DELETE):
        return False
    about = [(path, doing) for path, doing in _targets(action, root) if _about(one, path)]
    if one["kind"] == "path":
        return any(doing in one["actions"] for _, doing in about)
    if one["kind"] != "text" or "files" not in one["places"]:
        return False
    return bool(about) and any(_found(one, text) for text in _written(action))


def _targets(action: HostAction, root: str) -> "Iterator[tuple[str, str]]":
    """Yield the files that a call changes, relative to the artifacts, and what it does to each."""
    given = action.arguments.get("path")
    named = [(given, "delete" if action.kind == DELETE else "")] if isinstance(given, str) else []
    patch = action.arguments.get("patch")
    marks = _PATCHED.finditer(patch) if isinstance(patch, str) else ()
    named += [(found[2], "delete" if found[1] == "Delete" else "") for found in marks]
    for name, doing in named:
        path = _relative(name, action, root)
        if path is not None:
            yield path, doing or ("change" if os.path.exists(f"{root}/{path}") else "create")


def _written(action: HostAction) -> "Iterator[str]":
    edits = action.arguments.get("edits")
    for given in (action.arguments, *(edits if isinstance(edits, list) else ())):
        for name in ("content", "new", "new_string", "patch"):
            if isinstance(given, dict) and isinstance(text := given.get(name), str):
                yield text


def _found(one: "Mapping[str, Any]", text: str) -> bool:
    return any(re.search(pattern, text, re.MULTILINE) for pattern in one["patterns"])


def _about(one: "Mapping[str, Any]", path: str) -> bool:
    name = path.casefold()
    included = not one["paths"] or any(re.search(pattern, name) for pattern in one["paths"])
    return included and not any(re.search(pattern, name) for pattern in one["exceptions"])


def _relative(path: str, action: HostAction, root: str) -> "str | None":
    """Return a path relative to the artifacts, or to the project that shares them; ``None`` if elsewhere."""
    if not path or "\0" in path or not root:
        return None
    whole = os.path.normpath(os.path.join(action.cwd or root, path))
    for found in (worktrees.moved(whole, root), whole, os.path.realpath(whole)):
        for folder in (action.sharing, root):
            if folder and found.startswith(f"{folder}/"):
                return found[len(folder) + 1 :]
    return None


def commands(line: str) -> "list[list[str]]":
    """Return the words of each simple command of a command line, as far as a lexer alone can tell.

    >>> commands("cd api && sudo npm i x; echo 'a;b'")
    [['cd', 'api'], ['npm', 'i', 'x'], ['echo', 'a;b']]
    """
    lexer = __import__("shlex").shlex(
        line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True
    )
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in _SEPARATORS:
                found.append([])
            elif found[-1] or not (word in _BEFORE_PROGRAM or re.match(r"[A-Za-z_]\w*=", word)):
                found[-1].append(word)
    except ValueError:  # an open quote: what was read counts
        pass
    return [words for words in found if words]


def _breaks_command(one: "Mapping[str, Any]", words: "list[str]") -> bool:
    words = [os.path.basename(words[0]), *words[1:]]
    plain = [word for word in words if not word.startswith("-")]
    for program in one["programs"]:
        named = program.split()
        if plain[: len(named)] != named or words[0] != named[0]:
            continue
        rest = words[1:]
        if not all(any(re.search(pattern, word) for word in rest) for pattern in one["arguments"]):
            continue
        if one["forbidden"]:
            if any(_has(flag, rest) for flag in one["forbidden"]):
                return True
        elif not one["required"] or not all(
            any(_has(flag, rest) for flag in entry.split("|")) for entry in one["required"]
        ):
            return True
    return False


def _has(flag: str, words: "list[str]") -> bool:
    short = len(flag) == 2 and flag[0] == "-"  # noqa: PLR2004 - such as -f, which may be in -uf
    return any(
        word == flag
        or word.startswith(f"{flag}=")
        or (short and re.fullmatch(r"-[A-Za-z]+", word) is not None and flag[1] in word)
        for word in words
    )


# --- what was said ------------------------------------------------------------------------------------------


def told_first(session: str, workspace: str, environ: "Mapping[str, str]", *, about: str = "") -> bool:
    """Return whether to tell a session that something is amiss: once.

    Args:
        session: The host's id of the session.
        workspace: The workspace of the project.
        environ: Variables that say where the user's state directory is.
        about: What it is, as the end of a file's name; empty for a server that is away.
    """
    folder = spool(workspace, environ)
    name = re.sub(r"[^\w-]", "", session)[:64]
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        os.close(os.open(f"{folder}/{SAID}{name}{about}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True
