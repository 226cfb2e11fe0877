"""A user with a state directory of their own, a workspace of theirs, and one that somebody else made."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from agentx import Workspace
from agentx.settings import Settings
from agentx.trust.trust import Trust

MODEL = '[model]\nname = "openai/gpt"\n'


@pytest.fixture
def user(tmp_path):
    """What the environment of one user says."""
    return Settings(
        environ={name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")},
        cache_dir=tmp_path / "no-models",
        state_dir=tmp_path / "state",
    )


@pytest.fixture
def stranger(user, tmp_path):
    """Another user of the machine: another state directory."""
    return msgspec.structs.replace(user, state_dir=tmp_path / "their-state")


@pytest.fixture
def root(tmp_path, user):
    """A workspace that the user made, closed."""
    Workspace.create(tmp_path / "task", title="A task", settings=user).close()
    return tmp_path / "task"


@pytest.fixture
def why(user):
    """Why a workspace is restricted for the user; empty where it is trusted."""
    return lambda place, settings=user: Trust.read(Path(place), settings).why_restricted()


@pytest.fixture
def append(root):
    """Edit ``agentx.toml`` by hand."""

    def append(text, place=root):
        with (place / "agentx.toml").open("a", encoding="utf-8") as file:
            file.write(text)

    return append


@pytest.fixture
def copied(tmp_path):
    """Copy a workspace as a backup does."""
    return lambda source, name="copy": Path(shutil.copytree(source, tmp_path / name, symlinks=True))


@pytest.fixture
def foreign(tmp_path, stranger):
    """Make a workspace of somebody else's, with what they write into ``agentx.toml``; it is closed."""

    def foreign(toml, prepare=lambda _ws: None, name="theirs"):
        Workspace.create(tmp_path / name, title="Theirs", settings=stranger).close()
        with (tmp_path / name / "agentx.toml").open("a", encoding="utf-8") as file:
            file.write(toml)
        Trust.read(tmp_path / name, stranger).grant("trusted", commands=True)
        with Workspace.open(tmp_path / name, settings=stranger) as ws:
            prepare(ws)
        return tmp_path / name

    return foreign
