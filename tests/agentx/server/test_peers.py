"""What an agent's run starts gets no method that acts as the user, however it hides."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from agentx.quality.process import run_process
from agentx.quality.sandbox import SandboxPolicy, run_in_copy
from agentx.server.mounts import remote_kind
from tests.agentx.quality.conftest import why_not

ASK = """
import os, sys
sys.path[:0] = sys.argv[3:]
from agentx.client.client import Client, RequestFailed
with Client.connect({"AGENTX_RUNTIME_DIR": sys.argv[1]}, start=False) as client:
    try:
        client.call("say", workspace=sys.argv[2], text="I am the user.")
        print("obeyed")
    except RequestFailed as error:
        print(error.code)
"""

HIDDEN = {
    "as it is": "{ask}",
    "without its environment": "env -i {ask}",
    "in a session of its own": "setsid env -i {ask}",
    "without a parent": "(setsid env -i sh -c 'sleep 0.3; {ask}' > {out} 2>&1 &) ; sleep 0.1",
    "as another program": "exec env -i {ask}",
}


@pytest.fixture
def ask(tmp_path, place, root):
    script = tmp_path / "ask.py"
    script.write_text(ASK)
    return f"{sys.executable} {script} {place['AGENTX_RUNTIME_DIR']} {root}"


def test_what_an_agents_run_starts_is_refused_however_it_hides(server, client, ask, root, tmp_path, place):
    for name, line in HIDDEN.items():
        out = tmp_path / "out"
        out.unlink(missing_ok=True)
        done = run_process(
            ["sh", "-c", line.format(ask=ask, out=out)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            cookie="a-run" if name != "without a parent" else "x" * 8,
            timeout_s=60,
            max_output_bytes=10_000,
        )
        if name == "without a parent":
            for _ in range(100):
                if out.exists() and out.read_text().strip():
                    break
                time.sleep(0.1)
            assert out.read_text().strip() == "-32002", name
        else:
            assert done.output.strip() == "-32002", name
    assert client.call("state", workspace=root)["seq"] == 1
    assert client.call("say", workspace=root, text="I am the user.")["actor"] == "user"


REACH = """
import socket, sys
try:
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1] + "/socket")
    print("reached")
except OSError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize("isolation", ["none", "bubblewrap", "landlock"])
def test_an_isolated_command_does_not_reach_the_socket(server, place, tmp_path, isolation):
    if why := why_not(isolation):
        pytest.skip(why)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "reach.py").write_text(REACH)
    done = run_in_copy(
        tree,
        [sys.executable, "reach.py", place["AGENTX_RUNTIME_DIR"]],
        timeout_s=60,
        max_output_bytes=10_000,
        policy=SandboxPolicy(environ=dict(os.environ), isolation=isolation),
    )
    assert done.output.split()[0] == ("reached" if isolation == "none" else "refused"), done.output


def test_a_peer_that_has_gone_counts_as_inside_a_run(server, place, root, tmp_path):
    """Its connection lives on in a child; the server looks when the first process has gone."""
    program = (
        "import os, socket, sys\nfirst = socket.socket(socket.AF_UNIX)\n"
        "first.connect(sys.argv[1] + '/socket')\nos.write(1, b'.')\n"
        "if os.fork(): os._exit(0)\n"
        "import time; time.sleep(1)\n"
        'first.sendall(b\'{"jsonrpc": "2.0", "id": 1, "method": "server.stop"}\\n\')\n'
        "os.write(1, first.recv(10000))\n"
    )
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with subprocess.Popen(
            [sys.executable, "-c", program, place["AGENTX_RUNTIME_DIR"]], stdout=subprocess.PIPE
        ) as one:
            assert one.stdout.read(1) == b"."
            one.wait(60)
            os.kill(server.pid, signal.SIGCONT)
            assert json.loads(one.stdout.read())["error"]["code"] == -32002
    finally:
        os.kill(server.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/task", ""),
        ("/mnt/nas/task", "nfs4"),
        ("/mnt/nas/local/task", ""),
        ("/mnt/nasty/task", ""),
        ("/mnt/a b", "cifs"),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/mnt/secret/x", ""),
        ("/net/host/x", "nfs"),
        ("/twice/x", "nfs"),
    ],
)
def test_a_mount_of_another_machine_is_known_by_its_kind(path, kind):
    mounts = """\
1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
2 1 0:41 / /mnt/nas rw - nfs4 nas:/export rw
3 2 8:2 / /mnt/nas/local rw - xfs /dev/sdb1 rw
4 1 0:42 / /mnt/a\\040b rw - cifs //nas/share rw
5 1 0:43 / /mnt/ssh rw - fuse.sshfs ann@host: rw
6 1 0:44 / /mnt/secret rw - fuse.gocryptfs /home/ann/.secret rw
7 1 0:45 / /net rw - autofs /etc/auto.net rw
8 7 0:46 / /net/host rw - nfs host:/ rw
9 1 8:3 / /twice rw - ext4 /dev/sdc1 rw
10 1 0:47 / /twice rw - nfs host:/twice rw
"""
    assert remote_kind(path, mounts) == kind
