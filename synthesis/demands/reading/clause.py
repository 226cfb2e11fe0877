"""Takes a clause apart and finds the features that decide whether it is a demand, and how certain."""

import re
from collections.abc import Callable

import msgspec

from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.tables import vocabulary as v
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
        for pattern in (v.LEAD_INS, v.LABEL, v.COMMA_LEAD, v.STANDING_LEAD, v.ORDER_FRAME):
            if match := pattern.match(clause.body):
                clause.body = clause.body[match.end() :]
                if pattern is v.ORDER_FRAME:
                    clause.frames += match.group()
                elif pattern in {v.COMMA_LEAD, v.STANDING_LEAD}:
                    clause.leads.append(match.groupdict().get("lead") or match.group())
    return clause


def lead_length(words: str) -> int:
    """Return the length in characters of the lead-ins ("so", "please") before the first significant word."""
    match = v.LEAD_INS.match(words)
    return match.end() if match else 0


def has(feature: str, clause: Clause, candidate: str, match: re.Match[str]) -> bool:
    """Return whether a clause that matches a row has a feature.

    Args:
        feature: A name from the tables of the vocabulary, or one of those computed in this module.
        clause: The clause.
        candidate: The form of the clause that matches the row.
        match: The match.
    """
    if feature not in _COMPUTED:
        return bool(v.FEATURES[feature].search(clause.whole))
    groups = match.groupdict()
    begins = match.end("verb") if groups.get("verb") else match.start("object") if "object" in groups else 0
    return _COMPUTED[feature](clause, candidate[begins:])


def _points(_clause: Clause, rest: str) -> bool:
    for name in ("standing", "for_now", "ever"):
        rest = v.FEATURES[name].sub(" ", rest)
    end = v.FEATURES["until"].search(rest)
    return bool(v.FEATURES["deictic"].search(rest[: end.start()] if end else rest))


def _is_hollow(_clause: Clause, rest: str) -> bool:
    """Return whether an order names nothing ("always do that")."""
    words = content_words(rest.replace(NAME, "x"))
    return not words or (len(words) == 1 and bool(_POINTER.search(rest)))


def _names_place(clause: Clause, _rest: str) -> bool:
    """Return whether it is about the project or a type of file, or begins with a directory."""
    leading = [glob for lead in clause.leads for glob in reach_of(lead).scope.paths]
    typed = reach_of(clause.whole).scope.paths if _FILES.search(clause.whole) else ()
    return (
        any(v.FEATURES["in_project"].match(lead) for lead in clause.leads)
        or any(glob.endswith("/**") for glob in leading)
        or any(glob.startswith("**/*.") for glob in (*leading, *typed))
    )


_COMPUTED: dict[str, Callable[[Clause, str], bool]] = {
    "attached": lambda clause, _: clause.attached,
    "lasting_verb": lambda clause, _: bool(v.LASTING_VERB.match(clause.body)),
    "place": _names_place,
    "deictic": _points,
    "hollow": _is_hollow,
}
