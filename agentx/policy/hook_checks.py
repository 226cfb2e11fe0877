"""The compiled checks that a hook applies by itself while the server does not answer.

They are in a small file in the user's state directory, for each workspace that they trust, and written again
whenever memory changed. Nothing in a workspace takes its place: a clone could bring it along. Left out are
checks that need a parser, an index or the conversation: of structure, decorators, imports, sizes, contents,
topics and runs.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agentx.core.beside import checks_file
from agentx.core.cache_dir import CACHE
from agentx.engine.engine import Engine
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.synthesis.memory.checks import BaseCheck, CommandCheck, PathCheck, TextCheck
from agentx.synthesis.memory.items import MemoryItem, checks_of

VERSION = 1

_ONCE = "hook-checks.json"
"""Where they were in a workspace's cache once; no hook reads it any more."""

_MOST_TEXT = 300
"""Characters of a rule that a denial quotes."""


def refresh(engine: Engine, *, make: bool = False) -> None:
    """Write the file again if the checks changed; it goes where the workspace is not trusted.

    Args:
        engine: The workspace's engine.
        make: Whether to make the file if hooks have not been used here before.
    """
    state = engine.settings.state_dir
    with contextlib.suppress(AgentXError, OSError):
        nofollow.remove(engine.root / CACHE / _ONCE, missing_ok=True)
    if not state.is_absolute():
        return
    place = Path(checks_file(str(engine.root), str(nofollow.canonical(state))))
    with contextlib.suppress(AgentXError, OSError):
        there = nofollow.is_file(place)
        if not (there or make):
            return
        if not engine.trust.trusted:
            nofollow.remove(place, missing_ok=True)
            return
        bound = {"workspace": str(engine.root), "begins": engine.trust.identity}
        content = json.dumps(bound | compiled(engine.checked(), str(engine.artifacts.root))).encode()
        if not there or nofollow.read(place) != content:
            nofollow.make_directory(place.parent, parents=True)
            write_file(place, content, mode=0o600)


def compiled(items: Iterable[MemoryItem], root: str) -> dict[str, Any]:
    """Return the checks that text, paths and command lines alone decide, as JSON for a hook."""
    return {"v": VERSION, "root": root, "checks": [one for item in items for one in _of_item(item)]}


def _of_item(item: MemoryItem) -> Iterator[dict[str, Any]]:
    for check in checks_of(item):
        decision = "ask" if check.mode == "ask" or check.doubt or item.perhaps_ended_by else "deny"
        if check.mode not in ("ask", "deny", "fix") or check.topic:
            continue
        found = _of_check(check)
        if found is not None:
            yield {
                "item": item.id,
                "text": item.text[:_MOST_TEXT],
                "decision": decision,
                "paths": _expressions(check.paths),
                "exceptions": _expressions(check.exceptions),
                **found,
            }


def _of_check(check: BaseCheck) -> dict[str, Any] | None:
    match check:
        case PathCheck(name="", allowed=()):
            return {"kind": "path", "actions": list(check.actions)}
        case TextCheck():
            words = [rf"(?i)(?<!\w){re.escape(phrase)}(?!\w)" for phrase in check.phrases]
            return {"kind": "text", "patterns": [*words, *check.patterns], "places": list(check.places)}
        case CommandCheck() if not (check.paths or check.exceptions):
            return {
                "kind": "command",
                "programs": list(check.programs),
                "arguments": list(check.arguments),
                "forbidden": list(check.forbidden_flags),
                "required": list(check.required_flags),
            }
    return None


def _expressions(globs: Iterable[str]) -> list[str]:
    """Return globs as regular expressions for paths in lower case."""
    found = (GitIgnoreSpecPattern.pattern_to_regex(glob.casefold()) for glob in globs)
    return [expression for expression, included in found if expression and included]
