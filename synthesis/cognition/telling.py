"""What is told without a model: of all that is remembered, the few texts that answer a question between them."""

from collections.abc import Mapping

from agentx.synthesis.cognition.statements import Rarity, terms_of


def telling(question: str, texts: Mapping[str, int], most: int) -> list[str]:
    """The texts that hold what is asked, best first.

    Each is taken for what those before it lack, so that a question after two things is answered with both. Where fewer hold anything of
    it, one more is what says most about the first: "the owner of the van" leads to the van, and its owner to where they work.

    Args:
        question: What is asked.
        texts: When each was said, as any number that grows; of two that tell as much, the later one holds.
        most: So many at most.

    >>> telling("Where does the van's owner work?", {"The van is Milan's.": 1, "Milan is a baker in Maribor.": 2, "It rains.": 3}, 3)
    ["The van is Milan's.", 'Milan is a baker in Maribor.']
    """
    asked, rarity = terms_of(question), Rarity(texts)
    terms = {text: terms_of(text) for text in texts}
    found: list[str] = []
    missing = asked
    while len(found) < most:
        left = [text for text in texts if text not in found and asked & terms[text]]
        if not left:
            break
        best = max(
            left,
            key=lambda text: (rarity.of(missing & terms[text]), rarity.of(asked & terms[text]), texts[text]),
        )
        found.append(best)
        missing -= terms[best]
    if found and missing and len(found) < most:
        beyond = terms[found[0]] - asked
        weights = {text: rarity.of(beyond & terms[text]) for text in texts if text not in found}
        best = max(weights, key=lambda text: (weights[text], texts[text]), default="")
        found += [best] if weights.get(best) else []
    return found
