"""Which steps of a flow the tool calls of a run show, and whether the run changed anything."""

import pytest

from agentx.storage.events.types import FileChange, ToolCallExecuted
from agentx.synthesis.learning.following import observe, only_denied


def call(tool, status="SUCCEEDED", command="", exit_code=None, paths=(), **arguments):
    changes = tuple(FileChange(path=path, after="a" * 40) for path in paths)
    return ToolCallExecuted(
        call_id="c",
        tool=tool,
        status=status,
        command=command,
        exit_code=exit_code,
        arguments=arguments,
        changes=changes,
    )


def sh(command, exit_code=0):
    return call("run_command", "FAILED" if exit_code else "SUCCEEDED", command, exit_code)


@pytest.mark.parametrize(
    ("step", "one"),
    [
        ("Run `git tag …`", sh("cd app && git tag v1.2")),
        ("Run `pytest -q`", sh("python -m pytest -x -q")),
        ("Edit `config/site.toml`", call("write_file", paths=["config/site.toml"])),
        ("Build.", sh("npm run build")),
        ("Check that every link answers", sh("linkchecker next.html")),
        ("Write the summary", call("write_file", path="summary.md", content="Sales rose.")),
        ("Export the drawing to PDF", call("export_drawing", drawing="hull", format="pdf")),
        (
            "Weigh the flour and note it in batch.csv",
            call("write_file", paths=["batch.csv"], content="flour, 12 kg"),
        ),
    ],
)
def test_a_call_that_fits_a_step_shows_it(step, one):
    assert observe([step], [one]).seen == (1,)


@pytest.mark.parametrize(
    ("step", "one"),
    [
        ("Run `git tag …`", sh("git push --tags")),
        ("Run `git push --tags`", sh("git push")),
        ("Upload the pages to the host", sh("make pages")),
        ("Build.", call("run_command", "DENIED", "npm run build")),
        ("Build.", sh("ls build", exit_code=2)),
        ("Run the importer", sh("python report.py")),
    ],
)
def test_another_call_does_not(step, one):
    seen = observe([step], [one])
    assert (seen.seen, seen.observable, seen.followed) == ((), (1,), False)


def test_what_tools_cannot_show_does_not_count_against_a_run():
    steps = ["Build.", "Upload the pages.", "Wait until QA agrees", "Ask the editor, then tell the team."]
    seen = observe(steps, [sh("make build")])
    assert (seen.seen, seen.observable, seen.followed) == ((1,), (1, 2), True)
    assert not observe([*steps, "Archive the draft."], [sh("make build")]).followed
    assert not observe(["Wait until QA agrees"], [sh("make build")]).followed


def test_the_last_call_of_a_step_says_whether_it_failed():
    steps = ["Build the site", "Deploy it"]
    assert observe(steps, [sh("make site", 2), sh("make site"), sh("./deploy.sh", 1)]).failed == (2,)


def test_a_run_whose_only_change_was_denied_changed_nothing():
    denied = call("write_file", "DENIED", path="a.md")
    looks = [call("read_file", path="a.md"), sh("git status"), call("run_tests"), sh("python -m pytest")]
    assert only_denied([*looks, denied])
    assert not only_denied([*looks, denied, call("write_file", paths=["b.md"])])
    assert not only_denied(looks)
