"""What a cognitive agent recognised becomes memory items: levels, links both ways, topics, whose word it is."""

import msgspec
import pytest

from agentx.storage.events.cognition_events import Extracted, Interacted, Outdated, Recognized
from agentx.storage.events.types import Body, Event, UserMessageSent
from agentx.synthesis.cognition.cognition_extractor import Cognition
from agentx.synthesis.cognition.speakers import said_by
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.memory.items import Link, ending, sort_of, superseded_by
from agentx.synthesis.state.state import State

SAID = "Ines runs the harbour. We met her on Tuesday. The mill has two wheels."
KNOWN = Extracted("L2", "Ines runs the harbour.", 0, 22)
HAPPENED = Extracted("L3", "We met her on Tuesday.", 23, 45)


class Workshop:
    """A state, and facts that are folded into it with what is concluded from them."""

    def __init__(self):
        self.state = State()

    def take(self, data, actor="agent:cognitive"):
        event = self._fold(data, actor)
        changes = Cognition().conclude(event, self.state, lambda body: body.text)
        if changes:
            through = Concluded(
                extractor="cognition", version=Cognition.version, through=event.seq, changes=tuple(changes)
            )
            self._fold(through, "engine:cognition")
        return event.seq

    def _fold(self, data, actor):
        event = Event(
            seq=self.state.seq + 1,
            at="2026-01-02T03:04:05Z",
            type=type(data).__name__,
            v=1,
            actor=actor,
            data=data,
        )
        self.state.apply(event)
        return event

    def say(self, text=SAID, actor="user"):
        return self.take(UserMessageSent(body=Body(text)), actor)

    def read(self, message, *memories, **facts):
        read = Recognized(
            session="main",
            interaction=1,
            message=message,
            **{"input_type": "statement", "memories": memories, **facts},
        )
        self.take(read)

    def over(self, **facts):
        self.take(Interacted(session="main", interaction=1, message=1, **facts))

    def of(self, kind):
        return [item for item in self.state.items.values() if sort_of(item) == kind]


@pytest.fixture
def shop():
    return Workshop()


def test_what_is_known_and_what_happened_become_items_bound_both_ways_and_to_their_topic(shop):
    seq = shop.say()
    shop.read(seq, KNOWN, HAPPENED, topic_action="create", topic_summary="ines, harbour")
    [known], [episode], [topic] = shop.of("knowledge"), shop.of("episode"), shop.of("topic")
    assert {(link.relation, link.target) for link in known.links} == {
        ("of_topic", topic.id),
        ("happened_in", episode.id),
    }
    assert {(link.relation, link.target) for link in episode.links} == {
        ("of_topic", topic.id),
        ("tells_of", known.id),
    }
    assert topic.text == "ines, harbour"
    for item in (known, episode):
        [place] = item.evidence
        assert (place.seq, place.quote, SAID[place.start : place.end]) == (seq, item.text, item.text)
        assert item.trust == "user"


def test_without_linking_nothing_is_bound_but_to_its_topic(shop):
    shop.read(shop.say(), KNOWN, HAPPENED, topic_action="create", topic_summary="ines", linked=False)
    assert {link.relation for item in shop.state.items.values() for link in item.links} == {"of_topic"}


@pytest.mark.parametrize(
    ("actor", "trust", "expected"),
    [
        ("user", "", "user"),
        ("user:ines", "user", "user"),
        ("user", "reported", "reported"),
        ("user", "material", "material"),
        ("user", "no such word", "material"),
        ("agent:main", "user", "agent"),
        ("agent:main", "material", "material"),
    ],
)
def test_nobody_is_believed_more_than_who_sent_the_message(shop, actor, trust, expected):
    paraphrase = Extracted("L2", "Ines is the boss.", 0, 22, "Ines runs the harbour.", trust)
    shop.read(shop.say(actor=actor), paraphrase, model="a/model")
    [item] = shop.of("knowledge")
    assert (item.trust, item.evidence[0].quote) == (expected, "Ines runs the harbour.")


def test_a_memory_of_a_message_that_nobody_knows_is_only_reported(shop):
    shop.read(99, KNOWN)
    assert [item.trust for item in shop.of("knowledge")] == ["reported"]


def test_a_topic_that_a_model_names_is_reported_and_is_brought_up_to_date(shop):
    shop.read(shop.say(), KNOWN, topic_action="create", topic_summary="the harbour", model="a/model")
    [topic] = shop.of("topic")
    assert topic.trust == "reported"
    shop.read(
        shop.say(), HAPPENED, topic_action="update", topic=topic.id, topic_summary="the harbour and Ines"
    )
    [topic] = shop.of("topic")
    assert (topic.text, topic.short) == ("the harbour and Ines", "the harbour and Ines")
    shop.read(
        shop.say(), KNOWN, topic_action="update", topic=shop.of("episode")[0].id, topic_summary="stolen"
    )
    assert [one.text for one in shop.of("topic")] == ["the harbour and Ines"], (
        "no memory is turned into a topic"
    )


def test_what_is_learned_of_an_answer_is_a_procedure_of_the_agent(shop):
    shop.read(shop.say(), Extracted("L1", "Name the harbour first."), second=True, model="a/model")
    [learned] = shop.of("learning")
    assert (learned.text, learned.trust, learned.evidence[0].quote) == (
        "Name the harbour first.",
        "agent",
        "",
    )


def test_what_is_used_grows_stronger_what_leaves_sleeps_and_what_comes_back_is_awake(shop):
    shop.read(shop.say(), KNOWN, HAPPENED)
    [known], [episode] = shop.of("knowledge"), shop.of("episode")
    shop.over(entered=(known.id, episode.id), reinforced=(known.id,), boost=0.25)
    [stronger] = shop.of("knowledge")
    assert (stronger.strength, stronger.used_at) == (known.strength + 0.25, "2026-01-02T03:04:05Z")
    shop.over(evicted=(known.id, episode.id, "k-99"))
    assert {item.status for item in shop.state.items.values()} == {"dormant"}
    shop.over(entered=(known.id,))
    assert [item.status for item in (*shop.of("knowledge"), *shop.of("episode"))] == ["active", "dormant"]


@pytest.mark.parametrize(
    ("actor", "text", "names"),
    [
        ("user", SAID, set()),
        ("user:ann", SAID, {"ann"}),
        ("agent:writer", SAID, {"writer"}),
        ("user", f"Ann Lee: {SAID}", {"Ann Lee"}),
        ("user:ben", f"Ann: {SAID}", {"ben"}),
        ("user", f"Update: {SAID}", set()),
    ],
)
def test_a_memory_is_bound_to_the_name_of_who_said_it_and_what_is_learned_of_it_is_not(actor, text, names):
    shop = Workshop()
    message = shop.say(text, actor)
    shop.read(message, KNOWN, HAPPENED, topic_action="create", topic_summary="harbour")
    shop.read(message, Extracted("L1", "Name the harbour first."), second=True)
    told = [*shop.of("knowledge"), *shop.of("episode")]
    assert {said_by(item.links) for item in told} == (names or {""})
    assert {said_by(item.links) for item in [*shop.of("topic"), *shop.of("learning")]} == {""}


# --- what is not true any more ------------------------------------------------------------------------------


def rent(shop, *, by="user", trust="", rest="", since="", hand=False):
    """Tell a rent, and then another one by somebody, which is said to take its place."""
    first = shop.say("They have two sons and pay 950.")
    shop.read(first, Extracted("L2", "They have two sons and pay 950.", 0, 31))
    old = next(reversed(shop.state.items.values()))
    if hand:
        shop.state.items[old.id] = old = msgspec.structs.replace(old, by_hand=True)
    second = shop.say("They pay 980 now.", by)
    gone = Outdated(old.id, 0, since, rest)
    shop.read(second, Extracted("L2", "They pay 980 now.", 0, 17, trust=trust), outdated=(gone,))
    return shop.state.items[old.id]


def test_what_is_superseded_stays_with_its_end_and_is_linked_both_ways():
    shop = Workshop()
    old = rent(shop)
    (new,) = (one for one in shop.state.items.values() if one.text == "They pay 980 now.")
    assert (ending(old), superseded_by(old), old.detail.valid_to) == ("superseded", new.id, shop.state.at)
    assert Link("supersedes", old.id) in new.links


def test_what_stays_true_of_it_is_a_memory_with_the_same_evidence():
    shop = Workshop()
    old = rent(shop, rest="They have two sons.", since="2026-03-01")
    (part,) = (one for one in shop.state.items.values() if one.text == "They have two sons.")
    assert (part.status, part.evidence, part.detail.valid_from) == ("active", old.evidence, old.created_at)
    assert (old.detail.valid_to, old.status) == ("2026-03-01", "retired")


@pytest.mark.parametrize(
    "facts",
    [{"by": "agent:helper"}, {"by": "tool:fetch"}, {"trust": "material"}, {"hand": True}],
    ids=["an agent", "a tool", "quoted material", "changed by hand"],
)
def test_nothing_but_the_words_of_a_user_supersedes_what_a_user_said(facts):
    assert rent(Workshop(), **facts).status == "active"


def test_ids_and_places_that_do_not_exist_supersede_nothing():
    shop = Workshop()
    seq = shop.say("They pay 950.")
    shop.read(seq, Extracted("L2", "They pay 950.", 0, 13), outdated=(Outdated("k-99"),))
    (old,) = shop.state.items.values()
    shop.read(shop.say("Well."), outdated=(Outdated(old.id, 3),))
    assert shop.state.items[old.id].status == "active"
