"""Parse a coding harness's wrapping of the user's words: separate its own sentences from what the user typed.

A coding agent that imports or records its calls has no event for "the user refused". It gives the agent a
sentence with the reason somewhere in it. Every harness has different sentences, so they are recognised by
what they say (someone is called "the user", and refused), not by exact strings.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span

MAX_TEXT = 20_000
"""Maximum number of characters of an answer that are read."""

_PERSON = r"(?:the |a )?(?:user|person|human|operator|developer)"
_NO = (
    r"(?:does(?:n'?t| not) want|did(?:n'?t| not) (?:want|approve|allow|accept|confirm)"
    r"|(?:has |have )?(?:rejected|denied|declined|refused"
    r"|cancell?ed|interrupted|aborted|blocked|disapproved|turned down)|chose not|said no|wants? to stop)"
)
_REFUSED = on_use(
    rf"\b{_PERSON} {_NO}\b|\b(?:rejected|denied|declined|refused|cancell?ed|interrupted|aborted)"
    rf" by {_PERSON}\b|\btool use was rejected\b",
    re.IGNORECASE,
)
_INTERRUPTED = on_use(rf"\b(?:interrupted|aborted) by {_PERSON}\b", re.IGNORECASE)
_SAID = on_use(
    rf"(?:\b{_PERSON}|\bthey)\s+(?:said|says|wrote|answered|replied|responded|explained|added|commented"
    r"|(?:provided|gave|left|has provided) (?:the |this |some )?(?:following )?"
    r"(?:reason|feedback|comment|instruction|message|explanation)s?)"
    r"(?: (?:for|with|to|about|as) [^:\n]{0,60})?\s*:\s*"
    r"|\b(?:reason|feedback|comment)(?: (?:given|from|by|of) (?:the )?\w+)?\s*:\s*",
    re.IGNORECASE,
)
_ORDER = on_use(
    r"(?:\bstop what you are doing\b|\bwait for the user\b|\bto tell you how to proceed\b"
    r"|\bdo not (?:retry|try again)\b)",
    re.IGNORECASE,
)
_TAGGED = on_use(r"\A\s*<(?P<tag>[a-z_]{1,30})>\s*(?P<said>.*?)\s*</(?P=tag)>", re.IGNORECASE | re.DOTALL)
_NOTE = on_use(r"\n+\s*\(?note: (?:the|this) (?:user|person|is)\b.*\Z", re.IGNORECASE | re.DOTALL)
_MACHINE = on_use(
    r"\b(?:blocked|denied|rejected|refused|disallowed|forbidden) by (?:(?:a|the|your) )?\w*[ :]?"
    r"(?:hook|sandbox|polic|permission|rule|setting|config)"
    r"|\bhook\b[^.\n]{0,40}\b(?:denied|blocked|rejected|error)"
    r"|\bpermissions? (?:to \w+ [^.\n]{0,200}|for [^.\n]{0,200})?(?:was|were|has been|have been|is|are)?"
    r" ?(?:denied|not granted)|\brequested permissions?\b",
    re.IGNORECASE,
)
"""The call was denied by a rule, not by a person."""

_SENTENCE_END = on_use(r"(?<=[.!?\])])\s+|\n+")


class ReportedRefusal(NamedTuple):
    """A refusal as reported by a harness.

    Attributes:
        reason: Position of the user's own words; ``None`` if they said nothing.
        by_person: Whether the text itself states that a person refused.
    """

    reason: Span | None
    by_person: bool


def refused(text: str) -> ReportedRefusal | None:
    r"""Parse the answer to a denied call; ``None`` if a rule denied it, not a person.

    >>> text = "The user doesn't want to proceed. To tell you how to proceed, the user said:\nuse the queue"
    >>> text[refused(text).reason.start :]
    'use the queue'
    >>> refused("The user rejected this action.").reason is None
    True
    >>> refused("use the queue").reason
    Span(start=0, end=13)
    """
    text = text[:MAX_TEXT]
    head = _REFUSED.search(text[:600])
    if head is None:
        by_rule = _MACHINE.search(text[:300])
        return None if by_rule else ReportedRefusal(_trimmed(text, 0, len(text)), by_person=False)
    if _INTERRUPTED.search(head.group()):  # the rest is the output of the call before the interruption
        return ReportedRefusal(None, by_person=True)
    if said := _SAID.search(text, head.start()):
        return ReportedRefusal(_unwrapped(text, said.end()), by_person=True)
    # What follows the harness's own sentences.
    for begin, end in _pieces(text, head.start()):
        if not (_REFUSED.search(text[begin:end]) or _ORDER.search(text[begin:end])):
            return ReportedRefusal(_unwrapped(text, begin), by_person=True)
    return ReportedRefusal(None, by_person=True)


def _unwrapped(text: str, start: int) -> Span | None:
    """Return the user's words without a tag or a note of the harness around them."""
    if tagged := _TAGGED.match(text[start:]):
        return _trimmed(text, start + tagged.start("said"), start + tagged.end("said"))
    note = _NOTE.search(text, start)
    return _trimmed(text, start, note.start() if note else len(text))


def _pieces(text: str, start: int) -> Iterator[tuple[int, int]]:
    begin = start
    for cut in _SENTENCE_END.finditer(text, start):
        if text[begin : cut.start()].count("(") > text[begin : cut.start()].count(")"):
            continue
        yield begin, cut.start()
        begin = cut.end()
    yield begin, len(text)


def _trimmed(text: str, start: int, end: int) -> Span | None:
    words = text[start:end].strip()
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return Span(start, start + len(words)) if words else None


_ASKS = on_use(r"ask.{0,12}(?:user|question|person|human)|question", re.IGNORECASE)
_PLANS = on_use(r"plan", re.IGNORECASE)
_ANSWERED = on_use(rf"\b{_PERSON} (?:has |have )?answered\b|\banswers?:", re.IGNORECASE)
_APPROVED = on_use(
    rf"\b{_PERSON} (?:has |have )?(?:approved|accepted|confirmed)\b|\bapproved by {_PERSON}\b", re.IGNORECASE
)
_PAIR = on_use(
    r'"(?P<question>[^"\n](?:[^"]|"(?!=))*)"="(?P<answer>.*?)"(?=,\s*"|\s*\.\s*You can|[.,]?\s*\Z)', re.DOTALL
)
_TITLE = on_use(r"^\s{0,3}#{1,3}\s+(?P<title>\S.*)$", re.MULTILINE)
_PLAN_WORD = on_use(r"\A(?:implementation )?plan\s*[:–—-]\s*", re.IGNORECASE)
_RECOMMENDED = on_use(r"\s*\(recommended\)\s*\Z", re.IGNORECASE)

_ASKS_BACK = on_use(r"\A[^.!?\n]*(?:\.{2,}[^.!?\n]*)*\?")
"""Matches if the first sentence is a question."""


class AnsweredQuestion(NamedTuple):
    """A question that an agent asked, and the user's answer.

    Attributes:
        span: Position of the answer in the harness's text.
        asks_back: Whether the answer is itself a question, so that it decides nothing.
    """

    question: str
    answer: str
    span: Span
    asks_back: bool


def is_question_tool(tool: str) -> bool:
    """Return whether a tool asks the user, judged by its name.

    >>> is_question_tool("AskUserQuestion"), is_question_tool("ask_human"), is_question_tool("write_file")
    (True, True, False)
    """
    return bool(_ASKS.search(tool))


def is_plan_tool(tool: str) -> bool:
    """Return whether a tool shows a plan to the user, judged by its name."""
    return bool(_PLANS.search(tool))


def answers(text: str, asked: str = "") -> Iterator[AnsweredQuestion]:
    """Yield the questions and answers in the output of a question tool.

    The text has pairs ``"question"="answer"``, or only the answer to the question ``asked`` in the call's
    arguments.

    >>> told = 'The user has answered: "Which port?"="9000", "TLS?"="yes". You can now go on.'
    >>> [a.answer for a in answers(told)]
    ['9000', 'yes']
    """
    text = text[:MAX_TEXT]
    pairs = list(_PAIR.finditer(text))
    for pair in pairs:
        yield _answer(pair["question"], text, Span(pair.start("answer"), pair.end("answer")))
    if not pairs and asked:
        lead = _ANSWERED.search(text)
        start = text.find(":", lead.start()) + 1 if lead else 0
        if span := _unwrapped(text, start):
            yield _answer(asked, text, span)


def _answer(question: str, text: str, span: Span) -> AnsweredQuestion:
    said, asked = " ".join(text[span.start : span.end].split()), " ".join(question.split())
    return AnsweredQuestion(asked, _RECOMMENDED.sub("", said), span, bool(_ASKS_BACK.search(said)))


def approved(text: str) -> bool:
    """Return whether a harness reports that the user approved."""
    return bool(_APPROVED.search(text[:600]))


def title_of(plan: str) -> str:
    r"""Return the title of a plan: its first heading, or its first line; empty if there is none.

    >>> title_of("# Plan: Move the queue\n\n## Why")
    'Move the queue'
    """
    heading = _TITLE.search(plan[:MAX_TEXT])
    line = heading["title"] if heading else next((one for one in plan[:600].splitlines() if one.strip()), "")
    return _PLAN_WORD.sub("", " ".join(line.split())).strip("*_ ")[:200]
