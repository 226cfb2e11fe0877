"""``agentx purge``: it says what would go before anything goes, and goes on only with a person's word."""

import io

import pytest


@pytest.fixture
def said(call, root):
    """A message with an address, and its number."""
    done = call("say", "Where is the yellow house behind the mill?", "-C", root, "--json")
    assert done.code == 0
    return done.json["event"]["seq"] if "event" in done.json else done.json["seq"]


def holds(root):
    return "yellow house" in (root / "history.jsonl").read_text()


def test_a_dry_run_lists_what_would_go_and_drops_nothing(call, root, said):
    done = call("purge", "--event", said, "--dry-run", "-C", root)
    assert done.code == 0
    assert "user said: Where is the yellow house" in done.out
    assert "This rewrites history and cannot be undone." in done.out
    assert "rewrite 1 commit" in done.out
    assert "Clones, forks, backups" in done.err
    plan = call("purge", "--event", said, "--dry-run", "--json", "-C", root).json
    assert plan["dry_run"] is True
    assert [one["seq"] for one in plan["plan"]["events"]] == [said]
    assert holds(root)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_a_terminal_nothing_goes_unless_it_is_agreed_to(call, root, said, words):
    done = call("purge", "--event", said, "-C", root, *words)
    assert done.code == 2
    assert "agree with --yes; nothing was purged" in done.err
    assert holds(root)


@pytest.mark.parametrize(("typed", "code"), [("purge\n", 0), ("yes\n", 1), ("", 1)])
def test_at_a_terminal_a_person_types_the_word(call, root, said, monkeypatch, typed, code):
    monkeypatch.setattr("agentx.cli.terminal.Terminal.interactive", property(lambda _terminal: True))
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = call("purge", "--event", said, "-C", root)
    assert done.code == code
    assert "Type purge to go on" in done.err
    assert holds(root) is bool(code)


def test_with_a_word_given_in_advance_it_is_done_and_told(call, root, said, tmp_path):
    done = call(
        "purge", "--event", said, "--reason", "an address", "--backup", tmp_path / "kept", "--yes", "-C", root
    )
    assert (done.code, holds(root), holds(tmp_path / "kept")) == (0, False, True)
    assert f"1 event; event {said + 1} records it" in done.out
    assert str(tmp_path / "kept") in done.out
    told = call("log", "-n", "1", "-C", root).out
    assert f"Purge event {said}: an address" in told
    assert f"event {said} (UserMessageSent) was purged" in call("verify", "-C", root).out
    again = call("purge", "--event", said, "--yes", "-C", root)
    assert (again.code, "already purged" in again.err) == (2, True)


def test_what_says_the_same_is_listed_and_taken_in(call, root, said):
    call("memory", "add", "The yellow house behind the mill is hers.", "-C", root)
    listed = call("purge", "--event", said, "--dry-run", "-C", root).out
    assert "has the same content and would stay" in listed
    done = call("purge", "--event", said, "--also", "--yes", "--json", "-C", root)
    assert done.code == 0
    assert done.json["purged"]["plan"]["items"]
    assert not holds(root)
