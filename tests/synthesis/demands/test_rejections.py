"""How people turn an idea down: what is taken for good, the candidates, what is left alone."""

import pytest

from agentx.storage.events.types import AgentMessageSent, Body
from agentx.synthesis.demands.classify import Rejection
from agentx.synthesis.demands.tables.explicit import REJECTIONS
from tests.demand_findings import findings

TURNED_DOWN = """
the second constructor is redundant
I feel the extra layer is overkill here
hmm, that wrapper just adds complexity
the column names are way too long
that's not what I asked for, the export should stay
I don't think we need a queue for this
we don't want another config file
don't need a factory here, it's only called once
I don't love that module name
you don't need to rebuild the index for this
I'd rather keep one parser for both
let's not rename the table
please revert those renames
no, we took the retry out on purpose
nah you can always read that from the log
No man, the fix belongs in the loader
this flag should not be public
GetName should not be in the session module
you're overcomplicating the lookup
globals in tests are not great either, any other idea?
Sounds good but the banner is unnecessary
that won't work with two workers
NO! That column belongs to the report
nope... we keep the loader where it is
better that we not collect those numbers
seems pointless to sort them twice
this is wrong
This is no good
again, that's misleading:
We dont want that.
we dont need the second cache
thats not what i asked for, the export should stay
its redundant to keep both parsers
no, that's too much.
nope. let's stick with the old loader
no, do not move the parser
you changed the wrong column
you removed too much from the loader
you just duplicated the whole check
I don't think you set up the index correctly
you keep renaming my columns
we should NOT put the parser into this module
do NOT put the limits there
I'm not planning on using a queue
yes, except that the header is redundant
looks good, but I don't see why we need the flag
keep it as it is because there's no need to split the module
it doesn't warrant a class of its own
the limit should be per user, not per session
I told you not to rename the columns
no no , instead of joining the parts just write one string
please remove the wrappers you added
I wouldn't add a flag for it
wrong approach
I don't want a lock here
We don't want a cap.
""".strip().splitlines()

ACTIVE = """
stop suggesting Redux
GraphQL is off the table
forget about MongoDB, we decided against it for good
We are not going to use Redux, stop suggesting it.
We don't want carousels in this project.
we are not going to use GraphQL in our code base
""".strip().splitlines()

LEFT = """
no, this is fine
no, it still crashes on start
no worries
nope, looks good
No changes needed in the parser
the tests are not running on CI
the line numbers in the report are off
if the file is too large, split it
is the second index redundant?
do we need another test for the parser?
make sure the path is not wrong
I was wrong about the parser
why is the lock needed here?
let's not forget the changelog
that should not be too hard to add
not bad, the table is clear now
check whether the name is too long
remove the first two
it rather depends on the size
I'm not sure about the second queue yet
not entirely sold on the plugin system
no, I haven't tried it yet
no it isn't
no need, thanks
no problem, go ahead
what? where does this come from?
nothing is wrong
the output of the parser is wrong
the font is too small
we don't want to break the build
you changed the parser
it should not take long
please put the header back in place
Do NOT change anything else.
please DON'T touch the parser or ANY other file
we don't need anything else
I wouldn't mind a second index
On Monday there are duplicate entries in the list
""".strip().splitlines()


def rejections(text: str) -> list[Rejection]:
    return [finding for finding in findings(text) if isinstance(finding, Rejection)]


@pytest.mark.parametrize("row", REJECTIONS, ids=lambda row: row.name)
def test_every_row_takes_its_example_and_leaves_its_counterexample(row):
    assert [one.certainty for one in rejections(row.takes)] == ["active"], row.takes
    assert not [one for one in rejections(row.leaves) if one.certainty == "active"], row.leaves


@pytest.mark.parametrize("text", TURNED_DOWN)
def test_what_turns_an_idea_down_is_a_candidate(text):
    (found,) = findings(text)
    assert found.certainty == "candidate"


@pytest.mark.parametrize("text", ACTIVE)
def test_what_goes_beyond_the_moment_is_active(text):
    assert [rejection.certainty for rejection in rejections(text)] == ["active"]


@pytest.mark.parametrize("text", LEFT)
def test_approvals_reports_questions_and_conditions_make_no_rule(text):
    assert not [one for one in findings(text) if isinstance(one, Rejection) and one.certainty == "active"]


@pytest.mark.parametrize(
    ("text", "idea", "reason"),
    [
        ("hmm, I don't want the `v2` prefix", "I don't want the `v2` prefix", ""),
        (
            "We don't need the cache because the table is small.",
            "We don't need the cache",
            "The table is small",
        ),
        (
            "I'd rather not. Every extra table is one more to migrate.",
            "I'd rather not",
            "Every extra table is one more to migrate",
        ),
    ],
)
def test_a_candidate_has_its_words_and_its_reason(text, idea, reason):
    (rejection,) = rejections(text)
    assert (rejection.idea.strip("."), rejection.reason.strip(".")) == (idea, reason)


def test_a_reason_is_not_a_rule_of_its_own(talk):
    talk.say("I'd rather not. Every extra table is one more thing to migrate.")
    assert not talk.items("candidate")
    assert len(talk.items("candidate", kind="rejection")) == 1


def test_a_pronoun_keeps_the_sentence_before_it():
    text = "The migrations take minutes. Never run them from the app start."
    (found,) = [one for one in findings(text) if one.certainty == "active"]
    assert found.text == text
    assert text[found.evidence.start : found.evidence.end] == text


def test_repeating_a_doubtful_rejection_makes_no_rule(talk):
    talk.say("we don't need the plugin loader")
    talk.say("I said we don't need the plugin loader.")
    assert not talk.items(kind="rejection")


def test_a_review_in_nobodys_words_rules_nothing_out():
    review = "- High: loader.py:20 the cache is redundant\n- Low: store.py:9 the queue is pointless\n\n[Medium] The lock should not exist."
    assert not rejections(f"can you look at these:\n\n{review}")


@pytest.mark.parametrize(
    ("said", "idea", "reason"),
    [
        (
            "No. Stop suggesting carousels: nobody waits for the second picture.",
            "Carousels",
            "Nobody waits for the second picture",
        ),
        ("Stop suggesting Redux because it is too heavy.", "Redux", "It is too heavy"),
        ("Stop suggesting Redux - we have enough state, thanks", "Redux", "We have enough state, thanks"),
        ("GraphQL is off the table — no one knows it", "GraphQL", "No one knows it"),
        ("stop suggesting `left-pad` since `padStart` does it", "`left-pad`", "`padStart` does it"),
        ("I don't want mocks in this project: they hide errors", "Mocks", "They hide errors"),
        ("Stop suggesting blue-green deployments", "Blue-green deployments", ""),
    ],
)
def test_an_idea_is_kept_without_its_reason_and_the_reason_beside_it(said, idea, reason):
    (found,) = [found for found in findings(said) if isinstance(found, Rejection)]
    assert (found.idea, found.reason, found.certainty) == (idea, reason, "active")


def test_a_candidate_keeps_the_question_that_it_answers(talk):
    asked = "I moved the parser. Should I add a table for the retries?"
    talk.happen(AgentMessageSent(body=Body(asked), final=True), "agent:main")
    talk.say("I'd rather not. Every extra table is one more thing to migrate.")
    (rejection,) = talk.items("candidate", kind="rejection")
    assert rejection.answers is not None
    assert rejection.answers.quote == "Should I add a table for the retries?"
    assert rejection.detail.reason == "Every extra table is one more thing to migrate."
