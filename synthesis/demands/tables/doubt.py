"""Signs that a sentence may outlive its message, with weights: a sentence above the threshold is a candidate.

The signs are classes of words of general English, and of negation and obligation in other languages. The
weights are those of two logistic regressions on labelled sentences of several sources. ``make eval
EVAL=left_out`` fits them again without each source in turn, and scores them on it.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import compiled


class Sign(NamedTuple):
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
"""What a sentence without any sign weighs. A candidate weighs more than 0."""

SECOND = 0.5
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
SIGNS = tuple(Sign(name, demand, rejection, compiled(pattern)) for name, demand, rejection, pattern in (
    ("speaks to the agent", 0.5, 0.0, (
        r"\b(?:you(?:'re|'ve|'d|'ll)?|your|u)\b"
    )),
    ("speaks of oneself", 0.6, -1.1, (
        r"\b(?:my|me|mine)\b"
    )),
    ("a moment", -0.3, -0.4, (
        r"\b(?:now|yet|today|tonight|tomorrow|yesterday|this (?:time|once|morning|week|release|one)|already"
        r"|just now|first|then|next|last|currently|again later|so far)\b"
    )),
    ("obligation", 0.7, 0.5, (
        r"\b(?:must|should|shall|ought to|(?:have|has|needs?|supposed|required|expected|got) to|needs?"
        r"|is to be|are to be)\b"
    )),
    ("a ban", 1.1, 0.0, (
        r"(?:^|[,;:.–—-] ?|\b(?:please|pls|so|and|but|just|also|then|you|let's|to|are|well) )(?:do not"
        r"|don't|dont|do n't|not to|never|stop|quit|avoid|refrain|no need to|leave|skip|without"
        r"|keep your hands)\b"
    )),
    ("negation", 0.3, 1.6, (
        r"\b(?:not|no|never|none|nothing|nobody|nor|neither|without|\w+n't|dont|doesnt|isnt|cant|wont)\b"
    )),
    ("exclusion", 1.3, 0.0, (
        r"\b(?:only|exclusively|solely|nothing but|nowhere else|except|unless|other than)\b"
    )),
    ("generality", 0.6, -0.6, (
        r"\b(?:all|every|each|any|anything|everything|whatever|wherever|whenever|anywhere|everywhere|always"
        r"|never|ever|both|either|at least|at most|max(?:imum)?|min(?:imum)?|per)\b"
    )),
    ("a condition", 0.0, -0.6, (
        r"\b(?:if|when|whenever|once|before|after|until|till|while|unless|as long as)\b"
    )),
    ("a norm", 0.0, -0.6, (
        r"\b(?:rules?|convention|polic(?:y|ies)|standards?|guidelines?|style|format|consisten\w+|practices?"
        r"|principles?|instructions?|requirements?|habit|usual(?:ly)?|normal(?:ly)?|prefer\w*|preference"
        r"|remember|keep in mind|bear in mind|note that|house style)\b"
    )),
    ("a kind of things as subject", 1.6, 0.0, (
        r"^(?:(?:please|and|but|so|also|btw|the|our|all|new|my|your),? )*(?!this\b|thanks\b|yes\b|always\b"
        r"|does\b|is\b|was\b|has\b|it's\b|lets\b|us\b)[\w-]+(?: [\w-]+)?s (?:in|are|is|should|must|go|stay"
        r"|have|get|come|need|live|may|belong|with|as|on|at|only|first|out|always|never|do)\b"
    )),
    ("practice", 0.5, 0.0, (
        r"\b(?:we|i) (?:\w+ )?(?:use|prefer|want|like|keep|write|run|name|call|do|don't|do not|never|only"
        r"|always|take|book|target|count|log|deploy|commit|merge|round|work|are on|avoid|follow|ask|test"
        r"|have|go)\b"
    )),
    ("a contrast", 0.8, 0.0, (
        r"\b(?:instead|rather(?: than)?|not|over|but)\b(?= (?:of|than|\w+))|, not \w+|\binstead\b"
        r"|\brather than\b"
    )),
    ("care", 1.3, -0.4, (
        r"\b(?:make sure|ensure|be sure|careful|stick to|keep|follow|respect|treat|restrict|limit|use)\b"
    )),
    ("an attitude", 1.1, 0.0, (
        r"\b(?:i|we)(?:'d| would| do| really| just| also| usually| always| strongly)* (?:prefer|hate"
        r"|dislike|love|like|appreciate|can't stand|cannot stand|don't like|do not like|don't want"
        r"|do not want|want|need|don't care|care|expect|rather|wanna|insist)\b|\bannoy\w*|\ballergic\b"
    )),
    ("a request", 0.0, -0.5, (
        r"\b(?:please|pls|plz|thanks|thx)\b"
    )),
    ("an order for one piece of work", -0.6, -0.5, (
        r"^(?:(?:please|pls|and|also|but|so|then|ok|okay|just|btw|yes|no|now|well|hey|hi|can you"
        r"|could you),? )*(?:add|fix|implement|create|rename|move|update|run|rerun|restart|check|look|find"
        r"|explain|show me|continue|go|commit|push|start|read|generate|build|investigate|install|deploy|try"
        r"|set up|help|merge|analyze|test|write a|make a|make the|give me a|roll back)\b"
    )),
    ("a no at the beginning", 0.0, 2.4, (
        r"^(?:(?:hm+|uh+|um+|oh|well|wait|but|actually|ok|so|and|ah|yeah|sorry|lol|dude|omg"
        r"|ugh)[\s,.!…-]+)*(?:no|nope|nah|nay|not really|non|nein|ні)\b(?! (?:problem|worries|idea|need))"
    )),
    ("disapproval", 0.0, 1.0, (
        r"\b(?:wrong|incorrect|inco?rect|bad|worse|worst|ugly|terrible|awful|horrible|confusing|overkill"
        r"|unnecessary|redundant|pointless|useless|stupid|silly|messed up|messy|nonsense|garbage"
        r"|not (?:good|right|correct|ok|okay|ideal|great|needed|necessary|true|what|how|the)|isn't (?:good"
        r"|right|correct|what|how|the|it|necessary)|doesn't (?:look|make|seem|feel) (?:good|right|sense"
        r"|correct|great)|too (?!(?:late|soon)\b)\w+|weird|odd|hacky|overcomplicat\w+|overengineer\w+"
        r"|complicated|lame|boring|noisy|excessive|unreadable|lost|lazy|sloppy|fail\w*)\b"
    )),
    ("undoing", 0.0, 1.5, (
        r"\b(?:revert|undo|roll(?:ing)? (?:it |this |that )?back|restore|back out|put (?:it|them|that"
        r"|this) back|get rid of|take (?:it|that|this|them|out)|scrap|remove|drop|delete|ditch|saca"
        r"|quit[ae])\b"
    )),
    ("blame or correction", 0.0, 1.8, (
        r"\b(?:you(?:'ve| have)? (?:\w+ly |just |also |still |again |completely |only )?(?:keep|kept|did"
        r"|didn't|did not|forgot|missed|removed|changed|broke|deleted|added|made|put|left|ignored|lost"
        r"|messed|broken|are deleting|are missing|are not|aren't|shouldn't|should have|should not|failed"
        r"|hallucinat\w+|invented|exported|wrote|said|created|used|lied|assume\w*)|you're (?:not|missing"
        r"|deleting|wrong|confus\w+|overcomplicat\w+|going)|why (?:did|do|are|would|have|is|does) (?:you|we"
        r"|it|this|that)|i (?:already |just |specifically |explicitly |never |clearly )?(?:said|asked|told"
        r"|meant|wanted|didn't (?:ask|want|say|mean)|did not (?:ask|want|say)))\b"
    )),
    ("denial", 0.0, 1.2, (
        r"\b(?:this|that|it|these|those|they|which|there)(?:'s| is| are|'re)? (?:not|isn't|aren't|wasn't"
        r"|doesn't|don't|didn't|won't|shouldn't|can't|still|no longer|n't)\b|\b(?:it|this|that|they)'s not\b"
    )),
    ("again", -0.7, 0.0, (
        r"\b(?:still|again|anymore|any more|back|yet again|already)\b"
    )),
    ("an opinion", -0.6, 0.0, (
        r"\b(?:i think|i feel|i guess|maybe|perhaps|hmm+|seems?|probably|kind of|kinda|not sure|imo|imho"
        r"|tbh|honestly|wonder)\b"
    )),
    ("an objection", -0.7, 0.4, (
        r"\b(?:but|however|though|although|actually|wait|except|unfortunately|sorry)\b"
    )),
    ("another way", 0.0, 1.0, (
        r"\b(?:instead|rather|different(?:ly)?|another (?:way|approach)|change the approach|the other way"
        r"|not that)\b"
    )),
    ("approval", -1.1, -0.9, (
        r"^(?:yes|yep|yeah|ok|okay|sure|good|great|perfect|nice|cool|thanks|thank you|lgtm|go ahead"
        r"|continue|proceed|awesome|excellent|sounds good|looks good|fine|correct|right|exactly|done"
        r"|works)\b"
    )),
    ("a question mark", -2.5, -0.6, (
        r"\?\s*[\x22')\]]*$"
    )),
    ("a question word", 0.0, -0.7, (
        r"^(?:(?:so|and|but|ok|okay|also|hey|hm+|well|then),? )*(?:what|who|when|where|how|which|why|is|are"
        r"|does|do you|did|can i|could i|should (?:i|we)|will|would it|has|have)\b"
    )),
    ("a polite request", 0.0, -0.9, (
        r"^(?:(?:so|and|but|ok|okay|also|hey|now|then|please),? )*(?:can|could|would|will) (?:you|we|u)\b"
    )),
    ("the past", -0.8, 0.0, (
        r"\b(?:was|were|had|did|got|went|used to|said|asked|told|\w{3,}ed)\b"
    )),
    ("an error report", 0.0, -1.3, (
        r"\b(?:errors?|exceptions?|bugs?|crash\w*|fail(?:s|ed|ing)?|traceback|broken|not working"
        r"|doesn't work|does not work|stuck|hang\w*|404|500|401|undefined|null)\b"
    )),
    ("a name in code", -0.6, 0.0, (
        r"ˣ{3,}|`|\b\w+[_/.]\w+|\b\w+\(\)|@\w+|#\d+"
    )),
    ("a number", -0.4, -0.5, (
        r"\d"
    )),
    ("a report", -0.6, -0.6, (
        r"\b(?:i (?:see|got|get|have|tried|ran|found|noticed|just|am|was|will|'ll)|i'm (?:getting|seeing"
        r"|trying|running|working))\b|\bthere(?:'s| is| are| was| were)\b"
    )),
    ("displeasure", 0.0, 1.5, (
        r":\(|:/(?!/)|!!+|\?\?+|\?!|\bomg\b|\bwtf\b|\bffs\b|\bugh\b"
    )),
    ("leaving something out", 0.0, 1.4, (
        r"\b(?:let's|lets|let us|can we|could we|we can|we could|please|just)\b.{0,12}\b(?:not|skip|drop"
        r"|remove|get rid|leave (?:out|it|that|this)|ignore|scrap|avoid|stop)\b"
    )),
    ("a rhetorical question", 0.0, 1.0, (
        r"\b(?:why (?:do|are|would|did|is|should|not|have|does)|do we (?:really )?need|is (?:this|that"
        r"|it) (?:really )?(?:needed|necessary|right|correct)|what(?:'s| is) the point|how is (?:that|this)"
        r"|can we not|why not|isn't (?:it|that|this)|shouldn't (?:it|we|this|that)|are you sure|really\?"
        r"|right\?|no\?$)"
    )),
    ("no need", 0.0, 1.0, (
        r"\b(?:don't|do not|dont|doesn't|does not|not|never|no) (?:\w+ )?(?:need|want|like|think|see"
        r"|necessary|needed|required|useful|helpful|care|use)\b|\bno need\b"
    )),
    ("a place or case first", 0.7, -1.1, (
        r"^(?:(?:and|also|but|so|please|btw),? )*(?:in|for|on|at|with|when|if|before|after|each|every|all"
        r"|any|no)\b"
    )),
    ("an order without a verb", 0.2, 0.0, (
        r"^(?!.*\b(?:is|are|was|were|am|be|been|has|have|had|do|does|did|can|could|will|would|should|must|i"
        r"|it|this|that|you|we|they|he|she|let's|i'm|it's|that's|thanks|yes|no problem|ok|okay|hi"
        r"|hello)\b)(?=.*\b(?:in|with|for|as|per|each|every|only|over|to|by|from|like|not|no"
        r"|out)\b)(?:\S+ ){2,}\S+$"
    )),
    ("things in general", 0.4, -0.1, (
        r"\b(?!this|is|was|has|does|always|its|us|thanks|yes|as|less|plus|class|pass|process|access|status"
        r"|address|across|various|previous|besides|towards|perhaps|sometimes|news|focus|progress|success"
        r"|miss|unless|lets|let's|it's|that's|what's|here's|there's)(?<!the )(?<!these )(?<!those )(?<!this "
        r")(?<!that )(?<!some )(?<!two )(?<!of )(?<!my )(?<!your )[a-z]{3,}s\b"
    )),
    ("a definite thing", -0.3, 0.0, (
        r"\bthe\b"
    )),
    ("one thing", -0.2, -0.4, (
        r"\ban? [a-z]"
    )),
    ("negation in another language", 0.0, 1.4, (
        r"\b(?:nunca|jamás|tampoco|nada|ningun\w*|nicht|kein\w*|nie|pas|jamais|rien|mai|não|niente|neen"
        r"|niet|geen|не|ні|нет|никогда|ніколи|no (?:es|esta|está|debe|quiero|hace|me|te|se|hay|funciona"
        r"|deberia|debería))\b"
    )),
    ("obligation in another language", 1.4, 0.7, (
        r"\b(?:debe\w*|deber\w*|tiene\w* que|tenemos que|tenes que|hay que|siempre|todos?|todas?|quiero"
        r"|muss|müssen|soll\w*|immer|bitte|doit|doivent|faut|toujours|deve|devono|sempre|moet|altijd"
        r"|повинн\w+|треба|должн\w+|завжди|всегда)\b"
    )),
    ("undoing in another language", -1.5, 2.2, (
        r"\b(?:reverti\w*|saca\w*|quita\w*|elimina\w*|mal|error|rückgängig|entfern\w*|weg damit|annule\w*"
        r"|enlève\w*|supprime\w*|togli\w*|rimuovi|прибери|видали|убери|удали|помил\w+)\b"
    )),
    ("the user's own plan", -1.2, -0.9, (
        r"^(?:(?:so|and|but|ok|okay|yes|yeah|well|then|thanks|got it|sounds good|great"
        r"|sure)[,.!]? )*(?:i'll|i will|i'm going to|i am going to|i'm (?:trying|considering|working"
        r"|looking|planning|thinking|kinda)|i've (?:been|just|already)|i (?:think|guess|hope|wonder))\b"
    )),
    ("a wish for one piece of work", -0.9, 0.5, (
        r"\b(?:i|we) (?:really |just |also |would |do )*(?:want|need|wanna|like|have|'d like|should"
        r"|can)(?: to|\b) (?:see|be able|add|make|have|create|use|do|get|go|improve|store|deploy|merge|run"
        r"|fix|know|try|build|move|change|focus|start|implement|poll)\b|\bi'd like to\b|\bi wanna\b"
    )),
    ("a name of a program", -1.1, -0.6, (
        r"(?-i:(?<![.!?:] )(?<!^)\b[A-Z][a-z]+[A-Z]\w+|\b[a-z]+[A-Z]\w+)"
    )),
    ("a judgement", 0.0, 1.4, (
        r"\b(?:is|are|was|were|'s|'re|looks?|seems?|feels?|sounds?|makes? \w+|just)(?: \w+ly| just| a bit"
        r"| so| too| really| still| kind of| like| all| completely| the| an?| adds?| quite| harder"
        r"| now)* (?:wrong|incorrect|redundant|duplicated?|pointless|useless|unnecessary|unneeded|overkill"
        r"|confusing|misleading|ugly|bad|worse|worst|weak\w*|terrible|awful|horrible|messy|mess|hacky?"
        r"|hard to|harder|weird|odd|silly|stupid|nonsense|excessive|bloated|noisy|noise|complexity"
        r"|complicated|convoluted|yuck\w*|overcomplicated|overengineered|broken|off|misplaced|unclear"
        r"|unreadable|outdated|obsolete|irrelevant|unrelated|lame)\b|^(?:wrong|incorrect|bad|nonsense"
        r"|pointless|overkill|terrible|still wrong|not right|no good)\b"
    )),
    ("an order to undo", 0.0, 1.0, (
        r"^(?:(?:ok|okay|no|so|and|but|please|pls|now|then|let's|lets|can you|could you|just|also|actually"
        r"|wait),? )*(?:revert|undo|roll (?:it|that|this|the|back)|rollback|restore|back out|put (?:it|that"
        r"|this|the|them) back|get rid of|take (?:it|that|this|the|them)\b.{0,30}\bout|scrap|drop|ditch"
        r"|remove|delete|forget|ignore|skip|stop)\b"
    )),
    ("a degree", 0.0, 0.4, (
        r"\b(?:too|so|very|way|completely|totally|entirely|just|literally|absolutely|really|at all|freaking"
        r"|fucking)\b"
    )),
    ("the rest", 0.0, 0.7, (
        r"\b(?:else|other(?:wise)?|rest|anything else|everything else|unrelated|existing|current(?:ly)?"
        r"|original|previous|old)\b"
    )),
))
# fmt: on
