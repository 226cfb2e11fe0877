"""No setting of a workspace, or of a directory that it is pushed to, makes Git run a program or ask another host."""

import os
import re
import subprocess

import pytest

from agentx import Workspace
from agentx.storage.errors import UsageError
from agentx.storage.git import local
from agentx.storage.git.exchange.remotes import NoRemote, Remote, RemoteFailed

NEWER = (
    "gc.recentObjectsHook",
    "hook.x.command",
    "hook.x.event",
    "trailer.x.cmd",
    "core.fsmonitorHookVersion",
)
NOT_TRIED = re.compile(
    r"core\.(?:bare|worktree|repositoryformatversion)|extensions\.|include"  # refused at open, with tests of their own
    r"|core\.(?:autocrlf|safecrlf|logallrefupdates)|commit\.gpgsign"  # set by the engine itself
    # These take another value, and Git does not name them where it is wrong.
    r"|core\.createobject|fetch\.negotiationalgorithm|receive\.maxinputsize|(?:receive\.|fetch\.)?fsck\.",
    re.IGNORECASE,
)

VALUE = "1"
"""True, a number, a path, and the name of a program on the path: valid for nearly every setting."""


def every_setting():
    """Every setting that this Git documents, and some that later ones have."""
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout
    keys = [line for line in listed.splitlines() if re.fullmatch(r"[a-zA-Z0-9]+\.\S+", line)]
    assert len(keys) > 500
    named = (
        re.sub(r"<[^>]*>|\*", name, key) for key in (*keys, *NEWER) for name in ("x", "origin", "backup")
    )
    valid = (key for key in named if re.search(r"\.[a-zA-Z][a-zA-Z0-9-]*$", key))
    return [key for key in dict.fromkeys(valid) if not NOT_TRIED.match(key)]


def set_all(config, keys):
    """Append settings to a configuration file."""
    with config.open("a") as file:
        for key in keys:
            section, _, name = key.rpartition(".")
            top, _, below = section.partition(".")
            named = f'{top} "{below}"' if below else top
            file.write(f"[{named}]\n\t{name} = {VALUE}\n")


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that exists once a program of the name ``1`` was run."""
    place = tmp_path / "programs"
    place.mkdir()
    for name in ("1", "git-remote-1", "git-credential-1"):
        (place / name).write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/canary\nexit 1\n')
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return tmp_path / "canary"


@pytest.fixture
def bare(tmp_path):
    """An empty bare repository."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", tmp_path / "backup.git"], check=True)
    return tmp_path / "backup.git"


def test_no_setting_of_a_workspace_runs_a_program(ws, bare, canary, tmp_path):
    """Every setting that Git documents, at once."""
    ws.tools.write_file("a.txt", "one\n")
    ws.push("backup", url=str(bare))
    set_all(ws.root / ".git/config", every_setting())
    ws.close()
    with Workspace.open(ws.root, settings=ws.settings) as again:
        again.tools.write_file("a.txt", "two\n")
        again.status()
        again.verify()
        again.push("other", url=str(bare))
        again.pull("other")
        again.fork(tmp_path / "fork").close()
        for url in ("ssh://127.0.0.1:1/x", "pat@127.0.0.1:x", "git://127.0.0.1:1/x", "http://127.0.0.1:1/x"):
            with pytest.raises(RemoteFailed):
                again.pull(f"r{len(url)}", url=url)
        assert not canary.exists(), canary.read_text()
        (ws.root / ".git/config").write_text("")
        set_all(ws.root / ".git/config", ["core.sshCommand"])
        command = ["git", "ls-remote", "ssh://127.0.0.1:1/x"]
        subprocess.run(command, cwd=ws.root, capture_output=True, check=False)
        assert canary.exists()  # the settings are live


def test_no_setting_of_a_directory_runs_a_program(ws, bare, canary):
    """Every setting that Git documents, at once; those that take another value than 1 are left out."""
    ws.tools.write_file("a.txt", "one\n")
    ws.push("backup", url=str(bare))
    keys = [key for key in every_setting() if not key.startswith("remote.")]
    config = (bare / "config").read_text()
    for _ in range(100):
        (bare / "config").write_text(config)
        set_all(bare / "config", keys)
        try:
            ws.pull("backup")
            ws.tools.write_file("a.txt", f"{len(keys)}\n")
            ws.push("backup")
            break
        except RemoteFailed as error:
            named = {name.lower() for name in re.findall(r"[\w-]+(?:\.[\w-]+)+", str(error))}
            left = [key for key in keys if key.lower() not in named]
            if len(left) == len(keys):
                raise
            keys = left
    assert len(keys) > 500
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize("key", ["insteadOf", "pushInsteadOf"])
def test_a_workspace_cannot_send_a_push_to_another_address(ws, bare, tmp_path, key):
    """libgit2 applies what the repository says in ``url.*.insteadOf``."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", tmp_path / "theirs.git"], check=True)
    ws.tools.write_file("a.txt", "one\n")
    ws.push(url=str(bare))
    with (ws.root / ".git/config").open("a") as config:
        config.write(f'[url "{tmp_path}/theirs.git"]\n\t{key} = {bare}\n')
    ws.tools.write_file("a.txt", "two\n")
    assert ws.push().url == str(bare)
    assert not list((tmp_path / "theirs.git/refs/heads").iterdir())
    assert (bare / "refs/heads/main").read_text().strip() == ws.engine.git.head


URLS = (
    "https://evil.example/\nhost=github.com/x.git",
    "https://evil.example/%0ahost=github.com/x.git",
    "https://evil.example/%0Ahost=github.com/x.git",
    "https://pat%0ahost=github.com@evil.example/x.git",
    "https://pat:pw%0ahost=github.com@evil.example/x.git",
    "https://evil.example%0a.github.com/x.git",
    "https://pat%0dhost=github.com@evil.example/x.git",
    "https://pat\rhost=github.com@evil.example/x.git",
    "https://evil.example/%00x.git",
    "https://evil.example/x.git?%0aprotocol=https",
    "https://evil.example/x.git#%0ahost=github.com",
    "https://evil.example/\x7fx.git",
    "https://evil.example/\tx.git",
    "https://evil.example/\x1b[31mx.git",
    "https:///x.git",
    "https://@/x.git",
    "https://:80/x.git",
    "http://[::1/x.git",
    "ssh://-oProxyCommand=x/y",
    "://evil.example/x.git",
    "pat@evil.example:x\nhost=github.com",
    "../x\n.git",
    "file:///tmp/x%0a.git",
)


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_could_ask_for_credentials_of_another_host_is_refused(ws, url):
    """CVE-2020-5260, CVE-2020-11008, CVE-2024-52006: before git is started, whatever its version."""
    with pytest.raises(RemoteFailed if url.startswith("ssh://-") else NoRemote) as refused:
        ws.push("evil", url=url)
    assert isinstance(refused.value, UsageError | RemoteFailed)
    assert str(refused.value).isprintable()
    assert "pw" not in str(refused.value)
    assert "evil" not in local.remotes(ws.root / ".git")


@pytest.mark.parametrize("url", [one for one in URLS if one[:5] in ("https", "file:")])
def test_a_configured_url_is_checked_too(ws, url):
    """A copied workspace brings its remotes."""
    escaped = url.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace('"', '\\"')
    with (ws.root / ".git/config").open("a", newline="") as config:
        config.write(f'[remote "evil"]\n\turl = "{escaped}"\n')
    for exchange in (ws.push, ws.pull):
        with pytest.raises(UsageError) as refused:
            exchange("evil")
        assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/me/x.git",
        "https://pat:p%40ss@github.com:8443/a%20b/x.git?x=1",
        "ssh://git@[::1]:22/x.git",
        "git@github.com:me/x.git",
        "git@github.com:me/100%0a.git",
        "gh:me/x",
        "../x%0a.git",
        "/srv/ä b/x.git",
        "file:///srv/x.git",
        "git://example.org/~pat/x",
    ],
)
def test_an_ordinary_url_is_not_refused(ws, url):
    """An abbreviation is for the person's own ``url.*.insteadOf``, and a path is not decoded."""
    assert Remote.find(ws.root, "other", url).name == "other"


def test_the_persons_own_settings_count_for_servers(ws, bare, tmp_path, monkeypatch):
    """ssh and abbreviations of URLs come from the person's configuration, not from the workspace's."""
    fake = tmp_path / "ssh"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c "$1"\n'
    )
    fake.chmod(0o755)
    (tmp_path / "global").write_text(
        f'[core]\n\tsshCommand = {fake}\n[ssh]\n\tvariant = simple\n[url "ssh://there{bare.parent}/"]\n\tinsteadOf = mine:\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    with (ws.root / ".git/config").open("a") as config:
        config.write(f"[core]\n\tsshCommand = touch {tmp_path}/theirs\n")
    ws.tools.write_file("a.txt", "one\n")
    done = ws.push(url="mine:backup.git")
    assert (bare / "refs/heads/main").read_text().strip() == done.commit
    assert "there" in (tmp_path / "asked").read_text()
    assert not (tmp_path / "theirs").exists()
    assert local.remotes(ws.root / ".git") == {"origin": "mine:backup.git"}
