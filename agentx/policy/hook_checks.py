"""The compiled checks that a hook applies by itself while the server does not answer.

They are in a small file in the workspace's cache, and written again whenever memory changed. Left out are
checks that need a parser, an index or the conversation: of structure, decorators, imports, sizes, contents,
topics and runs.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agentx.core.beside import HOOK_CHECKS
from agentx.core.cache_dir import CACHE
from agentx.engine.engine import Engine
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.synthesis.memory.checks import BaseCheck, CommandCheck, PathCheck, TextCheck
from agentx.synthesis.memory.items import MemoryItem, checks_of

VERSION = 1

_MOST_TEXT = 300
"""Characters of a rule that a denial quotes."""


def refresh(engine: Engine, *, make: bool = False) -> None:
    """Write the file again if the checks changed; a cache that cannot be written stays as it is.

    Args:
        engine: The workspace's engine.
        make: Whether to make the file if hooks have not been used here before.
    """
    place = engine.root / CACHE / HOOK_CHECKS
    with contextlib.suppress(AgentXError, OSError):
        there = nofollow.is_file(place)
        if not (there or make):
            return
        content = json.dumps(compiled(engine.checked(), str(engine.artifacts.root))).encode()
        if not there or nofollow.read(place) != content:
            nofollow.write(place, content)


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
