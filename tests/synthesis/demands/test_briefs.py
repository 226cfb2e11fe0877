"""A long text of the user's own is a brief: what it says is at most a candidate, a little of it, and sending it again changes nothing."""

from agentx import Workspace
from agentx.synthesis.demands.classify import BRIEF_CHARACTERS, MOST_OF_A_BRIEF
from tests.demand_findings import findings

RULE = "Never use tabs in the generated files. "
STORY = "The widget shows the days of a month and the events of each day. "


def _brief(*rules):
    return "".join(f"{rule} {STORY * 5}\n\n" for rule in rules) + STORY * (BRIEF_CHARACTERS // 40)


def test_a_brief_says_everything_with_one_step_less_of_certainty():
    assert [one.certainty for one in findings(RULE)] == ["active"]
    assert [one.certainty for one in findings(_brief(RULE))] == ["candidate"]
    likely = "Don't add comments. "
    assert [one.certainty for one in findings(likely)] == ["candidate"]
    assert findings(_brief(likely)) == ()


def test_of_a_brief_full_of_rules_the_first_ones_are_proposed():
    rules = [f"Never write to the folder out{number}/ again." for number in range(12)]
    found = findings(_brief(*rules))
    assert len(found) == MOST_OF_A_BRIEF
    assert "out0/" in found[0].text


def test_a_paste_does_not_make_a_message_a_brief():
    pasted = f"```\n{STORY * 200}\n```"
    assert [one.certainty for one in findings(f"{RULE}\n\n{pasted}")] == ["active"]


def test_a_brief_that_is_sent_again_says_nothing_twice_and_a_short_word_does(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.say(_brief(RULE))
        ws.say(_brief(RULE))
        (rule,) = ws.memory("constraint", status="candidate")
        assert len(rule.evidence) == 2
        ws.say(RULE)
        assert [item.id for item in ws.memory("constraint")] == [rule.id]
