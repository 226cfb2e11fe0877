"""Which earlier memories a message makes untrue, by rules alone: what changes, and what only looks alike."""

import pytest

from agentx.storage.events.cognition_events import Extracted
from agentx.synthesis.cognition.recognizer import extract
from agentx.synthesis.facts.supersession import Known, outdated, remaining
from agentx.synthesis.language.words import content_words

AT = "2026-02-17T09:00:00Z"


def like(one, other):
    """Return a likeness that needs no model: the share of words that both have."""
    mine, theirs = content_words(one), content_words(other)
    return len(mine & theirs) / max(1, min(len(mine), len(theirs)))


def ended(*told, compare=like):
    """Return the texts that the last message outdates, with what stays true of each."""
    *before, message = told
    known = [Known(f"k-{seq}", one.text, seq) for seq, text in enumerate(before, 1) for one in extract(text)]
    found = outdated(extract(message), message, known, compare, AT)
    texts = {one.id: one.text for one in known}
    return {texts[one.memory]: one.rest for one in found.outdated}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The rent of the flat is 1,450 a month.", "I raised the rent of the flat to 1,600 a month."),
        ("Dad takes 5 mg of bisoprolol.", "Dad's dose of bisoprolol was doubled to 10 mg."),
        ("The choir concert is on 9 May.", "The choir concert has been moved to 16 May."),
        ("The bus to work leaves at 7:40.", "The bus to work now leaves at 7:25."),
        ("My phone number is 0171 5550101.", "I have a new phone number, 0151 2220303."),
        ("I drive a red Skoda.", "I sold the Skoda and drive a blue Yaris now."),
        ("Marta does the books.", "Marta left, Jonas does the books now."),
    ],
)
@pytest.mark.parametrize("compare", [like, lambda one, other: None], ids=["meanings", "words"])
def test_a_changed_fact_is_outdated(before, after, compare):
    assert before in ended(before, "The garden has two apple trees.", after, compare=compare)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Anna pays 720 a month for her flat.", "Ben pays 900 a month for his flat now."),
        ("Flat 2 costs 880 a month.", "Flat 3 goes up to 1,600 a month."),
        ("The Skoda needs 6 litres of petrol.", "The Yaris now needs 5 litres of petrol."),
        ("Mum takes 2 mg of bisoprolol.", "Dad's dose of bisoprolol was doubled to 10 mg."),
        ("I weigh 82 kilos.", "My sister weighs 64 kilos now."),
        ("The rent of the flat is 1,450 a month.", "I'm thinking of raising the rent of the flat to 1,600."),
        ("The rent of the flat is 1,450 a month.", "In 2019 the rent of the flat was only 1,200 a month."),
        ("The train back leaves at 17:12.", "The last train back now leaves at 23:50."),
        ("The rent of the flat is 1,450 a month.", "The rent of the flat is still due on the 3rd."),
        ("Marta does the books.", "Marta left early today."),
        ("The plumber's number is 0221 778899.", "The electrician's number is now 0221 445566."),
        ("Grandma takes 50 mg of thyroxine.", "Grandma's sister takes 75 mg of thyroxine now."),
        ("Emil plays chess on Fridays.", "Emil also plays chess on Mondays now."),
        ("The vet gave Luna 20 mg of the antibiotic.", "The dog next door gets 15 mg of the antibiotic now."),
    ],
)
@pytest.mark.parametrize("compare", [like, lambda one, other: None], ids=["meanings", "words"])
def test_what_only_looks_alike_outdates_nothing(before, after, compare):
    assert ended(before, after, compare=compare) == {}


def test_only_the_changed_part_of_a_sentence_is_outdated():
    before = "Dennis has been in the flat since 2019 and pays 880 a month."
    after = "I raised the rent of Dennis to 900 a month for the flat."
    assert ended(before, after) == {before: "Dennis has been in the flat since 2019."}
    assert remaining("They have two sons and pay 950 a month.", "They moved to Rome.") == ""


def test_a_contrast_puts_the_new_words_in_place_of_the_former():
    before = "The tour in August goes to Dresden, Brno, Vienna."
    after = "Something changed on the tour. Brno fell through, Bratislava instead."
    assert ended(before, after) == {before: "The tour in August goes to Dresden, Bratislava, Vienna."}
    eye = "There is a cataract in the right eye."
    assert ended(eye, "It isn't the right eye, it's the left.") == {
        eye: "There is a cataract in the left eye."
    }


def test_a_correction_without_a_subject_completes_the_statement_before_it():
    said = "The dentist is on Monday at 9."
    known = [Known("k-1", "The dog is called Rex.", 1), Known("k-2", said, 2)]
    found = outdated((), "No, I meant Tuesday.", known, like, AT)
    assert [one.text for one in found.memories] == ["The dentist is on Tuesday at 9."]
    assert [(one.memory, one.by, one.rest) for one in found.outdated] == [("k-2", 0, "")]


def test_a_denial_that_has_no_value_corrects_nothing():
    known = [Known("k-1", "The dentist is on Monday at 9.", 1)]
    memories = (Extracted("L2", "No, that is not what I said at all.", 0, 35),)
    assert outdated(memories, "No, that is not what I said at all.", known, like, AT).outdated == ()


def test_a_date_from_which_on_something_is_so_is_recorded():
    known = [Known("k-1", "The rent of the flat is 1,450 a month.", 1)]
    message = "From 1 April the rent of the flat goes up to 1,600 a month."
    (one,) = outdated(extract(message), message, known, like, AT).outdated
    assert one.since == "2026-04-01"


def test_what_a_pronoun_refers_to_is_in_the_message_before():
    before = "Our biggest customer is Norled. They pay 8,400 euros a month."
    talk = (before, "We talked about the renewal with Norled.", "They pushed us down to 7,900 euros a month.")
    assert "They pay 8,400 euros a month." in ended(*talk)
