"""Whether texts are about the topic that a rule is limited to."""

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
