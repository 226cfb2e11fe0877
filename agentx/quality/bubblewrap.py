"""The command line of bubblewrap, where it is installed and allowed to work.

Inside there is nothing but what is named: those files and directories read-only, one writable directory, an
empty ``/tmp``, devices and a ``/proc`` of its own, no network, no other processes, no capabilities. See
bwrap(1).
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
"""What each command has for itself."""


class IsolationUnavailableError(AgentXError):
    """Isolation was demanded that does not work here."""


@functools.cache
def why_unavailable(search_path: str) -> str | None:
    """Why bubblewrap cannot be used here, as a sentence; None where it works. Tried once for each search path.

    Containers often refuse what it needs, so it is really run, on ``true``.
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
        return f"bubblewrap (bwrap) may not work here: {said}"
    return None


def wrapped(
    argv: Sequence[str], *, readable: Sequence[Path], writable: Path, cwd: Path, search_path: str
) -> list[str]:
    """The command line that runs ``argv`` inside bubblewrap.

    Args:
        argv: The program and its arguments.
        readable: Files and directories that may be read and run; what is not there is skipped.
        writable: The one directory that may be written.
        cwd: Where it runs.
        search_path: The caller's PATH, where bubblewrap is found.
    """
    mounts = [(Path(path), [option, path]) for path, option in OWN.items()]
    mounts += [(path, ["--ro-bind-try", str(path), str(path)]) for path in readable]
    mounts.sort(key=lambda mount: len(mount[0].parts))  # a mount hides what was mounted below it before
    parts = [shutil.which("bwrap", path=search_path) or "bwrap", *NAMESPACES]
    parts += [word for _, words in mounts for word in words]
    # As root, a command could otherwise set what the kernel does for everybody (/proc/sys), which takes no capability.
    parts += ["--bind", str(writable), str(writable), "--remount-ro", "/proc", "--remount-ro", "/"]
    return [*parts, "--chdir", str(cwd), "--", *argv]
