"""The command line of bubblewrap, where it is installed and permitted.

A command inside sees only what is named: those files and directories read-only, one writable directory, an
empty ``/tmp``, separate devices and ``/proc``, no network, no other processes, no capabilities. See bwrap(1).
"""

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from agentx.storage.errors import AgentXError

PROBE_TIMEOUT_S = 10.0
NAMESPACES = (
    *("--unshare-user-try", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"),
)
OWN = {"/dev": "--dev", "/proc": "--proc", "/tmp": "--tmpfs"}  # noqa: S108
"""Mounts that each command has to itself."""


class IsolationUnavailableError(AgentXError):
    """The requested isolation does not work here."""


@functools.cache
def why_unavailable(search_path: str) -> str | None:
    """Return why bubblewrap cannot be used here, as a sentence, or None if it works.

    Containers often deny what bubblewrap needs, so it is actually run, on ``true``. The result is cached for
    each search path.
    """
    program = shutil.which("bwrap", path=search_path)
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    command = [program, *NAMESPACES, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap (bwrap) cannot be run here: {error}"
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip() or f"exit status {done.returncode}"
        return f"bubblewrap (bwrap) does not work here: {said}"
    return None


def wrapped(
    argv: Sequence[str], *, readable: Sequence[Path], writable: Path, cwd: Path, search_path: str
) -> list[str]:
    """Return the command line that runs ``argv`` inside bubblewrap.

    Files and directories in ``readable`` may be executed too; missing ones are skipped. bubblewrap is looked
    up in ``search_path``, the caller's PATH.
    """
    mounts = [(Path(path), [option, path]) for path, option in OWN.items()]
    mounts += [(path, ["--ro-bind-try", str(path), str(path)]) for path in readable]
    mounts.sort(key=lambda mount: len(mount[0].parts))  # a mount hides earlier mounts below it
    parts = [shutil.which("bwrap", path=search_path) or "bwrap", *NAMESPACES]
    parts += [word for _, words in mounts for word in words]
    # Otherwise a command that runs as root could change kernel settings (/proc/sys): it needs no capability.
    parts += ["--bind", str(writable), str(writable), "--remount-ro", "/proc", "--remount-ro", "/"]
    return [*parts, "--chdir", str(cwd), "--", *argv]
