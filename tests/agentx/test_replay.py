"""A context that an agent was shown is shown again: the same text to the byte, and what was purged as purged."""

import json
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.storage.events.codec import split
from agentx.synthesis.model.scripted import ScriptedModel

TURNS = [
    {
        "tool_calls": [
            {"name": "write_file", "arguments": {"path": "otter.md", "content": "The otter swims.\n"}}
        ]
    },
    {
        "tool_calls": [
            {"name": "move_file", "arguments": {"path": "otter.md", "to": "notes/otter.md"}},
            {"name": "delete_file", "arguments": {"path": "walrus.md"}},
        ]
    },
    {"answer": "The otter swims, and the walrus is gone."},
]


class Seen(ScriptedModel):
    """Keeps what it was sent, as a provider would have seen it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.contexts: list[str] = []

    def stream(self, messages, tools, **options):
        self.contexts.append(messages[0].content)
        return super().stream(messages, tools, **options)


@pytest.fixture
def model(ws, tmp_path):
    """A model that has run in a workspace with memory, files and messages."""
    ws.engine.write_path.defer(None)  # so that each object is a file, which can be removed
    path = tmp_path / "turns.jsonl"
    path.write_text("\n".join(map(json.dumps, TURNS)))
    ws.say("From now on, never create a requirements.txt file.")
    ws.remember("knowledge", "The walrus sleeps at noon, the otter at night.")
    ws.tools.write_file("walrus.md", "# Walrus\n\nThe walrus sleeps.\n")
    model = Seen(path)
    assert (
        run_task(ws, "Write of the otter and the walrus. " + "Be thorough. " * 300, model).status
        == "COMPLETED"
    )
    return model


def shown(ws):
    return [event for event in ws.events() if event.type == "ContextProvided"]


def test_each_context_of_a_run_is_the_same_to_the_byte_long_after(ws, model):
    ws.edit_memory(ws.memory("knowledge")[0].id, "The walrus moved to the zoo.")
    ws.retire(ws.memory("constraint")[0].id)
    ws.tools.write_file("walrus.md", "Another walrus, and an otter.\n")
    ws.say("Forget the otter.")
    events = shown(ws)
    assert len(events) == len(model.contexts) == 3
    for event, sent in zip(events, model.contexts, strict=True):
        again = ws.get_relevant_context(as_of=event.seq)
        assert sent.endswith(f"\n\n{again.text}")
        assert (again.replays, again.exact) == (event.seq, True)
        assert again.max_tokens == event.data.max_tokens
        assert again.recalled == event.data.recalled != ()


def test_a_context_that_was_made_for_what_the_user_said_meanwhile_is_the_same(ws, tmp_path):
    class Interrupted(Seen):
        def stream(self, messages, tools, **options):
            ws.say(f"Also write of the seal, for the {len(self.contexts)}. time.")
            return super().stream(messages, tools, **options)

    path = tmp_path / "turns.jsonl"
    path.write_text("\n".join(map(json.dumps, TURNS)))
    ws.tools.write_file("walrus.md", "A walrus.\n")
    ws.tools.write_file("seal.md", "A seal barks all the time.\n")
    model = Interrupted(path)
    run_task(ws, "Write of the otter.", model)
    for event, sent in zip(shown(ws), model.contexts, strict=True):
        again = ws.get_relevant_context(as_of=event.seq)
        assert sent.endswith(f"\n\n{again.text}")
        assert again.exact


def test_what_the_run_did_right_behind_it_was_done_with_that_context(ws, model):
    event = shown(ws)[0]
    assert ws.get_relevant_context(as_of=event.seq + 1).replays == event.seq
    assert ws.get_relevant_context(as_of=event.seq - 1).replays == 0


def test_a_message_of_ones_own_is_answered_anew(ws, model):
    event = shown(ws)[0]
    made = ws.get_relevant_context("never create", as_of=event.seq)
    assert (made.replays, made.exact) == (0, False)


def test_a_replay_needs_no_index(ws, model, lexical, tmp_path):
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        again.engine.indexer.search = None
        event = shown(again)[-1]
        assert again.get_relevant_context(as_of=event.seq).exact


def test_what_was_purged_is_shown_as_purged(ws, model, lexical):
    at = shown(ws)[0].seq
    rule = next(event for event in ws.events() if event.type == "Concluded")
    said = next(event for event in ws.events() if event.type == "UserMessageSent")
    ws.close()
    purge(ws.root, rule.seq)
    purge(ws.root, said.seq)
    with Workspace.open(ws.root, settings=lexical) as again:
        made = again.get_relevant_context(as_of=at)
        assert not made.exact
        assert "requirements" not in made.text
        assert f"- [c-{said.seq}] (purged)" in made.text
        assert "- user: (purged)" in made.text
        assert "The walrus sleeps." in made.text


def test_a_passage_whose_content_is_gone_is_shown_as_purged(ws, model):
    event = shown(ws)[0]
    name = next(name for name in event.data.recalled if name.startswith("a:"))
    seq = int(name.split(":")[1])
    (made,) = next(one for one in ws.events(after=seq - 1) if one.seq == seq).data.changes
    (ws.root / ".git" / "objects" / made.after[:2] / made.after[2:]).unlink()
    again = ws.get_relevant_context(as_of=event.seq)
    assert "### walrus.md\n```\n(purged)\n```" in again.text
    assert not again.exact


def purge(root, seq):
    """Drop an event's content and salt and keep its digest."""
    path = root / "history.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith(b'{"seq":%d,' % seq):
            parts = split(line)
            lines[number] = (
                parts.header + f',"digest":"{parts.digest.hex()}","hash":"{parts.hash}"}}\n'.encode()
            )
    path.write_bytes(b"".join(lines))
