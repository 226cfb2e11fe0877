"""What a command line says about a run."""

import pytest

from agentx.synthesis.checks.command import (
    cuts_output,
    echoed_status,
    is_check_command,
    masks_exit_status,
    normal_form,
    selection,
)
from agentx.synthesis.shell.command_line import steps


@pytest.mark.parametrize(
    "command",
    [
        "pytest", "python -m pytest -q", "python3.11 -W error -m unittest discover", "cd app && PYTHONPATH=. pytest | tail -3",
        "uv run --with x pytest", "poetry run mypy .", "conda run -n env pytest", "timeout 60 go test ./...", "npx jest", "npm test",
        "npm run test:unit", "pnpm run lint", "yarn build", "make", "make test", "mise run lint 2>&1", "cargo clippy", "./run_tests.sh",
        "bash scripts/test.sh", "./tests/runtests.py forms", "python manage.py test app", "node --test", "golangci-lint run", "gcc -c a.c",
        "tox -e py311", "bin/test -C sympy", "bundle exec rspec", "git stash && go build ./... ; git stash pop", "env A=1 ruff check .",
        "cat > test_a.py <<'E'\nx\nE\npytest test_a.py", 'out="$(pytest -q)"', "ls tests | xargs pytest", "eval pytest", "t() { pytest; }; t",
    ],
)  # fmt: skip
def test_tests_linters_and_builds_are_checks(command):
    assert is_check_command(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "ls tests", "git commit -m 'fix pytest && make test'", "cat pytest.log", "grep -rn pytest .", "pip install pytest", "echo make test",
        "which mypy", "npm install", "cargo add serde", "go mod tidy", "python script.py", "ruff --version", "cat <<'EOF' > a.sh\npytest\nEOF",
        "test -f build", "vim test_a.py", "cd tests", "ls # pytest", "command -v pytest", "npm run dev", "pytest --help",
    ],
)  # fmt: skip
def test_other_commands_are_not(command):
    assert not is_check_command(command)


def test_pipes_and_alternatives_mask_the_exit_status_and_and_does_not():
    assert masks_exit_status("pytest | tail -3")
    assert masks_exit_status("pytest || true")
    assert masks_exit_status("pytest; echo done")
    assert masks_exit_status("pytest\necho done")
    assert masks_exit_status('echo "$(pytest)"')
    assert not masks_exit_status("out=$(pytest)")
    assert not masks_exit_status("ruff check && pytest 2>&1")
    assert not masks_exit_status("set -o pipefail; pytest | tail")
    assert not masks_exit_status("cd app; pytest")


def test_cutting_pipes_are_seen():
    assert cuts_output("pytest 2>&1 | tail -3")
    assert cuts_output("pytest | head -$(nproc)")
    assert not cuts_output("pytest 2>&1 | tee log")


@pytest.mark.parametrize(
    ("command", "paths", "names"),
    [
        ("pytest tests/test_a.py", ("tests/test_a.py",), ()),
        ("pytest tests/test_a.py::test_b -x", (), ("tests/test_a.py::test_b",)),
        ("pytest -k 'a or b' -p no:cacheprovider", (), ("a or b",)),
        ("go test -run=TestA -count 1 ./cli/...", ("./cli/...",), ("TestA",)),
        ("cargo test parser::", (), ("parser::",)),
        ("npm test -- src/a.test.js", ("src/a.test.js",), ()),
        ("gcc -c a.c -o a.o", ("a.c",), ()),
        ("ruff check app tests", ("app",), ()),
    ],
)
def test_selections_are_read_from_the_arguments(command, paths, names):
    found = selection(command)
    assert (found.whole, found.paths, found.names) == (False, paths, names)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q --tb short -n 4 > log.txt",
        "go test -race ./...",
        "make test",
        "npm run test:unit",
        "cargo test",
        "npx vitest run",
        "node --test",
    ],
)
def test_full_runs_are_told(command):
    assert selection(command).whole


def test_unknown_command_is_not_taken_for_a_full_run():
    assert not selection("").whole


def test_normal_form_forgets_how_the_output_is_shown():
    assert (
        normal_form("cd x && python -m pytest -q 2>&1 | tail -5") == normal_form("pytest  -q") == "pytest -q"
    )
    assert normal_form("pytest -q") != normal_form("pytest -v")


@pytest.mark.parametrize(
    "command",
    [
        "(cd app && make build && pytest) 2>&1 | tail -5",
        "{ make build; pytest; } | tail",
        "(a; (pytest && b)) | tail",
        "(pytest) || true",
    ],
)
def test_what_stands_behind_brackets_masks_all_that_stands_in_them(command):
    assert masks_exit_status(command)
    assert cuts_output(command) == command.endswith(("tail", "-5"))


def test_brackets_that_nothing_hides_mask_nothing():
    assert not masks_exit_status("(cd app && make build && pytest)")
    assert not masks_exit_status("(make build) && (cd app; pytest)")
    assert normal_form("(cd app && pytest -q) 2>&1 | tail -5") == "pytest -q"


def test_shells_and_containers_are_looked_into():
    assert [step.program for step in steps('bash -lc "cd a && pytest -q" | tail -3')] == [
        "cd",
        "pytest",
        "tail",
    ]
    assert masks_exit_status("bash -c 'make build && pytest' | tail -3")
    assert normal_form("docker compose exec -T web pytest -q") == "pytest -q"
    assert is_check_command("docker run --rm -e A=1 image python -m pytest")
    assert not is_check_command("docker compose up")
    assert not is_check_command("bash -c 'git commit -m pytest'")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ('pytest -q; echo "exit: $?"', "exit: 1"),
        ("pytest | tail -3; echo ${PIPESTATUS[0]}", "1"),
        ("make test 2>&1 | tee log; echo EXIT=${PIPESTATUS[0]} done", "EXIT=1 done"),
    ],
)
def test_exit_status_that_the_command_prints_is_found(command, line):
    match = echoed_status(command).match(line)
    assert match
    assert match[1] == "1"


@pytest.mark.parametrize(
    "command", ["pytest | tail; echo $?", "pytest; ls; echo $?", "pytest; echo done", "cd a; echo $?"]
)
def test_exit_status_of_another_program_is_not_taken_for_that_of_the_check(command):
    assert echoed_status(command) is None


@pytest.mark.parametrize(
    ("command", "shown", "cut"),
    [
        ("pytest | tail -20", 19, False),
        ("pytest | tail -20", 20, True),
        ("pytest | head -n 5", 4, False),
        ("pytest | head", 9, False),
        ("pytest | head", 10, True),
        ("pytest | head -c 100", 3, True),
        ("pytest | tail -n +5", 3, True),
        ("pytest | grep failed | tail -20", 1, True),
    ],
)
def test_head_and_tail_cut_nothing_that_is_shorter(command, shown, cut):
    assert cuts_output(command, shown) == cut
