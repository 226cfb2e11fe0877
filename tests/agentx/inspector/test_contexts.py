"""Contexts in the inspector: now, at a moment, compared; search and files."""

from agentx import Workspace


def test_a_context_says_why_each_item_is_in_it(page, client, root):
    client.call("say", workspace=root, text="Never create a setup.py file.")
    found = page.get("context?message=package+it")
    items = {item["id"]: item for section in found["sections"] for item in section["items"]}
    assert items["c-2"]["why"] == "the user demands it"
    assert items["c-2"]["evidence"] == [{"seq": 2, "quote": "Never create a setup.py file."}]
    assert items["c-2"]["checked"] == "enforced"
    assert found["text"].startswith("# Task: A task")
    assert page.get("context?at=1")["sections"] == []
    assert page.get("context?at=77", 404)["error"]
    assert page.get("context?tier=7", 400)["error"]


def test_two_moments_differ_by_their_items_and_files(page, root):
    with Workspace.open(root) as ws:
        ws.say("Never create a setup.py file.")
        ws.tools.write_file("notes.md", "one\n")
    found = page.get("context/compare?a=1")
    assert [item["id"] for item in found["added"] if item["memory"]] == ["c-2"]
    assert [(one["path"], one["change"]) for one in found["files"]] == [("notes.md", "added")]
    assert page.get("context/compare?b=1", 400)["error"]
    assert page.get("context/compare?a=3&b=1", 400)["error"]


def test_files_are_shown_as_they_were(page, root):
    with Workspace.open(root) as ws:
        ws.tools.write_file("notes/a.md", "one\n")
        then = ws.state.seq
        ws.tools.write_file("notes/a.md", "two\n")
        ws.tools.write_file("b.bin", "x")
    assert page.get("file?path=notes/a.md")["text"] == "two\n"
    assert page.get(f"file?path=notes/a.md&at={then}")["text"] == "one\n"
    assert page.get(f"file?path=b.bin&at={then}", 404)["error"]
    assert [one["path"] for one in page.get("files")["files"]] == ["b.bin", "notes/a.md"]
    assert [one["path"] for one in page.get(f"files?at={then}")["files"]] == ["notes/a.md"]
    assert page.get("files?q=bin")["files"][0]["seq"] == page.get("overview")["seq"]


def test_a_search_finds_words(page, root):
    with Workspace.open(root) as ws:
        ws.tools.write_file("notes.md", "The harbour is closed in winter.\n")
    (hit, *_) = page.get("search?q=harbour")["hits"]
    assert (hit["path"], hit["lines"]) == ("notes.md", [1, 1])
    assert hit["why"]
    assert page.get("search?q=", 400)["error"]
    assert page.get("search?q=x&kind=nothing", 400)["error"]
