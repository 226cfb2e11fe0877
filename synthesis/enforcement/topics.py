"""Whether texts are about the topic that a rule is limited to."""

import re
from functools import cache

from agentx.synthesis.language.words import content_words, stem

RELATED: dict[str, str] = {
    "future": (
        "future outlook forecast prospect prospects roadmap upcoming ahead tomorrow long-term prediction"
        " predictions 2030"
    ),
    "history": "history past origin origins founded founding early background",
    "finances": "finances finance financial money budget revenue cost costs",
    "prices": "prices price pricing cost costs fee fees",
    "security": "security secure vulnerability authentication authorization encryption",
    "performance": "performance speed fast slow latency throughput",
}
"""Words that show that a text is about a general subject without naming it."""


SIGNS: dict[str, str] = {
    "future": r"\b(?:will|shall|going to|in \w+ (?:years|months)|next (?:year|decade)|one day|by 20\d\d)\b",
    "history": r"\b(?:ago|began|founded|in (?:the )?1[89]\d\d|used to|back then|decades)\b",
    "finances": r"[$€£] ?\d|\b(?:profits?|loss(?:es)?|debts?|invest\w*|earn\w*)\b",
    "prices": r"[$€£] ?\d|\b(?:expensive|cheap\w*|afford\w*|pays?|discounts?)\b",
    "security": r"\b(?:attack\w*|passwords?|leaks?|exploit\w*|hack\w*)\b",
    "performance": r"\b(?:seconds?|milliseconds|ms|faster|slower|cach\w+|benchmark\w*)\b",
}
"""Weaker signs of a general subject: with them, a text may be about it."""


@cache
def _related() -> dict[str, frozenset[str]]:
    return {stem(key): frozenset(map(stem, words.split())) for key, words in RELATED.items()}


def about(topic: str, *texts: str) -> bool:
    """Return whether texts, taken together, are about a topic.

    They must contain its content words, or related ones: all of one or two words, two thirds of more.
    An empty topic matches everything.

    >>> about("tesla's future", "Tesla has a bright outlook"), about("tesla's future", "The future of SpaceX")
    (True, False)
    """
    wanted = content_words(topic)
    if not wanted:
        return True
    there = frozenset[str]().union(*(content_words(text) for text in texts))
    found = sum(1 for word in wanted if word in there or _related().get(word, frozenset()) & there)
    return 3 * found >= 2 * len(wanted)


def perhaps_about(topic: str, *texts: str) -> bool:
    """Return whether texts that are not certainly about a topic may be about it.

    All of its words other than general subjects must be there, and a weaker sign of each subject.

    >>> perhaps_about("tesla's future", "Where Tesla will stand in ten years")
    True
    """
    wanted = content_words(topic)
    subjects = {stem(name): pattern for name, pattern in SIGNS.items() if stem(name) in wanted}
    whole = "\n".join(texts)
    there = content_words(whole)
    named = wanted - subjects.keys()
    return bool(subjects and named and named <= there) and all(
        re.search(pattern, whole, re.IGNORECASE) for pattern in subjects.values()
    )
