"""Commands of agentx and Python code in separate processes, without the second that each takes to import the engine.

One process imports the engine beforehand and forks for each command. What runs has its own directory, environment,
standard streams and exit status, like a program that a shell starts. Only signals do not reach it.

    python tests/warm.py serve SOCKET
    python tests/warm.py call SOCKET ARGUMENT…
"""

import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

ENGINE = ("agentx.workspace", "agentx.cli.in_process")
"""What is imported beforehand: all but the modules of the commands, which each imports for itself."""


@contextmanager
def agentx_program() -> Iterator[Path]:
    """A directory that holds the program ``agentx``, as long as the process that stands behind it."""
    with TemporaryDirectory(prefix="warm-") as name:
        folder, own = Path(name), os.path.realpath(__file__)
        program = folder / "agentx"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{own}" call "{folder}/socket" "$@"\n')
        program.chmod(0o755)
        command = [sys.executable, own, "serve", str(folder / "socket")]
        environ = {**os.environ, "PYTHONPATH": str(Path(own).parent.parent)}
        with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield folder
            server.communicate()  # it ends with its input


def serve(at: str) -> None:
    """Run a command for each caller, until the input ends."""
    for name in ENGINE:
        import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(at)
        listening.listen()
        print("ready", flush=True)
        while 0 not in select.select([listening, 0], [], [])[0]:
            caller, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                answer(caller)
            caller.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    """One that has answered is gone."""


def answer(caller: socket.socket) -> None:
    """Run the caller's command in a process of its own, and tell its exit status."""
    said, streams, _, _ = socket.recv_fds(caller, 1 << 20, 3)
    while more := caller.recv(1 << 20):
        said += more
    words, directory, environ, code = json.loads(said)
    worker = os.fork()
    if worker == 0:
        caller.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "r" if n == 0 else "w") for n in range(3))
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["agentx" if code is None else "-c", *words]
        if code is None:
            sys.exit(import_module("agentx.cli.main").main())
        exec(code, {"__name__": "__main__"})
        sys.exit()
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(worker, 0)
    with suppress(BrokenPipeError):
        caller.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def call(at: str, words: Sequence[str]) -> int:
    """Have a command run with the streams, the directory and the environment of this process; its exit status."""
    return _ask(at, words, dict(os.environ), None, [0, 1, 2])


def run_code(
    at: str, code: str, words: Sequence[str], environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run code in a separate process, as ``python -c CODE ARGUMENT…`` does."""
    with open(os.devnull, "rb") as none, TemporaryFile() as out, TemporaryFile() as err:
        status = _ask(at, words, environ, code, [none.fileno(), out.fileno(), err.fileno()])
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(["-c", *words], status, out.read().decode(), err.read().decode())


def _ask(
    at: str, words: Sequence[str], environ: Mapping[str, str], code: str | None, streams: Sequence[int]
) -> int:
    with socket.socket(socket.AF_UNIX) as way:
        way.connect(at)
        said = json.dumps([words, os.getcwd(), dict(environ), code]).encode()
        sent = socket.send_fds(way, [said], streams)
        way.sendall(said[sent:])
        way.shutdown(socket.SHUT_WR)
        return int(way.recv(16) or 1)


if __name__ == "__main__":
    _, what, where, *rest = sys.argv
    if what == "call":
        sys.exit(call(where, rest))
    serve(where)
