"""Cut one file of a dispatch to fit: choose which sections are given whole, as one sentence, or not at all.

A line in brackets replaces each omission and names the lines. The same is stated in words beside the file's
name.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal

import msgspec

from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.pipelines.definition.pipeline import Read
from agentx.synthesis.pipelines.dispatching.passages import Sections, Wanted, sections_of, tokens_of

_SLACK = 40
"""Maximum difference in tokens between two texts about a cut. The text is in the list of files, above the
file and in it.
"""

_NOTE_SLACK = 4
"""The same for one line in brackets, where only the numbers differ."""


Form = Literal["whole", "recent", "open"]
"""How a file is given: whole; its latest sections, and a sentence of each older one; or what matters most, as
far as it fits.
"""

FORMS: dict[str, tuple[Form, ...]] = {
    "whole": ("whole",),
    "recent": ("whole", "recent", "open"),
    "sections": ("whole", "open"),
}
"""The forms allowed by each ``fit`` of a pointer, in the order in which they are tried."""


class Candidate(msgspec.Struct, frozen=True):
    """A file that a role reads, as it is now.

    Attributes:
        path: The path shown to the agent: relative to the artifacts, or ``NAME:path`` for a source tree.
        blob: Git blob id of the complete file.
    """

    rule: Read
    path: str
    text: str
    blob: str = ""


class Given(msgspec.Struct, frozen=True):
    """A file as given to an agent.

    Attributes:
        text: The given part of it, with a note at each omission.
        tokens: Tokens of that text, with its header, its fence and its line in the prompt.
        whole_tokens: Tokens that the complete file would need.
        cut: What was cut, in words; empty if it is complete.
        blob: Git blob id of the complete file.
        file: Its name under ``files``.
    """

    path: str
    purpose: str
    text: str
    tokens: int
    whole_tokens: int
    cut: str = ""
    blob: str = ""
    file: str = ""


def fenced(given: Given) -> str:
    """Return a file as it is quoted in a prompt.

    Its fences are longer than any in the text, so that it cannot end its own quotation.
    """
    fence = _fence(given.text)
    return f"{_header(given.path, given.cut)}{fence}\n{given.text.rstrip()}\n{fence}"


def pointer_line(path: str, purpose: str, cut: str) -> str:
    """Return the line that lists a given file."""
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
        whole_tokens: Tokens of the complete file.
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
        """Indices of the latest sections, which are given whole if the file is a growing one."""
        count = len(self.parts.sections)
        return frozenset(range(max(count - self.rule.keep, 0), count))

    @cached_property
    def whole(self) -> Given:
        """The complete file."""
        return self._given(self.one.text, self.whole_tokens, "")

    @cached_property
    def recent(self) -> Given:
        """The latest sections whole, and a sentence of each older one."""
        return self.cut(self.latest, frozenset(range(len(self.parts.sections))) - self.latest)

    @cached_property
    def least(self) -> int:
        """Upper estimate of the tokens if as little as possible of it is given."""
        return self.cut(*self.start).tokens + _SLACK

    def takes(self, form: Form) -> int:
        """Return the tokens needed in a form; for ``open``, the minimum."""
        if form == "whole":
            return self.whole_tokens
        return self.recent.tokens if form == "recent" else self.least

    @cached_property
    def smallest(self) -> int:
        """Tokens needed when it is cut as far as its rule allows."""
        return min(self.takes(form) for form in FORMS[self.rule.fit])

    @property
    def start(self) -> tuple[frozenset[int], frozenset[int]]:
        """The sections that are given in any case: whole, and as one sentence."""
        return self.latest if self.rule.fit == "recent" else frozenset(self.order[:1]), frozenset()

    def cut(self, whole: Collection[int], brief: Collection[int]) -> Given:
        """Return the file with some sections whole, some as one sentence, and the others omitted.

        Sections are given by index.
        """
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
        """Return the line that replaces omitted sections, or introduces their one-sentence summaries."""
        first, last = self.parts.sections[run[0]], self.parts.sections[run[-1]]
        lines = f"lines {first.first_line}-{last.last_line}"
        if not briefs:
            return f"[{lines} left out: {self.parts.counted(len(run))}]\n"
        some = "" if briefs == len(run) else f"the {briefs:,} that matter most of "
        return f"[{lines}: one sentence each of {some}{self.parts.counted(len(run))}]\n"

    def _said(self, whole: int, brief: int) -> str:
        """Return what was cut, in words."""
        parts, count = self.parts, len(self.parts.sections)
        if self.rule.fit != "recent":
            most = "one that matters most is" if whole == 1 else f"{whole:,} that matter most are"
            return f"{parts.counted(count)}; the {most} here, {count - whole:,} left out"
        latest = "the latest whole" if whole == 1 else f"the latest {whole:,} whole"
        kept, before = latest if whole else "none whole", count - whole
        some = f"the {f'{brief:,} that matter most of the ' if brief < before else ''}{before:,} before"
        older = f"of {some} one sentence each" if brief else f"the {before:,} before left out"
        rest = f", {before - brief:,} left out" if 0 < brief < before else ""
        return f"{parts.counted(count)}; {kept}, {older}{rest}"

    def _framed(self, text: str, cut: str) -> int:
        """Count the tokens around a text: the line that lists it, its header, its fence."""
        path, fence = self.one.path, _fence(text)
        line, header = pointer_line(path, self.rule.purpose, cut), _header(path, cut)
        around = sum(map(count_tokens, (line, f"{header}{fence}\n", f"{fence}\n\n")))
        return around + (2 if text[:1].isspace() else 0)

    def _given(self, text: str, tokens: int, cut: str) -> Given:
        one, rule = self.one, self.rule
        return Given(one.path, rule.purpose, text, tokens, self.whole_tokens, cut, one.blob, rule.file)


class Opened:
    """A file that starts with as little as possible, and is extended as far as it fits.

    Attributes:
        tokens: Upper estimate of its tokens so far.
    """

    def __init__(self, file: Cuttable) -> None:
        self.file = file
        whole, brief = file.start
        self._whole, self._brief, self.tokens = set(whole), set(brief), file.least
        self._recent = file.rule.fit == "recent"
        self.offers = [n for n in file.order if n not in whole]
        note = file.note(range(len(file.parts.sections)), 0) if self.offers else ""
        self._note = count_tokens(note) + _NOTE_SLACK if note else 0

    def offer(self, index: int, room: int) -> int:
        """Add a section if it takes no more than ``room`` tokens. Return its tokens, or 0."""
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
        """Return whether a section needs no note beside it.

        No note is needed before the first or after the last.
        """
        return index in self._whole or not 0 <= index < len(self.file.parts.sections)

    def given(self) -> Given:
        """Return the file in its current form."""
        return self.file.cut(self._whole, self._brief)


def fill(files: Sequence[Cuttable], room: int) -> list[Given]:
    """Extend each file by what matters most, as far as all fit together: the best of each first.

    There is room for the sum of their minimums, at least.
    """
    opened = [Opened(file) for file in files]
    left = room - sum(one.tokens for one in opened)
    longest = max((len(one.offers) for one in opened), default=0)
    for place in range(longest):
        for one in opened:
            if place < len(one.offers):
                left -= one.offer(one.offers[place], left)
    return [one.given() for one in opened]
