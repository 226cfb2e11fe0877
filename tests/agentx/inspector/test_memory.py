"""Memory in the inspector: items with their words and life, candidates, problems, flows, and acts on them."""

import pytest

from agentx import Workspace

RULE = "Never create a setup.py file."


@pytest.fixture
def said(page, client, root):
    """A page of a workspace with one rule, c-2."""
    client.call("say", workspace=root, text=RULE)
    return page


def test_an_item_shows_its_words_checks_and_life(said):
    (row,) = said.get("memory?kind=constraint")["items"]
    assert (row["id"], row["checked"], row["vitality"]) == ("c-2", "enforced", 1.0)
    found = said.get("memory/c-2")
    assert found["evidence"][0]["quote"] == RULE
    assert found["evidence"][0]["actor"] == "user"
    assert found["checks"][0]["level"] == "deny"
    assert [step["seq"] for step in found["life"]] == [3]
    assert set(found["may"]) == {"edit", "retire", "pin"}
    assert said.get("memory/c-99", 404)["error"]


def test_lists_filter_by_words_kind_and_status(said):
    assert said.get("memory?q=SETUP")["total"] == 1
    assert said.get("memory?q=other")["total"] == 0
    assert said.get("memory?status=retired")["items"] == []
    assert said.get("memory?kind=rule,constraint")["kinds"] == {"constraint": 1}


def test_an_act_is_recorded_as_the_users_and_changes_the_item(said, client, root):
    done = said.act(what="pin", id="c-2", seq=3)
    assert done["item"]["pinned"]
    assert done["event"]["actor"] == "user"
    assert said.act(what="unpin", id="c-2", seq=done["seq"])["item"]["pinned"] is False
    edited = said.act(what="edit", id="c-2", seq=99, text="Never create a setup.cfg file.")
    assert edited["item"]["text"] == "Never create a setup.cfg file."
    assert said.act(what="retire", id="c-2", seq=99)["item"]["status"] == "retired"
    life = said.get("memory/c-2")["life"]
    assert [step["actor"] for step in life] == ["engine:demands", *["user"] * 4]
    assert client.call("memory", workspace=root) == []


def test_an_act_on_what_changed_since_is_refused(said, client, root):
    client.call("pin", workspace=root, item="c-2")
    assert "changed in event 4" in said.act(409, what="retire", id="c-2", seq=3)["error"]
    assert said.get("memory/c-2")["item"]["status"] == "active"


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ({"what": "purge", "id": "c-2", "seq": 3}, 400),
        ({"what": "pin", "id": "c-2"}, 400),
        ({"what": "pin", "id": "c-2", "seq": "3"}, 400),
        ({"what": "pin", "id": "c-2", "seq": 3, "actor": "user:eve"}, 400),
        ({"what": "pin", "id": "c-77", "seq": 3}, 404),
        ({"what": "edit", "id": "c-2", "seq": 3, "text": " "}, 400),
        ({"what": "accept", "id": "c-2", "seq": 3}, 400),
        ({"what": "approve", "id": "call-1", "seq": 3}, 409),
    ],
)
def test_what_is_not_an_act_changes_nothing(said, act, status):
    assert said.act(status, **act)["error"]
    assert said.get("overview")["seq"] == 3


def test_a_candidate_is_accepted_with_the_question_that_it_answers(page, client, root):
    client.call("say", workspace=root, text="Maybe we could use tabs from now on?")
    client.call("say", workspace=root, text="I think the reports should probably be shorter.")
    waiting = page.get("candidates")["candidates"]
    for one in waiting:
        assert {"accept", "reject"} <= set(one["may"])
        assert one["said"]
    if waiting:
        done = page.act(what="accept", id=waiting[0]["id"], seq=99)
        assert done["item"]["status"] == "active"


def test_a_problem_is_closed_by_the_run_that_passes(page, root):
    with Workspace.open(root) as ws:
        ws.configure("checks.tests.command", "sh tests.sh")
    fails = "FAILED test_a.py::test_one - assert 1 == 2\n1 failed in 0.1s"
    with Workspace.open(root) as ws:
        ws.trust(commands=True)
        ws.tools.write_file("tests.sh", f"printf '%s\\n' '{fails}'; exit 1\n")
    with Workspace.open(root) as ws:
        ws.tools.run_tests()
        (problem,) = page.get("problems")["open"]
        assert problem["check"].endswith("test_one")
        ws.tools.write_file("tests.sh", "echo 'test_a.py::test_one PASSED'; echo '1 passed in 0.1s'\n")
        ws.tools.run_tests()
    found = page.get("problems")
    if found["closed"]:
        assert "passed" in found["closed"][0]["closed"]["by"]


def test_a_flow_shows_its_grades(page, root):
    with Workspace.open(root) as ws:
        flow = ws.flows.add("deploy the site", ["Build.", "Upload."], triggers=["publish it"])
    (found,) = page.get("flows")["flows"]
    assert (found["id"], found["steps"], found["used"]) == (flow.id, ["Build.", "Upload."], 0)
    assert found["standing"] == "unused"
