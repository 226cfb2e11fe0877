"""Whether an answer brings up again what was ruled out: what proposes it, and what only tells of it."""

import pytest

from agentx.synthesis.gates.action_relevance import suggests


@pytest.mark.parametrize(
    ("idea", "answer"),
    [
        ("Pop-ups", "You could show a pop-up after half a minute."),
        ("A pop-up", "Readers leave early. How about pop-ups at the end of the page?"),
        ("Redis", "I'd put the sessions into Redis."),
        ("Redis", "I added Redis for the sessions; the tests pass."),
        ("Blue-green deployments", "There are two ways:\n\n1. Blue-green deployments\n2. A maintenance page"),
        ("Carousels: nobody waits for the second picture", "You could show the news in a carousel."),
        ("Friday deploys", "Let's deploy on Friday."),
    ],
)
def test_an_answer_brings_an_idea_up(idea, answer):
    assert suggests(idea, answer)


@pytest.mark.parametrize(
    ("idea", "answer"),
    [
        ("Pop-ups", "You ruled pop-ups out, so I would put a line below the programme."),
        ("Pop-ups", "I would not show a pop-up."),
        ("Pop-ups", "We could use a form in the footer instead of a pop-up."),
        ("Redis", "The old service kept its sessions in Redis until March."),
        ("Redis", "I removed Redis, and would keep the sessions in SQLite."),
        (
            "Blue-green deployments",
            "You could read about deployments in docs/deploy.md.\nThe green button starts them.",
        ),
        ("the", "We could do the same again."),
        ("", "We could do the same again."),
    ],
)
def test_an_answer_that_tells_of_an_idea_or_of_something_else_is_let_be(idea, answer):
    assert not suggests(idea, answer)
