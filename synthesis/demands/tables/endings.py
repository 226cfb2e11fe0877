"""Words that change existing rules: end, change or narrow one, allow a banned thing, or state its end."""

import re
from typing import Literal, NamedTuple

from agentx.synthesis.demands.tables.vocabulary import POLICY_VERBS, compiled
from agentx.synthesis.language.words import vocabulary


class Ending(NamedTuple):
    """One way to end a rule.

    Attributes:
        pattern: Searched in a sentence; the group ``what`` says which rule.
        sure: Whether it can mean nothing else. Otherwise only a temporary rule ends, as the words may order
            one piece of work.
        of: The sort of rule it ends: ``must``, ``must_not`` or, if empty, either.
        alone: Whether the sentence has no other meaning if no such rule exists. Otherwise it may be a demand
            ("no more emojis").
    """

    pattern: re.Pattern[str]
    sure: bool
    of: Literal["", "must", "must_not"] = ""
    alone: bool = True


_DROP = "drop|stop|skip|lose|ditch|forget|lift|leave out|omit|ignore|disregard|scrap|retire|do without"
_RULE = (
    "rule|constraint|requirement|instruction|demand|restriction|ban|convention|policy|preference|freeze"
    "|moratorium"
)
_AGAIN = r"\b(?:any ?more|any longer|now|again)\b"

RETRACTIONS: tuple[Ending, ...] = (
    Ending(
        compiled(
            rf"\b(?:you|we) (?:can|may|could|should) (?:now |please |safely )?(?:{_DROP}|remove"
            r"|take (?:out|off|away))"
            r"\s+(?:about )?(?P<what>[^.;!?]{2,120}?)\s*(?P<sure>\b(?:again|now|any ?more|from now on)\b)"
        ),
        True,
    ),
    Ending(
        compiled(
            rf"\b(?:you|we) (?:can|may|could) (?:now )?(?:{_DROP})\s+(?:about )?(?P<what>[^.;!?]{{2,120}})"
        ),
        False,
    ),
    Ending(
        compiled(
            r"\b(?:(?:you|we) (?:no longer|don't|do not|needn't)(?: (?:need|have))?|i (?:no longer|don't"
            r"|do not) need(?: you)?)(?: to)?\s+(?P<what>[^.;!?]{2,120}?)\s*" + _AGAIN
        ),
        True,
        "must",
    ),
    Ending(
        compiled(
            r"^(?P<what>(?!(?:i|you|we|it|that|this|they)\b)[\w' -]{2,60}? (?:no longer|don't|doesn't|do not"
            r"|does not) (?:need|have)(?: to)?\s+[^.;!?]{2,80}?)\s*\b(?:any ?more|any longer|from now on)\b"
        ),
        True,
        "must",
    ),
    Ending(
        compiled(r"\b(?:you|we|i) no longer (?:need|have|want)(?: you)?(?: to)?\s+(?P<what>[^.;!?]{2,120})"),
        True,
        "must",
    ),
    Ending(
        compiled(r"\bno (?:more |longer any )?need (?:to|for)\s+(?P<what>[^.;!?]{2,120}?)\s*" + _AGAIN),
        True,
        "must",
    ),
    Ending(
        compiled(
            r"^(?:don't|do not|no need to) bother (?:with |to |about )?(?P<what>[^.;!?]{2,120}?)\s*"
            r"(?:\b(?:any ?more|any longer|again|from now on)\b)"
        ),
        True,
        "must",
    ),
    Ending(
        compiled(
            r"\b(?:forget|drop|ignore|disregard|scrap|cancel|lift|retire|remove|delete|never ?mind|revoke"
            r"|withdraw|undo) (?:about )?"
            rf"(?:all |any |both )?(?:of )?(?:the|my|that|our|those|these) (?P<what>[^.;!?]{{0,60}}?\b"
            rf"(?:{_RULE}|thing)s?\b[^.;!?]{{0,80}})"
        ),
        True,
    ),
    Ending(
        compiled(
            r"\b(?:forget|disregard|ignore|scrap|never ?mind|i take back) (?:what|everything|anything"
            r"|all(?: that)?) i(?:'ve| have)? (?:said|told you|wrote|asked)"
            r"(?: (?:earlier|before))? (?:about|on|regarding)\s+(?P<what>[^.;!?]{2,120})"
        ),
        True,
    ),
    Ending(compiled(r"^(?:never ?mind|nvm|forget)(?: about)?,? the (?P<what>[^.,;!?]{2,60})[\s.!]*$"), True),
    Ending(
        compiled(
            r"^(?P<what>[^.;!?]{2,80}?) (?:is|are) (?:no longer|not) (?:needed|necessary|required|forbidden"
            r"|banned|in force|wanted)(?: any ?more| any longer| now)?\b"
        ),
        True,
    ),
    Ending(
        compiled(
            rf"^(?:the |my |that )?(?P<what>[^.;!?]{{2,80}}?\b(?:{_RULE})s?) (?:no longer|doesn't|does not"
            r"|don't) (?:applies|apply|hold|holds|count|counts)\b(?! (?:to|in|for)\b)"
        ),
        True,
    ),
    Ending(
        compiled(
            rf"^(?:the |my |that |our )?(?P<what>(?:{_RULE})\b[^.;!?]{{2,80}}?|[^.;!?]{{2,80}}?\b"
            rf"(?:{_RULE})s?) (?:is|are|has been|have been) (?:now )?(?:lifted|gone|over|off|history"
            r"|obsolete|void|cancel\w+|retired|withdrawn)\b"
        ),
        True,
    ),
    Ending(
        compiled(
            r"\b(?:you (?:can|may|are allowed to)|it(?:'s| is) (?:ok|okay|fine|alright|all right)"
            r" (?:to|if you)|feel free to)\s+(?P<what>[^.;!?]{2,120}?)\s*\b(?:again|from now on|any ?time)\b"
        ),
        True,
    ),
    Ending(
        compiled(r"^(?P<what>[^.;!?]{2,80}?) (?:is|are) (?:ok|okay|fine|allowed|welcome|permitted) again\b"),
        True,
        "must_not",
    ),
    Ending(
        compiled(
            r"^(?:please )?(?:no more|enough (?:with|of)|(?:stop|quit)(?= \w+ing\b))\s+(?:the |those |these "
            r"|all |any )*(?P<what>[^.,;!?]{2,60}?)(?:,? please|,? thanks|,? now)?[\s.!]*$"
        ),
        True,
        "must",
        alone=False,
    ),
)
"""Ways in which users end a rule."""

ORDERS = compiled(
    r"^(?:(?P<ban>(?:don't|do not|dont|never|no|avoid|stop|without|leave out|skip|drop|lose)\b)"
    rf"|(?:{POLICY_VERBS}|only)\b)"
)
"""How an order or a ban begins."""

SEVERAL = compiled(
    rf"\b(?:all|both|any|every one)(?: of)? (?:the|my|our|those|these) (?:[\w-]+ ){{0,2}}(?:{_RULE})s\b"
    r"|\beverything i\b"
)
"""Signs that every matching rule is meant."""

WITHDRAWN = compiled(
    r"^(?:(?:ok|okay|oh|no|wait|sorry|hmm|actually|ah|well|please|on second thoughts?)[\s,.:-]+)*"
    r"(?:(?:scratch|strike|forget|ignore|disregard|undo|revoke|cancel|drop) (?:that(?: last)?(?: one)?|it"
    r"|this|my (?:last|previous)(?: one)?)"
    r"|never ?mind(?: that)?|nvm|i take (?:that|it) back|forget i said that|forget (?:what )?i"
    r" (?:just )?said)"
    rf"(?: (?P<rule>{_RULE}|message|request|line|bit|part))?\b(?=[\s.!]*$|\s*[,;:.–—-])"
)
"""Words that take back the previous statement, as a sentence or at its beginning."""

_PLACE = r"(?:in|inside|within|for|when|whenever|while|if|on|at|during|under|with)\s+[^.;!?]{2,120}"
_FINE = r"(?:ok|okay|fine|alright|all right|allowed|welcome|permitted|acceptable)"


class Amending(NamedTuple):
    """One way to make an exception to a rule, or to narrow it.

    The group ``place`` says where, the optional group ``what`` says which rule.
    """

    pattern: re.Pattern[str]
    only: bool
    of: Literal["", "must", "must_not"] = ""


AMENDMENTS: tuple[Amending, ...] = (
    Amending(
        compiled(
            r"^(?:except|excepting|with the exception of|apart from|other than|but not|just not|only not"
            rf"|not)\s+(?P<place>{_PLACE})$"
        ),
        False,
    ),
    Amending(
        compiled(r"^(?:except|unless)\s+(?P<place>(?:i|you|we|it|they|the|for|if|when)\b[^.;!?]{2,120})$"),
        False,
    ),
    Amending(
        compiled(
            rf"^(?:the |my |that |this |our )?(?P<what>[^.;!?]{{0,60}}?\b(?:{_RULE})s?\b[^.;!?]{{0,40}}?)"
            r" (?:is|are|applies|apply|holds?|counts?|should (?:only )?apply)"
            rf"(?: really| meant)? (?:only|just)(?: meant)? (?P<place>(?:to\s+[^.;!?]{{2,120}}|{_PLACE}))"
        ),
        True,
    ),
    Amending(
        compiled(
            r"^(?:that(?:'s| is| was)|i (?:only |just )?mean(?:t)?(?: that)?|this is|but)?\s*(?:only|just)"
            r"(?: meant)? (?P<place>(?:for|in|to)\s+[^.;!?]{2,80})$"
        ),
        True,
    ),
    Amending(
        compiled(
            rf"^(?:the |my |that |this |our )?(?P<what>[^.;!?]{{0,60}}?\b(?:{_RULE})s?\b[^.;!?]{{0,40}}?)"
            r" (?:doesn't|does not|don't|do not|need not|shouldn't) (?:apply|hold|count)"
            rf" (?P<place>(?:to\s+[^.;!?]{{2,120}}|{_PLACE}))"
        ),
        False,
    ),
    Amending(
        compiled(
            r"^(?:you|we) (?:can|may|are allowed to|could)(?: still| of course)?\s+"
            rf"(?P<what>(?!drop|stop|skip|ignore|forget|remove)[\w'.@/-]+ [^.;!?]{{2,80}}?)"
            rf" (?P<place>{_PLACE})$"
        ),
        False,
        "must_not",
    ),
    Amending(
        compiled(
            rf"^(?P<what>[^.,;!?]{{2,60}}?) (?:is|are) (?:still )?{_FINE}"
            rf" (?P<place>(?!now\b|again\b|from now on\b){_PLACE})$"
        ),
        False,
        "must_not",
    ),
    Amending(
        compiled(
            r"^(?:(?:you|we) (?:don't|do not|needn't) (?:need|have)(?: to)?|no need (?:to|for))\s+"
            rf"(?P<what>[^.;!?]{{2,80}}?) (?P<place>{_PLACE})$"
        ),
        False,
        "must",
    ),
    Amending(
        compiled(
            rf"^(?P<place>(?:in|inside|within|for|on|under|during)\s+[^.,;!?]{{2,40}}?),? (?P<what>[\w@.'-]+"
            rf"(?: [\w@.'-]+){{0,3}}?) (?:is|are) (?:still |always )?{_FINE}[\s.!]*$"
        ),
        only=False,
        of="must_not",
    ),
)
"""Ways in which users make an exception, or say where alone a rule applies."""

ONCE = compiled(
    r"\b(?:in|for|on|with|to|from|at) (?:this|that|these|those|the (?:one|last|first|second|third|next|other"
    r"|current|same))\b|\bhere\b|\bjust this\b|\bthis (?:time|one|once|file|function|test|branch|pr)\b"
    r"|\b(?:just |only )?(?:this )?once\b|\bnow$|\bto \w+_\w+|\bfrom \w+_\w+"
)
"""Points to one piece of work, so that no rule changes."""

_PERMITTED = (
    r"(?:use|add|create|write|make|import|mention|commit|suggest|propose|recommend|install|introduce"
    r"|generate)"
)
PERMISSIONS: tuple[tuple[re.Pattern[str], bool], ...] = (
    (
        compiled(
            rf"^from now on,? (?:you|we) (?:may|can|are allowed to) (?:again )?{_PERMITTED}"
            rf" (?P<what>[^.,;!?]{{2,60}}?)[\s.!]*$"
        ),
        False,
    ),
    (
        compiled(
            rf"^(?:you|we) (?:may|can|are allowed to) (?:now )?(?:go ahead and )?{_PERMITTED}"
            rf" (?P<what>[^.,;!?]{{2,60}}?) (?:now|after all|from now on)[\s.!]*$"
        ),
        False,
    ),
    (
        compiled(
            rf"^(?P<what>[^.,;!?]{{2,60}}?) (?:is|are) (?:actually |now )?(?:{_FINE}|back)(?: with me)?"
            r"(?: (?:now|after all|from now on))[\s.!]*$"
        ),
        False,
    ),
    (
        compiled(
            r"^i(?:'ve| have)? changed my mind (?:about|on|regarding) (?P<what>[^.,;!?]{2,60}?)(?:,| -|;|:)?"
            r" (?:so |and )?(?:please )?"
            r"(?:go ahead|feel free|(?:you|we) (?:can|may|are allowed to) (?:now )?"
            rf"(?:go ahead|{_PERMITTED})|it(?:'s| is) (?:ok|okay|fine|allowed))\b"
            r"(?!.{0,120}\b(?:not|never|don't|without|remove|delete|drop)\b)"
        ),
        False,
    ),
    (
        compiled(
            r"^(?:you|we) (?:can|may|are allowed to) (?:now )?(?:go ahead and )?"
            r"(?P<what>[\w'-]+(?: [^.,;!?]{2,80}?)?)(?: now| after all| from now on)[\s.!]*$"
        ),
        True,
    ),
    (
        compiled(
            r"^(?:feel free|go ahead and|it(?:'s| is) (?:ok|okay|fine) (?:to|if you)|(?:ok|okay) to)\s+"
            r"(?P<what>[^.,;!?]{2,80}?)(?: now)?[\s.!]*$"
        ),
        True,
    ),
)
"""Ways in which users allow what was ruled out, and whether it is an act, which may be allowed only once."""

STATUS_WORDS = vocabulary("test build ci pipelin lint check server app run branch pr result output")
"""Stems of things that are "fine now" when they work, not when they are allowed."""

BANNED = compiled(
    r"\b(?:never|not|don't|mustn't|shouldn't|stop|avoid|again)\s+(?:ever\s+)?(?:(?:please|you|we)\s+)?"
    r"(?:(?:use|add|create|write|make|import|mention|commit|suggest|propose|recommend|install|introduce"
    r"|generate)(?:ing)?|using|creating|writing|making|proposing|introducing|generating)\s+"
    r"(?:(?:a|an|any|the|new|another|files?|named|called)\s+){0,4}[`\"']?(?P<name>[\w.@*-]{2,60}?)[`\"']?"
    r"(?:\s+files?)?"
    r"(?:\s+(?:again|ever|any ?more|any ?where|at all|from now on|in (?:this|the|our) (?:repo|project"
    r"|repository)))*"
    r"\s*(?:[.!]*$|;.*$|,\s*(?:use|we|it|put|instead|because|since|as)\b.*$)"
)
"""A ban of one thing by name, and of nothing else."""

RULE_WORDS = vocabulary(
    """
    rule constraint requir instruct demand restrict ban convent polici prefer drop remov stop skip lose
    ditch forget lift omit ignor disregard scrap retir freez moratorium new code thing write add creat no
    """
)
"""Stems in a retraction that do not say which rule is meant."""

_PAST = (
    "done|finished|reviewed|merged|shipped|released|fixed|deployed|completed|approved|migrated|signed|tested"
    "|moved|upgraded|solved|resolved|closed|published|landed|launched|checked|confirmed|decided|switched"
    "|answered|read|seen|sent|back|live"
)
FULFILLED: tuple[re.Pattern[str], ...] = (
    compiled(
        r"^(?P<what>(?:the|our|my|this|that)\b[^.;!?]{2,100}?|[\w ]{3,60}?)(?: (?:is|are|was|were|has been"
        r"|have been|has|have|got)|'s) (?:now |finally |all |already |officially )?"
        r"(?:fixed|done|merged|released|shipped|finished|over|resolved|live|deployed|complete|completed"
        r"|solved|gone|closed|out|through|approved|signed|landed|up|in|back|passed|ended|arrived|reviewed"
        r"|migrated|published)\b"
    ),
    compiled(
        r"^(?:we|i)(?:'ve| have|'re| are|'m| am)? (?:just |now |finally |already |all )*"
        rf"(?P<what>(?:{_PAST})\b[^.;!?]{{0,100}})"
    ),
    compiled(
        r"^(?!.*\b(?:should|must|could|would|will|can|to|might|that)\b)(?P<what>[\w ]{3,60}?)"
        r" (?:(?:now |finally |all )?(?:pass|passes|works?)|(?:is|are)(?: now| finally| all)? (?:green|ready"
        r"|working|passing))(?: now| again| all)?[\s.!]*$"
    ),
    compiled(
        r"^(?P<what>(?:the |our |my )?[\w ]{3,60}?) (?:ended|finished|passed|landed|shipped|launched|arrived"
        r"|expired|went (?:live|out|through))\b"
    ),
)
"""Statements that something has happened, which may be the end condition of a rule."""

CONDITIONAL = compiled(r"^(?:if|when|once|as soon as|after|before|until|unless|for|whenever|while|should)\b")
"""Something that has not happened yet."""

_MOVE = (
    r"(?:switch(?:ed|ing)?|mov(?:e|ed|ing)|go(?:ing)?|went|chang(?:e|ed|ing)|revert(?:ed|ing)?|migrat"
    r"(?:e|ed|ing)|stick(?:ing)?)"
)
CUES = compiled(
    r"\b(?:actually|on second thoughts?|scratch that|strike that|change of plans?|plans? changed"
    r"|i(?:'ve| have)? changed my mind|i take that back|these days|after all|wait,? no|no,? wait|hmm,? no"
    r"|sorry,? no|i mean(?:t)?|correction)\b"
    rf"|\b{_MOVE}(?: it| that| them| everything)?(?: back| over)?(?= (?:to|with)\b)|\b(?:make|let's make)"
    r" (?:that|it|them)\b"
)
"""Words that announce a change, and say nothing about it."""

CHANGES = compiled(
    r"\b(?:actually|on second thoughts?|scratch that|strike that|change of plans?|plans? changed"
    r"|changed my mind|i take that back|instead|no more|from now on|these days|after all"
    r"|going forward|everywhere|(?:i'd|i would) rather|i prefer|wait,? no|no,? wait|hmm,? no|sorry,? no"
    r"|i mean(?:t)?|correction)\b"
    r"|\b(?:make|let's make) (?:that|it|them)\b"
    rf"|^(?:(?:ok|okay|please|let's|can you|could you|you can|we can|now|and|so|then|well)[\s,]+)*{_MOVE}"
    r"(?: it| that| them| everything)?(?: back| over)? ?(?:to|with)\b|\bback to\b"
    rf"|\b(?:we|i)(?:'ve| have|'re| are)? (?:just |now |finally |all |recently )*{_MOVE}(?: it| that"
    r"| everything)?(?: back| over)? to\b"
    r"|\b(?:we|i)(?:'re| are)? (?:now )?(?:use|using) \S+(?: \S+){0,3}? now\b|\b(?:we|i)(?:'re| are)? now"
    r" (?:use|using)\b"
)
"""Words of a change: the following choice replaces an existing one."""

ASKED_CHANGE = compiled(
    rf"^(?:can|could|would|will) (?:you|we) (?:please )?{_MOVE}(?: it| that| them)?(?: back| over)? to\b"
)
"""A change worded as a polite question."""

DOUBTED = compiled(
    r"\b(?:if|whether|did|does|maybe|perhaps|should (?:we|i)|might|try|trying|used to|was|were|wondering"
    r"|not sure|he|she|they|could (?:we|also))\b"
)
"""A thought, a question or news, but not a change."""

LIMIT_IS_FINE = compiled(
    r"\b(?:is|are) (?:actually |now |also )?(?:ok|okay|fine|enough|allowed|alright)\b|\bup to\b|\bat most\b"
    r"|\bno more than\b"
)
"""Words that give another limit."""

UNWANTED = compiled(
    r"\b(?:swap|replace|exchange)(?: out)? (?P<swapped>[^.,;!?]{2,40}?) (?:for|with|by)\b"
    r"|\b(?:instead of|rather than|no more|in place of|away from|not)\s+(?P<gone>[^.,;!?]{2,60}?)"
    r"(?=\s+(?:from now on|any ?more|now|everywhere|please)\b|[.,;!?]|$)"
)
"""What is no longer wanted."""
