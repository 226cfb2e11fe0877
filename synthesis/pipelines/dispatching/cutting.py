"""One file of a dispatch, cut to what there is room for: which of its sections are given whole, in one sentence, or not at all.

Where something was left out a line in brackets says so and names the lines, and the same is said in words beside the file's name.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal

import msgspec

from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.pipelines.definition.pipeline import Read
from agentx.synthesis.pipelines.dispatching.passages import Sections, sections_of, tokens_of
from agentx.synthesis.pipelines.dispatching.relevance import Wanted

_SLACK = 40
"""Tokens by which two ways to say what was cut differ at most: it stands in the list of files, over the file and in it."""

_NOTE_SLACK = 4
"""The same of one line in brackets, where only its numbers are others."""


Form = Literal["whole", "recent", "open"]
"""How a file is given: all of it; its latest sections, and of those before a sentence; what matters most of it, as long as there is room."""

FORMS: dict[str, tuple[Form, ...]] = {
    "whole": ("whole",),
    "recent": ("whole", "recent", "open"),
    "sections": ("whole", "open"),
}
"""The forms that each ``fit`` of a pointer allows, in the order in which they are tried."""


class Candidate(msgspec.Struct, frozen=True):
    """A file that a role reads, as it stands.

    Attributes:
        path: As the agent is told it: relative to the artifacts, ``NAME:path`` for a source tree.
        blob: Git blob id of the whole of it.
    """

    rule: Read
    path: str
    text: str
    blob: str = ""


class Given(msgspec.Struct, frozen=True):
    """A file as an agent is given it.

    Attributes:
        text: What it is given of it, with a note wherever something was left out.
        tokens: Of that text, with its header, its fence and its line in the prompt.
        whole_tokens: What the whole file would have taken.
        cut: What was cut, in words; empty where it is whole.
        blob: Git blob id of the whole file.
    """

    path: str
    purpose: str
    text: str
    tokens: int
    whole_tokens: int
    cut: str = ""
    blob: str = ""


def fenced(given: Given) -> str:
    """A file as it stands in a prompt: between fences longer than any in it, so that it cannot end its own quotation."""
    fence = _fence(given.text)
    return f"{_header(given.path, given.cut)}{fence}\n{given.text.rstrip()}\n{fence}"


def pointer_line(path: str, purpose: str, cut: str) -> str:
    """The line that points to a file that is given."""
    return f"- Read: {path}{f' — {purpose}' if purpose else ''}{f' ({cut})' if cut else ''}\n"


def _header(path: str, cut: str) -> str:
    return f"File {path}{f' ({cut})' if cut else ''}:\n"


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


class Cuttable:
    """A file that can be given whole or cut.

    Attributes:
        rule: Its pointer.
        whole_tokens: What it takes whole.
    """

    def __init__(self, one: Candidate, wanted: Wanted) -> None:
        self.one, self.rule, self._wanted = one, one.rule, wanted
        self._text = f"{body}\n" if (body := one.text.rstrip()) else ""
        self.whole_tokens = self._framed(self._text, "") + tokens_of(self._text)

    @cached_property
    def parts(self) -> Sections:
        """Its sections."""
        return sections_of(self.one.path, self._text)

    @cached_property
    def order(self) -> list[int]:
        """Indices of its sections, those that matter most first."""
        return self._wanted.order(self.parts.sections)

    @cached_property
    def latest(self) -> frozenset[int]:
        """Indices of the sections that are given whole of a file that grows."""
        count = len(self.parts.sections)
        return frozenset(range(max(count - self.rule.keep, 0), count))

    @cached_property
    def whole(self) -> Given:
        """All of it."""
        return self._given(self.one.text, self.whole_tokens, "")

    @cached_property
    def recent(self) -> Given:
        """The latest sections whole, and of each that is older a sentence."""
        return self.cut(self.latest, frozenset(range(len(self.parts.sections))) - self.latest)

    @cached_property
    def least(self) -> int:
        """What it takes, at most, where as little as can be is given of it."""
        return self.cut(*self.start).tokens + _SLACK

    def takes(self, form: Form) -> int:
        """What it takes in a form; where it is open, at least."""
        return (
            self.whole_tokens if form == "whole" else self.recent.tokens if form == "recent" else self.least
        )

    @cached_property
    def smallest(self) -> int:
        """What it takes when it is cut as far as its rule allows."""
        return min(self.takes(form) for form in FORMS[self.rule.fit])

    @property
    def start(self) -> tuple[frozenset[int], frozenset[int]]:
        """The sections that are given in any case: whole, and in one sentence."""
        return self.latest if self.rule.fit == "recent" else frozenset(self.order[:1]), frozenset()

    def cut(self, whole: Collection[int], brief: Collection[int]) -> Given:
        """The file with some sections whole, of some a sentence, and without the others; indices of sections."""
        sections = self.parts.sections
        if len(whole) == len(sections):
            return self.whole
        pieces, tokens = [self.parts.head], tokens_of(self.parts.head)
        for is_whole, run in groupby(range(len(sections)), key=whole.__contains__):
            indices = list(run)
            if is_whole:
                pieces += [sections[n].text for n in indices]
                tokens += sum(sections[n].tokens for n in indices)
            else:
                briefs = [sections[n] for n in indices if n in brief]
                note = self.note(indices, len(briefs))
                pieces += [note, *(one.brief for one in briefs), "\n"]
                tokens += count_tokens(note) + sum(one.brief_tokens for one in briefs) + 1
        text, said = "".join(pieces), self._said(len(whole), len(brief))
        return self._given(text, self._framed(text, said) + tokens, said)

    def note(self, run: Sequence[int], briefs: int) -> str:
        """The line that stands where sections were left out, or are given in one sentence each."""
        first, last = self.parts.sections[run[0]], self.parts.sections[run[-1]]
        lines = f"lines {first.first_line}-{last.last_line}"
        if not briefs:
            return f"[{lines} left out: {self.parts.counted(len(run))}]\n"
        some = "" if briefs == len(run) else f"the {briefs:,} that matter most of "
        return f"[{lines}: one sentence each of {some}{self.parts.counted(len(run))}]\n"

    def _said(self, whole: int, brief: int) -> str:
        """What was cut, in words."""
        parts, count = self.parts, len(self.parts.sections)
        if self.rule.fit != "recent":
            kept = (
                "the one that matters most is here"
                if whole == 1
                else f"the {whole:,} that matter most are here"
            )
            return f"{parts.counted(count)}; {kept}, {count - whole:,} left out"
        kept = (
            "none whole" if not whole else "the latest whole" if whole == 1 else f"the latest {whole:,} whole"
        )
        before = count - whole
        some = (
            f"the {brief:,} that matter most of the {before:,} before"
            if brief < before
            else f"the {before:,} before"
        )
        older = f"of {some} one sentence each" if brief else f"the {before:,} before left out"
        rest = f", {before - brief:,} left out" if 0 < brief < before else ""
        return f"{parts.counted(count)}; {kept}, {older}{rest}"

    def _framed(self, text: str, cut: str) -> int:
        """Tokens of what stands around a text: the line that points to it, its header, its fence."""
        path, fence = self.one.path, _fence(text)
        around = (
            pointer_line(path, self.rule.purpose, cut),
            f"{_header(path, cut)}{fence}\n",
            f"{fence}\n\n",
        )
        return sum(map(count_tokens, around)) + (2 if text[:1].isspace() else 0)

    def _given(self, text: str, tokens: int, cut: str) -> Given:
        return Given(self.one.path, self.rule.purpose, text, tokens, self.whole_tokens, cut, self.one.blob)


class Opened:
    """A file of which as little as can be is given at first, and then more, as long as there is room.

    Attributes:
        tokens: What it takes, at most, so far.
    """

    def __init__(self, file: Cuttable) -> None:
        self.file = file
        whole, brief = file.start
        self._whole, self._brief, self.tokens = set(whole), set(brief), file.least
        self._recent = file.rule.fit == "recent"
        self.offers = [n for n in file.order if n not in whole]
        self._note = (
            count_tokens(file.note(range(len(file.parts.sections)), 0)) + _NOTE_SLACK if self.offers else 0
        )

    def offer(self, index: int, room: int) -> int:
        """Take a section in if it takes no more than ``room``; what it takes is told."""
        section = self.file.parts.sections[index]
        if self._recent:
            cost = section.brief_tokens
        else:
            cost = section.tokens + self._note * (not self._has(index - 1) and not self._has(index + 1))
        if cost > room:
            return 0
        (self._brief if self._recent else self._whole).add(index)
        self.tokens += cost
        return cost

    def _has(self, index: int) -> bool:
        """Whether no note is needed beside a section; none is before the first and behind the last."""
        return index in self._whole or not 0 <= index < len(self.file.parts.sections)

    def given(self) -> Given:
        """The file as it is then."""
        return self.file.cut(self._whole, self._brief)


def fill(files: Sequence[Cuttable], room: int) -> list[Given]:
    """Give of each file what matters most, as much as there is room for together: the best of each first.

    Args:
        files: Those that are given in part.
        room: Tokens, no fewer than the sum of what each takes at least.
    """
    opened = [Opened(file) for file in files]
    left = room - sum(one.tokens for one in opened)
    longest = max((len(one.offers) for one in opened), default=0)
    for place in range(longest):
        for one in opened:
            if place < len(one.offers):
                left -= one.offer(one.offers[place], left)
    return [one.given() for one in opened]
