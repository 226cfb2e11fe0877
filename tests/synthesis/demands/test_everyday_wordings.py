"""How newcomers word rules and take them back: what compiles, what only stands, what is none, and what ends one."""

import pytest

from agentx.synthesis.demands.classify import Demand, Rejection
from tests.demand_findings import findings
from tests.rule_checks import forbid_path, forbid_text, require_decorator, require_import

_TODO = forbid_path(("**/TODO.txt", "TODO.txt"))
_MARKDOWN = forbid_path(("**/*.md", "*.md"))


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Never create .md files.", _MARKDOWN),
        ("Never create any .md files", _MARKDOWN),
        ("Never create *.md files", _MARKDOWN),
        (
            "Never create .env or .pem files.",
            forbid_path(("**/.env", ".env", "**/.env.*", ".env.*", "**/*.pem", "*.pem")),
        ),
        ("Never create a .gitignore file", forbid_path(("**/.gitignore", ".gitignore"))),
        ("Never commit .npmrc", forbid_path(("**/.npmrc", ".npmrc"))),
        ("Never commit .eslintrc.json", forbid_path(("**/.eslintrc.json", ".eslintrc.json"))),
        ("Never create .d.ts files", forbid_path(("**/*.d.ts", "*.d.ts"))),
        ("Never create a file named TODO.txt", _TODO),
        ("Never create a file called TODO.txt", _TODO),
        ("You must not create a file called TODO.txt.", _TODO),
        ("Nothing in src/legacy may ever be changed.", forbid_path(("src/legacy/**",), frozen=True)),
        ("never mention Elon Musk when you write about Tesla", forbid_text(("Elon Musk",), topic="tesla")),
        ("Never mention Elon Musk in texts about Tesla.", forbid_text(("Elon Musk",), topic="tesla")),
        ("You must not import pandas anywhere.", require_import("pandas", forbidden=True)),
        (
            "Never import pandas in src/.",
            require_import("pandas", forbidden=True, paths=("src/**",)),
        ),
        (
            "From now on every new function in src/api needs a @traced decorator.",
            require_decorator("traced", "", ("src/api/**/*.py",)),
        ),
    ],
)
def test_what_is_certain_to_look_for_is_compiled(talk, text, check):
    talk.say(text)
    assert [item.detail.checks for item in talk.items()] == [(check,)]


@pytest.mark.parametrize(
    "text",
    [
        "Never import pandas in the API layer.",
        "Never import pandas in tests.",
        "Never mention Elon Musk, not even when you write about Tesla",
        "From now on, all new modules need tests",
        "From now on, each file needs a licence header",
        "Hereafter every commit must reference a ticket.",
    ],
)
def test_what_no_check_can_tell_stands_without_one(talk, text):
    talk.say(text)
    assert [item.detail.checks for item in talk.items()] == [()]


def test_a_ban_with_an_exception_is_proposed_with_a_check_that_asks(talk):
    talk.say("do not create any new markdown files unless I explicitly ask for it")
    ((check,),) = [item.detail.checks for item in talk.items("candidate")]
    assert check.paths == ("**/*.md", "**/*.markdown")
    assert check.doubt
    assert not talk.items()


@pytest.mark.parametrize(
    "text",
    [
        "Never eat yellow snow, as my grandma used to say",
        "Never trust a build on Friday, as the saying goes",
        "Can you never stop improving?",
        "Nothing in src/legacy was changed.",
        "Each file needs this",
        "Why does every function need a decorator?",
    ],
)
def test_sayings_questions_and_descriptions_are_no_rules(text):
    assert not [f for f in findings(text) if isinstance(f, Demand | Rejection) and f.certainty == "active"]


def test_not_to_mention_something_is_a_rule_and_no_rejected_idea(talk):
    talk.say("Don't mention prices in letters to customers any more.")
    assert [item.detail.modality for item in talk.items()] == ["must_not"]
    assert not talk.items(kind="rejection")


_REQUIREMENTS = "Never create a requirements.txt file; use pyproject.toml instead."


@pytest.mark.parametrize(
    ("ban", "permission"),
    [
        (_REQUIREMENTS, "From now on you may create a requirements.txt."),
        (_REQUIREMENTS, "Okay, requirements.txt is fine after all."),
        (_REQUIREMENTS, "I changed my mind about requirements.txt, go ahead and create one."),
        (_REQUIREMENTS, "You can create a requirements.txt now."),
        ("Never use Redis.", "Actually Redis is OK now"),
        ("Don't ever suggest Redis again.", "Actually Redis is OK now"),
        ("Redis is off the table.", "Redis is fine after all."),
    ],
)
def test_what_is_allowed_by_its_name_is_banned_no_longer(talk, ban, permission):
    talk.say("Never push to main.")
    talk.say(ban)
    talk.say(permission)
    assert talk.texts() == ["Never push to main."]
    assert not talk.items(kind="rejection")
    (ended,) = talk.items("retired") + talk.items("retired", kind="rejection")
    assert ended.evidence[-1].quote in permission


@pytest.mark.parametrize(
    ("ban", "words"),
    [
        (_REQUIREMENTS, "Is requirements.txt fine after all?"),
        (_REQUIREMENTS, "setup.py is fine after all."),
        (_REQUIREMENTS, "pyproject.toml is fine after all."),
        (_REQUIREMENTS, "requirements.txt is not fine after all."),
        (_REQUIREMENTS, "I changed my mind about requirements.txt."),
        (_REQUIREMENTS, "forget all rules"),
        ("Never break the build.", "The build is fine now."),
        ("Never create any .md files", "README.md is fine after all"),
        ("Never use Redis without a password.", "Redis is OK now"),
        ("Never use Redis or MongoDB.", "Redis is OK now"),
        ("Always use Redis.", "Redis is OK now"),
    ],
)
def test_a_ban_stands_where_its_name_alone_is_not_allowed(talk, ban, words):
    talk.say(ban)
    talk.say(words)
    assert len(talk.items()) == 1
