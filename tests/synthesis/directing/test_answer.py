"""What a model directs is used as a whole or not at all, and says what is wrong with it."""

import json

import pytest

from agentx.synthesis.directing.director_answer import TOOL, read, without_sources
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from agentx.synthesis.model.structured import AnswerUnreadable

GOOD = {
    "analysis_summary": "Stable.",
    "strategy": "Go on.",
    "reflection": "None.",
    "executor_system_prompt": "Look at the last {{hours}} hours.\nSent already:\n{{seen}}",
    "reuse_policy": {
        "valid_for_runs": 8,
        "invalidate_on": ["executor_failed", "tool_error:send_email"],
        "dynamic_fields": {
            "{{hours}}": "hours_since_last_run(default=24)",
            "seen": "titles of the last mails",
            "unused": "x",
        },
    },
    "checkpoints_to_create": [{"type": "milestone", "text": "It\nworks."}],
    "knowledge_to_create": [{"topic": "mail", "text": "Sends at once."}],
}


def reply(answer):
    return Reply("", (ToolCall("1", TOOL, json.dumps(answer)),), Usage(), "a/model")


def changed(path, value):
    made = json.loads(json.dumps(GOOD))
    *outer, last = path.split(".")
    inner = made
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return made


def test_a_directive_is_read_with_its_fields_under_their_bare_names():
    directive = read(reply(GOOD))
    assert directive.policy.dynamic_fields == {
        "hours": "hours_since_last_run(default=24)",
        "seen": "titles of the last mails",
    }
    assert directive.policy.valid_for_runs == 8
    assert directive.checkpoints[0].text == "It works."
    assert directive.knowledge[0].topic == "mail"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("executor_system_prompt", "", "executor_system_prompt"),
        ("executor_system_prompt", "Do {{what}}.", "'what'"),
        ("executor_system_prompt", "Do {{}}.", "without a name"),
        ("reuse_policy.valid_for_runs", 0, "valid_for_runs"),
        ("reuse_policy.valid_for_runs", "soon", "valid_for_runs"),
        ("reuse_policy.invalidate_on", ["when it rains"], "when it rains"),
        ("reuse_policy.dynamic_fields", {"hours": "hours_since(of=x)", "seen": "x"}, "hours_since"),
        ("checkpoints_to_create", [{"type": "party", "text": "x"}], "party"),
        ("knowledge_to_create", [{"topic": "", "text": "x"}], "topic"),
        ("analysis_summary", None, "analysis_summary"),
        ("strategy", "x" * 1_000, "strategy"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_what_is_wrong(path, value, told):
    with pytest.raises(AnswerUnreadable, match=told):
        read(reply(changed(path, value)))


def test_a_field_that_is_called_like_a_resolver_needs_no_more():
    directive = read(reply(changed("executor_system_prompt", "It is {{today}}.")))
    assert directive.policy.dynamic_fields == {"today": "today"}


@pytest.mark.parametrize(
    ("prompt", "left"),
    [
        ("Never write to x [c-12].", "Never write to x."),
        ("Use tabs (see event 3) here (runs r-1 and 2).", "Use tabs here."),
        ("Use [x-1, c-2.2] spaces.", "Use spaces."),
        ("Call f(x-1) and a[0], (event handlers too).", "Call f(x-1) and a[0], (event handlers too)."),
    ],
)
def test_ids_and_sources_are_stripped_and_nothing_else(prompt, left):
    assert without_sources(prompt) == left
