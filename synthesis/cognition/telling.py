"""Answer without a model: select the few remembered texts that together answer a question."""

from collections.abc import Mapping

from agentx.synthesis.cognition.informative_sentences import Rarity, terms_of


def telling(question: str, texts: Mapping[str, int], most: int) -> list[str]:
    """Return the texts that answer a question, best first.

    Each text is chosen for what the earlier ones lack, so a question about two things is answered with both.
    If terms are still missing, one more text is added: the one that says most about the rest of the first
    text. For example, "the owner of the van" leads to the van, and its owner to where they work.

    Args:
        question: The question.
        texts: The texts, each with a number that grows with time; of equal texts, the later one is chosen.
        most: Maximum number of texts.

    >>> known = {"The van is Milan's.": 1, "Milan is a baker in Maribor.": 2, "It rains.": 3}
    >>> telling("Where does the van's owner work?", known, 3)
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
