"""How people rule an idea out: rows to read and to extend, and no code.

Each row of :data:`RULINGS` has an example that it must take and one that it must leave alone; the tests walk through them.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.vocabulary import IDEA_HABITS, IDEA_VERBS, compiled


class Ruling(NamedTuple):
    """One way to rule an idea out: searched in a sentence; ``idea`` names it, ``lasting`` says whether it goes beyond one call."""

    name: str
    pattern: re.Pattern[str]
    lasting: bool
    takes: str
    leaves: str


RULINGS: tuple[Ruling, ...] = (
    Ruling(
        "stop suggesting",
        compiled(
            rf"\b(?:stop|quit)\s+(?:{IDEA_HABITS})\s+(?P<idea>[^.,;!?]{{2,80}})"
            rf"|\b(?:don't|do not|never) (?:want you to )?(?:ever )?(?:{IDEA_VERBS})\s+(?P<idea2>[^.,;!?]{{2,80}}?)\s+(?:again|ever again|any ?more)\b"
        ),
        lasting=True,
        takes="stop suggesting Redux",
        leaves="stop the server",
    ),
    Ruling(
        "off the table",
        compiled(
            r"^(?P<idea>[^.,;!?]{2,60}?)(?: is| are|'s) (?:off the table|not an option|out of the question|ruled out|a no-go|not up for discussion|out for good)\b"
        ),
        lasting=True,
        takes="Redux is off the table",
        leaves="the book is on the table",
    ),
    Ruling(
        "forget it",
        compiled(r"\bforget (?:about )?(?P<idea>[^.,;!?]{2,60}), we\b"),
        lasting=False,
        takes="forget MongoDB, we decided against it",
        leaves="forget what I wrote",
    ),
    Ruling(
        "ruled out",
        compiled(
            r"\bwe(?:'ve| have)? (?:already )?(?:ruled out|decided against|rejected|abandoned|gave up on|given up on)\s+(?:using |the idea of )?(?P<idea>[^.,;!?]{2,80})"
        ),
        lasting=False,
        takes="we decided against GraphQL",
        leaves="we decided to go",
    ),
    Ruling(
        "not going to",
        compiled(
            r"\b(?:we|i)(?:'re| are|'m| am)? (?:not going to|never going to|won't|will not|will never|don't want to|do not want to)\s+(?:be )?(?:us(?:e|ing)|adopt(?:ing)?|add(?:ing)?"
            r"|introduc(?:e|ing)|switch(?:ing)? to|mov(?:e|ing) to|support(?:ing)?|go(?:ing)? with|rewrit(?:e|ing)|migrat(?:e|ing))\s+(?P<idea>[^.,;!?]{2,80})"
        ),
        lasting=False,
        takes="we are not going to use Redux",
        leaves="we are going to use Redux",
    ),
    Ruling(
        "not needed",
        compiled(
            r"\b(?:i|we) (?:really )?(?:don't|do not) (?:think|believe|feel) (?:we|it|this|that) (?:needs?|should|want)\s+(?P<idea>[^.,;!?]{2,80})"
        ),
        lasting=False,
        takes="I don't think we need suffixes",
        leaves="do we need suffixes",
    ),
    Ruling(
        "no, instead",
        compiled(
            r"^(?:\d[.)] )?(?:no|nah|nope)(?:,| -)? (?P<idea>(?:don't|do not|let's|we|it should|it must|you can|revert|undo|remove|ignore|write|leave|keep|that|not)\b[^?]{3,160})$"
        ),
        lasting=False,
        takes="no, we removed the session commands on purpose",
        leaves="no, this is fine",
    ),
    Ruling(
        "not correct",
        compiled(
            r"\b(?P<idea>(?:that|this|it|you|the [\w ]{2,30}?)(?:'s|'re| is| are) (?:not (?:correct|right|what i (?:want|meant|asked))|wrong|incorrect)\b[^?]{0,160})$"
        ),
        lasting=False,
        takes="the first part is not correct",
        leaves="that's correct",
    ),
    Ruling(
        "take it out",
        compiled(
            r"\b(?P<idea>(?:let's (?:just )?|please )?(?:remove|drop|scrap|ditch|get rid of|kill)\b[^.?!]{2,100}\b(?:entirely|completely|altogether)\b[^?]{0,80})$"
            r"|^(?P<idea2>(?:i concede defeat\.? )?(?:nah,? )?let's (?:roll ?back|go back|revert|skip (?:it|this|that))\b[^?]{0,80})$"
        ),
        lasting=False,
        takes="let's just remove that entirely",
        leaves="remove the first two",
    ),
    Ruling(
        "not liked",
        compiled(
            r"\bi (?:don't|do not|really don't) (?:quite |really )?(?:like|want|agree with)\s+(?P<idea>(?!to\b)[^.?!]{2,100})"
            r"|(?P<idea2>\b(?:that|it|this) (?:just )?(?:adds (?:too much |needless )?complexity|is (?:overkill|yuck|too complex|too complicated|over-?engineered)))"
            r"|(?P<idea3>^.{2,80}\b(?:is|are) (?:yuck|overkill|not great either|a bad idea|no good)\b)"
            r"|(?P<idea4>\b(?:this|that) should(?: not|n't) be (?:changed?|chnged|a thing|done|touched)\b)"
        ),
        lasting=False,
        takes="I don't quite like e259b8e though",
        leaves="I don't want to go",
    ),
)

NO_REJECTION = compiled(
    r"^(?:\d[.)] )?(?:no|nah|nope)[, ]+(?:this|that|it)(?:'s| is| looks| works)? (?:is )?(?:fine|good|ok|okay|great|perfect|all|right|correct|it|works?)\b"
    r"|^no[, ]+(?:thanks|problem|worries|need)\b"
)

BEYOND_ONE_CALL = compiled(
    rf"\b(?:stop|quit|don't|do not|never) (?:ever )?(?:{IDEA_HABITS}|{IDEA_VERBS}|bring (?:it|that|this) up)\b"
    r"|\b(?:ever|any ?more|for good|under no circumstances|off the table|not an option|out of the question|from now on|period|full stop|final)\b"
)
"""What makes a rejection stand beyond the call that it answers."""

REASON = compiled(
    r"(?:,?\s+(?:because|since|as it|due to)\s+|[,;:–—-]\s*(?:it's|it is|they're|they are|that's|too)\s)(?P<reason>[^.!?]{3,160})"
)
