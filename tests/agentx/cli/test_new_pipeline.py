"""``agentx pipeline new`` with options: each file that it writes can be planned, and runs to its end."""

import pytest

from agentx.pipelines.runner import Runner
from agentx.workspace import Workspace
from tests.agentx.pipelines.conftest import Author

LIST = "- one: The first part\n- two: The second part\n\n<!-- LIST_COMPLETE -->\n"
WAYS = [
    (["--items", "inbox/*.md"], 2),
    (["--items", "inbox/*.md", "--roles", "writer,reviewer"], 4),
    (["--items", "3", "--roles", "writer, editor", "--review"], 9),
    (["--items", "a, b,c", "--review"], 6),
    (["--items-from", "outline", "--roles", "researcher,writer", "--review"], 7),
]


def author(path, _prompt):
    if path == "outline.md":
        return LIST
    folder = path.partition("/")[0]
    verdict = "Verdict: PASS\n\n" if folder == "reviews" else ""
    marker = "REVIEW" if folder == "reviews" else folder.upper()
    return f"About {path}.\n\n{verdict}<!-- {marker}_COMPLETE -->\n"


@pytest.fixture
def root(tmp_path, lexical):
    Workspace.create(tmp_path / "shop", settings=lexical).close()
    inbox = tmp_path / "shop" / "artifacts" / "inbox"
    inbox.mkdir()
    for name in ("a.md", "b.md"):
        (inbox / name).write_text(f"What {name} says.\n", "utf-8")
    return tmp_path / "shop"


@pytest.mark.parametrize(("options", "steps"), WAYS)
def test_what_is_written_can_be_planned_and_runs(call, root, lexical, options, steps):
    path = root / "weekly.yaml"
    made = call("pipeline", "new", root / "weekly", *options)
    assert (made.code, made.out.splitlines()[1]) == (0, f"Next: agentx pipeline plan {path}")
    assert call("-C", root, "pipeline", "plan", path).code == 0
    with Workspace.open(root, settings=lexical) as ws:
        ended = Runner(ws.engine, path, lambda _name: Author(author), jobs=2).run()
    assert (ended.status, ended.proved, ended.steps) == ("COMPLETED", steps, steps)


@pytest.mark.parametrize(
    ("options", "asked"),
    [(["--items", "inbox/*.md"], 2), (["--items-from", "outline"], 1)],
)
def test_a_person_approves_the_list_or_else_each_file(call, root, lexical, options, asked):
    assert call("pipeline", "new", root / "weekly", *options, "--approval").code == 0
    with Workspace.open(root, settings=lexical) as ws:
        ended = Runner(ws.engine, root / "weekly.yaml", lambda _name: Author(author)).run()
        assert (ended.status, len(ended.waiting)) == ("WAITING", asked)


def test_what_makes_no_pipeline_is_refused_and_writes_nothing(call, tmp_path):
    for options, told in (
        (["--review"], "Give either `--items`"),
        (["--items", "3", "--items-from", "outline"], "Give either `--items`"),
        (["--items", "3", "--roles", "reviewer"], "Give a role that writes"),
        (["--items-from", "outline", "--roles", "planner"], "Choose another name for the role planner"),
        (["--items", "a,a"], "a"),
        (["--items", "3", "--roles", "the writer"], "the writer"),
    ):
        refused = call("pipeline", "new", tmp_path / "weekly", *options)
        assert refused.code == 2, options
        assert told in refused.err
        assert not (tmp_path / "weekly.yaml").exists()


def test_on_a_terminal_it_asks(call, tmp_path, monkeypatch):
    monkeypatch.setattr("agentx.cli.terminal.Terminal.interactive", True)
    answers = iter(["from:outline", "writer,editor"])
    monkeypatch.setattr("typer.prompt", lambda *_words, **_more: next(answers))
    monkeypatch.setattr("typer.confirm", lambda _question, *, default, **_more: default)
    assert call("pipeline", "new", tmp_path / "weekly").code == 0
    text = (tmp_path / "weekly.yaml").read_text("utf-8")
    assert "part: {from: outline}" in text
    assert "writer, review" in call("pipeline", "matrix", tmp_path / "weekly.yaml").out
