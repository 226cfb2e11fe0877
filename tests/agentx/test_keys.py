"""Keys: what counts as one, and that AgentX's own processes keep theirs from children and from other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.directing.configured import program_environ
from agentx.settings import Settings, is_key, read_settings
from tests.chat_server import serving

ROOT = Path(__file__).parents[2]
KEY = "sk-the-users-own-0123456789"
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="there is no /proc to look in"
)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AZURE_KEY",
        ),
        *("AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "WATSONX_APIKEY", "HF_TOKEN", "GITHUB_TOKEN"),
        *(
            "DATABRICKS_CLIENT_SECRET",
            "PGPASSWORD",
            "MYSQL_PWD",
            "SENTRY_DSN",
            "AGENTX_API_KEY",
            "openai_api_key",
        ),
    ],
)
def test_a_variable_that_is_named_for_a_key_is_one(name):
    """The names by which litellm and common tools read credentials are found."""
    assert is_key(name, "value")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HOME",
            "PATH",
            "LANG",
            "KEYBOARD_LAYOUT",
            "SSH_AUTH_SOCK",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "TOKENIZERS_PARALLELISM",
        ),
        *("OPENAI_API_BASE", "AWS_REGION", "XAUTHORITY", "PWD", "OLDPWD", "GIT_AUTHOR_NAME", "MONKEY"),
    ],
)
def test_a_variable_that_names_a_place_or_a_setting_is_not_a_key(name):
    """What programs need to run, sockets and files among it, stays where it is."""
    assert not is_key(name, "/value")


def test_an_address_with_a_password_is_a_key():
    """A value is looked at as well: connection strings carry passwords under any name."""
    assert is_key("DATABASE_URL", "postgres://me:hunter2@db/orders")
    for name in ("HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL"):  # or nothing would reach the network
        assert not is_key(name, "http://me:hunter2@host:3128")


def test_settings_keep_keys_apart_and_an_embedding_process_keeps_its_environment(monkeypatch, tmp_path):
    """Reading settings, or calling the command line as a function, changes nothing in the process."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = read_settings()
    assert (settings.keys["OPENAI_API_KEY"], "OPENAI_API_KEY" in settings.environ) == (KEY, False)
    monkeypatch.chdir(tmp_path)
    main(["status"])
    assert os.environ.copy()["OPENAI_API_KEY"] == KEY
    assert type(os.environ) is os._Environ


CHILDREN = """
import json, multiprocessing, os, subprocess, sys
from agentx.settings import read_settings, take_environment

def child(queue):
    queue.put("OPENAI_API_KEY" in os.environ)

if __name__ == "__main__":
    settings = take_environment()
    env = "/usr/bin/env"
    def run(**options):
        return subprocess.run([env], capture_output=True, text=True, check=True, **options).stdout
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    process = spawn.Process(target=child, args=[queue])
    process.start()
    read, write = os.pipe()
    os.waitpid(os.posix_spawn(env, [env], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)]), 0)
    os.close(write)
    outputs = [run(), run(close_fds=False), run(env=os.environ.copy()), run(env={**os.environ}), run(env=os.environ)]
    outputs += [run(env=dict(os.environ.items())), os.popen(env).read(), os.read(read, 100_000).decode()]
    before = [os.environ["OPENAI_API_KEY"], os.getenv("OPENAI_API_KEY"), "OPENAI_API_KEY" in os.environ]
    again = read_settings().keys["OPENAI_API_KEY"]
    os.environ["OPENAI_API_KEY"] = "another"
    replaced = run()
    del os.environ["OPENAI_API_KEY"]
    print(json.dumps({
        "outputs": outputs, "child": queue.get(), "found": before, "again": again, "key": settings.keys["OPENAI_API_KEY"],
        "replaced": "another" in replaced, "deleted": os.environ.get("OPENAI_API_KEY"), "home": os.environ.get("HOME"),
    }))
    process.join()
"""


def test_no_child_of_a_process_of_ours_gets_a_key(tmp_path):
    """However a child is started, also with a copy of the environment, keys are not in it; a look-up by name finds them."""
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    environ = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT), "HOME": "/the/home"}
    done = subprocess.run([sys.executable, script], env=environ, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert len(said["outputs"]) == 8
    for output in said["outputs"]:
        assert "HOME=/the/home" in output
        assert KEY not in output
    assert said["child"] is False
    assert said["found"] == [KEY, KEY, True]
    assert (said["again"], said["key"]) == (KEY, KEY)
    assert (said["replaced"], said["deleted"], said["home"]) == (True, None, "/the/home")


def test_a_child_of_the_daemon_holds_the_keys_that_it_is_sent(tmp_path):
    """A process of ours that was started without keys, and is handed them, looks them up and hands them to nobody."""
    script = (
        "import os, subprocess\n"
        "from agentx.settings import Settings, hold_keys\n"
        "hold_keys(Settings(keys={'OPENAI_API_KEY': 'sk-sent'}))\n"
        "print(os.environ['OPENAI_API_KEY'], 'sk-sent' in subprocess.run(['env'], capture_output=True, text=True).stdout)"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "sk-sent False\n"


@needs_proc
def test_a_running_command_shows_its_key_to_the_provider_and_to_no_other_process(tmp_path):
    """While the model is asked, /proc/PID/environ of the command does not hold the key that the request carries."""
    root = tmp_path / "task"
    Workspace.create(root, settings=Settings(cache_dir=tmp_path)).close()
    seen = {}

    def answer(_request):
        pid = process.pid
        if os.geteuid() == 0:  # root reads everything, but the key is not there any more
            seen["environ"] = Path(f"/proc/{pid}/environ").read_bytes()
        else:
            for name in ("environ", "mem"):
                with pytest.raises(PermissionError):
                    os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
            seen["environ"] = b"OPENAI_API_KEY"
        return "Done."

    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": KEY,
        "AGENTX_CACHE_DIR": str(tmp_path),
    }
    with serving() as server:
        server.rule = answer
        command = [sys.executable, "-m", "agentx", "-C", str(root), "run", "hello", "--model", "openai/any"]
        environ["AGENTX_API_BASE"] = server.base
        process = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said = process.communicate()[0]
    assert process.returncode == 0, said
    assert {name.lower(): value for name, value in server.headers[0].items()}[
        "authorization"
    ] == f"Bearer {KEY}"
    assert b"OPENAI_API_KEY" in seen["environ"]
    assert KEY.encode() not in seen["environ"]


def test_a_program_gets_the_keys_that_the_configuration_names(tmp_path):
    """A program that plays a role finds in its environment the keys of director.keys, and no others."""
    settings = read_settings(
        {"PATH": "/bin", "HOME": "/h", "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-other"}
    )
    with Workspace.create(tmp_path / "task", settings=settings) as ws:
        assert program_environ(ws.engine) == {"PATH": "/bin", "HOME": "/h"}
    with (tmp_path / "task" / "agentx.toml").open("a") as file:
        file.write('\n[director]\nkeys = ["ANTHROPIC_API_KEY", "NOT_SET"]\n')
    with Workspace.open(tmp_path / "task", settings=settings) as ws:
        assert program_environ(ws.engine) == {"PATH": "/bin", "HOME": "/h", "ANTHROPIC_API_KEY": KEY}
