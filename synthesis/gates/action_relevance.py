"""What is remembered that touches an action: by its scope first, then by its words.

Words decide: one that few items have weighs most; one that none has weighs too, for then the action is about something else;
one that only means the same weighs half; and one that every action is put in ("add", "run") nothing.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import islice

import msgspec

from agentx.synthesis.gates.command_effects import carries_out
from agentx.synthesis.gates.enforcement import about, matches
from agentx.synthesis.language.words import stem, vocabulary, words_of
from agentx.synthesis.memory.items import Kind, MemoryItem, RejectionDetail
from agentx.synthesis.similarity.near_duplicates import meaning
from agentx.synthesis.state.flows import sentences, terms, terms_as_said
from agentx.synthesis.state.rules import boot_rules, has_faded, is_critical
from agentx.synthesis.state.state import State

ACTION_CHARACTERS = 8_000
"""Of an action so much is read."""

TOUCHES = 0.3
"""From this share of the weight of an item's words, or of the action's, the one touches the other."""

WAKES = 0.75
"""From this share of the weight of its words a rule that slept is woken."""

UNHEARD = 8
"""A word of an action that no item has weighs as much as one that so many have, and among fewer items as one that all have."""

SYNONYM = 0.5
"""What a word weighs that only means the same: "billing" is not always an invoice."""

STATE_KINDS: tuple[Kind, ...] = ("task", "decision", "context", "agent_state")
"""What tells how things stand."""

LATEST = 9
"""So many of these are held, the latest."""

_DOING_WORDS = """
    add use adopt switch move build make create implement install introduce set setup try propose start begin write run
    put get do go change update edit let give take bring keep turn enable configure apply fix work please need want new
    again back file code task project thing way next now today step
"""
_LOOKING_WORDS = "read look show list open check see view find tell explain describe ask answer"


@cache
def doing() -> frozenset[str]:
    """Stems of the words in which any action is put; beside an idea they say that it is done."""
    words = vocabulary(_DOING_WORDS)
    return frozenset(map(stem, words)) | frozenset(term for word in words for term in terms(word))


@cache
def _looking() -> frozenset[str]:
    """Stems of the words for looking; they weigh nothing either, but to look at an idea is not to do it."""
    return frozenset(term for word in vocabulary(_LOOKING_WORDS) for term in terms(word))


_UNQUOTED = str.maketrans("", "", "'\"\\")

_UNDOING = vocabulary("off out down instead from away change update edit fix apply repair")
"""Words that undo an idea, or that may: a button that is changed need no longer be the one that was ruled out."""

_ASKING = vocabulary("is are was were does did why what how which who where when whether")
"""To ask is not to do: a sentence that begins so."""


Words = Mapping[str, AbstractSet[str]]
"""Words of a text: by the stem that stands for all that mean the same, the stems that are said."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be done.

    Attributes:
        text: It, in any words; of a call, what its arguments say beside its command.
        command: The command line that it runs; empty where it runs none.
        tool: The tool that does it; empty where none is named.
        paths: Artifacts that it changes or reads.
        domain: What it belongs to ("payments"); empty for anything.
        agent: Role of the agent that does it; empty for any.
        task: What the user asked for, which may say the topic.
        changes: Whether it changes something. What only reads is never stopped by an idea that was ruled out, nor by a flow.
    """

    text: str
    command: str = ""
    tool: str = ""
    paths: tuple[str, ...] = ()
    domain: str = ""
    agent: str = ""
    task: str = ""
    changes: bool = True

    @property
    def said(self) -> str:
        """Its words and its command; a sentence each."""
        return "; ".join(part for part in (self.text, self.command) if part)[:ACTION_CHARACTERS]

    @property
    def words(self) -> Words:
        """Stems of what it is about."""
        return _about(f"{self.said} {self.command.translate(_UNQUOTED)}")


# --- what memory holds, by its words ---------------------------------------------------------------------------------

_BY_WORDS: tuple[Kind, ...] = (
    "rejection", "constraint", "rule", "learning", "discovery", "decision", "task", "context", "agent_state",
    "capability",
)  # fmt: skip
_HELD = frozenset[Kind]((*_BY_WORDS, "flow", "hot_issue"))


class Board:
    """The items of a state that can touch an action, held by their words so that a look does not go through them all.

    Args:
        state: It is not kept; the items are.

    Attributes:
        state: What is asked which flow is called for; knowledge, of which there may be much, does not stand in it.
    """

    def __init__(self, state: State) -> None:
        self.state = State(items={item.id: item for item in state.items.values() if item.kind in _HELD})
        self.items = {item.id: item for item in self.state.items.values() if _can_touch(item)}
        self.words = {name: _about(item.text) for name, item in self.items.items()}
        spread = Counter(word for words in self.words.values() for word in words)
        self.weight = {word: _weight(len(self.items), count) for word, count in spread.items()}
        self._unheard = _weight(len(self.items), min(UNHEARD, len(self.items)))
        self._whole = {
            name: sum(self.weight[word] for word in words) or 1.0 for name, words in self.words.items()
        }
        self._asked: tuple[Words, dict[str, float]] = {}, {}
        self._holding: defaultdict[str, list[str]] = defaultdict(list)
        for name, words in self.words.items():
            for word in words:
                self._holding[word].append(name)
        self.critical = [item for item in boot_rules(self.state) if item.pinned or is_critical(item)]
        self.issues = list(self.state.active("hot_issue"))
        standing = (item for item in reversed(self.items.values()) if item.kind in STATE_KINDS)
        self.latest = list(islice((item for item in standing if item.status == "active"), LATEST))
        self.scoped = [
            item.id for item in self.items.values() if item.scope.paths or item.scope.tools or item.domain
        ]

    def near(self, words: Words) -> dict[str, float]:
        """By the id of an item, how near it is to some words: the larger of two shares of weight, from 0 to 1."""
        if words == self._asked[0]:
            return self._asked[1]
        reached: defaultdict[str, float] = defaultdict(float)
        for word in words.keys() & self._holding.keys():
            for name in self._holding[word]:
                said_so = bool(words[word] & self.words[name][word])
                reached[name] += self.weight[word] * (1 if said_so else SYNONYM)
        mine = sum(self.weight.get(word, self._unheard) for word in words)
        found = {name: common / min(self._whole[name], mine) for name, common in reached.items()}
        self._asked = words, found
        return found

    def share(self, name: str, words: Words) -> float:
        """How much of the weight of an item's words stands among some."""
        return sum(self.weight[word] for word in self.words[name].keys() & words.keys()) / self._whole[name]


def _weight(items: int, having: int) -> float:
    return math.log(2 + items / max(having, 1))


def _can_touch(item: MemoryItem) -> bool:
    """What stands; a rule that sleeps or has faded, which may wake; and a call that was refused once."""
    if item.kind not in _BY_WORDS:
        return False
    sleeps = item.kind in ("rule", "rejection") and item.status == "dormant"
    return item.status == "active" or sleeps or has_faded(item)


def _about(text: str) -> Words:
    """What a text is about: not that something is done, or looked at, unless it says nothing else."""
    said: defaultdict[str, set[str]] = defaultdict(set)
    for term, own in terms_as_said(text[:ACTION_CHARACTERS]):
        said[term].add(own)
    return {term: said[term] for term in said.keys() - doing() - _looking()} or dict(said)


# --- what was ruled out ----------------------------------------------------------------------------------------------


_BECAUSE = re.compile(r"(?<=\w)[:;]\s")
"""What stands behind it says why an idea was ruled out."""


def names_exactly(idea: str, text: str) -> bool:
    """Whether one sentence of a text does an idea: all of its words stand there, and nothing else but doing.

    A sentence that denies, or that undoes something, is another: "remove X" is not X.

    >>> names_exactly("Redis for caching", "Let us add caching with Redis."), names_exactly("Redis", "Remove Redis")
    (True, False)
    >>> names_exactly("Pop-ups", "Add a pop-up")
    True
    """
    idea = _BECAUSE.split(idea, maxsplit=1)[0]
    wanted = frozenset(terms(idea))
    core = (wanted - doing()) or wanted
    if not core:
        return False
    meant = meaning(idea)
    for sentence in sentences(text[:ACTION_CHARACTERS]):
        there = frozenset(terms(sentence))
        if not core <= there or (there - core) - doing() - wanted:
            continue
        said = meaning(sentence)
        words = [word.casefold() for word in words_of(sentence)]
        undone = _UNDOING & set(words) | _ASKING & set(words[:1])
        if (
            said.denies == meant.denies
            and set(map(stem, meant.names)) <= set(map(stem, said.names))
            and not undone - set(idea.casefold().split())
        ):
            return True
    return False


def ruled_out(board: Board, action: Action) -> list[MemoryItem]:
    """The standing rejections whose idea is this very action."""
    if not action.changes:
        return []
    found = board.near(action.words)
    return [
        item
        for name in found
        if (item := board.items[name]).kind == "rejection"
        and item.status == "active"
        and isinstance(item.detail, RejectionDetail)
        and applies(item, action)
        and _does(item.detail.idea or item.text, action)
    ]


def _does(idea: str, action: Action) -> bool:
    """Whether an action is an idea: what is said of it names it, or its command carries it out."""
    return names_exactly(idea, action.text) or (bool(action.command) and carries_out(idea, action.command))


_PROPOSES = re.compile(
    r"\b(?:suggest|recommend|propose|consider|could|should|would|might|try|let['’]?s|let us|(?:how|what) about|why not|i['’](?:d|ll)|i will"
    r"|(?:we|you) can|options?|ideas?|ways?)\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"\bi(?:['’]ve| have)?(?: also| now| just)? (?:added|built|made|put|wrote|created|installed|introduced|set up|switched|moved)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:instead of|rather than|rul(?:e|ed|ing)\b[^.]{0,60}?\bout|reject\w*|refused|turn(?:ed)?\b[^.]{0,60}?\bdown|(?:remove|replace|drop)\w*|as you (?:said|asked|wished))\b",
    re.IGNORECASE,
)
"""Words of a sentence that tells of an idea and does not bring it up again."""

_LISTED = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")


def suggests(idea: str, text: str) -> bool:
    """Whether a text brings an idea up: a sentence with all of its words proposes something, or says that it was done.

    An answer says more than the idea, so nothing else needs to be missing. What is listed below "… could:" is proposed.

    >>> suggests("Pop-ups", "A pop-up after half a minute would bring more of them.")
    True
    >>> suggests("Pop-ups", "I put the form below the programme instead of a pop-up.")
    False
    """
    idea = _BECAUSE.split(idea, maxsplit=1)[0]
    wanted = frozenset(terms(idea))
    core = (wanted - doing()) or wanted
    denies, below = meaning(idea).denies, False
    for line in text[:ACTION_CHARACTERS].splitlines():
        marker = _LISTED.match(line)
        below = below and bool(marker or not line.strip())
        for sentence in sentences(line[marker.end() :] if marker else line):
            if (
                core
                and core <= frozenset(terms(sentence))
                and (below or _PROPOSES.search(sentence) or _DID.search(sentence))
                and meaning(sentence).denies == denies
                and not _TELLS.search(sentence)
            ):
                return True
        below = below or (line.rstrip().endswith(":") and bool(_PROPOSES.search(line)))
    return False


def suggested(board: Board, answer: str, task: str, agent: str) -> list[MemoryItem]:
    """The standing rejections whose idea an answer brings up again.

    Args:
        board: What is remembered.
        answer: What is about to be said to the user.
        task: What the user asked for, which may tell the topic.
        agent: Role of the agent.
    """
    said = Action(text=answer[:ACTION_CHARACTERS], task=task, agent=agent)
    return [
        item
        for item in board.items.values()
        if item.kind == "rejection"
        and item.status == "active"
        and isinstance(item.detail, RejectionDetail)
        and applies(item, said)
        and suggests(item.detail.idea or item.text, answer)
    ]


def applies(item: MemoryItem, action: Action) -> bool:
    """Whether nothing in an item's scope rules the action out."""
    scope = item.scope
    if item.agent and action.agent and item.agent != action.agent:
        return False
    if item.domain and action.domain and item.domain.casefold() != action.domain.casefold():
        return False
    if scope.tools and action.tool and action.tool not in scope.tools:
        return False
    if scope.paths and action.paths and not any(matches(scope.paths, path) for path in action.paths):
        return False
    return not scope.topic or about(scope.topic, action.said, action.task, *action.paths)


# --- what touches an action ------------------------------------------------------------------------------------------


class Touch(msgspec.Struct, frozen=True):
    """An item that touches an action: how near its words are, from 0 to 1, and why it is shown."""

    item: MemoryItem
    near: float
    why: str


def touching(board: Board, action: Action) -> list[Touch]:
    """The items that touch an action, the nearest first."""
    near = board.near(action.words)
    found: list[Touch] = []
    for name in dict.fromkeys((*near, *board.scoped)):
        item = board.items[name]
        why = _why(item, action, near.get(name, 0.0))
        if why and applies(item, action):
            found.append(Touch(item, near.get(name, 0.0), why))
    return sorted(found, key=lambda one: (-one.near, one.item.created_seq, one.item.id))


def _why(item: MemoryItem, action: Action, near: float) -> str:
    """Why an item touches an action; empty where it does not."""
    if item.status != "active":
        again = (
            item.kind == "rejection"
            and isinstance(item.detail, RejectionDetail)
            and names_exactly(item.detail.idea, action.said)
        )
        return "a person refused this call before" if again else ""
    if item.scope.paths and any(matches(item.scope.paths, path) for path in action.paths):
        return f"it is about {item.scope.paths[0]}"
    if item.scope.tools and action.tool in item.scope.tools:
        return f"it is about {action.tool}"
    if near >= TOUCHES:
        return "its words are in the action"
    if item.domain and action.domain and item.domain.casefold() == action.domain.casefold():
        return f"it belongs to {item.domain}"
    return ""


def woken(board: Board, action: Action) -> list[MemoryItem]:
    """The rules that sleep or have faded, and whose situation this is."""
    return [
        item
        for name in board.near(action.words)
        if (item := board.items[name]).kind == "rule"
        and item.status != "active"
        and applies(item, action)
        and board.share(name, action.words) >= WAKES
    ]
