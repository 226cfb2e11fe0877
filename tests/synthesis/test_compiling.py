"""Common wordings of rules, and the checks that they compile to."""

import re

import pytest

from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.compiling.concepts import concepts
from agentx.synthesis.compiling.reading.rule import in_context
from agentx.synthesis.compiling.reading.stance import stance
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import evaluate_changes
from agentx.synthesis.enforcement.structure import unreadable
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.memory import checks as c
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, Scope


def compiled(text):
    return compile_checks(text, "must", Scope())


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Never delete files in tests/", c.PathCheck(paths=("tests/**",), actions=("delete",))),
        (
            "The CSVs in exports/ are evidence, don't change them.",
            c.PathCheck(paths=("exports/**/*.csv",), actions=("create", "change", "delete")),
        ),
        ("Every note in research/ needs a `## Sources` section.", c.ContentCheck(paths=("research/**",), sections=("Sources",))),
        ("Keep answers under 80 words.", c.SizeCheck(of="answer", unit="words", at_most=79)),
        ("No function longer than 40 lines, please.", c.SizeCheck(of="function", at_most=40)),
        ("moment.js must not come back into this project.", c.DependencyCheck(packages=("moment",))),
        ("terraform apply must never be run with -auto-approve", c.CommandCheck(programs=("terraform apply",), forbidden_flags=("-auto-approve", "--auto-approve"))),
        ("Always git commit with -s or --signoff.", c.CommandCheck(programs=("git commit",), required_flags=("-s|--signoff",))),
        ("After changing api/openapi.yaml, run `make gen-client`.", c.FollowUpCheck(command="make gen-client", paths=("api/openapi.yaml",))),
        ("Leave emojis out of your answers.", c.TextCheck(patterns=compiled("No emojis in answers.")[0].patterns, places=("answers",))),
    ],
)  # fmt: skip
def test_a_common_wording_compiles_to_the_check_of_its_kind(text, check):
    assert compiled(text) == (check,)


@pytest.mark.parametrize(
    "text",
    [
        "Be polite in mails to the print shop.",
        "Before deleting anything, think about who depends on it.",
        "Don't over-engineer.",
        "No emojis in commit messages.",
        "Never import pandas in the API layer.",
        "Give variables names that mean something.",
    ],
)
def test_what_no_check_can_tell_has_none(text):
    assert compiled(text) == ()


def test_every_rule_of_ast_grep_in_a_compiled_check_can_be_read():
    ast_grep = pytest.importorskip("ast_grep_py")
    for text in (
        "No `eval()`.",
        "Rust: no .unwrap() in src/, except in tests.",
        "Never use `var` in JavaScript.",
    ):
        found = compiled(text)
        assert found
        for check in found:
            for language in check.languages:
                assert not any(unreadable(pattern, language) for pattern in check.patterns)
                if check.rule:
                    assert ast_grep.SgRoot("", language).root().find_all({"rule": check.rule}) == []


def test_all_concepts_can_be_read_by_ast_grep():
    ast_grep = pytest.importorskip("ast_grep_py")
    for concept in (*concepts().forbidden, *concepts().required):
        for languages, finder in concept.finders.items():
            for language in languages:
                if isinstance(finder, tuple):
                    assert not any(unreadable(pattern, language) for pattern in finder)
                else:
                    assert ast_grep.SgRoot("", language).root().find_all({"rule": finder}) == []


def test_a_name_has_to_have_its_form():
    (check,) = compiled("C#: any method that returns Task ends in Async.")
    assert re.fullmatch(check.names["NAME"], "SaveAsync")
    assert not re.fullmatch(check.names["NAME"], "Save")


@pytest.mark.parametrize(
    "message",
    [
        "Core/Src and Core/Inc come out of CubeMX. Do not hand-edit any of it, ever.",
        "Never write a real credential into a file. I mean Stripe live keys (sk_live_...).",
    ],
)
def test_a_rule_is_compiled_with_the_sentence_that_its_words_rest_on(message):
    sentences = message.split(". ")
    at = 0 if message.startswith("Never") else len(sentences[0]) + 2
    span = Span(at, at + len(sentences[at > 0]))
    assert compiled(in_context(message, span))
    assert in_context("Fix the parser. Never be rude.", Span(16, 30)) == ""


ALL = ("create", "change", "delete")


@pytest.mark.parametrize(
    ("text", "paths", "actions"),
    [
        ("Please leave the assets/audio folder alone, our sound designer is at work in there.", ("assets/audio/**",), ALL),
        ("hardware/board.kicad_pcb is Yusuf's, keep your hands off it", ("hardware/board.kicad_pcb",), ALL),
        ("The golden files under tests/golden are frozen until the release.", ("tests/golden/**",), ALL),
        ("contracts/ contains what the lawyers signed. It must stay untouched.", ("contracts/**",), ALL),
        ("Nobody but the payroll team edits payroll/.", ("payroll/**",), ALL),
        ("All the savegames in saves/ are fixtures, so don't regenerate, move or overwrite them.", ("saves/**",), ALL),
        ("Don't rename or delete anything in photos/ - the catalogue has the names.", ("photos/**",), ("delete",)),
        ("Please you change in vendor/ never something.", ("vendor/**",), ALL),
        ("No Word documents in this project, we only do Markdown.", ("**/*.docx", "**/*.doc"), ("create", "change")),
        ("Files ending in .orig are never to be deleted.", ("**/*.orig",), ("delete",)),
        ("Existing files in ledger/ are history.", ("ledger/**",), ("change", "delete")),
    ],
)  # fmt: skip
def test_files_are_protected_in_any_wording(text, paths, actions):
    (check,) = compiled(text)
    assert (check.paths, check.actions) == (paths, actions)
    assert not check.doubt


@pytest.mark.parametrize(
    ("text", "paths", "exceptions"),
    [
        ("You may write in notes/ and nowhere else.", ("**",), ("notes/**",)),
        ("Only touch files under apps/mobile.", ("**",), ("apps/mobile/**",)),
        ("Everything goes into out/, don't create files outside of it.", ("**",), ("out/**",)),
        ("Of the files in strings/ you only edit de.json.", ("strings/**",), ("**/de.json",)),
        ("Nothing in site/ may be edited, except site/index.html.", ("site/**",), ("site/index.html",)),
    ],
)
def test_writing_is_restricted_to_files(text, paths, exceptions):
    (check,) = compiled(text)
    assert (check.paths, check.exceptions) == (paths, exceptions)


def test_where_files_come_from_is_a_doubtful_ban():
    (check,) = compiled("schema.sql is generated from the models.")
    assert check.paths == ("**/schema.sql",)
    assert check.doubt


@pytest.mark.parametrize(
    "text",
    [
        "In src/api, don't change function signatures.",
        "Keep functions in src/core short.",
        "Tests for src/billing belong in tests/billing.",
        "I like the style of docs/intro.md, write like that.",
        "Read docs/style.md before you write a chapter.",
        "Never commit to release/2.x.",
    ],
)
def test_a_path_in_a_rule_about_something_else_is_not_protected(text):
    assert not any(isinstance(check, c.PathCheck) for check in compiled(text))


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("rsync gets --checksum, always", c.CommandCheck(programs=("rsync",), required_flags=("--checksum",))),
        ("Give helm an explicit --namespace each time.", c.CommandCheck(programs=("helm",), required_flags=("--namespace",))),
        ("Never call helm without --namespace.", c.CommandCheck(programs=("helm",), required_flags=("--namespace",))),
        ("docker run needs --rm", c.CommandCheck(programs=("docker run",), required_flags=("--rm",))),
        ("qsub must always have -q", c.CommandCheck(programs=("qsub",), required_flags=("-q",))),
        ("When something under idl/ changed, `make stubs` has to run before you call it finished.", c.FollowUpCheck(command="make stubs", paths=("idl/**",))),
        ("Neither zap nor logrus gets into this module.", c.DependencyCheck(packages=("zap", "logrus"))),
        ("jQuery is out, we're on plain DOM now.", c.DependencyCheck(packages=("jQuery",))),
        ("Hands off requests, use httpx.", c.DependencyCheck(packages=("requests",), instead="httpx")),
    ],
)  # fmt: skip
def test_commands_and_packages_are_read_by_their_place_in_the_sentence(text, check):
    assert compiled(text) == (check,)


def test_one_package_manager_rules_out_the_others_of_its_family():
    for text in ("This repo is pnpm. Not npm, not yarn.", "yarn, please. npm makes a second lockfile"):
        (check,) = compiled(text)
        assert "npm install" in check.programs
        assert check.instead not in check.programs


@pytest.mark.parametrize(
    ("text", "path", "bad", "good"),
    [
        ("println!() has no place in crates/core, use tracing.", "crates/core/a.rs", 'fn f() { println!("x"); }', "fn f() { }"),
        ("Java: nobody calls System.out.println, the collector drops it.", "A.java", "class A { void f() { System.out.println(1); } }", "class A { /* System.out.println */ }"),
        ("Don't catch Exception in Python, name the error you expect.", "a.py", "try:\n    f()\nexcept Exception:\n    pass\n", "try:\n    f()\nexcept KeyError:\n    pass\n"),
        ("os.path is banned here, pathlib it is", "a.py", "import os\nx = os.path.join('a')\n", "from pathlib import Path\n"),
        ("C#: interfaces begin with an I, always", "A.cs", "interface Shop { }", "interface IShop { }"),
        ("Kotlin: no !! please", "A.kt", "val a = b!!\n", "val a = b ?: c\n"),
        ("Each call to httpx needs a timeout", "a.py", "httpx.get(url)\n", "httpx.get(url, timeout=3)\n"),
        ('The word "awesome" has no business in docs/', "docs/a.md", "An awesome tool\n", "A good tool\n"),
        ("quit putting semicolons in my poems/", "poems/a.md", "Snow; night\n", "Snow, night\n"),
        ("A lesson in lessons/ may not exceed two hundred and fifty words.", "lessons/a.md", "word " * 251, "word " * 250),
        ('An entry in diary/ without a "## Weather" heading is useless to me.', "diary/a.md", "# Monday\n\nRain\n", "# Monday\n\n## Weather\n\nRain\n"),
        ("All scripts under bin/ have `set -eu` at the top.", "bin/a.sh", "#!/bin/sh\necho\n", "#!/bin/sh\nset -eu\n"),
    ],
)  # fmt: skip
def test_a_rule_in_words_of_its_own_tells_what_breaks_it(text, path, bad, good):
    detail = ConstraintDetail(checks=compiled(text))
    item = MemoryItem(id="c-1", kind="constraint", text=text, status="active", detail=detail)
    broken = [
        bool(evaluate_changes([item], [CheckedChange(path=path, after=after)]).violations)
        for after in (bad, good)
    ]
    assert broken == [True, False]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("Please stop using [alert] for errors", "banned"),
        ("Prefer `const` over [var].", "banned"),
        ("Use [logger], never print", "wanted"),
        ("No function without [type hints], please", "wanted"),
        ("[goto] is what crashed the parser", "blamed"),
        ("Leave the [emojis] out of my answers", "banned"),
    ],
)
def test_the_position_in_the_sentence_decides_what_is_said_about_a_thing(rule, found):
    start, end = rule.index("["), rule.index("]") - 1
    assert stance(rule.replace("[", "").replace("]", ""), start, end) == found
