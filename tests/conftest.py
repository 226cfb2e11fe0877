"""What every test may rely on: an environment that is nobody's own, and no network but loopback.

Both are set before anything is collected, so that they hold for imports, session fixtures, doctests and child processes
as well. Kept from the machine are PATH and the user's cache, where `make test` has installed the embedding model.

No test waits for ever, and none depends on how the tests were started: a shell's background job ignores Ctrl-C, which
children inherit.

Two things make it quick: files are written where a sync costs nothing, if the machine has such a place, and modules are
compiled once, whatever the machine says, since hundreds of processes import them.
"""

import functools
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from agentx.settings import read_settings
from tests import suites
from tests.chat_server import serving
from tests.warm import agentx_program, run_code

collect_ignore = ["bench"]
"""Measures, run by `make bench` as a program of their own."""

DEAD_END = "http://127.0.0.1:9"
"""The discard port: a client that honours proxies, in a child process too, gets nowhere."""

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory."""

_ROOM = 2**30
"""Bytes that must be free there: more than all tests leave behind."""

_LEFT_S = 30.0
"""A thread that is to end may take this long on a busy machine."""

_WAIT_S = 180.0
"""A child process that a test waits for without a limit is killed after this long: later than the test times out."""

_OUTSIDE: list[str] = []
"""What the running test tried to reach; code that swallows the error does not hide it."""


class NetworkReachedError(AssertionError):
    """A test tried to leave the machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test` leave out what has a suite of its own."""
    parser.addoption("--without-suites", action="store_true", help=suites.HELP)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make test` does not run."""
    if config.getoption("--without-suites"):
        config.hook.pytest_deselected(items=suites.leave_out(items))


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment and the guard for the whole session, in the workers of pytest-xdist as well."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    if _holds_programs(MEMORY):
        patch.setenv("TMPDIR", str(MEMORY))
        patch.setattr(tempfile, "tempdir", str(MEMORY))
    home = tempfile.TemporaryDirectory(prefix="agentx-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    _set_environment(patch, Path(home.name))
    _guard_network(patch)
    _limit_waits(patch)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Examples that failed once are tried again, and no test is judged by how long it took.
    hypothesis.settings.register_profile("agentx", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("agentx")


def _holds_programs(place: Path) -> bool:
    """Whether tests can work there: it has room, and a script that lies there can be run."""
    if not os.access(place, os.W_OK):
        return False
    found = os.statvfs(place)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > _ROOM


def _set_environment(patch: pytest.MonkeyPatch, home: Path) -> None:
    cache = read_settings().cache_dir
    for name in list(os.environ):
        secret = name.endswith(("_API_KEY", "_API_BASE", "_TOKEN"))
        look = name in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
        if name.startswith(("GIT_", "AGENTX_", "XDG_", "LITELLM_")) or secret or look:
            patch.delenv(name)
    patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    patch.setattr(sys, "dont_write_bytecode", False)
    patch.setenv("HOME", str(home))
    patch.setenv("AGENTX_CACHE_DIR", str(cache))
    patch.setenv("AGENTX_NO_SERVER", "1")
    patch.setenv("XDG_CACHE_HOME", str(cache.parent))
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        patch.delenv(name, raising=False)
        patch.setenv(name.upper(), DEAD_END)
    patch.delenv("no_proxy", raising=False)
    patch.setenv("NO_PROXY", "127.0.0.1,localhost,::1")


def _guard_network(patch: pytest.MonkeyPatch) -> None:
    connect, connect_ex, resolve = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self, address):
        _refuse(self.family, address)
        return connect(self, address)

    def guarded_connect_ex(self, address):
        _refuse(self.family, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host, *args, **kwargs):
        _refuse(socket.AF_INET, (host,))
        return resolve(host, *args, **kwargs)

    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)


def _limit_waits(patch: pytest.MonkeyPatch) -> None:
    """End a wait for a child: a test that timed out would wait for it again, without end, when it leaves ``Popen``."""
    for name in ("wait", "communicate"):
        patch.setattr(subprocess.Popen, name, _limited(getattr(subprocess.Popen, name)))


def _limited(wait):
    @functools.wraps(wait)
    def limited(self, *arguments, timeout=None):
        if timeout is not None or len(arguments) > (wait.__name__ == "communicate"):
            return wait(self, *arguments, **({} if timeout is None else {"timeout": timeout}))
        try:
            return wait(self, *arguments, timeout=_WAIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    return limited


def _refuse(family: int, address) -> None:
    if family not in {socket.AF_INET, socket.AF_INET6} or _is_local(address[0]):
        return
    _OUTSIDE.append(str(address[0]))
    raise NetworkReachedError(
        f"a test tried to reach {address[0]}: only this machine's own servers may be reached"
    )


def _is_local(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if not name or name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(autouse=True)
def reached_outside():
    """Hosts that the running test tried to reach; it fails if there are any left when it ends."""
    _OUTSIDE.clear()
    yield _OUTSIDE
    assert not _OUTSIDE, f"the test tried to reach {', '.join(_OUTSIDE)}"


@pytest.fixture(autouse=True)
def _no_thread_of_ours_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """One that did would work on with what the next test has patched, or on a directory that is gone.

    A module whose tests share workspaces that are opened on first use says so: ``SHARES_WORKSPACES = True``.
    """
    if getattr(request.module, "SHARES_WORKSPACES", False):
        yield
        return
    before = set(threading.enumerate())
    yield
    left = [one for one in threading.enumerate() if one not in before and one.name.startswith("agentx-")]
    for thread in left:
        thread.join(_LEFT_S)
    assert not [one.name for one in left if one.is_alive()], "close the workspace, or wait for the thread"


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """The directory of the program ``agentx``, which starts without importing the engine."""
    with agentx_program() as folder:
        yield folder


@pytest.fixture
def in_a_process(programs):
    """Run Python code in a separate process that need not import the engine first, as ``subprocess.run`` does.

    Its standard input is empty, and a signal that it should receive must come from itself.
    """

    def in_a_process(code, *arguments, environ=os.environ):
        return run_code(str(programs / "socket"), code, [str(one) for one in arguments], environ)

    return in_a_process


@pytest.fixture
def chat_server():
    """A server on this machine that speaks the OpenAI chat protocol."""
    with serving() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def _contexts_wait() -> Iterator[None]:
    """Contexts in tests have no deadline unless a test gives one: what is recalled must not depend on the machine."""
    from agentx.workspace import Workspace

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Workspace.get_relevant_context.__kwdefaults__, "deadline_ms", None)
        yield
