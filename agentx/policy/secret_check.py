"""Secrets in artifacts: those that a write would add, and those in the arguments of a pending call.

The record never holds a secret. So a pending call keeps its original arguments beside the record, in
``.agentx/``, encrypted with a key of the user, until it has run or was denied.
"""

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentx.core.cache_dir import CACHE
from agentx.engine.engine import Engine
from agentx.recording.secret_report import secrets_in, text_of
from agentx.recording.staging import Content
from agentx.recording.write_path import WritePath
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git.objects import blob_id
from agentx.storage.secrets.redaction import clean_value, find
from agentx.trust.sealing import seal, unseal

_SETTLED_S = 3_600
"""Seconds after which a call of another process is certainly on record."""

MARK = "[redacted: "
"""Beginning of the text that replaces a secret."""


class SecretRefused(AgentXError):
    """A write would put a secret into an artifact, and ``agentx.toml`` does not allow asking for approval."""


def new_secrets(write_path: WritePath, contents: Mapping[str, Content | None]) -> list[str]:
    """Return the secrets that a write would add: those in none of the current files that it changes."""
    texts = {path: text_of(content.data) for path, content in contents.items() if content}
    holding = {path: text for path, text in texts.items() if find(text)}
    if not holding:
        return []
    before = [
        text_of(write_path.git.repo.read_blob(entry.oid))
        for entry in write_path.git.tracked_all(contents).values()
        if entry
    ]
    known = frozenset(text[found.start : found.end] for text in before for found in find(text))
    return [told for path, text in holding.items() for told in secrets_in(path, text, known)]


def check_marks(write_path: WritePath, contents: Mapping[str, Content | None]) -> None:
    """Prevent a redaction mark from replacing a secret: the agent that read the file did not see the secret.

    Raises:
        UsageError: A file that holds a secret would hold a mark in its place.
    """
    for path, content in contents.items():
        text = text_of(content.data) if content else ""
        if MARK not in text or not (entry := write_path.git.tracked_all([path])[path]):
            continue
        before = text_of(write_path.git.repo.read_blob(entry.oid))
        if find(before) and text.count(MARK) > before.count(MARK):
            raise UsageError(
                f"{path} contains a secret that was shown to you as “{MARK}…]”; this write would replace "
                "the secret with that mark. Change the other lines with edit_file."
            )


def keep_arguments(engine: Engine, call_id: str, arguments: Mapping[str, Any]) -> None:
    """Keep the arguments of a pending call if the record can hold them only redacted.

    Raises:
        StoreUnusable: This user has no state directory for the key.
    """
    _forget_settled(engine)
    place = _place(engine.root, call_id)
    nofollow.make_directory(place.parent, parents=True)
    content = json.dumps(arguments, default=str).encode("utf-8", "surrogatepass")
    write_file(place, seal(engine.settings.state_dir, content), mode=0o600)


def kept_arguments(engine: Engine, call_id: str, recorded: str) -> dict[str, Any] | None:
    """Return the kept arguments of a call if they match what the user saw redacted, else ``None``."""
    try:
        sealed = nofollow.read(_place(engine.root, call_id))
        kept = json.loads(unseal(engine.settings.state_dir, sealed) or b"")
    except (OSError, ValueError):
        return None
    same = isinstance(kept, dict) and json.dumps(clean_value(kept), default=str) == recorded
    return kept if same else None


def forget_arguments(root: Path, call_id: str) -> None:
    """Delete the kept arguments of a call that has run or was denied."""
    nofollow.remove(_place(root, call_id), missing_ok=True)


def _forget_settled(engine: Engine) -> None:
    """Delete the arguments of settled calls: denied on another machine, or never recorded after a crash."""
    pending = engine.log.state.pending.values()
    waiting = {_place(engine.root, call.call_id).name for call in pending if call.approved is not False}
    with contextlib.suppress(OSError):
        for kept in nofollow.listed(engine.root / CACHE / "waiting"):
            if kept.name not in waiting and time.time() - nofollow.status(kept).st_mtime > _SETTLED_S:
                nofollow.remove(kept, missing_ok=True)


def _place(root: Path, call_id: str) -> Path:
    return root / CACHE / "waiting" / blob_id(call_id.encode("utf-8", "replace"))
