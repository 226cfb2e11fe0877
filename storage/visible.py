r"""Text for a person who decides on it: what cannot be seen is marked, and nothing can imitate a mark.

A mark stands in ``⟨`` and ``⟩``. Where the text itself has one of these, that is marked too. So what a person
reads has one meaning, whatever the text was written to look like.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

_NAMES = {
    "\0": "NUL",
    "\a": "BELL",
    "\b": "BACKSPACE",
    "\t": "TAB",
    "\r": "CR",
    "\x1b": "ESC",
    "\x7f": "DELETE",
}

_BLANK = re.compile(r"(?P<lines>(?:[ \t]*\n){5,})|(?P<spaces>[ \t]{40,})")
"""Blank runs that would push what follows them out of sight."""

_RUN = re.compile(r"([^\n ])\1*", re.DOTALL)

_IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3)),
    *((0x1D159, 0x1D159), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Unicode's Default_Ignorable_Code_Point, which Python does not know, and two that are drawn as blanks."""

_FIRST = [first for first, _ in _IGNORABLE]
_OURS = "⟨⟩"
_MARKS = {"Mn", "Me"}

_STACKED = 2
"""Combining marks on one letter that a language needs; more of them can paint over other letters."""


def marked(text: str) -> list[tuple[str, bool]]:
    r"""Split a text into pieces that are shown as they are, and marks of what cannot be seen.

    Returns:
        Each piece, and whether it is a mark. Long blank runs become one mark that says how long they are.

    >>> marked("ls\r\x1b[2K")
    [('ls', False), ('⟨CR⟩', True), ('⟨ESC⟩', True), ('[2K', False)]
    >>> marked("ls" + " " * 5000 + "; rm x")
    [('ls', False), ('⟨5,000 spaces⟩', True), ('; rm x', False)]
    """
    parts: list[tuple[str, bool]] = []
    last = 0
    for blank in _BLANK.finditer(text):
        parts += _letters(text[last : blank.start()])
        last = blank.end()
        if blank["spaces"]:
            what = "spaces and tabs" if "\t" in blank[0] else "spaces"
            parts.append((f"⟨{len(blank[0]):,} {what}⟩", True))
        else:
            parts += [(f"⟨{blank[0].count(chr(10)):,} line breaks⟩", True), ("\n", False)]
    parts += _letters(text[last:])
    return _joined(parts)


def visible(text: str) -> str:
    """Return a text as :func:`marked` shows it, as one string.

    >>> visible("echo \u202eevil ⟨CR⟩")
    'echo ⟨U+202E⟩evil ⟨U+27E8⟩CR⟨U+27E9⟩'
    """
    return "".join(part for part, _ in marked(text))


def notes_on(text: str) -> list[str]:
    """Return what a reader of a text may not see though each of its letters can be seen.

    >>> notes_on("cat pаsswd")
    ['It mixes alphabets within a word: “pаsswd” has U+0430 CYRILLIC SMALL LETTER A.']
    """
    if text.isascii():
        return []
    notes = []
    for word in re.findall(r"\w+", text):
        odd = next((one for one in word if not one.isascii() and one.isalpha() and not _is_latin(one)), "")
        if odd and any(one.isascii() and one.isalpha() for one in word):
            name = f"U+{ord(odd):04X} {unicodedata.name(odd, '')}".rstrip()
            notes.append(f"It mixes alphabets within a word: “{visible(word[:40])}” has {name}.")
            break
    if any(unicodedata.bidirectional(one) in {"R", "AL"} for one in text):
        notes.append("It has letters that are written from right to left: a terminal may reorder them.")
    return notes


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN ")


def _letters(text: str) -> Iterator[tuple[str, bool]]:
    if text.isascii() and text.replace("\n", "").isprintable():
        yield text, False
        return
    last = stacked = 0
    for run in _RUN.finditer(text):
        letter, length = run[1], len(run[0])
        if unicodedata.category(letter) in _MARKS:
            stacked += length
        else:
            stacked = 0
        if not _is_unseen(letter) and stacked <= _STACKED:
            continue
        yield text[last : run.start()], False
        last = run.end()
        name = _NAMES.get(letter, f"U+{ord(letter):04X}")
        yield (f"⟨{name}⟩" if length == 1 else f"⟨{name} ×{length:,}⟩"), True
    yield text[last:], False


def _is_unseen(letter: str) -> bool:
    if letter in _OURS or not letter.isprintable():
        return True
    place = bisect_right(_FIRST, ord(letter)) - 1
    return place >= 0 and ord(letter) <= _IGNORABLE[place][1]


def _joined(parts: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Join pieces that are shown as they are, and leave out empty ones."""
    found: list[tuple[str, bool]] = []
    for part, is_mark in parts:
        if not part:
            continue
        if found and not is_mark and not found[-1][1]:
            found[-1] = (found[-1][0] + part, False)
        else:
            found.append((part, is_mark))
    return found
