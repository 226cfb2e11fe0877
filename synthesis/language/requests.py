"""Reads which acts a message asks for: the main verbs of its orders, and the situations that it states.

"Can you publish it?", "we need it published" and "time to publish it" ask for the same act. A question about
an act, a report of one, a ban, and an act that is only the topic of another one ask for none of it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span, sentences
from agentx.synthesis.language.verbs import is_base_verb
from agentx.synthesis.language.words import vocabulary

Form = Literal["order", "supported", "situation"]

IsVerb = Callable[[str], bool]
"""Returns whether a word is a verb that the reader knows."""


class Act(msgspec.Struct, frozen=True):
    """One clause of a message that asks for something to be done, or that states a situation.

    Attributes:
        form: ``order``: ``head`` is the act. ``supported``: a noun names the act, with or without a verb of
            little meaning ("do a backup", "we need a backup"). ``situation``: a statement in the present.
        head: The verb of an order, or the last noun of what a supporting verb acts on; empty for a situation.
        span: Position of the clause.
        topic: Position of the words by which a noun is recognised: up to the first preposition.
        points: Whether its object is a pronoun, which the clause before explains.
        context: Position of the clause before and the rest of the sentence, if a pronoun points to them.
        bare: Whether the verb has no object.
        joined: Whether it follows the act before by "and".
    """

    form: Form
    head: str
    span: Span
    topic: Span
    context: Span | None = None
    points: bool = False
    bare: bool = False
    joined: bool = False


# --- words --------------------------------------------------------------------------------------------------

_DETERMINERS = vocabulary(
    "a an the my our your his her its their this that these those some any all every each another"
)
_POINTERS = vocabulary("it them this that these those one him her")
PREPOSITIONS = vocabulary(
    """
    about above across after against along among around as at before behind below beneath beside between by
    concerning despite during for from in including inside into near of on onto outside over per regarding
    since than through throughout to toward towards under until upon via with within without
    that which who whose where when because if so and or but while then
    """
)
_PARTICLES = vocabulary(
    """
    up out off down back over away in on live again now together
    """
)
_OWNERS = vocabulary("his her their its")
_SUPPORTING = vocabulary(
    """
    do make run start perform conduct execute trigger launch begin get have take give create prepare produce
    write finish complete handle need want initiate process carry kick arrange add introduce
    """
)
"""Verbs that leave it to their object what is done: "do a backup", "run the payroll"."""

_WHOLES = vocabulary("everything all anything things stuff what")
_QUESTIONS = vocabulary("what why how who whom whose which when where whether")
_AUXILIARIES = vocabulary(
    "do does did is are was were am has have had will would can could should shall may might must"
    " isn't aren't "
    "wasn't weren't don't doesn't didn't haven't hasn't hadn't won't wouldn't can't couldn't shouldn't"
)
_SUBJECTS = vocabulary(
    "i you we they he she it there this that these those the a an my our your his her their any"
    " anyone anybody "
    "someone somebody everyone everybody"
)
_SUBORDINATORS = vocabulary(
    """
    if when whenever after before while since because although though unless until till once as for during
    with without by on at in from about regarding instead rather besides despite given assuming per
    """
)
_NEGATIONS = vocabulary(
    "not never no don't cannot can't won't shouldn't mustn't doesn't isn't aren't nobody none"
    " neither nor hardly"
)
_FINITE = vocabulary(
    """
    is are was were am has have had does did will would can could should shall may might must isn't aren't
    wasn't weren't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't doesn't didn't went came took
    made gave wrote ran said told kept won held stood understood paid spent built sent meant broke fell got
    left lost began became
    looks takes works seems needs happens fails goes costs means makes keeps gets sounds
    """
)
_PAST = vocabulary(
    """
    was were had did didn't wasn't weren't hadn't went came took made gave wrote ran said told kept won held
    stood understood paid spent built sent meant broke fell got lost began became saw knew thought felt heard
    found drew flew grew threw taught caught bought brought slept led met sold wore rose woke drove
    """
)
_PARTICIPLES = vocabulary(
    "done sent made written built paid sold put set cut bought brought taken drawn run found shot read fixed "
    "given grown sewn shown hung swept fed mown laid sorted"
)
_TELLING = vocabulary(
    "said says told tells wrote writes asked asks thinks thought mentioned claims claimed replied suggested"
)
_SPEAKING = vocabulary(
    """
    explain describe tell show ask say discuss mention remind teach summarise summarize list find look read
    check compare think consider remember recall imagine plan note estimate calculate count document draft
    review quote define clarify name call rename search grep see know learn understand wonder suggest propose
    """
)
"""Verbs of saying, writing and knowing: what is said about is not asked for."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

# --- patterns -----------------------------------------------------------------------------------------------

_LEAD = on_use(
    r"(?:(?:ok(?:ay)?|alright|please|pls|plz|hey|hi|hello|yes|yep|yeah|great|good|nice|cool|perfect|thanks"
    r"|thank you|so|and|but|or|then|now|also|next|first|finally|afterwards|just|instead|actually|well|right"
    r"|kindly|again|quickly|simply|maybe|perhaps|today|tomorrow|tonight|i think|i guess|i suppose|if possible"
    r"|if you (?:can|could|like|want)|when you (?:can|have time|get a chance|are ready)|all (?:good|green)"
    r"|todo|task|go on|\d{1,2}[.)])\b[\s,:.!–—-]*|[^\w\s]+\s*)+",
    re.IGNORECASE,
)
_NOW = r"(?: (?:please|now|also|just|maybe|kindly|then|perhaps|quickly|go ahead and|be so kind as to))*"
_FRAME = on_use(
    rf"(?:(?:can|could|would|will|might) (?:you|we|someone|somebody|anyone|one of you"
    rf"|i ask you to)(?: guys| all)?"
    rf"(?! mind| be able){_NOW}(?: (?:please )?(?:help me(?: to)?))?"
    r"|(?:would|do) you mind|mind|would you be (?:able|willing|so kind as) to|are you able to"
    r"|(?:could|can|would) you be so kind (?:as to|and)"
    r"|(?:do|don't) you think you (?:can|could)|(?:is it|would it be) possible (?:for you )?to"
    r"|any chance (?:that )?(?:you|we) (?:can|could)|i (?:was wondering|wonder|am wondering"
    r"|'m wondering) (?:if|whether) "
    r"(?:you|we) (?:can|could|would)|if you (?:can|could|would)"
    rf"|(?:you|we) (?:should|must|can|may|could|(?:need|have|ought|are) to|have got to|gotta"
    rf"|'ve got to){_NOW}"
    r"|we(?: would|'d)? (?:want|like|love|need|wish) to|(?:it(?:'s| is) )?(?:high "
    r"|about )?time (?:for (?:you|us) )?(?:to|you|we)"
    r"|i(?: would|'d|'ll)? (?:really |just |also )?(?:want|need|like|love|prefer|have|ask|wish)(?: for)?"
    r"(?: you| us)? to|i(?:'d| would) (?:appreciate it|be (?:glad|grateful|happy)"
    r"|love it) if you (?:could|would)?"
    r"|let(?:'s| us)|lets|go ahead and|go and|help(?: me| us)?(?: to)?|(?:please )?(?:try|be sure"
    r"|proceed|continue|start|begin|get ready"
    r"|feel free|remember|manage) to|try and|make sure (?:that )?(?:you|we|to)"
    r"|ensure (?:that )?(?:you|we)|see to it that (?:you|we)"
    r"|(?:don't|do not|never) (?:forget|fail|hesitate|be afraid) to"
    r"|why (?:don't|do not) (?:you|we)|why not|how about(?: we)?|what about(?= \w+ing\b)|shall we"
    r"|(?:you are|you're) to"
    r"|(?:your|the|our|my) (?:next |first |only )?(?:task|job|goal|plan|aim|order|step|request"
    r"|wish) (?:is|now) to|i'd like"
    r"(?= \w+ing\b)|(?:start|begin|finish|go ahead with|proceed with|continue with|get on with"
    r"|keep)(?= \w+ing\b)|please)\s+",
    re.IGNORECASE,
)
"""Words around the verb of a request; what follows is the act."""

_PASSIVE = on_use(
    r"(?P<object>[^,;]{1,80}?) (?:(?:needs?|have|has|ought|is|are|gets?|wants?) to|must|should"
    r"|can now|may now)"
    r"(?: (?:now|please|also|still|then|really|urgently))* (?:be|get) (?:(?:now|finally"
    r"|also) )?(?P<verb>[a-z]{3,})\b",
    re.IGNORECASE,
)
_NEEDS_DOING = on_use(
    r"(?P<object>[^,;]{1,80}?) (?:needs?|wants?|requires?)(?: (?:some|a bit of|a|an|another"
    r"|the))? (?P<verb>[a-z]{2,}ing)\b",
    re.IGNORECASE,
)
_HAVE_DONE = on_use(
    r"(?:(?:please )?(?:get|have|see)|(?:i|we)(?:'d| would)?(?: really| also| just)? (?:need|want"
    r"|like|love)(?: to (?:get|have|see))?"
    r"|(?:could|can|may) (?:i|we) (?:get|have)) "
    r"(?P<object>(?!to\b|you\b)[^,;]{2,80}?) (?:to be )?(?P<verb>[a-z]{3,})(?= *(?:$|[.!?,;]"
    r"|(?:by|before|until|on|at|in|to|from|for|now|today|tomorrow|tonight"
    r"|this|next|again|soon|asap|as|with|and|please|first|right)\b))",
    re.IGNORECASE,
)
_WANTS = on_use(
    r"(?:(?:i|we)(?: (?:now|also|just|really|urgently|still))*(?:(?:'d| would) like| need| want"
    r"|'ll need)|(?:can|could|may) (?:i|we) (?:get|have)"
    r"|(?:it(?:'s| is) )?(?:high |about )?time for|let's have|there (?:is|are) (?=\w+ing to)"
    r"|(?:what )?(?:about|how about))\s+(?!to\b|you\b|that\b)",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\?[\"')\s]*$")
_BREAK = on_use(
    r"[;:]\s+|\s[-–—]{1,2}\s|(?P<comma>,)\s+|\s+(?=(?:so|but|then|because|although|though) )"
    r"|\s+(?P<and>and|then|&)\s+"
    r"|(?P<please>\s+)(?=please \w)|\)\s+|\s+\(",
    re.IGNORECASE,
)
_OPENS = on_use(
    r"(?:and |but |then |so |also |now |please |just |instead |after that |afterwards )*(?:please\b"
    r"|just \w|let's|lets |let us|don't|do not|never|can|could|would|will"
    r"|i|i'm|i've|i'd|i'll|we|we're|we'd|you|they|he|she|it|it's|there|there's"
    r"|the|my|our|this|that|what|why|how|when|who|if"
    r"|once|after|before|because|since|until|not)\b",
    re.IGNORECASE,
)


class _Piece(msgspec.Struct):
    span: Span
    text: str
    joined: bool = False


def acts(own: str, is_verb: IsVerb) -> Iterator[Act]:
    """Yield the acts that a message asks for and the situations that it states, in order.

    Args:
        own: The user's own words, as :func:`agentx.synthesis.attribution.material.own_words` returns them.
        is_verb: Whether a word begins a clause of its own after "and" or a comma.

    >>> [act.head for act in acts("Fix it, then can you publish the page?", {"publish"}.__contains__)]
    ['Fix', 'publish']
    >>> list(acts("Don't publish it yet. How did you publish it?", {"publish"}.__contains__))
    []
    """
    last = 0
    for sentence in sentences(own):
        asked = bool(_ASKED.search(own, sentence.start, sentence.end))
        act: Act | None = None
        closed = False
        for piece in _pieces(own, sentence, is_verb):
            if piece.joined and act is None:
                continue
            closed = closed or _reports(own, sentence.start, piece.span.start)
            act = None if closed else _read(piece, asked=asked and piece.span.end == sentence.end)
            if act is not None:
                points = act.points or _owned(own, act)
                yield msgspec.structs.replace(act, context=Span(last, sentence.end)) if points else act
            last = piece.span.start


def _owned(own: str, act: Act) -> bool:
    words = _WORD.findall(own, act.topic.start, act.topic.end)
    return any(word.casefold() in _OWNERS for word in words)


def _reports(own: str, start: int, end: int) -> bool:
    """Return whether a clause ends with a verb of saying and a colon or comma."""
    words = [word.casefold() for word in _WORD.findall(own[start:end])]
    return own[start:end].rstrip().endswith(":") and any(word in _TELLING for word in words[-4:])


def _pieces(own: str, sentence: Span, is_verb: IsVerb) -> Iterator[_Piece]:
    """Yield the clauses of a sentence: it is cut where a new subject, verb or condition begins."""
    start, joined = sentence.start, False
    for cut in _BREAK.finditer(own, sentence.start, sentence.end):
        following = own[cut.end() : sentence.end]
        lead = _LEAD.match(following)
        rest = following[lead.end() :] if lead else following
        word = _WORD.match(rest)
        first = _WORD.match(own, start, cut.start()) or _WORD.search(own, start, cut.start())
        conditional = cut["comma"] and first is not None and first.group().casefold() in _SUBORDINATORS
        verb = word is not None and (
            is_verb(word.group()) or (bool(cut["and"] is None) and word.group().casefold() in _SUPPORTING)
        )
        if cut["please"] and (first is None or first.group().casefold() not in _SUBORDINATORS):
            continue
        if not (conditional or verb or _OPENS.match(following) or not (cut["comma"] or cut["and"])):
            continue
        if cut.start() > start:
            yield _Piece(Span(start, cut.start()), own[start : cut.start()], joined)
        start, joined = cut.end(), bool(cut["and"]) and not _OPENS.match(following)
    if start < sentence.end:
        yield _Piece(Span(start, sentence.end), own[start : sentence.end], joined)


def _read(piece: _Piece, *, asked: bool) -> Act | None:
    """Return what a clause asks for or states; ``None`` for neither."""
    text, at = piece.text, piece.span.start
    position = _skip(_LEAD, text, 0)
    for pattern in (_HAVE_DONE, _NEEDS_DOING, _PASSIVE):
        match = pattern.match(text, position)
        if match and _is_passive(match) and not (asked and pattern is not _HAVE_DONE):
            topic = Span(at + match.start("object"), at + match.end("object"))
            return Act("order", match["verb"], piece.span, topic, joined=piece.joined)
    wants = _WANTS.match(text, position)
    if wants:
        return _of_noun(piece, wants.end())
    framed = position
    while (after := _skip(_LEAD, text, _skip(_FRAME, text, framed))) != framed:
        framed = after
    words = list(_WORD.finditer(text, framed))
    if not words or (asked and framed == position):
        return None
    return _of_words(piece, words, framed=_FRAME.search(text[position:framed]) is not None)


def _skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _is_passive(match: re.Match[str]) -> bool:
    verb, words = match["verb"].casefold(), [word.casefold() for word in _WORD.findall(match.group())]
    formed = verb.endswith(("ed", "ing")) or verb in _PARTICIPLES
    return formed and not any(word in _NEGATIONS or word in _QUESTIONS for word in words)


def _of_words(piece: _Piece, words: list[re.Match[str]], *, framed: bool) -> Act | None:
    """Return what a clause asks for, from its first word after leads and frames."""
    low = [word.group().casefold().replace("’", "'") for word in words]
    first, second = low[0], low[1] if len(low) > 1 else ""
    if first in _NEGATIONS or (first == "do" and second in _NEGATIONS):
        return None
    if first in _QUESTIONS or (not framed and first in _SUBORDINATORS):
        return None
    if (
        not framed
        and first in _AUXILIARIES
        and second in _SUBJECTS - (_DETERMINERS | _POINTERS if first in ("do", "have") else frozenset())
    ):
        return None
    base = is_base_verb(first) or (
        second in _DETERMINERS and not first.endswith(("s", "ed", "ing")) and first not in _DETERMINERS
    )
    begins = base or (first.endswith("ing") and (framed or not _FINITE & set(low)))
    if not begins or first in _DETERMINERS or (not framed and _is_stated(low)):
        return _statement(piece, words, low)
    if first in _SUPPORTING and second not in _POINTERS:
        return _of_noun(piece, words[0].end())
    rest = low[2:] if second in _PARTICLES else low[1:]
    start = piece.span.start + words[0].start()
    return Act(
        "order",
        words[0].group(),
        Span(start, piece.span.end),
        Span(start, _topic_end(words, piece)),
        points=bool(rest) and rest[0] in _POINTERS and _ends(rest[1:]),
        bare=_ends(rest),
        joined=piece.joined,
    )


_FREE = vocabulary(
    """
    now today tomorrow tonight please asap immediately soon again right out live up
    """
)


def _ends(rest: list[str]) -> bool:
    """Return whether an object ends here: at the end of the clause, an adverb or a preposition."""
    return not rest or rest[0] in _FREE | _PARTICLES | PREPOSITIONS


def _is_stated(low: list[str]) -> bool:
    """Return whether the first words are a noun with its verb ("deploy failed again", "release is out")."""
    for number, word in enumerate(low[1:8], start=1):
        following = low[number + 1] if number + 1 < len(low) else ""
        if (
            word in _SUBORDINATORS - PREPOSITIONS
            or word in _RELATIVES
            or (number == 1 and word in _DETERMINERS)
        ):
            return False
        if word in _FINITE:
            return True
        if word.endswith("s") and following in _DETERMINERS and number == 1:  # the third person
            return True
        if word.endswith("ed") and word not in _DETERMINERS and low[number - 1] not in _DETERMINERS:
            ends = not following or following in _DETERMINERS | PREPOSITIONS | _FREE | _PASSED
            return ends and following != "by"
    return False


_PASSED = vocabulary("yesterday last twice earlier recently")
_RELATIVES = vocabulary(
    "that which who whose where i we you they he she it because so if when once while until and or but "
    "nobody somebody someone everybody everyone anybody anyone people users customers clients"
)


def _of_noun(piece: _Piece, start: int) -> Act | None:
    """Return an act that a noun names: "do the backup", "we need a backup", "the backup, please"."""
    words = list(_WORD.finditer(piece.text, start))
    low = [word.group().casefold() for word in words]
    while low and (
        low[0] in _DETERMINERS
        or low[0] in _PARTICLES
        or low[0] in _WHOLES
        or low[0] in _FREE
        or low[0] in ("me", "us", "you")
    ):
        whole = low[0] in _WHOLES
        del low[0], words[0]
        if whole and low and low[0] in PREPOSITIONS:
            del low[0], words[0]
    if not low or low[0] in _NEGATIONS or low[0] in _QUESTIONS:
        return None
    ends = PREPOSITIONS | _QUESTIONS  # "write down in the manual how we deploy"
    end = next((number for number, word in enumerate(low) if word in ends), len(low))
    if not end:
        return None
    at = piece.span.start
    topic = Span(at + words[0].start(), at + words[end - 1].end())
    head = next((word.group() for word in reversed(words[:end]) if word.group().casefold() not in _FREE), "")
    span = Span(piece.span.start, piece.span.end)
    return Act("supported", head, span, topic, joined=piece.joined)


def _statement(piece: _Piece, words: list[re.Match[str]], low: list[str]) -> Act | None:
    """Return a situation in the present or a noun without a verb ("the backup, please"), if it is one."""
    if any(word in _NEGATIONS for word in low) or _is_past(low):
        return None
    topic = Span(piece.span.start + words[0].start(), _topic_end(words, piece))
    if low[0] in _DETERMINERS and not any(word in _FINITE or word.endswith("s") for word in low):
        return _of_noun(piece, words[0].start())
    return Act("situation", "", piece.span, topic, joined=piece.joined)


def _is_past(low: list[str]) -> bool:
    """Return whether a statement is about the past; a participle after "is" or an article is not."""
    for number, word in enumerate(low):
        before = low[number - 1] if number else ""
        if word in _PAST or (
            before in ("has", "have") and (word.endswith("ed") or word in _PARTICIPLES or word == "been")
        ):
            return True
        if word.endswith("ed") and not is_base_verb(word):
            joined = before in _DETERMINERS or before in (
                "is",
                "are",
                "be",
                "being",
                "get",
                "gets",
                "new",
                "not",
                "to",
            )
            if not joined:
                return True
    return False


_STOP = re.compile(r"[,;:()]")


def _topic_end(words: list[re.Match[str]], piece: _Piece) -> int:
    end = next(
        (word.start() for word in words[1:] if word.group().casefold() in PREPOSITIONS), len(piece.text)
    )
    stop = _STOP.search(piece.text, words[0].end(), end)
    return piece.span.start + (stop.start() if stop else end)


def speaks(act: Act) -> bool:
    """Return whether an order is to say, write or find out something; what it names is only its topic."""
    return act.form == "order" and act.head.casefold() in _SPEAKING


class Shape(msgspec.Struct, frozen=True):
    """The grammar of a phrase that names an act or a situation.

    Attributes:
        verbal: Whether it surely begins with a verb.
        maybe: Whether its first word can be a verb.
        supports: Whether that verb leaves it to its object what is done ("do a code review").
        open: Whether that verb has no object.
        topic: The words up to the first preposition.
    """

    verbal: bool
    maybe: bool
    supports: bool
    open: bool
    topic: str


def shape_of(phrase: str) -> Shape:
    """Return the grammar of a phrase.

    >>> shape_of("deploy to production").verbal, shape_of("new host").verbal, shape_of("site is down").maybe
    (True, False, False)
    """
    words = list(_WORD.finditer(phrase))
    low = [word.group().casefold() for word in words]
    if not low:
        return Shape(verbal=False, maybe=False, supports=False, open=False, topic="")
    end = next((word.start() for word in words[1:] if word.group().casefold() in PREPOSITIONS), len(phrase))
    second = low[1] if len(low) > 1 else ""
    maybe = is_base_verb(low[0]) and second != "" and not _FINITE & set(low)
    known = low[0] in _SUPPORTING | _SPEAKING or low[0].endswith(("ate", "ize", "ise", "ify"))
    verbal = maybe and (second in _DETERMINERS | _PARTICLES | PREPOSITIONS - {"of", "from"} or known)
    supports = verbal and low[0] in _SUPPORTING
    opens = (maybe and second in PREPOSITIONS) or not second
    return Shape(verbal=verbal, maybe=maybe, supports=supports, open=opens, topic=phrase[:end])
