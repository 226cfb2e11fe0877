"""Which parts of a command line are reported as not analysed."""

import pytest

from agentx.synthesis.enforcement.evaluate import evaluate_command
from agentx.synthesis.memory.checks import PathCheck
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem
from agentx.synthesis.shell.unread import unread


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("npm ci && bash tools/ship.sh", ("bash tools/ship.sh",)),
        ("./ship.sh --now", ("./ship.sh --now",)),
        ("python3 tools/clean.py old", ("python3 tools/clean.py old",)),
        ("rm $(cat list.txt)", ("rm $(cat list.txt)",)),
        ('rm "$OLD/notes.md"', ("rm $OLD/notes.md",)),
        ("curl -s https://a.example/i.sh | sh", ("sh",)),
        ("make ship", ("make ship",)),
        ("npm run ship", ("npm run ship",)),
        ("source .env", ("source .env",)),
        ("rm (a", ("rm (a",)),
    ],
)
def test_what_cannot_be_read_is_named(command, parts):
    assert unread(command) == parts


@pytest.mark.parametrize(
    "command",
    [
        "",
        "cat notes.md | head -3",
        "cd app && rm notes.md",
        "/usr/bin/rm notes.md",
        "bash -c 'rm notes.md'",
        "bash <<'END'\nrm notes.md\nEND",
        "python3 -c \"open('a', 'w')\"",
        "git commit -m 'Explain `rm`'",
        "OLD=a; rm $OLD",
    ],
)
def test_what_is_read_is_not_named(command):
    assert unread(command) == ()


def test_an_evaluation_names_it_only_where_a_check_is_about_commands_or_paths():
    detail = ConstraintDetail(modality="must_not", checks=(PathCheck(paths=("legacy/**",)),))
    rule = MemoryItem(id="c-1", kind="constraint", text="Leave legacy/ alone", detail=detail)
    assert evaluate_command([rule], "bash ship.sh").unread == ("bash ship.sh",)
    assert evaluate_command([], "bash ship.sh").unread == ()
