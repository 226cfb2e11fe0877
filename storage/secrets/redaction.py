"""Redact what is recorded: texts, values and structs; how secrets are found is in ``finding``."""

import contextlib
from typing import TypeVar

import msgspec

from agentx.storage.events.types import Draft
from agentx.storage.secrets.finding import SecretMatch, clean, clean_value, find, redact
from agentx.storage.secrets.secret_signs import may_hold_json

__all__ = ["SecretMatch", "clean", "clean_draft", "clean_struct", "clean_value", "find", "redact"]

_T = TypeVar("_T", bound=msgspec.Struct)


def clean_struct(struct: _T) -> _T:
    """Clean every text in a struct; return a new struct, or the same if nothing in it can be a secret."""
    with contextlib.suppress(UnicodeEncodeError):  # lone surrogates
        text = msgspec.json.encode(struct).decode()
        if not may_hold_json(text):
            return struct
    return msgspec.convert(clean_value(msgspec.to_builtins(struct)), type(struct))


def clean_draft(draft: Draft) -> Draft:
    """Clean an event before it is recorded: its content and its actor."""
    return msgspec.structs.replace(draft, data=clean_struct(draft.data), actor=clean(draft.actor))
