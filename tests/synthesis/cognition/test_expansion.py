"""What is looked for: a question without its names, and any graph that a model gives, made one without circles."""

from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery, deepen, expand, named, without_names

NAMES = st.sampled_from("abcdef")
ANY_GRAPH = st.lists(
    st.builds(SubQuery, id=NAMES, text=NAMES, needs=st.lists(NAMES, max_size=4).map(tuple)), max_size=8
)


@given(ANY_GRAPH)
def test_whatever_graph_is_given_each_sub_query_comes_once_and_after_all_that_it_needs(nodes):
    graph = QueryGraph.of(nodes)
    order = [node.id for node in graph.nodes]
    assert sorted(order) == sorted({node.id for node in nodes})
    for place, node in enumerate(graph.nodes):
        assert set(node.needs) <= set(order[:place])
    assert graph == QueryGraph.of(nodes)


@given(ANY_GRAPH)
def test_what_was_taken_out_of_a_graph_is_said_and_nothing_else_is_taken(nodes):
    graph = QueryGraph.of(nodes)
    first = {node.id: node for node in reversed(nodes)}
    wanted = sum(len(set(node.needs)) for node in first.values())
    assert wanted + len(nodes) - len(first) == graph.edge_count + len(graph.broken)
    again = QueryGraph.of(graph.nodes)
    assert again.broken == ()


def test_of_a_circle_the_need_that_closes_it_goes():
    nodes = [SubQuery(id=name, text=name, needs=(need,)) for name, need in ("ab", "bc", "ca")]
    graph = QueryGraph.of([*nodes, SubQuery(id="d", text="d", needs=("d", "x"))])
    assert [node.id for node in graph.nodes if node.id != "d"] == ["c", "b", "a"]
    assert graph.broken == (
        '"c" does not wait for "a": that would be a circle.',
        '"d" does not wait for "d": that would be a circle.',
        '"d" does not wait for "x": no such sub-query exists.',
    )


def test_a_question_is_looked_for_whole_without_the_names_of_people_and_by_its_content():
    graph = expand("Which books did Ann's sister lend to Bob?", ["Ann", "Bob", "Cy"])
    assert [node.text for node in graph.nodes] == [
        "Which books did Ann's sister lend to Bob?",
        "Which books did sister lend to ?",
        "books sister lend",
    ]
    assert graph.edge_count == 0


def test_sub_queries_of_one_text_are_searched_for_once_and_count_as_often_as_they_were_wanted():
    (one,) = expand("retry payments").nodes
    assert (one.id, one.weight) == ("whole", 3.0)
    assert [node.id for node in expand("Ann", ["Ann"]).nodes] == ["whole"]


def test_the_second_hop_waits_for_all_others_and_is_added_once():
    graph = deepen(expand("What did Ann paint?", ["Ann"]))
    assert graph.nodes[-1].needs == ("whole", "asked", "content")
    assert graph.edge_count == len(graph.nodes[-1].needs)
    assert deepen(graph) is graph
    assert QueryGraph.of(graph.nodes) == graph


def test_a_name_is_found_as_a_word_only_and_a_longer_name_first():
    people = ["Ann", "Ann Lee", "Al"]
    assert named("Does Annabel also like Al’s bread?", people) == ["Al"]
    assert without_names("Did Ann Lee meet Al?", people) == "Did meet ?"
    assert without_names("Annabel also met him.", people) == "Annabel also met him."
