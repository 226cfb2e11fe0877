"""Without a model a prompt is composed of the user's words, of what was done, and of what was measured to fail."""

import msgspec
import pytest

from agentx.synthesis.directing.acts import Declaration
from agentx.synthesis.directing.composer import STABLE_RUNS, UNSURE_RUNS, ArgumentLesson, compose, lessons
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem
from agentx.synthesis.model.port import ToolSchema
from agentx.synthesis.state.state import State
from tests.synthesis.directing.test_fields import Story

SEND = ToolSchema("send_email", "", {"properties": {"to": {"type": "string"}, "titles": {"type": "array"}}})
ASKED = ["Mail me the news.", "Reddit too."]


def mail(to, *titles, status="SUCCEEDED"):
    return ("send_email", {"titles": list(titles), "to": to}, status)


def composed(story, why="there is no directive yet", tools=(SEND,), items=()):
    made = Concluded(extractor="x", version=1, through=1, changes=tuple(map(Add, items)))
    story.add(made, "", 0)
    return compose(State().apply_all(story.events), story.past(), ASKED, why, tools)


def test_the_users_words_stand_in_the_prompt_in_their_order():
    prompt = composed(Story()).prompt
    assert prompt.index(ASKED[0]) < prompt.index(ASKED[1])


DONE, CALLED, REPORTED = ("done", "done()"), ("called", "called()"), ("reported", "summaries(runs=10)")


@pytest.mark.parametrize(
    ("tools", "declared", "fields"),
    [
        ([SEND], {"send_email": Declaration(("titles[]",))}, [DONE]),
        ([SEND], {}, [DONE, CALLED]),
        ([SEND, ToolSchema("check_in_guest", "", {})], {"send_email": Declaration()}, [DONE, CALLED]),
        ([SEND], {"send_email": Declaration((), "never")}, [DONE, REPORTED]),
        ([], {}, [DONE, REPORTED]),
    ],
)
def test_what_was_done_is_looked_up_before_each_run_by_what_the_tools_declare(tools, declared, fields):
    story = Story().run(0, mail("a@b", "One"))
    made = compose(State().apply_all(story.events), story.past(), ASKED, "why", tools, declared)
    assert list(made.policy.dynamic_fields.items()) == fields
    assert all(f"{{{{{name}}}}}" in made.prompt for name, _ in fields)


def test_the_task_itself_is_never_forbidden():
    story = Story().run(0)
    made = compose(State().apply_all(story.events), story.past(), ["Every morning measure the soil."], "why")
    assert "- Every morning measure the soil." in made.prompt
    assert "never" not in made.prompt.lower()
    assert "What the last runs reported; this run carries out the task anew:" in made.prompt


def test_it_serves_for_long_where_the_last_runs_completed_and_for_few_where_not():
    story = Story()
    for hour in range(5):
        story.run(hour)
    assert composed(story).policy.valid_for_runs == STABLE_RUNS
    assert composed(story.run(9, status="FAILED")).policy.valid_for_runs == UNSURE_RUNS


def test_a_failure_that_one_argument_explains_is_kept_away_from_without_saying_why():
    story = Story().run(0, mail("old@x", "One", status="FAILED"), status="FAILED")
    story.run(1, mail("old@x", "Two", status="FAILED"), status="FAILED")
    directive = composed(story)
    assert '- Do not call send_email with to "old@x".' in directive.prompt
    assert lessons(story.past()) == [ArgumentLesson("send_email", "to", '"old@x"')]
    story.run(2, mail("new@x", "One"))
    directive = composed(story)
    assert '- Do not call send_email with to "old@x"; use "new@x".' in directive.prompt
    [mark] = directive.checkpoints
    assert (mark.sort, mark.actionable) == (
        "issue_resolved",
        "If send_email fails again, look at its to first, and at what the user said of it.",
    )
    assert [fact.text for fact in directive.knowledge] == [
        'Do not call send_email with to "old@x"; use "new@x".'
    ]


def test_what_works_instead_is_told_for_good_and_learned_once():
    story = Story().run(0, mail("old@x", "One", status="FAILED"), status="FAILED", output="no old@x here")
    story.run(1, mail("old@x", "Two", status="FAILED"), status="FAILED")
    for hour in range(2, 12):
        story.run(hour, mail("new@x", f"T{hour}"))
    order = 'Do not call send_email with to "old@x"; use "new@x".'
    known = MemoryItem(id="k-1", kind="knowledge", text=order)
    directive = composed(story, items=[known])
    assert (directive.prompt.count(order), directive.knowledge) == (1, ())
    assert order in compose(State().apply_all(story.events), Story().past(), ASKED, "why").prompt


def test_each_address_that_is_gone_is_kept_away_from_after_a_second_change():
    story = Story()
    for address, hour in (("a@x", 0), ("b@x", 10), ("c@x", 20)):
        for later in range(1, 5):
            story.run(hour + later, mail(address, f"T{hour + later}"))
        gone = f"550 no such mailbox: {address}"
        story.run(hour + 5, mail(address, "One", status="FAILED"), status="FAILED", output=gone)
    assert [(one.fails, one.works) for one in lessons(story.past())] == [
        ('"a@x"', '"c@x"'),
        ('"b@x"', '"c@x"'),
        ('"c@x"', ""),
    ]


def test_a_failure_that_nothing_is_known_to_mend_is_tried_again_after_some_runs():
    story = Story()
    for hour in range(7):
        calls = [mail("a@x", f"T{hour}", status="FAILED")] if hour < 2 else []
        story.run(hour, *calls, status="FAILED" if calls else "COMPLETED")
        assert len(lessons(story.past())) == (1 <= hour < 6)


FAX = {"fax": "030-1", "patient": "Ann Weber"}


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        ("The line 030-1 does not exist.", ["fax"]),
        ("The fax 030-1 of Ann Weber does not exist.", ["fax"]),
        ("030-1 and Ann Weber do not fit.", []),
        ("030-1 timed out.", []),
        ("It did not work.", []),
    ],
)
def test_one_failure_teaches_only_what_its_error_names(error, blamed):
    past = Story().run(0, ("send", FAX, "FAILED"), status="FAILED", output=error).past()
    assert [one.argument for one in lessons(past)] == blamed


def test_the_fax_is_to_blame_and_not_the_patient_whose_other_fax_works():
    story = Story().run(0, ("send", FAX, "FAILED")).run(1, ("send", FAX, "FAILED"))
    assert lessons(story.past()) == []  # nothing tells which of the two it is
    story.run(2, ("send", {**FAX, "fax": "030-2"}, "SUCCEEDED"))
    assert lessons(story.past()) == [ArgumentLesson("send", "fax", '"030-1"', '"030-2"')]


def test_nobody_elses_fax_is_named_instead():
    story = Story()
    for hour in range(3):
        story.run(hour, ("send", {**FAX, "text": f"x{hour}"}, "FAILED"), output="no such fax: 030-1")
        story.run(hour, ("send", {"fax": "030-9", "patient": "Bob", "text": f"y{hour}"}, "SUCCEEDED"))
    assert lessons(story.past()) == [ArgumentLesson("send", "fax", '"030-1"')]


def test_two_failures_teach_nothing_of_an_argument_that_is_the_same_in_all_calls():
    story = Story()
    for hour, room in enumerate("abc"):
        story.run(hour, ("post", {"room": room, "sender": "me"}, "SUCCEEDED"))
    for hour in (4, 5):
        story.run(hour, ("post", {"room": "d", "sender": "me", "text": f"x{hour}"}, "FAILED"))
    assert [one.argument for one in lessons(story.past())] == ["room"]


def test_an_argument_that_is_another_in_each_call_explains_nothing():
    story = Story().run(0, ("post", {"room": "a", "body": "x"}, "FAILED"))
    for hour in range(1, 4):
        story.run(hour, ("post", {"room": "a", "body": f"y{hour}"}, "SUCCEEDED"))
    assert lessons(story.past()) == []


def test_a_failure_that_passes_by_itself_explains_nothing():
    story = Story().run(0, mail("a@x", "One", status="FAILED")).run(1, mail("a@x", "One"))
    assert lessons(story.past()) == []


def test_ten_runs_that_completed_are_a_milestone_once():
    story = Story()
    for hour in range(10):
        story.run(hour, mail("a@b", f"T{hour}"))
    assert [mark.sort for mark in composed(story).checkpoints] == ["milestone"]
    left = MemoryItem(id="n-1", kind="situation", text="x", detail=CheckpointDetail())
    assert composed(story, items=[left]).checkpoints == ()


def test_a_new_word_of_the_user_is_a_change_of_strategy():
    [mark] = composed(Story().run(0), why="user_instructions_changed at event 9").checkpoints
    assert (mark.sort, mark.text) == ("strategy_change", "The user said: Reddit too.")


def test_however_much_failed_it_fits_one_event():
    story = Story()
    for hour in range(5):
        calls = [
            (f"tool_{n}", {"to": to + "é" * 5_000, "n": hour}, status)
            for n in range(40)
            for to, status in (("a", "FAILED"), ("b", "SUCCEEDED"))
        ]
        story.run(hour, *calls)
    made = composed(story)
    assert made.knowledge
    assert made.checkpoints
    assert len(msgspec.json.encode(msgspec.structs.replace(made, prompt=""))) < 10_000
    assert len(made.prompt) < 40_000


def test_what_the_user_demands_is_left_to_stand_behind_the_prompt_without_its_why():
    rule = MemoryItem(id="c-1", kind="constraint", text="Never use MySQL")
    story = Story()
    story.add(Concluded(extractor="x", version=1, through=1, changes=(Add(rule),)), "", 0)
    said = ["Mail me the news. Never use MySQL, because it broke production. Never deploy."]
    prompt = compose(State().apply_all(story.events), story.past(), said, "x").prompt
    assert "- Mail me the news. Never deploy.\n" in prompt


def test_words_that_look_like_a_field_or_an_id_reach_no_template():
    directive = compose(State(), Story().past(), ["Use {{x}} as the name [c-3]."], "why")
    assert "{{x}}" not in directive.prompt
    assert "c-3" not in directive.prompt
