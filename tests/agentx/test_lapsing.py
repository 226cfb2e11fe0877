"""A candidate that nobody settled is laid aside by the times that the events say, and stays so in every replay."""

from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.core.layout import FORMAT
from agentx.factory import write_layout
from agentx.storage.events.codec import GENESIS
from agentx.storage.events.types import Body, Draft, UserMessageSent, WorkspaceCreated
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.memory.record_codec import record_codec

WISH = "don't use emojis"
ITEM = MemoryItem(
    id="c-2",
    kind="constraint",
    text="Don't use emojis",
    status="candidate",
    trust="user",
    evidence=(Evidence(2, 0, len(WISH), WISH),),
)
HISTORY = (
    WorkspaceCreated(title="Old", format=FORMAT),
    UserMessageSent(body=Body(WISH)),
    Concluded(extractor="demands", version=1, through=2, changes=(Add(ITEM),)),
)


@pytest.fixture
def old(tmp_path):
    """A workspace whose only candidate was made twenty days ago."""
    root, codec, then = tmp_path / "old", record_codec(), datetime.now(UTC) - timedelta(days=20)
    write_layout(root, "artifacts")
    previous, lines = GENESIS, []
    for seq, data in enumerate(HISTORY, start=1):
        line, event = codec.encode(Draft(data=data, actor="user"), seq=seq, previous=previous, at=then)
        previous = event.hash
        lines.append(line)
    (root / "history.jsonl").write_bytes(b"".join(lines))
    return root


def test_looking_lays_nothing_aside_and_the_next_message_does(old, lexical):
    with Workspace.open(old, settings=lexical) as ws:
        assert [item.id for item in ws.memory(status="candidate")] == ["c-2"]
        ws.say("Hello again.")
        (item,) = ws.memory(status="closed")
        assert item.reason == "It lapsed: nobody settled it within 14 days."
        digest = ws.state.digest
        assert ws.rebuild().state_digest == digest
        assert ws.resynthesize() == []
        ws.say(WISH)
        assert [len(item.evidence) for item in ws.memory(status="candidate")] == [2]


def test_how_long_a_proposal_waits_is_a_setting(old, lexical):
    with (old / "agentx.toml").open("a") as file:
        file.write("\n[memory]\nlapse_days = 21\n")
    with Workspace.open(old, settings=lexical) as ws:
        ws.say("Hello again.")
        assert [item.id for item in ws.memory(status="candidate")] == ["c-2"]


def test_what_comes_back_with_the_same_words_is_a_proposal_and_no_rule(old, lexical):
    with Workspace.open(old, settings=lexical) as ws:
        ws.say(WISH)
        assert [item.status for item in ws.memory(status=None)] == ["candidate"]
