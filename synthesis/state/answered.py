"""The agent's sentence that a message of the user answers.

"Yep, do that" means something only beside the question before it. What an answer refers to is read from the
agent's last message since the user last wrote, without a model:

1. the option that the user names, if the agent listed options ("go with 1", "option B", "the second one");
2. the question or the proposal at the end of the message, with the sentence before it if it refers back;
3. the sentence whose words a short answer takes up ("signature? out with it"), or the earlier question that
   is open because the user asked back.
"""

import re
from collections.abc import Iterator, Sequence

from agentx.storage.events.actor import Actor
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span, sentences
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.items import Evidence
from agentx.synthesis.state.state import Message, State

MAX_QUOTE = 400
"""Maximum number of characters quoted of the agent."""

_TAIL = 4
"""Number of last sentences in which a question or a proposal is looked for."""

_SHORT = 160
"""Maximum length of an answer that may take up any sentence of the agent's message by its words."""

_FEW_WORDS = 3
"""A question with fewer content words is understood only with the sentence before it."""

_GAP = "\n\n\n"
"""Separates the beginning of a message from its end."""

_BEFORE = 3
"""Maximum number of sentences quoted before a question that refers back."""

_CONTEXT = 260
"""Characters up to which more than one sentence before it is quoted."""

_BY_CHANCE = 1
"""Content words that an answer and a sentence may share by chance."""

_BREAKS = 2
"""Maximum number of line breaks between sentences that are quoted together."""

_FENCE_LINE = on_use(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_FENCE = on_use(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_ASKS = on_use(r"\?[\"')\]*_]*$")
_PROPOSES = on_use(
    r"\?[\"')\]*_]*$"
    r"|\b(?:i|we)(?:'d| would| could| can| might| should|'ll| will|(?: am|'m) going to| plan to| intend to)\b"
    r"|\b(?:suggest|recommend|propos|option|alternativ)\w*"
    r"|\b(?:would|could|might) (?:be|mean|make|cost|have|need|take)\b"
    r"|\blet me know\b|\byour call\b|\bup to you\b",
    re.IGNORECASE,
)
_REFERS_BACK = on_use(
    r"\b(?:it|its|that|this|these|those|them|they|their|so|he|him|his|she|her|ones?|either|both|which|first"
    r"|second|third|former|latter|then|there)\b",
    re.IGNORECASE,
)

_LABEL = r"(?:[1-9]|[A-Ha-h])"
_OPTION = on_use(
    rf"(?:^[ \t]*(?:[-*•#]+[ \t]*)?|(?<=[\s(:;,.]))[*_(]*(?:(?:option|variant|approach|alternative|plan"
    rf"|choice) )?#?(?P<label>{_LABEL})[*_]*[.):][*_]*[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_REST = on_use(r"[\s,;(*_-]+(?:(?:or|and)[\s(*_]*)?$", re.IGNORECASE)
"""What leads from one option of a list to the next."""

_NUMBERS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "former": 1, "latter": -1, "last": -1
}  # fmt: skip
_NAMED = on_use(
    rf"\b(?:option|variant|approach|alternative|plan|choice|proposal|phase|step) ?#?{_LABEL}\b", re.IGNORECASE
)
_PICKS = on_use(
    rf"\b(?:options?|numbers?|no\.|nr\.?|variant|approach|choice|plan|proposal|point|item|alternative|step)"
    rf" *#?(?P<named>{_LABEL})\b"
    rf"|\b(?:go|going|went|stick|start) (?:with|for) (?:the )?#?(?P<chosen>{_LABEL})\b"
    rf"|\b(?:take|pick|choose|use|do|prefer|only|just|then|and|both) #?(?P<taken>[1-9]|[A-H])\b"
    rf"|\A\W*(?:(?:ok(?:ay)?|yes|yep|let'?s do|i'?d say|hm+)\W+)?#?(?P<bare>{_LABEL})"
    rf"(?=[.,;:!)\s]*(?:$|[,.;:)!]|\b(?:please|and|but|it|is)\b))"
    rf"|(?:\A\W*|\bthe )(?P<ordinal>{'|'.join(_NUMBERS)})"
    rf"(?= (?:one|option|variant|way|approach|idea)\b|[.,;:!]|\W*$)",
    re.IGNORECASE,
)


def answered(state: State, text: str, seq: int) -> Evidence | None:
    """Return the agent's sentence that a message of the user answers.

    Args:
        state: The state, with or without the message itself.
        text: The words of the user: a whole message, or the part of it that answers.
        seq: The event of the message; later messages are ignored.

    Returns:
        The sentence, at most :data:`MAX_QUOTE` characters; ``None`` if no agent has written since the user
        last did, or its message neither asks nor proposes anything that the words could answer.
    """
    turns = list(_turns(state, seq))
    if not turns or Actor.parse(turns[0].actor).is_user:
        return None
    last, said = turns[0], _said(turns[0])
    span, pending = answered_span(said, text), _pending(turns)
    if span and pending and not _asks(said) and _shared(said[span.start : span.end], text) <= _BY_CHANCE:
        span = None  # the earlier question is what is open
    message, span = (last, span) if span else pending or (last, None)
    return _quoted(message, span) if span else None


def _said(message: Message) -> str:
    """Return what is kept of a message: its beginning, and its end if that was cut off."""
    return f"{message.text}{_GAP}{message.end}" if message.end else message.text


def _quoted(message: Message, span: Span) -> Evidence:
    quote = _said(message)[span.start : span.end]
    behind = span.start - len(message.text) - len(_GAP)
    if behind < 0:
        return Evidence(message.seq, span.start, span.end, quote)
    if not message.cut:  # only an extract of the message is kept, so the position is not known
        return Evidence(message.seq, quote=quote)
    start = message.cut + behind
    return Evidence(message.seq, start, start + len(quote), quote)


def answered_span(said: str, text: str) -> Span | None:
    """Return where a message of an agent says what a user's words answer; ``None`` for nowhere.

    Args:
        said: The agent's message.
        text: The user's words.

    >>> said = "I'd log rejected rows to stdout as JSON. Shall I?"
    >>> span = answered_span(said, "yep do that")
    >>> said[span.start:span.end] == said
    True
    >>> said = "Two ways: 1. a cron job 2. a systemd timer. Which one?"
    >>> span = answered_span(said, "go with 2")
    >>> said[span.start:span.end]
    'a systemd timer.'
    """
    plain = _own(said)
    parts = list(sentences(plain))
    span = _option(plain, text) or _open(plain, parts) or _taken_up(plain, parts, text)
    return Span(span.start, min(span.end, span.start + MAX_QUOTE)) if span else None


def proposes(words: str) -> bool:
    """Return whether a sentence, or the last of several, asks or proposes something.

    >>> proposes("I could move it to disk."), proposes("I moved it to disk.")
    (True, False)
    """
    return any(_PROPOSES.search(words[one.start : one.end]) for one in sentences(words))


def names_option(words: str) -> bool:
    """Return whether the user's words name an option by its number, letter or place.

    >>> names_option("go with 2"), names_option("the second one"), names_option("go with sqlite")
    (True, True, False)
    """
    return bool(_PICKS.search(words))


def _own(said: str) -> str:
    """Return an agent's message with its fenced blocks blanked; positions stay the same.

    One fence too many closes a block whose beginning is cut off.
    """
    fences = list(_FENCE_LINE.finditer(said))
    first = fences[0].end() if len(fences) % 2 else 0
    rest = _FENCE.sub(lambda match: "\n" * len(match.group()), said[first:])
    return "\n" * first + rest


def _turns(state: State, seq: int) -> Iterator[Message]:
    """Yield the messages of the user and of agents before an event, latest first."""
    for one in reversed(state.messages):
        actor = Actor.parse(one.actor)
        if one.seq < seq and (actor.is_user or actor.role == "agent"):
            yield one


def _pending(turns: Sequence[Message]) -> tuple[Message, Span] | None:
    """Return the question before the last exchange, if the user only asked back there."""
    users = [number for number, one in enumerate(turns) if Actor.parse(one.actor).is_user]
    if not users or "?" not in turns[users[0]].text:
        return None
    before = turns[users[0] + 1 : users[1]] if len(users) > 1 else turns[users[0] + 1 :]
    if not before:
        return None
    plain = _own(_said(before[0]))
    span = _open(plain, list(sentences(plain))) if _asks(plain) else None
    return (before[0], span) if span else None


def _asks(said: str) -> bool:
    plain = _own(said)
    return any(_PROPOSES.search(plain[one.start : one.end]) for one in list(sentences(plain))[-_TAIL:])


def _shared(said: str, text: str) -> int:
    return len(content_words(said) & content_words(text))


# --- options ------------------------------------------------------------------------------------------------


def _option(plain: str, text: str) -> Span | None:
    """Return the option, or the stretch of options, that the user names."""
    for match in _NAMED.finditer(text[:MAX_QUOTE]):
        if headed := _headed(plain, match.group()):
            return headed
    options = list(_options(plain))
    labels = [label for label, _ in options]
    chosen: list[Span] = []
    for match in _PICKS.finditer(text[:MAX_QUOTE]):
        label = next(value for value in match.groups() if value)
        number = _NUMBERS.get(label.lower())
        if number is not None:
            if number <= len(options):
                chosen.append(options[number - (number > 0)][1])
        elif label.upper() in labels:
            chosen.append(options[labels.index(label.upper())][1])
    if len(options) == 1 or not chosen:
        return None
    first, last = min(one.start for one in chosen), max(one.end for one in chosen)
    return Span(first, last) if last - first <= MAX_QUOTE else chosen[0]


def _headed(plain: str, name: str) -> Span | None:
    """Return the first sentence that an option's name heads ("Option B: a timer")."""
    match = re.search(rf"\b{re.escape(name)}[*_]*[ ]?[:.)(–—-]", plain, re.IGNORECASE)
    if match is None:
        return None
    line = plain.find("\n", match.end())
    said = plain[match.end() : len(plain) if line < 0 else line]
    first = next(sentences(said), Span(0, 0))
    return Span(match.start(), match.end() + len(_REST.sub("", said[: first.end])))


def _options(plain: str) -> Iterator[tuple[str, Span]]:
    """Yield the latest list of options with consecutive labels: each label, and where its text is."""
    found = list(_OPTION.finditer(plain))
    starts = [number for number, one in enumerate(found) if one["label"].upper() in ("1", "A")]
    listed: list[re.Match[str]] = []
    for one in found[starts[-1] :] if starts else ():
        if not listed or ord(one["label"].upper()) == ord(listed[-1]["label"].upper()) + 1:
            listed.append(one)
    ends = [*(one.start() for one in listed[1:]), len(plain)] if listed else []
    for number, (one, end) in enumerate(zip(listed, ends, strict=True)):
        line = plain.find("\n", one.end(), end)
        if number == len(listed) - 1:  # the last option ends with its sentence
            first = next(sentences(plain[one.end() : end if line < 0 else line]), Span(0, 0))
            line = one.end() + first.end
        body = _REST.sub("", plain[one.end() : end if line < 0 else line])
        yield one["label"].upper(), Span(one.end(), one.end() + len(body))


# --- questions and proposals --------------------------------------------------------------------------------


def _open(plain: str, parts: Sequence[Span]) -> Span | None:
    """Return the last question or proposal at the end of a message, with what it refers to."""
    low = max(0, len(parts) - _TAIL)

    def says(number: int, pattern: re.Pattern[str]) -> bool:
        return bool(pattern.search(plain[parts[number].start : parts[number].end]))

    tail = range(len(parts) - 1, low - 1, -1)
    last = next((number for number in tail if says(number, _ASKS)), None)
    if last is None:
        last = next((number for number in tail if says(number, _PROPOSES)), None)
    if last is None:
        return None
    first = last
    while first > low and says(first - 1, _PROPOSES) and _near(plain, parts[first - 1], parts[last]):
        first -= 1
    words = plain[parts[first].start : parts[last].end]
    if len(content_words(words)) < _FEW_WORDS or _REFERS_BACK.search(words):
        for _ in range(_BEFORE):
            if first and _near(plain, parts[first - 1], parts[last], _CONTEXT if first < last else MAX_QUOTE):
                first -= 1
        while first < last and not content_words(plain[parts[first].start : parts[first].end]):
            first += 1
    return Span(parts[first].start, parts[last].end)


def _near(plain: str, before: Span, last: Span, limit: int = MAX_QUOTE) -> bool:
    """Return whether a sentence belongs with the ones up to ``last``: close enough to quote them together."""
    return last.end - before.start <= limit and plain.count("\n", before.end, last.start) <= _BREAKS


def _taken_up(plain: str, parts: Sequence[Span], text: str) -> Span | None:
    """Return the sentence that shares the most content words with a short answer."""
    if len(text) > _SHORT:
        return None
    shared = [(_shared(plain[one.start : one.end], text), one.start, one) for one in parts]
    count, _, best = max(shared, default=(0, 0, Span(0, 0)))
    return best if count else None
