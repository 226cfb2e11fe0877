"""The two forms of a filter, and globs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.index.filters import matches_glob, predicate, sql
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Chunk, Filter


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
