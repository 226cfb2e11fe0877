"""Caches beside a workspace's remote, so that a worker without a copy of it opens and searches it sooner.

A ref outside the branches leads to the state folded up to some event, and to the vectors of the search. It is
replaced now and then, never added to. It comes from elsewhere, so it is believed only if a key that this
worker accepts signed it for exactly the bytes of the log that were fetched; else everything is made again.
"""

import contextlib
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import msgspec

from agentx.core import layout
from agentx.core.cache_dir import CACHE
from agentx.recording.recorded_log import SNAPSHOT_EVENTS, snapshots_of, state_version
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_temporary
from agentx.storage.git.exchange.remotes import PushRefused, Remote
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.history import History, count_segments
from agentx.synthesis.memory.record_codec import record_codec
from agentx.trust import records
from agentx.trust.caches import claim
from agentx.trust.digests import digest
from agentx.trust.store import Store

REF = "refs/agentx/cache"
"""Where the remote keeps the caches."""

MOST_BYTES = 64 << 20
"""Most bytes of all caches together; what does not fit is left out."""

LEAST_SEGMENTS = 16
"""A log with fewer segments (1 MB) is folded sooner than caches are fetched."""

GROWTH = 1.25
"""The caches are replaced when the history is this many times as long, so that all transfers together stay
below five times the last one."""

FOR_CACHES = "cache:"
"""Prefix of a key in ``AGENTX_TRUSTED_KEYS`` that is accepted for caches alone: that of another worker."""

DAYS = 90.0

_KEPT = {"vectors": "vectors"}
"""Other caches that travel: their name at the ref, and their file below the directory of caches."""

_STATE, _ABOUT, _RECORD = "state", "about", "record"
_NOTE = "beside-remote"


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """What the caches were made from; ``files`` has the hash of each."""

    version: str
    seq: Annotated[int, msgspec.Meta(ge=1)]
    hash: str
    files: dict[str, str]


def is_due(copy: Path, snapshot: int) -> bool:
    """Return whether the history has grown enough since the remote's caches were made.

    Args:
        copy: Directory of the workspace.
        snapshot: The event of its latest snapshot.
    """
    known = 0
    with contextlib.suppress(OSError, ValueError):
        known = int(nofollow.read_text(copy / CACHE / _NOTE))
    return snapshot >= max(SNAPSHOT_EVENTS, GROWTH * known)


def offer(copy: Path, remote: Remote, settings: Settings) -> None:
    """Replace the remote's caches by those of a copy, signed with this user's key.

    Needs no lock: what is read never changes.

    Raises:
        RemoteFailed: The remote cannot be reached.
        StoreUnusable: There is no key, and none can be made.
    """
    history = History(copy, record_codec())
    found = snapshots_of(copy / CACHE, history).load(bytes)
    if found is None:
        return
    state, place = found
    files = {_STATE: state}
    for name, path in _KEPT.items():
        with contextlib.suppress(OSError):
            content = nofollow.read(copy / CACHE / path)
            if sum(map(len, files.values())) + len(content) <= MOST_BYTES:
                files[name] = content
    if len(state) > MOST_BYTES:
        return
    about = _About(
        version=state_version(history),
        seq=place.seq,
        hash=place.hash,
        files={name: _hash(content) for name, content in files.items()},
    )
    now = datetime.now(tz=UTC)
    record = records.Signed(
        kind="cache",
        workspace=_identity(history),
        what=_what(about, history.digest(place)),
        issued=now.isoformat(),
        until=(now + timedelta(days=DAYS)).isoformat(),
    )
    signed = records.issue(Store(settings.state_dir), record)
    # Where the remote accepts no such ref, the next try is when the history has grown again.
    with contextlib.suppress(PushRefused):
        remote.put_files(REF, {**files, _ABOUT: msgspec.json.encode(about), _RECORD: signed.encode()})
    _note(copy, place.seq)


def adopt(copy: Path, remote: Remote, settings: Settings) -> str:
    """Put the remote's caches into a fresh clone, before it is opened for the first time.

    Returns:
        Why they are not used, as a clause; empty if they are.
    """
    if count_segments(copy) < LEAST_SEGMENTS:
        return "the history is short"
    try:
        layout.check(copy)
        repo = GitRepository(copy)
        try:
            layout.check_commit(repo, repo.head)
        finally:
            repo.close()
        files = remote.files(REF, MOST_BYTES + (1 << 20))
        if not files:
            return "the remote has none"
        return _adopt(copy, files, settings)
    except (AgentXError, OSError, ValueError, KeyError) as error:
        return str(error)


def _adopt(copy: Path, files: dict[str, bytes], settings: Settings) -> str:
    history = History(copy, record_codec())
    about = msgspec.json.decode(files[_ABOUT], type=_About)
    place = history.locate(about.seq, about.hash)
    if place is None:
        return "they are of another history"
    _, why = records.find_in(
        files[_RECORD],
        _accepted(settings),
        kind="cache",
        workspace=_identity(history),
        what=_what(about, history.digest(place)),
    )
    if why:
        return f"their record {why}"
    if any(_hash(files[name]) != made for name, made in about.files.items()):
        return "they are damaged"
    claim(copy, settings.state_dir)
    if about.version == state_version(history):
        snapshots_of(copy / CACHE, history).save(about.seq, about.hash, files[_STATE])
    for name in about.files.keys() & _KEPT.keys():
        made = write_temporary(copy / CACHE, files[name], sync=False)
        nofollow.replace(made, copy / CACHE / _KEPT[name])
    _note(copy, about.seq)
    return ""


def _accepted(settings: Settings) -> list[str]:
    """Return the keys whose caches are used: those that may sign anything, those for caches, and our own."""
    store = Store(settings.state_dir)
    keys = [key.removeprefix(FOR_CACHES) for key in settings.trusted_keys]
    return [*keys, *records.accepted_keys(store), records.own_public_key(store)]


def _what(about: _About, log: str) -> str:
    """Return what is signed: the caches, and each byte of the log from which they were made."""
    return digest(["cache", msgspec.to_builtins(about), log])


def _identity(history: History) -> str:
    return next(iter(history.read())).hash


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=32).hexdigest()


def _note(copy: Path, seq: int) -> None:
    with contextlib.suppress(OSError):
        nofollow.write(copy / CACHE / _NOTE, str(seq).encode())
