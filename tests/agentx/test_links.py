"""What another workspace made is read where it lies, with how old it is, and nothing else of it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.events.types import ToolCallExecuted
from agentx.storage.files.paths import PathRefused
from agentx.tools.storage_tools import NotText
from agentx.transfer.linked_workspaces import LinkBroken, read

LINKS = """
[[links]]
name = "intel"
path = "../intel"
paths = ["reports/**", "plan.md"]
max_age_hours = 20

[[links]]
name = "gone"
path = "../gone"
"""


@pytest.fixture
def pair(configured, tmp_path, lexical):
    """A workspace that reads another, which is open as well."""
    with Workspace.create(tmp_path / "intel", title="Intel", settings=lexical) as intel:
        intel.tools.write_file("reports/weekly.md", "# Weekly\n\nClicks fell.\n")
        intel.tools.write_file("secrets.md", "private\n")
        intel.flush()
        yield configured(LINKS), intel


def test_an_agent_reads_what_the_other_workspace_committed_last_and_how_old_it_is(pair):
    ws, intel = pair
    result = ws.tools.call("read_file", {"path": "intel:reports/weekly.md"})
    assert result.status == "SUCCEEDED"
    assert result.output.startswith("[From the workspace that 'intel' links to, last changed 0 minutes ago (")
    assert result.output.endswith("intel:reports/weekly.md, lines 1-3 of 3:\n# Weekly\n\nClicks fell.")
    (intel.root / "artifacts" / "reports" / "weekly.md").write_text("not on record")
    assert "Clicks fell." in ws.tools.read_file("intel:reports/weekly.md").text
    intel.tools.write_file("reports/weekly.md", "Clicks rose.\n")
    intel.flush()
    assert ws.tools.read_file("intel:reports/weekly.md").text == "Clicks rose."
    assert not any((ws.root / "artifacts").iterdir())
    assert (
        "[read_file also reads other workspaces: intel: gone:]" in ws.tools.call("list_directory", {}).output
    )
    assert next(e.data.tool for e in ws.events() if isinstance(e.data, ToolCallExecuted)) == "read_file"


def test_what_did_not_change_for_longer_than_the_link_allows_is_said_to_be_stale(pair):
    ws, intel = pair
    intel.tools.write_file("plan.md", "a plan")
    intel.flush()
    later = datetime.now(tz=UTC) + timedelta(hours=19)
    assert not read(ws.engine, "intel:reports/weekly.md", later).stale
    found = read(ws.engine, "intel:reports/weekly.md", later + timedelta(hours=2))
    assert found.stale
    assert found.note.startswith("Stale: last changed 21 hours ago (")
    assert "'intel' allows 20 hours" in found.note


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("intel:secrets.md", PathRefused, "does not share it. It shares: intel:reports/weekly.md."),
        ("intel:../intel/history.jsonl", PathRefused, "leads out"),
        ("intel:/etc/passwd", PathRefused, "absolute"),
        ("intel:.git/config", PathRefused, "belongs to Git"),
        ("intel:reports/way.md", PathRefused, "is a link"),
        ("intel:reports/none.md", ArtifactMissing, "no file 'reports/none.md'"),
        ("intel:reports", PathRefused, "does not share it"),
        ("intel:", ArtifactMissing, "It shares: intel:reports/way.md, intel:reports/weekly.md."),
        ("intel:reports/b.bin", NotText, "binary"),
        ("gone:plan.md", LinkBroken, "is not a workspace; fix `links`"),
        (
            "other:plan.md",
            LinkBroken,
            "Unknown link 'other'; `links` in agentx.toml declares: intel, gone",
        ),
    ],
)
def test_what_is_not_shared_is_refused_in_a_sentence(pair, name, error, said):
    ws, intel = pair
    reports = intel.root / "artifacts" / "reports"
    if "way" in name or name == "intel:":
        (reports / "way.md").symlink_to("/etc/passwd")
    if "bin" in name:
        (reports / "b.bin").write_bytes(b"\0\1")
    intel.engine.settle()
    with pytest.raises(error, match=re.escape(said)):
        ws.tools.read_file(name)
    for tool in ("write_file", "delete_file"):
        arguments = {"path": name, "content": "x"} if tool == "write_file" else {"path": name}
        assert ws.tools.call(tool, arguments).status == "FAILED"
