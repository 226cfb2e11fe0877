"""A submission: a run in a workspace that was asked for, signed by the user who asks.

It carries two signed records: one of trust in the workspace's executable settings, and one of the submission
itself. So whoever can write the database can start nothing, and can change no word of what is started.
"""

import re
import time
import uuid
from collections.abc import Sequence

import msgspec

from agentx.agents.turn import DueTime
from agentx.engine.followed import FLEET, SUB
from agentx.fleet.place import Place
from agentx.scheduling.shared_queue import SharedQueue
from agentx.storage.errors import UsageError
from agentx.storage.events.types import RunStarted
from agentx.storage.git.exchange.remotes import PushRefused, Remote
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.transfer.push_pull import RemoteAhead, pull, push
from agentx.trust.digests import digest
from agentx.trust.fleet_remotes import check_name
from agentx.trust.records import find_in, signers
from agentx.trust.trusted_items import in_state
from agentx.workspace import Workspace

REMOTE = "fleet"
"""Name of the fleet's remote in the submitter's workspace."""

DAYS = 7.0
PRIORITY = 100
MOST_BYTES = 4_000_000
"""Most characters of a submission in the queue."""

_TRIES = 5
_SHOWN = 80
_RECORDS = 2
_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was asked for.

    Attributes:
        id: Its id; the run's idempotency key in the history.
        tenant: The tenant.
        workspace: Name of the workspace.
        message: The user's message, redacted.
        agent: The agent's role.
        user: Name of the user; empty for plain ``user``.
        submitted_ms: When, in milliseconds since 1970; 0 if it is not known.
        traceparent: The span that the worker's are parts of; empty for none.
        records: Signed records, one a line: of trust, and of this submission.
    """

    id: str
    tenant: str
    workspace: str
    message: str
    agent: str = "main"
    user: str = ""
    submitted_ms: int = 0
    traceparent: str = ""
    records: str = ""

    @property
    def digest(self) -> str:
        """The hash that the record of the run names: of everything else, also of the record of trust."""
        trust = self.records.partition("\n")[0]
        fields = (getattr(self, name) for name in self.__struct_fields__ if name != "records")
        return digest(["run", *fields, trust])

    def why_refused(self, tenant: str, accepted: Sequence[str]) -> str:
        """Return why a worker does nothing for it, as a clause; empty for nothing that can be seen here.

        Whether it is for the history that the workspace has is seen in the workspace.

        Args:
            tenant: The worker's tenant.
            accepted: Keys of the users who may submit.
        """
        if self.tenant != tenant:
            return f"it is for the tenant {self.tenant[:80]!r}"
        if not _ID.fullmatch(self.id):
            return f"{self.id[:80]!r} cannot be an id"
        if len(self.records.splitlines()) > _RECORDS:
            return "it has more signed records than those of its submission"
        _, why = find_in(self.records.encode(), accepted, kind="run", workspace=None, what=self.digest)
        return why and f"its signed record {why}"

    def is_signed_for(self, tenant: str) -> bool:
        """Return whether nothing is wrong with it for a worker that accepts whoever signed it."""
        return not self.why_refused(tenant, signers(self.records.encode()))


def read_submission(payload: object) -> Submission:
    """Return a submission from the queue; nothing in it is checked yet but its form.

    Raises:
        UsageError: It is too large, or something else.
    """
    if not isinstance(payload, str) or len(payload) > MOST_BYTES:
        raise UsageError(f"What is in the queue is not a text of up to {MOST_BYTES:,} characters.")
    try:
        return msgspec.json.decode(payload, type=Submission)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"What is in the queue cannot be read: {one_line(str(error))}") from error


def submit(  # noqa: PLR0913 - each is a part of a submission
    ws: Workspace,
    place: Place,
    queue: SharedQueue,
    message: str,
    *,
    workspace: str = "",
    agent: str = "main",
    priority: int = PRIORITY,
    days: float = DAYS,
    submission: str = "",
    traceparent: str = "",
) -> Submission:
    """Push a workspace to its remote, and add a run to the queue.

    Args:
        ws: The workspace; the remote's events are pulled first if it has more.
        place: Where the fleet is.
        queue: Its queue.
        message: The user's message.
        workspace: Name of the workspace in the fleet; by default that of its directory.
        agent: The agent's role.
        priority: Lower numbers run first within the workspace; from 1.
        days: How long the signed records are valid.
        submission: Id; a second submission with the same id is not run again. A new one by default.
        traceparent: Span of the caller, in W3C's notation, that the worker's are parts of; it is signed, too.

    Raises:
        UsageError: The message is empty, or the name or the id cannot be used, or the id is of another
            submission.
        UsageError: A workspace is followed that workers cannot read.
        Restricted: The workspace is not trusted here.
        HistoriesDiverged: The workspace and its remote both have events that the other lacks.
        RemoteFailed: The remote cannot be reached.
        QueueFailed: The database cannot be reached.
    """
    name = workspace or ws.root.name
    check_name(name)
    submission = submission or uuid.uuid4().hex
    if not message.strip():
        raise UsageError("The message is empty.")
    if len(message) > MOST_BYTES // 8:
        raise UsageError(
            f"The message has {len(message):,} characters; a submission may have {MOST_BYTES // 8:,}. Put "
            "the text into a file of the workspace, and name the file."
        )
    if not _ID.fullmatch(submission):
        raise UsageError(f"{submission[:80]!r} cannot be an id; use 8 to 64 letters, digits and dashes.")
    ws.engine.trust.require("trust", "a worker would run what you do not trust")
    _check_followed(ws, place.tenant)
    bring_up(ws, place.remote_of(name))
    _check_run(ws, submission, message)
    made = Submission(
        id=submission,
        tenant=place.tenant,
        workspace=name,
        message=clean(message),
        agent=agent,
        user=ws.settings.user,
        submitted_ms=time.time_ns() // 1_000_000,
        traceparent=traceparent,
    )
    record, _ = ws.engine.trust.decide()
    trusted = [item for item in in_state(ws.state) if record is not None and item.digest in record.items]
    trust = ws.engine.trust.issue(days, trusted)
    made = msgspec.structs.replace(made, records=f"{trust}\n")
    run = ws.engine.trust.issue_run(days, made.digest)
    made = msgspec.structs.replace(made, records=f"{trust}\n{run}\n")
    stored = queue.enqueue(made.id, name, msgspec.json.encode(made).decode(), priority)
    _check_same(made, stored)
    return made


def _check_run(ws: Workspace, submission: str, message: str) -> None:
    """Refuse an id whose run is in the history, with another message than this one."""
    started = ws.engine.log.event_of(DueTime(submission=submission).key)
    if started is not None and isinstance(started.data, RunStarted):
        done = ws.engine.read_body(started.data.task)
        if done.strip() != clean(message).strip():
            raise UsageError(_taken(submission, done))


def _check_same(made: Submission, stored: str | None) -> None:
    """Refuse an id under which the queue holds something else; it is not replaced."""
    try:
        held = read_submission(stored) if stored else made
    except UsageError:  # not one of ours
        held = msgspec.structs.replace(made, message="")
    if any(getattr(held, name) != getattr(made, name) for name in ("workspace", "message", "agent")):
        raise UsageError(_taken(made.id, held.message))


def _taken(submission: str, message: str) -> str:
    return (
        f"The id {submission} belongs to another submission ({one_line(message)[:_SHOWN]!r}), so nothing was "
        "queued. Give another --id, or none."
    )


def _check_followed(ws: Workspace, tenant: str) -> None:
    """Refuse to submit a workspace that follows one by a directory or a URL, or of another tenant."""
    for name, one in ws.config.follow.upstreams.items():
        named = one.source.removeprefix(FLEET)
        if named == one.source or named.rpartition(SUB)[0] not in ("", tenant):
            raise UsageError(
                f"This workspace follows {name} ({one.source}), which workers of the tenant {tenant!r} do "
                "not read, so its rules would be missing there. Push it to its remote in the fleet, and "
                f"follow it by name: `agentx follow --stop {name}`, `agentx follow fleet:NAME`."
            )


def bring_up(ws: Workspace, url: str) -> None:
    """Make the remote hold this workspace's history, pulling first where it has more.

    Raises:
        HistoriesDiverged: Both have events that the other lacks.
        RemoteFailed: It cannot be reached, or other pushes come first again and again.
    """
    Remote.create(url)
    for left in reversed(range(_TRIES)):
        try:
            push(ws.engine, REMOTE, url)
        except RemoteAhead:
            pull(ws.engine, REMOTE, url)
        except PushRefused:
            if not left:
                raise
            continue
        return
