"""Recognises plain statements that are worth keeping: decisions, arrangements and facts.

There are no examples here, only features of a statement: who or what it is about, whether its verb states
something that stays true, and whether it names a person, a place, a number or a time. What lasts only for the
work at hand (an error, what is being tried) counts against it.
"""

import re
from typing import Literal, NamedTuple

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.words import STOP_WORDS
from agentx.synthesis.scribe.orders import asks, is_order

SURE = 3
"""Number of features from which a statement is noted; with fewer it is a candidate."""

DOUBTFUL = 2
"""Number of features from which it is a candidate."""

_MAX_WORDS = 45

_WEEKDAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|weekend"
_MONTH = "january|february|march|april|june|july|august|september|october|november|december|easter|christmas"
_TIME = on_use(
    rf"\b(?:{_WEEKDAY}|{_MONTH})s?\b|\b(?:week|q)\s?\d|\b\d{{1,2}}(?:st|nd|rd|th)\b|\b\d{{1,2}}[:.]\d\d\b"
    r"|\b(?:tonight|tomorrow|morning|evening|noon|midnight|next (?:week|month|year)|end of)\b",
    re.IGNORECASE,
)
_NUMBER = on_use(
    r"(?<![\w./-])[~<>≤≥€$£]?\d[\d.,'’]*(?!\w*[/_])|\b(?:two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|dozen)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?<=[a-z,;:)] )[A-ZÀ-Þ][\w'’-]*[a-zß-ÿ0-9][\w'’-]*")
_OPENING_NAME = re.compile(r"[A-ZÀ-Þ][a-zß-ÿ][\w'’-]*")
_TERM = re.compile(r"\b(?:[A-Z]{2,}\d*|[a-z]+_\w+|[a-z]+-\d+|[a-z]+[A-Z]\w*|\w+\.[a-z]{2,4})\b")
"""An acronym, an identifier or the name of a file."""

_PEOPLE = on_use(
    r"\b(?:boss|manager|lead|owner|client|customer|team|vendor|supplier|colleague|neighbou?r|teacher"
    r"|doctor|lawyer|accountant|treasurer|director|chair|dba|ops|qa|legal|support|maintainer|intern"
    r"|volunteer|guest|kid|son|daughter|wife|husband|partner|mother|father|mum|mom|dad|sister|brother"
    r"|cousin|uncle|aunt|friend|landlord)s?\b",
    re.IGNORECASE,
)
_SETTING = on_use(
    r"\b(?:prod(?:uction)?|staging|server|database|db|cluster|host(?:ing)?|repo(?:sitory)?|fork|branch"
    r"|release|version|deadline|budget|demo|launch|freeze|project|app|machine|laptop|office|venue|hall"
    r"|room|contract|licen[cs]e|plan|tier|customers|users|clients|company|team)\b",
    re.IGNORECASE,
)
_FINITE = (
    r"is|are|was|were|isn't|aren't|wasn't|'s|'re|has|have|had|hasn't|haven't|will|won't|cannot|can't|can"
    r"|must|may|doesn't|don't"
)
_STATIVE = (
    "run|own|live|work|use|need|want|get|give|take|cost|pay|start|begin|end|open|close|come|go|handle|lead"
    "|manage|keep|allow|support|belong|contain|hold|expect|sleep|decide|review|collect|bring|deliver"
    "|arrive|leave|stop|stay|sit|know|speak|sell|buy|offer|require|limit|cover|include|depend|organi[sz]e"
    "|play|teach|look after|call|name|send|receive|store|serve|produce|supply|ship|report|host|charge"
)
"""Verbs of relations and habits, whatever the subject."""

_WORD = r"[\w'’./#@&+%-]+"
_CLAIM = on_use(
    rf"(?P<subject>(?:{_WORD},? ){{0,7}}?{_WORD}?)(?:(?<=[\w)])(?P<short>'s|'re)|,? (?:(?:all|also|still"
    rf"|now|only|already|currently|usually|normally|always|never|just|both) )*(?P<verb>(?:{_FINITE}"
    rf"|(?:{_STATIVE})(?:e?s|d|ed)?"
    r"|gave|took|got|came|went|kept|led|paid|sold|bought|left|died|sent|made)))\b(?! you\b)",
    re.IGNORECASE,
)
_PRESENT = on_use(rf"is|are|has|have|(?:{_STATIVE})(?:e?s)?", re.IGNORECASE)
_NO_SUBJECT = on_use(
    r"(?:you|your|if|when|whenever|once|unless|until|while|because|since|although|though|maybe|perhaps"
    r"|what|why|how|who|where|which|please|not|as|so|or|to|for|in|on|at|by|with|from|after|before|let"
    r"|don't|do|did|does|try|also)\b",
    re.IGNORECASE,
)
_INSIDE = on_use(r"\b(?:that|which|who|if|when|because|so|you|your|but)\b", re.IGNORECASE)
_POINTING = on_use(r"(?:it|its|this|that|these|those|they|he|she|his|her|their|one|both)\b", re.IGNORECASE)
_OURS = on_use(r"(?:we|our|my|us)\b", re.IGNORECASE)
_FIRST = on_use(r"i\b", re.IGNORECASE)
_WISH = on_use(r"(?:need|want|expect)(?:s|ed)?", re.IGNORECASE)
_REASON = on_use(r"\b(?:because|since|so that|as it|as we|due to)\b", re.IGNORECASE)
_PASSING = on_use(
    r"\b(?:errors?|fail\w*|exception|traceback|crash\w*|broken|bugs?|issues?|problem|wrong|weird|strange"
    r"|not working|n't work|undefined|warning|log|logs|output|screenshot|seems?|looks? like|i (?:see|think"
    r"|guess|suppose|wonder|believe|get|got|mean)|still|again|now|here|above|below|currently trying|trying"
    r"|missing|not sure|unsure|confus\w+|actually|really|basically|should|could|would|might|probably|maybe"
    r"|perhaps|apparently)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"[{}<>=;|\\]|\(\)|::|->|\w/\w+/\w|^\W*[\w.]+\(")

_EXPLORES = (
    "see|check|look|try|think|find|test|review|ask|understand|debug|figure|discuss|talk|pause|wait|say"
    "|assume|continue|read|know|let|be|get back|get|give|need|want|tell|send|paste|post|share|show|explain"
    "|keep you|come back|have to|do"
)
_PLAN = on_use(
    r"(?P<who>we|i)(?:'ll| will|(?:'re| are|'m| am) going to|(?:'re| are) going (?:with|for)"
    r"| plan to)(?: (?:probably|then|just|also|first|now|only))* "
    rf"(?!(?:{_EXPLORES}|you|not (?:sure|need))\b)",
    re.IGNORECASE,
)
_SCHEDULED = on_use(
    r"(?:tomorrow|tonight|(?:on|next|this|after|in) \w+)(?: (?:morning|afternoon|evening|night|week))?,?"
    r" (?:we|i)\b",
    re.IGNORECASE,
)
_ARRANGED = on_use(
    r"(?:we|i|they|he|she|\w+)?(?: ?'ve| have| has|'s)?(?: (?:already|just|now|also"
    r"|finally))*\s*\b(?:booked|reserved|ordered|hired|signed|rented|bought|paid|agreed|promised|confirmed"
    r"|invited|scheduled|cancell?ed|appointed|arranged|registered|sent|told|phoned|asked|decided|chose"
    r"|chosen|picked|settled)\b",
    re.IGNORECASE,
)
_IT_IS = on_use(
    r"(?!(?:what|how|as|so|this|that|where|when|who|like|think|know|here|there"
    r"|wh\w+)\b)[\w'’ -]{2,40} it is(?=[.!,;:]|\s*$| then\b| because\b| for\b)",
    re.IGNORECASE,
)
_KEEPS = on_use(r"[\w'’/ -]{2,40} (?:stays?|wins|goes first|comes later|remains?)\b", re.IGNORECASE)


class StatedClaim(NamedTuple):
    """A statement that is worth keeping.

    Attributes:
        points: Whether it is about something that the sentence before it names.
    """

    sort: Literal["decision", "knowledge"]
    sure: bool
    points: bool = False


def claim_of(words: str) -> StatedClaim | None:
    """Return what a sentence states; ``None`` if it is not worth keeping.

    Args:
        words: A sentence of the user's own words, without "so", "btw" and the like.

    >>> claim_of("We'll host in Frankfurt because the data may not leave the EU.")
    StatedClaim(sort='decision', sure=True, points=False)
    >>> claim_of("Ines runs the harbour office").sort
    'knowledge'
    >>> claim_of("it fails again")
    """
    if asks(words) or len(words.split()) > _MAX_WORDS or _CODE.search(words):
        return None
    if _IT_IS.match(words):
        return StatedClaim("decision", sure=True)
    if is_order(words):
        return None
    named = _names(words)
    times = len(_TIME.findall(words))
    concrete = bool(named) + bool(_NUMBER.search(words)) + bool(times) + bool(_TERM.search(words))
    passing = bool(_PASSING.search(words))
    if plan := _PLAN.match(words):
        ours = plan["who"].lower() == "we"
        weight = concrete + ours + bool(_REASON.search(words)) + (not passing)
        return _weighed("decision", weight, ours=ours)
    if _SCHEDULED.match(words) and times:
        return StatedClaim("decision", sure=False)
    if _ARRANGED.match(words):
        return _weighed("decision", concrete + 1 + (not passing), ours=True)
    claim = _CLAIM.match(words)
    subject = claim["subject"].strip(" ,") if claim else ""
    if not claim or not subject or _NO_SUBJECT.match(subject) or _INSIDE.search(subject):
        return None
    if _KEEPS.match(words) and not _POINTING.match(subject):
        return _weighed("decision", 2 + bool(concrete), ours=False)
    points = bool(_POINTING.match(subject))
    weight = concrete - 2 * passing - points
    weight += bool(_OURS.match(subject)) + bool(_PEOPLE.search(words)) + bool(_SETTING.search(subject))
    weight += bool(claim["short"] or _PRESENT.fullmatch(claim["verb"] or ""))
    if _FIRST.match(subject) and (not concrete or _WISH.fullmatch(claim["verb"] or "")):
        return None
    made = _weighed("knowledge", weight, ours=False)
    return made._replace(points=points) if made else None


def _weighed(sort: Literal["decision", "knowledge"], weight: int, *, ours: bool) -> StatedClaim | None:
    if weight < DOUBTFUL:
        return None
    return StatedClaim(sort, sure=weight >= SURE or (ours and weight >= DOUBTFUL and sort == "decision"))


def _names(words: str) -> list[str]:
    """Return the words that look like names."""
    found = _NAMED.findall(words)
    opening = _OPENING_NAME.match(words)
    if opening and opening.group().lower() not in STOP_WORDS:
        after = words[opening.end() :].split()
        verb = after[0].lower() if after else ""
        relates = verb in ("is", "has", "was", "will") or (
            verb.endswith("s") and verb[:-1] in _STATIVE.split("|")
        )
        if relates or (after and after[0][:1].isupper()):
            found.append(opening.group())
    return found
