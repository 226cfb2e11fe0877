"""Parse the user's statements besides demands: decisions, requests, context, findings and lessons.

One row of :data:`SHAPES` is one way of saying it. It matches a clause by its beginning or by its
characteristic words. Precision comes before recall: what is not clearly one of these stays in the
conversation, where it can be found.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentx.storage.text import one_line
from agentx.synthesis.demands.reading.material import own_words, straighten
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span, clauses, sentences
from agentx.synthesis.language.words import content_words

MAX_STATEMENTS = 3
"""Maximum number of statements noted of one message."""

MAX_QUOTE = 400
_MIN_WORDS = 2

Sort = Literal["decision", "task", "context", "discovery", "learning", "knowledge"]


class Statement(NamedTuple):
    """A statement in a message.

    Attributes:
        span: Its position in the message.
        topic: For a context: what it is about. There is one context per topic at a time.
        over: For a decision: the former choice.
    """

    sort: Sort
    text: str
    span: Span
    topic: str = ""
    over: str = ""


class _Shape:
    def __init__(
        self, sort: Sort, pattern: str, *, topic: str = "", whole: bool = False, behind: bool = False
    ) -> None:
        self.sort, self.pattern, self.topic = sort, _compiled(pattern), topic
        self.whole, self.behind = whole, behind


def _compiled(pattern: str) -> re.Pattern[str]:
    return on_use(pattern, re.IGNORECASE)


_LOOKING = (
    "see|check|look|discuss|talk|pause|wait|think|find|investigate|verify|test|review|ask|understand|debug"
    "|figure|explore|go over|take|hope"
    "|say|assume|continue|move on|run|commit|push|merge|rebase|read|recap|summari[sz]e|try again|start over"
    "|chat|brainstorm|walk|do (?:a|an|some|the) "
    "|keep (?:going|on)|respond|reply|play|consider|compare|know|hear|get (?:back|going)|imagine|suppose"
    "|pretend|make sure|not|me\\b|give|be|have a|proceed|reflect|practice|dive|analy[sz]e"
)
"""Verbs of exploring or continuing, which do not make a choice."""

_CHOOSE = (
    r"(?:go(?:ing)? (?:with|for|back to)|opt(?:ing)? for|stick(?:ing)? (?:with|to)"
    r"|settl(?:e|ing) (?:on|for)|choos(?:e|ing)|pick(?:ing)?)"
)
_NUMBERED = (
    r"(?:(?:option|approach|variant|choice|proposal|solution|alternative|suggestion|number|no\.?"
    r"|#)\s*#?[A-H0-9]\b|[A-H1-9]\)|#\d)"
)

SHAPES: tuple[_Shape, ...] = (
    _Shape(
        "knowledge",
        r"(?:please )?(?:remember|keep in mind|bear in mind|don'?t forget|do not forget|note|for the record"
        r"|fyi|just so you know|for your information)(?: (?:that|this)\b[:,]?|\s*[:,–—-])\s*"
        r"(?!(?:to|you (?:should|must|have)|always|never)\b)(?=\w)",
        behind=True,
    ),
    _Shape(
        "decision",
        r"(?:(?:wait|actually|scratch that|on second thoughts?|i changed my mind)\b[\s,.:–—-]*)?"
        r"(?:let'?s |we'?ll |i'?ll |please |make (?:it|that) )?(?:use |go with |take )?"
        r"(?!(?:of|what|why|how|who|when|where|that|this|it|do|doing|is|are|was)\b)[\w.+/-]+"
        r"(?: [\w.+/-]+){0,2} (?:instead of|rather than) [\w.+/-]+(?: [\w.+/-]+){0,2}[.!]*$",
    ),
    _Shape(
        "decision",
        rf"let'?s (?:just |only |simply |completely |first |then |now |all |really )*(?!{_LOOKING})\w+",
    ),
    _Shape(
        "decision",
        rf"(?:i'?d|i would|i'?ll|i will|we'?ll|we will|we|i|i'?m|we'?re)"
        rf"(?: (?:just|rather|now|then|probably|definitely))* (?:am |are )?{_CHOOSE}\b",
    ),
    _Shape("decision", rf"(?:(?:just|then|please|yes|yeah) )*{_CHOOSE}\b(?! through| over)"),
    _Shape(
        "decision",
        rf"(?:i think |i guess |i like |i prefer |i'd prefer |i'd say |use |do |take |implement "
        rf"|yes to )?{_NUMBERED}",
    ),
    _Shape(
        "decision",
        r"(?:[A-H]\)?|#?\d\)?) (?:is|seems|looks|sounds) (?:the )?(?:right|fine|correct|best|good|better)\b"
        r"|#?\d(?: and \d)?(?:,| please) (?:but|please|i|we|and)\b",
    ),
    _Shape(
        "decision",
        r"i (?:think|guess|believe|feel) (?:that )?(?:option |approach )?(?:[A-H]\)?|\d\)?|the \w+(?: \w+)?)"
        r"(?: one| option| approach)? (?:is|seems|looks|sounds) (?:the )?"
        r"(?:right|fine|correct|best|good|better|most)\b",
    ),
    _Shape(
        "decision",
        r"(?:so )?(?:we|i)(?:'ve| have)? (?:(?:finally|now|just|already) )?"
        r"(?:decided|agreed|settled|concluded|chose|picked|opted)\b",
    ),
    _Shape(
        "decision",
        r"(?:the |my |our |final )*decision(?: is| was)?\s*[:–—-]|(?:it'?s|it is|that'?s) decided\b"
        r"|final answer\b",
    ),
    _Shape(
        "decision",
        r"(?:please )?(?:use|keep|retain) (?!in mind|going|track|up|it up|me\b|an eye)[^?]{2,}? "
        r"(?:instead(?: of)?|rather than|and not|for now)\b",
    ),
    _Shape(
        "decision",
        r"(?:instead )?(?:we'?ll|we will|i'?ll|i will) "
        r"(?:use|keep|drop|do it|skip|leave|remove|make|implement|ship|do)\b",
    ),
    _Shape(
        "learning",
        r"(?:the |a |one )?lessons?(?: learn(?:ed|t))?(?: here| is| was)?\s*[:–—-]|lesson learn"
        r"|(?:we|i)(?:'ve| have)? learn(?:ed|t) (?:that|the hard|from|not|to)\b|note to self\b",
    ),
    _Shape(
        "learning",
        r"(?:no,? )?(?:(?:that|this|it)(?:'s| is| was)|you(?:'re| are)"
        r"|the (?:first|second|last) (?:part|point|one) is) "
        r"(?:(?:not|n't) (?:correct|right|true|how|what)|wrong|incorrect)\b(?=\W*\w)",
        whole=True,
    ),
    _Shape("discovery", r"(?:it |as it )?turn(?:s|ed) out\b"),
    _Shape(
        "discovery",
        r"(?:i|we)(?:'ve| have)? (?:just |also |only |now |recently )*"
        r"(?:found (?:out|that|a|an|the|two|several|some)|noticed|discovered|realiz?sed|realized|figured out"
        r"|tracked (?:it|this) down)\b(?! time)",
    ),
    _Shape(
        "discovery",
        r"(?:the|a|our|another|one) (?:actual |real |root |main |underlying |other |big |only )*"
        r"(?:cause|problem|issue|bug|reason|culprit|catch|gap|gotcha)(?: with [^,.;]{2,60}| here| there)? "
        r"(?:is|was|seems to be|turned out)\b",
    ),
    _Shape(
        "discovery",
        r"(?:i think |it seems |so |looks like )*(?:we(?:'ve| have)?(?: got)?|there(?:'s| is| are)) "
        r"(?:an? |another |some )?(?:bugs?|race|regression|leak|deadlock|memory leak|security hole)\b",
    ),
    _Shape(
        "discovery",
        r"[^?]{0,120}?\b(?:never (?:actually|really) worked|(?:just )?happened again"
        r"|keeps? (?:failing|crashing|happening)|always fails"
        r"|only (?:fails|happens|crashes) (?:when|if|on|with|in))\b",
    ),
    _Shape(
        "context",
        r"[^?]{0,60}?\b(?:in a (?:big |bit of a )?(?:hurry|rush)|short on time|out of time|no (?:rush|hurry)"
        r"|take your time|time is (?:short|tight|running out)|pressed for time"
        r"|under (?:a lot of )?(?:time )?pressure)\b",
        topic="time",
        whole=True,
    ),
    _Shape(
        "context",
        r"[^?]{0,40}?\b(?:the |our |my |a )(?:hard )?(?:deadline|demo|release|launch|presentation|exam"
        r"|code freeze|deploy|go-live|submission) (?:is|'s) (?:due |set |planned |scheduled )?"
        r"(?:on |in |at |for |by )?(?:today|tomorrow|tonight|this|next|monday|tuesday|wednesday|thursday"
        r"|friday|saturday|sunday|the|\d)",
        topic="time",
        whole=True,
    ),
    _Shape(
        "context",
        r"(?:the |our |my )?(?:(?:top|main|first|highest|current|number one|biggest|new) )*priorit(?:y|ies)"
        r"(?: (?:now|today|this week|right now))? (?:is|are|now)\b"
        r"|(?:the )?most important (?:thing|part)(?: (?:now|today|right now|for us|for me))? is\b",
        topic="priority",
        whole=True,
    ),
    _Shape(
        "context",
        r"(?:we|i)(?:'re| are|'m| am)? (?:need to |should |want to |will |have to )?focus(?:ing|ed)? "
        r"(?:only |mainly |first )?on\b[^?]{2,80}\b(?:now|today|this week|this month|this sprint|first"
        r"|for now)\b",
        topic="priority",
        whole=True,
    ),
    _Shape(
        "context",
        r"(?:i'?m|i am|i feel|i'?ve been|i have been)(?: feeling)?"
        r"(?: (?:a bit|really|so|very|pretty|quite|just|too|kind of|kinda|completely|totally|feeling))* "
        r"(?:tired|exhausted|frustrated|annoyed|stressed|overwhelmed|burn(?:ed|t) out|sick"
        r"|in a (?:good|bad) mood|fed up|worn out|low on energy|full of energy)\b",
        topic="mood",
        whole=True,
    ),
)

_YES = _compiled(
    r"(?:yes|yep|yeah|yup|sure|ok(?:ay)?|sounds (?:good|great|right|fine)|perfect|agreed|go ahead|go for it"
    r"|do it|please do|works for me|lgtm|looks good"
    r"|approved?|make it so|ship it|that works|absolutely|exactly|definitely|let'?s do (?:it|that|this)"
    r"|great idea|good idea|i agree)\b"
)
_PROPOSES = _compiled(
    r"\?|\b(?:i (?:suggest|recommend|propose|would|could|can)|i'd|should (?:i|we)|shall (?:i|we)|want me to"
    r"|would you like|option|my (?:proposal|recommendation|suggestion|plan))\b"
)
_OVER = _compiled(r".*?\b(?:instead of|rather than) (?P<over>.+?)[.!]*$")
_LEAD = _compiled(
    r"(?:(?:yes|yep|yeah|yup|no|nah|wait|ok|okay|sure|right|so|and|but|hmm+|ah+|oh|well|great|cool|nice"
    r"|perfect|good|actually|alright|lol|then|uh|um|hm|fine|thanks|awesome|in that case|i think|maybe"
    r"|for now|now)\b[\s,.!:;–—-]*|[^\w\s#`(]+\s*|\d[.)]\s+(?=[a-z]))+"
)
_ASKS = re.compile(r"\?\s*$")
_TENTATIVE = _compiled(
    r"\b(?:maybe|perhaps|not sure|i wonder|what if|could we|should we|how about|or)\b.{0,40}\?"
)
_VERBS = (
    "add|implement|fix|write|create|build|update|refactor|remove|delete|rename|change|make|move|replace"
    "|set up|install|upgrade|configure|draft|translate"
    "|summari[sz]e|convert|migrate|extract|split|merge|rebase|deploy|release|publish|document|design"
    "|generate|prepare|clean up|investigate|debug"
    "|improve|optimi[sz]e|extend|wire|integrate|test|review|revert|port|sort|organi[sz]e|plan|research"
    "|compare|analy[sz]e|simplify|rewrite|finish|schedule"
)
_REQUEST = _compiled(
    rf"(?:please |now |then |also |next,? |first,? )*"
    rf"(?:(?:can|could|would|will) you (?:please |also |now |just |first )*|i(?:'d like| want| need) you to "
    rf"|we need to |i want to |help me (?:to )?)?(?:please )?(?P<verb>{_VERBS})\b"
    rf"(?!\s*(?:is|was|are|were|has|:|\?))"
)


_REQUEST_CHARACTERS = 200
_PARAGRAPH = 2
"""Line breaks between two sentences that belong together. Pasted material between them has more."""


def statements(text: str, before: str = "") -> tuple[Statement, ...]:
    """Return what a user's message says besides demands, in order.

    ``before`` is the agent's last message, for a "yes" that answers it.

    >>> [(s.sort, s.text) for s in statements("ok, let's go with the second layout. The demo is on Friday")]
    [('decision', "Let's go with the second layout."), ('context', 'The demo is on Friday')]
    """
    plain, original = own_words(text), straighten(text)
    found: list[Statement] = []
    for number, sentence in enumerate(sentences(plain)):
        one = _of_sentence(plain, original, sentence)
        if one is None and number == 0:
            one = _agreed(plain, original, sentence, before)
        if one and not (one.sort == "task" and any(other.sort == "task" for other in found)):
            found.append(one)
    return tuple(found[:MAX_STATEMENTS])


def _of_sentence(plain: str, original: str, sentence: Span) -> Statement | None:
    asks = bool(_ASKS.search(plain, sentence.start, sentence.end))
    for clause in clauses(plain, sentence):
        start, words = _bare(plain, clause)
        for shape in SHAPES:
            match = shape.pattern.match(words)
            if not match or (asks and (shape.sort != "decision" or clause.end == sentence.end)):
                continue
            # From the beginning of the shape, from after its opening, or the full sentence.
            span = Span(start + match.end(), sentence.end) if shape.behind else Span(start, clause.end)
            span = sentence if shape.whole else span
            if made := _statement(shape.sort, original, span, shape.topic):
                over = _OVER.match(made.text) if made.sort == "decision" else None
                return made._replace(over=over["over"]) if over else made
    start, words = _bare(plain, sentence)
    if (match := _REQUEST.match(words)) and (not asks or "you" in match.group().lower()):
        return _statement("task", original, Span(start + match.start("verb"), sentence.end))
    return None


def _agreed(plain: str, original: str, sentence: Span, before: str) -> Statement | None:
    """Parse a "yes" to the agent's last proposal: the decision is what was proposed."""
    words = plain[sentence.start : sentence.end]
    if not before or not _YES.match(words) or _ASKS.search(words):
        return None
    proposal = last_proposal(before)
    if not proposal:
        return None
    end = min(sentence.end, sentence.start + MAX_QUOTE)
    said = one_line(original[sentence.start : end])
    return Statement("decision", f"{said} (to: “{proposal}”)", Span(sentence.start, end))


def last_proposal(said: str) -> str:
    """Return the last sentence in which an agent proposed or asked something; empty if it ended otherwise.

    >>> last_proposal("I looked at both. Should I move the cache to disk?")
    'Should I move the cache to disk?'
    """
    plain = own_words(said)
    ends = [said[one.start : one.end] for one in sentences(plain)][-3:]
    return next((one_line(one)[:200] for one in reversed(ends) if _PROPOSES.search(one)), "")


def first_sentence(text: str) -> Span | None:
    """Return the first sentence of an agent's answer with content; ``None`` if there is none."""
    plain = own_words(text)
    for one in sentences(plain):
        if len(content_words(plain[one.start : one.end].replace(NAME, "x"))) >= _MIN_WORDS:
            return Span(one.start, min(one.end, one.start + MAX_QUOTE))
    return None


def request(text: str) -> Span | None:
    """Return what a message asks for, with its context: its first sentences, as many as make a short text.

    >>> said = "The prices are in prices.html. Deploy them to production."
    >>> request(said) == Span(0, len(said))
    True
    """
    first = first_sentence(text)
    if first is None:
        return Span(0, len(text)) if goes_on(text) else None
    plain, end = own_words(text), first.end
    for one in sentences(plain):
        if one.start >= end:
            if one.end - first.start > _REQUEST_CHARACTERS or plain.count("\n", end, one.start) > _PARAGRAPH:
                break
            end = one.end
    return Span(first.start, end)


_GOES_ON = _compiled(
    r"(?:(?:please|now|ok(?:ay)?|yes|good|so)[,.]? )*"
    r"(?:go on|go ahead|continue|carry on|keep going|proceed|resume)"
    r"(?: (?:please|now|with (?:it|that|this|the (?:task|work))))*[.!… ]*$"
)


def goes_on(message: str) -> bool:
    """Return whether a message asks only to continue what was begun.

    >>> goes_on("OK, go on please."), goes_on("Go on with the second chapter.")
    (True, False)
    """
    return bool(_GOES_ON.match(message.strip()))


_FOUND = _compiled(
    r"\b(?:root cause (?:is|was)|i (?:found|discovered|noticed)(?: out)? (?:that|the|a|an)\b"
    r"|(?:it )?turns out|the (?:actual |real |underlying )*(?:bug|cause|problem|culprit|failure) "
    r"(?:is|was)\b)"
)


def findings_of_agent(text: str) -> Iterator[Span]:
    """Yield the places where an agent's answer says what it found."""
    plain = own_words(text)
    for one in sentences(plain):
        if _FOUND.search(plain, one.start, one.end) and not _ASKS.search(plain, one.start, one.end):
            yield Span(one.start, min(one.end, one.start + MAX_QUOTE))


def _bare(plain: str, clause: Span) -> tuple[int, str]:
    """Return a clause without its opening words, and where it starts."""
    words = plain[clause.start : clause.end]
    lead = _LEAD.match(words)
    start = clause.start + (lead.end() if lead else 0)
    return start, plain[start : clause.end]


def _statement(sort: Sort, original: str, span: Span, topic: str = "") -> Statement | None:
    span = Span(span.start, min(span.end, span.start + MAX_QUOTE))
    text = one_line(original[span.start : span.end]).strip(" ,;:")
    if not content_words(text) and sort != "decision":
        return None
    return Statement(sort, text[:1].upper() + text[1:], span, topic)
