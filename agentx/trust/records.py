"""Signed, expiring records: trust and approvals that a user issues for machines where nobody can be asked.

A record is one line of JSON: the statement, the public key of its issuer, and an Ed25519 signature over the
canonical form of the statement. A machine accepts only the keys that it was configured to accept. So the
location of the file does not matter.
"""

import base64
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentx.quality.process import COOKIE
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.trust.digests import canonical
from agentx.trust.store import Store, StoreUnusable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_BYTES = 1_000_000

_OWN = "key"
_ACCEPTED = "accepted"
_DOMAIN = b"agentx trust record 1\n"
_SKEW = timedelta(minutes=5)
"""Tolerated difference between the clocks of two machines."""


class Signed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statement of a signed record.

    Attributes:
        kind: ``trust``, ``approval``, ``run`` or ``cache``.
        workspace: Hash of the first event of the workspace that it applies to.
        what: Digest of the settings with an effect, of the call, of the submission to a fleet, or of the
            caches that a fleet's worker keeps beside a remote.
        items: Digests of what the history may run.
        commands: Whether ``run_command`` may run without isolation.
        issued: Start of its validity, in UTC.
        until: End of its validity, in UTC.
    """

    kind: str
    workspace: str
    what: str
    issued: str
    until: str
    items: tuple[str, ...] = ()
    commands: bool = False


class SignedLine(msgspec.Struct, frozen=True):
    """A record with its signature, both in base64."""

    record: Signed
    key: str
    signature: str


def issue(store: Store, record: Signed) -> str:
    """Sign a record with this user's key and return it as one line of JSON; the key is made if missing.

    Raises:
        StoreUnusable: The key cannot be read or made.
    """
    key = _own_key(store)
    signature = key.sign(_message(record))
    return msgspec.json.encode(SignedLine(record, _public(key), _base64(signature))).decode()


def own_public_key(store: Store) -> str:
    """Return the public key of this user, which is made if missing.

    Raises:
        StoreUnusable: The key cannot be read or made.
    """
    return _public(_own_key(store))


def accepted_keys(store: Store) -> list[str]:
    """Return the public keys that this user accepts on this machine.

    Raises:
        StoreUnusable: The store is unsafe.
    """
    return (store.read(_ACCEPTED) or b"").decode("ascii", "replace").split()


def accept(store: Store, key: str, settings: Settings, *, accepted: bool = True) -> None:
    """Accept records that were signed with a key, or stop accepting them.

    Raises:
        UsageError: It is not a public key.
        StoreUnusable: It cannot be recorded, or the caller is a program of an agent's run.
    """
    refuse_in_a_run(settings)
    if len(_bytes(key) or b"") != 32:  # noqa: PLR2004 - an Ed25519 public key
        raise UsageError(f"{key[:80]!r} is not a public key; `agentx trust key` shows the one of its owner.")
    with store.locked():
        known = [one for one in accepted_keys(store) if one != key] + [key] * accepted
        store.write(_ACCEPTED, "".join(f"{one}\n" for one in known).encode())


def refuse_in_a_run(settings: Settings) -> None:
    """Prevent the programs of an agent's run from acting as the user.

    Raises:
        StoreUnusable: The caller is such a program.
    """
    if COOKIE in settings.environ:
        raise StoreUnusable(
            "A program in an agent's run cannot trust or approve anything; the user must do that outside "
            "the run."
        )


def find(
    path: Path, accepted: Sequence[str], *, kind: str, workspace: str, what: str, now: datetime | None = None
) -> tuple[Signed | None, str]:
    """Find a record in a file that is valid now.

    Args:
        path: The file, one record per line.
        accepted: Accepted public keys.
        kind: ``trust``, ``approval`` or ``run``.
        workspace: Hash of the first event.
        what: Digest of the settings, of the call, or of the submission.
        now: The current time; the clock's by default.

    Returns:
        The record and an empty string; or ``None`` and the reason, as a clause.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            content = file.read(MAX_BYTES)
    except OSError as error:
        return None, f"the signed record {path} cannot be read: {error.strerror}"
    found, why = find_in(content, accepted, kind=kind, workspace=workspace, what=what, now=now)
    return found, why and f"the signed record {path} {why}"


def find_in(
    content: bytes,
    accepted: Sequence[str],
    *,
    kind: str,
    workspace: str | None,
    what: str,
    now: datetime | None = None,
) -> tuple[Signed | None, str]:
    """Find a record in the content of a file, as :func:`find` does; ``None`` stands for any workspace."""
    whys = []
    for line in content.splitlines():
        try:
            found = msgspec.json.decode(line, type=SignedLine)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            whys.append("is damaged")
            continue
        if found.record.kind == kind:
            why = _wrong(found, accepted, workspace, what, now or datetime.now(tz=UTC))
            if not why:
                return found.record, ""
            whys.append(why)
    return None, whys[-1] if whys else f"grants no {kind}"


def signers(content: bytes) -> list[str]:
    """Return the keys with which the records in the content of a file are signed, whoever they belong to."""
    found = []
    for line in content.splitlines():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            found.append(msgspec.json.decode(line, type=SignedLine).key)
    return found


def _wrong(line: SignedLine, accepted: Sequence[str], workspace: str | None, what: str, now: datetime) -> str:
    """Return why a record is not valid; empty if it is.

    The signature is checked before any of the signed content is reported.
    """
    if line.key not in accepted:
        return "was signed with a key that is not accepted here"
    if not _verified(line):
        return "was altered: its signature does not match"
    if workspace not in (None, line.record.workspace):
        return "is for another workspace"
    try:
        issued, until = map(datetime.fromisoformat, (line.record.issued, line.record.until))
        if now >= until:
            return f"expired at {line.record.until}"
        if now < issued - _SKEW:
            return f"is valid from {line.record.issued}, which this machine's clock has not reached"
    except (ValueError, TypeError):
        return "has no valid expiry time"
    if line.record.what == what:
        return ""
    other = {
        "trust": "settings other than those in agentx.toml",
        "run": "another run",
        "cache": "other caches",
    }
    return f"is for {other.get(line.record.kind, 'another call')}"


def _verified(line: SignedLine) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only where a record is looked at
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - as above

    key, signature = _bytes(line.key), _bytes(line.signature)
    if key is None or signature is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _message(line.record))
    except (InvalidSignature, ValueError):
        return False
    return True


def _message(record: Signed) -> bytes:
    return _DOMAIN + canonical(msgspec.to_builtins(record))


def _own_key(store: Store) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - as above
        Ed25519PrivateKey,
    )

    with store.locked():
        kept = store.read(_OWN)
        if kept is None:
            made = Ed25519PrivateKey.generate()
            store.write(_OWN, _base64(made.private_bytes_raw()).encode())
            return made
    raw = _bytes(kept.decode("ascii", "replace"))
    if raw is None or len(raw) != 32:  # noqa: PLR2004 - an Ed25519 key
        raise StoreUnusable(f"The key {store.folder / _OWN} is damaged; remove it, and a new one is created.")
    return Ed25519PrivateKey.from_private_bytes(raw)


def _public(key: "Ed25519PrivateKey") -> str:
    return _base64(key.public_key().public_bytes_raw())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.strip(), altchars=b"-_", validate=True)
    except ValueError:
        return None
