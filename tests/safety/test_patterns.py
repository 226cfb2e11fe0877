"""Patterns that come as data stop nobody: a rule's expression or glob that would take for ever asks a person."""

import os

import pytest

from agentx import Workspace
from agentx.settings import Settings
from agentx.synthesis.memory.checks import CommandCheck, ContentCheck, PathCheck, StructureCheck, TextCheck

BOMB = r"^(a|aa)+$"
"""For Python's own engine, each letter more nearly doubles the time."""

FOOD = "a" * 90 + "!"

UNTRANSLATABLE = r"^(?=(a|aa)+$)a"
"""The same behind a look-ahead, which no engine of linear time has."""


@pytest.fixture
def ws(tmp_path):
    lexical = Settings(environ=dict(os.environ), cache_dir=tmp_path / "no-models")
    with Workspace.create(tmp_path / "task", title="Patterns", settings=lexical) as opened:
        yield opened


def rule(ws, *checks):
    ws.remember("constraint", "A rule with a pattern.", checks=checks)


def written(ws, content, path="notes.md"):
    return ws.gates.before("", tool="Write", arguments={"path": path, "content": content})


def run(ws, command):
    return ws.gates.before("", tool="run_command", arguments={"command": command})


@pytest.mark.parametrize(
    "bomb",
    [
        BOMB,
        r"(a*)*b",
        r"(?:a+)+\Z[b]",
        r"(?i)(A|a|aa)+B",
        r"(?m)^(\w+\s?)*$x",
        r"(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^\s\S]",
        r"((a{1,30}){1,30}){1,30}b",
        r"([a-z]+)*ß",
        r"(a|a?)+$b",
        r"(?x) ( a | aa )+ b",
    ],
)
def test_an_expression_that_would_take_for_ever_is_decided(ws, bomb):
    rule(ws, TextCheck(patterns=(bomb,), places=("files", "commands")))
    for text in (FOOD, "é" + FOOD, FOOD * 200):
        assert written(ws, text).verdict.startswith("allow")
        assert run(ws, f"echo {text}").verdict.startswith("allow")


def test_it_is_decided_in_every_kind_of_check_that_has_one(ws):
    rule(ws, PathCheck(name=r"(a|aa)+[.]md"))
    rule(ws, ContentCheck(patterns=(BOMB,), paths=("*.txt",)))
    rule(ws, CommandCheck(programs=("deploy",), arguments=(BOMB,)))
    rule(ws, StructureCheck(patterns=("def $N(): $$$",), languages=("python",), names={"N": r"(a|aa)+b"}))
    assert written(ws, "x", path=f"{'a' * 90}.md").verdict.startswith("allow")
    assert written(ws, "x", path=f"{'a' * 90}b.md").verdict == "deny"
    assert written(ws, FOOD, path="a.txt").verdict == "deny"
    assert run(ws, f"deploy {FOOD}").verdict.startswith("allow")
    assert run(ws, f"deploy {'a' * 90}").verdict == "deny"
    assert written(ws, f"def {'a' * 90}(): pass\n", path="a.py").verdict == "deny"


def test_what_no_engine_decides_in_time_is_asked_and_never_allowed(ws):
    rule(ws, TextCheck(patterns=(UNTRANSLATABLE,), places=("files", "commands")))
    assert written(ws, "aaa").verdict == "deny", "where it is soon decided, it is"
    asked = written(ws, FOOD)
    assert asked.verdict == "ask"
    assert "could not be found out in time" in asked.reason
    assert written(ws, FOOD).verdict == "ask", "and the second time at once"
    assert written(ws, "bbb").verdict.startswith("allow"), "RE2 sees that it cannot match"


def test_a_rule_that_is_broken_for_certain_is_not_asked_about_for_another_pattern(ws):
    rule(ws, TextCheck(patterns=("(", "forbidden")))
    assert written(ws, "forbidden").verdict == "deny"
    assert written(ws, "fine").verdict == "ask"


@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "(" * 900 + ")" * 900, "a" * 10_001, "[z-a]", r"\g", "(?i"]
)
def test_an_expression_that_cannot_be_read_is_asked_about(ws, pattern):
    for check in (TextCheck(patterns=(pattern,)), PathCheck(name=pattern), ContentCheck(patterns=(pattern,))):
        rule(ws, check)
    rule(ws, CommandCheck(programs=("deploy",), arguments=(pattern,)))
    assert written(ws, "text").verdict == "ask"
    assert run(ws, "deploy now").verdict == "ask"
    assert run(ws, "ls").verdict.startswith("allow")


@pytest.mark.parametrize(
    ("pattern", "broken", "kept"),
    [
        (r"(?<!un)safe", "it is safe", "it is unsafe"),
        (r"(\w+) \1", "the the", "the other"),
        (r"(?!)", None, "anything"),
        (r"\bnaïve\b", "so naïve!", "naïvely"),
        (r"\w+é", "café", "cafe"),
        (r"[^\W\d_]+ß", "Fuß", "1_ß"),
        (r"(?i)İx", "İX", "y"),
        (r"(?i)straße", "STRAßE", "strasse"),
        (r"\d\d", "٣٤", "²³"),
        (r"a\sb", "a\u2003b", "a\u200bb"),
        (r"^b$", "a\nb\nc", "abc"),
        (r"\Ab", "b\na", "a\nb"),
        (r"x{2000}", "x" * 2000, "x" * 1999),
        (r"a++b", "aab", "aac"),
        (r"(?>a|ab)c", "ac", "abc"),
        (r"\u00e9", "é", "e"),
        (r"(?x) f o o # a comment", "foo", "f o o"),
        (r"(a)?(?(1)b|c)d", "abd", "bd"),
    ],
)
def test_a_valid_expression_means_what_it_means_in_python(ws, pattern, broken, kept):
    rule(ws, TextCheck(patterns=(pattern,)))
    assert written(ws, kept).verdict.startswith("allow")
    if broken is not None:
        assert written(ws, broken).verdict == "deny"


def test_the_line_of_a_match_is_named(ws):
    rule(ws, TextCheck(patterns=(r"\bbad\b",)))
    assert "Line 3 of notes.md" in written(ws, "é\n\nall bad\n").reason
    assert "Line 3 of notes.md" in written(ws, "e\n\nall bad\n").reason


@pytest.mark.parametrize(
    "glob", ["*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/a/**/a/**/b", "[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*!"]
)
def test_a_glob_that_would_take_for_ever_is_decided(ws, glob):
    rule(ws, PathCheck(paths=(glob,)))
    for path in ("a" * 200, "/".join("a" * 400)):
        assert written(ws, "x", path=path).verdict.startswith("allow")


def test_a_glob_with_many_stars_means_what_it_means_in_git(ws):
    rule(ws, PathCheck(paths=("src/**/*t*e*s*t*", "!src/**/*t*e*s*t*.md")))
    rule(ws, PathCheck(paths=("*k*e*e*p*/",), exceptions=("**/*k*e*e*p*/ok*",)))
    assert written(ws, "x", path="src/a/my_test.py").verdict == "deny"
    assert written(ws, "x", path="src/a/my_test.md").verdict.startswith("allow")
    assert written(ws, "x", path="test.py").verdict.startswith("allow")
    assert written(ws, "x", path="a/kéeep/b.py").verdict == "deny"
    assert written(ws, "x", path="a/keep/okay.py").verdict.startswith("allow")
    assert written(ws, "x", path="keep").verdict.startswith("allow")


def test_a_glob_that_cannot_be_read_excuses_nothing(ws):
    rule(ws, PathCheck(paths=("!", "*.key")))
    rule(ws, TextCheck(phrases=("secret",), exceptions=("!",)))
    assert written(ws, "x", path="a.key").verdict == "deny"
    assert written(ws, "secret", path="b.txt").verdict == "deny"
