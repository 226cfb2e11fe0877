"""Takes a clause apart and finds the features that decide whether it is a demand, and how certain."""

import re
from collections.abc import Callable, Iterator

import msgspec

from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.language.words import content_words

_FILES = re.compile(r"\b(?:files|code|modules|sources|scripts|tests)\b", re.IGNORECASE)
"""What makes a type of file a place ("in Python files"), and not a format ("in Markdown")."""

_POINTER = re.compile(r"\b(?:this|that|these|those|it|them)\b", re.IGNORECASE)


class Clause(msgspec.Struct):
    """A clause: its leads, the frame of the order ("you should"), and the order itself.

    Attributes:
        whole: The whole clause, with inline quotes masked.
        leads: Conditions, places and times that were removed from its beginning.
        frames: The words between the leads and the order.
        body: The order.
        attached: Whether it follows another clause of its sentence ("fix the parser, but leave src/api
            alone").
    """

    whole: str
    body: str
    frames: str
    leads: list[str]
    attached: bool = False

    @property
    def asks(self) -> bool:
        """Whether the clause is a question."""
        return bool(v.FEATURES["question"].search(self.whole))

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms to match: the order alone, and with its frame ("you must not …")."""
        framed = self.frames + self.body
        return (self.body, framed) if framed != self.body else (self.body,)


def take_apart(words: str) -> Clause:
    """Strip lead-ins ("so"), conditions, places and times ("when …,") and the frame ("you should").

    >>> clause = take_apart("so for now, please add tests")
    >>> clause.body, clause.leads
    ('add tests', ['for now'])
    """
    clause = Clause(words, words, "", [])
    before = ""
    while clause.body and clause.body != before:
        before = clause.body
        if match := v.LEAD_INS.match(clause.body):
            clause.body = clause.body[match.end() :]
        if match := v.LABEL.match(clause.body):
            clause.body = clause.body[match.end() :]
        if match := v.COMMA_LEAD.match(clause.body):
            clause.leads.append(match["lead"])
            clause.body = clause.body[match.end() :]
        if match := v.STANDING_LEAD.match(clause.body):
            clause.leads.append(match.group())
            clause.body = clause.body[match.end() :]
        if match := v.ORDER_FRAME.match(clause.body):
            clause.frames += match.group()
            clause.body = clause.body[match.end() :]
    return clause


def lead_length(words: str) -> int:
    """Return the length in characters of the lead-ins ("so", "please") before the first significant word."""
    length = 0
    while match := v.LEAD_INS.match(words[length:]):
        length += match.end()
    return length


def is_base_verb(word: str) -> bool:
    """Return whether a word can be an order: no participle, third person or function word.

    >>> is_base_verb("answer"), is_base_verb("fails"), is_base_verb("got")
    (True, False, False)
    """
    low = word.lower()
    if low in v.NO_BASE_VERB or NAME in low:
        return False
    if low.endswith("s") and not low.endswith("ss"):
        return low in v.BASE_VERBS_IN_S
    if low.endswith("ed"):
        return low in v.BASE_VERBS_IN_ED
    return not low.endswith("ing") or low in v.BASE_VERBS_IN_ING


def has(feature: str, clause: Clause, candidate: str, match: re.Match[str]) -> bool:
    """Return whether a clause that matches a shape has a feature.

    Args:
        feature: A name from the tables of the vocabulary, or one of those computed in this module.
        clause: The clause.
        candidate: The form of the clause that matches the shape.
        match: The match.
    """
    groups = match.groupdict()
    begins = match.start("object") if groups.get("object") else match.start()
    begins = next((match.end(name) for name in ("verb", "does") if groups.get(name)), begins)
    rest = candidate[begins:]
    if feature in _WORKED_OUT:
        return _WORKED_OUT[feature](clause, groups.get("object") or rest)
    if feature in _OF_REST:
        return _OF_REST[feature](rest)
    if feature in v.BODY_FEATURES:
        return bool(v.BODY_FEATURES[feature].search(clause.body))
    return bool(v.FEATURES[feature].search(clause.whole))


def _points(rest: str) -> bool:
    for name in ("standing", "for_now", "ever"):
        rest = v.FEATURES[name].sub(" ", rest)
    rest = v.ALL_OF_THEM.sub(" ", rest)
    end = v.FEATURES["until"].search(rest)
    return bool(v.FEATURES["deictic"].search(rest[: end.start()] if end else rest))


def _is_hollow(rest: str) -> bool:
    """Return whether an order names nothing ("always do that")."""
    words = content_words(rest.replace(NAME, "x"))
    return not words or (len(words) == 1 and bool(_POINTER.search(rest)))


def _is_general(_clause: Clause, words: str) -> bool:
    """Return whether an object is a kind ("any tests", "to main") and not one thing ("the test")."""
    parts = [part.strip(",.;:!").lower() for part in words.split()]
    if not parts:
        return False
    if parts[0] in {"any", "all", "every", "each"}:
        return True
    if parts[0] in {"a", "an", "to", "on", "in", "into", "from", "with", "for", "at"}:
        return len(parts) > 1 and parts[1] not in v.DETERMINED
    return parts[0] not in v.DETERMINED


def _conditions(clause: Clause) -> Iterator[tuple[str, str]]:
    for lead in clause.leads:
        if match := v.CONDITION.match(lead):
            yield match["word"].lower(), match["what"]
    if match := v.TRAILING_CONDITION.search(clause.body):
        yield match["word"].lower(), match["what"]


def _is_of_the_agents_work(clause: Clause, _object: str) -> bool:
    for word, what in _conditions(clause):
        if v.DONE_LEAD.match(what) or _POINTER.search(what) or word in {"if", "once", "after", "before"}:
            recurs = word in {"whenever", "every time", "each time", "anytime", "any time"}
        else:
            recurs = bool(v.AGENT_LEAD.match(what))
        if recurs:
            return True
    return False


def _names_place(clause: Clause, _object: str) -> bool:
    """Return whether it applies to the project, a type of file, or a directory named at its beginning.

    One file does not count: an order about it is one piece of work.
    """
    leading = [glob for lead in clause.leads for glob in reach_of(lead).scope.paths]
    of_files = reach_of(clause.whole).scope.paths if _FILES.search(clause.whole) else ()
    return (
        any(v.PROJECT_LEAD.match(lead) for lead in clause.leads)
        or any(glob.endswith("/**") or glob.startswith("**/*.") for glob in leading)
        or any(glob.startswith("**/*.") for glob in of_files)
    )


_WORKED_OUT: dict[str, Callable[[Clause, str], bool]] = {
    "attached": lambda clause, _: clause.attached,
    "general_object": _is_general,
    "agent_lead": _is_of_the_agents_work,
    "once_lead": lambda clause, _: any(
        v.DONE_LEAD.match(what) or _POINTER.search(what) for _, what in _conditions(clause)
    ),
    "place": _names_place,
    "until": lambda clause, _: (
        bool(v.FEATURES["until"].search(clause.whole)) and not v.PROCESS_VERB.match(clause.body)
    ),
}
_OF_REST: dict[str, Callable[[str], bool]] = {"deictic": _points, "hollow": _is_hollow}
