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
    """A server; its user ``fleet`` owns the database ``fleet`` and needs no password from this machine."""

    def __init__(self, folder):
        self.bin, self.data = programs(), folder / "data"
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        folder.mkdir(parents=True, exist_ok=True)
        if self._as:
            os.chown(folder, NOBODY, NOBODY)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._call("initdb", "-D", self.data, "-U", "fleet", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()
        self._call("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "fleet", "fleet")
        self.url = f"postgresql://fleet@127.0.0.1:{self.port}/fleet"

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=300"
        self._call("pg_ctl", "-D", self.data, "-o", options, "-l", self.data / "log", "-w", "start")

    def stop(self):
        self._call("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def _call(self, program, *arguments):
        subprocess.run(
            [str(self.bin / program), *map(str, arguments)],
            check=True, stdout=subprocess.DEVNULL, cwd="/", env={"PATH": os.defpath, "LC_ALL": "C", "HOME": "/"},
            **self._as,
        )  # fmt: skip

    def remove(self):
        self.stop()
        shutil.rmtree(self.data.parent, ignore_errors=True)
