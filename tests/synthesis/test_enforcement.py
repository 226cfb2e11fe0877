"""What is denied before a write or an answer, and what is let through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import evaluate_command
from agentx.synthesis.enforcement.functions import functions_of, is_meant
from agentx.synthesis.memory.checks import CommandCheck, DependencyCheck, PathCheck, SizeCheck, TextCheck
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Evidence,
    MemoryItem,
    RejectionDetail,
    Scope,
)
from tests.rule_checks import (
    check_answer,
    check_removal,
    check_write,
    forbid_path,
    forbid_text,
    require_decorator,
    require_import,
)


def rule(check, *, status="active", modality="must", kind="constraint", **fields):
    detail = (
        ConstraintDetail(modality=modality, checks=(check,) if check else ())
        if kind == "constraint"
        else RejectionDetail("idea", checks=(check,) if check else ())
    )
    return MemoryItem(
        id="c-1",
        kind=kind,
        text="The rule.",
        evidence=(Evidence(1, 0, 13, "The sentence."),),
        status=status,
        detail=detail,
        **fields,
    )


NO_REQUIREMENTS = rule(forbid_path(("**/requirements.txt", "requirements.txt")))
NO_MUSK = rule(forbid_text(("Elon Musk",), topic="tesla's future"))
DECORATED = rule(require_decorator("disable_cache", "data-fetching"))


def lines(violations):
    return [violation.line for violation in violations]


# --- paths ---


@pytest.mark.parametrize(
    "path",
    [
        "requirements.txt", "REQUIREMENTS.TXT", "app/Requirements.txt", "./requirements.txt", "app\\requirements.txt", "requirements.txt.",
        "requirements.txt ", "app//requirements.txt", "app/../requirements.txt", "ｒequirements.txt", "require\u200bments.txt", "requirements.txt. .",
    ],
)  # fmt: skip
def test_a_forbidden_path_is_denied_however_it_is_written(path):
    (violation,) = check_write([NO_REQUIREMENTS], path, None, "flask")
    assert (violation.item_id, violation.rule, violation.sentence, violation.path) == (
        "c-1",
        "The rule.",
        "The sentence.",
        path,
    )


@pytest.mark.parametrize(
    "path",
    [
        "requirements.md",
        "my-requirements.txt",
        "pyproject.toml",
        "requirements/base.txt",
    ],
)
def test_another_path_is_let_through(path):
    assert check_write([NO_REQUIREMENTS], path, None, "x") == ()


def test_a_decomposed_name_is_the_same_name():
    assert check_write([rule(forbid_path(("**/café.md",)))], "cafe\u0301.md", None, "x")


def test_a_forbidden_file_may_be_deleted_and_binary_content_is_denied():
    assert check_removal([NO_REQUIREMENTS], "requirements.txt") == ()
    assert check_write([NO_REQUIREMENTS], "requirements.txt", None, None)
    assert check_write([NO_REQUIREMENTS], "requirements.txt", "flask", None)
    assert check_write([NO_REQUIREMENTS, NO_MUSK, DECORATED], "logo.png", None, None) == ()


def test_a_file_that_must_not_be_touched_may_not_be_deleted_either():
    frozen = rule(forbid_path(("docs/**",), frozen=True))
    assert check_removal([frozen], "docs/a.md")
    assert check_removal([frozen, NO_REQUIREMENTS, NO_MUSK], "requirements.txt") == ()


@pytest.mark.parametrize("status", ["candidate", "retired", "dormant", "closed"])
def test_only_active_rules_are_enforced(status):
    assert check_write([rule(forbid_path(("*",)), status=status)], "a.txt", None, "x") == ()


def test_a_preference_and_a_rule_without_a_check_are_not_enforced_and_a_rejection_is():
    assert check_write([rule(forbid_path(("*",)), modality="prefer"), rule(None)], "a.txt", None, "x") == ()
    assert check_write([rule(forbid_path(("*",)), kind="rejection")], "a.txt", None, "x")


def test_a_rule_holds_only_in_its_paths():
    scoped = rule(forbid_path(("**/*.txt",)), scope=Scope(paths=("docs/**",)))
    assert check_write([scoped], "docs/a.txt", None, "x")
    assert check_write([scoped], "src/a.txt", None, "x") == ()


# --- text ---


def test_a_forbidden_name_is_denied_on_its_topic_with_its_line():
    (violation,) = check_write(
        [NO_MUSK], "report.md", None, "# Tesla's future\n\nIn 2030 Elon\nMusk will rest.\n"
    )
    assert violation.line == 3
    assert "Elon Musk" in violation.reason


@pytest.mark.parametrize(
    ("text", "path", "message", "denied"),
    [
        ("Elon Musk sells cars.", "report.md", "Draft the outlook on Tesla's future", True),
        ("The outlook of Tesla: ELON  MUSK stays.", "report.md", "", True),
        ("Tesla's roadmap, by **Elon** **Musk**", "x.md", "", True),
        ("elon_musk said so", "tesla/future.md", "", True),
        ("Elon Musk founded SpaceX.", "spacex.md", "write about rockets", False),
        ("Tesla was founded in 2003; Elon Musk joined in 2004.", "x.md", "", False),
        ("Tesla's future without Elon Muskrat", "x.md", "", False),
        ("Tesla's future is bright.", "x.md", "", False),
    ],
)
def test_topic_and_words_decide(text, path, message, denied):
    assert bool(check_write([NO_MUSK], path, None, text, message=message)) is denied


def test_an_answer_is_judged_with_the_message_that_it_answers():
    assert check_answer([NO_MUSK], "Elon Musk will lead it.", message="What is Tesla's future?")
    assert check_answer([NO_MUSK], "Elon Musk will lead it.", message="Who leads xAI?") == ()
    assert check_answer([NO_REQUIREMENTS, DECORATED], "requirements.txt") == ()


def test_what_stood_in_the_file_before_is_not_held_against_a_write():
    before = "Tesla's future\nElon Musk\n"
    assert check_write([NO_MUSK], "a.md", before, before + "more\n") == ()
    assert lines(check_write([NO_MUSK], "a.md", before, before + "x\nas Elon Musk says\n")) == [4]


def test_text_rules_keep_to_answers_files_or_globs():
    assert check_answer([rule(forbid_text(("delve",), answers=False))], "Let us delve.") == ()
    assert check_write([rule(forbid_text(("delve",), files=False))], "a.md", None, "delve") == ()
    only_python = rule(forbid_text(("todo",), paths=("**/*.py",)))
    assert check_write([only_python], "a.md", None, "TODO") == ()
    assert check_write([only_python], "a.py", None, "# TODO")
    assert check_answer([only_python], "todo") == ()


def test_a_mark_is_found_between_words():
    assert check_answer([rule(forbid_text(("—",)))], "one—two")


# --- decorators ---

CODE = """
import requests
from cache import disable_cache, cache


def add(a, b):
    return a + b


def fetch_user(user_id):
    return requests.get(f"/users/{user_id}").json()


class Orders:
    @disable_cache
    def load(self):
        return self.db.query("select 1")

    @property
    def get_name(self):
        return self._name

    async def all(self):
        async with session.get("/orders") as reply:
            return await reply.json()


def test_fetch_user():
    assert fetch_user(1)
"""


def test_new_data_fetching_functions_need_the_decorator():
    violations = check_write([DECORATED], "app.py", None, CODE)
    assert [violation.line for violation in violations] == [10, 23]
    assert (
        violations[0].reason
        == "fetch_user at line 10 of app.py is a new data-fetching function without @disable_cache."
    )


def test_old_functions_are_left_alone():
    assert check_write([DECORATED], "app.py", CODE, CODE + "\n\nx = 1\n") == ()
    assert lines(
        check_write([DECORATED], "app.py", CODE, "def get_all():\n    return requests.get('x')\n" + CODE)
    ) == [1]


def test_old_functions_of_a_file_that_did_not_parse_are_known_by_name():
    assert check_write([DECORATED], "app.py", "def fetch_a(:\n  pass\n", "def fetch_a():\n    pass\n") == ()


@pytest.mark.parametrize(
    "decorator",
    [
        "@disable_cache",
        "@disable_cache()",
        "@cache.disable_cache",
        "@disable_cache(ttl=0)",
        "@cache\n@disable_cache",
    ],
)
def test_every_form_of_the_decorator_counts(decorator):
    assert check_write([DECORATED], "app.py", None, f"{decorator}\ndef fetch_a():\n    return 1\n") == ()


def test_another_decorator_does_not_count_and_the_decorator_itself_needs_none():
    assert check_write([DECORATED], "app.py", None, "@cache\ndef fetch_a():\n    return 1\n")
    assert (
        check_write(
            [rule(require_decorator("fetch_guard"))], "a.py", None, "def fetch_guard(f):\n    return f\n"
        )
        == ()
    )


def test_a_syntax_error_is_no_violation():
    assert check_write([DECORATED], "app.py", None, "def fetch_a(:\n") == ()


def test_other_files_are_not_code():
    assert check_write([DECORATED], "notes.md", None, "def fetch_a():\n    pass\n") == ()


@pytest.mark.parametrize(
    ("source", "fetches"),
    [
        ("def fetch_x(): ...", True),
        ("def _fetch_x(): ...", True),
        ("def downloadReport(): ...", True),
        ("def get_total(items):\n    return sum(items)", False),
        ("def get_name(self):\n    return self._name", False),
        ("def get_orders(db):\n    return db.orders(1)", True),
        ("def load_users(path):\n    return json.load(open(path))", False),
        ("def orders():\n    return httpx.get('x')", True),
        ("def orders():\n    cursor.execute('select 1')", True),
        ("def orders(self):\n    return self.session.get('x')", True),
        ("def page():\n    return urlopen('x')", True),
        ("def report():\n    rows = fetch_rows()\n    return rows", True),
        ("def main():\n    rows = fetch_rows()\n    print(rows)", False),
        ("def setting(options):\n    return options.get('x')", False),
        ("def test_fetch(): fetch_x()", False),
        ("def add(a, b): return a + b", False),
        ("def fetchers(): ...", False),
    ],
)
def test_data_fetching_is_what_the_documentation_says(source, fetches):
    (function,) = functions_of(CheckedChange(path="a.py", after=source))
    assert (is_meant(function, "data-fetching") != "no") is fetches


@pytest.mark.parametrize(
    ("path", "source", "meant"),
    [
        (
            "a.py",
            "def load_settings():\n    with open('a.json') as file:\n        return json.load(file)\n",
            "no",
        ),
        ("a.py", "def read_notes(path):\n    return Path(path).read_text()\n", "no"),
        ("a.py", "def get_user(name):\n    return repository.by_name(name)\n", "perhaps"),
        ("a.ts", "export async function loadUser() { return axios.get('/user') }", "yes"),
        ("a.ts", "export function readNotes() { return fs.readFileSync('notes') }", "no"),
        ("A.java", "class A { String fetchName() { return client.get(1); } }", "yes"),
        ("a.go", "func FetchName(id int) (string, error) { return get(id) }", "yes"),
    ],
)
def test_what_opens_a_local_file_fetches_no_data_and_an_unknown_call_is_doubtful(path, source, meant):
    (function,) = functions_of(CheckedChange(path=path, after=source))
    assert is_meant(function, "data-fetching") == meant


def test_a_doubtful_function_is_asked_about():
    (violation,) = check_write([DECORATED], "a.py", None, "def get_user(name):\n    return repo.by(name)\n")
    assert (violation.mode, violation.line) == ("ask", 1)
    assert "uncertain" in violation.doubt


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.ts", "class A {\n  @Audited()\n  pay() {}\n}"),
        ("A.java", "class A {\n  @Audited\n  void pay() {}\n}"),
        ("a.kt", "class A {\n  @Audited fun pay() {}\n}"),
        ("a.rs", "#[audited]\nfn pay() {}\n"),
        ("a.cs", "class A {\n  [Audited]\n  void Pay() {}\n}"),
        ("a.php", "<?php class A {\n  #[Audited]\n  function pay() {}\n}"),
    ],
)
def test_decorators_and_annotations_of_other_languages_count(path, source):
    name = "audited" if path == "a.rs" else "Audited"
    demanded = rule(require_decorator(name, paths=()))
    assert check_write([demanded], path, None, source) == ()
    without = "\n".join(line for line in source.splitlines() if line.strip(" @#[]()").lower() != "audited")
    (violation,) = check_write([demanded], path, None, without.replace("@Audited ", ""))
    assert "without @" in violation.reason


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("", ["pay", "_hidden", "load"]),
        ("public", ["pay", "load"]),
        ("private", ["_hidden"]),
        ("async", ["load"]),
        ("payment", ["pay"]),
    ],
)
def test_other_kinds_of_functions_are_met_by_words_and_form(kind, names):
    source = 'def pay():\n    """Make a payment."""\n\ndef _hidden(): ...\n\nasync def load(): ...\n'
    found = check_write([rule(require_decorator("audited", kind))], "a.py", None, source)
    assert [violation.reason.split(" ")[0] for violation in found] == names


# --- imports ---


@pytest.mark.parametrize(
    "line",
    [
        "import pandas",
        "import pandas as pd",
        "from pandas import DataFrame",
        "import os, pandas.io",
        "from pandas.io import sql",
    ],
)
def test_a_forbidden_import_is_denied_when_it_is_new(line):
    forbidden = rule(require_import("pandas", forbidden=True))
    assert lines(check_write([forbidden], "a.py", "", f"x = 1\n{line}\n")) == [2]
    assert check_write([forbidden], "a.py", f"{line}\n", f"{line}\nx = 1\n") == ()


def test_names_that_only_begin_alike_are_other_modules():
    assert (
        check_write(
            [rule(require_import("pandas", forbidden=True))],
            "a.py",
            None,
            "import pandas_extra\nfrom .pandas import x\n",
        )
        == ()
    )


def test_a_required_import_must_be_there_but_in_an_empty_module():
    needed = rule(require_import("__future__.annotations"))
    assert check_write([needed], "a.py", None, "x = 1\n")
    assert check_write([needed], "a.py", None, "from __future__ import annotations\nx = 1\n") == ()
    assert check_write([needed], "__init__.py", None, '"""Only words."""\n') == ()


# --- compiling ---


PERHAPS = "The user may have allowed it."


@pytest.mark.parametrize(
    ("text", "modality", "check"),
    [
        ("Never create a requirements.txt file; use pyproject.toml instead", "must_not", forbid_path(("**/requirements.txt", "requirements.txt"))),
        ("You should never create a requirements.txt file; use pyproject.toml instead", "must_not", forbid_path(("**/requirements.txt", "requirements.txt"))),
        ("Never create requirements.txt or setup.py", "must_not", forbid_path(("**/requirements.txt", "requirements.txt", "**/setup.py", "setup.py"))),
        ("Don't ever touch anything in migrations/", "must_not", forbid_path(("migrations/**",), frozen=True)),
        ("Never edit src/generated/api.py.", "must_not", forbid_path(("src/generated/api.py",), frozen=True)),
        ("Never commit *.log files", "must_not", forbid_path(("**/*.log", "*.log"))),
        ("Never create .env files", "must_not", forbid_path(("**/.env", ".env", "**/.env.*", ".env.*"))),
        ("Never edit setup.py without asking me", "must_not", PathCheck(paths=("**/setup.py",), actions=("create", "change", "delete"), doubt=PERHAPS)),
        ("Never create a requirements.txt file unless I ask", "must_not", PathCheck(paths=("**/requirements.txt",), doubt=PERHAPS)),
        ("Never create files in a hurry", "must_not", None),
        ("Never mention Elon Musk.", "must_not", forbid_text(("Elon Musk",))),
        ("Never mention Elon Musk or Jeff Bezos again", "must_not", forbid_text(("Elon Musk", "Jeff Bezos"))),
        ('Never use the word "delve".', "must_not", forbid_text(("delve",))),
        ("Never say 'as an AI' in your answers", "must_not", forbid_text(("as an AI",), files=False)),
        ("Never use em dashes", "must_not", forbid_text(("—",))),
        ("Never mention our competitors", "must_not", None),
        ("Never mention Elon Musk unless I ask", "must_not", None),
        ("Never use Redux", "must_not", DependencyCheck(packages=("Redux",))),
        ("Never import pandas.", "must_not", require_import("pandas", forbidden=True)),
        ("Never import pandas, polars or numpy.", "must_not", require_import("pandas", "polars", "numpy", forbidden=True)),
        ("Never import pandas, it is slow.", "must_not", require_import("pandas", forbidden=True)),
        ("Never import anything from tests", "must_not", None),
        ("For now, add a @disable_cache decorator to any new data-fetching function", "must", require_decorator("disable_cache", "data-fetching")),
        ("For now, add a `@disable_cache` decorator to any new data-fetching functions you write.", "must", require_decorator("disable_cache", "data-fetching")),
        ("Every new function must have the @traced decorator", "must", require_decorator("traced")),
        ("Always decorate all async functions with @retry.on_error", "must", require_decorator("retry.on_error", "async")),
        ("From now on, put the disable_cache decorator on every function that fetches data", "must", require_decorator("disable_cache", "fetches data")),
        ("Always add a decorator to new functions", "must", None),
        ("Every Python file must start with `from __future__ import annotations`", "must", require_import("__future__.annotations")),
        ("Always answer in British English", "must", None),
        ("I prefer no requirements.txt", "prefer", None),
        ("If the build fails, never touch Cargo.lock", "must_not", None),
        ("Never create .env files; .env.example is fine", "must_not", None),
        ("Never mention the names of customers", "must_not", None),
        ("Never use the phrases below", "must_not", None),
        ('Never say "it failed; try again"', "must_not", forbid_text(("it failed; try again",))),
        ("Always add a good decorator to every function", "must", None),
        ("Every class and function must have @timed", "must", None),
        ("Always add the @timed decorator to the new function", "must", None),
        ("Every function must have @timed and @logged", "must", None),
        ("Every Python file must import alphabetically", "must", None),
    ],
)  # fmt: skip
def test_a_check_is_compiled_only_where_it_is_certain(text, modality, check):
    assert compile_checks(text, modality, reach_of(text).scope) == ((check,) if check else ())


_ITEMS = [
    NO_REQUIREMENTS,
    NO_MUSK,
    DECORATED,
    rule(require_import("x")),
    rule(require_decorator("a.b", "some words")),
    rule(forbid_text(("", "—", "("))),
]


@given(
    st.text(max_size=80),
    st.one_of(st.none(), st.text(max_size=200)),
    st.one_of(st.none(), st.text(max_size=200)),
)
def test_any_write_and_answer_is_judged_without_an_error(path, before, after):
    check_write(_ITEMS, path, before, after)
    check_answer(_ITEMS, after or "", message=path)


def test_deeply_nested_and_enormous_code_is_passed_over():
    deep = "(" * 100_000
    assert check_write([DECORATED], "a.py", None, deep) == ()
    assert check_write([DECORATED], "a.py", None, "x = 1\n" * 500_000) == ()


@pytest.mark.parametrize(
    ("said", "check"),
    [
        ("No file may contain the word TODO.", forbid_text(("TODO",), answers=False)),
        ('None of the files may contain "FIXME"', forbid_text(("FIXME",), answers=False)),
        ("The word TODO must not appear in any file.", forbid_text(("TODO",), answers=False)),
        ("No answer may mention Elon Musk.", forbid_text(("Elon Musk",), files=False)),
        ("Tabs must not appear in any file.", TextCheck(patterns=(r"\t",), places=("files",))),
        ("No commit message may contain the word WIP.", None),
        ("No file may contain more than 300 lines.", SizeCheck(at_most=300)),
    ],
)
def test_a_word_is_forbidden_whichever_end_the_sentence_begins_at(said, check):
    assert compile_checks(said, "must_not", Scope()) == ((check,) if check else ())


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("Elon Musk and where Tesla will stand in ten years", ["ask"]),
        ("Elon Musk and the future of Tesla", ["deny"]),
        ("Elon Musk bought a Tesla", []),
    ],
)
def test_a_text_that_may_be_about_the_topic_is_asked_about(text, modes):
    assert [violation.mode for violation in check_answer([NO_MUSK], text)] == modes


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        ("terraform apply", False),
        ("cd web && terraform apply", False),
        ("cd infra && terraform apply", True),
        ("cd web; (cd ../infra/eu && terraform apply)", True),
        ("terraform -chdir=infra apply", True),
        ("make -C infra deploy", True),
        ("make deploy", False),
        ("terraform apply infra/plan.out", True),
        ("terraform apply -var-file=infra/a.tfvars", True),
        ("npm install --prefix infra lodash", True),
        ("npm install lodash", False),
    ],
)
def test_rule_about_a_place_holds_for_commands_that_work_there(command, broken):
    checks = (
        CommandCheck(programs=("terraform apply", "make deploy")),
        DependencyCheck(packages=("lodash",)),
    )
    rule = MemoryItem(
        id="c-1",
        kind="constraint",
        text="In infra/, never run terraform apply.",
        scope=Scope(paths=("infra/**",)),
        detail=ConstraintDetail(checks=checks),
    )
    assert bool(evaluate_command([rule], command).violations) is broken


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.js", "import _ from 'lodash';\n"),
        ("a.ts", "const _ = require('lodash');\n"),
        ("a.py", "import lodash\n"),
    ],
)
def test_compiled_ban_of_an_import_holds_in_every_language(path, text):
    (check,) = compile_checks("Never import lodash.", "must_not", Scope())
    rule = MemoryItem(id="c-1", kind="constraint", text="x", detail=ConstraintDetail(checks=(check,)))
    assert len(check_write([rule], path, None, text)) == 1
