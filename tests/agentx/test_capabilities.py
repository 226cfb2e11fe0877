"""Capabilities: a command with its last result, run in a copy, without what the environment keeps secret."""

import os

import pytest

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.errors import UsageError


def test_a_capability_is_its_command_with_its_last_result(ws):
    item = ws.capabilities.add("GitHub login", 'echo logged in as pat; test -n "$X" || exit 0')
    assert item.detail.works is None
    (checked,) = ws.capabilities.check()
    assert (checked.detail.works, checked.detail.said) == (True, "logged in as pat")
    assert checked.detail.checked_at


def test_one_that_fails_or_is_not_there_does_not_work(ws):
    fails = ws.capabilities.add("fails", "echo; echo no route; exit 3")
    missing = ws.capabilities.add("missing", "no-such-program-of-ours")
    checked = ws.capabilities.check([fails.id, missing.id])
    assert [item.detail.works for item in checked] == [False, False]
    assert checked[0].detail.said == "no route"
    assert checked[1].detail.said


def test_it_runs_in_a_copy_without_the_environments_secrets(tmp_path):
    environ = {**os.environ, "MY_TOKEN": "hush"}
    with Workspace.create(tmp_path / "task", settings=Settings(environ=environ, cache_dir=tmp_path)) as ws:
        ws.tools.write_file("a.md", "x")
        ws.capabilities.add("probe", 'rm -f a.md; touch b.md; echo "[$MY_TOKEN]"')
        (item,) = ws.capabilities.check()
        assert item.detail.said == "[]"
        assert sorted(path.name for path in ws.artifacts.iterdir()) == ["a.md"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("", "true"),
        ("x", " "),
        ("x", "y" * 2_000),
        ("x", "curl -H 'Authorization: Bearer ghp_" + "a1B2" * 9 + "'"),
    ],
)
def test_a_capability_that_cannot_be_is_refused(ws, name, command):
    with pytest.raises(UsageError):
        ws.capabilities.add(name, command)
    assert ws.capabilities.all() == []


def test_two_of_one_name_and_what_is_none_are_refused(ws):
    ws.capabilities.add("login", "true")
    rule = ws.remember("rule", "Read first.")
    with pytest.raises(UsageError, match="of that name"):
        ws.capabilities.add("Login", "false")
    with pytest.raises(UsageError, match="not a capability"):
        ws.capabilities.check([rule.id])
