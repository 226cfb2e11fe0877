"""The row type of the tables of rejections, and the words that their patterns share."""

import re
from typing import Literal, NamedTuple

Lasts = Literal["always", "if it says so", "for this once"]
"""Whether words go beyond the moment: always, only with words of :data:`BEYOND_ONE_CALL`, or never."""

Mood = Literal["said", "asked", "either"]
"""Whether the words are a statement, a question, or either."""


class Ruling(NamedTuple):
    """One way to rule an idea out.

    Attributes:
        name: Used in tests and explanations.
        pattern: Searched in a sentence and in each of its clauses. A group ``idea…`` contains what is ruled
            out, if the words name it.
        takes: A sentence that it must accept.
        leaves: A sentence that it must not accept.
        lasts: Whether it goes beyond the moment.
        mood: The mood of the words on which it is tried.
        alone: Whether the words may name nothing ("still wrong."). They then refuse what was mentioned just
            before, so they are tried on a whole sentence and not on its clauses.
    """

    name: str
    pattern: re.Pattern[str]
    takes: str
    leaves: str
    lasts: Lasts = "for this once"
    mood: Mood = "said"
    alone: bool = False


# --- words for the patterns -----------------------------------------------------------------------

SUBJECT = (
    r"(?P<idea>(?![^\w@`]|(?:i|we|you|he|she|nothing|let's|please|don't|remove|drop|delete|keep|add|change"
    r"|fix|use|if|when|whenever|unless|whether|in case|because|since|once|until|make|ensure|check|verify|see"
    r"|why|what|how|where|who|is|are|was|do|does|did"
    r"|can|could|should|would|will|has|have|not)\b)(?:(?!\b(?:if|when|unless|whether|because|where|while|why"
    r"|what|how|something|says?|said|error|errors|failing|there|i'm|not|n't)\b)[^,;:?!]){1,70}?)"
    r"(?: (?:just|simply|really|also|still|actually|clearly|all))?"
)
"""What is judged: the short beginning of a clause, without a condition or a question in it."""

THING = (
    r"(?:[^.,;!?]){1,100}?(?=\s+(?:because|cause|since|as it|though|but|when|if|so|for now|it's|any ?more"
    r"|at all)\b|\s*[,;!?]|\s*\.(?!\w)|\s+[–—-]|\s*$)"
)
"""What is named after the verb, up to a reason or the next part of the sentence."""

VERY = (
    r"(?: (?:just|really|kinda|kind of|sort of|like|a bit|a little|a lot|way|all|so|that|very|quite|rather"
    r"|pretty|probably|basically|simply|also|still|clearly|exactly"
    r"|completely|totally|absolutely|definitely|plain|now|actually|maybe|even|entirely|strictly|particularly"
    r"|terribly|super|far))*"
)
IS = (
    r"(?:'s|'re| is| are| was| were| seems?(?: to be)?| looks?(?: like)?| feels?(?: like)?| sounds?"
    r"(?: like)?| would be|'d be| will be|'ll be| gets?| becomes?)"
)

POOR = (
    r"(?:redundant|overkill|unnecessary|unneeded|needless|superfluous|pointless|useless|meaningless"
    r"|excessive|duplicated?|duplicative|repetitive|convoluted|bloated"
    r"|over-?(?:engineered|complicated|complex|done)|over the top|yuck\w*|ugly|gross|awful|terrible|horrible"
    r"|horrendous|bad|wrong|incorrect|backwards?|no (?:good|bueno)"
    r"|hacky|brittle|clunky|messy|misleading|misguided|noisy|noise|nonsense|garbage|rubbish|silly|stupid"
    r"|dumb|ridiculous|absurd|immaterial|irrelevant|confusing"
    r"|out of scope|too (?!(?:late|soon|early|bad|small|big|large|slow|fast|high|low|dark|light|bright|close"
    r"|far|short|narrow|tall|thin|hard|old|new|busy|tired|hot|cold|loud)\b)\w+|the"
    r" (?:wrong|weakest|worst) \w+|(?:a|an) (?:(?:bad|terrible|horrible|poor|stupid|silly|dumb"
    r"|dangerous) \w+|mess|hack"
    r"|no-?go|hallucination|waste|work-?around|band-?aid|kludge|distraction|code smell|smell|step back"
    r"(?:wards)?|overkill|anti-?pattern)|unlikely to (?:work|help)|worse|unreadable|unmaintainable|hard"
    r"(?:er)? to (?:read|follow|maintain|understand|test|reason about)"
    r"|more \w+ than (?:needed|necessary|it (?:needs|has|should)|we need|they need))\b"
)
"""Adjectives and similar words of disapproval."""

MISBEHAVES = (
    r"(?:[\w'./ˣ-]+ ){0,4}?(?:outputs?|values?|counts?|numbers?|colou?rs?|dates?|times?|timestamps?|paths?"
    r"|urls?|links?|alignments?|positions?|sizes?|widths?|heights?|fonts?"
    r"|buttons?|images?|icons?|layouts?|scores?|totals?|results?|performance|speed|pages?|screens?|data"
    r"|responses?|spacing|margins?|padding|labels?|contrast|logs?)"
    rf"(?: (?:on|in|of|for|from|at|to)(?: [\w'./ˣ-]+){{1,5}}?)?{IS}{VERY} (?:wrong|incorrect|bad|worse"
    r"|backwards?|duplicated?|messy|terrible|horrible|awful|confusing|too)\b"
)
"""A report of a program's wrong behaviour, which does not judge an idea."""

FINE = (
    r"(?:correct|right|true|accurate|valid|it(?=\s*[.,;!:]|$)|the case|good|great|ideal|nice|pretty|lovely"
    r"|elegant|clean|dry|best|better|optimal|helping|helpful|useful"
    r"|worth|needed|necessary|required|warranted|important|appropriate|acceptable|ok(?:ay)?|sensible"
    r"|idiomatic|intuitive"
    r"|a (?:good|great|goal|nice|valid|real|concern)\b|the (?:best|right|correct|point|goal|way|intent"
    r"|intention|problem|issue|idea)"
    r"|what (?:i|we)(?:'d|'m| had| have| am| are)? (?:want|asked|ask|meant|mean|need|said|expect|decided"
    r"|agreed|looking|after|in mind|had in mind)\w*"
    r"|how (?:i|we|it|this|that)\b|(?:going to|gonna) (?:work|help|scale|fly|cut it)|something (?:i|we)"
    r"(?:'d)? (?:want|need|like))\b"
)
"""Words of approval; negated, they disapprove."""

POINTER = (
    r"(?:that|this|it|those|these|they|them|all|everything|both|your|my last|the (?:last|previous|whole"
    r"|entire|latest))\b"
)
