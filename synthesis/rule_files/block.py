"""The block of a file that holds exported rules: between two markers, with a digest of what was written.

What stands outside the markers is never changed. The digest in the first marker tells whether a person
changed what is inside, whichever version of the block the file holds.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, RejectionDetail, Scope
from agentx.synthesis.rule_files.differences import Found
from agentx.synthesis.rule_files.statements import demanded
from agentx.synthesis.state.rule_lifecycle import is_critical

MAX_TOKENS = 2_000
"""Default budget of a block."""

MIN_TOKENS = 100

_NOTE = "Kept by AgentX. What you change here becomes a proposal: `agentx memory review`"
_BEGIN = re.compile(r"^[ \t]*<!-- agentx:rules ([0-9a-f]{16})\b[^\n]*-->[ \t]*\r?$", re.MULTILINE)
_END = re.compile(r"^[ \t]*<!-- agentx:end -->[ \t]*\r?$", re.MULTILINE)
_TITLE = "## Rules"
_MORE = re.compile(r"\d+ more: `agentx memory list`\.")
_NONE = "No other rules."
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+")
_SUFFIX = re.compile(
    r" \((?:in (?P<paths>`[^`]+`(?:, `[^`]+`)*))?(?:(?(paths), )until (?P<until>[^()]+))?\)$"
)


class MarkersBroken(UsageError):
    """The markers of a block do not match."""


class Block(msgspec.Struct, frozen=True):
    """Exported rules.

    Attributes:
        body: The text between the markers, without the line ends beside them.
        items: IDs of the items, in the order of their lines.
        more: Number of items that did not fit.
        tokens: Size of the whole block.
    """

    body: str
    items: tuple[str, ...]
    more: int
    tokens: int

    @property
    def digest(self) -> str:
        """Names the text."""
        return digest_of(self.body)

    @property
    def text(self) -> str:
        """The block with its markers."""
        return f"<!-- agentx:rules {self.digest} {_NOTE} -->\n{self.body}\n<!-- agentx:end -->"


class Place(msgspec.Struct, frozen=True):
    """Where a block is in a file.

    Attributes:
        start: First character of the first marker.
        end: One past the last marker.
        digest: What its first marker says was written.
        body: What is between the markers now, with plain line ends.
        line: Line of the first marker, from 1.
    """

    start: int
    end: int
    digest: str
    body: str
    line: int

    @property
    def is_edited(self) -> bool:
        """Whether what is between the markers was changed."""
        return digest_of(self.body) != self.digest


def digest_of(body: str) -> str:
    """Return the name of a text."""
    return blake2b("\n".join(line.rstrip() for line in body.split("\n")).encode(), digest_size=8).hexdigest()


def exported(items: Iterable[MemoryItem]) -> list[MemoryItem]:
    """Return the items that an export contains, the most important first.

    They are the active constraints, rejections and rules that are for every agent.
    """
    found = [
        item
        for item in items
        if item.status == "active"
        and item.kind in ("constraint", "rejection", "rule")
        and not item.agent
        and not (isinstance(item.detail, RejectionDetail) and item.detail.call is not None)
    ]
    return sorted(found, key=_importance)


def render(items: Iterable[MemoryItem], max_tokens: int = MAX_TOKENS) -> Block:
    """Return the block of some items within a budget.

    Raises:
        UsageError: The budget is too small.
    """
    if max_tokens < MIN_TOKENS:
        raise UsageError(f"A block needs at least {MIN_TOKENS} tokens, not {max_tokens}.")
    lines, taken, left = [], [], list(items)
    frame = count_tokens(Block(f"{_TITLE}\n\n99 more: `agentx memory list`.", (), 0, 0).text)
    used = frame
    while left:
        line = f"- {line_of(left[0])}"
        cost = count_tokens(line) + 1
        if used + cost > max_tokens:
            break
        used += cost
        lines.append(line)
        taken.append(left.pop(0).id)
    parts = [_TITLE, "\n".join(lines)] if lines else [_TITLE] if left else [_TITLE, _NONE]
    parts += [f"{len(left)} more: `agentx memory list`."] if left else []
    block = Block("\n\n".join(parts), tuple(taken), len(left), 0)
    return msgspec.structs.replace(block, tokens=count_tokens(block.text))


def line_of(item: MemoryItem) -> str:
    """Return the line of an item: its text, where it applies and until when."""
    where = ", ".join(f"`{path}`" for path in item.scope.paths)
    parts = [f"in {where}"] if where else []
    parts += [f"until {one_line(item.until)}"] if item.until else []
    text = one_line(item.text).replace("<!--", "<!—").replace("-->", "—>")
    return f"{text} ({', '.join(parts)})" if parts else text


def find(text: str) -> Place | None:
    """Return where the block is; ``None`` for a file without one.

    Raises:
        MarkersBroken: One marker is missing, or there are several blocks.
    """
    begins, ends = list(_BEGIN.finditer(text)), list(_END.finditer(text))
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].end():
        raise MarkersBroken(
            "The markers of the exported rules do not match: there must be one `<!-- agentx:rules … -->`, "
            "and one `<!-- agentx:end -->` behind it. Restore them, or delete both."
        )
    begin, end = begins[0], ends[0]
    body = text[begin.end() : end.start()].replace("\r\n", "\n").strip("\n")
    line = text.count("\n", 0, begin.start()) + 1
    return Place(begin.start(), end.end() - end.group().endswith("\r"), begin[1], body, line)


def insert(text: str, block: Block, place: Place | None) -> str:
    """Return a file's text with a block in its place, or at the end; the rest is the same to the byte."""
    newline = "\r\n" if "\r\n" in text else "\n"
    written = block.text.replace("\n", newline)
    if place is not None:
        return text[: place.start] + written + text[place.end :]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{written}{newline}"


def without(text: str) -> str:
    """Return a text with its block blanked out, each line at its place."""
    place = find(text)
    if place is None:
        return text
    return text[: place.start] + "\n" * text.count("\n", place.start, place.end) + text[place.end :]


def stated(place: Place, path: str) -> list[Found]:
    """Return the rules that the lines of a block state now; any line counts that is not the frame."""
    found: list[Found] = []
    offset = 0
    for number, line in enumerate(place.body.split("\n"), start=place.line + 1):
        start, offset = offset, offset + len(line) + 1
        said = line.strip()
        if not said or said in (_TITLE, _NONE) or _MORE.fullmatch(said):
            continue
        mark = _ITEM.match(said)
        if not mark and found and line[:1].isspace():  # the item goes on
            found[-1] = msgspec.structs.replace(
                found[-1], text=f"{found[-1].text} {said}", end=start + len(line)
            )
            continue
        text = said[mark.end() :] if mark else said.lstrip("# ")
        suffix = _SUFFIX.search(text)
        paths = re.findall(r"`([^`]+)`", suffix["paths"] or "") if suffix else []
        text = text[: suffix.start()] if suffix else text
        found.append(
            Found(
                text=text, kind=demanded(text), scope=Scope(paths=tuple(paths)), where=f"{path}:{number}",
                start=start, end=start + len(line), quote=text[:400],
            )
        )  # fmt: skip
    return found


def _importance(item: MemoryItem) -> tuple[int, bool, float, int]:
    wish = isinstance(item.detail, ConstraintDetail) and item.detail.modality == "prefer"
    rank = {"constraint": 1, "rejection": 2}.get(item.kind, 3)
    rank = 0 if is_critical(item) else 4 if wish else rank
    return rank, not item.pinned, -item.score, item.created_seq
