"""The grammar of change in English, as tables: how a message says that something is different now.

Each table has one form a line. They are general verbs and adverbs of change; subjects and values are open.
"""

import re
from functools import cache

from agentx.synthesis.language.words import content_words


def _any(forms: str) -> re.Pattern[str]:
    """Compile a table into a pattern that finds any of its forms as whole words."""
    return re.compile(rf"\b(?:{'|'.join(filter(None, forms.split(chr(10))))})(?!\w)", re.IGNORECASE)


CHANGES = _any(r"""
rais(?:e|ed|es|ing)|increas\w+|r[io]se[ns]?|bump\w*|hik(?:e|ed|es)|doubl\w+|tripl\w+|halv\w+|up(?:ped|s)? to
(?:put|puts|putting|go|goes|going|gone|went|come|comes|came) (?:\S+ ){0,4}?(?:up|down|back|forward|out|off)
(?:crept|mov\w+|push\w+|set|bring\w*|brought) (?:\S+ ){0,4}?(?:up|down|back|forward|out|off)
(?:up|down|back|over|go|goes|went|gone|going) to(?= \S*\d| \w+teen| \w+ty| \w+ hundred| half)
lower\w*|reduc\w+|cut|drop(?:s|ped|ping)?|slid\w*|slip\w*|shrunk|shrinks?|grew|grown
postpon\w+|delay\w+|reschedul\w+|rearrang\w+|mov(?:e|ed|es|ing)|shift\w*|extend\w*|shorten\w*
chang\w+|switch\w*|swap\w*|replac\w+|renam\w+|becom\w+|became|convert\w*|upgrad\w+|downgrad\w+|correct\w*
""")
"""A value is another one."""

NOW = _any(r"""
now|nowadays|these days|from now on|by now|as of|effective|new|newly|instead|rather|after all
in the end|turn(?:s|ed) out|actually|any ?more|no longer|this time|again|henceforth|lately|meanwhile
(?:from|starting|beginning) (?:next|the|this|\d)\w*
(?:from|starting|beginning) (?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*
""")
"""A value is that of now, and was not before."""

PLANS = _any(r"""
thinking (?:of|about)|think (?:i|we|she|he|they)|thinks|might|could|maybe|perhaps|if|would|wish\w*
hop(?:e|es|ing)|want(?:s|ed)?|consider\w*|plan(?:s|ned|ning)? to|ask(?:s|ed|ing)?|offer\w*|suggest\w*
advis\w*|reckon\w*|propos(?:e|ed|es|ing)|advertis\w*|quot(?:e|ed|es)|estimat\w*|expect\w*|option\w*|wonder\w*
should|probably|possibly|apparently|rumou?r\w*|supposedly|seems?|discuss\w*|talk(?:ed|ing)? (?:of|about)
""")
"""A wish, a plan, or an offer: not a fact."""

PAST = _any(r"""
used to|back then|in those days|formerly|years? ago|months? ago
last (?:year|month|winter|summer|spring|autumn)
(?:was|were|had|did|cost|paid)\b[^.;]* in (?:19|20)\d\d
in (?:19|20)\d\d\b[^.;]*\b(?:was|were|had|did|cost|paid)
once (?:was|were|had)|when (?:i|we|he|she|they) (?:was|were)|as a (?:child|kid|girl|boy|student)|at the time
""")
"""A sentence about an earlier time."""

OTHERS = _any(r"another|(?:the|my|our|his|her|their|its) (?:other|second|third|last|first)")
"""One of several things of a kind."""

KEEPS = _any(r"still|stays?|stayed|remains?|remained|as before|same|unchanged|keeps?|kept|also|too|as well")
"""A value is not another one, or one more."""

ENDED = _any(r"""
sold|s[eo]ll(?:ing)?|dropp(?:ed|ing)|ditch\w*|scrapp\w*|cancel\w*|stopp\w*|quit(?:ting)?|le(?:ft|aving|aves?)
fired|sacked|dismissed|gave up|giv(?:en|ing) up|got rid of|getting rid of|replaced|swapped
mov(?:ed|ing) (?:out of|away from|off)|switch(?:ed|ing) (?:away )?from|traded in|return(?:ed|ing)
retir(?:ed|es|ing)|clos(?:ed|es|ing)|shut|resign\w*|passed away|died|broke down|broken down|bankrupt
renovated|stepp?(?:ed|ing) down|hand(?:ed|ing) (?:in|over)|going (?:away|back|abroad)|gone
on (?:maternity |sick |parental )?leave|sabbatical|no longer|any ?more
""")
"""Somebody or something is not there any more."""

BEGUN = _any(r"""
now|instead|new|from now on|as of|(?:tak(?:es?|ing|en)|took) (?:it |this |that )?over|replac\w+
pass(?:es|ed) to|hand(?:ed|s) (?:\S+ )?(?:over )?to|will be|mov(?:ed?|es|ing) to|switch(?:ed|ing)? to
stand(?:s|ing)?-? ?in|fill(?:s|ing) in|steps? in
(?:and|so|,) \w+ (?:drives?|uses?|has|have|works?|does|takes?)
to have|on to|onto|sending|start(?:s|ed|ing)? (?:at|with|as)|join(?:s|ed|ing)
""")
"""Somebody or something takes a place."""

CORRECTS = re.compile(
    r"^(?:oh |sorry[,.]? |ah |oops[,.]? |wait[,.]? |hang on[,.]? |well[,.]? )*"
    r"(?:(?:no|nope|sorry|correction|wait|oops|actually|rather)\b[\s,:;.!–—-]*)+"
    r"(?:no\b[\s,]*)?(?:(?:i|it|that|we|he|she|they)(?:['’]?s|['’]re| is| was| are| were)?(?: actually)? )?"
    r"(?:mean[ts]?|said|should (?:be|have been|read|say)|make (?:it|that)|to be)?\b|^i meant\b"
    r"|^make (?:it|that)\b|^(?:that|it) should (?:be|have been)\b",
    re.IGNORECASE,
)
"""How a message begins that only corrects the one before: "No, I meant …"."""

_A = r"(?:the |an? |my )?"
_FORMER, _LATER = r"(?P<former>[^,.;:!?\n]{1,40}?)", r"(?P<later>[^,.;:!?\n]{1,40}?)"
_STOP = r"(?=\s*(?:[,.;:!?\n)–—]|$| (?:and|but|because|since|as|so|from|for|now|any ?more|who|which|that)\b))"
_NOT = r"(?:(?:is|was|are|were)(?:n['’]?t| not)|['’]s not|\bnot)\s+(?:on |in |at )?"
_BUT = r"\s*(?:,|;|\.|but|–|—|-)+\s*(?:but |it(?:['’]?s| is| was) |they(?:['’]re| are) |rather )+"
_OFF = r"(?:fell through|(?:is|was|got) cancelled|cancelled|is off|can['’]?t|is out|dropped out)"

INSTEAD = re.compile(
    rf"(?:^|[,.;:]\s*|\b(?:to|is|be|with|at|on|by|use|uses)\s+){_A}{_LATER}"
    rf" (?:instead of|rather than) {_A}{_FORMER}{_STOP}",
    re.IGNORECASE,
)
CONTRASTS = (
    re.compile(
        rf"{_NOT}{_A}{_FORMER}(?: any ?more)?{_BUT}(?:on |in |at )?{_A}{_LATER}{_STOP}", re.IGNORECASE
    ),
    INSTEAD,
    re.compile(rf"\bfrom {_A}{_FORMER} (?:back |up |down |over )?to {_A}{_LATER}{_STOP}", re.IGNORECASE),
    re.compile(
        rf"(?:^|[.;]\s*){_A}{_FORMER} {_OFF}[^,.;]{{0,20}},\s*(?:so |it(?:['’]s| is) )?{_LATER} instead\b",
        re.IGNORECASE,
    ),
)
"""Both values in one sentence: "not A but B", "B instead of A", "from A to B", "A is off, B instead"."""

REPORTS = _any(r"says|said|wrote|writes|tells|told (?:me|us)|reckons|thinks|announced|confirmed")
"""What follows is what somebody says."""

DID = _any(r"\w+ed|was|were|had|did|got|went|came|made|bought|gave|sent|took|spent|lost|won")
"""What happened, rather than what is so."""

VERB = _any(r"""
is|are|was|were|am|has|have|had|will|can|could|would|does|did|do|may|must|should|\w+(?:ed|ing)|\w+['’]ll
\w+[^\W\dsiu]s|went|got|took|made|met|came|said|told|found|left|bought|gave|ran|won|lost|put|cut|sold|sent
wrote|rang|paid
""")
"""What ends the subject of a clause."""

PRONOUN = _any(r"""
it|its|it['’]s|they|their|them|theirs|he|his|him|she|her|hers|this|that|those|these|then|there
""")
FOLLOWS = re.compile(r"(?:so|then|it(?:['’]?s| is| will|['’]ll)?|theirs)\b", re.IGNORECASE)
"""How a clause begins that goes on with what was just said."""

SEGMENT = re.compile(
    r"(?<!\d),\s+|,\s+(?!\d{3})|;\s+|\s+[–—-]+\s+|\s+(?:and|but|so|n)\s+|:\s+(?!\d)|\.{3}\s*|[.!?]\s+"
)
"""What separates the parts of a sentence."""

EFFECTIVE = re.compile(
    r"\b(?:from|as of|starting|effective|since|beginning)\s+(?:on\s+|the\s+)*$", re.IGNORECASE
)
"""What comes before the date from which on something is so."""

_NO_SUBJECT = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
september october november december week month year day today tomorrow yesterday morning evening night
afternoon hour minute time first last next new now one two three four five six seven eight nine ten
euro euros pound pounds dollar dollars cent cents quid mg kg kilo kilos gram grams percent
start starts begin begins go goes get gets come comes take takes make makes give gives put set want wants
say says tell tells need needs pay pays cost costs
"""


@cache
def no_subject() -> frozenset[str]:
    """Return the stems of words that say nothing about a subject: times, units, verbs of any sentence."""
    return content_words(_NO_SUBJECT)
