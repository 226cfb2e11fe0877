"""How people take rules back: words that end one, that allow what was banned, and that say that its end has come."""

import re

from agentx.synthesis.demands.vocabulary import compiled
from agentx.synthesis.demands.words import vocabulary

RETRACTIONS: tuple[tuple[re.Pattern[str], bool], ...] = (
    (
        compiled(
            r"\b(?:you|we) (?:can|may|could|should) (?:now |please |safely )?(?:drop|remove|stop|skip|lose|ditch|forget|lift|leave out|omit|ignore|disregard|scrap|retire|do without"
            r"|take (?:out|off|away))\s+(?:about )?(?P<what>[^.;!?]{2,120}?)\s*(?P<sure>\b(?:again|now|any ?more|from now on)\b)"
        ),
        True,
    ),
    (
        compiled(
            r"\b(?:you|we) (?:can|may|could) (?:now )?(?:drop|stop|skip|ditch|forget|lift|leave out|omit|ignore|disregard|scrap|retire|do without)\s+(?:about )?(?P<what>[^.;!?]{2,120})"
        ),
        False,
    ),
    (
        compiled(
            r"\b(?:you|we) (?:no longer|don't|do not|needn't)(?: (?:need|have))?(?: to)?\s+(?P<what>[^.;!?]{2,120}?)\s*\b(?:any ?more|any longer|now|again)\b"
        ),
        True,
    ),
    (compiled(r"\b(?:you|we) no longer (?:need|have)(?: to)?\s+(?P<what>[^.;!?]{2,120})"), True),
    (
        compiled(
            r"\bno (?:more |longer any )?need (?:to|for)\s+(?P<what>[^.;!?]{2,120}?)\s*\b(?:any ?more|any longer|now|again)\b"
        ),
        True,
    ),
    (
        compiled(
            r"\b(?:forget|drop|ignore|disregard|scrap|cancel|lift|retire|remove|delete|never mind|nevermind|revoke|withdraw) (?:about )?(?:the|my|that|our) "
            r"(?P<what>[^.;!?]{0,60}?\b(?:rule|constraint|requirement|instruction|demand|restriction|ban|convention|thing|policy|preference)\b[^.;!?]{0,80})"
        ),
        True,
    ),
    (
        compiled(
            r"\b(?:forget|disregard|ignore|scrap|i take back) what i (?:said|told you|wrote|asked)(?: (?:earlier|before))? (?:about|on|regarding)\s+(?P<what>[^.;!?]{2,120})"
        ),
        True,
    ),
    (
        compiled(
            r"^(?P<what>[^.;!?]{2,80}?) (?:is|are) (?:no longer|not) (?:needed|necessary|required|forbidden|banned|in force)(?: any ?more| any longer| now)?\b"
        ),
        True,
    ),
    (
        compiled(
            r"^(?:the |my |that )?(?P<what>[^.;!?]{2,80}?\b(?:rule|ban|restriction|constraint|requirement)) (?:no longer|doesn't|does not) (?:applies|apply|hold|holds)\b"
        ),
        True,
    ),
    (
        compiled(
            r"\b(?:you (?:can|may|are allowed to)|it(?:'s| is) (?:ok|okay|fine|alright|all right) (?:to|if you)|feel free to)\s+(?P<what>[^.;!?]{2,120}?)\s*\b(?:again|from now on|any time)\b"
        ),
        True,
    ),
    (
        compiled(r"^(?P<what>[^.;!?]{2,80}?) (?:is|are) (?:ok|okay|fine|allowed|welcome|permitted) again\b"),
        True,
    ),
)
"""How a user ends a rule; ``False``: only a temporary rule ends with these words, as they may also order one piece of work."""

_PERMITTED = r"(?:use|add|create|write|make|import|mention|commit|suggest|propose|recommend|install|introduce|generate)"
PERMISSIONS: tuple[re.Pattern[str], ...] = (
    compiled(
        rf"^from now on,? (?:you|we) (?:may|can|are allowed to) (?:again )?{_PERMITTED} (?P<what>[^.,;!?]{{2,60}}?)[\s.!]*$"
    ),
    compiled(
        rf"^(?:you|we) (?:may|can|are allowed to) (?:now )?(?:go ahead and )?{_PERMITTED} (?P<what>[^.,;!?]{{2,60}}?) (?:now|after all|from now on)[\s.!]*$"
    ),
    compiled(
        r"^(?P<what>[^.,;!?]{2,60}?) (?:is|are) (?:actually )?(?:ok|okay|fine|alright|all right|allowed|welcome|permitted) (?:now|after all|from now on)[\s.!]*$"
    ),
    compiled(
        r"^i(?:'ve| have)? changed my mind (?:about|on|regarding) (?P<what>[^.,;!?]{2,60}?)(?:,| -|;|:)? (?:so |and )?(?:please )?"
        rf"(?:go ahead|feel free|(?:you|we) (?:can|may|are allowed to) (?:now )?(?:go ahead|{_PERMITTED})|it(?:'s| is) (?:ok|okay|fine|allowed))\b"
        r"(?!.{0,120}\b(?:not|never|don't|without|remove|delete|drop)\b)"
    ),
)
"""How a user allows by its name what was ruled out; nothing ends but a rule against exactly that name."""

BANNED = compiled(
    r"\b(?:never|not|don't|mustn't|shouldn't|stop|avoid|again)\s+(?:ever\s+)?(?:(?:please|you|we)\s+)?"
    r"(?:(?:use|add|create|write|make|import|mention|commit|suggest|propose|recommend|install|introduce|generate)(?:ing)?|using|creating|writing|making|proposing|introducing|generating)\s+"
    r"(?:(?:a|an|any|the|new|another|files?|named|called)\s+){0,4}[`\"']?(?P<name>[\w.@*-]{2,60}?)[`\"']?(?:\s+files?)?"
    r"(?:\s+(?:again|ever|any ?more|any ?where|at all|from now on|in (?:this|the|our) (?:repo|project|repository)))*"
    r"\s*(?:[.!]*$|;.*$|,\s*(?:use|we|it|put|instead|because|since|as)\b.*$)"
)
"""A ban of one thing by its name, and of nothing else."""

RULE_WORDS = vocabulary(
    "rule constraint instruct demand restrict ban convent polici prefer drop remov stop skip lose ditch forget lift omit ignor"
    " disregard scrap retir new code thing write add creat"
)
"""Stems of a retraction that do not say which rule is meant."""

FULFILLED = compiled(
    r"^(?P<what>(?:the|our|my|this|that)\b[^.;!?]{2,100}?|[\w ]{3,60}?)(?: (?:is|are|was|were|has been|have been|got)|'s) (?:now |finally |all |already )?"
    r"(?:fixed|done|merged|released|shipped|finished|over|resolved|live|deployed|complete|completed|solved|gone|closed)\b"
)
"""A statement that something has come to pass, which may be what a rule was to last until."""
