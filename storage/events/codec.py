"""The codec: one event is one line, and each line carries the hash of everything before it.

A line is compact JSON in a fixed layout, so that its parts can be cut out as bytes and never need to be
encoded again. A line in two pieces::

    {"seq":12,"at":"…","type":"…","v":1,"actor":"…","run":"…","cause":11,"key":"…"   (the header)
    ,"data":{…},"salt":"…","hash":"…"}

``digest = blake2b-256(salt ‖ data)`` and ``hash = blake2b-256(previous hash ‖ header ‖ digest)``, each over
the bytes exactly as written. A purged event has ``"digest":"…"`` in place of data and salt: its content is
gone, and the chain still verifies. The previous hash of the first event is 32 zero bytes.

A damaged event of which no copy is left keeps its place once the user has accepted the loss.
``"lost":"accepted"`` replaces data and salt, and the hash is the one from which the next event follows. If
that hash is unknown it is :data:`UNKNOWN`, and the next event is accepted without a check.
"""

import os
from binascii import hexlify, unhexlify
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any

import msgspec

from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Draft, Event, Lost, Payload, Purged, Unknown

MAX_LINE_BYTES = 16 * 1024
"""A longer event is refused; long text belongs in a blob (:class:`agentx.storage.events.types.Body`)."""

GENESIS = "0" * 64
"""The hash before the first event."""

UNKNOWN = "f" * 64
"""Placeholder for the unknown hash of a lost event."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts a payload to the next version.

It must be pure, and is never removed once a release may have written its version.
"""

_SALT_BYTES = 16
_DATA = b',"data":'
_SALT = b',"salt":"'
_DIGEST = b',"digest":"'
_HASH = b'","hash":"'
_LOST = b',"lost":"accepted'
_NO_EVENT = "A line of the history does not have the layout of an event."
_BLANK = blake2b(digest_size=32)
"""Copied on hot paths: setting up a hash object costs as much as hashing 200 bytes."""


class DamagedLine(AgentXError):
    """A line of the history is not an event."""


class EventTooLarge(AgentXError):
    """An event is longer than :data:`MAX_LINE_BYTES`."""


class EventRefused(AgentXError):
    """An event could be written but not read back, so it is not written."""


_Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class _Header(msgspec.Struct, omit_defaults=True, gc=False):
    seq: _Positive
    at: str
    type: str
    v: _Positive
    actor: str
    run: str = ""
    cause: int = 0
    key: str = ""


class Parts(msgspec.Struct, frozen=True, gc=False):
    """The byte fields of a line, from which the hash chain is computed.

    Attributes:
        data: The payload's JSON; ``None`` for a purged or lost event.
        digest: 32 bytes; computed from data and salt, or read from the line of a purged event; empty for a
            lost event.
        hash: Hex, as written in the line.
    """

    header: bytes
    data: bytes | None
    digest: bytes
    hash: str

    def extends(self, previous: str) -> bool:
        """Return whether this line's hash follows from the previous line's hash."""
        if not self.digest or previous == UNKNOWN:
            # A lost event, or the one after it: there is nothing to compute the hash from.
            return True
        return chain(previous, self.header, self.digest) == self.hash


def chain(previous: str, header: bytes, digest: bytes) -> str:
    """Return the hash of an event, in hex."""
    return blake2b(unhexlify(previous) + header + digest, digest_size=32).hexdigest()


def split(line: bytes) -> Parts:
    """Cut a line into its parts.

    A header field cannot contain the bytes ``,"data":`` because JSON escapes quotes inside strings, so their
    first occurrence ends the header. Salt, digest and hash have fixed lengths and are cut from the end. A
    rebuild spends much of its time here, so offsets are counted from the end of the line, and hexadecimal
    text is validated by decoding it and encoding it again.

    Raises:
        DamagedLine: The line does not have the layout of an event.
    """
    line = line.rstrip(b"\n")
    start = line.find(_DATA)
    try:
        if line[-76:-66] == _HASH and line[-2:] == b'"}':
            own_hash = line[-66:-2]
            unhexlify(own_hash)
            if start >= 0 and line[-117:-108] == _SALT:
                salt = unhexlify(line[-108:-76])
                if hexlify(salt) == line[-108:-76]:
                    data = line[start + 8 : -117]
                    digest = blake2b(salt + data, digest_size=32).digest()
                    return Parts(line[:start], data, digest, own_hash.decode())
            elif start < 0 and line[-151:-140] == _DIGEST:
                digest = unhexlify(line[-140:-76])
                if hexlify(digest) == line[-140:-76]:
                    return Parts(line[:-151], None, digest, own_hash.decode())
            elif start < 0 and line[-76 - len(_LOST) : -76] == _LOST:
                return Parts(line[: -76 - len(_LOST)], None, b"", own_hash.decode())
    except ValueError as error:
        raise DamagedLine(_NO_EVENT) from error
    raise DamagedLine(_NO_EVENT)


def purge(line: bytes) -> bytes:
    """Return the line of an event without its content.

    Header, digest and hash stay, so the chain still verifies.

    Raises:
        DamagedLine: The line does not have the layout of an event.
    """
    parts = split(line)
    digest = hexlify(parts.digest)
    return b"".join((parts.header, _DIGEST, digest, _HASH, parts.hash.encode(), b'"}\n'))


def lost_line(seq: int, at: str, own_hash: str) -> bytes:
    """Return the line that keeps the place of a permanently lost event.

    Args:
        seq: Its place.
        at: A time close to the event's.
        own_hash: The event's hash, from which the next event follows; :data:`UNKNOWN` if it is not known.
    """
    header = msgspec.json.encode(_Header(seq, at, Lost.__name__, 1, "engine:repair"))[:-1]
    return b"".join((header, _LOST, _HASH, own_hash.encode(), b'"}\n'))


class Codec:
    """Encodes drafts as lines and decodes lines to events, for one set of event types.

    Args:
        types: Payload class by type name.
        upcasters: By type and version, the function that converts a payload of that version to the next.
    """

    def __init__(
        self, types: Mapping[str, type[Payload]], upcasters: Mapping[tuple[str, int], Upcaster] | None = None
    ) -> None:
        self._upcasters = dict(upcasters or {})
        self._types = dict(types)
        self._names = {payload: name for name, payload in types.items()}
        self._versions = dict.fromkeys(types, 1)
        for name, version in self._upcasters:
            self._versions[name] = max(self._versions[name], version + 1)
        self._decoders = {name: msgspec.json.Decoder(payload).decode for name, payload in types.items()}
        self._current = {(name, self._versions[name]): decode for name, decode in self._decoders.items()}
        self._header = msgspec.json.Decoder(_Header).decode
        self._encode = msgspec.json.Encoder().encode

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of all types and their versions.

        It changes with the set of types or with any version; projections folded under another fingerprint are
        not read.
        """
        return blake2b(repr(sorted(self._versions.items())).encode(), digest_size=8).hexdigest()

    def encode(
        self, draft: Draft, *, seq: int, previous: str, at: datetime | None = None
    ) -> tuple[bytes, Event]:
        """Encode a draft as the event at a place of the history.

        Args:
            draft: What happened.
            seq: Its place.
            previous: Hex hash of the event before it.
            at: Time of the event; the draft's own, or now, if omitted.

        Returns:
            The line, with its newline, and the event that it decodes to.

        Raises:
            EventTooLarge: The line would be longer than :data:`MAX_LINE_BYTES`.
            EventRefused: The content would not read back: a number that JSON cannot represent, or text that
                is not valid Unicode.
        """
        name = self._names[type(draft.data)]
        fields = _Header(
            seq,
            stamp(at or draft.at),
            name,
            self._versions[name],
            draft.actor,
            draft.run,
            draft.cause,
            draft.key,
        )
        try:
            header = self._encode(fields)[:-1]
            data = self._encode(draft.data)
            payload = self._decoders[name](data)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, TypeError) as error:
            raise EventRefused(
                f"A {name} event could not be read back, so it is not recorded: {error}."
            ) from error
        salt = os.urandom(_SALT_BYTES)
        own_hash = chain(previous, header, blake2b(salt + data, digest_size=32).digest())
        line = b"".join((header, _DATA, data, _SALT, hexlify(salt), _HASH, own_hash.encode(), b'"}\n'))
        if len(line) > MAX_LINE_BYTES:
            raise EventTooLarge(
                f"A {name} event of {len(line)} bytes is over the limit of {MAX_LINE_BYTES}; "
                "put its long text in a blob."
            )
        return line, _event(fields, payload, own_hash)

    def decode(self, line: bytes) -> Event:
        """Decode one line.

        Raises:
            DamagedLine: It is not an event, or its payload does not match its type.
        """
        return self.decode_parts(split(line))

    def follow(self, line: bytes, seq: int, previous: str) -> Event | None:
        """Decode and verify a line in one pass, if it is event ``seq`` and extends ``previous``.

        This is the hot path of a rebuild.

        Returns:
            ``None`` for any other line; :func:`split` and :meth:`decode_parts` find out what is wrong with
            it.
        """
        start = line.find(_DATA, 60)
        if start < 0:
            return None
        header, data = line[:start], line[start + 8 : -118]
        try:
            salt = unhexlify(line[-109:-77])
            inner, outer = _BLANK.copy(), _BLANK.copy()
            inner.update(salt + data)
            outer.update(unhexlify(previous) + header + inner.digest())
            own_hash = outer.hexdigest()
            if line[-118:] != b',"salt":"%b","hash":"%b"}\n' % (hexlify(salt), own_hash.encode()):
                return None
            fields = self._header(header + b"}")
            decode = self._current.get((fields.type, fields.v))
            if decode is None or fields.seq != seq:
                return None
            return _event(fields, decode(data), own_hash)
        except (ValueError, RecursionError):
            return None

    def decode_parts(self, parts: Parts) -> Event:
        """Decode a line that :func:`split` has cut; see :meth:`decode`."""
        try:
            fields = self._header(parts.header + b"}")
            if parts.data is None:
                payload: Payload = Purged() if parts.digest else Lost()
            elif decode := self._current.get((fields.type, fields.v)):
                payload = decode(parts.data)
            else:
                payload = self._foreign_shape(fields, parts.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedLine(f"A line of the history is not an event: {error}.") from error
        return _event(fields, payload, parts.hash)

    def _foreign_shape(self, fields: _Header, data: bytes) -> Payload:
        """Decode a payload of another version than the current one, or of an unknown type."""
        if fields.type not in self._versions or fields.v > self._versions[fields.type]:
            msgspec.json.decode(data)
            return Unknown(raw=data.decode())
        content = msgspec.json.decode(data, type=dict[str, Any])
        try:
            for version in range(fields.v, self._versions[fields.type]):
                content = self._upcasters[fields.type, version](content)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DamagedLine(
                f"Event {fields.seq} does not match version {fields.v} of its type: {error!r}."
            ) from error
        return msgspec.convert(content, self._types[fields.type])


def _event(fields: _Header, payload: Payload, own_hash: str) -> Event:
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
        hash=own_hash,
    )
