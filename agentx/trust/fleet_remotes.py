"""Names of workspaces in a fleet, and where the remote of each is: by the pattern of its tenant.

The pattern is in a private file of the user for each tenant, which ``agentx fleet init`` writes.
"""

import re

import msgspec

from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.trust.store import Store

WORKSPACE, TENANT = "{workspace}", "{tenant}"
"""What the pattern of the remotes replaces."""

DEFAULT_TENANT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_TENANT = re.compile(r"[a-z][a-z0-9_]{0,40}")


class _Remotes(msgspec.Struct, frozen=True):
    """The part of a fleet's settings that says where the remotes are."""

    tenant: str
    remote: str


def is_tenant(name: str) -> bool:
    """Return whether a name can be that of a tenant."""
    return bool(_TENANT.fullmatch(name))


def file_of(tenant: str) -> str:
    """Return the name of the file with the settings of a tenant's fleet, in the user's store."""
    return f"fleet-{tenant}.json"


def check_name(workspace: str) -> None:
    """Check the name of a workspace, which becomes part of a URL and of a path.

    Raises:
        UsageError: It cannot be one.
    """
    if not _NAME.fullmatch(workspace) or workspace.endswith((".lock", ".git", ".")) or ".." in workspace:
        raise UsageError(
            f"{workspace[:80]!r} cannot be the name of a workspace in a fleet; use letters, digits, dots and "
            "dashes (--workspace NAME)."
        )


def url_of(pattern: str, tenant: str, workspace: str) -> str:
    """Return the URL of a workspace's remote by a pattern.

    Raises:
        UsageError: It cannot be the name of a workspace.
    """
    check_name(workspace)
    return pattern.replace(TENANT, tenant).replace(WORKSPACE, workspace)


def remote_of(settings: Settings, tenant: str, workspace: str) -> str:
    """Return the URL of a workspace's remote in a fleet that this user set up, or whose worker this is.

    Raises:
        UsageError: No fleet of this name is known here, it is another tenant's, or the name is not allowed.
        StoreUnusable: The file of the fleet is unsafe.
    """
    if settings.fleet_remote:
        if tenant != settings.fleet_tenant:
            raise UsageError(
                f"A worker of the tenant {settings.fleet_tenant!r} reads nothing of the tenant "
                f"{tenant[:80]!r}."
            )
        return url_of(settings.fleet_remote, tenant, workspace)
    content = Store(settings.state_dir).read(file_of(tenant)) if is_tenant(tenant) else None
    if content is None:
        raise UsageError(
            f"There is no fleet for the tenant {tenant[:80]!r} here; `agentx fleet init` sets one up."
        )
    try:
        found = msgspec.json.decode(content, type=_Remotes)
    except msgspec.MsgspecError as error:
        raise UsageError("The fleet's settings are damaged; run `agentx fleet init` again.") from error
    return url_of(found.remote, tenant, workspace)
