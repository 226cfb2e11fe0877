"""Whether a directory is on another machine's file system, which the server refuses to keep open.

There, locks and the times of files mean less, and a look at a file can take seconds: the command runs in its
own process instead, as it does without a server.
"""

import re
from pathlib import Path

from agentx.storage.errors import AgentXError

_MOUNTS = "/proc/self/mountinfo"
_REMOTE = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
    *("nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs"),
}
_LOCAL_FUSE = {"bindfs", "encfs", "fuse-overlayfs", "gocryptfs", "mergerfs", "ntfs-3g", "unionfs"}
"""File systems in user space that are known to be of this machine."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


class RemoteMount(AgentXError):
    """The workspace is on another machine's file system."""


def require_local(root: Path) -> None:
    """Refuse a directory on another machine's file system.

    Raises:
        RemoteMount: It is on one.
    """
    with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        kind = remote_kind(str(root), file.read())
    if kind:
        raise RemoteMount(
            f"{root} is on a file system of another machine ({kind}), so the server does not open it; "
            "commands run without it."
        )


def remote_kind(path: str, mounts: str) -> str:
    r"""Return the kind of remote file system that a path is on; empty for a local one.

    Args:
        path: An absolute path without links.
        mounts: What ``/proc/self/mountinfo`` says; see proc(5).

    >>> remote_kind("/mnt/a b/task", "1 0 0:5 / / rw - ext4 d rw\n2 1 0:6 / /mnt/a\\040b rw - nfs4 h:/ rw")
    'nfs4'
    """
    best, found = "", ""
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        place = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields.split(" ")[4])
        kind = source.split(" ")[0]
        below = path == place or path.startswith(place.rstrip("/") + "/")
        if below and len(place) >= len(best) and kind != "autofs":  # the last of several hides the others
            best, found = place, kind
    fuse, _, name = found.partition(".")
    remote = found in _REMOTE or (fuse == "fuse" and name not in _LOCAL_FUSE)
    return found if remote else ""
