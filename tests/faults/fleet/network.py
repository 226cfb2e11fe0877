"""Hosts on one machine: network namespaces with a link to the Git host's network and one to the database's.

:func:`enter` moves the program into namespaces of its own: network, mounts and processes. All that is made in
them disappears with the program, however it ends, and none of it can reach another network. Root is not
needed where user namespaces are allowed.
"""

import os
import subprocess
import sys
from pathlib import Path

NETWORKS = {"git": "10.77.1", "database": "10.77.2"}
"""Each a bridge of its own, so that a host can lose one and keep the other; ``.1`` is this program."""

_NAMED = Path("/run/netns")
_INSIDE = "FLEET_FAULTS_INSIDE"


def is_inside():
    """Whether :func:`enter` did its work."""
    return _INSIDE in os.environ


def enter(arguments):
    """Run this program again in namespaces of its own, and return its exit status; ``None`` if they cannot be made."""
    separate = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    if os.getuid():
        separate[1:1] = ["--user", "--map-root-user"]
    tried = [
        *separate,
        "sh",
        "-c",
        "ip link add agentx type bridge && mkdir -p /run/netns && mount -t tmpfs none /run/netns",
    ]
    try:
        if subprocess.run(tried, capture_output=True, check=False).returncode:
            return None
    except FileNotFoundError:
        return None
    # The first process adopts those whose parents die; a shell buries them.
    command = [*separate, "sh", "-c", '"$@"; exit $?', "sh", *arguments]
    child = subprocess.Popen(command, env={**os.environ, _INSIDE: "1"})
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the program heard it, too, and cleans up
            continue


class Network:
    """Two bridges, and the hosts on them."""

    def __init__(self):
        _NAMED.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(_NAMED)], check=True)
        ip("link", "set", "lo", "up")
        for name, prefix in NETWORKS.items():
            ip("link", "add", f"br-{name}", "type", "bridge")
            ip("addr", "add", f"{prefix}.1/24", "dev", f"br-{name}")
            ip("link", "set", f"br-{name}", "up")
        self._hosts = 0

    def host(self, name, *networks):
        """Make a host; return its address in each network."""
        self._hosts += 1
        number = 10 + self._hosts
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        found = {}
        for one in networks:
            ip("link", "add", port(name, one), "type", "veth", "peer", "name", one, "netns", name)
            ip("-n", name, "addr", "add", f"{NETWORKS[one]}.{number}/24", "dev", one)
            ip("-n", name, "link", "set", one, "up")
            self.mend(name, one)
            found[one] = f"{NETWORKS[one]}.{number}"
        return found

    def cut(self, name, network, *, silent):
        """Cut a host from a network: its link goes down, or its packets are lost without a word."""
        ip("link", "set", port(name, network), *(("nomaster",) if silent else ("down",)))

    def mend(self, name, network):
        ip("link", "set", port(name, network), "master", f"br-{network}", "up")

    def inside(self, name):
        """The start of a command that runs on a host, with a host name of its own."""
        return [
            "nsenter",
            f"--net={_NAMED / name}",
            "unshare",
            "--uts",
            "sh",
            "-c",
            'hostname "$0" && exec "$@"',
            name,
        ]

    def processes(self, name):
        """The ids of the processes on a host."""
        place = os.stat(_NAMED / name).st_ino
        found = []
        for one in os.listdir("/proc"):
            if one.isdigit():
                try:
                    if os.stat(f"/proc/{one}/ns/net").st_ino == place:
                        found.append(int(one))
                except OSError:
                    continue
        return found


def port(host, network):
    return f"{host[:9]}-{network[:3]}"


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
