"""Split a file of rules into statements: what it demands, each as a text that stands alone.

A list item is one statement with all its sentences. A nested item, a list or a block of code belongs to
the sentence that introduces it ("Before each commit:"). What forbids does so for all that follows below it:
an item "Use `any`" under "Never" is never read as an order to use it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.attribution.material import own_words
from agentx.synthesis.demands.classify import Demand, readings
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.verbs import is_base_verb
from agentx.synthesis.rule_files.hidden import Hidden, cleaned
from agentx.synthesis.scribe.orders import VERBS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RuleKind = Literal["constraint", "rejection", "rule"]

MAX_CHARACTERS = 600
"""Maximum length of a statement; longer text describes more than one rule."""

_CODE_LINES, _CODE_CHARACTERS = 3, 160
"""Maximum size of a block of code that becomes part of the sentence that introduces it."""

_LEAD_WORDS = 4
"""Maximum number of words of a heading or label that is completed by what follows ("Never", "Do not use")."""

_EMPHASIS = on_use(r"(\*\*|__|~~|(?<![\w*])[*_](?=\S)|(?<=\S)[*_](?![\w*]))")
_LINK = on_use(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}(?:\s[^()]{0,200})?\)")
_TAG = on_use(r"</?[A-Za-z][^<>]{0,200}>")
_TAG_LINE = on_use(r"^[ \t]*</?[A-Za-z][\w -]{0,60}>[ \t]*$", re.MULTILINE)
"""A line that is only a tag, as in ``<style>``: Markdown would take what follows for HTML."""
_CHECKBOX = re.compile(r"\[[ xX]\]\s+")
_SYMBOLS = on_use(r"[^\w\s`\"'(<\[@./$#-]+\s*")
_LABEL = on_use(
    r"(?:\*\*|__)(?P<name>[^*_\n]{1,80}?)(?::(?:\*\*|__)|(?:\*\*|__)\s*(?::|—|–| - ))\s*(?P<rest>\S.*)",
    re.DOTALL,
)
_MODAL = on_use(
    r"\b(?:must|shall|should|needs? to|ha(?:s|ve) to|ought to|may not|cannot|can not|can only|may only"
    r"|must not|you do not|mustn['’]t|shouldn['’]t|can['’]t)\b",
    re.IGNORECASE,
)
_MUST_NOT = on_use(
    r"\b(?:(?:must|shall|should|may|can|do) (?:not|never)|cannot|(?:must|should|ca|do)n['’]t)\b",
    re.IGNORECASE,
)
_CROSSES = "❌✗✘🚫⛔✖"
_IMPORT = on_use(r"(?<![\w`@/])@(?P<path>(?:~?/|\.{1,2}/)?[\w.-]+(?:/[\w.-]+)*\.\w{1,8})\b")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What a file demands in one place.

    Attributes:
        text: The words, complete on their own, in one line.
        kind: What it would be in memory.
        must_not: Whether it forbids.
        line: Line of the file where it begins, from 1.
        start: First character of its lines in the file's text, from 0.
        end: One past the last one.
        heading: The heading above it; empty for none.
    """

    text: str
    kind: RuleKind
    must_not: bool = False
    line: int
    start: int
    end: int
    heading: str = ""


class RuleFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a file of rules.

    Attributes:
        statements: What it demands, in order.
        left: Number of items and sentences that describe, explain or list, and demand nothing.
        hidden: What a reader of the rendered file does not see; no statement is made of it.
        imports: Files that it names with ``@``, as written; they are not read.
    """

    statements: tuple[Statement, ...] = ()
    left: int = 0
    hidden: tuple[Hidden, ...] = ()
    imports: tuple[str, ...] = ()


class _Block(msgspec.Struct):
    """A paragraph or list item, with what it stands under.

    Attributes:
        text: Its source, without list marks.
        first: Index of its first line; ``last`` is one past its last line.
        item: Whether it is a list item.
        lead: The block that introduces it; ``None`` for none.
        code: The short code that it introduces.
        step: Whether it is an item of a numbered list.
    """

    text: str
    first: int
    last: int
    item: bool
    heading: str
    lead: "_Block | None" = None
    code: str = ""
    step: bool = False


def split(text: str) -> RuleFile:
    r"""Return what a Markdown text demands.

    >>> found = split("- Never use tabs.\n- Before each commit:\n  - run `make lint`\n\nIt is a shop.")
    >>> [(one.line, one.kind, one.text) for one in found.statements]
    [(1, 'constraint', 'Never use tabs.'), (3, 'rule', 'Before each commit: run `make lint`')]
    >>> found.left
    1
    """
    plain, hidden = cleaned(text)
    plain = _TAG_LINE.sub("", plain)
    lines = plain.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: list[Statement] = []
    left = 0
    for block in _blocks(plain):
        for said, kind, must_not in _demands_of(block):
            if kind is None:
                left += 1
                continue
            found.append(
                Statement(
                    text=said, kind=kind, must_not=must_not, line=block.first + 1, heading=block.heading,
                    start=starts[block.first], end=min(starts[min(block.last, len(lines))], len(plain)),
                )
            )  # fmt: skip
    imports = tuple(dict.fromkeys(match["path"] for match in _IMPORT.finditer(plain)))
    return RuleFile(statements=tuple(_once(found)), left=left, hidden=hidden, imports=imports)


def demanded(text: str) -> RuleKind:
    """Return what a line is that a person wrote as a rule; a rule where its words do not say more.

    >>> demanded("Never use tabs."), demanded("Tabs, four wide")
    ('constraint', 'rule')
    """
    return _kind(text)[0] or "rule"


def same_words(text: str) -> str:
    """Return a text as it is compared: without case, emphasis, quotes and punctuation at its end.

    >>> same_words("**Never** use `tabs`.") == same_words("never use tabs")
    True
    """
    return " ".join(re.sub(r"[`*_\"'“”‘’]", "", text).casefold().split()).rstrip(" .!;:")


def _once(found: list[Statement]) -> Iterator[Statement]:
    seen: set[str] = set()
    for one in found:
        if (words := same_words(one.text)) not in seen:
            seen.add(words)
            yield one


# --- blocks -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415  (heavy: loaded with the first file)

    return MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])


def _blocks(text: str) -> list[_Block]:
    """Return paragraphs and list items, in order, each with the block that introduces it."""
    walk = _Walk()
    for token in _markdown().parse(text):
        walk.take(token)
    return walk.blocks


class _Walk:
    """Collects the blocks of a Markdown text from its tokens."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._heading = ""
        self._in_heading = False
        self._tables = 0
        self._depth = 0
        self._latest: dict[int, _Block | None] = {}
        """By depth of nesting: the block just before."""
        self._leads: list[_Block | None] = []
        """By depth of lists: what introduces the list."""
        self._numbered: list[bool] = []
        """By depth of lists: whether it is numbered."""

    def take(self, token: "Token") -> None:
        """Read the next token."""
        match token.type:
            case "heading_open":
                self._in_heading = True
            case "table_open" | "table_close":
                self._tables += token.nesting
            case "bullet_list_open" | "ordered_list_open":
                self._leads.append(self._lead())
                self._numbered.append(token.type.startswith("ordered"))
            case "bullet_list_close" | "ordered_list_close":
                self._leads.pop()
                self._numbered.pop()
                self._latest[self._depth] = None
            case "list_item_open" | "list_item_close":
                self._depth += token.nesting
                if token.nesting > 0:
                    self._latest[self._depth] = None
            case "fence" | "code_block":
                before = self._latest.get(self._depth)
                if before is not None and _opens(before.text):
                    before.code = _short_code(token)
                self._latest[self._depth] = None
            case "inline":
                self._text(token)

    def _text(self, token: "Token") -> None:
        if self._in_heading:
            self._heading, self._in_heading = _readable(token.content), False
            self._latest[self._depth] = None
        elif not self._tables:
            block = _block(token, self._heading, bool(self._depth))
            if self._leads and self._latest.get(self._depth) is None:
                block.lead = self._leads[-1]
            block.step = bool(self._numbered) and self._numbered[-1]
            self._latest[self._depth] = block
            self.blocks.append(block)

    def _lead(self) -> _Block | None:
        """Return what introduces the list that begins: the block just before, or the list around it."""
        before = self._latest.get(self._depth)
        if before is not None:
            return before if _opens(before.text) else None
        return self._leads[-1] if self._leads else None


def _block(token: "Token", heading: str, item: bool) -> _Block:  # noqa: FBT001 - a field of the block
    first, last = token.map or (0, 0)
    return _Block(token.content, first, last, item, heading)


def _opens(text: str) -> bool:
    """Return whether a text introduces what follows it."""
    return _readable(text).endswith(":")


def _short_code(token: "Token") -> str:
    lines = [line.strip() for line in token.content.splitlines() if line.strip()]
    code = "; ".join(lines)
    return (
        f"`{code}`" if len(lines) <= _CODE_LINES and len(code) <= _CODE_CHARACTERS and "`" not in code else ""
    )


def _readable(source: str) -> str:
    """Return the text of inline Markdown in one line, with code left in its marks."""
    parts = re.split(r"(`+[^`]*`+)", source)
    parts[::2] = [_EMPHASIS.sub("", _TAG.sub("", _LINK.sub(r"\1", part))) for part in parts[::2]]
    text = _CHECKBOX.sub("", one_line("".join(parts)).strip(), count=1)
    lead = _SYMBOLS.match(text)
    return text[lead.end() :] if lead and text[0] not in _CROSSES else text


# --- what a block demands -----------------------------------------------------------------------------------

_Reading = tuple[str, RuleKind | None, bool]


def _demands_of(block: _Block) -> Iterator[_Reading]:
    """Yield what a block says, piece by piece, each with what it would be; ``None`` demands nothing."""
    label = _LABEL.match(_SYMBOLS.sub("", block.text, count=1) if block.text[:1] not in "*_" else block.text)
    words = _readable(block.text)
    if block.code:
        words = f"{words} {block.code}"
    elif _opens(block.text):  # its last sentence is complete only with what it introduces
        words = "" if block.item else words.removesuffix(_introduction(block.text)).rstrip()
        if not words:
            return
    if not words.strip("`_-*. ") or words[0] in _CROSSES:
        yield words, None, False
        return
    above = [label["name"]] if label else []
    own = _readable(label["rest"]) + (f" {block.code}" if block.code else "") if label else words
    if block.lead is not None:
        above.append(_introduction(block.lead.text))
    above.append(block.heading)
    if block.code and _is_condition(words):
        yield words, "rule", False
    elif block.item or block.code:
        said, kind, must_not = _read(words, own, above)
        # A step is an order only within its procedure, which the heading names.
        step = block.step and kind == "rule" and said == words and block.heading
        yield f"{block.heading}: {said}" if step else said, kind, must_not
    else:
        labelled = words.removesuffix(own)
        for sentence in _sentences(words):
            yield _read(sentence, sentence.removeprefix(labelled), above)


def _introduction(text: str) -> str:
    """Return the last sentence of a text that introduces what follows."""
    return list(_sentences(_readable(text)))[-1]


def _read(words: str, own: str, above: list[str]) -> _Reading:
    """Return what an item or sentence is, completed by what it stands under."""
    kind, must_not = _kind(own)
    lead = next((one for one in above[-2:-1] if one.endswith(":")), "")
    for over in above:
        if not must_not and (_forbids(over) or _is_prefix(over)):
            joined = f"{over.rstrip(':').rstrip()}: {words}" if not words.startswith(over) else words
            completed, forbids = _kind(f"{over.rstrip(':')} {own[:1].lower()}{own[1:]}")
            if _forbids(over):
                return _bounded(joined, completed or "constraint", must_not=True)
            if completed and not kind:
                return _bounded(joined, completed, must_not=forbids)
    if lead and (kind is None or _is_condition(lead)):
        led, forbids = _kind(lead.rstrip(":"))
        if kind is None and (
            led is None or not (led == "constraint" or _MODAL.search(lead) or _is_prefix(lead))
        ):
            led, forbids = _kind(f"{lead.rstrip(':')}, {own}") if _is_condition(lead) else (None, False)
        if kind or led:
            return _bounded(f"{lead} {words}", kind or led, must_not=must_not or forbids)
    return _bounded(words, kind, must_not=must_not)


def _bounded(text: str, kind: RuleKind | None, *, must_not: bool) -> _Reading:
    found = "constraint" if must_not and kind == "rule" else kind
    return text, found if len(text) <= MAX_CHARACTERS else None, must_not


def _forbids(over: str) -> bool:
    """Return whether a heading, label or introduction turns what follows into what must not be."""
    short = 0 < len(over.split()) <= _LEAD_WORDS
    negated = short and bool(v.FEATURES["negated"].search(spelt_out(over).text.lower()))
    return negated or _kind(over.rstrip(":"))[1]


def _is_prefix(over: str) -> bool:
    words = over.rstrip(":").split()
    return 0 < len(words) <= _LEAD_WORDS and over.endswith(":")


def _is_condition(lead: str) -> bool:
    """Return whether an introduction says when what follows applies."""
    return bool(_WHEN.match(lead))


_WHEN_WORDS = (
    "before|after|when|whenever|while|during|if|upon|prior to|for (?:each|every)|(?:each|every) time|once"
    "|at the (?:start|beginning|end) of|on (?:each|every)"
)
_WHEN = on_use(rf"(?:always |never )?(?:{_WHEN_WORDS})\b", re.IGNORECASE)


def _sentences(words: str) -> Iterator[str]:
    """Yield the sentences of a paragraph; code with a full stop in it does not end one."""
    masked = re.sub(r"`[^`]*`", lambda code: "x" * len(code.group()), words)
    for span in sentences(masked):
        yield words[span.start : span.end]


def _kind(words: str) -> tuple[RuleKind | None, bool]:
    """Return what words demand, and whether they forbid."""
    if words.rstrip().endswith("?"):
        return None, False
    own = own_words(spelt_out(words).text).strip()
    for reading in readings(words):
        for rule in reading.rules:
            if rule.certainty == "active" and not _EXISTS.match(own):
                must_not = not isinstance(rule, Demand) or rule.modality == "must_not"
                return "constraint" if isinstance(rule, Demand) else "rejection", must_not
    if _OUR_BAN.match(own):
        return "rejection", True
    pieces = [part for piece in _PIECES.split(own) for part in (piece, *_after_condition(piece))]
    if any(_BAN.match(piece) and not _NEEDLESS.search(piece) for piece in pieces):
        return "constraint", True
    if _MODAL.search(own) and _MUST_NOT.search(own):
        return "constraint", True
    if any(_is_order(piece) for piece in pieces) or _MODAL.search(own) or _CONTRAST.search(own):
        return "rule", False
    return None, False


def _after_condition(piece: str) -> Iterator[str]:
    """Yield what may be the order behind a condition, place or purpose ("When adding a route, …")."""
    if _WHEN_CLAUSE.match(piece):
        yield from (piece[comma.end() :] for comma in re.finditer(r"[,:]\s+", piece))


def _is_order(piece: str) -> bool:
    """Return whether words begin with an order: a known verb, or a verb's base form with an object."""
    if _ORDER.match(piece):
        return True
    found = _OBJECT.match(piece)
    return found is not None and is_base_verb(found["verb"])


_PIECES = on_use(r"(?<=[.!?;])\s+|\s+[—–]\s+|\s+-\s+")
_ADVERBS = r"(?:please |always |only |also |then |now |first,? |instead,? |otherwise,? |note: |important: )*"
_ORDER = on_use(
    rf"{_ADVERBS}(?:{v.POLICY_VERBS}|{VERBS})\b"
    r"(?!\s*(?:[:=—–/,]|\(|(?:is|are|was|were|has|does|will|can)\b))",
    re.IGNORECASE,
)
"""An order at the beginning of a sentence; not a noun with its verb, and not a label."""

_OBJECT = on_use(
    rf"{_ADVERBS}(?P<verb>[A-Za-z]{{3,}}) "
    r"(?:a|an|the|any|all|every|each|your|our|this|these|those|it|them|both)\b"
    r"(?! (?:is|are|was|were|has|have)\b)"
)
_BAN = on_use(r"(?:never|no|not|avoid|do not|don't|don’t|without|refrain from)\b(?!\s*[:=])", re.IGNORECASE)
_OUR_BAN = on_use(r"(?:we|i) (?:\w+n['’]t|(?:(?:do|will|are|am) )?(?:not|never))\b", re.IGNORECASE)
_EXISTS = on_use(r"there (?:is|are|was|were)\b", re.IGNORECASE)
_NEEDLESS = on_use(r"\b(?:needed|required|necessary|exists?|yet|longer)\b[^,;]{0,40}$", re.IGNORECASE)
_CONTRAST = on_use(r"\b(?:instead of|rather than)\b", re.IGNORECASE)
_WHEN_CLAUSE = on_use(rf"(?:{_WHEN_WORDS}|in|for|at|on|to)\b[^;.]{{1,200}}[,:]\s", re.IGNORECASE)
