"""Moments: a number, a time or a commit means one event, and what was known then is what is shown."""

import subprocess
from datetime import UTC, datetime

import pytest

from agentx.engine.moment_parser import NoSuchMoment
from agentx.storage.events.types import Body, Draft, UserMessageSent
from agentx.storage.git.objects import ObjectDamaged
from agentx.synthesis.memory.record_codec import record_codec


@pytest.fixture
def said_at(ws):
    """Append what was said at given times, as another process whose clock may be wrong does; the first event's seq."""

    def said_at(*times):
        codec, path = record_codec(), ws.root / "history.jsonl"
        first = ws.state.seq
        seq, own_hash = first, ws.state.hash
        for time in times:
            draft = Draft(data=UserMessageSent(body=Body(f"It is {time}.")), actor="import:clock")
            at = datetime.fromisoformat(time).replace(tzinfo=UTC)
            line, event = codec.encode(draft, seq=seq + 1, previous=own_hash, at=at)
            seq, own_hash = event.seq, event.hash
            with path.open("ab") as file:
                file.write(line)
        ws.engine.write_path.refresh()
        return first + 1

    return said_at


def git(ws, *arguments):
    command = ["git", "-C", str(ws.root), "-c", "user.name=Pat", "-c", "user.email=pat@x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_number_is_an_event(ws):
    ws.say("Hello.")
    assert ws.moment(2) == ws.moment("2") == ws.moment(" 2 ") == 2
    assert ws.moment(0) == 0
    assert ws.state_at(2).messages[-1].text == "Hello."
    assert ws.state_at(1).messages == []


@pytest.mark.parametrize(
    "moment",
    [
        -1,
        99,
        "99",
        "99999999999",
        "",
        "yesterday",
        "abc123",
        "abcdef1234567",
        "main~99",
        "\0",
        "\udc80",
        "2026-13-01",
        "2026-11-20T25:00",
        "0001-01-01T00:00+05:00",
        "2001-01-01",
        "50000d ago",
    ],
)
def test_what_is_no_moment_is_a_sentence(ws, moment):
    for ask in (ws.moment, ws.state_at, lambda at: ws.get_relevant_context("x", as_of=at)):
        with pytest.raises(NoSuchMoment, match=r"\.$|\)\.$"):
            ask(moment)


def test_a_time_means_the_end_of_what_it_names(ws, said_at):
    first = said_at(
        "2036-11-20T09:30:00",
        "2036-11-20T09:30:05.250000",
        "2036-11-20T09:30:05.750000",
        "2036-11-21T00:00:00",
    )
    assert ws.moment("2036-11-20T09:29") == first - 1
    assert ws.moment("2036-11-20T09:30:00") == first
    assert ws.moment("2036-11-20T09:30:05") == first + 2
    assert ws.moment("2036-11-20T09:30:05.5") == first + 1
    assert ws.moment("2036-11-20 09:30") == first + 2
    assert ws.moment("2036-11-20") == first + 2
    assert ws.moment("2036-11-20T10:30+01:00") == first + 2
    assert ws.moment("2036-11-20T09:29Z") == first - 1
    assert ws.moment("2040-01-01") == first + 3


def test_by_time_the_order_of_events_counts_where_the_clock_stepped_back(ws, said_at):
    first = said_at(
        "2036-11-20T09:00:00", "2036-11-20T12:00:00", "2036-11-20T10:00:00", "2036-11-20T13:00:00"
    )
    assert ws.moment("2036-11-20T11:00") == first
    assert ws.moment("2036-11-20T12:00") == first + 2


def test_a_while_ago_is_before_now(ws):
    ws.say("Hello.")
    assert ws.moment("0s ago") == ws.state.seq
    with pytest.raises(NoSuchMoment, match="There are no events before '2h'"):
        ws.moment("2h")


def test_a_commit_means_the_last_event_that_it_holds(ws):
    first = ws.tools.write_file("a.txt", "one").seq
    ws.say("Hello.")
    second = ws.tools.write_file("a.txt", "two").seq
    ws.flush()
    head = git(ws, "rev-parse", "HEAD")
    assert ws.moment("HEAD") == ws.moment(head[:7]) == ws.moment(head) == ws.moment("main") == second
    assert ws.moment("HEAD~1") == first
    with pytest.raises(NoSuchMoment):
        ws.moment(head[:6])


def test_a_commit_of_a_person_means_the_event_that_put_it_on_record(ws):
    ws.tools.write_file("a.txt", "one")
    ws.flush()
    (ws.artifacts / "a.txt").write_text("by hand")
    git(ws, "commit", "-qam", "By hand")
    theirs = git(ws, "rev-parse", "HEAD")
    ws.tools.write_file("b.txt", "later")
    moment = ws.moment(theirs)
    (event,) = [event for event in ws.events() if event.type == "ArtifactChanged"]
    assert moment == event.seq


def test_a_commit_off_the_branch_holds_no_moment(ws):
    ws.tools.write_file("a.txt", "one")
    ws.flush()
    tree = git(ws, "rev-parse", "HEAD^{tree}")
    apart = git(ws, "commit-tree", tree, "-m", "Apart")
    with pytest.raises(NoSuchMoment, match="not on the branch main"):
        ws.moment(apart)
    with pytest.raises(ObjectDamaged):
        ws.engine.git.repo.info("0" * 40)


def test_every_option_takes_a_moment_in_any_form(ws):
    ws.tools.write_file("a.txt", "The walrus sleeps.\n")
    ws.flush()
    commit = git(ws, "rev-parse", "HEAD")
    ws.tools.delete_file("a.txt")
    assert [hit.path for hit in ws.search("walrus", kind="artifact", as_of=commit)] == ["a.txt"]
    assert "walrus" in ws.get_relevant_context("the walrus", as_of=commit[:9]).text
    ws.restore("a.txt", "HEAD~1")
    assert (ws.artifacts / "a.txt").read_text() == "The walrus sleeps.\n"


# --- what was remembered then --------------------------------------------------------------------------------------------


def test_a_recalled_item_says_what_it_said_then(ws):
    item = ws.remember("knowledge", "The walrus sleeps at noon.")
    then = ws.state.seq
    ws.edit_memory(item.id, "The walrus sleeps at midnight.")
    for as_of, said in ((then, "noon"), (None, "midnight")):
        (hit,) = ws.search("walrus", kind="memory", as_of=as_of)
        assert hit.text == f"The walrus sleeps at {said}."
        assert f"The walrus sleeps at {said}." in ws.get_relevant_context("walrus", as_of=as_of).text


def test_an_item_that_did_not_stand_then_is_not_recalled(ws):
    item = ws.remember("knowledge", "The walrus sleeps at noon.")
    made = ws.state.seq
    ws.retire(item.id)
    retired = ws.state.seq
    assert ws.search("walrus", as_of=made - 1) == []
    assert [hit.symbol for hit in ws.search("walrus", as_of=made)] == [item.id]
    ws.edit_memory(item.id, "The walrus never sleeps.")  # it is retired still; the index has one row for it
    assert ws.search("walrus", as_of=retired) == []
    assert "walrus" not in ws.get_relevant_context("sleeps", as_of=retired).text


def test_memory_is_listed_as_it_was(ws):
    item = ws.remember("rule", "Measure twice.")
    then = ws.state.seq
    ws.edit_memory(item.id, "Measure three times.")
    ws.retire(item.id)
    assert ws.memory() == []
    assert [one.text for one in ws.memory(as_of=then)] == ["Measure twice."]


def test_messages_and_files_are_those_of_then(ws):
    ws.say("The first thing.")
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    then = ws.state.seq
    ws.tools.write_file("a.md", "The walrus swims.\n")
    ws.say("The second thing.")
    made = ws.get_relevant_context("walrus", as_of=then, tier=2)
    assert "The walrus sleeps." in made.text
    assert "swims" not in made.text
    assert "The first thing." in made.text
    assert "second" not in made.text
    assert (made.seq, made.replays) == (then, 0)
