"""The command line of bubblewrap, where it is installed and allowed to work.

Inside: the whole file system read-only, one writable directory, an empty home and an empty ``/tmp`` and ``/run`` (where
the sockets of Docker and of key agents lie), no network, no other processes, no capabilities. What the running
Python needs (its environment, wherever that lies) and what PATH names stays visible. See bwrap(1).
"""

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agentx.storage.errors import AgentXError

PROBE_TIMEOUT_S = 10.0
NAMESPACES = (
    "--unshare-user-try",
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
)
SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run")  # noqa: S108


class IsolationUnavailableError(AgentXError):
    """Bubblewrap was demanded, and it is not installed or may not work here."""


@functools.cache
def why_unavailable(search_path: str) -> str | None:
    """Why bubblewrap cannot be used here, as a sentence; None where it works. Tried once for each search path.

    Containers often refuse what it needs, so it is really run, on ``true``.
    """
    program = shutil.which("bwrap", path=search_path)
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    try:
        done = subprocess.run(
            [program, *NAMESPACES, *SYSTEM, "true"], capture_output=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap (bwrap) cannot be run here: {error}"
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip() or f"exit status {done.returncode}"
        return f"bubblewrap (bwrap) may not work here: {said}"
    return None


def wrapped(
    argv: Sequence[str],
    *,
    writable: Path,
    cwd: Path,
    home: str,
    search_path: str,
    readable: Sequence[Path] = (),
) -> list[str]:
    """The command line that runs ``argv`` inside bubblewrap.

    Args:
        argv: The program and its arguments.
        writable: The one directory that may be written.
        cwd: Where it runs.
        home: The caller's home, which is hidden; empty for none.
        search_path: The caller's PATH: where bubblewrap is found; what it names stays visible.
        readable: Further files and directories that stay visible, read-only, though they lie in what is hidden.
    """
    hidden = [Path(home)] if Path(home).is_absolute() and home != "/" and Path(home).is_dir() else []
    named = [Path(entry) for entry in search_path.split(":") if entry.startswith("/")]
    kept = [Path(sys.base_prefix), Path(sys.prefix), *named, *readable]
    parts = [shutil.which("bwrap", path=search_path) or "bwrap", *NAMESPACES, *SYSTEM]
    for directory in hidden:
        parts += ["--tmpfs", str(directory)]
    for path in kept:
        if any(path.is_relative_to(place) for place in (*hidden, Path("/tmp"), Path("/run"))):  # noqa: S108
            parts += ["--ro-bind-try", str(path), str(path)]
    return [*parts, "--bind", str(writable), str(writable), "--chdir", str(cwd), "--", *argv]
