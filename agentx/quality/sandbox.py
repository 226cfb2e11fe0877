"""Run a project's own command in a copy of its tree, with a time limit, capped output and no secrets.

The command is code that an agent may have written. The invariants: the command never works in the tree that
is checked; the environment holds only what this module and the caller name; the call returns in bounded time
and memory; nothing that the command started outlives it. Whether the command is also isolated from the rest
of the machine depends on the machine: bubblewrap if available, otherwise Landlock. The result names which was
used.
"""

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agentx.quality import bubblewrap, confine, runner_reports, toolchains
from agentx.quality.bubblewrap import IsolationUnavailableError
from agentx.quality.process import ProcessOutcome, run_process
from agentx.quality.runner_reports import RunnerReport
from agentx.quality.tree import ChangedFile, TreeCopy, TreeLimits
from agentx.storage.errors import AgentXError, UsageError

NOT_FOUND = 127
"""The exit status of a shell for a missing program (POSIX, Shell Command Language, 2.8.2)."""
_SIGNALS = "this kernel is older than Linux 6.12: the command could send signals to your other processes"
_UNFILTERED = (
    "no system calls are filtered on this machine: the command could read the keys of the kernel's keyrings"
)
_CLOSED = re.compile(r"Operation not permitted|Permission denied|PermissionError")
NO_MODULE = re.compile(r"No module named '?([\w.]{1,100})")

SYSTEM = (
    *("/bin", "/etc", "/gnu/store", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/opt", "/sbin"),
    *("/usr", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage"),
)
"""System directories that an isolated command may read."""

Isolation = Literal["bubblewrap", "landlock", "none"]
Wanted = Literal["auto", "bubblewrap", "landlock", "none"]


class SandboxError(AgentXError):
    """A command could not be run in a copy of the tree at all."""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a command did in its copy of the tree.

    Attributes:
        command: The command as given.
        exit_code: Its exit status (128 + N if signal N ended it); None after a time-out.
        timed_out: Whether the time limit ended it.
        output: Standard output and standard error in the order of arrival; the first and last part if too
            long.
        output_bytes: Total number of bytes printed.
        truncated: Whether ``output`` is incomplete.
        isolation: What isolated it from the rest of the machine: ``bubblewrap``, ``landlock`` or ``none``.
        changes: What it wrote and deleted in the copy, except caches and ignored files.
        notes: What a reader should know: why commands are not isolated, what was left out, what was missing.
        reports: The test runners' own reports, if they were asked for.
    """

    command: str
    exit_code: int | None
    timed_out: bool
    output: str
    output_bytes: int
    truncated: bool
    isolation: Isolation
    changes: tuple[ChangedFile, ...]
    notes: tuple[str, ...]
    reports: tuple[RunnerReport, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a command may see; one per workspace.

    Attributes:
        environ: The caller's environment. PATH, LANG, LC_*, TZ, toolchain locations and ``env_allow`` are
            passed on.
        env_allow: Names of further variables to pass on.
        isolation: ``auto`` uses the best that works, ``none`` uses none, any other value requires that one.
        readable: Paths that an isolated command may read besides the system and the running Python.
        hidden: Paths that it may not read although they lie in a system directory.
        never: Paths that it may not read although they lie in any readable directory: sockets of AgentX.
        exclude: Patterns, as in ``.gitignore``, of what is not copied.
        limits: Limits for the tree and its changes.
    """

    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold secrets
    env_allow: Sequence[str] = ()
    isolation: Wanted = "auto"
    readable: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    never: Sequence[Path] = ()
    exclude: Sequence[str] = ()
    limits: TreeLimits = field(default_factory=TreeLimits)


def isolation_for(policy: SandboxPolicy) -> tuple[Isolation, tuple[str, ...]]:
    """Return which isolation a command would get, with notes on its gaps here; only a probe is run.

    Raises:
        IsolationUnavailableError: The policy requires an isolation that does not work here.
    """
    if policy.isolation == "none":
        return "none", ()
    reasons = []
    if policy.isolation in ("auto", "bubblewrap"):
        reason = bubblewrap.why_unavailable(_user_path(policy))
        if reason is None:
            return "bubblewrap", () if confine.filters_here() else (_UNFILTERED,)
        reasons.append(reason)
    if policy.isolation in ("auto", "landlock"):
        reason = confine.why_unavailable()
        if reason is None:
            return "landlock", () if confine.landlock_abi() >= confine.SIGNAL_ABI else (_SIGNALS,)
        reasons.append(reason)
    said = "; ".join(reasons)
    if policy.isolation != "auto":
        raise IsolationUnavailableError(
            f"{said}: fix this, or set tools.isolation in agentx.toml to another value"
        )
    return "none", (f"ran without isolation: {said}",)


def run_in_copy(
    root: Path,
    command: str | Sequence[str],
    *,
    timeout_s: float,
    max_output_bytes: int,
    policy: SandboxPolicy,
    collect_changes: bool = True,
    ask_for_reports: bool = False,
) -> SandboxResult:
    r"""Run a command in a copy of a tree.

    A string is always passed unchanged to ``/bin/sh -c``, so that what works in a terminal works here. A
    sequence is run unchanged, without interpretation by a shell. The command gets a PATH that begins with the
    Python that runs AgentX, a private home and temporary directory, and no input. Without isolation it can
    still read what the user can read, write outside its copy by an absolute path, and use the network.

    The tree is only read. After ``timeout_s``, the command is killed, with all it started. With
    ``ask_for_reports``, test runners are asked for a report outside the tree; the result names the command
    without the options for this.

    Raises:
        UsageError: The command is empty, or a shell cannot accept it.
        TreeTooLargeError: The tree exceeds the limits.
        IsolationUnavailableError: The policy requires an isolation that does not work here.
        SandboxError: The copy cannot be made, or the shell cannot be started or isolated.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as tree:
        ...     done = run_in_copy(Path(tree), "echo made > new.txt && echo hello", timeout_s=30,
        ...                        max_output_bytes=10_000, policy=SandboxPolicy())
        >>> done.exit_code, done.output, done.changes
        (0, 'hello\n', (ChangedFile(path='new.txt', content=b'made\n', executable=False),))
    """
    shown, argv = _shell_command(command)
    started_ns = time.time_ns()
    isolation, limits = isolation_for(policy)
    with _box() as box:
        tree, asked = box / "tree" / (root.name or "tree"), box / runner_reports.FOLDER
        try:
            copy = TreeCopy(root, tree, policy.limits, exclude=policy.exclude)
            env = _environment(policy, box)
            toolchains.link(policy.environ, box / "home")
            if ask_for_reports:
                env |= runner_reports.variables(shown, tree, asked, env)
                _, argv = _shell_command(runner_reports.with_options(shown, tree, asked))
            outcome = run_process(
                _isolated(argv, isolation, policy, box, tree),
                cwd=tree,
                env=env,
                cookie=uuid.uuid4().hex,
                timeout_s=timeout_s,
                max_output_bytes=max_output_bytes,
            )
        except OSError as error:
            raise SandboxError(f"cannot run {shown!r} in a copy of {root}: {error}") from error
        _check_started(shown, outcome)
        return SandboxResult(
            command=shown,
            exit_code=outcome.exit_code,
            timed_out=outcome.timed_out,
            output=runner_reports.without_mentions(outcome.output),
            output_bytes=outcome.output_bytes,
            truncated=outcome.truncated,
            isolation=isolation,
            changes=copy.changes() if collect_changes else (),
            notes=(*limits, *_remarks(shown, outcome, isolation), *copy.notes),
            reports=runner_reports.collect(asked, tree, started_ns) if ask_for_reports else (),
        )


@dataclass(frozen=True, slots=True)
class ConfinedProgram:
    """How to start a program isolated, in an empty directory with a private home.

    Attributes:
        argv: The command line.
        place: Its working directory.
        environ: Its environment.
        isolation: What isolates it.
    """

    argv: Sequence[str]
    place: Path
    environ: Mapping[str, str]
    isolation: Isolation


@contextmanager
def confined(
    words: Sequence[str], environ: Mapping[str, str], policy: SandboxPolicy
) -> Iterator[ConfinedProgram]:
    """Prepare a program that talks over pipes; its directory is deleted afterwards.

    With isolation it sees itself and what the policy says, and has no network. Without, it runs as the user.

    Raises:
        OSError: The program is not found.
        IsolationUnavailableError: The policy requires an isolation that does not work here.
        SandboxError: The directory cannot be made.
    """
    isolation, _ = isolation_for(policy)
    program = shutil.which(words[0], path=environ.get("PATH") or os.defpath)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    with _box() as box:
        place = box / "tree" / "work"
        place.mkdir()
        if isolation == "none":
            yield ConfinedProgram(words, place, environ, isolation)
            return
        toolchains.link(policy.environ, box / "home")
        whole = Path(program).absolute()
        if not any(whole.is_relative_to(readable) for readable in _readable(policy)):
            policy = replace(policy, readable=[*policy.readable, whole])
        yield ConfinedProgram(
            _isolated([str(whole), *words[1:]], isolation, policy, box, place, tells=True),
            place,
            {**environ, "HOME": str(box / "home"), "TMPDIR": str(box / "tmp")},
            isolation,
        )


def _isolated(
    argv: list[str],
    isolation: Isolation,
    policy: SandboxPolicy,
    box: Path,
    tree: Path,
    *,
    tells: bool = False,
) -> list[str]:
    """Return the command line that runs ``argv`` isolated.

    ``tells`` asks for the line :data:`agentx.quality.confine.LEFT` on stderr.
    """
    if isolation == "none":
        return argv
    readable = _readable(policy)
    if isolation == "landlock":
        return confine.landlocked(argv, readable=readable, writable=box, tells=tells)
    return bubblewrap.wrapped(
        confine.filtered(argv, tells=tells) if confine.filters_here() else argv,
        readable=[*readable, Path(confine.__file__)],
        writable=box,
        cwd=tree,
        search_path=_user_path(policy),
    )


def _readable(policy: SandboxPolicy) -> list[Path]:
    """Return the paths that an isolated command may read.

    These are the system, the running Python, PATH, toolchains, and the policy's own list.
    """
    home = Path(policy.environ.get("HOME") or "/nonexistent")
    hidden = [place.resolve() for place in (home, *policy.hidden) if place.is_absolute()]
    kept = [Path(entry) for entry in _user_path(policy).split(":") if entry.startswith("/")]
    kept += toolchains.readable(policy.environ)
    # A PATH that names the home directory itself, or the root, does not make its contents readable.
    kept = [place for place in kept if not any(one.is_relative_to(place.resolve()) for one in hidden)]
    needed = [Path(place) for place in (*SYSTEM, sys.base_prefix, sys.prefix)]
    readable = [*(part for place in needed for part in _without(place, hidden)), *kept, *policy.readable]
    never = [place.resolve() for place in policy.never]
    readable = [part for place in readable for part in _without(place, never)]
    return list(dict.fromkeys(part for place in readable for part in (place, place.resolve())))


def _without(place: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return a directory, or its entries where something hidden lies in it."""
    inside = [one for one in hidden if one.is_relative_to(place.resolve())]
    if not inside:
        return [place]
    if place.resolve() in inside:
        return []
    try:
        return [part for child in sorted(place.resolve().iterdir()) for part in _without(child, inside)]
    except OSError:
        return []


def _shell_command(command: str | Sequence[str]) -> tuple[str, list[str]]:
    """Return the command as shown to the user, and the arguments that run it."""
    shown = command if isinstance(command, str) else shlex.join(command)
    if not shown.strip():
        raise UsageError('the command is empty: set one, for example "python -m pytest -q"')
    try:
        readable = "\0" not in shown and bool(os.fsencode(shown))
    except UnicodeEncodeError:
        readable = False
    if not readable:
        raise UsageError(f"the command {shown!a} has characters that a shell cannot take")
    return shown, ["/bin/sh", "-c", shown if isinstance(command, str) else f"exec {shown}"]


@contextmanager
def _box() -> Iterator[Path]:
    """Create a private directory for the tree, a home and temporary files; delete it afterwards."""
    try:
        box = Path(tempfile.mkdtemp(prefix="agentx-run-")).resolve()
    except OSError as error:
        raise SandboxError(f"cannot create a temporary directory: {error}") from error
    try:
        for name in ("bin", "home", runner_reports.FOLDER, "tmp", "tree"):
            (box / name).mkdir()
        yield box
    finally:
        # A command may leave directories nested deeper than Python's recursion limit, or without permissions.
        with suppress(RecursionError):
            shutil.rmtree(box, ignore_errors=True)
        if box.exists():
            subprocess.run(["chmod", "-R", "u+rwX", "--", str(box)], capture_output=True, check=False)
            subprocess.run(["rm", "-rf", "--", str(box)], capture_output=True, check=False)


def _search_path(policy: SandboxPolicy, box: Path) -> str:
    """Return PATH with the Python that runs AgentX first, so that ``python -m pytest`` finds that one."""
    if sys.prefix != sys.base_prefix:
        own = Path(sys.executable).parent
    else:  # the directory of a system Python also holds all other programs, and often no plain ``python``
        own = box / "bin"
        for name in ("python", "python3"):
            (own / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
            (own / name).chmod(0o755)
    return f"{own}:{_user_path(policy)}"


def _user_path(policy: SandboxPolicy) -> str:
    return policy.environ.get("PATH") or os.defpath


def _environment(policy: SandboxPolicy, box: Path) -> dict[str, str]:
    names = {*policy.env_allow, "LANG", "LANGUAGE", "TZ"}
    env = {
        "LANG": "C.UTF-8",
        **toolchains.variables(policy.environ),
        **{name: value for name, value in policy.environ.items() if name in names or name[:3] == "LC_"},
        "PATH": _search_path(policy, box),
        "HOME": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # otherwise the output before a time-out is lost
    }
    if sys.prefix != sys.base_prefix:
        env["VIRTUAL_ENV"] = sys.prefix
    return env


def _check_started(command: str, outcome: ProcessOutcome) -> None:
    if outcome.exit_code == confine.FAILED and outcome.output.startswith(confine.FAILURE):
        raise SandboxError(f"{command!r} was not run: {outcome.output.strip()}")


def _remarks(command: str, outcome: ProcessOutcome, isolation: Isolation) -> Iterator[str]:
    """Yield what a reader should know of a command that ended, with advice if something was missing."""
    if outcome.leftovers:
        yield "it left processes running in the background; they were ended"
    yield from _missing(command, outcome.exit_code, outcome.output, isolation)


def _missing(command: str, exit_code: int | None, output: str, isolation: Isolation) -> list[str]:
    """Return advice if the command failed for want of a program, a Python module or access."""
    if exit_code == NOT_FOUND:
        where = ", or name its directory under [checks] readable" if isolation != "none" else ""
        what = f"{command!r} ended with 127, so a program was not found"
        return [f"{what}: install it, or give its full path{where}"]
    module = NO_MODULE.search(output)
    if exit_code and module and f"-m {module[1]}" in command:
        what = f"the Python that runs AgentX has no {module[1]}"
        return [f"{what}: install it there, or name another Python in the command"]
    if exit_code and isolation == "landlock" and _CLOSED.search(output):
        what = "it ran under Landlock, which allows no socket, no /tmp and no /dev/shm"
        return [f"{what}: install bubblewrap if the command needs them"]
    return []
