"""Find the memory items that are relevant to an action: by scope first, then by words.

Words are weighted. A word that few items have weighs most. A word that no item has also weighs, as it shows
that the action is about something else. A synonym weighs half. Words that occur in any action ("add", "run")
weigh nothing.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import msgspec

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.enforcement.topics import about
from agentx.synthesis.gates.ruled_out_things import things_of
from agentx.synthesis.language.words import stem, vocabulary, words_of
from agentx.synthesis.learning.past_runs import only_looks, subcommands
from agentx.synthesis.memory.items import MemoryItem, RefusedCall, RejectionDetail, sort_of
from agentx.synthesis.scribe.refused_calls import repeats_call
from agentx.synthesis.shell.command_line import ProgramCall, steps
from agentx.synthesis.similarity.near_duplicates import meaning
from agentx.synthesis.similarity.normal_form import bare
from agentx.synthesis.state.flows import sentences, terms, terms_as_said
from agentx.synthesis.state.rule_lifecycle import boot_rules, has_faded, is_critical
from agentx.synthesis.state.state import State

ACTION_CHARACTERS = 8_000
"""Maximum number of characters of an action that are read."""

TOUCHES = 0.3
"""Minimum share of the weight of an item's words, or of the action's, for the item to be relevant."""

UNHEARD = 8
"""Document frequency assumed for words that no item has.

With fewer items than this, such a word weighs as much as one that all items have."""

SYNONYM = 0.5
"""Weight of a word that is only a synonym: "billing" is not always an invoice."""

SCRIPT_FOLDERS = frozenset(("bin", "scripts", "tools"))
_SCRIPT_ENDINGS = frozenset((".sh", ".bash", ".zsh", ".ps1"))
_CODE_ENDINGS = frozenset((".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", "", *_SCRIPT_ENDINGS))

STATE_SORTS = ("task", "decision", "situation", "context", "agent_state")
"""Kinds and sorts that describe the current state."""

LATEST = 9
"""Number of the latest state items that are kept."""

_DOING_WORDS = """
    add use adopt switch move build make create implement install introduce set setup try propose start
    begin write run put get do go change update edit let give take bring keep turn enable configure apply
    fix work please need want new again back file code task project thing way next now today step
"""
_LOOKING_WORDS = "read look show list open check see view find tell explain describe ask answer"


@cache
def doing() -> frozenset[str]:
    """Return stems of words that describe any action; next to an idea they mean that it is carried out."""
    words = vocabulary(_DOING_WORDS)
    return frozenset(map(stem, words)) | frozenset(term for word in words for term in terms(word))


@cache
def _looking() -> frozenset[str]:
    """Return stems of words for looking; they weigh nothing, but looking at an idea is not doing it."""
    return frozenset(term for word in vocabulary(_LOOKING_WORDS) for term in terms(word))


_UNQUOTED = str.maketrans("", "", "'\"\\")

_UNDOING = vocabulary("off out down instead from away change update edit fix apply repair")
"""Words that undo an idea, or may undo it: a changed button may no longer be the one that was ruled out."""

_ASKING = vocabulary("is are was were does did why what how which who where when whether")
"""First words of a question; asking is not doing."""


Words = Mapping[str, AbstractSet[str]]
"""Words of a text: a stem shared by all synonyms, mapped to the stems that actually occur."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """An action that is about to be carried out.

    Attributes:
        text: The action in any words; for a call, its arguments without the command.
        command: The command line; empty if none.
        tool: The tool; empty if none is named.
        paths: Artifacts that it changes or reads.
        domain: Its domain ("payments"); empty for any.
        agent: Role of the acting agent; empty for any.
        task: The user's request, which may name the topic.
        changes: Whether it changes something. A read-only action is never stopped by a rejected idea or a
            flow.
        arguments: The tool's arguments, as given.
        root: The directory of the artifacts; empty if unknown.
        writes: The files as it would leave them, as far as that is known.
    """

    text: str
    command: str = ""
    tool: str = ""
    paths: tuple[str, ...] = ()
    domain: str = ""
    agent: str = ""
    task: str = ""
    changes: bool = True
    arguments: Mapping[str, Any] = {}
    root: str = ""
    writes: tuple[CheckedChange, ...] = ()

    @property
    def said(self) -> str:
        """Its text and its command, one sentence each."""
        return "; ".join(part for part in (self.text, self.command) if part)[:ACTION_CHARACTERS]

    @property
    def words(self) -> Words:
        """Stems of its subject words."""
        return _about(f"{self.said} {self.command.translate(_UNQUOTED)}")


def is_script(path: str) -> bool:
    """Return whether a path names a script, by its suffix or its directory.

    >>> is_script("deploy.sh"), is_script("tools/publish.py"), is_script("src/app.py")
    (True, True, False)
    """
    place = PurePosixPath(path)
    in_folder = place.suffix in _CODE_ENDINGS and bool(SCRIPT_FOLDERS & set(place.parts[:-1]))
    return in_folder or place.suffix in _SCRIPT_ENDINGS


# --- what memory holds, by its words ------------------------------------------------------------------------

_BY_WORDS = (
    "rejection", "constraint", "rule", "learning", "discovery", "decision", "task", "situation", "context",
    "agent_state", "capability",
)  # fmt: skip
_HELD = frozenset((*_BY_WORDS, "flow", "hot_issue"))


class MemoryBoard:
    """The items of a state that can be relevant to an action, indexed by their words for fast lookup.

    Args:
        state: Not kept; its items are.

    Attributes:
        state: A reduced state for matching flows; plain knowledge, of which there may be much, is left out.
        things: What was ruled out by name, also by rules and rejections that are not settled.
        may_stop: Whether an item can stop an action, or make it wait for approval.
    """

    def __init__(self, state: State) -> None:
        self.state = State(items={item.id: item for item in state.items.values() if sort_of(item) in _HELD})
        self.items = {item.id: item for item in self.state.items.values() if _can_touch(item)}
        self.words = {name: _about_item(item.text) for name, item in self.items.items()}
        spread = Counter(word for words in self.words.values() for word in words)
        self.things = things_of(state.items.values())
        stopping = any(item.kind in ("flow", "rejection") for item in self.state.items.values())
        self.may_stop = stopping or bool(self.things)
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
        self.refused = [item for item in self.items.values() if _refused_call(item)]
        self.critical = [item for item in boot_rules(self.state) if item.pinned or is_critical(item)]
        self.issues = list(self.state.active("hot_issue"))
        standing = (item for item in reversed(self.items.values()) if sort_of(item) in STATE_SORTS)
        self.latest = list(islice((item for item in standing if item.status == "active"), LATEST))
        self.scoped = [
            item.id
            for item in self.items.values()
            if item.scope.paths or item.scope.tools or item.scope.topic or item.domain
        ]

    def having(self, words: Iterable[str]) -> dict[str, MemoryItem]:
        """Return the items that have one of the words or a scope: only these can concern an action."""
        named = (name for word in words if word in self._holding for name in self._holding[word])
        return {name: self.items[name] for name in (*self.scoped, *named)}

    def near(self, words: Words) -> dict[str, float]:
        """Return, by item id, the closeness to the words, from 0 to 1.

        It is the weight of the common words, relative to the smaller total weight of the two sides.
        """
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

    def share(self, wanted: AbstractSet[str], words: AbstractSet[str]) -> float:
        """Return the share of the weight of an item's words that occurs among others."""
        return sum(self.weight[word] for word in wanted & words) / sum(self.weight[word] for word in wanted)


def _refused_call(item: MemoryItem) -> RefusedCall | None:
    return item.detail.call if isinstance(item.detail, RejectionDetail) else None


def _weight(items: int, having: int) -> float:
    return math.log(2 + items / max(having, 1))


def _can_touch(item: MemoryItem) -> bool:
    """Return whether an item can be relevant: active, or able to wake.

    Dormant or faded rules and dormant rejections (such as a call that was refused once) may wake.
    """
    if sort_of(item) not in _BY_WORDS:
        return False
    sleeps = item.kind in ("rule", "rejection") and item.status == "dormant"
    return item.status == "active" or sleeps or has_faded(item)


@lru_cache(maxsize=64)
def _about(text: str) -> Words:
    """Return the subject words of a text, without words for doing or looking unless it has no others."""
    said: defaultdict[str, set[str]] = defaultdict(set)
    for term, own in terms_as_said(text[:ACTION_CHARACTERS]):
        said[term].add(own)
    return {term: said[term] for term in said.keys() - doing() - _looking()} or dict(said)


@lru_cache(maxsize=16_384)
def _about_item(text: str) -> Words:
    return _about(bare(text))


# --- what was ruled out -------------------------------------------------------------------------------------


_BECAUSE = re.compile(r"(?<=\w)[:;]\s")
"""What follows is the reason for which an idea was ruled out."""


def names_exactly(idea: str, text: str) -> bool:
    """Return whether one sentence of a text carries out an idea.

    It must have all words of the idea, and besides them only words for doing (:func:`doing`). A sentence that
    denies or undoes something does not count: "remove X" is not X.

    >>> first = names_exactly("Redis for caching", "Let us add caching with Redis.")
    >>> first, names_exactly("Redis", "Remove Redis")
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


def ruled_out(board: MemoryBoard, action: Action) -> list[MemoryItem]:
    """Return the active rejections whose idea is exactly this action."""
    if not (action.changes and board.items):
        return []
    found = board.near(action.words)
    return [
        item
        for name in found
        if (item := board.items[name]).kind == "rejection"
        and item.status == "active"
        and isinstance(item.detail, RejectionDetail)
        and applies(item, action)
        and (
            names_exactly(idea := item.detail.idea or item.text, action.text)
            or (action.command and carries_out(idea, action.command))
        )
    ]


def refused_before(board: MemoryBoard, action: Action) -> list[MemoryItem]:
    """Return the rejections that are a refused call which this action makes again, the latest first."""
    if not (action.changes and action.arguments):
        return []
    return [
        item
        for item in reversed(board.refused)
        if (call := _refused_call(item)) and repeats_call(call, action.tool, action.arguments, action.root)
    ]


_GETS = vocabulary("install add i get")
_UNDOES = vocabulary("uninstall remove rm purge down stop disable off revert")
_ASKS = frozenset(("--version", "-v", "-V", "--help", "-h", "version", "help"))
_SHORT = {("git", "-f"): "force"}
_WORD = re.compile(r"[A-Za-z]+")


def carries_out(idea: str, command: str) -> bool:
    """Return whether a command line certainly carries out an idea.

    Its program, subcommands and options must contain all words of the idea.

    >>> command = "cd app && git push --force origin main"
    >>> carries_out("force pushes", command), carries_out("yarn", "which yarn")
    (True, False)
    """
    wanted = frozenset(terms(idea))
    return bool(wanted) and any(_carries_out(wanted, idea, step) for step in steps(command))


def _carries_out(wanted: frozenset[str], idea: str, step: ProgramCall) -> bool:
    words = step.arguments
    if only_looks(step) or _UNDOES & set(words[:2]) or (words and set(words) <= _ASKS):
        return False
    said = subcommands(step)
    own = frozenset(terms(" ".join((step.program, *said))))
    named = frozenset(stem(word) for word in words if _WORD.fullmatch(word))
    options = frozenset(
        term
        for word in words
        for term in terms(_SHORT.get((step.program, word), word if word.startswith("--") else ""))
        if not word.startswith("--no-") or word in idea
    )
    verbatim = any(word in idea.split() for word in words if word.startswith("--"))
    gets = bool(_GETS & set(said)) and wanted <= named
    return gets or ((verbatim or bool(wanted & own)) and wanted <= own | named | options)


_PROPOSES = re.compile(
    r"\b(?:suggest|recommend|propose|consider|could|should|would|might|try|let['’]?s|let us"
    r"|(?:how|what) about|why not|i['’](?:d|ll)|i will|(?:we|you) can|options?|ideas?|ways?)\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"\bi(?:['’]ve| have)?(?: also| now| just)? "
    r"(?:added|built|made|put|wrote|created|installed|introduced|set up|switched|moved)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:instead of|rather than|rul(?:e|ed|ing)\b[^.]{0,60}?\bout|reject\w*|refused"
    r"|turn(?:ed)?\b[^.]{0,60}?\bdown|(?:remove|replace|drop)\w*|as you (?:said|asked|wished))\b",
    re.IGNORECASE,
)
"""Words of a sentence that mentions an idea without suggesting it again."""

_LISTED = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")


def suggests(idea: str, text: str) -> bool:
    """Return whether a text suggests an idea: a sentence with all its words proposes or reports it.

    Unlike in :func:`names_exactly`, the sentence may have other words, as an answer says more than the idea.
    Items listed below "… could:" count as proposed.

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


def suggested(board: MemoryBoard, answer: str, task: str, agent: str) -> list[MemoryItem]:
    """Return the active rejections whose idea an answer suggests again.

    Args:
        board: The indexed memory.
        answer: The answer that is about to be sent to the user.
        task: The user's request, which may name the topic.
        agent: Role of the agent.
    """
    said = Action(text=answer[:ACTION_CHARACTERS], task=task, agent=agent)
    return [
        item
        for item in board.items.values()
        if item.kind == "rejection"
        and item.status == "active"
        and not item.perhaps_ended_by
        and isinstance(item.detail, RejectionDetail)
        and applies(item, said)
        and suggests(item.detail.idea or item.text, answer)
    ]


def applies(item: MemoryItem, action: Action) -> bool:
    """Return whether an item's scope allows the action."""
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


# --- what touches an action ---------------------------------------------------------------------------------


class Touch(msgspec.Struct, frozen=True):
    """An item that is relevant to an action: its closeness by words, from 0 to 1, and why it is shown."""

    item: MemoryItem
    near: float
    why: str


def touching(board: MemoryBoard, action: Action) -> list[Touch]:
    """Return the items that are relevant to an action, closest first."""
    near = board.near(action.words) if board.items else {}
    found: list[Touch] = []
    for name in dict.fromkeys((*near, *board.scoped)):
        item = board.items[name]
        why = _why(item, action, near.get(name, 0.0))
        if why and applies(item, action):
            found.append(Touch(item, near.get(name, 0.0), why))
    return sorted(found, key=lambda one: (-one.near, one.item.created_seq, one.item.id))


def _why(item: MemoryItem, action: Action, near: float) -> str:
    """Return why an item is relevant to an action; empty if it is not."""
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
