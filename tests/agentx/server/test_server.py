import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed, ServerUnavailable
from agentx.client.place import PlaceRefused, make, runtime_dir
from agentx.settings import Settings


def raw(place, *lines, answers=1):
    """Send lines as they are; return the decoded answers."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        one.connect(f"{runtime_dir(place)}/socket")
        one.sendall(b"".join(line + b"\n" for line in lines))
        with one.makefile("rb") as heard:
            return [json.loads(heard.readline()) for _ in range(answers)]


def test_a_message_is_recorded_and_found_again(client, root):
    event = client.call("say", workspace=root, text="From now on, use tabs.")
    assert event["actor"] == "user"
    listed = client.call("events", workspace=root, after=event["seq"] - 1)
    assert listed["events"][0] == event
    assert "use tabs" in client.call("get_relevant_context", workspace=root)["text"]
    assert client.call("search", workspace=root, query="tabs")
    assert client.call("state", workspace=root)["seq"] >= event["seq"]
    assert client.call("memory", workspace=f"{root}/artifacts")[0]["text"] == "From now on, use tabs."
    assert client.call("status", workspace=root)["title"] == "A task"


def test_the_socket_and_its_directory_are_private(server, place):
    where = Path(place["AGENTX_RUNTIME_DIR"])
    assert stat.S_IMODE(where.stat().st_mode) == 0o700
    assert stat.S_IMODE((where / "socket").stat().st_mode) == 0o600


def test_a_client_starts_a_server_that_outlives_it(place, root):
    with Client.connect(place) as client:
        first = client.call("hello")["pid"]
    with Client.connect(place, start=False) as client:
        assert client.call("hello")["pid"] == first
        assert client.call("state", workspace=root)["title"] == "A task"
    with Client.connect(place, start=False) as client:
        client.call("server.stop")


def test_two_servers_cannot_run(server, place):
    second = subprocess.run(
        [sys.executable, "-P", "-m", "agentx", "serve"],
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert "runs already" in second.stderr


def test_many_clients_at_once_start_one_server(place):
    program = "from agentx.client.client import Client\nwith Client.connect() as c:\n  print(c.call('hello')['pid'])"
    clients = [
        subprocess.Popen([sys.executable, "-c", program], env=place, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({one.communicate()[0] for one in clients}) == 1


def test_a_client_of_another_version_makes_it_finish(server, place):
    (answer,) = raw(place, b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "agentx": "0.0.0 /elsewhere"}')
    assert answer["error"]["code"] == -32001
    assert server.wait(60) == 0
    with Client.connect(place) as client:
        assert client.call("hello")["pid"] != server.pid


def test_no_actor_comes_from_a_request(client, root):
    with pytest.raises(RequestFailed, match="Unknown parameter 'actor'"):
        client.call("say", workspace=root, text="Use spaces.", actor="user:somebody")


def test_what_a_run_started_reads_and_does_not_act(server, place, root):
    program = (
        "import sys\nfrom agentx.client.client import Client, RequestFailed\n"
        "with Client.connect(start=False) as c:\n"
        "  print(c.call('state', workspace=sys.argv[1])['seq'])\n"
        "  for name in ('say', 'server.stop'):\n"
        "    try: print(c.call(name, workspace=sys.argv[1], text='I am the user.'))\n"
        "    except RequestFailed as e: print(e.code)\n"
    )
    command = [sys.executable, "-c", program, root]
    inside = {**place, "AGENTX_RUN": "token"}
    said = subprocess.run(command, env=inside, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["1", "-32002", "-32002"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "hello"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "hello"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "record"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"workspace": "task"}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "command.run", "params": {"argv": "log"}}', -32602),
        (
            (
                b'{"jsonrpc": "2.0", "id": 1, "method": "command.run", '
                b'"params": {"argv": ["log"], "cwd": "/", "encodings": ["x", "y", "z"]}}'
            ),
            -32602,
        ),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"workspace": "/\\u0000"}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "state", "params": {"workspace": "/"}}', -32000),
        (b"x" * (9 << 20), -32600),
    ],
)
def test_a_malformed_request_gets_an_error_and_others_are_served(client, place, line, code):
    (answer,) = raw(place, line)
    assert answer["error"]["code"] == code
    assert client.call("hello")["version"]


def test_a_method_names_the_parameter_that_is_wrong(client, root):
    with pytest.raises(RequestFailed, match="'text' is missing"):
        client.call("say", workspace=root)
    with pytest.raises(RequestFailed, match="wrong type"):
        client.call("say", workspace=root, text=5)
    with pytest.raises(RequestFailed, match="empty") as caught:
        client.call("say", workspace=root, text=" ")
    assert (caught.value.kind, caught.value.exit_code) == ("UsageError", 2)


def test_no_server_is_used_where_it_is_turned_off(place):
    with pytest.raises(ServerUnavailable):
        Client.connect({**place, "AGENTX_NO_SERVER": "1"})
    assert not os.path.exists(place["AGENTX_RUNTIME_DIR"])


def test_a_hostile_runtime_directory_is_refused(tmp_path, place):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    (tmp_path / "file").touch()
    for name in ("link", "open", "file"):
        with pytest.raises(PlaceRefused):
            make(str(tmp_path / name))
        with pytest.raises(PlaceRefused):
            Client.connect({**place, "AGENTX_RUNTIME_DIR": str(tmp_path / name)})


def test_status_and_stop_by_command(server, place, root, client):
    client.call("state", workspace=root)
    command = [sys.executable, "-P", "-m", "agentx", "serve"]
    shown = subprocess.run(
        [*command, "--status", "--json"], env=place, capture_output=True, check=True
    ).stdout
    assert json.loads(shown)["workspaces"][0]["root"] == root
    subprocess.run([*command, "--stop"], env=place, capture_output=True, check=True)
    assert server.wait(60) == 0
    shown = subprocess.run(
        [*command, "--status", "--json"], env=place, capture_output=True, check=True
    ).stdout
    assert json.loads(shown) == {"running": False}


def test_a_server_that_ends_as_it_starts_is_noticed(place):
    """Not when the time is over: the reason is told, and the client can go on by itself."""
    with pytest.raises(ServerUnavailable, match="ended at once: `agentx serve` in a terminal shows why"):
        Client.connect({**place, "PYTHONHOME": "/nowhere"}, timeout_s=60)
    assert not Path(place["AGENTX_RUNTIME_DIR"], "socket").exists()


def test_a_server_whose_directory_was_deleted_before_it_began_does_not_make_it_again(place):
    directory = Path(place["AGENTX_RUNTIME_DIR"])
    started = [sys.executable, "-P", "-m", "agentx", "serve", "--detached"]
    subprocess.run(started, env=place, check=False, capture_output=True, timeout=60)
    assert not directory.exists()


def test_the_status_fits_a_narrow_terminal(client, place, tmp_path):
    folder = tmp_path / ("a-folder-with-a-long-name-" * 3)
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    Workspace.create(folder, title="A report to the board with all the figures", settings=settings).close()
    client.call("state", workspace=str(folder))
    command = [sys.executable, "-P", "-m", "agentx", "serve", "--status"]
    shown = subprocess.run(
        command, env={**place, "COLUMNS": "80"}, capture_output=True, text=True, check=True
    ).stdout
    lines = shown.splitlines()
    assert max(len(line) for line in lines if "a-folder" not in line) <= 80
    assert str(folder) in lines  # whole, to copy it
    (told,) = [line for line in lines if line.startswith("A report to the board")]
    assert "1 event · used " in told
