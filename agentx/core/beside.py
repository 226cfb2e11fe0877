"""Where a workspace stands beside a project: in a directory of the project that Git ignores.

Loads next to nothing, because each hook of a host reads it.
"""

import os
from _blake2 import blake2b  # `hashlib` would load OpenSSL

FOLDER = ".agentx-project"
"""Directory in the project. Its ``.gitignore`` excludes all of it, so that Git does not see it."""

BESIDE = f"{FOLDER}/workspace"
"""The workspace, relative to the project."""

ARTIFACTS = "../.."
"""The project, relative to the workspace."""

HOOK_CHECKS = "hooks/checks"
"""Directory in the user's state directory, with the checks that hooks apply by themselves.

They are never read from a workspace: a clone could bring them along.
"""

_DIGEST_BYTES = 12


def name_of(path: str) -> str:
    """Return the name that stands for a directory in the user's state directory."""
    return blake2b(os.fsencode(path), digest_size=_DIGEST_BYTES).hexdigest()


def checks_file(workspace: str, state: str) -> str:
    """Return the file with the compiled checks of a workspace.

    Args:
        workspace: Its directory, absolute and without links.
        state: The user's state directory.
    """
    return f"{state}/{HOOK_CHECKS}/{name_of(workspace)}.json"
