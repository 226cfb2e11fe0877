"""Checks as YAML: what is read, what is written, and what a mistake is told as."""

import re
from pathlib import Path

import pytest

from agentx.synthesis.enforcement.check_file import KINDS, CheckFileInvalid, format_checks, parse_checks
from agentx.synthesis.memory.checks import PathCheck, SizeCheck, StructureCheck, TextCheck

WHOLE = {
    "path": "paths: ['*.docx']\nactions: [delete]\nallowed: agent:writer",
    "text": "patterns: ['\\bTODO\\b']\npaths: src/**\nplaces: [files]",
    "structure": "languages: [python]\npatterns: ['class $C: $$$']\nnames: {C: '[A-Z]\\w*'}",
    "decorator": "decorator: app.login_required",
    "dependency": "packages: [redis]\nversions: exact",
    "command": "programs: [git push]\nforbidden_flags: [--force, -f]",
    "size": "of: line\nunit: characters\nat_most: 100",
    "content": "header: Copyright ACME\nsections: [Licence]",
    "program": "command: make check",
    "follow_up": "command: make generate",
}


def test_every_kind_is_read_and_written_again():
    assert set(WHOLE) == set(KINDS)
    made = parse_checks("".join(
        f"- kind: {kind}\n" + "".join(f"  {line}\n" for line in text.splitlines())
        for kind, text in WHOLE.items()
    ), "all.yaml")  # fmt: skip
    assert [type(check) for check in made] == list(KINDS.values())
    assert all(check.by_hand for check in made)
    assert parse_checks(format_checks(made), "again.yaml") == made


def test_scalars_get_the_type_of_their_field():
    assert parse_checks("kind: size\nat_most: 400", "x") == (SizeCheck(at_most=400, by_hand=True),)
    (check,) = parse_checks("kind: structure\npatterns: eval($$$)\nrequired: true", "x")
    assert check == StructureCheck(patterns=("eval($$$)",), required=True, by_hand=True)
    (check,) = parse_checks("kind: text\nphrases: [no, 007]", "x")
    assert check.phrases == ("no", "007"), "a word stays a word"


def test_only_what_is_set_is_written():
    assert format_checks([PathCheck(paths=("a",))]) == "kind: path\npaths:\n- a\n"
    assert format_checks([TextCheck(phrases=("a",), mode="warn", by_hand=True)]) == (
        "kind: text\nmode: warn\nphrases:\n- a\n"
    )


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("kind: structur", 1, "unknown kind 'structur'; did you mean structure?"),
        ("paths: a", 1, "missing key `kind`"),
        ("- kind: path\n  paths: a\n- a word", 3, "a check is a mapping with a `kind`"),
        ("kind: path\npath: a", 2, "unknown key 'path'; did you mean paths?"),
        ("kind: path\npaths: a\nby_hand: true", 3, "unknown key 'by_hand'"),
        ("kind: path\nmode: denny\npaths: a", 2, "unknown value 'denny'; did you mean deny?"),
        ("kind: path\npaths: a\nactions: [create, remove]", 3, "unknown value 'remove'"),
        ("kind: size\nat_most: many", 2, "expected a whole number, not 'many'"),
        ("kind: size", 1, "missing key `at_most`"),
        ("kind: text", 1, "give phrases or patterns"),
        ("kind: text\npatterns:\n- ok\n- '(a'", 4, "not a regular expression"),
        ("kind: path\npaths: a\nname: '[a'", 3, "not a regular expression"),
        ("kind: structure\npatterns: a\nnames: {X: '[a'}", 3, "not a regular expression"),
        ("kind: structure\nlanguages: [pyton]\npatterns: a", 2, "did you mean python?"),
        ("kind: structure\npatterns: 'print('", 2, "the brackets of the pattern 'print(' do not match"),
        ("kind: structure\nlanguages: [python]\npatterns: ''", 1, "give patterns or rule"),
        ("kind: structure\nlanguages: [python]\nrule: {kind: nope}", 3, "Kind `nope` is invalid"),
        ("kind: structure\nrule: {patern: a}", 2, "unknown field `patern`"),
        ("", 1, "the file is empty"),
        ("kind: [", 1, "not valid YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(text, line, told):
    with pytest.raises(CheckFileInvalid) as raised:
        parse_checks(text, "rule.yaml")
    assert raised.value.faults[0].line == line
    assert told in str(raised.value)
    assert str(raised.value).startswith(f"rule.yaml, line {line}: ")


def test_all_mistakes_are_told_at_once():
    with pytest.raises(CheckFileInvalid) as raised:
        parse_checks("- kind: siz\n- kind: path\n- kind: size\n  at_most: x", "rule.yaml")
    assert len(raised.value.faults) == 3


def test_the_docs_have_one_check_of_each_kind():
    page = Path(__file__).parents[3] / "docs" / "constraints.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert [type(check) for check in parse_checks(text, "constraints.md")] == list(KINDS.values())
