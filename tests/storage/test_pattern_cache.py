"""Compiled patterns are kept between processes, and are what `re.compile` makes."""

import re

import pytest

from agentx.storage import pattern_cache
from agentx.storage.pattern_cache import PatternCache

PATTERNS = [
    (r"\b(?P<verb>use|never)\b[^.]{1,30}(?P<thing>\w+)", re.IGNORECASE),
    (r"(?x) a  b+ # spaces", 0),
    ("[à-ÿ–]+(?=x)|(a)(b)?", 0),
]
TEXT = "Never USE tabs; abb–x ab. Use spaces, ÿàx."


def opened(directory):
    cache = PatternCache()
    cache.open(directory)
    return cache


@pytest.fixture
def kept(tmp_path):
    first = opened(tmp_path / "patterns")
    for pattern, flags in PATTERNS:
        first.compile(pattern, flags)
    first.save()
    (file,) = (tmp_path / "patterns").iterdir()
    return file


@pytest.mark.parametrize(("pattern", "flags"), PATTERNS)
def test_a_kept_pattern_finds_what_a_compiled_one_finds(kept, monkeypatch, pattern, flags):
    second = opened(kept.parent)
    monkeypatch.setattr(re._parser, "parse", None)  # nothing is compiled again
    found, plain = second.compile(pattern, flags), pattern
    monkeypatch.undo()
    expected = re.compile(plain, flags)
    assert [m.groupdict() for m in found.finditer(TEXT)] == [m.groupdict() for m in expected.finditer(TEXT)]
    assert found == expected


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"torn"])
def test_a_damaged_file_is_not_used_and_is_written_again(kept, content):
    kept.write_bytes(content or kept.read_bytes()[:-1])
    cache = opened(kept.parent)
    assert cache.compile("a+", 0).findall("aab") == ["aa"]
    cache.save()
    assert opened(kept.parent).compile("a+", 0).findall("aab") == ["aa"]


def test_a_link_in_the_place_of_the_file_is_not_followed(kept, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert opened(kept.parent)._known == {}


def test_a_directory_that_cannot_be_written_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    cache = opened(tmp_path / "file" / "patterns")
    assert cache.compile("a", 0).search("a")
    cache.save()


def test_an_interpreter_with_other_insides_compiles_as_always(tmp_path, monkeypatch):
    cache = opened(tmp_path)
    monkeypatch.delattr(re._compiler, "_code")
    monkeypatch.setattr(pattern_cache, "_plainly", lambda pattern, flags: (pattern, flags))
    assert cache.compile("a", 2) == ("a", 2)


def test_a_pattern_that_is_wrong_is_refused_as_always(tmp_path):
    with pytest.raises(re.error):
        opened(tmp_path).compile("(", 0)


def test_patterns_of_bytes_are_compiled_as_always(tmp_path):
    assert opened(tmp_path).compile(rb"a+").findall(b"aab") == [b"aa"]
