"""Many clients, slow clients, and a server that dies."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed
from agentx.client.place import runtime_dir
from agentx.settings import read_settings

WRITER = """
import os, sys
from agentx.client.client import Client
own = int(sys.argv[2])
with Client.connect(start=False) as client:
    for number in range(int(sys.argv[3])):
        event = client.call("say", workspace=sys.argv[1], text=f"Note {own}.{number}: the sum is {number}.")
        # What was acknowledged is in every later answer, of each method.
        state = client.call("state", workspace=sys.argv[1])
        assert any(message["seq"] == event["seq"] for message in state["messages"]), (event, state["messages"])
        (found,) = client.call("events", workspace=sys.argv[1], after=event["seq"] - 1, limit=1)["events"]
        assert found == event, (found, event)
        assert "# Task" in client.call("get_relevant_context", workspace=sys.argv[1])["text"]
        print(event["seq"], flush=True)
"""


def told(place, root):
    """The user's messages, read without the server."""
    with Workspace.open(root, settings=read_settings(place)) as ws:
        assert ws.verify().sound
        return {event.seq: event.data.body.text for event in ws.events() if event.type == "UserMessageSent"}


def test_eight_processes_at_once_see_what_was_acknowledged(server, place, root):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, root, str(own), "10"], env=place, stdout=subprocess.PIPE, text=True
        )
        for own in range(8)
    ]
    seqs = [one.communicate()[0].split() for one in writers]
    assert [one.returncode for one in writers] == [0] * 8
    assert sorted(int(seq) for own in seqs for seq in own) == sorted(told(place, root))
    assert sum(map(len, seqs)) == 80


def test_another_process_writes_meanwhile(server, place, root, client):
    client.call("say", workspace=root, text="one")
    with Workspace.open(root, settings=read_settings(place)) as ws:
        for number in range(10):
            event = ws.say(f"Direct note {number}.")
            assert client.call("state", workspace=root)["seq"] >= event.seq
            assert client.call("say", workspace=root, text=f"Served note {number}.")["seq"] == ws.state.seq


@pytest.mark.parametrize("turn", range(3))
def test_killed_at_any_time_nothing_acknowledged_is_lost(server, place, root, turn):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, root, str(own), "500"],
            env=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for own in range(4)
    ]
    acknowledged = [int(writers[0].stdout.readline()) for _ in range(2 + turn)]
    time.sleep(0.01 * turn)
    server.send_signal(signal.SIGKILL)
    for one in writers:
        acknowledged += map(int, one.communicate()[0].split())
    assert set(acknowledged) <= set(told(place, root))
    with Client.connect(place) as client:  # the socket and the lock that it left are in nobody's way
        assert client.call("say", workspace=root, text="again")["seq"] > max(acknowledged)


def test_five_hundred_connections_are_served(server, place, client):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2048)), hard))
    try:
        with ExitStack() as stack:
            many = [stack.enter_context(Client.connect(place, start=False)) for _ in range(500)]
            assert {one.call("hello")["pid"] for one in many} == {server.pid}
            assert client.call("server.status")["connections"] >= 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_client_that_reads_nothing_delays_nobody(server, place, root, client):
    client.call("say", workspace=root, text="x" * 200_000)
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(f"{runtime_dir(place)}/socket")
        request = {"jsonrpc": "2.0", "method": "state", "params": {"workspace": root}}
        with suppress(BlockingIOError):
            slow.setblocking(False)
            for number in range(2_000):
                slow.send(json.dumps({**request, "id": number}).encode() + b"\n")
        assert client.call("say", workspace=root, text="quick")["seq"]
        assert client.call("server.status")["rss_bytes"] < 400e6


def test_a_workspace_whose_settings_changed_is_opened_again(client, root):
    client.call("state", workspace=root)
    with open(f"{root}/agentx.toml", "a", encoding="utf-8") as file:
        file.write("\n[memory]\nlapse_days = 3\n")
    os.rename(root, f"{root}-away")
    with pytest.raises(RequestFailed, match="is not in a workspace"):
        client.call("state", workspace=root)
    os.rename(f"{root}-away", root)
    assert client.call("state", workspace=root)["seq"] >= 1


def test_the_pool_is_bounded(place, tmp_path):
    settings = read_settings(place)
    roots = []
    for number in range(4):
        roots.append(str(tmp_path / f"task-{number}"))
        Workspace.create(roots[-1], settings=settings).close()
    with Client.connect({**place, "AGENTX_SERVER_WORKSPACES": "2"}) as client:
        for root in roots:
            client.call("say", workspace=root, text="hello")
        assert [one["root"] for one in client.call("server.status")["workspaces"]] == roots[-2:]
        assert client.call("state", workspace=roots[0])["seq"] > 1


def test_a_server_that_nobody_uses_exits(place):
    with Client.connect({**place, "AGENTX_SERVER_IDLE_S": "0.1"}) as client:
        pid = client.call("hello")["pid"]
    for _ in range(200):
        if not os.path.exists(f"/proc/{pid}"):
            break
        time.sleep(0.05)
    assert not os.path.exists(f"{runtime_dir(place)}/socket")


def test_events_are_streamed_whoever_writes_them(server, place, root, client):
    heard = []
    with ExitStack() as stack:
        followers = [stack.enter_context(Client.connect(place, start=False)) for _ in range(20)]
        streams = [one.stream("events", workspace=root, after=1, follow=True) for one in followers]
        first = client.call("say", workspace=root, text="served")["seq"]
        with Workspace.open(root, settings=read_settings(place)) as ws:
            last = ws.say("written directly").seq
        for stream in streams:
            heard.append([next(stream)["event"]["seq"] for _ in range(last - 1)])
        assert heard == [list(range(2, last + 1))] * 20
        assert first < last
        assert client.call("server.status")["followers"] == 20
        followers[0].cancel(followers[0].last)
        with pytest.raises(RequestFailed) as caught:
            list(streams[0])
        assert caught.value.code == -32005
    server.terminate()
    assert server.wait(60) == 0
