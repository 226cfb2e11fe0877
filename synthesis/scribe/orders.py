"""Questions, and orders for one piece of work: the sentences of a user that state nothing."""

import re

from agentx.synthesis.language.patterns import on_use

VERBS = (
    "add|implement|fix|write|create|build|update|refactor|remove|delete|rename|change|make|move|replace"
    "|set up|install|upgrade|configure|draft|translate|summari[sz]e|convert|migrate|extract|split|merge"
    "|rebase|deploy|release|publish|document|design|generate|prepare|clean up|investigate|debug|improve"
    "|optimi[sz]e|extend|wire|integrate|test|review|revert|port|sort|organi[sz]e|plan|research|compare"
    "|analy[sz]e|simplify|rewrite|finish|schedule"
)
"""Verbs of work."""

_OTHERS = (
    "run|rerun|check|show|tell|give|look|see|find|list|explain|describe|read|open|try|continue|proceed"
    "|start|stop|commit|push|pull|apply|send|put|set|get|help|ask|do|go|let me|let'?s|please|pls|think"
    "|consider|make sure|ensure|verify|execute|call|print|copy|paste|search|fetch|download|upload|restart"
    "|reset|undo|redo|drop|turn|enable|disable|use|keep|leave|take|wait|note|remember|ignore|provide"
    "|return|include|follow|work|adjust|correct|restore|rebuild|refine|submit|stage|close|rename|edit"
    "|insert|append|consolidate|answer|reply|respond|say|learn|study|mind|imagine"
)
_ORDER = on_use(
    rf"(?:(?:please|pls|now|then|also|next|first|ok(?:ay)?|so|and|yes|great|good|perfect|thanks?|thank you"
    rf"|cool|just|now|instead|again)\b[\s,.!:-]*)*(?:(?:can|could|would|will) you|i(?:'d like| want"
    rf"| need) (?:you )?to|you (?:should|must|need to|have to|can)|we (?:need|have|should|must|want) to"
    rf"|we should|help me|(?:{VERBS}|{_OTHERS})\b(?! (?:is|was|are|were|has|have|will|stays?)\b))",
    re.IGNORECASE,
)
_PHRASE = on_use(
    r"(?:please,? )?(?!(?:is|are|was|were|has|have|had|does|did|do|not|all|both|half|only|just|like|about"
    r"|with|in|on|at|for|from|to|by|of|and|or|but|as|it|we|they|he|she|i|you|there|with|after|before|until"
    r"|into|over|because|since|than|if|when|while|once|unless|though|that|so|where|what"
    r"|who)\b)[a-z_]+(?<!s)(?<!ed)(?<!ing)(?<!ly) (?:(?:on|at|to|with|for|up|out) )?(?:the|my|our|your"
    r"|this|these|those|it|them|which|all|every|each)\b(?! \w+ (?:is|are|was|were|has|have|will)\b)",
    re.IGNORECASE,
)
"""A verb in its base form with its object."""

_MARK = on_use(r"\?[\"')\s]*$")
_AUXILIARY = "can|could|would|will|should|shall|do|does|did|is|are|was|were|have|has|may"
_ASKS = on_use(
    r"(?:(?:and|but|so|ok(?:ay)?|hm+|also|btw|wait|hey|hi)\b[\s,]*)*(?:(?:what|why|how|who|whose"
    r"|which)\b(?! a\b)"
    rf"|(?:when|where)(?:'s| (?:{_AUXILIARY}))\b|(?:{_AUXILIARY}) (?:you|we|i|it|they|he|she|there|this"
    rf"|that|the|these|those|any|anyone|somebody)\b)",
    re.IGNORECASE,
)


def is_order(words: str) -> bool:
    """Return whether a sentence orders a piece of work.

    >>> is_order("please add a retry"), is_order("The retry is new.")
    (True, False)
    """
    return bool(_ORDER.match(words) or _PHRASE.match(words))


def asks(words: str) -> bool:
    """Return whether a sentence is a question, with or without its mark.

    >>> asks("why does it fail"), asks("It fails?"), asks("It fails.")
    (True, True, False)
    """
    return bool(_MARK.search(words) or _ASKS.match(words))
