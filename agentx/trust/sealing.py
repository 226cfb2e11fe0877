"""Encryption of what a workspace keeps for this user alone, with a key in their state directory.

A copy, a backup or a search of the workspace's directory finds nothing in it that can be read. Whoever can read both
directories can decrypt it.
"""

import base64
from pathlib import Path

from agentx.trust.store import Store, StoreUnusable

_KEY = "sealing.key"


def seal(state_dir: Path, content: bytes) -> bytes:
    """Encrypt a content.

    Raises:
        StoreUnusable: There is no state directory that a key could lie in.
    """
    from cryptography.fernet import Fernet  # noqa: PLC0415 - only where a call waits

    return Fernet(base64.urlsafe_b64encode(Store(state_dir).key(_KEY))).encrypt(content)


def unseal(state_dir: Path, sealed: bytes) -> bytes | None:
    """Decrypt a content; ``None`` where it was changed, or sealed with another key."""
    from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415 - as above

    try:
        return Fernet(base64.urlsafe_b64encode(Store(state_dir).key(_KEY))).decrypt(sealed)
    except (InvalidToken, StoreUnusable):
        return None
