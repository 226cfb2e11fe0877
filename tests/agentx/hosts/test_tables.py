"""Each host's payloads, by its fixtures, become the normalised action; its answers have only what it accepts."""

import json

import pytest

from agentx.hosts.action import MOMENTS, HostAction, HostReply
from agentx.hosts.host import HOSTS, load
from tests.agentx.hosts.conftest import fixture

CASES = [
    pytest.param(host, case, id=f"{host}-{number}-{case['payload']['hook_event_name']}")
    for host in HOSTS
    for number, case in enumerate(fixture(host)["cases"])
]


@pytest.mark.parametrize(("host", "case"), CASES)
def test_a_payload_becomes_the_normalised_action(host, case):
    action = load(host).read(case["payload"], {})
    assert {name: getattr(action, name) for name in case["action"]} == case["action"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_fixture_says_its_version_and_where_it_comes_from(host):
    found = fixture(host)
    assert found["host"] == host
    assert found["version"]
    assert found["source"]
    covered = {case["payload"]["hook_event_name"] for case in found["cases"]}
    assert covered >= set(load(host).events) - {
        "SessionEnd",
        "PostCompact",
        "SubagentStop",
        "subagentStop",
        "session.compacted",
    }


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("value", [None, 7, [], "x", {"a": 1}, True])
def test_odd_values_in_a_payload_raise_nothing(host, value):
    table = load(host)
    for case in fixture(host)["cases"]:
        for name in case["payload"]:
            action = table.read({**case["payload"], name: value}, {})
            assert action.moment in {"", *MOMENTS}
            json.dumps(action.as_dict())


REPLIES = {
    "nothing": HostReply(),
    "deny": HostReply("deny", "No."),
    "ask": HostReply("ask", "Sure?"),
    "go on": HostReply("go_on", "A test fails."),
    "context": HostReply(context="Use tabs."),
    "message": HostReply(message="The server does not answer."),
}

CODEX_KEYS = {
    "continue",
    "stopReason",
    "suppressOutput",
    "systemMessage",
    "decision",
    "reason",
    "hookSpecificOutput",
}
CODEX_SPECIFIC = {"hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"}
"""What the structures of codex-rs/hooks/src/schema.rs know of what is printed here; others make it fail."""


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_codex_is_never_sent_a_field_or_a_decision_that_it_rejects(reply):
    codex = load("codex")
    for event, moment in codex.events.items():
        printed, status = codex.write(HostAction(host="codex", event=event, moment=moment, asks=False), reply)
        found = json.loads(printed) if printed else {}
        assert status == 0
        assert set(found) <= CODEX_KEYS
        specific = found.get("hookSpecificOutput", {})
        assert set(specific) <= CODEX_SPECIFIC
        assert specific.get("permissionDecision", "deny") == "deny"
        assert specific.get("permissionDecision") is None or specific["permissionDecisionReason"]
        if event not in {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}:
            assert not specific


@pytest.mark.parametrize("host", ["gemini-cli", "cursor", "opencode"])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_host_that_parses_json_always_gets_one_object(host, reply):
    table = load(host)
    for event, moment in [*table.events.items(), ("Unknown", "")]:
        printed, status = table.write(HostAction(host=host, event=event, moment=moment), reply)
        assert isinstance(json.loads(printed), dict)
        assert status == 0


def test_cursor_is_asked_to_ask_only_where_it_can():
    cursor = load("cursor")
    shell = HostAction(host="cursor", event="beforeShellExecution", moment="before")
    other = HostAction(host="cursor", event="preToolUse", moment="before", asks=False)
    assert json.loads(cursor.write(shell, REPLIES["ask"])[0])["permission"] == "ask"
    assert json.loads(cursor.write(other, REPLIES["ask"])[0])["permission"] == "deny"
    prompt = HostAction(host="cursor", event="beforeSubmitPrompt", moment="prompt")
    assert json.loads(cursor.write(prompt, REPLIES["nothing"])[0]) == {"continue": True}


def test_long_texts_are_cut_and_say_so():
    claude = load("claude-code")
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "x" * 3_000_000}
    text = claude.read(payload, {}).text
    assert len(text) < 1_100_000
    assert "characters left out" in text
