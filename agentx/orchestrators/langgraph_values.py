"""Values of LangGraph as JSON that a person can read, a purge can search and that is kept once.

LangGraph's serializer makes MessagePack of a value. That is converted to a *tree*: JSON in which an object
with the one key ``~`` represents what JSON lacks: ``{"~": "ID"}`` for a piece, ``{"~": ["ext", 5, …]}`` for
an extension type, and so on. Each message, and each longer text, is a piece: kept once, whatever holds it.
"""

import base64
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.orchestrators.threads import CheckpointUnreadable
from agentx.storage.extras import LANGGRAPH, needs
from agentx.storage.secrets.redaction import clean_struct

with needs(LANGGRAPH):
    import ormsgpack

PIECE_CHARACTERS = 200
"""A longer text is kept as a separate piece."""

PIECE_BYTES = 120
"""An extension type with longer JSON is kept as a separate piece."""

MOST_EXPANDED = 64 << 20
"""About as many bytes may become of one value in a workspace that is not trusted: forged pieces can hold
one another many times."""

_NODE_BYTES = 16
_ANY = 1 << 62
_REMEMBERED = 50_000
_OPTION = ormsgpack.OPT_NON_STR_KEYS
_MARK = "~"


class _Ext(msgspec.Struct, frozen=True):
    """An extension type of MessagePack."""

    code: int
    data: bytes


class _Tree(msgspec.Struct, frozen=True):
    tree: Any


class _Budget(msgspec.Struct):
    """About as many bytes may still become of a value, and how many might at first."""

    left: int
    most: int

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise CheckpointUnreadable(
                f"A value of a checkpoint becomes more than {self.most:,} bytes, and the workspace is not "
                "trusted: if you know where it comes from, run `agentx trust`."
            )


class Trees:
    """Converts serialized values to trees and back.

    Args:
        known: Returns whether a piece is in the history.
        most: About as many bytes may become of one value; 0 for any number.
    """

    def __init__(self, known: Callable[[str], bool], *, most: int = 0) -> None:
        self._known = known
        self._most = most
        self._names: OrderedDict[bytes, dict[str, str]] = OrderedDict()
        self._packed: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    # --- to trees ---------------------------------------------------------------------------------

    def tree(self, serialized: tuple[str, bytes], fresh: dict[str, Any]) -> Any:
        """Return a serialized value as a tree without secrets.

        Args:
            serialized: What the serializer made of it.
            fresh: Receives the pieces that are not in the history yet.
        """
        kind, data = serialized
        if kind != "msgpack":
            return {_MARK: ["typed", kind, _text(data)]}
        value = _unpack(data)
        if isinstance(value, list) and all(isinstance(part, _Ext) for part in value):
            return [self._ext(part, fresh) for part in value]
        if _repack(value) != data:
            return {_MARK: ["typed", kind, _text(data)]}
        return self._split(_clean(self._node(value, fresh)), fresh)

    def appended(
        self, serialized: tuple[str, bytes], before: bytes, fresh: dict[str, Any]
    ) -> list[Any] | None:
        """Return the trees of what a list of messages has more than it had before.

        Args:
            serialized: The list.
            before: The list before, as MessagePack.
            fresh: As for :meth:`tree`.

        Returns:
            ``None`` where it is another list, or has entries that are not objects.
        """
        kind, data = serialized
        (count, start), (old_count, old_start) = _array(data), _array(before)
        old = memoryview(before)[old_start:]
        if kind != "msgpack" or not 0 < old_count <= count or data[start : start + len(old)] != old:
            return None
        rest = _unpack(b"\xdd" + (count - old_count).to_bytes(4) + data[start + len(old) :])
        if not all(isinstance(part, _Ext) for part in rest):
            return None
        return [self._ext(part, fresh) for part in rest]

    def _node(self, value: Any, fresh: dict[str, Any]) -> Any:
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**63 else {_MARK: ["int", str(value)]}
        if isinstance(value, float):
            return value if math.isfinite(value) else {_MARK: ["float", repr(value)]}
        if isinstance(value, list):
            return [self._node(part, fresh) for part in value]
        if isinstance(value, _Ext):
            return self._ext(value, fresh)
        if isinstance(value, bytes):
            return {_MARK: ["bytes", _text(value)]}
        if isinstance(value, tuple):
            return {_MARK: ["tuple", [self._node(part, fresh) for part in value]]}
        if _MARK not in value and all(isinstance(key, str) for key in value):
            return {key: self._node(part, fresh) for key, part in value.items()}
        pairs = [[self._node(key, fresh), self._node(part, fresh)] for key, part in value.items()]
        return {_MARK: ["map", pairs]}

    def _ext(self, value: _Ext, fresh: dict[str, Any]) -> Any:
        digest = blake2b(value.data, digest_size=16, salt=bytes([value.code])).digest()
        known = self._names.get(digest)
        if known is not None and (known[_MARK] in fresh or self._known(known[_MARK])):
            return known
        tree = self._split(_clean({_MARK: ["ext", value.code, self._inner(value, fresh)]}), fresh)
        if len(msgspec.json.encode(tree)) > PIECE_BYTES:
            tree = self._piece(tree, fresh)
            _remember(self._names, digest, tree)
        return tree

    def _inner(self, value: _Ext, fresh: dict[str, Any]) -> Any:
        try:
            inner = _unpack(value.data)
            if _repack(inner) == value.data:
                return self._node(inner, fresh)
        except (ValueError, TypeError):
            pass
        return {_MARK: ["raw", _text(value.data)]}

    def _split(self, tree: Any, fresh: dict[str, Any]) -> Any:
        """Make pieces of long texts."""
        if isinstance(tree, str):
            return self._piece(tree, fresh) if len(tree) > PIECE_CHARACTERS else tree
        if isinstance(tree, list):
            return [self._split(part, fresh) for part in tree]
        if isinstance(tree, dict) and not reference(tree):
            return {key: self._split(part, fresh) for key, part in tree.items()}
        return tree

    def _piece(self, tree: Any, fresh: dict[str, Any]) -> dict[str, str]:
        name = blake2b(msgspec.json.encode(tree), digest_size=16).hexdigest()
        if name not in fresh and not self._known(name):
            fresh[name] = tree
        return {_MARK: name}

    # --- from trees -------------------------------------------------------------------------------

    def serialized(self, tree: Any, pieces: Mapping[str, msgspec.Raw]) -> tuple[str, bytes]:
        """Return a tree as the serializer made it.

        Raises:
            CheckpointUnreadable: A piece is lacking, because it was purged or is damaged; or the tree is none
                that was made here.
        """
        budget = _Budget(self._most or _ANY, self._most)
        found = tree.get(_MARK) if isinstance(tree, dict) else None
        try:
            if isinstance(found, list) and found[:1] == ["typed"]:
                _, kind, data = found
                return kind, _bytes(self._value(data, pieces, budget))
            return "msgpack", ormsgpack.packb(self._value(tree, pieces, budget), option=_OPTION)
        except (TypeError, ValueError, RecursionError) as error:
            raise CheckpointUnreadable(
                f"A checkpoint is not as AgentX writes it ({error}): it is damaged or forged. "
                "Go on from an earlier one."
            ) from error

    def _value(self, tree: Any, pieces: Mapping[str, msgspec.Raw], budget: _Budget) -> Any:
        budget.spend(_NODE_BYTES + (len(tree) if isinstance(tree, str) else 0))
        if isinstance(tree, list):
            return [self._value(part, pieces, budget) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if _MARK not in tree:
            return {key: self._value(part, pieces, budget) for key, part in tree.items()}
        told = tree[_MARK]
        if isinstance(told, str):
            if told not in pieces:
                raise CheckpointUnreadable(
                    f"A checkpoint needs the piece {told}, which was purged or is damaged. "
                    "`agentx repair` restores damage; otherwise go on from an earlier checkpoint."
                )
            found, size = self._packed.get(told, (None, 0))
            budget.spend(size)
            if found is None:
                left = budget.left
                found = self._value(msgspec.json.decode(pieces[told]), pieces, budget)
                if not isinstance(found, list | dict):  # others could be changed by who gets them
                    _remember(self._packed, told, (found, left - budget.left))
            return found
        return self._marked(told, pieces, budget)

    def _marked(self, told: list[Any], pieces: Mapping[str, msgspec.Raw], budget: _Budget) -> Any:
        match told:
            case ["ext", int(code), {"~": ["raw", raw]}]:
                return ormsgpack.Ext(code, _bytes(self._value(raw, pieces, budget)))
            case ["ext", int(code), inner]:
                packed = ormsgpack.packb(self._value(inner, pieces, budget), option=_OPTION)
                budget.spend(len(packed))
                return ormsgpack.Ext(code, packed)
            case ["bytes", text]:
                return _bytes(self._value(text, pieces, budget))
            case ["tuple", list(parts)]:
                return tuple(self._value(part, pieces, budget) for part in parts)
            case ["map", list(pairs)]:
                return {
                    self._value(key, pieces, budget): self._value(part, pieces, budget) for key, part in pairs
                }
            case ["float", text]:
                return float(text)
            case ["int", text]:
                return int(text)
        raise CheckpointUnreadable(
            f"A checkpoint holds {str(told)[:80]!r}, which this version cannot read: upgrade AgentX."
        )


def _array(data: bytes) -> tuple[int, int]:
    """Return the length of an array of MessagePack, and where its first entry begins; 0 for anything else."""
    first = data[0] if data else 0
    if first & 0xF0 == 0x90:  # noqa: PLR2004 - a short array
        return first & 0x0F, 1
    if first in (0xDC, 0xDD):
        size = 2 if first == 0xDC else 4  # noqa: PLR2004 - its length has 16 bits, or 32
        return int.from_bytes(data[1 : 1 + size]), 1 + size
    return 0, 0


def _unpack(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_Ext, option=_OPTION)


def _repack(value: Any) -> bytes:
    return ormsgpack.packb(value, default=lambda one: ormsgpack.Ext(one.code, one.data), option=_OPTION)


def _clean(tree: Any) -> Any:
    return clean_struct(_Tree(tree)).tree


def reference(tree: Any) -> str:
    """Return the id of the piece that a tree refers to; empty for any other tree."""
    found = tree.get(_MARK) if isinstance(tree, dict) else None
    return found if isinstance(found, str) else ""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # redacted
        return text.encode()


def _remember(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    if len(cache) > _REMEMBERED:
        cache.popitem(last=False)
