import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentx.client.client import Client, RequestFailed, ServerUnavailable
from agentx.client.place import runtime_dir
from agentx.quality import bubblewrap
from agentx.quality.process import run_process
from agentx.quality.sandbox import SandboxPolicy, run_in_copy
from agentx.server import connection
from agentx.server import server as serving
from agentx.settings import read_settings

INSIDE = {"AGENTX_RUN": "token"}


def connected(place):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(60)
    while True:
        try:
            one.connect(f"{runtime_dir(place)}/socket")
        except BlockingIOError:  # the queue of the socket is full
            time.sleep(0.01)
        else:
            return one


def ask(place, *lines):
    """Send lines; return the first answer, or None where the connection was closed."""
    with connected(place) as one, one.makefile("rb") as heard:
        one.sendall(b"".join(line + b"\n" for line in lines))
        line = heard.readline()
        return json.loads(line) if line else None


def request(method, number=1, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def inside(place, program, *arguments):
    """Run a program of Python's as an agent's command does; return what it printed."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env={**place, **INSIDE}, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_odd_requests_get_an_answer_and_nobody_names_who_acts(client, place, root):
    for number in ([1], {}, None, 1.5):
        assert ask(place, request("cancel", id=number)) == {"jsonrpc": "2.0", "id": 1, "result": False}
    for field in ("actor", "by", "user", "settings", "run", "model", "self"):
        told = ask(place, request("say", workspace=root, text="Use spaces.", **{field: "user:somebody"}))
        assert told["error"]["message"].startswith(f"Unknown parameter {field!r}")
    for name in ("trust", "tools", "engine", "close", "_replay", "__init__", "purge", "push"):
        assert ask(place, request(name, workspace=root))["error"]["code"] == -32601
    assert client.call("state", workspace=root)["seq"] == 1


def test_a_workspace_is_one_however_it_is_named(client, root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    for name in (root, f"/proc/self/root{root}", f"/{root}", f"{root}/../task", str(tmp_path / "link")):
        assert client.call("state", workspace=name)["title"] == "A task"
    assert [one["root"] for one in client.call("server.status")["workspaces"]] == [root]
    for name in ("task", ".", "", "/dev/stdin", "/proc/self/fd/0", "/proc/1/root", "/" + "a" * 5_000):
        with pytest.raises(RequestFailed):
            client.call("state", workspace=name)
    assert len(client.call("server.status")["workspaces"]) == 1


def test_a_run_cannot_end_the_server_by_another_version(server, client, place):
    program = (
        "import json, socket, sys\n"
        "with socket.socket(socket.AF_UNIX) as one:\n"
        "  one.connect(sys.argv[1])\n"
        "  one.sendall(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'hello', 'agentx': 'x'}).encode() + b'\\n')\n"
        "  print(json.loads(one.makefile().readline())['error']['code'])\n"
    )
    assert inside(place, program, f"{runtime_dir(place)}/socket") == ["-32001"]
    time.sleep(1.5)  # longer than the server looks whether it is to leave
    assert client.call("hello")["pid"] == server.pid


def test_a_run_starts_no_server(place):
    program = (
        "from agentx.client.client import Client, ServerUnavailable\n"
        "try: Client.connect()\nexcept ServerUnavailable: print('none')\n"
    )
    assert inside(place, program) == ["none"]
    assert not Path(runtime_dir(place), "lock").exists()


DETACHED = """
import os, subprocess, sys
del os.environ["AGENTX_RUN"]
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
from agentx.client.client import Client, RequestFailed
with open(sys.argv[2], "w") as told, Client.connect(start=False) as client:
    try: told.write(str(client.call("say", workspace=sys.argv[1], text="I am the user.")))
    except RequestFailed as error: told.write(str(error.code))
"""


def test_a_command_that_detaches_itself_and_clears_its_mark_does_not_act(
    server, client, place, root, tmp_path
):
    command = [sys.executable, "-c", DETACHED, root, str(tmp_path / "told")]
    run_process(command, cwd=tmp_path, env=place, cookie="token", timeout_s=60, max_output_bytes=10_000)
    for _ in range(200):
        if (tmp_path / "told").exists() and (tmp_path / "told").read_text():
            break
        time.sleep(0.05)
    else:
        assert client.call("state", workspace=root)["seq"] == 1  # it was ended before it could ask
        return
    assert (tmp_path / "told").read_text() == "-32002"


def test_a_run_cannot_serve_the_user(place, tmp_path):
    command = ["env", "-u", "AGENTX_RUN", sys.executable, "-P", "-m", "agentx", "serve"]
    done = run_process(
        command, cwd=tmp_path, env=place, cookie="token", timeout_s=60, max_output_bytes=10_000
    )
    assert done.exit_code == 1
    assert "inside an agent's run" in done.output


def test_the_settings_and_the_client_name_the_same_runtime_directory():
    for environ in (
        {"AGENTX_RUNTIME_DIR": "rt"},
        {"XDG_RUNTIME_DIR": "/run/user/7"},
        {"XDG_RUNTIME_DIR": "x"},
        {},
    ):
        assert str(read_settings(environ).runtime_dir) == runtime_dir(environ)


def test_a_run_that_asks_for_much_leaves_room_for_the_user(client, place, root):
    program = (
        "import json, socket, sys\n"
        "many, refused = [], 0\n"
        "for _ in range(100):\n"
        "  one = socket.socket(socket.AF_UNIX)\n"
        "  one.connect(sys.argv[1])\n"
        "  many.append(one)\n"
        '  try: one.sendall(b\'{"jsonrpc": "2.0", "id": 1, "method": "hello"}\\n\')\n'
        "  except OSError: pass\n"
        "  refused += 'error' in json.loads(one.makefile().readline())\n"
        "print(refused)\n"
    )
    assert inside(place, program, f"{runtime_dir(place)}/socket") == [str(100 - serving.MOST_FROM_RUNS)]
    assert client.call("state", workspace=root)["title"] == "A task"


def test_connections_over_http_without_a_token_leave_room_for_the_user(place, root):
    with Client.connect({**place, "AGENTX_SERVER_HTTP": "0"}) as client, ExitStack() as many:
        access = Path(runtime_dir(place), "http.json")
        while not access.exists():
            time.sleep(0.05)
        port = json.loads(access.read_text())["port"]
        for _ in range(3 * serving.MOST_FROM_RUNS):
            many.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert client.call("state", workspace=root)["title"] == "A task"
        assert client.call("server.status")["connections"] <= 1 + serving.MOST_FROM_RUNS


def test_a_thousand_connections_keep_nobody_waiting(client, place, root):
    with ExitStack() as many:
        for _ in range(1_000):
            many.enter_context(connected(place))
        assert client.call("state", workspace=root)["title"] == "A task"
    assert len(client.call("server.status")["workspaces"]) == 1
    ask(place, request("hello"))


def test_who_reads_no_answers_is_heard_no_further(client, place):
    with connected(place) as one:
        one.settimeout(5)
        with pytest.raises(TimeoutError):
            one.sendall(b'{"jsonrpc": "2.0"}\n' * 3_000_000)
        assert client.call("server.status")["rss_bytes"] < 300 << 20


def test_halves_of_long_lines_are_bounded_together(client, place):
    with ExitStack() as many:
        told = []
        for _ in range(connection.MOST_HEARD // connection.MOST_BYTES + 3):
            one = many.enter_context(connected(place))
            one.sendall(b"x" * (connection.MOST_BYTES - 10))
        assert client.call("server.status")["rss_bytes"] < 400 << 20
        one.settimeout(10)
        told.append(json.loads(one.makefile("rb").readline()))
    assert told[0]["error"]["message"] == "Too many long requests at a time."


def test_a_server_that_is_stopped_keeps_nobody_waiting(server, place):
    server.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ServerUnavailable):
            Client.connect(place, timeout_s=1)
    finally:
        server.send_signal(signal.SIGCONT)
    with Client.connect(place) as client:
        assert client.call("hello")["pid"]


def test_a_runtime_directory_that_is_a_link_is_refused_by_the_server(tmp_path, place):
    (tmp_path / "real").mkdir(mode=0o700)
    link = Path(runtime_dir(place))
    link.symlink_to(tmp_path / "real")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "agentx", "serve"],
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "is not a directory" in done.stderr) == (1, True)
    assert list((tmp_path / "real").iterdir()) == []
    link.unlink()


NO_ROOM = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from agentx.cli.main import main
sys.exit(main())
"""


def test_a_server_that_cannot_write_into_its_runtime_directory_names_it_and_commands_work(place, root):
    served = subprocess.run(
        [sys.executable, "-P", "-c", NO_ROOM, "serve"], env=place, capture_output=True, text=True, check=False
    )
    lock = f"{runtime_dir(place)}/lock"
    assert (served.returncode, served.stderr) == (1, f"agentx: {lock}: File too large.\n")
    said = subprocess.run(
        [sys.executable, "-P", "-m", "agentx", "-C", root, "say", "Use tabs."],
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")


LOOK = """
import os, socket, sys
found = []
for where in {places!r}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            with socket.socket(socket.AF_UNIX, kind) as one:
                one.connect(where)
                found.append(where)
        except OSError:
            pass
try:
    lines = open("/proc/net/unix").readlines()[1:]
except OSError:
    lines = []
for line in lines:
    name = line.split()[7:]
    if name and "agentx" in name[0]:
        found.append(name[0])
print(found)
"""


@pytest.mark.parametrize("isolation", ["bubblewrap", "landlock"])
def test_an_isolated_command_reaches_no_socket_of_the_server(server, client, place, tmp_path, isolation):
    there = runtime_dir(place)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "look.py").write_text(
        LOOK.format(
            places=[f"{there}/socket", f"/proc/self/root{there}/socket", "\0agentx", f"\0{there}/socket"]
        )
    )
    if isolation == "bubblewrap" and bubblewrap.why_unavailable(os.environ["PATH"]):
        pytest.skip("bubblewrap does not work here")
    # The user made all around the runtime directory readable, without thinking of it
    policy = SandboxPolicy(
        environ=place, isolation=isolation, readable=[Path(there).parent], never=[Path(there)]
    )
    command = (
        f"{shlex.quote(sys.executable)} look.py; ls {shlex.quote(there)} {shlex.quote(there)}/.. 2>&1; true"
    )
    done = run_in_copy(tmp_path / "tree", command, timeout_s=60, max_output_bytes=10_000, policy=policy)
    assert done.isolation == isolation
    assert done.output.startswith("[]\n")
    assert "socket\n" not in done.output
    assert client.call("hello")["pid"] == server.pid
