"""The one way in which trusted content is hashed."""

import json
from hashlib import blake2b
from typing import Any


def canonical(value: Any) -> bytes:
    """Return a JSON value as bytes that do not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def digest(value: Any) -> str:
    """Return the hash of a JSON value."""
    return blake2b(canonical(value), digest_size=32).hexdigest()
