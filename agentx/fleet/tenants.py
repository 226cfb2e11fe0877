"""Several tenants on one machine: a worker process for each, which shares nothing but the number of slots.

A tenant's processes have their own home and state directory, and the variables from the tenant's own file.
The keys in it reach them through a pipe, so that no argument, no environment and no file of ours shows them.
The parent gives out the slots: one that becomes free goes to the tenant that waits and has the fewest.
"""

import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import msgspec

from agentx.fleet import place as places
from agentx.fleet.carrying_out import Result
from agentx.fleet.place import Place
from agentx.fleet.submission import Submission
from agentx.fleet.worker import OnResult, Worker
from agentx.scheduling.ending import end_processes
from agentx.scheduling.shared_queue import Slots
from agentx.settings import Settings, hide_memory, read_settings, replace_environment
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.process_memory import machine_bytes

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

WANT_S = 1.0
"""How long a slot is kept for a tenant that asked for one and has not asked again, in seconds."""

RESTART_S = 5.0
"""Pause before a tenant's worker that failed is started again, in seconds."""

_END_S = 45.0
_LOOK_S = 0.25
_MOST_BYTES = 100_000

_SHARED = (
    "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "AGENTX_CACHE_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
"""Variables of the parent that every tenant gets."""


class TenantWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's worker process needs.

    Attributes:
        place: Where the tenant's fleet is.
        home: Directory of its copies, its home and its state.
        environ: Its environment, with its keys.
    """

    place: Place
    home: Path
    environ: Mapping[str, str]


def read_variables(path: Path) -> dict[str, str]:
    """Read a file with one ``NAME=VALUE`` on each line; it may be a pipe.

    Raises:
        UsageError: It cannot be read, others may read or write it, or a line has another form.
    """
    hide_memory()  # from here on this process holds the keys of tenants
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and (about.st_mode & 0o077 or about.st_uid != os.getuid()):
                raise UsageError(
                    f"{path} holds a tenant's keys, and others can read it or own it; run: chmod 600 {path}"
                )
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{path} has more than {_MOST_BYTES:,} bytes; it should hold variables only.")
    found = {}
    for number, line in enumerate(content.decode("utf-8", "surrogateescape").splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals or not name.isidentifier() or not name.isascii() or "\0" in value:
            raise UsageError(f"{path}, line {number}: write NAME=VALUE.")
        found[name] = value
    return found


def tenant_work(settings: Settings, tenant: str, home: Path, variables: Mapping[str, str]) -> TenantWork:
    """Return what a tenant's worker process needs; nothing of it is another tenant's or the parent's own.

    Args:
        settings: The parent's settings.
        tenant: The tenant.
        home: Directory of its copies.
        variables: Its variables.

    Raises:
        UsageError: No fleet of this name is known here.
    """
    root = nofollow.canonical(home)
    environ = {name: value for name in _SHARED if (value := settings.environ.get(name)) is not None}
    environ |= {"HOME": str(root / "home"), "AGENTX_STATE_DIR": str(root / "state"), **variables}
    database = read_settings(environ).fleet_database
    place = places.load(msgspec.structs.replace(settings, fleet_database=database), tenant)
    for folder in (root, root / "home", root / "state"):
        nofollow.make_directory(folder, parents=True)
        os.chmod(folder, 0o700)
    return TenantWork(place=place, home=root, environ=environ)


class SharedSlots:
    """The slots of a machine, given out among tenants.

    Args:
        total: Their number.
        clock: Returns seconds.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock, self._lock = total, clock, threading.Lock()
        self._used: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._wants: dict[str, float] = {}
        self._given = 0

    def take(self, tenant: str) -> bool:
        """Take a slot for a tenant, unless those that are free are another's turn."""
        with self._lock:
            now = self._clock()
            first = [
                one
                for one, asked in self._wants.items()
                if one != tenant and now - asked < WANT_S and self._rank(one) < self._rank(tenant)
            ]
            if self._total - sum(self._used.values()) <= len(first):
                self._wants[tenant] = now
                return False
            self._wants.pop(tenant, None)
            self._given += 1
            self._used[tenant] = self._used.get(tenant, 0) + 1
            self._last[tenant] = self._given
            return True

    def give_back(self, tenant: str) -> None:
        """Give a tenant's slot back."""
        with self._lock:
            self._used[tenant] = max(0, self._used.get(tenant, 0) - 1)

    def forget(self, tenant: str) -> None:
        """Give back all slots of a tenant whose process ended."""
        with self._lock:
            self._used.pop(tenant, None)
            self._wants.pop(tenant, None)

    def _rank(self, tenant: str) -> tuple[int, int]:
        return self._used.get(tenant, 0), self._last.get(tenant, 0)


class TenantWorkers:
    """Runs a worker process for each tenant.

    Args:
        works: What each needs, by tenant.
        slots: Maximum number of runs at once, of all tenants.
        on_result: Called with each submission and its result, in some thread.
        on_fault: Called with a sentence when something fails; work goes on.
        grace_s: How long runs may continue after :meth:`stop`, in seconds.
        memory_bytes: Bound on the memory of all their processes, in bytes, by default half of the machine's;
            each tenant has an equal part.
    """

    def __init__(
        self,
        works: Sequence[TenantWork],
        slots: int,
        *,
        on_result: OnResult = lambda *_: None,
        on_fault: Callable[[str], None] = lambda _: None,
        grace_s: float = 60.0,
        memory_bytes: int = 0,
    ) -> None:
        self._works, self._total, self._slots = works, slots, SharedSlots(slots)
        self._on_result, self._on_fault, self._grace_s = on_result, on_fault, grace_s
        self._memory_bytes = (memory_bytes or machine_bytes() // 2) // len(works)
        self._stop = threading.Event()
        self._processes: dict[str, BaseProcess] = {}

    def stop(self) -> None:
        """Start nothing more and let current runs finish; a second call interrupts them."""
        self._stop.set()
        for process in list(self._processes.values()):
            if process.is_alive():
                process.terminate()

    def run(self, *, once: bool = False) -> None:
        """Work until :meth:`stop`, or until every tenant's worker is drained.

        Args:
            once: Also return once all queues are empty.
        """
        threads = [
            threading.Thread(target=self._attend, args=(work,), kwargs={"once": once}, name=work.place.tenant)
            for work in self._works
        ]
        for one in threads:
            one.start()
        for one in threads:
            while one.is_alive():  # so that signals are handled
                one.join(_LOOK_S)
        end_processes(
            lambda: [one for one in self._processes.values() if one.is_alive()], self._grace_s, _END_S
        )

    def _attend(self, work: TenantWork, *, once: bool) -> None:
        """Keep a tenant's worker process running."""
        tenant = work.place.tenant
        while not self._stop.is_set():
            ours, theirs = get_context("spawn").Pipe()
            arguments = theirs, work, self._total, self._memory_bytes, self._grace_s
            process = get_context("spawn").Process(target=_serve, args=arguments, kwargs={"once": once})
            process.start()
            theirs.close()
            self._processes[tenant] = process
            if self._stop.is_set():
                process.terminate()
            with ours, suppress(EOFError, OSError):
                while True:
                    self._hear(tenant, ours, *ours.recv())
            process.join()
            self._slots.forget(tenant)
            if process.exitcode == 0:
                return
            if not self._stop.is_set():
                self._on_fault(
                    f"the worker of the tenant {tenant} ended with {process.exitcode}; it is started again"
                )
                self._stop.wait(RESTART_S)

    def _hear(self, tenant: str, pipe: Connection, kind: str, *said: object) -> None:
        if kind == "take":
            pipe.send(self._slots.take(tenant))
        elif kind == "give back":
            self._slots.give_back(tenant)
        elif kind == "fault":
            self._on_fault(f"{tenant}: {said[0]}")
        else:
            self._on_result(*said)  # type: ignore[arg-type]  # a submission and its result


# --- in a tenant's process ----------------------------------------------------------------------------------


class _ParentsSlots(Slots):
    """The slots that the parent gives out, among all tenants."""

    def __init__(self, total: int, pipe: Connection, on_end: Callable[[], None]) -> None:
        super().__init__(total)
        self._pipe, self._answers, self._asking = pipe, SimpleQueue[bool](), threading.Lock()
        self._sending, self._on_end = threading.Lock(), on_end
        threading.Thread(target=self._hear, name="parent", daemon=True).start()

    def take(self) -> bool:
        if not super().take():
            return False
        with self._asking:
            self.tell("take")
            given = self._answers.get()
        if not given:
            super().give_back()
        return given

    def give_back(self) -> None:
        super().give_back()
        self.tell("give back")

    def tell(self, *message: object) -> None:
        """Send something to the parent, unless it is gone."""
        with self._sending, suppress(OSError):
            self._pipe.send(message)

    def _hear(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._answers.put(self._pipe.recv())
        self._on_end()
        while True:  # the parent is gone: nobody gives slots
            self._answers.put(False)
            time.sleep(_LOOK_S)


def _serve(
    pipe: Connection, work: TenantWork, slots: int, memory_bytes: int, grace_s: float, *, once: bool
) -> None:
    """Be the worker of a tenant until the parent ends it, or is gone."""
    os.setsid()  # Ctrl-C at the terminal is for the parent alone
    os.umask(0o077)
    settings = replace_environment(work.environ)
    stop = threading.Event()
    made: list[Worker] = []

    def end(*_: object) -> None:
        stop.set()
        for one in made:
            one.stop()

    signal.signal(signal.SIGTERM, end)
    shared = _ParentsSlots(slots, pipe, end)

    def tell(submission: Submission, result: Result) -> None:
        shared.tell("result", submission, result)

    try:
        with places.opened(work.place) as queue:
            worker = Worker(
                work.place,
                queue,
                work.home,
                settings,
                on_result=tell,
                on_fault=lambda said: shared.tell("fault", said),
                grace_s=grace_s,
                slots=shared,
                memory_bytes=memory_bytes,
            )
            made.append(worker)
            if stop.is_set():
                return
            worker.run(once=once)
    except AgentXError as error:
        shared.tell("fault", str(error))
        raise SystemExit(1) from error
