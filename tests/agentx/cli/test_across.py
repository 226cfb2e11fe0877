"""``agentx search --across DIR``: several workspaces of this machine searched as one."""

import pytest

from agentx import Workspace


@pytest.fixture
def other(tmp_path):
    """A second workspace, which is about something else."""
    with Workspace.create(tmp_path / "zoo") as ws:
        ws.tools.write_file("animals.md", "# Animals\n\nThe walrus sleeps.\n")
    return tmp_path / "zoo"


def test_hits_of_all_workspaces_are_shown_with_their_workspace_and_one_that_is_missing_is_named(
    call, root, other
):
    done = call(
        "search",
        "walrus revenue",
        "--across",
        other,
        "--across",
        root.parent / "nowhere",
        "--json",
        "-C",
        root,
    )
    answer = done.json["answer"]
    assert {one["workspace"]: one["hit"]["path"] for one in answer["hits"]}[str(other)] == "animals.md"
    assert "report" in {one["workspace"] for one in answer["hits"]}
    assert list(answer["failed"]) == [str(root.parent / "nowhere")]
    shown = call("search", "walrus", "--across", other, "--across", root.parent / "nowhere", "-C", root)
    assert f"{other}  animals.md" in shown.out
    assert "nowhere was not searched" in shown.err


def test_a_search_across_takes_no_moment_and_no_workspace_twice(call, root, other):
    assert "cannot be combined" in call("search", "walrus", "--across", other, "--as-of", "1", "-C", root).err
    answer = call("search", "revenue", "--across", root, "--json", "-C", root).json["answer"]
    assert len(answer["searched"]) == 1
