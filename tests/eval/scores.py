"""Precision, recall and F1, of messages and of words."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self


class Score(NamedTuple):
    """How often a prediction was right, wrong and missing."""

    right: int
    wrong: int
    missed: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Self:
        """The score of pairs: whether it was predicted, and whether it is so."""
        counted = Counter(pairs)
        return cls(counted[True, True], counted[True, False], counted[False, True])

    @classmethod
    def of_names(cls, pairs: Iterable[tuple[set[str], set[str]]]) -> Self:
        """The score of pairs of sets, name by name: what was found, and what is there."""
        counted = Counter[str]()
        for found, gold in pairs:
            counted.update(right=len(found & gold), wrong=len(found - gold), missed=len(gold - found))
        return cls(counted["right"], counted["wrong"], counted["missed"])

    @property
    def precision(self) -> float:
        """Of what was predicted; of nothing it is 1, for nothing was wrong."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what is so; of nothing it is 1, for nothing was missed."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        all_of_them = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / all_of_them if all_of_them else 1.0


def words(text: str) -> list[str]:
    """Words in small letters, punctuation left out."""
    return re.findall(r"\w+", text.casefold().replace("’", "'").replace("'", ""))


def token_f1(text: str, gold: str) -> float:
    """Share of common words, as SQuAD scores an answer."""
    given, wanted = Counter(words(text)), Counter(words(gold))
    common = (given & wanted).total()
    return 2 * common / (given.total() + wanted.total()) if common else 0.0
