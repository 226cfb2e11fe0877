"""Checks of structure, size and content, in several languages."""

import pytest

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import evaluate_answer, evaluate_changes
from agentx.synthesis.enforcement.structure import unreadable
from agentx.synthesis.memory.checks import ContentCheck, SizeCheck, StructureCheck
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem


def broken(check, path, after, before=None):
    """Return the violations of one check by a change."""
    item = MemoryItem(id="c-1", kind="constraint", text="A rule.", detail=ConstraintDetail(checks=(check,)))
    change = CheckedChange(path=path, before=before, after=after)
    return evaluate_changes([item], [change]).violations


@pytest.mark.parametrize(
    ("path", "pattern", "code"),
    [
        ("a.py", "eval($$$)", "def f(x):\n    return eval(x)\n"),
        ("a.py", "from $M import *", "from os import *\n"),
        ("a.js", "console.log($$$)", "console.log('a', b)"),
        ("a.js", "$X == $Y", "if (a == b) {}"),
        ("a.js", "$X.innerHTML = $Y", "node.innerHTML = text"),
        ("a.ts", "import $X from 'lodash'", "import _ from 'lodash'"),
        ("a.tsx", "var $X = $Y", "var a = 1"),
        ("a.go", "fmt.Println($$$)", 'package a\nfunc f() { fmt.Println("a") }'),
        ("a.rs", "$X.unwrap()", "fn f() { read().unwrap(); }"),
        ("a.rs", "panic!($$$)", 'fn f() { panic!("a"); }'),
        ("A.java", "System.out.println($$$)", 'class A { void f() { System.out.println("a"); } }'),
        ("a.kt", "println($$$)", "fun f() { println(1) }"),
        ("a.cs", "Console.WriteLine($$$)", "class A { void F() { Console.WriteLine(1); } }"),
        ("a.c", "strcpy($$$)", "int f() { strcpy(a, b); return 0; }"),
        ("a.php", "var_dump($$$)", "<?php var_dump($x);"),
        ("a.rb", "binding.pry", "def a\n  binding.pry\nend"),
        ("a.swift", "print($$$)", "func f() { print(1) }"),
    ],
)
def test_a_pattern_is_found_in_its_language_and_not_in_a_comment(path, pattern, code):
    check = StructureCheck(patterns=(pattern,))
    (violation,) = broken(check, path, code)
    assert violation.line
    mark = "#" if path.endswith((".py", ".rb")) else "//"
    assert broken(check, path, "".join(f"{mark} {line}\n" for line in code.splitlines())) == ()


def test_only_what_is_new_counts():
    check = StructureCheck(patterns=("print($$$)",), paths=("src/**",), exceptions=("src/cli/**",))
    before = "print(1)\n"
    assert broken(check, "src/a.py", before + "x = 1\n", before) == ()
    (violation,) = broken(check, "src/a.py", before + "print(1)\n", before)
    assert violation.line == 2
    assert broken(check, "src/cli/a.py", "print(1)\n") == ()
    assert broken(check, "tests/a.py", "print(1)\n") == ()


def test_names_have_a_form():
    rule = {"kind": "function_definition", "has": {"field": "name", "pattern": "$NAME"}}
    check = StructureCheck(languages=("python",), rule=rule, names={"NAME": "[a-z_0-9]+"})
    (violation,) = broken(check, "a.py", "def load_all(): ...\ndef LoadOne(): ...\n")
    assert violation.reason == "Line 2 of a.py names `LoadOne`."


def test_a_required_match_is_missed_only_where_it_was():
    check = StructureCheck(languages=("typescript",), patterns=('import $X from "react"',), required=True)
    assert broken(check, "a.tsx", "export const a = 1\n")
    assert broken(check, "a.tsx", "export const a = 1\n", "export const b = 1\n") == ()
    assert broken(check, "a.py", "x = 1\n") == ()


def test_a_rule_that_names_unknown_nodes_and_a_file_of_no_language_pass():
    assert broken(StructureCheck(rule={"kind": "no_such_node"}), "a.py", "x = 1\n") == ()
    assert broken(StructureCheck(patterns=("print($$$)",)), "notes.txt", "print(1)\n") == ()


def test_a_pattern_of_another_language_is_unreadable():
    assert unreadable("import $X from 'lodash'", "typescript") == ""
    assert unreadable("import $X from 'lodash'", "python") == "it is not valid python"
    assert unreadable("x", "cobol") == "cobol is not a known language"


# --- sizes ---


def test_a_file_may_not_grow_over_the_limit():
    check = SizeCheck(of="file", at_most=3)
    assert broken(check, "a.md", "1\n2\n3\n") == ()
    assert broken(check, "a.md", "1\n2\n3\n4\n")
    assert broken(check, "a.md", "1\n2\n3\n4\n", "1\n2\n3\n4\n5\n") == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a.py", "def short():\n    return 1\n\ndef long():\n    a = 1\n    b = 2\n    return a\n"),
        ("a.ts", "function short() {\n}\nconst long = () => {\n  a()\n  b()\n  c()\n}\n"),
        ("a.go", "package a\nfunc short() {}\nfunc long() {\n  a()\n  b()\n}\n"),
    ],
)
def test_a_long_function_is_named(path, code):
    (violation,) = broken(SizeCheck(of="function", at_most=3), path, code)
    assert "long at line" in violation.reason


def test_only_new_long_lines_count():
    check = SizeCheck(of="line", unit="characters", at_most=10)
    assert broken(check, "a.txt", "short\n" + "x" * 11, "x" * 11) == ()
    (violation,) = broken(check, "a.txt", "short\n" + "y" * 11, "x" * 11)
    assert violation.line == 2


def test_an_answer_has_at_most_so_many_words():
    detail = ConstraintDetail(checks=(SizeCheck(of="answer", unit="words", at_most=3),))
    item = MemoryItem(id="c-1", kind="constraint", text="Be brief.", detail=detail)
    assert evaluate_answer([item], "one two three").violations == ()
    assert evaluate_answer([item], "one two three four").violations


# --- content ---


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "#!/usr/bin/env python\n# Copyright 2024 ACME\nx = 1\n"),
        ("a.py", '"""Copyright 2019-2025 ACME"""\n'),
        ("a.js", "/*\n * Copyright 2026 ACME\n */\n"),
        ("a.html", "<!-- Copyright 2026 ACME -->\n<p>\n"),
    ],
)
def test_a_header_is_known_in_every_form_and_year(path, text):
    assert broken(ContentCheck(header="Copyright 2026 ACME"), path, text) == ()


@pytest.mark.parametrize("path", ["a.py", "a.go", "a.css", "a.sql", "a.html", "a.txt"])
def test_the_correction_of_a_missing_header_is_a_text_with_it(path):
    check = ContentCheck(header="Copyright 2026 ACME")
    (violation,) = broken(check, path, "body\n")
    assert violation.correction.endswith("body\n")
    assert broken(check, path, violation.correction) == ()


def test_a_file_that_never_had_the_header_may_be_changed():
    assert broken(ContentCheck(header="Copyright ACME"), "a.py", "x = 2\n", "x = 1\n") == ()


def test_a_document_needs_its_sections():
    check = ContentCheck(sections=("## Usage", "Licence"), paths=("*.md",))
    assert broken(check, "a.md", "# A\n\n## 1. Usage\n\nText\n\nLicence\n-------\n") == ()
    (violation,) = broken(check, "a.md", "# A\n\n### usage\n")
    assert "Licence" in violation.reason
