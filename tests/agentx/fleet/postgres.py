"""A Postgres server of one's own, in a temporary directory, from the system's package; started as an ordinary user."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

NOBODY = 65534


def programs():
    """The directory of the newest Postgres on this machine; ``None`` if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    return found[-1].parent if found else None


class Postgres:
    """A server; its user ``fleet`` owns the database ``fleet`` and needs no password from its network.

    Args:
        folder: Its directory.
        host: The address at which it listens.
        inside: The start of a command that runs where that address is; the server's user is made there.
    """

    def __init__(self, folder, host="127.0.0.1", inside=()):
        self.bin, self.data, self.host, self._inside = programs(), folder / "data", host, [*inside]
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        folder.mkdir(parents=True, exist_ok=True)
        if inside:
            self._inside += ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
            self._as, self.port = {}, 5432
        else:
            with socket.socket() as free:
                free.bind((host, 0))
                self.port = free.getsockname()[1]
        if self._as:
            os.chown(folder, NOBODY, NOBODY)
        self._call("initdb", "-D", self.data, "-U", "fleet", "-A", "trust", "-E", "UTF8", "--no-sync")
        with open(self.data / "pg_hba.conf", "a") as allowed:
            allowed.write("host all all samenet trust\n")
        self.start()
        self._call("createdb", "-h", host, "-p", self.port, "-U", "fleet", "fleet")
        self.url = f"postgresql://fleet@{host}:{self.port}/fleet"

    def start(self):
        options = f"-p {self.port} -c listen_addresses={self.host} -c unix_socket_directories='' -c max_connections=300"
        self._call("pg_ctl", "-D", self.data, "-o", options, "-l", self.data / "log", "-w", "start")

    def dump(self):
        """All that its database holds, as SQL."""
        return self._call("pg_dump", "-h", self.host, "-p", self.port, "-U", "fleet", "fleet")

    def stop(self):
        self._call("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def _call(self, program, *arguments):
        """Run one of its programs; return what it printed. ``pg_ctl`` leaves a server behind, which keeps a pipe open."""
        out = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE
        return subprocess.run(
            [*self._inside, str(self.bin / program), *map(str, arguments)],
            check=True, stdout=out, cwd="/", env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/"},
            **self._as,
        ).stdout  # fmt: skip

    def remove(self):
        self.stop()
        shutil.rmtree(self.data.parent, ignore_errors=True)
