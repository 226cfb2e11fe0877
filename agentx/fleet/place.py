"""Where a fleet is: its database, its remotes, its lease. One private file of the user for each tenant."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from agentx.scheduling.call_limits import CallLimits, Limit
from agentx.scheduling.shared_queue import SharedQueue
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import encodable, without_passwords
from agentx.trust import records
from agentx.trust.fleet_remotes import DEFAULT_TENANT, WORKSPACE, file_of, is_tenant, url_of
from agentx.trust.store import Store

LOCAL = "local"
"""The index of a fleet that publishes none: each worker keeps its own."""

LEASE_S = 60.0
SLOTS = 4
KEEP_DAYS = 30.0


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tenant's fleet is.

    Attributes:
        tenant: Name of the tenant, and of its schema in the database.
        database: URL of the database.
        remote: Pattern of the remotes' URLs, with ``{workspace}``.
        lease_s: Seconds without a sign of life after which others take a worker's submissions.
        slots: Maximum number of runs at once on each worker.
        keep_days: Days for which a submission that ended stays in the database.
        index: Where its indexes are published: ``local`` for nowhere, a directory, or ``s3://bucket/prefix``.
    """

    tenant: str
    database: str
    remote: str
    lease_s: float = LEASE_S
    slots: int = SLOTS
    keep_days: float = KEEP_DAYS
    index: str = LOCAL

    @property
    def schema(self) -> str:
        """The tenant's schema in a Postgres database."""
        return f"agentx_{self.tenant}"

    @property
    def shown_database(self) -> str:
        """The URL of the database without a password."""
        return without_passwords(self.database)

    def remote_of(self, workspace: str) -> str:
        """Return the URL of a workspace's remote.

        Raises:
            UsageError: It cannot be the name of a workspace.
        """
        return url_of(self.remote, self.tenant, workspace)


def check_index(url: str) -> str:
    """Return the place of a fleet's indexes in the form that is kept.

    Args:
        url: ``local``, ``s3://bucket/prefix`` or a directory.

    Raises:
        UsageError: It is none of them, or holds credentials.
    """
    if url in ("", LOCAL):
        return LOCAL
    if "://" not in url:
        return str(Path(url).absolute())
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(
            f"{_shown(url)!r} cannot hold the fleet's index; give `local`, s3://bucket/prefix or a directory."
        )
    if parts.username is not None or "@" in parts.netloc:
        raise UsageError(
            "The URL of the index has credentials, which every process here can read in an argument. Give "
            "them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile (AWS_PROFILE)."
        )
    return url.rstrip("/")


def _shown(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"[:200]


def initialise(  # noqa: PLR0913 - each is a part of its settings
    settings: Settings,
    database: str,
    remote: str,
    *,
    tenant: str = DEFAULT_TENANT,
    lease_s: float = LEASE_S,
    slots: int = SLOTS,
    limits: Iterable[Limit] = (),
    keep_days: float = KEEP_DAYS,
    index: str = LOCAL,
) -> Place:
    """Create a tenant's tables, remember where they are, and accept the user's own signature here.

    Args:
        settings: Settings from the environment.
        database: URL of a database without a password; empty for ``AGENTX_FLEET_DATABASE``, or else a file in
            the state directory.
        remote: Pattern of the remotes' URLs, with ``{workspace}``.
        tenant: The tenant.
        lease_s: Seconds without a sign of life after which others take a worker's submissions.
        slots: Maximum number of runs at once on each worker.
        limits: Limits on the calls to model providers.
        keep_days: Days for which a submission that ended stays in the database.
        index: ``local``, ``s3://bucket/prefix`` or a directory.

    Raises:
        UsageError: An argument cannot be used, or holds a password, or the fleet has other remotes.
        QueueFailed: The database cannot be reached.
        StoreUnusable: The file cannot be written, or the caller is a program of an agent's run.
    """
    if not is_tenant(tenant):
        raise UsageError(
            f"{tenant[:80]!r} cannot be the name of a tenant; use a to z, digits and underscores."
        )
    for what, url in (("database", database), ("remote", remote)):
        if _password(url):
            raise UsageError(
                f"The URL of the {what} has a password, which every process here can read in an "
                "argument. Give the database's in AGENTX_FLEET_DATABASE or ~/.pgpass, and a remote's to "
                "Git's credential helper or ssh."
            )
    if WORKSPACE not in remote:
        raise UsageError(
            f"The pattern {remote[:200]!r} of the remotes lacks {WORKSPACE}; for example "
            f"/srv/fleet/{WORKSPACE}.git."
        )
    here = "://" not in remote and not re.match(r"[^/]+:", remote)
    place = Place(
        tenant=tenant,
        database=database or ("" if settings.fleet_database else f"sqlite:///{_file(settings, tenant)}"),
        remote=str(Path(remote).absolute()) if here else remote,
        lease_s=lease_s,
        slots=slots,
        keep_days=keep_days,
        index=check_index(index),
    )
    _check_remotes(settings, place)
    with opened(_complete(place, settings)) as queue:
        queue.create()
        CallLimits(queue).create(limits)
    store = Store(settings.state_dir)
    records.accept(store, records.own_public_key(store), settings)
    store.write(file_of(tenant), msgspec.json.encode(place))
    return _complete(place, settings)


def _check_remotes(settings: Settings, place: Place) -> None:
    """Refuse to lead a fleet that exists here to other remotes: what is queued would be looked for there."""
    store = Store(settings.state_dir)
    content = store.read(file_of(place.tenant))
    try:
        known = msgspec.json.decode(content, type=Place) if content else place
    except msgspec.MsgspecError:
        return  # damaged: it is written again
    if known.remote != place.remote:
        raise UsageError(
            f"The fleet {place.tenant} exists here, with the remotes {without_passwords(known.remote)}; "
            f"its submissions are not looked for in {without_passwords(place.remote)}. Give the same "
            f"--remote, or another --tenant; to begin anew, remove {store.folder / file_of(place.tenant)}."
        )


def load(settings: Settings, tenant: str = DEFAULT_TENANT) -> Place:
    """Return where a tenant's fleet is.

    Raises:
        UsageError: There is none.
        StoreUnusable: The file is unsafe or damaged.
    """
    content = Store(settings.state_dir).read(file_of(tenant)) if is_tenant(tenant) else None
    if content is None:
        raise UsageError(
            f"There is no fleet for the tenant {tenant[:80]!r} here. `agentx fleet init --remote "
            "/srv/fleet/{workspace}.git` creates one on this machine."
        )
    try:
        return _complete(msgspec.json.decode(content, type=Place), settings)
    except msgspec.MsgspecError as error:
        raise UsageError("The fleet's settings are damaged; run `agentx fleet init` again.") from error


def opened(place: Place):  # type: ignore[no-untyped-def]  # noqa: ANN201 - a context manager
    """Open the queue of a fleet.

    Raises:
        QueueFailed: The database cannot be reached.
    """
    return SharedQueue.opened(place.database, place.schema)


def _complete(place: Place, settings: Settings) -> Place:
    return msgspec.structs.replace(place, database=settings.fleet_database or place.database)


def _file(settings: Settings, tenant: str) -> Path:
    folder = nofollow.canonical(settings.state_dir)
    nofollow.make_directory(folder, parents=True)
    return folder / f"fleet-{tenant}.sqlite"


def _password(url: str) -> bool:
    """Whether a URL holds a password, or a token where the user's name stands."""
    return without_passwords(url) != url or clean(url) != encodable(url)
