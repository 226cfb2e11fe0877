"""Whether an answer brings up again what was ruled out, and whether a command does it."""

import pytest

from agentx.synthesis.gates.action_relevance import carries_out, suggests


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


@pytest.mark.parametrize(
    ("idea", "command"),
    [
        ("yarn", "sudo yarn build"),
        ("yarn", "./node_modules/.bin/yarn add x"),
        ("yarn", "bash -c 'yarn'"),
        ("force pushes", "git push -f"),
        ("pushing to main", "git push origin main"),
        ("docker compose", "docker compose up -d"),
        ("Redis", "pip install redis"),
        ("--no-verify", "git commit --no-verify"),
    ],
)
def test_a_command_carries_out_what_its_program_and_options_say(idea, command):
    assert carries_out(idea, command)


@pytest.mark.parametrize(
    ("idea", "command"),
    [
        ("yarn", "rm yarn.lock"),
        ("yarn", "git commit -m 'drop yarn'"),
        ("yarn", "yarn --version"),
        ("yarn", "npm uninstall yarn"),
        ("yarn", "git checkout yarn"),
        ("force pushes", "git push origin main"),
        ("verify", "git commit --no-verify"),
        ("docker", "docker info"),
        ("Redis for caching", "pip install redis"),
        ("npm install", "npm test"),
    ],
)
def test_a_command_that_is_near_an_idea_does_not_carry_it_out(idea, command):
    assert not carries_out(idea, command)
