"""Functions of a program as tools: what the same call is, when a process ended in the middle of it."""

import pytest

from agentx.policy.unknown_outcomes import settle, unknown
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, RunEnded, RunStarted
from agentx.tools.functions import FunctionTools


@pytest.fixture
def mail(ws):
    """Make the tools of a run; what was sent is noted with its key, and ``crash`` ends the process behind it."""
    sent = []

    def make(run, *, crash=False):
        def send(to: str, *, idempotency_key: str) -> str:
            sent.append((to, idempotency_key))
            if crash:
                raise SystemExit
            return "sent"

        ws.record(
            Draft(data=RunStarted(task=ws.body("Mail"), agent="main", model="m"), actor="agent:main", run=run)
        )
        tools = FunctionTools(ws.engine, {"send": send}, run=run)

        def call(to):
            return tools.call("send", {"to": to}, call_id=f"{run}-{len(sent) + 1}")

        return call

    make.sent = sent
    make.end = lambda run: ws.record(Draft(data=RunEnded(status="INTERRUPTED"), actor="x", run=run))
    return make


def test_a_call_that_was_cut_off_has_the_same_key_when_it_is_tried_again_and_another_once_that_is_settled(
    ws, mail
):
    with pytest.raises(SystemExit):
        mail("r-1", crash=True)("pat")
    mail.end("r-1")
    assert [call.tool for call in unknown(ws.engine)] == ["send"]
    again = mail("r-2")
    assert again("sam").status == again("pat").status == again("pat").status == "SUCCEEDED"
    first, other, second, third = (key for _, key in mail.sent)
    assert first == second
    assert len({first, other, third}) == 3
    assert (unknown(ws.engine), ws.state.pending) == ([], {})


def test_it_is_the_same_in_the_same_run_when_that_goes_on(mail):
    with pytest.raises(SystemExit):
        mail("r-1", crash=True)("pat")
    mail("r-1")("pat")
    (_, first), (_, second) = mail.sent
    assert first == second


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_person_who_looked_says_what_came_of_it(ws, mail, succeeded):
    with pytest.raises(SystemExit):
        mail("r-1", crash=True)("pat")
    with pytest.raises(UsageError, match="No call 'r-1-1' has an unknown outcome"):
        settle(ws.engine, "r-1-1", succeeded=succeeded)  # the run is at work as far as anybody knows
    mail.end("r-1")
    event = settle(ws.engine, "r-1-1", succeeded=succeeded, reason="It is in the outbox.")
    assert event.data.status == ("SUCCEEDED" if succeeded else "FAILED")
    assert (event.run, event.actor.partition(":")[0]) == ("r-1", "user")
    assert event.data.output.text.endswith("through. It is in the outbox.")
    assert unknown(ws.engine) == []
