"""Encryption, with a key in the user's state directory, of what a workspace keeps for this user alone.

A copy, a backup or a search of the workspace's directory finds nothing readable. Anyone who can read both
directories can decrypt it.
"""

import base64
from pathlib import Path

from agentx.trust.store import Store, StoreUnusable

_KEY = "sealing.key"


def seal(state_dir: Path, content: bytes) -> bytes:
    """Encrypt bytes.

    Raises:
        StoreUnusable: The state directory for the key is missing.
    """
    from cryptography.fernet import Fernet  # noqa: PLC0415 - only where a call waits

    return Fernet(base64.urlsafe_b64encode(Store(state_dir).key(_KEY))).encrypt(content)


def unseal(state_dir: Path, sealed: bytes) -> bytes | None:
    """Decrypt bytes; return ``None`` if they were changed, or sealed with another key."""
    from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415 - as above

    try:
        return Fernet(base64.urlsafe_b64encode(Store(state_dir).key(_KEY))).decrypt(sealed)
    except (InvalidToken, StoreUnusable):
        return None
