"""A cognitive agent without a model, message by message: what it tells of what it remembers."""

from unittest.mock import patch

import pytest

from agentx.cognition.agent import CognitiveAgent
from agentx.cognition.recall import DECLINED, UNSURE
from agentx.search.background_worker import SearchLate
from agentx.storage.events.cognition_events import Interacted
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.memory.items import Link, superseded_by
from agentx.workspace import Workspace


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "year") as ws:
        yield ws


def told(agent, *messages):
    return [agent.answer(message).text for message in messages][-1]


def test_of_two_memories_that_match_as_well_the_later_one_is_told(ws):
    answer = told(
        CognitiveAgent(ws),
        "The vet is Doctor Kaya.",
        "The vet is Doctor Salgado.",
        "Who is the vet?",
    )
    assert "Salgado" in answer
    assert "Kaya" not in answer


def test_a_memory_that_had_faded_stands_in_the_prompt_again_when_a_question_needs_it(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(decay_temperature=1.0, buffer_tokens=150))
    fill = [f"The lamp number {number} stands in room {number}." for number in range(12)]
    answer = told(agent, "My grandmother Celeste was born in Viana.", *fill, "Where was Celeste born?")
    assert "Viana" in answer


def test_a_question_after_two_things_is_answered_with_both(ws):
    told(
        CognitiveAgent(ws),
        "I live in Graz.",
        "I live above a bakery.",
        "I live with a dog.",
        "Dorota has a boat.",
    )
    answer = told(CognitiveAgent(ws), "Does Dorota live here?")
    assert "boat" in answer


def test_what_is_found_first_leads_on_to_what_the_question_does_not_name(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Milan lends us his van.", "Milan drives for a bakery in Maribor.", "Rita has a piano.")
    assert "Maribor" in told(agent, "In which town does the owner of the van work?")


def test_a_rule_is_told_that_is_asked_for(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Never suggest dog food with chicken.", "I live in Graz.")
    assert "chicken" in told(agent, "Which food is bad for the dog?")


YEAR = (
    ("2026-01-05T08:00:00Z", "The rent of the flat is 1,450 a month."),
    ("2026-01-05T08:05:00Z", "The dentist is called Doctor Kaya."),
    ("2026-03-02T09:00:00Z", "I raised the rent of the flat to 1,600 a month."),
)


def played(agent, lines, *questions):
    """Return the answers to questions after lines that were said at their times."""
    for at, line in lines:
        with patch(
            "agentx.storage.events.codec.stamp", lambda _at=None, fixed=at: fixed.replace("Z", ".000000Z")
        ):
            agent.answer(line)
    return [agent.answer(question).text for question in questions]


def test_a_changed_fact_is_told_as_it_is_now_and_asked_for_the_past_as_it_was(ws):
    now, before = played(
        CognitiveAgent(ws), YEAR, "What is the rent of the flat?", "What was the rent of the flat before?"
    )
    assert "1,600" in now
    assert "1,450" not in now
    assert "1,450" in before
    assert "1,600" not in before


def test_what_is_outdated_is_recorded_so_that_a_replay_needs_no_vectors(ws):
    played(CognitiveAgent(ws), YEAR)
    digest = ws.state.digest
    ws.engine.indexer.embedder = lambda **_: None
    assert ws.rebuild().state_digest == digest
    old = next(one for one in ws.state.items.values() if "1,450" in one.text and superseded_by(one))
    new = ws.state.items[superseded_by(old)]
    assert "1,600" in new.text
    assert old.detail.valid_to.startswith("2026-03-02T09:00")


def test_words_of_a_tool_or_a_quoted_page_outdate_nothing(ws):
    page = "Here is the page:\n\n> The rent of the flat goes up to 9,999 a month from now on.\n\nNice, is it?"
    (answer,) = played(
        CognitiveAgent(ws), [*YEAR, ("2026-03-03T09:00:00Z", page)], "What is the rent of the flat?"
    )
    assert "1,600" in answer
    assert "9,999" not in answer


def test_a_correction_changes_the_next_answer(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Anna lives in Oslo.", "Where does Anna live?", "No, in Rome.")
    answer = told(agent, "Where does Anna live?")
    assert "Rome" in answer
    assert "Oslo" not in answer


def test_a_rejected_answer_is_not_given_again_until_it_is_told_again(ws):
    agent = CognitiveAgent(ws)
    asked = "Who is the vet?"
    told(agent, "The vet is Doctor Kaya.", asked, "No, that's wrong.")
    assert told(agent, asked) == DECLINED
    assert "Kaya" in told(agent, "The vet is Doctor Kaya, after all.", asked)


def test_no_after_a_statement_states(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Wen has the ticket.", "No, hang on, Patrick has the ticket.")
    assert "Patrick" in told(agent, "Who has the ticket?")


def vet_and_dog(agent):
    told(agent, "The vet is Doctor Kaya, 01632 960 377.", "I live in Graz with my dog Bruno.")


@pytest.mark.parametrize("asked", ["Who is the baker?", "When does Miriam visit?"])
def test_a_question_on_what_was_never_told_is_declined(ws, asked):
    agent = CognitiveAgent(ws)
    vet_and_dog(agent)
    assert told(agent, asked) == DECLINED


@pytest.mark.parametrize(
    "asked", ["What is Kaya's first name?", "How old is the vet?", "What does the vet cost?"]
)
def test_a_question_for_what_was_not_told_of_a_known_thing_is_answered_with_reserve(ws, asked):
    agent = CognitiveAgent(ws)
    vet_and_dog(agent)
    assert told(agent, asked).startswith(UNSURE)


def test_one_memory_is_enough_for_a_good_judgement(ws):
    agent = CognitiveAgent(ws)
    told(agent, "The vet is Doctor Kaya.", "Who is the vet?")
    *_, done = (event.data for event in ws.events() if isinstance(event.data, Interacted))
    assert done.judge > 0.7


def test_a_message_is_told_with_what_its_sentences_lean_on(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Dennis has room 2. He pays 880 a month.", "Hannah pays 1,450 a month.", "It rains.")
    assert "Dennis has room 2. He pays 880 a month." in told(agent, "What does Dennis pay?")


def test_several_messages_are_told_with_their_dates_oldest_first(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Ben paints boats in Faro.", "Ines collects old maps.", "My sister's dog is called Rex.")
    answer = told(agent, "What do Ben and Ines do?").splitlines()
    assert answer[0] in ("I remember:", UNSURE)
    assert [line.partition(": ")[2] for line in answer[1:]] == [
        "Ben paints boats in Faro.",
        "Ines collects old maps.",
    ]
    assert answer[1].startswith("- 2")


def test_a_list_in_one_message_stays_whole(ws):
    agent = CognitiveAgent(ws)
    days = "Saoirse is going down to 3 days a week from August: Monday, Tuesday, Thursday."
    assert days in told(agent, days, "Which days will Saoirse be in from August?")


def test_what_was_asked_is_not_told_as_remembered(ws):
    agent = CognitiveAgent(ws)
    answer = told(
        agent, "Practice is in the bunker.", "what time do we rehearse thursdays", "what time do we rehearse"
    )
    assert "thursdays" not in answer


def test_a_former_value_beside_the_present_one_is_left_out(ws):
    agent = CognitiveAgent(ws)
    told(agent, "The build takes 6 minutes instead of 19.")
    assert told(agent, "How long does the build take?") == "I remember: The build takes 6 minutes."


@pytest.mark.parametrize(("threshold", "fetched"), [(0.0, True), (1.0, False)])
def test_the_threshold_of_uncertainty_counts_without_a_model(ws, threshold, fetched):
    agent = CognitiveAgent(ws, ExecutorConfig(uncertainty_threshold=threshold))
    told(agent, "The vet is Doctor Kaya.", "Who is the vet, and who is the baker?")
    assert (agent.last_metrics.activator_trigger_count > 0) == fetched


def test_what_is_missing_is_searched_for(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(uncertainty_threshold=0.0))
    told(agent, "The vet is Doctor Kaya.", "Who is the vet, and who is the baker?")
    *_, done = (event.data for event in ws.events() if isinstance(event.data, Interacted))
    assert '"text":"baker"' in ws.read_body(done.snapshot)


def test_what_is_known_and_what_happened_are_linked_across_messages_on_a_topic(ws):
    agent = CognitiveAgent(ws)
    told(agent, "The Skoda is a blue estate car.", "I drove the Skoda to Graz yesterday.", "Ines sings.")
    items = {item.text: item for item in ws.state.items.values()}
    known, happened = items["The Skoda is a blue estate car."], items["I drove the Skoda to Graz yesterday."]
    assert Link("tells_of", known.id) in happened.links
    assert Link("happened_in", happened.id) in known.links
    assert agent.last_metrics.memory_link_stats["total"] == 2
    assert ws.rebuild().state_digest == ws.status().digest


@pytest.mark.parametrize(
    ("told_before", "asked", "blame", "instead"),
    [
        (
            ["My mother lives in Aarhus and my father lives in Ribe."],
            "Where does my father live?",
            "No, in Varde.",
            "Varde",
        ),
        (["The bakery opens at 7 and closes at 17."], "When does the bakery close?", "No, at 18.", "18"),
        (["Jon plays the cello."], "What does Jon play?", "No, the viola.", "viola"),
        (["Mette lives in Vejle."], "Where does Mette work?", "No, in Kolding.", "Kolding"),
    ],
)
def test_a_correction_that_fits_no_single_value_is_told_in_its_own_words(
    ws, told_before, asked, blame, instead
):
    agent = CognitiveAgent(ws)
    told(agent, *told_before, asked, blame)
    assert instead in told(agent, asked)
    standing = [item.text for item in ws.memory("knowledge") if item.text.startswith(told_before[0][:4])]
    assert told_before[0] in standing or instead == "viola", "nothing that was told is rewritten"


def test_blame_alone_gives_no_answer(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Jon plays the cello.", "What does Jon play?", "No, that's wrong.")
    assert told(agent, "What does Jon play?") == DECLINED


def test_a_search_that_is_late_is_a_fault_and_the_buffer_still_answers(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(max_thinking_iterations=0))
    told(agent, "The vet is Doctor Kaya.")
    with patch.object(ws.engine, "search", side_effect=SearchLate("The search is late.")):
        assert told(agent, "Who is the vet?") == "I remember: The vet is Doctor Kaya."
    assert agent.last_metrics.faults == ["The search is late."]
