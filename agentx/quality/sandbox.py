"""Run a project's own command in a copy of its tree, with a time limit, a cap on output and no secrets.

What runs is code that an agent may have written. The invariants: the tree that is checked is never the one that
the command works in; the environment holds nothing but what is named here and by the caller; the call returns
in bounded time and memory; nothing that the command started outlives it. Whether the command can
also reach the rest of the machine depends on bubblewrap: the result says which it was.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentx.quality import bubblewrap
from agentx.quality.process import ProcessOutcome, run_process
from agentx.quality.tree import ChangedFile, TreeCopy, TreeLimits
from agentx.storage.errors import AgentXError, UsageError

TOOLCHAINS = (
    "CARGO_HOME",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "RUSTUP_HOME",
)
"""Variables that say where a toolchain lies: passed on where they are set, for they hold places, not secrets."""
NOT_FOUND = 127
"""The exit status by which a shell says that there is no such program (POSIX, Shell Command Language, 2.8.2)."""
NO_MODULE = re.compile(r"No module named '?([\w.]{1,100})")

Bwrap = Literal["auto", "always", "never"]
Isolation = Literal["bubblewrap", "none"]


class SandboxError(AgentXError):
    """A command could not be run in a copy of the tree at all."""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a command did in its copy of the tree.

    Attributes:
        command: The command as it was given.
        exit_code: Its exit status (128 + N where signal N ended it); None after a time-out.
        timed_out: Whether the time limit ended it.
        output: What it printed, standard error included, as it came; the first and last part where it is too long.
        output_bytes: How much it printed in all.
        truncated: Whether ``output`` lacks a part of that.
        duration_ms: How long it ran.
        isolation: ``bubblewrap`` (no network, nothing writable but the copy, home hidden), or ``none``.
        changes: What it wrote and deleted in the copy, caches and ignored files aside.
        notes: What a reader should know: why there is no isolation, what was left out, what was missing.
    """

    command: str
    exit_code: int | None
    timed_out: bool
    output: str
    output_bytes: int
    truncated: bool
    duration_ms: int
    isolation: Isolation
    changes: tuple[ChangedFile, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether it ended by itself with exit status 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a command may see; one for a workspace.

    Attributes:
        environ: The caller's environment, of which PATH, LANG, LC_*, TZ, toolchain places and ``env_allow`` are passed on.
        env_allow: Names of further variables to pass on.
        use_bwrap: ``auto`` uses bubblewrap where it works, ``always`` insists on it, ``never`` does without.
        readable: Places in the hidden home that stay visible under bubblewrap (a toolchain, a package cache).
        exclude: Patterns, as in ``.gitignore``, of what is not copied.
        limits: How large the tree and its changes may be.
    """

    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold secrets
    env_allow: Sequence[str] = ()
    use_bwrap: Bwrap = "auto"
    readable: Sequence[Path] = ()
    exclude: Sequence[str] = ()
    limits: TreeLimits = field(default_factory=TreeLimits)


def run_in_copy(
    root: Path,
    command: str | Sequence[str],
    *,
    timeout_s: float,
    max_output_bytes: int,
    policy: SandboxPolicy,
    collect_changes: bool = True,
) -> SandboxResult:
    r"""Run a command in a copy of a tree.

    A string goes to ``/bin/sh -c`` as it stands, always, so that what works in a terminal works here; a sequence is
    run as it is, without a shell reading it. The program finds the Python that runs AgentX first on its PATH, a
    home and a temporary directory of its own, and no input. Without bubblewrap it can still read what the
    user can read, write outside its copy by an absolute path, and use the network.

    Args:
        root: The tree; it is only read.
        command: What to run.
        timeout_s: After so long it is ended, with all it started.
        max_output_bytes: How much of its output is kept.
        policy: What it may see.
        collect_changes: Whether to look for what it changed.

    Raises:
        UsageError: The command is empty, or no shell could take it.
        TreeTooLargeError: The tree exceeds the limits.
        IsolationUnavailableError: The policy says ``use_bwrap="always"`` and bubblewrap does not work here.
        SandboxError: The copy cannot be made or the shell cannot be started.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as tree:
        ...     done = run_in_copy(Path(tree), "echo made > new.txt && echo hello", timeout_s=30,
        ...                        max_output_bytes=10_000, policy=SandboxPolicy())
        >>> done.exit_code, done.output, done.changes
        (0, 'hello\n', (ChangedFile(path='new.txt', content=b'made\n', executable=False),))
    """
    shown, argv = _shell_command(command)
    isolation, notes = _choose_isolation(policy)
    with _box() as box:
        tree = box / "tree" / (root.name or "tree")
        try:
            copy = TreeCopy(root, tree, policy.limits, exclude=policy.exclude)
            env = _environment(policy, box)
            if isolation == "bubblewrap":
                argv = _wrapped(argv, policy, box, tree)
            outcome = run_process(
                argv,
                cwd=tree,
                env=env,
                cookie=uuid.uuid4().hex,
                timeout_s=timeout_s,
                max_output_bytes=max_output_bytes,
            )
        except OSError as error:
            raise SandboxError(f"cannot run {shown!r} in a copy of {root}: {error}") from error
        changes = copy.changes() if collect_changes else ()
    if outcome.leftovers:
        notes.append("it left processes running in the background; they were ended")
    notes += _missing(shown, outcome.exit_code, outcome.output, isolation)
    return _result(shown, outcome, isolation, changes, (*notes, *copy.notes))


def _result(
    shown: str,
    outcome: ProcessOutcome,
    isolation: Isolation,
    changes: tuple[ChangedFile, ...],
    notes: tuple[str, ...],
) -> SandboxResult:
    return SandboxResult(
        command=shown,
        exit_code=outcome.exit_code,
        timed_out=outcome.timed_out,
        output=outcome.output,
        output_bytes=outcome.output_bytes,
        truncated=outcome.truncated,
        duration_ms=outcome.duration_ms,
        isolation=isolation,
        changes=changes,
        notes=notes,
    )


def _wrapped(argv: list[str], policy: SandboxPolicy, box: Path, tree: Path) -> list[str]:
    """The command line inside bubblewrap: nothing writable but the box, the home hidden, no network."""
    return bubblewrap.wrapped(
        argv,
        writable=box,
        cwd=tree,
        home=policy.environ.get("HOME", ""),
        search_path=_user_path(policy),
        readable=policy.readable,
    )


def _shell_command(command: str | Sequence[str]) -> tuple[str, list[str]]:
    """The command as a person reads it, and as it is run."""
    shown = command if isinstance(command, str) else shlex.join(command)
    if not shown.strip():
        raise UsageError('the command is empty: set one, for example "python -m pytest -q"')
    try:
        readable = "\0" not in shown and bool(os.fsencode(shown))
    except UnicodeEncodeError:
        readable = False
    if not readable:
        raise UsageError(f"the command {shown!a} holds characters that no shell takes")
    return shown, ["/bin/sh", "-c", shown if isinstance(command, str) else f"exec {shown}"]


def _choose_isolation(policy: SandboxPolicy) -> tuple[Isolation, list[str]]:
    if policy.use_bwrap == "never":
        return "none", []
    reason = bubblewrap.why_unavailable(_user_path(policy))
    if reason is None:
        return "bubblewrap", []
    if policy.use_bwrap == "always":
        raise bubblewrap.IsolationUnavailableError(
            f"{reason}: install it, or allow checks without isolation in agentx.toml"
        )
    return "none", [f"ran without isolation: {reason}"]


@contextmanager
def _box() -> Iterator[Path]:
    """A private directory with room for the tree, a home and temporary files, gone afterwards."""
    try:
        box = Path(tempfile.mkdtemp(prefix="agentx-run-")).resolve()
    except OSError as error:
        raise SandboxError(f"no temporary directory can be made: {error}") from error
    try:
        for name in ("bin", "home", "tmp", "tree"):
            (box / name).mkdir()
        yield box
    finally:
        _remove(box)


def _remove(box: Path) -> None:
    # What a command left may be nested deeper than Python recurses, or locked against its owner.
    with suppress(RecursionError):
        shutil.rmtree(box, ignore_errors=True)
    if box.exists():
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(box)], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", str(box)], capture_output=True, check=False)


def _search_path(policy: SandboxPolicy, box: Path) -> str:
    """PATH with the Python that runs AgentX first, so that ``python -m pytest`` finds that one."""
    if sys.prefix != sys.base_prefix:
        own = Path(sys.executable).parent
    else:  # the directory of a system's Python holds everything else too, and often no plain ``python``
        own = box / "bin"
        for name in ("python", "python3"):
            (own / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
            (own / name).chmod(0o755)
    return f"{own}:{_user_path(policy)}"


def _user_path(policy: SandboxPolicy) -> str:
    return policy.environ.get("PATH") or os.defpath


def _environment(policy: SandboxPolicy, box: Path) -> dict[str, str]:
    names = {*TOOLCHAINS, *policy.env_allow, "LANG", "LANGUAGE", "TZ"}
    passed = {
        name: value for name, value in policy.environ.items() if name in names or name.startswith("LC_")
    }
    env = {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": _search_path(policy, box),
        "HOME": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # or what was printed before a time-out is lost
    }
    if sys.prefix != sys.base_prefix:
        env["VIRTUAL_ENV"] = sys.prefix
    return env


def _missing(command: str, exit_code: int | None, output: str, isolation: Isolation) -> list[str]:
    """What to do where the command could not start for want of a program or a Python module."""
    if exit_code == NOT_FOUND:
        where = ", or name its directory under [checks] readable" if isolation == "bubblewrap" else ""
        return [
            f"{command!r} ended with 127, so a program was not found: install it, or give its full path{where}"
        ]
    module = NO_MODULE.search(output)
    if exit_code and module and f"-m {module[1]}" in command:
        return [
            f"the Python that runs AgentX has no {module[1]}: install it there, or name another Python in the command"
        ]
    return []
