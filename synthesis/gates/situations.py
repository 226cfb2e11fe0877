"""The situation of a rule: when it applies, and whether what was done kept it, by the words of the rule."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import MappingProxyType

from agentx.storage.index.port import Vector
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.enforcement.topics import about
from agentx.synthesis.gates.action_relevance import Action, MemoryBoard, applies
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.similarity.near_duplicates import meaning
from agentx.synthesis.similarity.normal_form import bare
from agentx.synthesis.state.flows import terms
from agentx.synthesis.state.rule_lifecycle import is_passed_over

CLAUSE_ENOUGH = 0.75
"""Minimum share of the weight of a clause ("before each deploy") that an action must have."""

WORDS_ENOUGH = 0.5
"""Minimum share of the weight of all words of a rule without such a clause."""

MEANING_ENOUGH = 0.45
"""Minimum cosine between an action and a dormant rule, for the rule to wake.

Measured with MiniLM: none of 420 unrelated pairs reaches it, and one of 25 on the same subject.
"""

_PHRASE_CHARACTERS = 300

KEPT_ENOUGH = 0.75
"""Minimum share of the weight of what a rule asks for that must be in what was done."""

_TIMES = (
    "before|after|when|whenever|while|during|if|upon|prior to|(?:each|every) time"
    "|once(?= (?:the|an?|you|we|all|it|they)\\b)|at the (?:start|beginning|end) of|on (?:each|every)"
)
_CLAUSE = re.compile(
    rf"(?:\b(?:{_TIMES})\b|^(?:in|for|at|on)\b)([^,;:.!?]*?)(?=\b(?:{_TIMES})\b|[,;:.!?]|$)", re.IGNORECASE
)


@lru_cache(maxsize=4_096)
def _clauses(text: str) -> tuple[frozenset[str], ...]:
    """Return the words of each clause that says when a rule applies."""
    return tuple(frozenset(terms(match[1])) for match in _CLAUSE.finditer(bare(text).strip()))


def comes_up(board: MemoryBoard, item: MemoryItem, action: Action, words: AbstractSet[str]) -> bool:
    """Return whether an action is the situation of a rule.

    It is if the rule's scope names its path, tool or topic, or if it has the words of a clause of the rule
    ("before each deploy", "In the billing module, …"). Without such a clause, it needs half the weight of the
    rule's words.

    Args:
        board: The indexed memory.
        item: A rule on the board.
        action: What is done.
        words: The subject words of the action.
    """
    if not applies(item, action):
        return False
    scope = item.scope
    if any(matches(scope.paths, path) for path in action.paths) or action.tool in scope.tools:
        return True
    if scope.topic and about(scope.topic, action.said, action.task, *action.paths):
        return True
    own = board.words[item.id].keys()
    if clauses := [said for clause in _clauses(item.text) if (said := clause & own)]:
        return any(board.share(clause, words) >= CLAUSE_ENOUGH for clause in clauses)
    return bool(own) and board.share(own, words) >= WORDS_ENOUGH


def is_done(board: MemoryBoard, item: MemoryItem, words: AbstractSet[str]) -> bool | None:
    """Return whether what was done has the words of what a rule asks for.

    ``None`` if words cannot tell: that nothing of a prohibition was done shows neither that it was kept nor
    that it was passed over. "Never A without B" asks for B.
    """
    own = board.words[item.id].keys()
    asked = own - frozenset[str]().union(*_clauses(item.text)) or own
    if not meaning(item.text).denies:
        return bool(asked) and board.share(asked, words) >= KEPT_ENOUGH
    if condition := own & frozenset(terms(bare(item.text).casefold().partition(" without ")[2])):
        return board.share(condition, words) >= KEPT_ENOUGH or None
    return False if asked and board.share(asked, words) >= KEPT_ENOUGH else None


def wakers(board: MemoryBoard) -> list[MemoryItem]:
    """Return the dormant or faded rules that their situation wakes.

    A rule that fell asleep because tasks passed it over is not among them: its situation came up each time.
    """
    rules = (item for item in board.items.values() if item.kind == "rule" and item.status != "active")
    return [item for item in rules if not is_passed_over(item)]


def woken(
    board: MemoryBoard, action: Action, vectors: Mapping[str, Vector] = MappingProxyType({})
) -> list[MemoryItem]:
    """Return the dormant or faded rules whose situation an action is, by words or by meaning.

    Args:
        board: The indexed memory.
        action: What is about to be done.
        vectors: Vectors of unit length of :func:`phrases`, as far as they are known.
    """
    if not (asleep := wakers(board)):
        return []
    words = action.words.keys()
    near = board.having(words)
    own = vectors.get(_phrase(action.said))
    return [
        item
        for item in asleep
        if (item.id in near and comes_up(board, item, action, words))
        or (own is not None and _means(item, own, vectors) and applies(item, action))
    ]


def phrases(board: MemoryBoard, action: Action) -> list[str]:
    """Return the texts whose vectors :func:`woken` compares; none if no rule can wake."""
    asleep = [_phrase(bare(item.text)) for item in wakers(board)]
    return [_phrase(action.said), *asleep] if asleep else []


def _means(item: MemoryItem, own: Vector, vectors: Mapping[str, Vector]) -> bool:
    other = vectors.get(_phrase(bare(item.text)))
    return other is not None and float(own @ other) >= MEANING_ENOUGH


def _phrase(text: str) -> str:
    return text[:_PHRASE_CHARACTERS]
