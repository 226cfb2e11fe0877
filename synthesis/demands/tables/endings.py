"""Words that change existing rules: signs of an end, of a permission, of an exception or of another choice.

No row names a rule. A sign counts only in a sentence that names the subject of an existing rule
(:mod:`agentx.synthesis.demands.targets`).
"""

import re
from typing import NamedTuple

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.words import vocabulary


def _any(*patterns: str) -> re.Pattern[str]:
    return on_use("|".join(patterns), re.IGNORECASE)


class Sign(NamedTuple):
    """A sign of an end, searched in a part of a sentence.

    Attributes:
        lifts: Whether it lifts a rule; otherwise it permits what a rule bans.
        pattern: The words.
        sure: Whether they can mean nothing else. Otherwise they rather raise a question than end a rule.
        of: The sort of rule that they end: ``must``, ``must_not`` or, if empty, either.
        alone: Whether the part has no other meaning if no such rule exists. "No more emojis" may be a ban.
    """

    lifts: bool
    pattern: re.Pattern[str]
    sure: bool = True
    of: str = ""
    alone: bool = True


_DROP = "drop|stop|skip|lose|ditch|forget|lift|leave out|omit|ignore|disregard|scrap|retire|cancel"
_RULE = (
    r"(?:rule|constraint|requirement|instruction|demand|restriction|ban|convention|policy|preference|freeze"
    r"|moratorium|limit|thing|business|stuff)s?"
)
_NEEDED = r"(?:need|have|bother|care|necessary|required|matter|worry|mind)\w*"
_NOT = r"(?:\w+n't|not|no|never)"
_ANY_MORE = r"\b(?:any ?more|any longer|from now on)\b"
_AGAIN = r"\b(?:again|from (?:now|here) on|after all|any ?time|any ?more|any longer)\b"
_FINE = r"(?:ok|okay|fine|allowed|alright|all right|welcome|permitted|acceptable)"
_MAY = (
    r"(?:\b(?:you|we) (?:can|may|could|are (?:allowed|free) to)|\byou're (?:allowed|free) to|\bgo ahead"
    rf"|\bfeel free to|\b(?:is|are|be|it's|that's) (?:(?!not)\w+ )?{_FINE}|^{_FINE} (?:to|with)|\b{_FINE}"
    rf" (?:by|with) me"
    r"|\b(?:can|may) (?:now |also |again )*(?:be|go|come|run)|\b(?:don't|do not) mind|\bno (?:objection"
    r"|problem)s? (?:to|with|if)"
    rf"|\bi(?:'m| am) (?:{_FINE}|happy|good) with|\bworks for me|\bwhy not|\bas you (?:like|please|wish|see"
    rf" fit)|\bgo for it|\b(?:unlocked|safe|possible|legal)|\bhave my (?:ok|permission|blessing)|\bas"
    rf" (?:many|much|long|often) .* as you)\b"
)
_SAID = r"i(?:'ve| have)? (?:said|told you|wrote|asked)"

SIGNS: tuple[Sign, ...] = (
    Sign(True, _any(rf"\b(?:you|we) (?:can|may|could|should)\b.{{0,20}}\b(?:{_DROP}|remove|take (?:out"
                    rf"|off))\b.*(?:{_AGAIN}|\bnow\b)")),
    Sign(True, _any(rf"\b(?:{_DROP}|remove|revoke|withdraw|undo|never ?mind)\b.{{0,40}}?"
                    rf"\b(?:the|my|that|our|those|these)\b.{{0,60}}?\b{_RULE}\b",
                    rf"\b(?:{_DROP}|never ?mind|i take back)\b.{{0,30}}\b{_SAID}\b",
                    r"^(?:never ?mind|nvm|forget)(?: about)?,? the\b")),
    Sign(True, _any(rf"\b(?:{_RULE}|warning)\b.*? (?:is|are|has been|have been) (?:now )?(?:lifted|gone|over"
                    rf"|off|history|obsolete"
                    r"|void|moot|cancel\w+|retired|withdrawn)\b",
                    r"\b(?:no longer|\w+n't|not) (?:apply|applies|in force|count)\b(?! (?:to|in|for)\b)")),
    Sign(True, _any(rf"\b(?:\w+n't|not|no)\b.{{0,30}}\b{_NEEDED}\b.*(?:{_ANY_MORE}|\bnow\b)",
                    rf"\b(?:don't|no need to) bother\b.*{_AGAIN}", rf"\bno longer {_NEEDED}",
                    r"\bno longer (?:forbidden|banned)\b"), of=""),
    Sign(True, _any(rf"^(?:no more|enough (?:with|of)|(?:stop|quit) \w+ing)\b(?!.*\b{_NOT}\b)"),
         of="must", alone=False),
    Sign(False, _any(rf"{_MAY}.*{_AGAIN}|{_AGAIN}.*{_MAY}", rf"{_MAY}.*\bnow\b|\bactually\b.*{_MAY}",
                     r"\b(?:is|are|'re|'s) back (?:on|in)\b|\b(?:is|are) back\b.* now\b",
                     rf"\bchanged my mind\b.*{_MAY}"), of="must_not"),
    Sign(True, _any(rf"\b(?:can|may|could|should)\b.{{0,20}}\b(?:{_DROP}|go|relax)\b|\b(?:can|could|will) do"
                    rf" without\b",
                    r"\b(?:ga?ve|given|giving) up\b|\bdone with\b|\b(?:got|get|getting) rid of\b|\bno"
                    r" longer\b|\bneedn't\b",
                    r"\bno (?:more )?(?:need|reason)\b|\bback to normal\b|\bwas (?:only|just) (?:for|while"
                    r"|because)\b",
                    rf"\b(?:don't|do not|doesn't|isn't|aren't|not) (?:(?:have to|an? issue|a problem)\b"
                    rf"|{_NEEDED})",
                    r"\b(?:is|are) (?:now )?(?:off|history|moot|obsolete|unnecessary|outdated|irrelevant"
                    r"|gone|void)\b",
                    r"^(?!(?:we|i)\b).*\b(?:is|are|was|has|have|got|\w+'s)\b.{0,12} (?:over|ended|finished"
                    r"|cancel\w+|replaced|closed)\b",
                    r"^(?!(?:we|i)\b)[\w ]{3,40} (?:ended|folded|expired|left|over)\b|\b(?:we|they|i) (?:\w+"
                    r" )?(?:dropped|cancel\w+)\b",
                    rf"^(?:{_DROP}) (?:the|that|those|these)\b|^(?:forget|never ?mind)\b"
                    rf"|\b{_NOT}\b.*\b(?:any ?more|any longer)\b"), sure=False),
    Sign(False, _any(_MAY), sure=False, of="must_not"),
)  # fmt: skip
"""The signs, the sure ones first."""

FORBIDS = _any(
    rf"\b(?:not|\w+n't|no longer)(?: \w+ly| at all| really| even| being)? {_FINE}\b"
    r"|\b(?:can|may|could|are|is|be|was|were)(?: \w+ly| now| also| still| just)? (?:not|never)\b"
    r"|\b(?:can't|cannot|couldn't)\b|\bnever\b(?! ?mind\b)"
)
"""Refuses a permission instead of giving it. "You can never use them again" ends no ban."""

KEEPS = _any(
    rf"\b(?:don't|do not|never(?! ?mind\b)|can't|cannot|may not|must not|mustn't|shouldn't|should not|won't"
    rf"|will not|wouldn't|not)(?: \w+){{0,3}}? (?:{_DROP}|remove|revoke|withdraw|undo|relax)\w*\b(?! you\b)",
    r"\b(?:stop|quit|avoid|without|instead of|keep) (?:dropp|stopp|skipp|los|ditch|forgett|lift|leav|omitt"
    r"|ignor"
    r"|disregard|scrapp|retir|cancell?|remov|revok|withdraw|undo|relax)ing\b",
)
"""Forbids to end a rule: "do not drop the rule"."""

CONDITIONAL = _any(r"^(?:if|unless|in case|provided|assuming)\b")
"""A part of a sentence that states a condition, so that it changes nothing by itself."""

AGAIN = _any(_AGAIN)
"""Words that give back what was ruled out, and not only once."""

_WHERE = r"(?:in|inside|within|for|when|whenever|while|if|on|at|during|under)"
PLACE = _any(rf"^{_WHERE}\s+\S.{{1,30}}?(?=,|\s[\w@.'-]+ (?:is|are)\b)", rf"\b{_WHERE}\s+\S.{{1,120}}$")
"""A limit of what a sign says to a place or a time."""

EXCEPT = _any(
    r"^(?:except|excepting|with the exception of|apart from|other than|but not|just not|only not|not"
    r"|unless)\s+"
    rf"(?P<place>(?:{_WHERE}|with|i|you|we|it|they|the)\s.{{2,120}})$",
    rf"^(?P<what>.{{0,60}}?\b{_RULE}\b.{{0,40}}?) (?:\w+n't|do not|does not) (?:apply|hold|count)"
    rf" (?P<other>.{{2,120}})$",
)  # fmt: skip
"""An exception to a rule."""

ONLY = _any(
    rf"^(?:(?P<what>.{{0,60}}?\b{_RULE}\b.{{0,40}}?) (?:is|are|appl\w+|holds?|counts?)|that(?:'s| is| was)"
    rf"|this is|but"
    r"|i (?:only |just )?mean(?:t)?(?: that)?)?\s*(?:meant )?(?:only|just) (?:meant )?(?P<place>(?:for|in"
    r"|to)\s.{2,80})$"
)  # fmt: skip
"""The only place where a rule applies."""

ONCE = _any(
    r"\b(?:just|only) (?:this|once|for)\b|\bthis (?:time|one|once)\b|\bonce\b|\b(?:to|from|in) \w+_\w+"
    r"|\bexception\b"
)
"""Points to one piece of work, so that no rule changes."""

AT_HAND = _any(
    r"\b(?:in|for|on|with|to|from|at) (?:this|that|these|those|the (?:one|last|first|second|third|next|other"
    r"|current|same))\b|\bhere\b(?! on)|\bthis (?:file|function|test|branch|pr)\b"
)
"""Points to the work at hand, so that no rule changes for sure."""

SEVERAL = _any(
    rf"\b(?:all|both|any)(?: of)? (?:the|my|our|those|these) (?:[\w-]+ ){{0,2}}{_RULE}\b|\beverything i\b"
)
"""Signs that every matching rule is meant."""

DOUBTED = _any(
    r"\b(?:if (?:we|i|only|there|so)|whether|did (?:you|we|i)|maybe|perhaps|should (?:we|i)|might|used to"
    r"|wonder\w*"
    r"|not sure|wish|hope|would (?:be|like|love)|could (?:we|also)|still|halfway|almost|nearly|what if)\b"
)
"""A thought, a question or news, but not a change."""

QUESTION = _any(
    r"\?\s*[\"')\]]*$|^(?:which|what|how|why|who|where|when (?:will|is|are|do)"
    r"|(?:can|could|would|do|did) you|is there)\b"
)  # fmt: skip

WITHDRAWN = _any(
    r"^(?:(?:ok|okay|oh|no|wait|sorry|hmm|actually|ah|well|please|on second thoughts?)[\s,.:-]+)*"
    r"(?:(?:scratch|strike|forget|ignore|disregard|undo|revoke|cancel|drop) (?:that(?: last)?(?: one)?|it"
    r"|this"
    r"|my (?:last|previous)(?: one)?)|never ?mind(?: that)?|nvm|i take (?:that|it) back|forget (?:what )?i"
    rf" (?:just )?said(?: that)?)(?: (?P<rule>{_RULE}|message|request|line|bit|part))?\b(?=[\s.!]*$"
    rf"|\s*[,;:.–—-])"
)
"""Words that take back the previous statement, as a sentence or at its beginning."""

LEAD = _any(
    r"^(?:(?:so|and|but|also|ok|okay|yes|yeah|yep|no(?=\s*[,;:!.-])|well|then|please|just|oh|hm+|right"
    r"|thanks|great"
    r"|good|perfect|again|wait|sorry|oops|now|ah|btw|hey|hi|because|since|from now on)(?:\s*[,:;!.–—-]+\s*"
    r"|\s+))+"
)
"""Words before a statement that are not part of it."""

_ENDED = (
    r"(?:done|over|fixed|merged|released|shipped|finished|resolved|live|deployed|completed?|solved|gone"
    r"|closed|out|in"
    r"|through|approved|signed|landed|up|back|passed|ended|arrived|reviewed|migrated|published|tagged"
    r"|verified|expired"
    r"|launched|tested|checked|confirmed|decided|upgraded|ready|green|working|passing|lifted|replaced"
    r"|removed|better|read|sent|paid|answered|accepted|settled|delivered)"
)
HAPPENED = _any(
    rf"^(?!.*\b(?:don't|do not|never|always|please)\b).*?(?:\b(?:is|are|was|were|has|have|had|got)|'s"
    rf"|'ve)(?: \w+ly| now| all| just| been| back| us| already)* {_ENDED}\b",
    rf"^(?:we|i)(?: \w+ly| just| now| all)* {_ENDED}\b|^(?:the|our|my|all)?[\w ]{{3,60}}? (?:ended|finished"
    rf"|passed|passes"
    r"|pass|landed|shipped|launched|arrived|expired|verified|approved|signed|merged|went (?:live|out"
    r"|through))\b",
)  # fmt: skip
"""A statement that something is completed, which may be the end of a rule."""

NOT_YET = _any(
    rf"\b{_NOT}\b|\b(?:if|when|once|as soon as|until|till|unless|before|will|'ll|going to|soon|next|tomorrow"
    rf"|should"
    r"|must|could|would|might|needs?|starts?|begins|planned|delayed|postponed|blocked|stuck|scheduled|late"
    r"|almost|nearly"
    r"|half\w*|still|hope|wish|maybe|perhaps|waiting|asks?|wants?|broken|failing|fails?|red|again|please"
    r"|always)\b"
)
"""Something that has not happened yet, or an order."""

PAST = _any(r"\b(?:is|are|was|were|has|have|had|got|\w{3,}ed)\b|'s\b")
"""A statement about the present or the past."""

_MOVED = (
    r"(?:switch\w*|mov(?:e|ed|ing)|shifted|go(?:ing)?|went|chang(?:e|ed|ing)|revert(?:ed)?|migrat\w+|stick)"
)
_TURNED = (
    r"(?:on second thoughts?|scratch that|strike that|change of plans?|plans? changed|changed my mind|i take"
    r" that back|these days|after all|wait,? no|no,? wait|hmm,? no|sorry,? no|i mean(?:t)?|correction)"
)
TURNED = _any(
    rf"\b{_TURNED}\b|\b(?:instead|no more|(?:i'd|i would) rather|back to|let's (?:do|use|talk|take|go)"
    r"|(?:make|let's make) (?:that|it|them)|has changed|replaces?)\b|changed:",
    rf"(?:^|\b(?:we|i)(?:'ve| have|'re| are)? |\b(?:please|just|now|ops|they|all) ){_MOVED}(?:"
    rf" (?!to\b)[\w']+){{0,3}}? (?:to|over|with)\b",
)  # fmt: skip
"""Words of a change: the following choice replaces an existing one."""

SHIFTED = _any(
    TURNED.pattern,
    r"\b(?:from (?:now|today|here|this \w+) on|as of (?:now|today|this|next)|starting (?:now|today|next|this"
    r"|on)|going forward"
    r"|(?:is|are) now|(?:has|have) (?:been )?(?:changed|moved|switched|replaced)|changed to|too \w+|, not"
    r" \w+|rather than|in future|new (?:rule|plan|policy|standard|default|limit)|go(?:ing)? with)\b",
)  # fmt: skip
"""The same, and words after which a rule may have another content."""

CUES = _any(rf"\b(?:actually|{_TURNED})\b|\b{_MOVED}(?: (?:it|that|them|everything))?(?: back| over)?(?="
            rf" (?:to|with)\b)"
            r"|\b(?:make|let's make) (?:that|it|them)\b")  # fmt: skip
"""Words that announce a change, and say nothing about it."""

CHANGES = _any(
    rf"{TURNED.pattern}|\b(?:actually|from now on|going forward|everywhere|i prefer|up to|at most|no more"
    rf" than)\b",
    r"\b(?:we|i)(?:'re| are)? (?:now )?(?:use|using)\b.* now\b|\b(?:we|i)(?:'re| are)? now (?:use|using)\b",
    rf"\b(?:is|are) (?:actually |now |also )?{_FINE}\b|\b(?:is|are) enough\b",
)
"""The same, and words that give another limit or could as well state a new rule."""

ASKED_CHANGE = _any(rf"^(?:can|could|would|will) (?:you|we) (?:please )?{_MOVED}\b.* to\b")
"""A change worded as a polite question."""

UNWANTED = _any(
    r"\b(?:swap|replace|exchange)(?: out)? (?P<swapped>[^,;!?]{2,40}?) (?:for|with|by)\b"
    r"|\b(?:instead of|rather than|no more|in place of|away from|not)\s+(?P<gone>[^,;!?]{2,60}?)"
    r"(?=\s+(?:from now on|any ?more|now|everywhere|please)\b|[.,;!?](?!\w)|$)"
)
"""What is no longer wanted."""

ORDERS = _any(
    r"^(?:(?P<ban>(?:don't|do not|dont|never|no|avoid|stop|without|leave out|skip|drop|lose)\b)"
    r"|(?:use|write|prefer|keep|follow|format|name|put|place|document|answer|reply|respond|include|add|run"
    r"|test|check|ask|commit|log|give|show|explain|cite|mention|make|sort|leave|treat|create|store|set|always"
    r"|only)\b)"
)
"""How an order or a ban begins."""

POINTS = _any(
    r"\b(?:this|that|these|those|it|them|here|above|below|now|today|next|then|the (?:one|other|rest))\b|#\d"
    r"|\bthe (?:\w+ )?(?:tests?|function|method|class|file|branch|pr|commit|error|bug|server|script|app"
    r"|page)\b"
)
"""Points to the work at hand, so that an order is not a rule said again."""

RESTRICTS = _any(
    rf"\b(?:{_NOT}|without|only|alone|nobody|nothing|none|except|leave|hands off|keep\b.*\bout|avoid|stop"
    rf"|hold|ask me"
    r"|before|until|till|max|at most|below|under|over|within|limit|at least|(?:less|more|fewer) than|stay"
    r"|skip|freeze|frozen|locally)\b"
)
"""A rule that restricts: what it rules out can be permitted."""

STATUS_WORDS = vocabulary("test build ci pipelin lint check server app run branch pr result output")
"""Stems of things that are "fine now" when they work, not when they are allowed."""

RULE_WORDS = vocabulary(
    """
    rule delet constraint requir instruct demand restrict ban convent polici prefer drop remov stop skip
    lose ditch forget lift omit ignor disregard scrap retir freez moratorium new code thing write add creat
    no need care necessari longer want matter bother mind fine allow permit welcom alright accept feel free
    go ahead back gone void moot obsolet cancel off busi stuff warn can may could actual easi yourself
    import mention commit suggest propos recommend instal includ both ok okay take everyth anyth thank over
    appli hold count
    """
)
"""Stems that do not say which rule is meant."""

CONDITION = _any(
    r"\b(?:until|till|as long as|while|during|unless|before(?= (?:we|i|the|they|he"
    r"|she)\b))\s+(?P<end>(?:\S+\s*){1,5})"
)
"""What a rule waits for, in the words of a rule."""

REASON = _any(
    r"\b(?:is|are|was|has|have|needs?|wants?|can't|cannot|says|takes|will|only \w+s|doesn't|don't know)\b"
    r"|'s\b"
)
"""A state of things, in a part of a rule's sentence that is not an order: the reason for the rule."""
