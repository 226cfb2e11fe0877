"""Rules about names that differ in a character are different rules."""

import pytest

from agentx import Workspace


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Never create a forbidden-1-2.txt file.", "Never create a forbidden-1-3.txt file."),
        ("Always use port 8080.", "Always use port 8081."),
        ("Never import os.path in new code.", "Never import os.system in new code."),
    ],
)
def test_rules_that_differ_in_a_name_are_two(tmp_path, first, second):
    with Workspace.create(tmp_path / "task") as ws:
        ws.say(first)
        ws.say(second)
        texts = [item.text for item in ws.memory("constraint", status=None)]
        assert len(texts) == 2, texts


def test_the_same_rule_said_twice_stays_one(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.say("Never create a requirements.txt file.")
        ws.say("You must never create a file called `requirements.txt`!")
        assert len(ws.memory("constraint")) == 1
