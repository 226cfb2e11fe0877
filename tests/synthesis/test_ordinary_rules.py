"""Ordinary short rules: what breaks each of them is stopped, and what only looks like it is not."""

import pytest

from agentx import Workspace
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import evaluate_answer, evaluate_changes, evaluate_command
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, Scope


def item(rule):
    checks = compile_checks(rule, "must", Scope())
    return MemoryItem(
        id="c-1", kind="constraint", text=rule, status="active", detail=ConstraintDetail(checks=checks)
    )


def is_stopped(rule, path, text):
    change = CheckedChange(path=path, after=text or None, before=None if text else "x\n", removes=not text)
    return bool(evaluate_changes([item(rule)], [change]).of("ask", "deny", "fix"))


@pytest.mark.parametrize(
    ("rule", "breaking", "innocent"),
    [
        ("Never use eval.", ("a.py", "x = eval(y)\n"), ("b.py", "model.eval()\n")),
        ("Don't use any type in TypeScript.", ("a.ts", "let x: any;\n"), ("a.ts", "let x: unknown;\n")),
        ("Tests must not use sleep.", ("tests/test_a.py", "time.sleep(1)\n"), ("src/a.py", "time.sleep(1)\n")),
        ("Every Python file must start with the license header.", ("a.py", "x = 1\n"), ("a.py", "# Copyright A\n")),
        ("No !important in CSS.", ("a.scss", "a { margin: 0 !important; }\n"), ("a.md", "no !important\n")),
        ("Don't use delay() in Arduino sketches.", ("a/a.ino", "void loop() { delay(5); }\n"), ("a.py", "delay(3)\n")),
        ("LaTeX files must not contain \\vspace.", ("a.tex", "\\vspace{1cm}\n"), ("a.tex", "\\section{A}\n")),
        ("CSV exports are read-only.", ("data/b.csv", "x\n"), ("a.py", "x\n")),
        ("Writing outside of drafts/ is not allowed.", ("a.md", "x\n"), ("drafts/a.md", "x\n")),
        ("No files may be added to the root folder.", ("a.py", "x\n"), ("src/a.py", "x\n")),
        ("Never import from internal/legacy.", ("a.py", "from internal.legacy import x\n"), ("a.py", "from internal import x\n")),
        ("Please name SQL migrations NNNN_description.sql.", ("migrations/add.sql", "x\n"), ("migrations/0012_add.sql", "x\n")),
        ("Emojis are not welcome in the documentation.", ("docs/a.md", "✨ New\n"), ("src/a.py", "x = '✨'\n")),
        ("Every shell script must begin with #!/usr/bin/env bash.", ("a.sh", "echo\n"), ("a.sh", "#!/usr/bin/env bash\n")),
        ("Don't delete tests.", ("tests/test_a.py", ""), ("src/a.py", "")),
        ("Terraform resources must not be created in modules/legacy.", ("modules/legacy/a.tf", "x\n"), ("a.tf", "x\n")),
    ],
)  # fmt: skip
def test_an_ordinary_rule_about_files_is_enforced(rule, breaking, innocent):
    assert is_stopped(rule, *breaking)
    assert not is_stopped(rule, *innocent)


@pytest.mark.parametrize(
    ("rule", "breaking", "innocent"),
    [
        ("Don't run database migrations.", "python manage.py migrate", "python manage.py makemigrations"),
        ("Never run terraform destroy.", "terraform destroy", "terraform plan -destroy"),
        ("docker system prune is banned.", "docker system prune -af", "docker system df"),
        ("npm publish is never to be run.", "npm publish --access public", "npm run publish:dry"),
        ("Always sign your commits with -s.", "git commit -m x", "git commit -s -m x"),
        ("We never commit directly to main.", "git push origin main", "git push origin feature/main"),
        ("Do not push tags.", "git push --tags", "git push origin x"),
        ("Never commit to release/2.x.", "git push origin release/2.x", "git push origin release/3.x"),
    ],
)
def test_an_ordinary_rule_about_commands_is_enforced(rule, breaking, innocent):
    assert evaluate_command([item(rule)], breaking).of("ask", "deny", "fix")
    assert not evaluate_command([item(rule)], innocent).of("ask", "deny", "fix")


@pytest.mark.parametrize(
    ("rule", "command", "paths"),
    [
        ("After changing the schema, run npm run generate.", "npm run generate", ("**/*schema*", "**/*schema*/**")),
        ("Whenever you change requirements.in, run pip-compile.", "pip-compile", ("**/requirements.in",)),
        ("You must run the tests with pytest -x before finishing.", "pytest -x", ()),
    ],
)  # fmt: skip
def test_a_command_that_follows_a_change_is_found(rule, command, paths):
    (check,) = compile_checks(rule, "must", Scope())
    assert (check.command, check.paths) == (command, paths)


@pytest.mark.parametrize(
    ("rule", "breaking", "innocent"),
    [
        ("All new pages land in content/en, never in content/de.", ("content/de/a.md", "x\n"), ("content/en/a.md", "x\n")),
        ("Our readers hate semicolons, so none in articles/ please.", ("articles/a.md", "a; b\n"), ("articles/a.md", "a, b\n")),
        ("We say customers, not users, in everything under docs/.", ("docs/a.md", "Our users.\n"), ("docs/a.md", "Our customers.\n")),
        ("Helvetia and Baloise must not show up in any file.", ("a.md", "For Baloise.\n"), ("a.md", "For us.\n")),
        ("apps/web is ours, everything else in this monorepo is off limits.", ("apps/api/a.ts", "x\n"), ("apps/web/a.ts", "x\n")),
        ("update_column goes around our audit. It doesn't belong in app/.", ("app/a.rb", "m.update_column(:a, 1)\n"), ("lib/a.rb", "m.update_column(:a, 1)\n")),
        ("A field with @Autowired? Not here, please.", ("A.java", "class A { @Autowired B b; }\n"), ("A.java", "class A { B b; }\n")),
        ("pandas is fine in notebooks/, but it doesn't get imported in service/.", ("service/a.py", "import pandas\n"), ("notebooks/a.py", "import pandas\n")),
        ("engine/: no naked new.", ("engine/a.h", "struct A { B* b = new B(); };\n"), ("engine/a.h", "struct A { int newest = 1; };\n")),
        ("What came from the bank stays the way it is, I mean bank/*.csv.", ("bank/a.csv", "x\n"), ("work/a.csv", "x\n")),
        ("Actions in our workflows are pinned by the full commit hash.", (".github/workflows/a.yml", "      - uses: a/b@v4\n"), (".github/workflows/a.yml", f"      - uses: a/b@{'0a' * 20}\n")),
        ("No TODOs without a ticket.", ("a.py", "# TODO: later\n"), ("a.py", "# TODO: later (AB-12)\n")),
    ],
)  # fmt: skip
def test_a_conversational_rule_about_files_is_enforced(rule, breaking, innocent):
    assert is_stopped(rule, *breaking)
    assert not is_stopped(rule, *innocent)


def test_flags_are_forbidden_or_demanded_as_the_sentence_says():
    (check,) = compile_checks("It's kubectl --context staging or nothing.", "must", Scope())
    assert check.required_flags == ("--context",)
    (check,) = compile_checks("git reset --hard cost me an afternoon, don't use it.", "must", Scope())
    assert check.forbidden_flags == ("--hard",)


def test_an_answer_begins_as_demanded():
    (check,) = compile_checks("Begin every answer with either DONE or BLOCKED.", "must", Scope())
    rule = item("Begin every answer with either DONE or BLOCKED.")
    assert evaluate_answer([rule], "The tests pass.").of("deny")
    assert not evaluate_answer([rule], "DONE. The tests pass.").of("deny")
    assert check.places == ("answers",)


@pytest.mark.parametrize(
    "message",
    [
        "moment is banned, its huge. dayjs is already in there so if u need dates use that",
        "panic() has no place in internal/handlers, one of them took checkout down. Return the error.",
        "quit littering the top level with notes!! besides README.md no markdown goes into the repo root",
    ],
)
def test_the_only_rule_of_a_message_has_the_checks_of_the_whole_message(tmp_path, message):
    with Workspace.create(tmp_path / "ws") as ws:
        ws.say(message)
        assert len(ws.engine.checked()) == 1
