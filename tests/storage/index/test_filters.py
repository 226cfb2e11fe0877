"""The two forms of a filter, globs, and every filter on every backend against what it means, told plainly."""

import random
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.index.filters import matches_glob, predicate, sql
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import OPEN, Chunk, Filter


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a.py", True), ("*.py", "x/y/a.py", True), ("x/*.py", "x/y/a.py", False),
        ("x/**/a.py", "x/a.py", True), ("x/**/a.py", "x/y/z/a.py", True), ("**", "any/thing", True),
        ("x/**", "x/y", True), ("x/**", "xy/z", False), ("?.py", "ab.py", False), ("[ab].py", "a.py", False),
        ("[ab].py*", "[ab].py", True), ("**/x/**/y", "x/y", True), ("a.*", "a/b", False),
    ],
)  # fmt: skip
def test_globs(glob, path, expected):
    assert matches_glob(path, glob) is expected


def test_a_glob_made_to_be_slow_is_answered_all_the_same():
    assert not matches_glob("a" * 5_000, "*a" * 300 + "b*")
    assert not matches_glob("a/" * 1_000, "**/a/" * 150 + "b")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    index = LanceIndex(tmp_path_factory.mktemp("index"))
    paths = [path for path in PATHS if path]
    index.put(
        [
            Chunk(id=path, text="t", kind="artifact", path=path, at=f"2026-01-0{len(path)}T00:00:00.5Z")
            for path in paths
        ]
    )
    assert index.flush()
    return index


PATHS = ["a", "b", "a/b", "a.b", "a/a/b", "[a]", "a b", "b/a.b", "ab", "a/ab.b", "a\nb", "a*b", "/a", "a//b"]


@settings(max_examples=150, deadline=None)
@given(st.text("ab/*?.[]\n ", min_size=1, max_size=7))
def test_sql_and_predicate_say_the_same_of_every_path_filter(table, path):
    where = Filter(path=path)
    keep = predicate(where)
    expected = {i for i, chunk in table.get(PATHS).items() if keep(chunk)}
    assert table.count(where) == len(expected), sql(where)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["", "2026", "2026-01-02", "2026-01-03T00:00:00Z", "2026-01-03T01:00:00.5+01:00"]),
    st.sampled_from(["", "2026-01-04", "2026-01-03T00:00:00.500001Z", "2025-12-31"]),
)
def test_sql_and_predicate_say_the_same_of_every_time(table, since, before):
    where = Filter(since=since, before=before)
    keep = predicate(where)
    assert table.count(where) == sum(keep(chunk) for chunk in table.get(PATHS).values())


KINDS = ["artifact", "message", "tool", "source"]
BELOW = {
    "": {"", "src/a.py", "src/api/b.py", "src/api/v2/c.ts", "src.py", "docs/a.md", "src/über.py"},
    "src": {"src/a.py", "src/api/b.py", "src/api/v2/c.ts", "src/über.py"},
    "src/api/": {"src/api/b.py", "src/api/v2/c.ts"},
    "src/a.py": {"src/a.py"},
    "*.py": {"src/a.py", "src/api/b.py", "src.py", "src/über.py"},
    "src/*.py": {"src/a.py", "src/über.py"},
    "src/*/?.py": {"src/api/b.py"},
    "src/**": {"src/a.py", "src/api/b.py", "src/api/v2/c.ts", "src/über.py"},
    "**/v2/*": {"src/api/v2/c.ts"},
    "src/ü*": {"src/über.py"},
    "none": set(),
}
"""Each path filter, and which of the paths it lets pass."""
DAYS = [f"2026-11-0{day}T10:00:00.{part}Z" for day in (1, 2, 3) for part in ("000000", "500000")]


@pytest.fixture(scope="module", params=["memory", "waiting", "table"])
def filled(request, tmp_path_factory):
    """An index of 400 passages with every field drawn at random, and the passages."""
    draw = random.Random(7)
    chunks = [
        Chunk(
            id=f"c{number}",
            text="common",
            kind=draw.choice(KINDS),
            path=draw.choice(sorted(BELOW[""])),
            source=draw.choice(["", "reports", "lib"]),
            actor=draw.choice(
                ["", "user", "user:ann", "agent", "agent:main", "agent:maintainer", "agents:x"]
            ),
            at=draw.choice(["", *DAYS]),
            seq=draw.randint(1, 6),
            to_seq=draw.choice([OPEN, OPEN, 3, 7, 9]),
        )
        for number in range(400)
    ]
    index = (
        InMemoryIndex()
        if request.param == "memory"
        else LanceIndex(tmp_path_factory.mktemp("index"), flush_rows=1_000)
    )
    index.put(chunks, [np.array([1, number], np.float32) for number in range(len(chunks))])
    if request.param == "table":
        assert index.flush()
    yield index, chunks
    index.close()


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Filter,
        kinds=st.lists(st.sampled_from(KINDS), max_size=2, unique=True).map(tuple),
        path=st.sampled_from(["", "", *BELOW]),
        source=st.sampled_from([None, None, "", "reports"]),
        actor=st.sampled_from(["", "", "user", "user:", "agent", "agent:", "agent:main"]),
        since=st.sampled_from(["", "", "2026-11-02", DAYS[3], "2026-11-02T12:00:00.6+02:00"]),
        before=st.sampled_from(["", "", "2026-11-03", DAYS[5]]),
        as_of=st.one_of(st.none(), st.integers(0, 9)),
    )
)
def test_every_filter_lets_pass_what_it_means_in_each_kind_of_search(filled, where):
    index, chunks = filled
    expected = {chunk.id for chunk in chunks if _plainly(chunk, where)}
    assert index.count(where) == len(expected)
    assert {hit.chunk.id for hit in index.search_text("common", 500, where)} == expected
    assert {hit.chunk.id for hit in index.search_vector(np.array([1, 1], np.float32), 500, where)} == expected


def _plainly(chunk, where):
    """What a filter means, told once more without the code that is tested."""
    at = chunk.at and datetime.fromisoformat(chunk.at)
    return (
        (not where.kinds or chunk.kind in where.kinds)
        and chunk.path in BELOW[where.path]
        and where.source in {None, chunk.source}
        and (
            chunk.actor.startswith(where.actor)
            if where.actor.endswith(":")
            else where.actor in {"", chunk.actor}
        )
        and (not where.since or bool(at and at >= _moment(where.since)))
        and (not where.before or bool(at and at < _moment(where.before)))
        and (chunk.to_seq == OPEN if where.as_of is None else chunk.seq <= where.as_of < chunk.to_seq)
    )


def _moment(text):
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
