"""The buffer: what was found for a question, ranked by more than its words, and cut to what tells something."""

import pytest

from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.synthesis.cognition.curation import Activation, RetrievedMemory, activate, curate, line, rank
from agentx.synthesis.cognition.expansion import FOUND, QueryGraph, SubQuery, deepen, expand
from agentx.synthesis.cognition.informative_sentences import Rarity, information, sentences
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.recall.retrieval import retrieve

TALK = [
    ("Ann", "Hey Bob! I spent the whole weekend in the pottery studio. How are you?"),
    ("Bob", "That sounds great, Ann! Pottery is such a good hobby, Ann."),
    ("Ann", "Thanks! The kiln there fires at twelve hundred degrees."),
    ("Bob", "Ann, you have so many hobbies! What other hobby do you have, Ann?"),
    ("Ann", "On Sundays I go climbing with my cousin."),
    ("Bob", "I collect stamps from Portugal."),
    ("Ann", "The kiln broke down, so the glaze of my teapot cracked."),
]


@pytest.fixture(scope="module")
def search():
    """A search over the talk, by words; it remembers what it was asked for."""
    index = InMemoryIndex()
    index.put(
        [
            Chunk(
                id=f"m:{n}:0",
                kind="message",
                text=text,
                context=by,
                actor=f"user:{by}",
                seq=n,
                at=f"day {n // 4}",
            )
            for n, (by, text) in enumerate(TALK, 1)
        ]
    )
    asked = []

    def find(query, k):
        asked.append(query)
        return [
            RetrievedMemory(
                id=hit.id, text=hit.text, score=hit.score, by=hit.actor[5:], session=hit.at, place=hit.seq
            )
            for hit in retrieve(index, query.text, None, k, Filter())
        ]

    find.asked = asked
    return find


def found(name, text="A plain remark.", score=0.5, **fields):
    return RetrievedMemory(id=name, text=text, score=score, **fields)


def ids(memories):
    return [memory.id for memory in memories]


def test_what_a_person_said_comes_before_what_was_said_to_them(search):
    question = "Is pottery what Ann does?"
    graph = expand(question, ["Ann", "Bob"])
    assert search(graph.nodes[0], 9)[0].by == "Bob", "he alone says the name"
    assert activate(graph, search, "Ann").ranked[0].by == "Ann"
    said, heard = found("a", score=0.7, by="Ann"), found("b", score=1.0, by="Bob")
    assert ids(rank([heard, said], "Ann")) == ["a", "b"]
    assert ids(rank([heard, said])) == ["b", "a"]


def test_the_second_hop_finds_what_shares_no_word_with_the_question_and_searches_nothing_again(search):
    graph = expand("Where was Ann on the weekend?", ["Ann", "Bob"])
    first = activate(graph, search, "Ann")
    assert "m:2:0" not in {hit.id for hit in first.results["asked"]}
    search.asked.clear()
    second = activate(deepen(graph), search, "Ann", before=first)
    (hop,) = search.asked
    assert hop.id == FOUND
    assert hop.text == "I spent the whole weekend in the pottery studio. Hey Bob!"
    assert "m:2:0" in ids(second.results[FOUND])
    assert set(ids(first.ranked)) <= set(ids(second.ranked))


def test_a_sub_query_with_words_of_its_own_keeps_them_beside_what_others_found(search):
    search.asked.clear()
    nodes = [SubQuery(id="b", text="broken", needs=("a",)), SubQuery(id="a", text="pottery studio")]
    activate(QueryGraph.of(nodes), search)
    assert search.asked[1].text == "broken I spent the whole weekend in the pottery studio. Hey Bob!"


def test_neighbours_and_sessions_of_what_matches_are_lifted_and_what_says_nothing_falls_behind():
    match = found("m", score=1.0, place=4, session="s")
    beside, together, apart = found("z1", place=5), found("y", place=9, session="s"), found("a", place=20)
    assert ids(rank([apart, together, beside, match]))[-1] == "a"
    telling = found("z", "I moved from Lisbon to a lighthouse in Norway.")
    assert (
        ids(rank([found("a", "Nice!"), telling, *(found(f"b{n}", "So nice!") for n in range(7))]))[0] == "z"
    )
    assert rank([]) == []
    assert activate(QueryGraph(), lambda *_: ()) == Activation()


def test_the_order_is_total_and_does_not_depend_on_the_order_of_the_search():
    memories = [found(name, score=0.25) for name in "dbca"]
    assert ids(rank(memories)) == ids(rank(memories[::-1])) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("budget", [0, 15, 40, 90, 1_000])
def test_the_buffer_never_takes_more_than_its_budget_and_says_nothing_twice(search, budget):
    ranked = activate(expand("What did Ann do in the pottery studio?", ["Ann"]), search, "Ann").ranked
    kept = curate([*ranked, msg_copy(ranked[0])], "pottery", budget)
    assert sum(count_tokens(line(one.memory, one.text)) for one in kept) <= budget
    assert len({one.text for one in kept}) == len(kept)
    if budget == 1_000:
        assert len(kept) == len(ranked)


def msg_copy(memory):
    return found("copy", memory.text, memory.score, by=memory.by)


def test_a_memory_larger_than_the_budget_is_cut_and_leaves_room_for_others():
    log = found("log", "The deploy failed because " + "the disk of the host was full and " * 200, 1.0)
    kept = curate([log, found("b", "Bob emptied the disk of the host.")], "Why did the deploy fail?", 100)
    assert ids(one.memory for one in kept) == ["log", "b"]
    assert kept[0].text.startswith("The deploy failed because")


def test_what_tells_something_and_has_the_words_of_the_question_is_informative():
    rarity = Rarity([text for _, text in TALK])
    said = "Thanks, Bob! My cousin lent me her red bicycle. It was fun! It cost 40 euros. And you?"
    thanks, lent, fun, cost, asked = sentences(said)

    def worth(sentence, question="", people=("Ann", "Bob")):
        return information(sentence, rarity, frozenset(question.split()), people)

    order = [lent, cost, fun, asked]
    assert sorted(order, key=worth, reverse=True) == order
    assert worth(fun, "fun") > worth(fun)
    assert worth(thanks, people=()) > worth(thanks), "a name that is not a speaker's tells something"
    assert worth("Ghent is nice!") == worth("ghent is nice!"), "any word may be the first"
    assert worth("It was Ghent!") > worth("It was ghent!")
    assert worth("I'd say I’m fine.") == worth("i'd say i’m fine.")
    assert worth("...") > 0


def test_the_better_a_memory_matches_and_the_larger_the_buffer_the_more_of_it_stays():
    ranked = [
        found("a", "My cousin lent me a red bicycle. The sun shone.", 1.0),
        found("b", "Her brother repaired a bicycle for the race. The rain stopped in the evening.", 0.5),
        *(found(f"z{place}", text, 0.0) for place, (_, text) in enumerate(TALK)),
    ]

    def kept(budget):
        return [
            len(sentences(one.text))
            for one in curate(ranked, "Who has a bicycle?", budget)
            if one.memory.id in "ab"
        ]

    assert [kept(budget) for budget in (26, 30, 40)] == [[1, 1], [2, 1], [2, 2]]


def test_a_sentence_is_kept_once_though_two_memories_have_it():
    ranked = [
        found("a", "Thanks! The kiln broke down."),
        found("b", "The kiln broke down. The glaze cracked."),
    ]
    told = " ".join(one.text for one in curate(ranked, "What happened?", 1_000))
    assert sorted(sentences(told)) == ["Thanks!", "The glaze cracked.", "The kiln broke down."]
    assert curate([], "What happened?", 1_000) == []


def test_a_buffer_is_measured_as_it_will_be_shown():
    ranked = [found(name, f"The lamp of {name} burns.", 1.0) for name in "abcdef"]
    assert len(curate(ranked, "lamp", 30, lambda *_: 10)) == 3


def test_links_are_followed_from_the_best_and_what_they_lead_to_is_ranked_with_the_rest():
    linked = found("z", score=0.3)
    seen = []
    graph = QueryGraph((SubQuery(id="x", text="x"),))

    def search(_query, _k):
        return [found("a", score=1.0), found("b", score=0.2)]

    def follow(ranked):
        seen.append(ids(ranked))
        return [linked]

    activation = activate(graph, search, follow=follow)
    assert seen == [["a", "b"]]
    assert (ids(activation.ranked), activation.followed) == (["a", "z", "b"], [linked])
