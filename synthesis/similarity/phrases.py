"""Phrases that one word replaces before an instruction is read: "prior to", "at least", "get rid of"."""

import re

_COUNT = (
    r"(?=\s+(?:the\s+)?(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty"
)
_COUNT += r"|thirty|forty|fifty|sixty|hundred|half|an?)\b)"
_SWITCH = r"(?:turn|switch|power)(?:ed|ing|es|s)? ((?:(?:the|all|every|each|it|them|your) )?(?:\w+ )?)"
_SPELL = r"(?:spell|write|written|wrote|spelled|spelt|spelling|writing)"
_SPAN = r"(?:shift|day|week|month|sprint|session|job|run)"
_FORBIDDEN = r"(?:forbidden|prohibited|banned|off[ -]limits|disallowed|taboo)"
_PHRASES = tuple(
    (re.compile(rf"\b(?:{pattern})(?!\w)", re.IGNORECASE), by)
    for pattern, by in (
        (r"two times|2 times", "twice"),
        (r"(?<=twice |times )(?:an?|per|every|each) (hour|day|week|month|quarter|year)", r"\1ly"),
        (r"(?:once (?:a|per|every|each)|every|each|per) (hour|day|week|month|quarter|year)", r"\1ly"),
        (r"on (mon|tues|wednes|thurs|fri|satur|sun)days", r"every \1day"),
        (r"(?:pull|merge)[ -]requests?|prs?", "pullrequest"),
        (r"type[ -](?:hints?|hinting|annotations?)", "typehint"),
        (r"doc[ -]strings?", "docstring"),
        (r"bullet(?:ed)?[ -](?:points?|lists?)", "bullet"),
        (r"global variables?|globals", "globals"),
        (r"unit[ -]tests?", "test"),
        (r"e-mails?", "email"),
        (r"read[ -]only", "readonly"),
        (r"back(?:ed|ing|s)?[ -]up", "backup"),
        (r"back ((?:the |your |our )?\w+) up", r"backup \1"),
        (rf"{_SWITCH}on", r"enable \1"),
        (rf"{_SWITCH}off", r"disable \1"),
        (r"half an hour", "30 minutes"),
        (r"(?:within|inside) a(?: single)? day", "within 24 hours"),
        (r"(?:one|1) (?:full )?day", "24 hours"),
        (r"(\d+) ?mins?", r"\1 minutes"),
        (r"(\d+) ?secs?", r"\1 seconds"),
        (r"(\d+) ?hrs?", r"\1 hours"),
        (r"(?:two|2) weeks", "14 days"),
        (r"(in|as|the) ((?:[\w.]+ ){1,3}?)(?:format|form|style|mood|manner|fashion|notation)", r"\1 \2"),
        (rf"{_SPELL}s? out(?: in words| in letters)?", "spellout"),
        (rf"at the end of(?= (?:each|every|an?|the) {_SPAN}\b)", "after"),
        (r"prior to|ahead of|in advance of", "before"),
        (r"as soon as|subsequent to", "after"),
        (r"once(?= (?:the|you|we|it|they|all|every|each|its|their|your)\b)", "after"),
        (r"rather than|in place of|in preference to", "instead of"),
        (r"apart from|other than|except for", "except"),
        (r"not (?:only|just|merely)", "also"),
        (r"(?:must |should |has to |have to )?be (?:possible|able) to", "can"),
        (r"in case", "if"),
        (r"in writing", "written"),
        (r"get rid of", "remove"),
        (r"(?:keep|leave|leaving)s? ((?:[\w'’-]+ ){1,5}?)out of", r"no \1in"),
        (r"(?:freshly|newly)(?: written| made| created| added)?", "new"),
        (r"(?:do not|don['’]t|never|not) (?:fail|forget|neglect|omit) to", ""),
        (rf"(?:is|are|be|being) (?:strictly )?{_FORBIDDEN}", "not"),
        (r"at least|no fewer than|no less than|not less than|not fewer than", "atleast"),
        (r"(?:no|not) (?:\w+er|more|later) than|at (?:the )?most|at max(?:imum)?", "atmost"),
        (r"not exceed(?:ing)?", "atmost"),
        (rf"(?:up to|(?:a )?maximum of){_COUNT}", "atmost"),
        (rf"(?:a )?minimum of{_COUNT}", "atleast"),
        (r"(\d+|one|two|three|four|five|six|seven|eight|nine|ten) or more", r"atleast \1"),
        (r"(\d+|one|two|three|four|five|six|seven|eight|nine|ten) or (?:less|fewer)", r"atmost \1"),
        (rf"(?:fewer|less|(?:short|small|low|earli)er) than{_COUNT}", "atmost"),
        (rf"(?:under|below|within|inside){_COUNT}", "atmost"),
        (rf"(?:more|(?:long|larg|great|high|lat|bigg)er) than{_COUNT}", "atleast"),
        (rf"(?:over|above|beyond){_COUNT}", "atleast"),
        (r"exceed(?:s|ing)?", "atleast"),
    )
)  # fmt: skip


_PLURAL = re.compile(r"\b([A-Z]{2,})s\b")
"""The plural of an abbreviation: "PNGs"."""


def rephrased(text: str) -> str:
    """Return a text with one word for each of these phrases.

    >>> rephrased("Get rid of it prior to the release.")
    'remove it before the release.'
    """
    text = _PLURAL.sub(r"\1", text)
    for pattern, by in _PHRASES:
        text = pattern.sub(by, text)
    return text
