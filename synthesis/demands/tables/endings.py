"""Words that change existing rules: signs of an end, of a permission or of another choice.

No row names a rule. A sign counts only in a sentence that names the subject of an existing rule
(:mod:`agentx.synthesis.demands.targets`).
"""

import re
from typing import NamedTuple

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.words import vocabulary


def _any(*patterns: str) -> re.Pattern[str]:
    return on_use("|".join(patterns), re.IGNORECASE)


class EndSign(NamedTuple):
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


# fmt: off
_DROP = "drop|stop|skip|lose|ditch|forget|lift|leave out|omit|ignore|disregard|scrap|retire|cancel"
_RULE = r"(?:rule|constraint|requirement|instruction|demand|restriction|ban|policy|freeze|limit|thing)s?"
_NEEDED = r"(?:need|have|bother|care|necessary|required|matter|worry|mind)\w*"
_NOT = r"(?:\w+n't|not|no|never)"
_AGAIN = r"\b(?:again|from (?:now|here) on|after all|any ?time|any ?more|any longer)\b"
_FINE = r"(?:ok|okay|fine|allowed|alright|all right|welcome|permitted|acceptable)"
_MAY = (
    r"(?:\b(?:you|we) (?:can|may|could|are (?:allowed|free) to)|\b(?:you're (?:free|allowed)|feel free) to"
    rf"|\bgo ahead|\b(?:is|are|be|it's|that's) (?:(?!not)\w+ )?{_FINE}|^{_FINE} (?:to|with)"
    rf"|\b{_FINE} (?:by|with) me"
    r"|\b(?:can|may) (?:now |also |again )*(?:be|go|come|run)|\b(?:don't|do not) mind|\bno objections? to"
    rf"|\bi(?:'m| am) (?:{_FINE}|happy|good) with|\bworks for me|\bas you (?:like|please|wish|see fit)"
    r"|\b(?:unlocked|safe|possible|legal)|\b(?:have|with) my (?:ok|permission|blessing))\b"
)
_OVER = r"(?:lifted|gone|over|off|history|obsolete|void|moot|cancel\w+|unnecessary|outdated)"

SIGNS: tuple[EndSign, ...] = (
    EndSign(True, _any(
        rf"\b(?:you|we) (?:can|may|could|should)\b.{{0,20}}\b(?:{_DROP}|remove|take (?:out"
        rf"|off))\b.*(?:{_AGAIN}|\bnow\b)",
        rf"\b(?:{_DROP}|remove|withdraw|undo|never ?mind)\b.{{0,40}}?\b(?:the|my|that|our|those|these)\b"
        rf".{{0,60}}?\b{_RULE}\b",
        rf"\b(?:{_DROP}|never ?mind|i take back)\b.{{0,30}}\bi(?:'ve| have)? (?:said|told you|wrote|asked)\b",
        r"^(?:never ?mind|nvm|forget)(?: about)?,? the\b",
        rf"\b(?:{_RULE}|warning)\b.*? (?:is|are|has been|have been) (?:now )?{_OVER}\b",
        r"\b(?:no longer|\w+n't|not) (?:apply|applies|in force|count)\b(?! (?:to|in|for)\b)",
        rf"\b{_NOT}\b.{{0,30}}\b{_NEEDED}\b.*(?:{_AGAIN}|\bnow\b)",
        rf"\bno longer (?:{_NEEDED}|forbidden|banned)")),
    EndSign(True, _any(rf"^(?:no more|enough (?:with|of)|(?:stop|quit) \w+ing)\b(?!.*\b{_NOT}\b)"),
         of="must", alone=False),
    EndSign(False, _any(
        rf"{_MAY}.*(?:{_AGAIN}|\bnow\b)|(?:{_AGAIN}|\bactually\b|\bchanged my mind\b).*{_MAY}",
        r"\b(?:is|are|'re|'s) back (?:on|in)\b|\b(?:is|are) back\b.* now\b"), of="must_not"),
    EndSign(True, _any(
        rf"\b(?:can|may|could|should)\b.{{0,20}}\b(?:{_DROP}|go|relax)\b|\b(?:can|could|will) do without\b",
        r"\b(?:ga?ve|giv(?:en|ing)) up\b|\bdone with\b|\bg[eo]t(?:ting)? rid of\b|\bno longer\b|\bneedn't\b",
        r"\bno (?:more )?(?:need|reason)\b|\bback to normal\b|\bwas (?:only|just) (?:for|while|because)\b",
        rf"\b(?:don't|do not|doesn't|isn't|aren't|not) (?:an? issue|a problem|{_NEEDED})",
        rf"\b(?:is|are) (?:now )?{_OVER}\b",
        r"^(?!(?:we|i)\b).*\b(?:is|are|was|has|have|got|\w+'s)\b.{0,12} (?:ended|finished|replaced|closed)\b",
        r"^(?!(?:we|i)\b)[\w ]{3,40} (?:ended|expired|left|over)\b|\b(?:we|they|i) (?:\w+ )?(?:dropped"
        r"|cancel\w+)\b",
        rf"^(?:{_DROP}) (?:the|that|those|these)\b|^(?:forget|never ?mind)\b|\b{_NOT}\b.*\b(?:any ?more"
        rf"|any longer)\b",
    ), sure=False),
    EndSign(False, _any(_MAY), sure=False, of="must_not"),
)
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

ONCE = _any(
    r"\b(?:(?:just|only) (?:this|once|for)|this (?:time|one|once)|once|(?:to|from|in) \w+_\w+|exception)\b"
)
"""Points to one piece of work, so that no rule changes."""

AT_HAND = _any(
    r"\b(?:in|for|on|with|to|from|at) (?:this|that|these|those|the (?:one|last|first|second|next|other"
    r"|same))\b",
    r"\bhere\b(?! on)|\bthis (?:file|function|test|branch|pr)\b",
)
"""Points to the work at hand, so that no rule changes for sure."""

DOUBTED = _any(
    r"\b(?:if (?:we|i|only|there|so)|whether|did (?:you|we|i)|maybe|perhaps|should (?:we|i)|might|used to"
    r"|wonder\w*|not sure|wish|hope|would (?:be|like|love)|could (?:we|also)|still|halfway|almost|nearly"
    r"|what if)\b"
)
"""A thought, a question or news, but not a change."""

QUESTION = _any(
    r"\?\s*[\"')\]]*$|^(?:which|what|how|why|who|where|when (?:will|is|are|do)|(?:can|could|would|do"
    r"|did) you|is there)\b"
)

WITHDRAWN = _any(
    r"^(?:(?:ok|okay|oh|no|wait|sorry|hmm|actually|ah|well|please|on second thoughts?)[\s,.:-]+)*"
    r"(?:(?:scratch|strike|forget|ignore|disregard|undo|revoke|cancel|drop)"
    r" (?:that(?: last)?(?: one)?|it|this|my (?:last|previous)(?: one)?)"
    r"|never ?mind(?: that)?|nvm|i take (?:that|it) back)"
    rf"(?: (?:{_RULE}|message|request))?\b(?=[\s.!]*$|\s*[,;:.–—-])\W*"
)
"""Words that take back the previous statement, as a sentence or at its beginning."""

LEAD = _any(
    r"^(?:(?:so|and|but|also|ok|okay|yes|yeah|yep|no(?=\s*[,;:!.-])|well|then|please|just|oh|hm+|right"
    r"|thanks|great|good|perfect|again|wait|sorry|oops|now|ah|btw|hey|hi|because|since"
    r"|from now on)(?:\s*[,:;!.–—-]+\s*|\s+))+"
)
"""Words before a statement that are not part of it."""

_ENDED = (
    r"(?:done|over|fixed|merged|released|shipped|finished|resolved|live|deployed|completed?|solved|gone"
    r"|closed|out|in|through|approved|signed|landed|up|back|passed|ended|arrived|reviewed|migrated|published"
    r"|tagged|verified|expired|launched|tested|checked|confirmed|decided|upgraded|ready|green|working"
    r"|passing|lifted|replaced|removed|better|read|sent|paid|answered|accepted|settled|delivered)"
)
HAPPENED = _any(
    r"^(?!.*\b(?:don't|do not|never|always|please)\b).*?(?:\b(?:is|are|was|were|has|have|had|got)|'s|'ve)"
    rf"(?: \w+ly| now| all| just| been| back| us| already)* {_ENDED}\b|^(?:we|i)(?: \w+ly| just| now"
    rf"| all)* {_ENDED}\b",
    r"^[\w ]{3,60}? (?:ended|finished|pass(?:ed|es)?|landed|shipped|launched|arrived|expired|verified"
    r"|approved|signed|merged|went (?:live|out|through))\b",
)
"""A statement that something is completed, which may be the end of a rule."""

NOT_YET = _any(
    rf"\b(?:{_NOT}|if|when|once|as soon as|until|till|unless|before|will|'ll|going to|soon|next|tomorrow"
    rf"|should|must"
    r"|could|would|might|needs?|starts?|begins|planned|delayed|postponed|blocked|stuck|scheduled|late|almost"
    r"|nearly|half\w*|still|hope|wish|maybe|perhaps|waiting|asks?|wants?|broken|failing|fails?|red|again"
    r"|please|always)\b"
)
"""Something that has not happened yet, or an order."""

PAST = _any(r"\b(?:is|are|was|were|has|have|had|got|\w{3,}ed)\b|'s\b")
"""A statement about the present or the past."""

_MOVED = r"(?:switch\w*|mov(?:e|ed|ing)|shifted|go(?:ing)?|went|chang(?:e|ed|ing)|reverted|migrat\w+|stick)"
_TURNED = (
    r"(?:on second thoughts?|scratch that|strike that|change of plans?|plans? changed|changed my mind"
    r"|i take that back|these days|after all|wait,? no|no,? wait|hmm,? no|sorry,? no|i mean(?:t)?|correction)"
)
_MAKE = r"\b(?:make|let's make) (?:that|it|them)\b"
_CHANGED = (
    rf"\b{_TURNED}\b|\b(?:instead|no more|(?:i'd|i would) rather|back to|let's (?:do|use|talk|take|go)"
    rf"|has changed|replaces?)\b|changed:|{_MAKE}|(?:^|\b(?:we|i)(?:'ve| have|'re| are)? |\b(?:please|just"
    rf"|now|ops|they|all ) ){_MOVED}"
    r"(?: (?!to\b)[\w']+){0,3}? (?:to|over|with)\b"
)
SHIFTED = _any(
    _CHANGED,
    r"\b(?:from (?:now|today|here|this \w+) on|as of (?:now|today|this|next)|starting (?:now|today|next|this"
    r"|on)|going forward|(?:is|are) now|(?:has|have) (?:been )?(?:changed|moved|switched|replaced)"
    r"|changed to|too \w+|, not \w+|rather than|in future|new (?:rule|plan|policy|standard|default|limit)"
    r"|go(?:ing)? with)\b",
)
"""Words of a change, and words after which a rule may have another content."""

CHANGES = _any(
    r"\b(?:actually|everywhere|i prefer|up to|at most|no more than)\b",
    r"\b(?:we|i)(?:'re| are)? (?:(?:now )?us(?:e|ing)\b.* now|now us(?:e|ing))\b",
    rf"\b(?:is|are) (?:(?:actually |now |also )?{_FINE}|enough)\b",
)
"""Words that give another limit or could as well state a new rule."""

UNWANTED = _any(
    r"\b(?:swap|replace|exchange)(?: out)? (?P<swapped>[^,;!?]{2,40}?) (?:for|with|by)\b",
    r"\b(?:instead of|rather than|no more|in place of|away from|not)\s+(?P<gone>[^,;!?]{2,60}?)"
    r"(?=\s+(?:from now on|any ?more|now|everywhere|please)\b|[.,;!?](?!\w)|$)",
)
"""What is no longer wanted."""

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
    rule delet constraint requir instruct demand restrict ban convent polici prefer drop remov stop skip lose
    ditch forget lift omit ignor disregard scrap retir freez moratorium new code thing write add creat no
    need care necessari longer want matter bother mind fine allow permit welcom alright accept feel free go
    ahead back gone void moot obsolet cancel off busi stuff warn can may could actual easi yourself import
    mention commit suggest propos recommend instal includ both ok okay take everyth anyth thank over appli
    hold count
    """
)
"""Stems that do not say which rule is meant."""

CONDITION = _any(
    r"\b(?:until|till|as long as|while|during|unless|before(?= (?:we|i|the|they|he"
    r"|she)\b))\s+(?P<end>(?:\S+\s*){1,5})"
)
"""What a rule waits for, in the words of a rule."""
# fmt: on
