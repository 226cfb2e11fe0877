"""Decoded views of a text, each with a map back: the text as a terminal, a parser or a shell sees it.

A secret often hides behind a colour code, an escape sequence, percent-encoding, or a line break inserted by a
terminal, a mail program or a diff. Each view undoes one layer of such wrapping. Searches run on the views.
What they find is replaced in the original text, and everything else stays the same byte for byte. A text
without wrapping has no views, and checking for that is one linear search.
"""

import base64
import functools
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

DEPTH = 5
"""Maximum number of encoding layers that are undone: ``%25253D``, JSON in JSON in JSON, base64 in base64."""

_ENCODED = 8_192
"""Maximum length of base64 text that is decoded, in characters; anything longer is a file."""


_REACH = 400
"""Maximum distance from a replacement of a secret that is found only because of it, in characters."""


class View(NamedTuple):
    """A text with some pieces replaced, and the original position of each piece.

    Attributes:
        text: The text after the replacements.
        before: The view from which this one was made; ``None`` if it was made from the original text.
        starts, ends: Start and end of each replacement in ``text``.
        origins, stops: Start and end of the replaced piece in the text before.
    """

    text: str
    before: "View | None"
    starts: "array[int]"
    ends: "array[int]"
    origins: "array[int]"
    stops: "array[int]"

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of the view to the original text; a replaced piece is never cut in half."""
        start, end = self._place(start, self.origins, 0), self._place(end - 1, self.stops, 1)
        return self.before.span(start, end) if self.before else (start, end)

    def _place(self, offset: int, side: "array[int]", beyond: int) -> int:
        at = bisect_right(self.starts, offset) - 1
        if at < 0:
            return offset + beyond
        if offset < self.ends[at]:
            return side[at]
        return self.stops[at] + offset - self.ends[at] + beyond

    def changed(self) -> Iterator[tuple[int, int]]:
        """Yield the parts of the view around its replacements, each from the start of a word or line.

        The rest is the same as in the text before.
        """
        start = end = -1
        for first, last in zip(self.starts, self.ends, strict=True):
            if end < 0 or first - _REACH > end:
                if end >= 0:
                    yield start, end
                at = max(0, first - _REACH)
                word = max(self.text.rfind(blank, max(0, at - 4 * _REACH), at) for blank in "\n ") + 1
                start = word or at
            end = min(last + _REACH, len(self.text))
        yield start, end

    def narrowed(self, start: int, end: int) -> tuple[int, int]:
        """Adjust a span of the text before so that it does not cut a replaced piece in half.

        A span that starts inside a piece starts with it instead; one that ends inside a piece ends before it.
        """
        at = bisect_right(self.origins, end - 1) - 1
        if at >= 0 and start < self.origins[at] < end < self.stops[at]:
            end = self.origins[at]
        at = bisect_right(self.origins, start) - 1
        if at >= 0 and self.origins[at] < start < self.stops[at] < end:
            start = self.origins[at]
        return start, end


# --- encodings ----------------------------------------------------------------------------------------------

INVISIBLE = (
    r"\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
)
FULLWIDTH = r"\uff01-\uff5e"
_CONTROL = r"[0-?]{0,64}[ -/]{0,4}[@-~]"
_BLANK = {9: " ", 10: " ", 13: " ", 12: " ", 11: " ", 27: " "}
_BREAK = r"\r?\n[ \t]{0,80}"
LOST = re.compile(r"\[(?:(?:[0-9]{1,3};){0,4}[0-9]{1,3}m(?=\w)|0m)")
_WIDE = re.compile(f"[{FULLWIDTH}]")
_ALTERNATIVES: tuple[tuple[Callable[[str], object], str], ...] = (
    (
        lambda text: "\\" in text,
        (
            rf"\\(?:{_BREAK}|(?P<back>u\{{[0-9a-fA-F]{{1,6}}\}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}"
            r"|x[0-9a-fA-F]{2}|[01][0-7]{2}|[\"'/\\ntrbfave0`]))"
        ),
    ),
    (lambda text: "%" in text, r"%(?:25){0,8}(?P<byte>[0-9a-fA-F]{2})"),
    (lambda text: "&" in text, r"&(?P<entity>\#[0-9]{1,7};|\#[xX][0-9a-fA-F]{1,6};|[A-Za-z]{2,8};)"),
    (
        lambda text: "\x1b" in text,
        (
            rf"\x1b(?:\[{_CONTROL}|\][^\x07\x1b\n]{{0,2048}}(?:\x07|\x1b\\)"
            r"|[PX^_][^\x1b\n]{0,2048}\x1b\\|[ -/]{0,3}[0-~])?"
        ),
    ),
    (lambda text: "\x9b" in text, rf"\x9b{_CONTROL}"),
    (lambda text: "^" in text and "m" in text, rf"\^(?:\[\[[0-9;]{{0,16}}[A-Za-z]|[ ]?{_BREAK})"),
    (lambda text: " `" in text, rf"`(?<=[ \t]`)[ ]?{_BREAK}"),
    (lambda text: "[" in text and LOST.search(text), LOST.pattern),
    (lambda text: not text.isascii() or not text.translate(_BLANK).isprintable(), f"[{INVISIBLE}]"),
    (lambda text: not text.isascii() and _WIDE.search(text), f"(?P<wide>[{FULLWIDTH}])"),
    (lambda text: "</" in text, r"</?[A-Za-z][0-9A-Za-z]{0,15}(?:[ ][^<>\n]{0,300})?>"),
    (lambda text: "\b" in text, r"(?P<struck>.\x08)"),
    (
        lambda text: any(sign in text for sign in ("=3D", "=\n", "=\r\n")),
        r"=(?:(?P<soft>\r?\n)|(?P<quoted>[0-9A-F]{2}))",
    ),
)
"""A test whether an encoding can occur, and its pattern, which begins with a literal that is fast to find."""


@functools.cache
def _joined(numbers: tuple[int, ...]) -> re.Pattern[str] | None:
    """Return the pattern of the encodings with some numbers."""
    return re.compile("|".join(_ALTERNATIVES[number][1] for number in numbers)) if numbers else None


_CONTROLS = {
    "n": "\n", "t": "\t", "r": "\r", "b": "", "f": "\f", "a": "", "v": "\v", "e": "\x1b", "0": "", "`": "`",
}  # fmt: skip


def _decoded(match: re.Match[str]) -> str | None:
    """Return the character that an encoded one represents; ``None`` if it is not an encoded character."""
    kind = match.lastgroup
    if kind in (None, "struck", "soft"):
        return ""
    if kind == "back":
        return _unescaped(match["back"])
    if kind in ("byte", "quoted"):
        char = chr(int(match[kind], 16))
        # The remaining bytes of UTF-8 cannot be part of a secret.
        return char if char.isascii() and (char.isprintable() or char in "\n\r\t\x1b") else None
    if kind == "entity":
        char = __import__("html").unescape(match[0])
        return char if char != match[0] else None
    return chr(ord(match[0]) - 0xFEE0)


def _unescaped(escape: str) -> str | None:
    kind = escape[0]
    if len(escape) == 1:
        return _CONTROLS.get(kind, escape)
    if kind in "01":
        return chr(int(escape, 8))
    code = int(escape.strip("uUx{}"), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else None  # noqa: PLR2004 - Unicode's


# --- split tokens -------------------------------------------------------------------------------------------

_PREFIX = (
    # Quotes, comments, diffs, line numbers.
    r"[ \t]{0,120}+(?:(?:[>|+*;#-]|//|--|REM|\d{1,6}[|:])[ \t]{1,8}|[+>|-]"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]{0,16}(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]{1,8}"
    r"(?:\[?[A-Z]{4,8}\]?:?[ \t]{1,8})?"
    r"|\d\d:\d\d:\d\d[\d.,]{0,8}[ \t]{1,8}|[\w.-]{1,60}[ \t]{0,20}\|[ \t]{1,8})?"
)
_CHUNK = r"[0-9A-Za-z+/_~.-]"
_SPLIT = re.compile(
    r"[\r\n\"'\\](?:"
    rf"(?:(?<=[\w+/=~.:\"'-]{{3}}\n)|(?<=[\w+/=~.:\"'-]{{3}}\r)\n){_PREFIX}"
    r"(?:(?=[0-9A-Za-z]{1,3}[\"'])|(?=[a-z_./-]{0,80}+[0-9A-Z])"
    rf"(?=(?P<chunk>{_CHUNK}{{10,512}}+={{0,2}}(?![:=\w])|{_CHUNK}{{2,9}}+={{0,2}}(?=[\r\n\"'`,;)@&]|$))))"
    r"|(?<=[\w+/=~.-][\"'])(?:"
    r"(?:[ \t]{0,40}+[+&.~<|][&.<|]?)?[ \t]{0,40}+\\?\r?\n?[ \t]{0,120}+"
    r"(?:[+&.~<|][&.<|]?[ \t]{0,40}+)?[rbufRBUF]?[\"'](?=[\w+/=~.-])"
    r"|[ \t]{0,4}(?:;[ \t]{0,4}|\r?\n)[ \t]{0,8}[A-Za-z_]\w{0,60}\+=[\"'](?=\w)"  # KEY="a"; KEY+="b"
    r"|(?<=\w[\"'])(?<!\W[rbufRBUF][\"'])[\"']?(?=\w)(?!(?:s|t|re|ll|ve|d|m)\b))"
    r"|(?<=[ ][\"'])[\"'](?=\w)|(?<=\w\\)(?=[ghijklmopqyz_A-CE-RT-VX-Z2-9-]))"
    r"|`(?<=\w`)(?=[\w$])"
)
_SHORT, _RANDOM_DIGITS = 10, 2
_CAMEL = re.compile("[a-z][A-Z]")
_WORDS = re.compile(
    r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[-_./](?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4})){0,40}[.]?(?:[0-9]{1,2})?"
)


def _glued(match: re.Match[str]) -> str | None:
    """Return an empty replacement for a break, if the text after it looks like the rest of a token."""
    chunk = match["chunk"]
    if chunk is None:
        return ""
    digits = sum(map(str.isdigit, chunk))
    if not (digits == len(chunk) or _WORDS.fullmatch(chunk) or chunk.count("/") > 2 + len(chunk) // 12) and (
        digits >= (1 if len(chunk) < _SHORT else _RANDOM_DIGITS) or _CAMEL.search(chunk)
    ):
        return ""
    # What looks like a numbered word is such a rest if the text before the break is random.
    end = match.end() + len(chunk)
    head = _TAIL.search(match.string, max(0, match.start() - _HEAD), match.start())
    if not head or not 0 < digits < len(chunk) or end > len(match.string):
        return None
    ends = match.string[end : end + 1] in ("", "\n", "\r", '"', "'")
    return "" if ends and sum(map(str.isdigit, head[0])) > 1 and not _WORDS.fullmatch(head[0]) else None


_HEAD = 64
_TAIL = re.compile(r"[0-9A-Za-z]{6,}\Z")


# --- views --------------------------------------------------------------------------------------------------


def decodings(text: str) -> Iterator[View]:
    """Undo encodings layer by layer.

    These are escape sequences, invisible characters, backslash escapes, percent-encoding and entities.
    """
    if _is_plain(text):
        return
    view: View | None = None
    for _ in range(DEPTH):
        source = view.text if view else text
        pattern = _joined(tuple(number for number, (can, _) in enumerate(_ALTERNATIVES) if can(source)))
        view = _replaced(source, pattern, _decoded, view) if pattern else None
        if view is None:
            return
        yield view


_PLAIN = bytes({*range(32, 127), *b"\t\n\v\f\r"} - set(b"\\%&^`[<="))


def _is_plain(text: str) -> bool:
    """Return whether a text has none of the characters of which each encoding has one."""
    return text.isascii() and not text.encode().translate(None, _PLAIN)


def glued(text: str, before: View | None) -> View | None:
    """Join what line breaks, quotes and concatenation split, in a text or in a view of it."""
    return _replaced(text, _SPLIT, _glued, before)


def _replaced(
    text: str, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str | None], before: View | None
) -> View | None:
    parts: list[str] = []
    starts, ends, origins, stops = array("q"), array("q"), array("q"), array("q")
    last = shift = 0
    for match in pattern.finditer(text):
        new = by(match)
        if new is None:
            continue
        start, stop = match.span()
        parts += (text[last:start], new)
        starts.append(start + shift)
        ends.append(start + shift + len(new))
        origins.append(start)
        stops.append(stop)
        shift += len(new) - (stop - start)
        last = stop
    if not starts:
        return None
    parts.append(text[last:])
    return View("".join(parts), before, starts, ends, origins, stops)


_LINK = re.compile(r"(?:\x1b\]|\x9d)([^\x07\x1b\x9c\x9d\n]{6,2048})")


def commands(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a terminal command's content: the address of a hyperlink, the title of a window."""
    if "\x1b]" in text or "\x9d" in text:
        yield from (match.span(1) for match in _LINK.finditer(text))


BASE64 = re.compile(
    r"(?<![0-9A-Za-z+/_-])(?:[CI-Za-f][0-9A-Za-z+/_-]{3}){4,}+[0-9A-Za-z+/_-]{0,3}={0,2}(?![0-9A-Za-z+/_=-])"
)
"""The first of four characters holds six bits of a printable ASCII byte, which excludes digits and hashes."""

BASE32 = re.compile(r"(?<![0-9A-Za-z+/_-])(?:[E-P][A-Z2-7]{7}){2,}+[A-Z2-7]{0,7}={0,6}(?![0-9A-Za-z+/_=-])")
"""The first of eight characters holds five bits of a printable ASCII byte."""


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield base64 and base32 texts within a text: start, end, and decoded content."""
    for match in BASE64.finditer(text):
        piece = match[0].rstrip("=").translate(_URL_SAFE)
        if len(piece) > _ENCODED or len(piece) % 4 == 1:
            continue
        if shown := _said(base64.b64decode(piece + "=" * (-len(piece) % 4))):
            yield *match.span(), shown
    for match in BASE32.finditer(text):
        piece = match[0].rstrip("=")
        if len(piece) > _ENCODED or len(piece) % 8 in (1, 3, 6):
            continue
        if shown := _said(base64.b32decode(piece + "=" * (-len(piece) % 8))):
            yield *match.span(), shown


def _said(data: bytes) -> str:
    """Return decoded bytes as text; empty if they are none."""
    if data.isascii() and (shown := data.decode("ascii")).translate(_BLANKS).isprintable():
        return shown
    return ""


_URL_SAFE = str.maketrans("-_", "+/")
_BLANKS = str.maketrans("\n\r\t", "   ")
