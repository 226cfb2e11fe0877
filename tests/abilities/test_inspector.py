"""The inspector over HTTP, and the server behind it."""

import json
import subprocess

import pytest

from tests.abilities.conftest import CommandLine, Page

RULE = "Never create a setup.cfg file."


@pytest.fixture(scope="module")
def looked_at(programs, runtime, tmp_path_factory):
    """A workspace on the user's server, with the page that is open on it, and its path in the API."""
    folder = tmp_path_factory.mktemp("inspected")
    outside = CommandLine(programs / "agentx", folder, runtime)
    outside("init", "task", "--title", "Parcels")
    command = outside.at(folder / "task")
    command("say", RULE)
    command("tool", "write_file", "path=notes.md", "content=Parcels leave at noon.")
    command("tool", "write_file", "path=setup.cfg", "content=x", ok=False)
    page = Page(command.json("inspect", ".", "--no-open")["url"])
    (found,) = page.get("/inspect/api/workspaces")["workspaces"]
    return command, page, f"/inspect/api/{found['id']}"


def test_the_page_is_served_on_this_machine_with_a_policy(looked_at):
    """``inspect`` gives an address on this machine, with a key, and the page is served there."""
    _, page, _ = looked_at
    assert page.url.startswith("http://127.0.0.1:")
    status, body = page.send("GET", "/inspect/")
    assert status == 200
    assert b"<html" in body.lower()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_others_are_refused(looked_at, fields, status):
    """A wrong key is 401, and another name or web page is 403."""
    _, page, w = looked_at
    assert page.send("GET", f"{w}/overview", **fields)[0] == status


def test_events_are_listed_and_filtered(looked_at):
    """The timeline gives events by type, actor and words, with a cursor."""
    _, page, w = looked_at
    rows = page.get(f"{w}/events")["events"]
    assert [row["seq"] for row in rows] == sorted((row["seq"] for row in rows), reverse=True)
    assert {row["type"] for row in page.get(f"{w}/events?type=UserMessageSent")["events"]} == {
        "UserMessageSent"
    }
    assert len(page.get(f"{w}/events?limit=1")["events"]) == 1


def test_an_event_has_its_causes_and_its_changed_lines(looked_at):
    """An event comes whole, with what it changed and its commit."""
    command, page, w = looked_at
    call = command.events("ToolCallExecuted")[0]
    event = page.get(f"{w}/events/{call['seq']}")
    assert "notes.md" in json.dumps(event["files"])
    assert "Parcels leave at noon." in json.dumps(event["files"])
    assert event["commit"]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("overview", '"constraint"'),
        ("moments", '"seq"'),
        ("context?message=go+on", RULE),
        ("memory", RULE),
        ("candidates", ""),
        ("problems", ""),
        ("flows", ""),
        ("runs", ""),
        ("pipelines", ""),
        ("cognition", ""),
        ("search?q=noon", "notes.md"),
        ("files", "notes.md"),
        ("file?path=notes.md", "Parcels leave at noon."),
    ],
)
def test_each_view_is_answered_as_json(looked_at, path, part):
    """Each view of the inspector has its answer in the API."""
    _, page, w = looked_at
    assert part in json.dumps(page.get(f"{w}/{path}"), ensure_ascii=False)


def test_looking_records_nothing(looked_at):
    """Looking at a workspace leaves its history as it is."""
    command, page, w = looked_at
    before = command.events()
    for path in ("overview", "context?message=go+on", "search?q=noon"):
        page.get(f"{w}/{path}")
    assert command.events() == before


def test_a_wrong_question_is_an_error_with_a_sentence(looked_at):
    """What is not there is 404 with a sentence; a wrong parameter is 400."""
    _, page, w = looked_at
    assert page.get(f"{w}/memory/c-999", status=404)["error"]
    assert page.get(f"{w}/events?limit=many", status=400)["error"]
    assert page.send("POST", f"{w}/overview", {})[0] == 405


def test_the_server_says_what_it_does(looked_at):
    """``serve --status`` tells of the server that runs."""
    command, _, _ = looked_at
    assert command("serve", "--status").code == 0


def test_a_second_server_does_not_start(looked_at):
    """Of two servers of a user, the second says so and ends."""
    command, _, _ = looked_at
    done = subprocess.run(
        [command.program, "serve"],
        cwd=command.cwd,
        env=command.environ,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert command("serve", "--status").code == 0


def test_commands_say_the_same_with_and_without_a_server(looked_at):
    """With ``AGENTX_NO_SERVER=1`` the same command gives the same answer."""
    command, _, _ = looked_at
    alone = CommandLine(command.program, command.cwd, {**command.environ, "AGENTX_NO_SERVER": "1"})
    words = ("context", "when do parcels leave", "--no-deadline")
    assert alone(*words).out == command(*words).out
