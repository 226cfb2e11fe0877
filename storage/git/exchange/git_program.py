"""Run the git program so that it reads nothing of a workspace's ``.git`` but the objects.

A copied workspace brings its own ``.git/config``, hooks and attributes, and these can name programs to run.
So git works in a temporary repository of ours, with the workspace's objects (``GIT_OBJECT_DIRECTORY``).
Garbage collection must never run there: without refs, every object would be garbage.

A run has a time limit for silence, not for its total duration.
"""

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.progress import Progress

SILENT_S = 300.0
"""Git reports progress about once a second; a server may check a push for minutes without output."""

_END_S = 5.0
"""Time to remove temporary files on SIGTERM, before SIGKILL."""

_LOOK_UP_S = 0.25
"""How often to check whether git has exited: an ssh master or a credential daemon may keep its pipes open."""

_LINES_KEPT = 20
_LINE_BYTES = 1_000
"""Limits for the kept part of standard error, which the other side can fill without bound."""

_READ_BYTES = 1 << 16
_NOT_FOUND = 127
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][a-z]+(?: [a-z]+)*): +(?:\d+% \((\d+)/(\d+)\)|(\d+))")
_DAMAGED = re.compile(r"\b([0-9a-f]{40})\b")

_UNSET = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE"),
    *("GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_REPLACE_REF_BASE"),
    *("GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_DEFAULT_HASH", "GIT_ATTR_SOURCE"),
    "SSH_ASKPASS",
)  # fmt: skip
"""Variables of another repository, set when we run in one of its hooks.

These are the variables of ``git rev-parse --local-env-vars``, and some more.
"""

_ENVIRON = {
    "LC_ALL": "C",  # error messages are parsed
    "GIT_TERMINAL_PROMPT": "0",  # never prompt
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # `ext::` runs commands
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    # A received megabyte may declare an object of gigabytes. Large files are streamed.
    "GIT_ALLOC_LIMIT": "1g",
}

_NOBODYS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Ignore the user's own configuration, which only servers need."""

_CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = true
	hooksPath = /dev/null
	askPass =
	fsync = all
	commitGraph = false
	multiPackIndex = false
	alternateRefsCommand = true
[gc]
	auto = 0
[maintenance]
	auto = false
[pack]
	useBitmaps = false
[fetch]
	unpackLimit = 1
	writeCommitGraph = false
	recurseSubmodules = false
[push]
	gpgSign = false
	followTags = false
	recurseSubmodules = no
[transfer]
	fsckObjects = true
	bundleURI = false
"""
"""Configuration of the temporary repository; commit graphs, bitmaps and multi-pack indexes are ignored."""

_THERE = {
    "core.hooksPath": os.devnull,
    "core.fsync": "all",
    "core.alternateRefsCommand": "true",  # in quarantine, git assumes that all refs here are complete
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "core.useReplaceRefs": "false",
    "pack.useBitmaps": "false",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "receive.autogc": "false",  # `gc.recentObjectsHook` runs a program
    "receive.unpackLimit": "1",
    "safe.directory": "*",  # its owner was checked when it was opened
}
"""Overrides for commands in a repository in another directory."""


class GitMissing(AgentXError):
    """The git program is not installed, or not on the path."""


class GitFailed(AgentXError):
    """The git program ended with an error.

    Attributes:
        said: Lines of its standard error without progress.
        printed: Its standard output.
    """

    def __init__(self, sentence: str, said: Sequence[str], printed: str) -> None:
        super().__init__(sentence)
        self.said = tuple(said)
        self.printed = printed

    @property
    def named(self) -> list[str]:
        """The local objects that its error messages name."""
        ours = (line for line in self.said if not line.startswith("remote: "))
        return list(dict.fromkeys(oid for line in ours for oid in _DAMAGED.findall(line)))


# --- commands -----------------------------------------------------------------------------------------------


class Objects:
    """The objects of a repository, for the git program to work on. Use :func:`objects_of`.

    Attributes:
        own: The temporary repository in front of them.
    """

    def __init__(self, own: Path, objects: Path) -> None:
        self.own = own
        self._objects = objects

    def command(self, *arguments: str, person: bool = False) -> list[str]:
        """Return the command line of a git command.

        Args:
            arguments: The command and its arguments.
            person: Whether to use the user's own configuration (credential helpers, proxies).
        """
        places = {"GIT_DIR": str(self.own), "GIT_OBJECT_DIRECTORY": str(self._objects)}
        return [*_environ(places if person else _NOBODYS | places), "git", *arguments]

    def ref(self, name: str) -> str:
        """Return the commit that a ref of the temporary repository names; empty if there is none."""
        try:
            return (self.own / name).read_text("ascii").strip()
        except FileNotFoundError:
            return ""


@contextlib.contextmanager
def objects_of(git_dir: Path, refs: Mapping[str, str] | None = None) -> Iterator[Objects]:
    """Put a temporary repository in front of the objects of another.

    Args:
        git_dir: The repository.
        refs: Refs of the temporary repository, by full name; fetches assume that they are complete.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-git-", ignore_cleanup_errors=True) as folder:
        own = Path(folder)
        (own / "refs").mkdir()
        (own / "config").write_text(_CONFIG, "ascii")
        (own / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
        with contextlib.suppress(FileNotFoundError):
            (own / "shallow").write_bytes(nofollow.read(git_dir / "shallow"))
        for name, oid in (refs or {}).items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(f"{oid}\n", "ascii")
        yield Objects(own, git_dir.absolute() / "objects")


def there(git_dir: Path, *arguments: str) -> list[str]:
    """Return the command line of a git command in another repository: a backup, not a workspace."""
    return [*_environ({**_NOBODYS, "GIT_DIR": str(git_dir)}), *("git", *_settings(_THERE), *arguments)]


def service(name: str, *branches: str) -> str:
    """Return the value of ``git push --receive-pack`` or ``git fetch --upload-pack`` for a directory.

    Args:
        name: ``receive-pack`` or ``upload-pack``.
        branches: The only refs that are shown, and so the only ones that a push assumes to be complete.
    """
    shown = [
        part
        for one in ("refs/", *(f"!{one}" for one in branches))
        for part in ("-c", f"transfer.hideRefs={one}")
    ]
    return shlex.join(["env", f"GIT_GRAFT_FILE={os.devnull}", "git", *_settings(_THERE), *shown, name])


def clone_command(url: str, root: Path, branch: str, *, here: bool) -> list[str]:
    """Return the command line that clones one branch of a repository, without hooks and without submodules.

    Args:
        url: Its URL, or its directory.
        root: The new directory.
        branch: Full name of the branch.
        here: Whether it is a directory of this machine; then the user's configuration is not read.
    """
    checks = _settings({"transfer.fsckObjects": "true", "core.hooksPath": os.devnull, "core.fsync": "all"})
    options = ("--quiet", "--progress", "--no-local", "--single-branch", "--no-tags", "--template=")
    there = (f"--upload-pack={service('upload-pack', branch)}",) if here else ()
    name = branch.removeprefix("refs/heads/")
    return [
        *_environ(_NOBODYS if here else {}),
        "git",
        *checks,
        "clone",
        *options,
        *there,
        "--branch",
        name,
        "--",
        url,
        str(root),
    ]


def limited(command: Sequence[str], most_bytes: int) -> list[str]:
    """Return a command line whose processes fail to write a file beyond a size, in bytes."""
    blocks = -(-most_bytes // 512)  # POSIX's unit
    return ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *command]


def _settings(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]


def _environ(more: Mapping[str, str]) -> list[str]:
    """Return an ``env`` command that sets git's variables; only agentx/settings.py reads the environment."""
    unset = [part for name in _UNSET if name not in more for part in ("-u", name)]
    return ["env", *unset, *(f"{name}={value}" for name, value in (_ENVIRON | dict(more)).items())]


# --- runs ---------------------------------------------------------------------------------------------------


def run(
    *commands: Sequence[str],
    given: Iterable[str] = (),
    progress: Progress | None = None,
    silent_s: float = SILENT_S,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run a command, or a pipeline of several.

    Args:
        commands: Command lines, from :meth:`Objects.command` and :func:`there`.
        given: Lines for the first one's standard input.
        progress: Called with the progress.
        silent_s: Maximum time without output.
        environ: The whole environment to start with; this process's own by default, which holds no keys.

    Returns:
        Standard output of the last command.

    Raises:
        GitFailed: One failed, or was silent for too long.
        GitMissing: The git program is not installed.
    """
    started: list[subprocess.Popen[bytes]] = []
    try:
        with tempfile.TemporaryFile() as source, contextlib.ExitStack() as opened:
            source.writelines(f"{line}\n".encode() for line in given)
            source.seek(0)
            heard = _start(commands, source, started, opened, environ)
            said, printed = _Said(progress), bytearray()
            _listen(heard, started, {"said": said.take, "printed": printed.extend}, silent_s)
    except _SilentError:
        what = _name(commands[0])
        raise GitFailed(
            f"`git {what}` printed nothing for {silent_s:g} seconds and was ended.", (), ""
        ) from None
    finally:
        _end(started)
    lines, output = said.lines(), printed.decode("utf-8", "surrogateescape")
    for command, process in zip(commands, started, strict=True):
        if process.returncode == _NOT_FOUND and any(line.startswith("env: ") for line in lines):
            raise GitMissing(
                "The git program is needed for this and was not found. Install Git 2.32 or newer."
            )
        if process.returncode:
            status = process.returncode
            ended = f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"
            why = "; ".join(line for line in lines if line.startswith(("fatal: ", "error: "))) or ended
            raise GitFailed(f"`git {_name(command)}` failed: {why}.", lines, output)
    return output


class _SilentError(Exception):
    """There was no output for too long."""


def _name(command: Sequence[str]) -> str:
    """Return the subcommand of a git command line, such as ``push``."""
    rest = list(command[command.index("git") + 1 :])
    while rest[0] == "-c":
        del rest[:2]
    return rest[0]


def _start(
    commands: Sequence[Sequence[str]],
    source: IO[bytes],
    started: list["subprocess.Popen[bytes]"],
    opened: contextlib.ExitStack,
    environ: Mapping[str, str] | None,
) -> dict[int, str]:
    """Start processes joined by pipes; return the descriptors to read, and what each is."""
    errors, errors_end = os.pipe()
    opened.callback(os.close, errors)
    try:
        reading = source.fileno()
        for command in commands:
            process = subprocess.Popen(
                command,
                stdin=reading,
                stdout=subprocess.PIPE,
                stderr=errors_end,
                cwd="/",
                env=environ,
                start_new_session=True,  # no terminal for prompts, and one process group to end
            )
            started.append(process)
            assert process.stdout is not None
            if command is not commands[-1]:
                reading = process.stdout.fileno()
            opened.callback(process.stdout.close)
        for process in started[:-1]:
            assert process.stdout is not None
            process.stdout.close()  # so that a writer gets SIGPIPE when its reader dies
    finally:
        os.close(errors_end)
    assert started[-1].stdout is not None
    return {errors: "said", started[-1].stdout.fileno(): "printed"}


def _listen(
    heard: Mapping[int, str],
    started: Sequence["subprocess.Popen[bytes]"],
    takers: Mapping[str, Callable[[bytes], object]],
    silent_s: float,
) -> None:
    with selectors.DefaultSelector() as selector:
        for descriptor, kind in heard.items():
            selector.register(descriptor, selectors.EVENT_READ, takers[kind])
        last = time.monotonic()
        while selector.get_map():
            ready = selector.select(_LOOK_UP_S)
            for key, _ in ready:
                last = time.monotonic()
                if part := os.read(key.fd, _READ_BYTES):
                    key.data(part)
                else:
                    selector.unregister(key.fd)
            if not ready and all(process.poll() is not None for process in started):
                return
            if time.monotonic() - last > silent_s:
                raise _SilentError
        for process in started:
            try:
                process.wait(max(0.0, last + silent_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise _SilentError from None


def _end(started: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End the processes that still run, with everything that they started."""
    for process in [process for process in started if process.poll() is None]:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)


class _Said:
    """Collects standard error: passes progress on, and keeps the last of the other lines."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._rest = b""
        self._lines: list[str] = []

    def take(self, part: bytes) -> None:
        """Process a chunk of output."""
        *lines, self._rest = re.split(rb"[\r\n]+", self._rest + part)
        self._rest = self._rest[:_LINE_BYTES]
        for line in lines:
            text = line[:_LINE_BYTES].decode("utf-8", "replace").rstrip()
            if found := _PROGRESS.match(text):
                what, done, total, counted = found.groups()
                if self._progress:
                    self._progress(what, int(done or counted), int(total or counted))
            elif text:
                self._lines.append(text)
        del self._lines[:-_LINES_KEPT]

    def lines(self) -> list[str]:
        """Return the kept lines, without progress."""
        self.take(b"\n")
        return self._lines
