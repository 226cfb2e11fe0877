"""The timeline: pages of events, filters, one event with its causes, the stream."""

import asyncio
from contextlib import closing

import msgspec

from agentx import Workspace
from agentx.inspector.streaming import MOST_WAITING, EventStream
from agentx.storage.events.types import Draft, Event, Purged, ToolCallExecuted


def test_the_first_screen_counts_what_there_is(page, client, root):
    client.call("say", workspace=root, text="Never create a setup.py file.")
    found = page.get("overview")
    assert (found["title"], found["seq"], found["counts"]["UserMessageSent"]) == ("A task", 3, 1)
    assert found["actors"] == {"user": 2, "engine:demands": 1}
    assert found["memory"] == {"constraint": 1}
    assert not found["read_only"]


def test_pages_of_events_meet_without_gap_or_overlap(page, client, root):
    for number in range(7):
        client.call("say", workspace=root, text=f"The number is {number}.")
    whole = page.get("events?limit=500")
    last = whole["total"]
    assert [row["seq"] for row in whole["events"]] == list(range(last, 0, -1))
    assert whole["next"] is None
    seen, before = [], last + 1
    while before:
        part = page.get(f"events?limit=3&before={before}")
        seen += [row["seq"] for row in part["events"]]
        before = part["next"]
    assert seen == list(range(last, 0, -1))
    seen, after = [], 0
    while after is not None:
        part = page.get(f"events?limit=2&after={after}")
        seen += [row["seq"] for row in part["events"]]
        after = part["next"]
    assert seen == list(range(1, last + 1))


def test_filters_select_and_go_on_where_they_ended(page, client, root):
    for number in range(5):
        client.call("say", workspace=root, text=f"Use tool {number}00 for the harbour.")
    rows = page.get("events?type=UserMessageSent&limit=2")
    assert len(rows["events"]) == 2
    assert rows["total"] == 5
    assert rows["next"]
    more = page.get(f"events?type=UserMessageSent&limit=500&before={rows['next']}")
    assert len(more["events"]) == 3
    assert {row["actor"] for row in page.get("events?actor=engine")["events"]} <= {"engine:demands"}
    (only,) = page.get("events?q=TOOL+300+Harbour&type=UserMessageSent")["events"]
    assert "tool 300" in only["text"]
    assert page.get("events?run=none")["events"] == []


def test_files_are_found_by_their_path_with_their_changed_lines(page, root):
    with Workspace.open(root) as ws:
        ws.tools.write_file("notes/a.md", "one\n")
        ws.tools.write_file("notes/a.md", "two\n")
        ws.tools.write_file("other.md", "three\n")
    rows = page.get("events?path=notes")["events"]
    assert [row["paths"] for row in rows] == [["notes/a.md"]] * 2
    (changed,) = page.get(f"events/{rows[0]['seq']}")["files"]
    assert changed["change"] == "changed"
    assert "-one\n+two" in changed["diff"]


def test_contents_that_are_larger_than_their_event_says_are_not_compared(page, root):
    with Workspace.open(root) as ws:
        for step in (7, 11):
            ws.tools.write_file("a.txt", "".join(f"{number * number % step}\n" for number in range(300_000)))
        made = list(ws.events())[-1].data.changes[0]
        forged = [msgspec.structs.replace(made, path=f"{n}.txt", size_bytes=1) for n in range(50)]
        (event,) = ws.record(
            Draft(
                data=ToolCallExecuted(
                    call_id="c", tool="write_file", status="SUCCEEDED", changes=tuple(forged)
                ),
                actor="agent:main",
            )
        )
    files = page.get(f"events/{event.seq}")["files"]
    assert [one["path"] for one in files] == [made.path for made in forged]
    assert [bool(one["diff"]) for one in files] == [True, *[False] * 49]
    assert [one["large"] for one in files] == [False, *[True] * 49]


def test_an_event_shows_what_led_to_it_and_what_came_of_it(page, client, root):
    client.call("say", workspace=root, text="Never create a setup.py file.")
    client.call("flush", workspace=root)
    said = page.get("events/2")
    assert [one["seq"] for one in said["effects"]] == [3]
    assert [(one["id"], one["what"]) for one in said["items"]] == [("c-2", "quotes it")]
    assert said["bodies"]["body"]["text"] == "Never create a setup.py file."
    assert said["commit"]["subject"]
    concluded = page.get("events/3")
    assert [(one["seq"], one["why"]) for one in concluded["cause"]] == [(2, "led to it")]
    assert [(one["id"], one["what"]) for one in concluded["items"]] == [("c-2", "added")]
    assert page.get("events/99", 404)["error"]


def test_moments_are_in_order_and_few(page, client, root):
    for number in range(3):
        client.call("say", workspace=root, text=f"Remark {number}.")
    found = page.get("moments")
    assert [mark["what"] for mark in found["marks"]] == ["message"] * 3
    assert found["first"]["seq"] == 1
    assert found["last"]["seq"] == page.get("overview")["seq"]


def test_the_stream_sends_what_another_process_writes(page, root):
    with closing(page.stream("stream?after=0")) as rows:
        assert next(rows)["seq"] == 1
        with Workspace.open(root) as ws:
            ws.say("Use British spelling.")
        assert next(rows)["type"] == "UserMessageSent"
        assert next(rows)["type"] == "Concluded"


def test_a_stream_whose_client_reads_nothing_has_no_room_for_more():
    follows, stopped = [], []

    def follow(emit, has_room, finish):
        follows.append((emit, has_room, finish))
        return lambda: stopped.append(True)

    async def go():
        gone = asyncio.Event()
        sent = []

        async def send(message):
            sent.append(message)
            if len(sent) > 1:
                await gone.wait()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        stream = EventStream(follow, lambda _ws, event: {"seq": event.seq})
        answer = asyncio.create_task(stream({}, receive, send))
        while not follows:  # noqa: ASYNC110 - a thread appends
            await asyncio.sleep(0.01)
        emit, has_room, _ = follows[0]
        assert has_room()
        event = Event(seq=1, at="", type="Purged", v=1, actor="user", data=Purged())
        for _ in range(MOST_WAITING):
            emit(None, event)
        while has_room():  # noqa: ASYNC110 - the loop's own callbacks count
            await asyncio.sleep(0.01)
        gone.set()
        await answer

    asyncio.run(go())
    assert stopped == [True]
