"""What a rule says about a thing that it names: banned, wanted, allowed, or blamed for something.

The position of the thing in its sentence decides, not the thing: words before it ("no …", "use …"), words
after it ("… has no place here"), and the next sentence, if that points back ("that one's gone").
"""

import re
from typing import Literal

from agentx.synthesis.demands.tables.vocabulary import compiled

Stance = Literal["banned", "wanted", "allowed", "blamed", ""]

_SENTENCE_END = re.compile(r"(?<=[^\s.][.!?])(?:[)\"'`]\s+(?=[^a-z\s])|\s+(?=[\"'`(]?\S))|\s*…\s+|\n+")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|fig|mr|mrs|ms|dr|prof|st)|\s\w)\.$", re.IGNORECASE
)

_DOER = r"(?:please |just |always |simply |rather |either |only |you |we |to |and |then |kindly )*"
_ORDER = (
    r"(?:us(?:e|ing)(?! of\b)|prefer|pick|choose|go (?:with|for)|stick (?:to|with)|reach for|tak(?:e|ing)"
    r"|writ(?:e|ing)"
    r"|put|return(?:ing)?|call(?:ing)?|mak(?:e|ing)|giv(?:e|ing)|want|favou?r|switch to|replace|rely on"
    r"|raise|say(?:ing)?"
    r"|throw|log(?:ging)?|keep to|do)"
)
_TURN = compiled(
    r"(?:[,;:]|\s[-–—]+|\b(?:and|but|so|then|instead|hence)\b)\s*"
    rf"(?:{_DOER}{_ORDER}\b|(?:and |but |so )?(?:we|it|they|i|you|he|she|that|which|there|what|who|the"
    r"|let|our|my|this|these|those|one|some(?:one|body))(?:'\w+)?\b)"
    r"|\b(?:but|except|because|since|otherwise|instead|so that|which|who|whose)\b(?! of\b)"
    r"|,\s+(?:a |an |the )?(?:plain|simple|just|only|normal)\b"
    r"|\band (?:only )?(?:the|an?) |\((?=[`\"']?[\w.-]+[`\"']? (?:is|are|only)\b)"
)
"""Where a new statement begins in a sentence, so that a negation before it no longer counts."""

_NEGATION = compiled(
    r"\b(?:never|no|not|none|nothing|nowhere|nobody|neither|nor|without|w/o|don'?t|doesn'?t|mustn'?t"
    r"|shouldn'?t"
    r"|can'?t|cannot|won'?t|isn'?t|aren'?t|avoid\w*|stop\w*|quit\w*|bann?\w*|forbid\w*|prohibit\w*"
    r"|outlaw\w*|disallow\w*"
    r"|drop\w*|ditch\w*|lose|kill\w*|purg\w+|strip\w*|skip\w*|omit\w*|refrain\w*|resist\w*|(?:steer|stay"
    r"|keep|stand)s?"
    r" (?:well )?(?:clear|away|off)|g[eo]t(?:ting)? rid|instead of|rather than|over|in place of|leav(?:e"
    r"|ing) (?:out|off)"
    r"|hands off|enough|hat(?:e|ing)|dislike|allergic|tired of|sick of|fed up|refus\w+|reject\w*"
    r"|spare (?:me|us)|zero"
    r"|less than|forgo|forget\w*|lack\w*|missing|abandon\w*|lay off|phase out|taboo|verboten"
    r"|off[- ]limits|gone|goodbye|bye|remove|delete|unwelcome)\b"
    r"|\bno-(?=\w)"
)
_UNDOES = compiled(
    r"\b(?:without|unless|lack\w*|miss\w*|forget\w*|omit\w*|skip\w*|leav(?:e|ing) (?:out|off)|drop\w*|but)\b"
)
_STARTS_ORDER = compiled(rf"^\W*{_DOER}{_ORDER}\b")
_DEMAND = compiled(
    r"\b(?:must|should|shall|has to|have to|needs?|gets?|carr(?:y|ies)|requires?|always|only|every|each|all"
    r"|make sure|ensure|expect\w*|wants?|takes?|with|starts?|begins?|ends?|has|have|is|are|be|add|include"
    r"|declare|set)\b"
)

_GONE = (
    r"(?:strictly |absolutely |totally |simply |completely |just |all |now |forever |still |long "
    r"|also )*(?:banned|forbidden"
    r"|prohibited|off[- ]?limits|off the table|out of bounds|verboten|taboo|disallowed|outlawed|unwelcome"
    r"|unacceptable|gone"
    r"|dead|history|out\b(?! of the)|a (?:hard |firm |clear |big |definite )*no\b|(?:a )?no[- ]gos?"
    r"|not (?:an option|allowed"
    r"|welcome|permitted|acceptable|ok(?:ay)?|wanted|to be|how we|what we|for|something we|our)|never"
    r"|poison|deprecated)"
)
_NO_AFTER = compiled(
    rf"(?:\b(?:is|are|be|'s|'re|was|were|remains?|stays?|counts? as|go(?:es)?)\s+{_GONE}"
    r"|\b(?:must|may|should|can|shall|will|do|does|did|is|are|has|have|would|could)(?:\s+not|n'?t)\b"
    r"|\bcannot\b|\b(?:must|may|should|can|shall|will|are|is)?\s*never\b"
    r"|\bha(?:s|ve|d) (?:absolutely )?no (?:\w+ (?:in|at|on|here|there)\b|place|business|home|room|right"
    r"|reason|part)\b|\bno longer\b"
    r"|\b(?:has|have) nothing to do in\b|\bends? up nowhere\b"
    r"|\bgets? (?:an? )?(?:hard |firm |clear |flat )*no\b|\b(?:stay|keep|go|belong|leave|come)s?\s+(?:out"
    r"|elsewhere"
    r"|outside)\b(?! as)|\b(?:ha(?:s|ve) to|must|needs? to|should) (?:go|die|leave|disappear|vanish)\b"
    r"|^\W*no (?:thanks?|way|chance|more)\b|\bnot? (?:in|on|under|inside|within)\b (?:my|our|this|here|the)\b"
    r"|\b(?:banned|forbidden|prohibited|verboten|outlawed)\b)"
)
_OUT = compiled(r"^\W*(?:[\w'-]+\W+){0,4}?(?:out\b(?! of (?:habit|respect|curiosity))|away from|off\b|alone)")
_KEEPS = compiled(r"\b(?:keep|leave|get|want|take|leaving|keeping)\b[^.;]*$")
_YES_AFTER = compiled(
    r"\b(?:is|are|'s) (?:\w+ )?(?:fine|ok(?:ay)?|allowed|welcome|what we use|preferred|the way|enough"
    r"|good|exempt|great"
    r"|our (?:way|standard|default)|how we)\b|\bdo(?:es)? the job\b|\b(?:instead|fits?|works?|please)\b"
    r"|\b(?:can do|may)\b"
)
_WINDOW_END = compiled(
    r"[;:]|\s[-–—]+\s|,\s+(?:we|it|they|i|you|that|use|because|since|so|but|and|please|the|pick|go"
    r"|instead|one|he|she)\b"
    r"|,\s+(?:never|not) (?:on|in|to|at|for|with|inside|under)\b"
    r"|,\s+(?:don['’]?t|do not)\b|\b(?:because|since|but|so|which|unless)\b|\band (?:use|we|i|it|you|the)\b"
)
_BLAME = compiled(
    r"\b(?:(?:is|was) (?:exactly |precisely )?(?:how|why)\b|clash\w*|makes? (?:us|me|it|them) look"
    r"|crash\w*|burn\w*|bit(?:ten)?|bites?|broke\w*|break\w*|leak\w*|hurt\w*|hang\w*|hung|hid(?:es?"
    r"|den)?|fail\w*"
    r"|stale|bugs?|nightmare|pain\w*|mess\w*|took .{0,30}down|lost|los(?:e|es|ing)|cost(?:s|ed)? us|wrong"
    r"|bloat\w*|slow\w*"
    r"|corrupt\w*|kill\w*|ruin\w*|swallow\w*|outage|ugly|unreadable|annoy\w*|driv(?:es?"
    r"|ing) (?:\w+ ){1,3}(?:nuts|crazy|mad|insane)|terrible|awful|horrible"
    r"|blow\w*|blew|trouble|problems?|incident|flak\w*|unsafe|danger\w*|confus\w*|spam\w*|noise|noisy"
    r"|useless|robot\w*)\b"
)
_ELSE = compiled(r"\b(?:or )?(?:else|otherwise)\b")
_CHOSEN = compiled(rf"\b(?:{_ORDER}|whichever|fits?|fine)\b")
_BACK = compiled(
    rf"^(?:\W|\w+\W+){{0,14}}?\b(?:that|it|this|they|those|these|that one|them)(?:'s|'re)?\s+(?:(?:is|are"
    rf"|stays?)\s+)?{_GONE}"
)


_CAUSE = compiled(r"\b(?:because of|due to|thanks to|caused by|blame|came from) (?:an? |the )?[`\"']?$")
_NEXT = re.compile(r"[,;]\s*[`\"']?$")
_IS_IT = compiled(r"^[`\"')(]*\s+(?:it )?(?:is|are)\W*$")
"""A thing after a comma that is not what was ruled out before it: "X isn't good enough, Y is"."""


def sentences_of(words: str, inside: tuple[int, int] = (0, 0)) -> list[tuple[int, int]]:
    """Return the start and end of each sentence; a mark in an abbreviation or in ``inside`` ends none."""
    bounds, start = [], 0
    for match in _SENTENCE_END.finditer(words):
        if not (_NO_END.search(words[start : match.start()]) or inside[0] < match.start() <= inside[1]):
            bounds.append((start, match.start()))
            start = match.end()
    return [*bounds, (start, len(words))]


def stance(words: str, start: int, end: int) -> Stance:
    """Return what a rule says about the thing at ``words[start:end]``.

    >>> rule = "panic() has no place in handlers. Return an error instead."
    >>> stance(rule, 0, 7), stance(rule, 44, 49)
    ('banned', 'wanted')
    """
    bounds = sentences_of(words, (start, end))
    number = next((n for n, (_, last) in enumerate(bounds) if start < last), len(bounds) - 1)
    first, last = bounds[number]
    before, after = words[first:start], words[end:last]
    if _OR_NOTHING.match(after):
        return "wanted"
    found = _before(before)
    window = after[: match.start()] if (match := _WINDOW_END.search(after)) else after
    if _NEXT.search(before) and _IS_IT.search(window):
        return "wanted"
    if found == "banned" or _out(before, window):
        return "banned"
    no, yes = _NO_AFTER.search(window[:90]), _YES_AFTER.search(window[:90])
    if no and not (found == "wanted" and _ordered(before)) and not (yes and yes.start() < no.start()):
        return "allowed" if _UNDOES.search(window[: no.end()]) else "banned"
    if found == "wanted":
        return "wanted"
    following = words[slice(*bounds[number + 1])] if number + 1 < len(bounds) else ""
    if (window.rstrip("`\"')").endswith("?") and _REFUSED.match(following)) or _is_taken_up(after, following):
        return "banned"
    back = _BACK.search(after)
    if (back and not _CHOSEN.search(back.group())) or _BACK.search(following):
        return "banned"
    if yes:
        return "allowed"
    if _BLAME.search(_ELSE.split(after)[0]) or _CAUSE.search(before):
        return "blamed"
    return "wanted" if _DEMAND.search(before + after) else ""


_REFUSED = compiled(r"\W*(?:no\b|not\b|never|nope|nowhere|nah|don['’]t|forget|out of the question)")
_AGAIN = compiled(r"^\W*(?:it|they|that|those|these|this|both|neither)\b[^.;]{0,20}")
_OR_NOTHING = compiled(r"^[^,.;]{0,30}\bor (?:nothing|bust)\b")
_DONT_IT = compiled(
    r"\W*(?:\w+ )?\b(?:don['’]t|do not|never|no more|stop|not) (?:ever |even )?(?:us\w+|do\w*|run\w*"
    r"|add\w*|bring\w*"
    r"|want\w*|need\w*|install\w*|call\w*|see\w*) (?:it|that|those|them|these|this)\b(?! to\b)"
)
_BUT_IT = compiled(r"\bbut (?:it|they|that|those|these|this)(?=\W)")


def _is_taken_up(after: str, following: str) -> bool:
    """Return whether a pronoun that means the thing is ruled out ("They don't belong in app/")."""
    if _DONT_IT.search(after) or _DONT_IT.match(following):
        return True
    if (match := _BUT_IT.search(after)) and _NO_AFTER.match(after[match.end() :].lstrip()):
        return True
    match = _AGAIN.match(following)
    return bool(match and (no := _NO_AFTER.search(following)) and no.start() <= match.end())


def _before(before: str) -> Stance:
    """Return the stance by the words between the last turn of the sentence and the thing."""
    turns = list(_TURN.finditer(before))
    turn = turns[-1] if turns else None
    rest = before[turn.end() :] if turn else before
    negations = list(_NEGATION.finditer(rest))
    if negations:
        last = negations[-1]
        undone = len(negations) > 1 and _UNDOES.fullmatch(last.group())
        return "wanted" if undone else "banned"
    return "wanted" if _ordered(before) else ""


def _ordered(before: str) -> bool:
    """Return whether an order to use the thing precedes it."""
    turns = list(_TURN.finditer(before))
    if not turns:
        return bool(_STARTS_ORDER.search(before))
    return bool(_STARTS_ORDER.search(re.sub(r"^(?:[,;:]|\s?[-–—]+)?\s*", "", before[turns[-1].start() :])))


def _out(before: str, after: str) -> bool:
    """Return whether a thing is to be kept or left out."""
    return bool(_KEEPS.search(before) and _OUT.search(after))


_TOLD = compiled(
    r"\b(?:was|were|had|did|took|broke|lost|got|went|came|made|found|gave|ran|cost|burn(?:ed|t)|shipped|spent"
    r"|forgot|swallowed|\w{3,}ed)\b"
)
_ORDERED = compiled(
    rf"{_NEGATION.pattern}|\b(?:must|should|shall|always|needs?|ha(?:s|ve) to|please|only|use|keep|run"
    rf"|leave|every"
    r"|each|gets?)\b"
)


def is_story(words: str) -> bool:
    """Return whether a clause only tells what happened.

    >>> is_story("somebody bumped a replica count"), is_story("every file needs one")
    (True, False)
    """
    return bool(_TOLD.search(words)) and not _ORDERED.search(words)
