"""The codec: one event is one line, and each line carries the hash of everything before it.

A line is compact JSON in a fixed layout, so that its parts can be cut out as bytes and never need encoding again::

    {"seq":12,"at":"…","type":"…","v":1,"actor":"…","run":"…","cause":11,"key":"…","data":{…},"salt":"…","hash":"…"}
    └───────────────────────────── header ─────────────────────────────────────┘

``digest = blake2b-256(salt ‖ data)`` and ``hash = blake2b-256(previous hash ‖ header ‖ digest)``, each over the bytes as
they stand. A purged event keeps ``"digest":"…"`` in place of data and salt, so its content is gone and the chain
still verifies. The first event's previous hash is 32 zero bytes.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.events import Draft, Event, Payload, Purged, Unknown

MAX_LINE_BYTES = 16 * 1024
"""A longer event is refused: long text belongs in a blob (:class:`agentx.storage.events.Body`)."""

GENESIS = "0" * 64
"""The hash before the first event."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""Lifts a payload by one version; pure, and never removed once a release could have written its version."""

_SALT_BYTES = 16
_DATA = b',"data":'
_DIGEST = b',"digest":"'
_SALT = b',"salt":"'
_HASH = b',"hash":"'
_WHOLE_TAIL = re.compile(rb',"salt":"([0-9a-f]{32})","hash":"([0-9a-f]{64})"}')
_WHOLE_TAIL_BYTES = len(_SALT) + 2 * _SALT_BYTES + len('"') + len(_HASH) + 64 + len('"}')
_PURGED_TAIL = re.compile(rb',"digest":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"}')
_PURGED_TAIL_BYTES = len(_DIGEST) + 64 + len('"') + len(_HASH) + 64 + len('"}')


class DamagedLine(AgentXError):
    """A line of the history is not an event."""


class EventTooLarge(AgentXError):
    """An event would exceed :data:`MAX_LINE_BYTES`."""


class EventRefused(AgentXError):
    """An event could be written but never read again, so it is not written."""


_Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class _Header(msgspec.Struct, omit_defaults=True):
    seq: _Positive
    at: str
    type: str
    v: _Positive
    actor: str
    run: str = ""
    cause: int = 0
    key: str = ""


class Parts(msgspec.Struct, frozen=True):
    """A line cut into its bytes: what the hash chain is computed from.

    Attributes:
        data: The payload's JSON; ``None`` for a purged event.
        digest: Hex; computed from data and salt, or as it stands in a purged event.
    """

    header: bytes
    data: bytes | None
    digest: str
    hash: str

    def extends(self, previous: str) -> bool:
        """Whether this line's hash follows from the previous line's."""
        return self.hash == chain(previous, self.header, self.digest)


def chain(previous: str, header: bytes, digest: str) -> str:
    """The hash of an event, in hex."""
    return blake2b(bytes.fromhex(previous) + header + bytes.fromhex(digest), digest_size=32).hexdigest()


def split(line: bytes) -> Parts:
    """Cut a line into its parts.

    A header field cannot hold the bytes ``,"data":`` because a quote inside a JSON string is escaped, so the first
    occurrence ends the header; salt, digest and hash have fixed lengths and are cut from the end.

    Raises:
        DamagedLine: The line has not the layout of an event.
    """
    line = line.rstrip(b"\n")
    start = line.find(_DATA)
    if start >= 0 and (whole := _WHOLE_TAIL.fullmatch(line[-_WHOLE_TAIL_BYTES:])):
        data = line[start + len(_DATA) : -_WHOLE_TAIL_BYTES]
        salt = bytes.fromhex(whole[1].decode())
        return Parts(line[:start], data, _digest(salt, data), whole[2].decode())
    if start < 0 and (purged := _PURGED_TAIL.fullmatch(line[-_PURGED_TAIL_BYTES:])):
        return Parts(line[:-_PURGED_TAIL_BYTES], None, purged[1].decode(), purged[2].decode())
    raise DamagedLine("A line of the history has not the layout of an event.")


def _digest(salt: bytes, data: bytes) -> str:
    return blake2b(salt + data, digest_size=32).hexdigest()


class Codec:
    """Turns drafts into lines and lines into events, for one set of event types.

    Args:
        types: Payload class by type name.
        upcasters: By type and version, the function that lifts a payload of that version to the next.
    """

    def __init__(
        self, types: Mapping[str, type[Payload]], upcasters: Mapping[tuple[str, int], Upcaster] | None = None
    ) -> None:
        self._upcasters = dict(upcasters or {})
        self._decoders = {name: msgspec.json.Decoder(payload) for name, payload in types.items()}
        self._types = dict(types)
        self._names = {payload: name for name, payload in types.items()}
        self._versions = dict.fromkeys(types, 1)
        for name, version in self._upcasters:
            self._versions[name] = max(self._versions[name], version + 1)
        self._header = msgspec.json.Decoder(_Header)
        self._encoder = msgspec.json.Encoder()

    def encode(
        self, draft: Draft, *, seq: int, previous: str, at: datetime | None = None
    ) -> tuple[bytes, Event]:
        """Give a draft its place in the history.

        Args:
            draft: What happened.
            seq: Its place.
            previous: Hex hash of the event before it.
            at: When; now where it is not given.

        Returns:
            The line, with its newline, and the event that it decodes to.

        Raises:
            EventTooLarge: The line would be longer than :data:`MAX_LINE_BYTES`.
            EventRefused: What it holds cannot be written so that it reads back: a number that JSON does not know, a
                text that is not valid Unicode.
        """
        name = self._names[type(draft.data)]
        stamp = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        fields = _Header(
            seq, stamp, name, self._versions[name], draft.actor, draft.run, draft.cause, draft.key
        )
        try:
            header = self._encoder.encode(fields)[:-1]
            data = self._encoder.encode(draft.data)
            payload = self._decoders[name].decode(data)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, TypeError) as error:
            raise EventRefused(
                f"A {name} event could not be read back, so it is not recorded: {error}."
            ) from error
        salt = os.urandom(_SALT_BYTES)
        digest = _digest(salt, data)
        own_hash = chain(previous, header, digest)
        line = b"".join(
            (header, _DATA, data, _SALT, salt.hex().encode(), b'"', _HASH, own_hash.encode(), b'"}\n')
        )
        if len(line) > MAX_LINE_BYTES:
            raise EventTooLarge(
                f"A {name} event of {len(line)} bytes is over the limit of {MAX_LINE_BYTES}; put its long text in a blob."
            )
        return line, _event(fields, payload, digest, own_hash)

    def decode(self, line: bytes) -> Event:
        """Read one line.

        Raises:
            DamagedLine: It is not an event, or its payload has not the shape of its type.
        """
        return self.decode_parts(split(line))

    def decode_parts(self, parts: Parts) -> Event:
        """Read a line that is already cut; see :meth:`decode`."""
        try:
            fields = self._header.decode(parts.header + b"}")
            payload = Purged() if parts.data is None else self._payload(fields, parts.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedLine(f"A line of the history is not an event: {error}.") from error
        return _event(fields, payload, parts.digest, parts.hash)

    def _payload(self, fields: _Header, data: bytes) -> Payload:
        decoder = self._decoders.get(fields.type)
        if decoder is None or fields.v > self._versions[fields.type]:
            msgspec.json.decode(data)
            return Unknown(raw=data.decode())
        if fields.v == self._versions[fields.type]:
            return decoder.decode(data)
        content = msgspec.json.decode(data, type=dict[str, Any])
        try:
            for version in range(fields.v, self._versions[fields.type]):
                content = self._upcasters[fields.type, version](content)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DamagedLine(
                f"Event {fields.seq} has not the shape of version {fields.v} of its type: {error!r}."
            ) from error
        return msgspec.convert(content, self._types[fields.type])


def _event(fields: _Header, payload: Payload, digest: str, own_hash: str) -> Event:
    return Event(
        seq=fields.seq,
        at=fields.at,
        type=fields.type,
        v=fields.v,
        actor=fields.actor,
        run=fields.run,
        cause=fields.cause,
        key=fields.key,
        data=payload,
        digest=digest,
        hash=own_hash,
    )
