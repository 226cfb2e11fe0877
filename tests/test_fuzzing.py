"""Whatever bytes a stranger brings: errors of ours or damage that is told, nothing else, and what is valid is read back."""

import contextlib
import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx.storage.errors import AgentXError
from agentx.storage.git import trees
from agentx.storage.log.history import History

from .fuzz.harm import harmed
from .fuzz.seeds import lines, seeds
from .fuzz.targets import CODEC, TARGETS, message, write_log

FIXED = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}

REFUSED_TOO = ("config", "path", "git_config", "git_object")
"""Targets among whose seeds some are well-formed and are to be refused."""


@pytest.fixture
def folder(tmp_path):
    """An empty directory at each call."""
    numbers = itertools.count()

    def empty():
        place = tmp_path / str(next(numbers))
        shutil.rmtree(tmp_path / str(int(place.name) - 1), ignore_errors=True)
        place.mkdir()
        return place

    return empty


@pytest.mark.parametrize("name", TARGETS)
def test_valid_input_is_read_without_an_error_of_ours(name, folder, monkeypatch):
    suppress = contextlib.suppress

    def kept(*errors):
        return (
            contextlib.nullcontext()
            if all(issubclass(one, AgentXError) for one in errors)
            else suppress(*errors)
        )

    monkeypatch.setattr(contextlib, "suppress", kept)
    refused = []
    for content in seeds(name):
        try:
            TARGETS[name](content, folder())
        except AgentXError:
            refused.append(content)
    assert len(refused) < len(seeds(name))
    assert not refused or name in REFUSED_TOO


@pytest.mark.parametrize("name", TARGETS)
def test_malformed_input_raises_nothing_but_our_errors(name, folder):
    @settings(max_examples=70, **FIXED)
    @given(harmed(seeds(name)))
    def holds(content):
        TARGETS[name](content, folder())

    holds()


@settings(max_examples=100, **FIXED)
@given(st.data())
def test_what_was_not_harmed_is_read_though_other_lines_are(data):
    log = lines(given=[message(f"number {n}") for n in range(12)])
    there = [CODEC.decode(line) for line in log]
    harm = data.draw(st.dictionaries(st.integers(0, 11), st.binary(max_size=300), max_size=6))
    content = [harm[n].replace(b"\n", b" ") + b"\n" if n in harm else line for n, line in enumerate(log)]
    with tempfile.TemporaryDirectory() as place:
        write_log(Path(place), b"".join(content))
        damage = []
        read = list(History(Path(place), CODEC).read(on_damage=damage.append))
    assert read == [event for n, event in enumerate(there) if n not in harm]
    assert bool(damage) == bool(harm)


_NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: not {0, 47} & set(name))
_ENTRIES = st.builds(
    lambda mode, oid: trees.RawTreeEntry(mode, oid.hex()),
    st.sampled_from((b"100644", b"100755", b"120000", b"40000")),
    st.binary(min_size=20, max_size=20),
)


@settings(max_examples=100, **FIXED)
@given(st.dictionaries(_NAMES, _ENTRIES), st.lists(st.dictionaries(_NAMES, st.none() | _ENTRIES), max_size=3))
def test_an_edited_tree_is_the_one_that_is_made_at_once(first, changes):
    wanted, tree = dict(first), trees.edit(b"", first)
    for change in changes:
        tree = trees.edit(tree, change)
        wanted = {name: entry for name, entry in (wanted | change).items() if entry is not None}
    assert tree == trees.edit(b"", wanted)
    for name in wanted:
        assert trees.find(tree, name) == wanted[name]
