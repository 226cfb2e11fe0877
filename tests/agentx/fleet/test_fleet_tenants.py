"""Several tenants on one machine: slots shared fairly, keys and directories that are a tenant's own."""

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.fleet import place as places
from agentx.fleet.overview import overview
from agentx.fleet.submission import submit
from agentx.fleet.tenants import WANT_S, SharedSlots, TenantWorkers, read_variables, tenant_work
from agentx.settings import read_settings
from agentx.storage.errors import UsageError
from agentx.storage.process_memory import machine_bytes
from agentx.trust import records
from agentx.trust.store import Store
from tests.agentx.fleet.fleets import ROOT, wait_for

SPY = """\
import json, os, sys
from pathlib import Path
from agentx.synthesis.model import scripted
answer = scripted.ScriptedModel.stream
def stream(self, *arguments, **options):
    name = os.environ["TENANT_NAME"]
    place = Path(os.environ["SPY"]) / f"{name}.json"
    seen = {
        "key": os.environ.get("OPENAI_API_KEY"),
        "home": os.environ["HOME"],
        "names": sorted(os.environ),
        "state": os.environ["AGENTX_STATE_DIR"],
    }
    place.write_text(json.dumps(seen))
    yield from answer(self, *arguments, **options)
scripted.ScriptedModel.stream = stream
"""


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_free_slot_goes_to_the_tenant_that_waits_and_has_the_fewest():
    slots = SharedSlots(2, Clock())
    assert [slots.take("many") for _ in range(3)] == [True, True, False]
    assert not slots.take("single")
    slots.give_back("many")
    assert not slots.take("many")
    assert slots.take("single")
    assert not slots.take("single")  # both have a backlog from now on
    order = ["single"]
    for _ in range(6):
        slots.give_back(order[-1])
        order.append(next(one for one in ("many", "single") if slots.take(one)))
        assert not slots.take("many")
        assert not slots.take("single")
    assert order.count("single") == 7


def test_two_tenants_with_one_slot_take_turns():
    slots, order = SharedSlots(1, Clock()), []
    for _ in range(6):
        order += [one for one in ("a", "b") if slots.take(one)]
        for one in ("a", "b"):
            assert not slots.take(one)
        slots.give_back(order[-1])
    assert order == ["a", "b"] * 3


def test_a_slot_is_not_kept_for_a_tenant_that_asks_no_more_and_an_ended_process_holds_none():
    clock = Clock()
    slots = SharedSlots(1, clock)
    assert slots.take("a")
    assert not slots.take("b")
    slots.give_back("a")
    assert not slots.take("a")
    clock.now += 2 * WANT_S
    assert slots.take("a")
    slots.forget("a")
    assert slots.take("b")


def test_all_tenants_together_get_half_of_the_machines_memory_by_default():
    assert 0 < 4 * TenantWorkers([None] * 4, 1)._memory_bytes <= machine_bytes() // 2
    assert TenantWorkers([None] * 4, 1, memory_bytes=4_000)._memory_bytes == 1_000


def test_a_file_of_variables_that_others_can_read_or_that_is_not_one_is_refused(tmp_path):
    path = tmp_path / "a.env"
    path.write_text("# of a\nOPENAI_API_KEY=sk-a=b\n\nAGENTX_MODEL=openai/x\n")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_variables(path)
    path.chmod(0o600)
    assert read_variables(path) == {"OPENAI_API_KEY": "sk-a=b", "AGENTX_MODEL": "openai/x"}
    path.write_text("A=1\nexport B=sk-secret\n")
    with pytest.raises(UsageError, match="line 2: write NAME=VALUE") as error:
        read_variables(path)
    assert "secret" not in str(error.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_variables(tmp_path / "missing")


def test_a_tenant_gets_neither_the_keys_of_the_parent_nor_its_home_nor_its_agents(tmp_path):
    environ = {
        "PATH": "/bin", "HOME": "/home/operator", "SSH_AUTH_SOCK": "/run/agent", "GIT_ASKPASS": "/bin/x",
        "OPENAI_API_KEY": "sk-operator", "AGENTX_FLEET_DATABASE": "sqlite:////operator", "AGENTX_STATE_DIR": str(tmp_path / "me"),
    }  # fmt: skip
    settings = read_settings(environ)
    places.initialise(
        settings, f"sqlite:///{tmp_path}/a.sqlite", f"{tmp_path}/{{tenant}}/{{workspace}}.git", tenant="a"
    )
    work = tenant_work(settings, "a", tmp_path / "a", {"OPENAI_API_KEY": "sk-a"})
    assert set(work.environ) == {"PATH", "HOME", "AGENTX_STATE_DIR", "OPENAI_API_KEY"}
    assert work.environ["OPENAI_API_KEY"] == "sk-a"
    assert work.environ["HOME"].startswith(str(tmp_path / "a"))
    assert "operator" not in work.place.database
    assert {(tmp_path / "a" / one).stat().st_mode & 0o777 for one in ("", "home", "state")} == {0o700}


def test_each_tenants_runs_see_their_own_key_and_no_process_shows_anothers(tmp_path, request):
    """A worker for two tenants, with runs of both; and one tenant's process that is killed."""
    database = request.getfixturevalue("postgres").url if os.environ.get("FLEET_POSTGRES") else ""
    names = [f"a{uuid.uuid4().hex[:8]}", f"b{uuid.uuid4().hex[:8]}"]
    keys = {name: f"sk-{name}-{uuid.uuid4().hex}" for name in names}
    me = read_settings(
        {**os.environ, "AGENTX_STATE_DIR": str(tmp_path / "me"), "AGENTX_CACHE_DIR": str(tmp_path / "none")}
    )
    script, tools, spied = tmp_path / "turns.jsonl", tmp_path / "tools", tmp_path / "spied"
    script.write_text('{"answer": "It is done."}\n')
    tools.mkdir()
    spied.mkdir()
    (tools / "sitecustomize.py").write_text(SPY)
    made = {}
    for name in names:
        made[name] = places.initialise(
            me, database, str(tmp_path / "remotes" / "{tenant}" / "{workspace}.git"), tenant=name, lease_s=2.0
        )
        own = read_settings({**os.environ, "AGENTX_STATE_DIR": str(tmp_path / f"user-{name}"), "AGENTX_CACHE_DIR": str(tmp_path / "none")})  # fmt: skip
        key = records.own_public_key(Store(own.state_dir))
        file = tmp_path / f"{name}.env"
        file.write_text(
            f"OPENAI_API_KEY={keys[name]}\nAGENTX_MODEL=script:{script}\nAGENTX_TRUSTED_KEYS={key}\n"
            f"TENANT_NAME={name}\nSPY={spied}\n"
        )
        file.chmod(0o600)
        with (
            Workspace.create(tmp_path / name / "w", settings=own) as ws,
            places.opened(made[name]) as queue,
        ):
            submit(ws, made[name], queue, "Do it.")
    options = [
        word for name in names for word in ("--tenant", name, "--tenant-env", f"{name}={tmp_path / name}.env")
    ]
    command = [sys.executable, "-m", "agentx", "fleet", "worker", "--json", "--slots", "1", "--home", str(tmp_path / "home"), *options]  # fmt: skip
    environ = {
        **os.environ, "PYTHONPATH": f"{tools}{os.pathsep}{ROOT}", "AGENTX_STATE_DIR": str(tmp_path / "me"),
        "AGENTX_CACHE_DIR": str(tmp_path / "none"), "OPENAI_API_KEY": "sk-operator", "SSH_AUTH_SOCK": "/run/agent",
    }  # fmt: skip
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(command, env=environ, stdout=said, stderr=said)
    try:

        def all_ended():
            for name in names:
                with places.opened(made[name]) as queue:
                    if overview(made[name], queue).ended != 1:
                        return False
            return True

        wait_for(all_ended)
        seen = {name: json.loads((spied / f"{name}.json").read_text()) for name in names}
        assert {name: seen[name]["key"] for name in names} == keys
        assert len({one["home"] for one in seen.values()}) == 2
        assert len({one["state"] for one in seen.values()}) == 2
        for one in seen.values():
            assert "OPENAI_API_KEY" not in one["names"]
            assert "SSH_AUTH_SOCK" not in one["names"]
        shown = b"".join(
            content(place / what) for place in Path("/proc").glob("[0-9]*") for what in ("environ", "cmdline")
        )
        assert not [key for key in keys.values() if key.encode() in shown]
        kept = b"".join(content(one) for one in (tmp_path / "home").rglob("*") if one.is_file())
        assert not [key for key in keys.values() if key.encode() in kept]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert {json.loads(line)["status"] for line in (tmp_path / "said").read_text().splitlines() if '"status"' in line} == {"COMPLETED"}  # fmt: skip


def content(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
