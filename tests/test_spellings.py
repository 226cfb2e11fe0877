"""Commands, options, public names, event types, settings and tools: none comes or goes unnoticed."""

from tests import spellings


def test_the_table_holds_every_spelling_and_says_where_each_lost_one_went():
    assert spellings.differences() == []


def test_a_spelling_that_is_gone_needs_a_reason_and_a_new_one_needs_a_row(monkeypatch):
    kept = spellings.kept()
    row = ("command", "agentx say TEXT")
    assert row in kept
    monkeypatch.setattr(spellings, "kept", lambda: {**kept, row: "agentx tell"})
    assert spellings.differences() == ["command agentx say TEXT: exists, and its row says 'agentx tell'"]
    invented = ("command", "agentx sing SONG")
    monkeypatch.setattr(spellings, "kept", lambda: {**kept, invented: ""})
    assert "where its ability went" in spellings.differences()[0]
    monkeypatch.setattr(spellings, "kept", lambda: {**kept, invented: "agentx say"})
    assert spellings.differences() == []
    monkeypatch.setattr(spellings, "kept", lambda: {one: "" for one in kept if one != row})
    assert spellings.differences() == ["command agentx say TEXT: exists, and has no row"]
