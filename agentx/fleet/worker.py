"""A worker of a fleet: takes submissions from the queue and has resident processes carry them out.

It shows signs of life to the database. A worker without one for a lease loses its submissions to the others;
if it still lives and only was cut off or frozen, its events cannot enter a history that has moved on.
"""

import functools
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from agentx.fleet.carrying_out import Result, in_process, offer_in_process, sweep_in_process
from agentx.fleet.local_copy import Home
from agentx.fleet.place import Place
from agentx.fleet.published_index import Publisher
from agentx.fleet.submission import Submission, read_submission
from agentx.fleet.telemetry import Attempt, FleetTelemetry, reported
from agentx.scheduling.call_limits import CallLimits
from agentx.scheduling.ending import end_processes
from agentx.scheduling.run_pool import RunPool
from agentx.scheduling.shared_queue import LeftToOthers, QueueFailed, SetAside, SharedQueue, Slots
from agentx.settings import DATABASE, Settings
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.text import one_line
from agentx.trust import records
from agentx.trust.store import Store, StoreUnusable

BEATS_PER_LEASE = 4
LOOK_S = 0.25
AGAIN_S, LONGEST_AGAIN_S = 1.0, 60.0
"""Pauses before a submission is tried again on a worker that could not carry it out; each is twice the one
before, up to the longest."""

PRUNE_S, DAY_S = 3600.0, 86_400.0
END_S = 30.0
"""Seconds that an interrupted run has to record its end and to push."""

_LOST = 3
"""How often the process of a run may die without a result before its submission counts as failed."""

OnResult = Callable[[Submission, Result], None]


class Worker:
    """Carries out what is in the queue.

    Args:
        place: Where the fleet is.
        queue: Its queue.
        home: Directory of the worker's copies; no other worker uses it.
        settings: Settings from the environment.
        on_result: Called with each submission and its result, in some thread.
        on_fault: Called with a sentence when the database or a sweep fails; work goes on.
        grace_s: How long runs may continue after :meth:`stop`, in seconds.
        slots: The slots for runs; by default as many as the fleet's settings say.
        memory_bytes: Bound on the memory of its processes, in bytes; by default half of the machine's.
    """

    def __init__(  # noqa: PLR0913 - each is a part of a worker
        self,
        place: Place,
        queue: SharedQueue,
        home: Path,
        settings: Settings,
        *,
        on_result: OnResult = lambda *_: None,
        on_fault: Callable[[str], None] = lambda _: None,
        grace_s: float = 60.0,
        slots: Slots | None = None,
        memory_bytes: int = 0,
    ) -> None:
        self._place, self._queue = place, queue
        # The processes of runs get these settings: what they do not need, they do not have.
        self._settings = msgspec.structs.replace(
            settings,
            fleet_remote=place.remote,
            fleet_tenant=place.tenant,
            fleet_database="",
            keys={name: key for name, key in settings.keys.items() if name != DATABASE},
        )
        self._home = Home(nofollow.canonical(home))
        self._on_result, self._on_fault, self._grace_s = on_result, on_fault, grace_s
        self.name = self._named()
        self._stop, self._ended = threading.Event(), threading.Event()
        self._left = set[str]()
        self._limits = CallLimits(queue)
        self._pool = RunPool(self._settings, ["agentx.fleet.carrying_out"], total_bytes=memory_bytes)
        self._slots = slots or Slots(place.slots)
        self._slots.room = self._pool.has_room
        public = msgspec.structs.replace(place, database="")
        self._publisher = Publisher(public, self._home, self._settings, on_fault)
        self._telemetry = FleetTelemetry(None, place.tenant, self.name)

    def stop(self) -> None:
        """Start nothing more and let current runs finish; a second call interrupts them."""
        if self._stop.is_set():
            self._grace_s = 0.0
        self._stop.set()

    def run(self, *, once: bool = False) -> None:
        """Work until :meth:`stop`, or until it is drained.

        Args:
            once: Also return once the queue is empty.

        Raises:
            UsageError: Another worker uses its directory.
            QueueFailed: The database cannot be reached at the start.
        """
        lock = FileLock(self._home.root / "worker.lock", timeout_s=0)
        try:
            with (
                lock.hold(),
                reported(self._settings, self._place, self.name, self._on_fault) as self._telemetry,
            ):
                self._telemetry.watch(self._queue, self._pool, self._place.lease_s)
                self._work(once=once)
        except WorkspaceBusy as error:
            if lock.held:
                raise
            raise UsageError(
                f"Another worker uses {self._home.root}; give each its own directory (--home DIR)."
            ) from error

    def _work(self, *, once: bool) -> None:
        self._warn()
        self._queue.leave(self.name)  # an earlier worker of this name may have been asked to end
        self._queue.beat(self.name, self._slots.total, 0)
        pulse = threading.Thread(target=self._beat, name="fleet-beat", daemon=True)
        sweeper = threading.Thread(target=self._sweep, name="fleet-sweep", daemon=True)
        pulse.start()  # first: DBOS may take longer to start than a lease, and takes runs while it starts
        try:
            with self._publisher.working(), self._queue.working(self.name, self._carry, self._slots):
                sweeper.start()
                while not self._stop.wait(LOOK_S):
                    if once and self._is_idle():
                        self._stop.set()
                self._queue.take_no_more()
                end_processes(self._pool.busy, self._grace_s, END_S)
        finally:
            self._ended.set()
        for thread in (pulse, sweeper):
            thread.join()
        self._tried(self._deliver)
        self._pool.close()
        with suppress(QueueFailed):  # then the lease says it
            self._queue.leave(self.name)

    # --- one submission -------------------------------------------------------------------------------------

    def _carry(self, payload: str) -> str:
        """Carry out a submission; return its :class:`Result` as JSON.

        Raises:
            KeyboardInterrupt: The worker ends; the submission stays in the queue.
            LeftToOthers: Its signature is not accepted here, but another worker may accept it.
        """
        submission, why = self._read(payload)
        if submission is not None and why and submission.is_signed_for(self._place.tenant):
            if submission.id not in self._left:
                self._left.add(submission.id)
                self._on_fault(f"{submission.id} for {submission.workspace} is left to other workers: {why}.")
            raise LeftToOthers
        with self._telemetry.attempt(None if why else submission) as attempt:
            if submission is None or why:
                result = Result(status="REFUSED", reason=why)
            else:
                result = self._result_of(submission, attempt)
                # The run is pushed: what fails here may not change its result.
                if result.commit:
                    self._tried(functools.partial(self._publisher.note, submission.workspace))
            if submission is not None:
                self._tried(functools.partial(self._on_result, submission, result))
            attempt.took(result.status, run=result.run, copy=result.copy, already=result.already)
        return msgspec.json.encode(result).decode()

    def _read(self, payload: str) -> tuple[Submission | None, str]:
        """Return a submission, if it can be read; and why it is refused."""
        try:
            submission = read_submission(payload)
            self._place.remote_of(submission.workspace)
        except UsageError as error:
            return None, str(error)
        # Before anything is done: a remote that does not exist would be waited for.
        return submission, submission.why_refused(self._place.tenant, self._accepted())

    def _accepted(self) -> list[str]:
        accepted = [*self._settings.trusted_keys]
        with suppress(StoreUnusable):
            accepted += records.accepted_keys(Store(self._settings.state_dir))
        return accepted

    def _warn(self) -> None:
        """Say it if this worker accepts no signature, or only that of its own user."""
        own, accepted = "", self._accepted()
        with suppress(StoreUnusable):
            own = records.own_public_key(Store(self._settings.state_dir))
        if not set(accepted) - {own}:
            whose = "those that this user signs here" if own in accepted else "none"
            self._on_fault(
                f"of all submissions it accepts {whose}, and leaves the others to other workers: name the "
                "keys of those who submit in AGENTX_TRUSTED_KEYS, or in `agentx trust key --add KEY`."
            )

    def _result_of(self, submission: Submission, attempt: Attempt) -> Result:
        """Have a process carry out a submission, again if it dies."""
        lost, told, pause, url = 0, "", AGAIN_S, self._place.remote_of(submission.workspace)
        while True:
            if self._stop.is_set():
                raise KeyboardInterrupt
            carry_out = functools.partial(in_process, report=attempt.reports)
            given = self._home.root, url, submission, self._settings
            said = self._pool.call(carry_out, *given, answer=self._limits.answer)
            try:
                result: Result | None = attempt.last(said)
            except OSError as error:  # no process can be started now
                result = Result(status="AGAIN", reason=one_line(str(error)))
            if result is not None and result.status != "AGAIN":
                return result
            lost += result is None
            if lost >= _LOST:
                return Result(status="FAILED", reason="the process of the run died without a result")
            if result is not None and not self._stop.is_set():
                if result.reason != told:
                    self._on_fault(f"{submission.workspace} is tried again: {result.reason}")
                told = result.reason
                self._stop.wait(pause)
                pause = min(2 * pause, LONGEST_AGAIN_S)

    # --- beside the work ------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Show signs of life, take over what dead workers had, and delete what is old, until the end."""
        fault, pruned_at = "", -PRUNE_S

        def beat() -> None:
            nonlocal pruned_at
            if self._queue.beat(self.name, self._slots.total, len(self._pool.busy())):
                self._stop.set()
            self._telemetry.took_over(self._queue.take_over(self._place.lease_s))
            self._pool.tidy()
            if time.monotonic() >= pruned_at + PRUNE_S:
                self._queue.prune(self._place.keep_days * DAY_S)
                pruned_at = time.monotonic()

        while not self._ended.wait(self._place.lease_s / BEATS_PER_LEASE):
            fault = self._tried(beat, fault)

    def _sweep(self) -> None:
        """Push what was set aside, and keep room on the disk, now and then, until the end."""
        fault = ""

        def sweep() -> None:
            self._deliver()
            if removed := self._home.make_room():
                self._on_fault(
                    f"The disk is nearly full: {len(removed)} copies that are on their remotes were removed."
                )
            if self._home.offers():
                list(self._pool.call(offer_in_process, self._home.root, self._settings))

        while True:
            fault = self._tried(sweep, fault)
            if self._ended.wait(min(10.0, self._place.lease_s / BEATS_PER_LEASE)):
                return

    def _tried(self, do: Callable[[], None], told: str = "") -> str:
        """Do something whose failure may end no thread; report why it failed unless told, and return that."""
        try:
            do()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - without a beat the runs would go to others
            named = "" if isinstance(error, AgentXError) else f"{type(error).__name__}: "
            why = named + one_line(str(error))
            if why != told:
                self._on_fault(why)
            return why
        return ""

    def _deliver(self) -> None:
        if not self._home.waiting() and not self._home.unfinished():
            return
        for folder, ref, workspace, submission, commit, pushed in self._pool.call(
            sweep_in_process, self._home.root, self._settings
        ):
            try:
                if ref:
                    self._queue.report(
                        SetAside(
                            ref=ref,
                            workspace=workspace,
                            submission=submission,
                            commit=commit,
                            worker=self.name,
                            pushed=pushed,
                        )
                    )
            except QueueFailed as error:
                self._on_fault(str(error))
            else:
                if pushed:
                    self._home.delivered(Path(folder))

    def _is_idle(self) -> bool:
        try:
            return self._queue.is_drained()
        except QueueFailed:
            return False

    def _named(self) -> str:
        """Return the worker's name, which its directory keeps."""
        path = self._home.root / "name"
        with suppress(OSError):
            if name := nofollow.read_text(path).strip():
                return name
        name = f"{socket.gethostname()[:40]}-{uuid.uuid4().hex[:8]}"
        write_file(path, name.encode(), 0o600)
        return name
