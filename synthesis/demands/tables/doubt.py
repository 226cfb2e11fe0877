"""Signs that a sentence may outlive its message, with weights: a sentence above the threshold is a candidate.

The signs are classes of words of general English, and of negation and obligation in other languages. The
weights are those of two logistic regressions on labelled sentences of several sources. ``make eval
EVAL=left_out`` fits them again without each source in turn, and scores them on it.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import compiled


class DoubtSign(NamedTuple):
    """A class of words in a sentence.

    Attributes:
        name: Used in explanations.
        demand: Its weight for a lasting demand.
        rejection: Its weight for turning down what the agent did or proposed.
        pattern: Searched in the sentence, without list numbers and emphasis.
    """

    name: str
    demand: float
    rejection: float
    pattern: re.Pattern[str]


DEMAND, REJECTION = -0.9, -2.1
"""What a sentence without any sign weighs. A candidate weighs at least 0."""

DEMAND_MARGIN = 0.8
"""How much more a sentence must weigh as a demand to count as one: more sentences turn something down."""

SECOND = 0.8
"""What a second candidate of the same message weighs at least."""

FIRST = (0.3, 1.6)
ALONE = (0.2, -0.7)
SHORT = (-0.3, 0.0)
LONG = (-0.6, 0.0)
IN_LONG = (-1.7, -1.1)
"""Weights of the place: the first sentence, the only one, one of at most four words, one of more than 25, and
one of a message of more than 120.
"""

SHORT_WORDS, LONG_WORDS, LONG_MESSAGE_WORDS = 4, 25, 120

# fmt: off
SIGNS = tuple(DoubtSign(name, demand, rejection, compiled(pattern)) for name, demand, rejection, pattern in (
    ("speaks to the agent", 0.5, 0.0, r"\b(?:you(?:'re|'ve|'d|'ll)?|your|u)\b"),
    ("speaks of oneself", 0.6, -1.1, r"\b(?:my|me|mine)\b"),
    ("a moment", -0.3, -0.4, (r"\b(?:now|yet|today|tonight|tomorrow|yesterday|this (?:time|once|morning"
        r"|week|release|one)|already|just now|first|then|next|last|currently|again later|so far)\b")),
    ("obligation", 0.7, 0.5, (r"\b(?:must|should|shall|ought to|(?:have|has|needs?|supposed|required"
        r"|expected|got) to|needs?|is to be|are to be)\b")),
    ("a ban", 1.1, 0.0, (r"(?:^|[,;:.–—-] ?|\b(?:please|pls|so|and|but|just|also|then|you|let's|to|are"
        r"|well) )(?:do not|don't|dont|do n't|not to|never|stop|quit|avoid|refrain|no need to|leave|skip"
        r"|without|keep your hands)\b")),
    ("negation", 0.3, 1.6, (r"\b(?:not|no|never|none|nothing|nobody|nor|neither|without|\w+n't|dont"
        r"|doesnt|isnt|cant|wont)\b")),
    ("exclusion", 1.3, 0.0, (r"\b(?:only|exclusively|solely|nothing but|nowhere else|except|unless"
        r"|other than)\b")),
    ("generality", 0.6, -0.6, (r"\b(?:all|every|each|any|anything|everything|whatever|wherever|whenever"
        r"|anywhere|everywhere|always|never|ever|both|either|at least|at most|max(?:imum)?|min(?:imum)?"
        r"|per)\b")),
    ("a condition", 0.0, -0.6, (r"\b(?:if|when|whenever|once|before|after|until|till|while|unless"
        r"|as long as)\b")),
    ("a norm", 0.0, -0.6, (r"\b(?:rules?|convention|polic(?:y|ies)|standards?|guidelines?|style|format"
        r"|consisten\w+|practices?|principles?|instructions?|requirements?|habit|usual(?:ly)?|normal(?:ly)?"
        r"|prefer\w*|preference|remember|keep in mind|bear in mind|note that|house style)\b")),
    ("a kind of things as subject", 1.6, 0.0, (r"^(?:(?:please|and|but|so|also|btw|the|our|all|new|my"
        r"|your),? )*(?!this\b|thanks\b|yes\b|always\b|does\b|is\b|was\b|has\b|it's\b|lets\b"
        r"|us\b)[\w-]+(?: [\w-]+)?s (?:in|are|is|should|must|go|stay|have|get|come|need|live|may|belong|with"
        r"|as|on|at|only|first|out|always|never|do)\b")),
    ("practice", 0.5, 0.0, (r"\b(?:we|i) (?:\w+ )?(?:use|prefer|want|like|keep|write|run|name|call|do"
        r"|don't|do not|never|only|always|take|book|target|count|log|deploy|commit|merge|round|work|are on"
        r"|avoid|follow|ask|test|have|go)\b")),
    ("a contrast", 0.8, 0.0, (r"\b(?:instead|rather(?: than)?|not|over|but)\b(?= (?:of|than|\w+))"
        r"|, not \w+|\binstead\b|\brather than\b")),
    ("care", 1.3, -0.4, (r"\b(?:make sure|ensure|be sure|careful|stick to|keep|follow|respect|treat"
        r"|restrict|limit|use)\b")),
    ("an attitude", 1.1, 0.0, (r"\b(?:i|we)(?:'d| would| do| really| just| also| usually| always"
        r"| strongly)* (?:prefer|hate|dislike|love|like|appreciate|can't stand|cannot stand|don't like"
        r"|do not like|don't want|do not want|want|need|don't care|care|expect|rather|wanna|insist)\b"
        r"|\bannoy\w*|\ballergic\b")),
    ("a request", 0.0, -0.5, r"\b(?:please|pls|plz|thanks|thx)\b"),
    ("an order for one piece of work", -0.6, -0.5, (r"^(?:(?:please|pls|and|also|but|so|then|ok|okay"
        r"|just|btw|yes|no|now|well|hey|hi|can you|could you),? )*(?:add|fix|implement|create|rename|move"
        r"|update|run|rerun|restart|check|look|find|explain|show me|continue|go|commit|push|start|read"
        r"|generate|build|investigate|install|deploy|try|set up|help|merge|analyze|test|write a|make a"
        r"|make the|give me a|roll back)\b")),
    ("a no at the beginning", 0.0, 2.4, (r"^(?:(?:hm+|uh+|um+|oh|well|wait|but|actually|ok|so|and|ah"
        r"|yeah|sorry|lol|dude|omg|ugh)[\s,.!…-]+)*(?:no|nope|nah|nay|not really|non|nein"
        r"|ні)\b(?! (?:problem|worries|idea|need))")),
    ("disapproval", 0.0, 1.0, (r"\b(?:wrong|incorrect|inco?rect|bad|worse|worst|ugly|terrible|awful"
        r"|horrible|confusing|overkill|unnecessary|redundant|pointless|useless|stupid|silly|messed up|messy"
        r"|nonsense|garbage|not (?:good|right|correct|ok|okay|ideal|great|needed|necessary|true|what|how"
        r"|the)|isn't (?:good|right|correct|what|how|the|it|necessary)|doesn't (?:look|make|seem"
        r"|feel) (?:good|right|sense|correct|great)|too (?!(?:late|soon)\b)\w+|weird|odd|hacky"
        r"|overcomplicat\w+|overengineer\w+|complicated|lame|boring|noisy|excessive|unreadable|lost|lazy"
        r"|sloppy|fail\w*)\b")),
    ("undoing", 0.0, 1.5, (r"\b(?:revert|undo|roll(?:ing)? (?:it |this |that )?back|restore|back out"
        r"|put (?:it|them|that|this) back|get rid of|take (?:it|that|this|them|out)|scrap|remove|drop|delete"
        r"|ditch|saca|quit[ae])\b")),
    ("blame or correction", 0.0, 1.8, (r"\b(?:you(?:'ve| have)? (?:\w+ly |just |also |still |again "
        r"|completely |only )?(?:keep|kept|did|didn't|did not|forgot|missed|removed|changed|broke|deleted"
        r"|added|made|put|left|ignored|lost|messed|broken|are deleting|are missing|are not|aren't|shouldn't"
        r"|should have|should not|failed|hallucinat\w+|invented|exported|wrote|said|created|used|lied"
        r"|assume\w*)|you're (?:not|missing|deleting|wrong|confus\w+|overcomplicat\w+|going)|why (?:did|do"
        r"|are|would|have|is|does) (?:you|we|it|this|that)|i (?:already |just |specifically |explicitly "
        r"|never |clearly )?(?:said|asked|told|meant|wanted|didn't (?:ask|want|say|mean)|did not (?:ask|want"
        r"|say)))\b")),
    ("denial", 0.0, 1.2, (r"\b(?:this|that|it|these|those|they|which|there)(?:'s| is| are|'re)? (?:not"
        r"|isn't|aren't|wasn't|doesn't|don't|didn't|won't|shouldn't|can't|still|no longer|n't)\b|\b(?:it"
        r"|this|that|they)'s not\b")),
    ("again", -0.7, 0.0, r"\b(?:still|again|anymore|any more|back|yet again|already)\b"),
    ("an opinion", -0.6, 0.0, (r"\b(?:i think|i feel|i guess|maybe|perhaps|hmm+|seems?|probably|kind of"
        r"|kinda|not sure|imo|imho|tbh|honestly|wonder)\b")),
    ("an objection", -0.7, 0.4, (r"\b(?:but|however|though|although|actually|wait|except|unfortunately"
        r"|sorry)\b")),
    ("another way", 0.0, 1.0, (r"\b(?:instead|rather|different(?:ly)?|another (?:way|approach)"
        r"|change the approach|the other way|not that)\b")),
    ("approval", -1.1, -0.9, (r"^(?:yes|yep|yeah|ok|okay|sure|good|great|perfect|nice|cool|thanks"
        r"|thank you|lgtm|go ahead|continue|proceed|awesome|excellent|sounds good|looks good|fine|correct"
        r"|right|exactly|done|works)\b")),
    ("a question mark", -2.5, -0.6, r"\?\s*[\x22')\]]*$"),
    ("a question word", 0.0, -0.7, (r"^(?:(?:so|and|but|ok|okay|also|hey|hm+|well|then),? )*(?:what|who"
        r"|when|where|how|which|why|is|are|does|do you|did|can i|could i|should (?:i|we)|will|would it|has"
        r"|have)\b")),
    ("a polite request", 0.0, -0.9, (r"^(?:(?:so|and|but|ok|okay|also|hey|now|then|please),? )*(?:can"
        r"|could|would|will) (?:you|we|u)\b")),
    ("the past", -0.8, 0.0, r"\b(?:was|were|had|did|got|went|used to|said|asked|told|\w{3,}ed)\b"),
    ("an error report", 0.0, -1.3, (r"\b(?:errors?|exceptions?|bugs?|crash\w*|fail(?:s|ed|ing)?"
        r"|traceback|broken|not working|doesn't work|does not work|stuck|hang\w*|404|500|401|undefined"
        r"|null)\b")),
    ("a name in code", -0.6, 0.0, r"ˣ{3,}|`|\b\w+[_/.]\w+|\b\w+\(\)|@\w+|#\d+"),
    ("a number", -0.4, -0.5, r"\d"),
    ("a report", -0.6, -0.6, (r"\b(?:i (?:see|got|get|have|tried|ran|found|noticed|just|am|was|will|'ll)"
        r"|i'm (?:getting|seeing|trying|running|working))\b|\bthere(?:'s| is| are| was| were)\b")),
    ("displeasure", 0.0, 1.5, r":\(|:/(?!/)|!!+|\?\?+|\?!|\bomg\b|\bwtf\b|\bffs\b|\bugh\b"),
    ("leaving something out", 0.0, 1.4, (r"\b(?:let's|lets|let us|can we|could we|we can|we could|please"
        r"|just)\b.{0,12}\b(?:not|skip|drop|remove|get rid|leave (?:out|it|that|this)|ignore|scrap|avoid"
        r"|stop)\b")),
    ("a rhetorical question", 0.0, 1.0, (r"\b(?:why (?:do|are|would|did|is|should|not|have|does)"
        r"|do we (?:really )?need|is (?:this|that|it) (?:really )?(?:needed|necessary|right|correct)"
        r"|what(?:'s| is) the point|how is (?:that|this)|can we not|why not|isn't (?:it|that|this)"
        r"|shouldn't (?:it|we|this|that)|are you sure|really\?|right\?|no\?$)")),
    ("no need", 0.0, 1.0, (r"\b(?:don't|do not|dont|doesn't|does not|not|never|no) (?:\w+ )?(?:need|want"
        r"|like|think|see|necessary|needed|required|useful|helpful|care|use)\b|\bno need\b")),
    ("a place or case first", 0.7, -1.1, (r"^(?:(?:and|also|but|so|please|btw),? )*(?:in|for|on|at|with"
        r"|when|if|before|after|each|every|all|any|no)\b")),
    ("an order without a verb", 0.2, 0.0, (r"^(?!.*\b(?:is|are|was|were|am|be|been|has|have|had|do|does"
        r"|did|can|could|will|would|should|must|i|it|this|that|you|we|they|he|she|let's|i'm|it's|that's"
        r"|thanks|yes|no problem|ok|okay|hi|hello)\b)(?=.*\b(?:in|with|for|as|per|each|every|only|over|to|by"
        r"|from|like|not|no|out)\b)(?:\S+ ){2,}\S+$")),
    ("things in general", 0.4, -0.1, (r"\b(?!this|is|was|has|does|always|its|us|thanks|yes|as|less|plus"
        r"|class|pass|process|access|status|address|across|various|previous|besides|towards|perhaps"
        r"|sometimes|news|focus|progress|success|miss|unless|lets|let's|it's|that's|what's|here's"
        r"|there's)(?<!the )(?<!these )(?<!those )(?<!this )(?<!that )(?<!some )(?<!two )(?<!of )(?<!my"
        r" )(?<!your )[a-z]{3,}s\b")),
    ("a definite thing", -0.3, 0.0, r"\bthe\b"),
    ("one thing", -0.2, -0.4, r"\ban? [a-z]"),
    ("negation in another language", 0.0, 1.4, (r"\b(?:nunca|jamás|tampoco|nada|ningun\w*|nicht|kein\w*"
        r"|nie|pas|jamais|rien|mai|não|niente|neen|niet|geen|не|ні|нет|никогда|ніколи|no (?:es|esta|está"
        r"|debe|quiero|hace|me|te|se|hay|funciona|deberia|debería))\b")),
    ("obligation in another language", 1.4, 0.7, (r"\b(?:debe\w*|deber\w*|tiene\w* que|tenemos que"
        r"|tenes que|hay que|siempre|todos?|todas?|quiero|muss|müssen|soll\w*|immer|bitte|doit|doivent|faut"
        r"|toujours|deve|devono|sempre|moet|altijd|повинн\w+|треба|должн\w+|завжди|всегда)\b")),
    ("undoing in another language", -1.5, 2.2, (r"\b(?:reverti\w*|saca\w*|quita\w*|elimina\w*|mal|error"
        r"|rückgängig|entfern\w*|weg damit|annule\w*|enlève\w*|supprime\w*|togli\w*|rimuovi|прибери|видали"
        r"|убери|удали|помил\w+)\b")),
    ("the user's own plan", -1.2, -0.9, (r"^(?:(?:so|and|but|ok|okay|yes|yeah|well|then|thanks|got it"
        r"|sounds good|great|sure)[,.!]? )*(?:i'll|i will|i'm going to|i am going to|i'm (?:trying"
        r"|considering|working|looking|planning|thinking|kinda)|i've (?:been|just|already)|i (?:think|guess"
        r"|hope|wonder))\b")),
    ("a wish for one piece of work", -0.9, 0.5, (r"\b(?:i|we) (?:really |just |also |would |do )*(?:want"
        r"|need|wanna|like|have|'d like|should|can)(?: to|\b) (?:see|be able|add|make|have|create|use|do|get"
        r"|go|improve|store|deploy|merge|run|fix|know|try|build|move|change|focus|start|implement|poll)\b"
        r"|\bi'd like to\b|\bi wanna\b")),
    ("a name of a program", -1.1, -0.6, r"(?-i:(?<![.!?:] )(?<!^)\b[A-Z][a-z]+[A-Z]\w+|\b[a-z]+[A-Z]\w+)"),
    ("a judgement", 0.0, 1.4, (r"\b(?:is|are|was|were|'s|'re|looks?|seems?|feels?|sounds?|makes? \w+"
        r"|just)(?: \w+ly| just| a bit| so| too| really| still| kind of| like| all| completely| the| an?"
        r"| adds?| quite| harder| now)* (?:wrong|incorrect|redundant|duplicated?|pointless|useless"
        r"|unnecessary|unneeded|overkill|confusing|misleading|ugly|bad|worse|worst|weak\w*|terrible|awful"
        r"|horrible|messy|mess|hacky?|hard to|harder|weird|odd|silly|stupid|nonsense|excessive|bloated|noisy"
        r"|noise|complexity|complicated|convoluted|yuck\w*|overcomplicated|overengineered|broken|off"
        r"|misplaced|unclear|unreadable|outdated|obsolete|irrelevant|unrelated|lame)\b|^(?:wrong|incorrect"
        r"|bad|nonsense|pointless|overkill|terrible|still wrong|not right|no good)\b")),
    ("an order to undo", 0.0, 1.0, (r"^(?:(?:ok|okay|no|so|and|but|please|pls|now|then|let's|lets"
        r"|can you|could you|just|also|actually|wait),? )*(?:revert|undo|roll (?:it|that|this|the|back)"
        r"|rollback|restore|back out|put (?:it|that|this|the|them) back|get rid of|take (?:it|that|this|the"
        r"|them)\b.{0,30}\bout|scrap|drop|ditch|remove|delete|forget|ignore|skip|stop)\b")),
    ("a degree", 0.0, 0.4, (r"\b(?:too|so|very|way|completely|totally|entirely|just|literally|absolutely"
        r"|really|at all|freaking|fucking)\b")),
    ("the rest", 0.0, 0.7, (r"\b(?:else|other(?:wise)?|rest|anything else|everything else|unrelated"
        r"|existing|current(?:ly)?|original|previous|old)\b")),
))
# fmt: on
