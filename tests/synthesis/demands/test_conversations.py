"""Conversations in which rules are changed, narrowed, repeated and ended: what stands after each message."""

from pathlib import Path
from typing import NamedTuple

import pytest

from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem

_FILE = Path(__file__).with_name("conversations.txt")


class Expected(NamedTuple):
    mark: str  # "+" active, "?" candidate, "-" none that stands
    words: str
    paths: str | None = None
    topic: str | None = None
    until: str | None = None
    for_now: bool = False

    def is_met_by(self, item: MemoryItem) -> bool:
        return (
            self.words.casefold() in item.text.casefold()
            and item.status == {"+": "active", "?": "candidate"}[self.mark]
            and self.paths in {None, ",".join(item.scope.paths)}
            and self.topic in {None, item.scope.topic}
            and self.until in {None, item.until}
            and (not self.for_now or _lasts(item) == "for_now")
        )


class Turn(NamedTuple):
    said: str
    stands: list[Expected]
    nothing: bool = False


def _lasts(item: MemoryItem) -> str:
    return item.detail.duration if isinstance(item.detail, ConstraintDetail) else ""


def _expected(line: str) -> Expected:
    words, _, options = line[1:].strip().partition(" @ ")
    for_now = options.startswith("for_now")
    name, _, value = options.removeprefix("for_now").strip().partition("=")
    return Expected(line[0], words, for_now=for_now, **({name: value} if name else {}))


def _conversations() -> dict[str, list[Turn]]:
    told: dict[str, list[Turn]] = {}
    for line in _FILE.read_text().splitlines():
        match line[:1]:
            case "=":
                turns = told[line.removeprefix("==").strip()] = []
            case ":":
                turns.append(Turn(line[1:].strip(), []))
            case "|":
                turns[-1] = turns[-1]._replace(said=f"{turns[-1].said}\n{line[1:].removeprefix(' ')}")
            case "+" | "?" | "-":
                turns[-1].stands.append(_expected(line))
            case "n":
                turns[-1] = turns[-1]._replace(nothing=True)
    return told


CONVERSATIONS = _conversations()


def _check(turn: Turn, standing: list[MemoryItem]) -> None:
    if turn.nothing:
        assert not [item for item in standing if item.status == "active"], turn.said
    left = list(standing)
    for expected in turn.stands:
        if expected.mark == "-":
            assert not [item.text for item in left if expected.words in item.text], turn.said
            continue
        met = [item for item in left if expected.is_met_by(item)]
        assert met, (turn.said, expected, standing)
        left.remove(met[0])
    if any(expected.mark != "-" for expected in turn.stands):
        assert not [item for item in left if item.status == "active"], turn.said


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_what_stands_after_each_message_is_what_the_user_means(talk, name):
    for turn in CONVERSATIONS[name]:
        talk.say(turn.said)
        kinds = ("constraint", "rejection")
        standing = [
            item for kind in kinds for status in ("active", "candidate") for item in talk.items(status, kind)
        ]
        _check(turn, standing)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_that_is_read_again_concludes_nothing_new(talk, name):
    for turn in CONVERSATIONS[name]:
        talk.say(turn.said)
        assert not talk.read_again(), turn.said


def test_the_conversations_are_many():
    assert len(CONVERSATIONS) >= 100


def test_a_change_is_linked_both_ways_and_keeps_place_and_end(talk):
    talk.say("In Python files, use tabs until we release.")
    talk.say("actually, spaces instead of tabs")
    (old,), (new,) = talk.items("retired"), talk.items()
    assert [(link.relation, link.target) for link in old.links] == [("superseded_by", new.id)]
    assert [(link.relation, link.target) for link in new.links] == [("supersedes", old.id)]
    assert (new.scope, new.until, new.detail.duration) == (old.scope, "until we release", "for_now")


def test_an_exception_leaves_the_rule_which_is_asked_about(talk):
    talk.say("Never import pandas.")
    talk.say("you can import pandas in notebooks")
    (item,) = talk.items()
    assert item.detail.checks
    assert [one.quote for one in item.perhaps_ended_by] == ["you can import pandas in notebooks"]


def test_scratch_that_means_what_was_said_just_before_and_nothing_older(talk):
    talk.say("Never push to main.")
    talk.say("what is in utils.py?")
    talk.say("scratch that")
    assert talk.texts() == ["Never push to main."]


def test_an_agents_words_change_no_rule(talk):
    talk.say("From now on use tabs.")
    talk.say("actually, use spaces instead of tabs", actor="agent:main")
    assert talk.texts() == ["From now on use tabs."]
