"""The vocabulary of demands: word lists, and the features of a clause. Tables to read and to extend.

Patterns are matched without regard to case against clauses of bounded length. None has a repetition inside a
repetition that could match the same text in two ways.
"""

import re
from typing import Literal

from agentx.synthesis.language.patterns import on_use

Modality = Literal["must", "must_not", "prefer"]
Certainty = Literal["active", "candidate"]


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that ignores case.

    ``[^.;!?]`` and similar sets run to the end of a sentence, which no dot inside a name ("app.py") is.
    """
    for stops in (".;!?", ".,;!?", ".?!", ".!?"):
        pattern = pattern.replace(f"[^{stops}]", rf"(?:[^{stops}]|\.(?=\w))")
    return on_use(pattern, re.IGNORECASE)


# fmt: off
# --- vocabulary -----------------------------------------------------------------------------------

POLICY_VERBS = ("use|write|prefer|keep|follow|format|name|put|place|document|import|indent|answer|reply"
    "|respond|speak|talk|address|call|include|add|run|test|check|verify|confirm|ask|commit|log|type|annotate"
    "|give|show|provide|explain|cite|quote|mention|stick|stay|be|make|prefix|suffix|sign|tag|mark|decorate"
    "|wrap|sort|group|spell|round|state|list|start|end|begin|finish|leave|skip|omit|avoid|remember|consider"
    "|treat|assume|default|adhere|limit|restrict|validate|handle|return|raise|fix|update|create|store|save"
    "|apply|attach|report|summari[sz]e|structure|lint|review|read|consult|go|favou?r|rely|pin|render|push"
    "|merge|say|tell|refer|link|ensure|make sure|do|have|set|define|declare|express|translate|abbreviate"
    "|capitali[sz]e|highlight|prioriti[sz]e|bump|squash|rebase|generate|split|separate|opt|choose|pick")
"""Verbs of orders that can be a rule."""

ARTEFACTS = ("functions?|methods?|class(?:es)?|modules?|files?|tests?|commits?|commit messages?|endpoints?"
    "|routes?|handlers?|variables?|names?|imports?|comments?|docstrings?|strings?|quer(?:y|ies)|migrations?"
    "|components?|constants?|types?|fields?|api calls?|calls?|errors?|exceptions?|logs?|log lines?"
    "|branch(?:es)?|pull requests?|prs?|answers?|responses?|repl(?:y|ies)|messages?|texts?|documents?"
    "|reports?|chapters?|sections?|paragraphs?|headings?|sentences?|titles?|dates?|numbers?|amounts?"
    "|figures?|code|dependenc(?:y|ies)|packages?|scripts?|configs?|secrets?|passwords?|tables?|columns?"
    "|pages?|changes?|features?|bugs?|fixes|services?|models?|schemas?|templates?|emails?|summar(?:y|ies)"
    "|explanations?|examples?|diagrams?|charts?|prices?|units?|lines?|tasks?|steps?|notes?|paths?|urls?"
    "|links?|sources?|claims?|quotes?")
"""Things that an agent makes, so that a rule about all of them is a rule for it."""


PROJECT = (r"(?:project|repo(?:sitory)?|code ?base|app|application|product|team|company|document|report|book"
    r"|site)")
_ONWARD = (r"from now on(?:wards?)?|from (?:here|today) on(?:wards?)?(?: out)?|from (?:this|that) (?:point"
    r"|moment) (?:on|forward)(?:wards?)?|(?:going|moving) forwards?|henceforth|hereafter|starting (?:now"
    r"|today)|at all times")
_PRINCIPLE = (r"as a (?:general )?(?:rule|principle)|on principle|by (?:default|convention)|in general"
    r"|generally")
_FOR_NOW = r"for (?:now|the time being|the moment)|temporarily"

# --- features of a clause -------------------------------------------------------------------------

FEATURES: dict[str, re.Pattern[str]] = {
    # The demand is meant to last.
    "standing": compiled(rf"\b(?:{_ONWARD}|without exception|no matter what|until further notice"
        rf"|in all (?:your|future)|for all future|for the rest of (?:this|the|our) (?:session|conversation"
        rf"|project|chat))\b|^(?:(?:(?:please )?note|remember|keep in mind|bear in mind|and|also|but|so"
        rf"|please),? (?:that )?)*(?:in (?:the )?future|{_PRINCIPLE}|permanently)\b"),
    # The same at the end of an order that could be one piece of work.
    "later": compiled(rf"\b(?:in (?:the )?future|{_PRINCIPLE}|always)\s*[.!]*$"),
    "principle": compiled(rf"^(?:\w+,? (?:that )?){{0,3}}?(?:{_PRINCIPLE})\b"),
    # The same for a ban.
    "ever": compiled(r"\bever\b(?! since)|\bagain\b|\bany ?more\b|\bunder (?:no|any) circumstances?\b"
        r"|\bat any time\b|\bin any (?:case|file|way)\b"),
    "for_now": compiled(rf"\b(?:{_FOR_NOW}|for (?:today|this week|this sprint|this session)"
        rf"|as a (?:temporary|stopgap) \w+|this (?:week|weekend|sprint|month|quarter|iteration|release))\b"),
    "until": compiled(r"\b(?:until|till|'til|as long as|while we(?:'re| are))\s"),
    # It is about things still to be made.
    "any_new": compiled(r"\b(?:any|every|each)(?: of the)? (?:new|further|additional|future|subsequent)\b"
        r"|\b(?:all|your) (?:future|subsequent)\b|\bnew(?:ly)? (?:created|added|written) \w+s\b"),
    "universal": compiled(r"\b(?:all|every|each|any|everywhere|anywhere|everything|anything|whatever"
        r"|wherever)\b"),
    # It points to the thing at hand, so it is one piece of work, not a rule.
    "deictic": compiled(r"\b(?:this|that|these|those|it|them|here|above|below|now(?!adays)|yet|today|tonight"
        r"|tomorrow|already|first|next|then|last(?!-)|current|currently|the (?:one|ones|first|second|third"
        r"|latter|former|following|same|other|existing|change|changes|rest)|(?:option|step|item|point|number"
        r"|part|phase|plan) [\da-e]\b|#\d+|your last|again in)\b|\bthe (?:\w+ )?(?:test|function|method"
        r"|class|file|branch|pr|commit|error|bug|server|script|app|button|page|build|issue)\b"),
    "question": compiled(r"\?\s*[\"')\]]*$"),
    "polite_question": compiled(r"^(?:so |and |but |also |then |please |though |, )*(?:can|could|would|will"
        r"|may) (?:you|we|i ask you to)(?: please| kindly)?\s"),
    "artefact": compiled(rf"\b(?:{ARTEFACTS})\b"),
    "never_word": compiled(r"\bnever\b"),
    "always_word": compiled(r"\b(?:always|never|only|do not|don't|all)\b"),
    "negated": compiled(r"\b(?:never|not|don't|no|avoid|without|stop|nothing|none)\b"),
    "soft": compiled(r"\b(?:should|might|could|ideally|probably|maybe|perhaps|i think|i guess|would be)\b"),
    "definite": compiled(r"\b(?:the|my|our|your)\b"),
    "strict": compiled(r"\b(?:must not|mustn't|may not|not allowed|not supposed|strictly)\b"),
    "needs": compiled(r"\b(?:needs?|requires?|gets?)\b(?! to\b)"),
    "your": compiled(r"^your\b"),
    "we_frame": compiled(r"^(?:we|everyone)\b"),
    "lets": compiled(r"\blet's\b"),
    "in_project": compiled(rf"^(?:in|for|throughout|within) (?:this|our|the) (?:whole |entire )?{PROJECT}\b"),
    # "Padding/shadows" may be two things. It is a folder if the words mention its contents, a slash follows,
    # or it is a usual place for sources.
    "a_folder": compiled(r"/(?![\w.@-])|\b(?:folder|directory|dir|in|inside|under|below|within|out of"
        r"|hands off)\b|ˣ|(?<![\w/])\.?/?(?:src|libs?|apps?|packages|pkg|internal|docs?|tests?|vendor"
        r"|third_party|scripts|tools|configs?|build|assets|public|static|data|migrations|infra)/"),
    "this_work": compiled(r"^\W*(?:just|only|then)\b|\b(?:yet|only|this time|in this (?:pr|task|change"
        r"|commit|step|round)|others?|rest|same|if|when|once|while|after|before)\b"),
    # It depends on something that the agent does, or is asked, again and again.
    "recurs": compiled(r"\b(?:when(?:ever)?|while|(?:every|each|any) ?time) (?![^,]*\b(?:this|that|these"
        r"|those|it|them)\b)(?:(?:you|we)(?:'re| are)? (?!(?:done|finish\w*|ready|happy|get|got|have|are"
        r"|work|complete\w*)\b)\w+|i(?:'m| am)? (?:ask|say|tell|request|mention|talk|send|give)\w*|asked"
        r"|(?:writ|answer|reply|respond|talk|speak|discuss|explain|refactor|committ|nam|review|document"
        r"|summari[sz]|cod|cit|quot|describ|translat|draft|format|plan|suggest|debugg|test)ing)\b"),
}

LASTING_VERB = compiled(r"^(?:use|write|prefer|keep|follow|format|name|document|indent|avoid|stick|answer"
    r"|reply|respond|speak|annotate|spell|sort)\b")
"""Verbs that order a manner, not one piece of work, after the name of a file type or the project."""

# --- words before a demand that are not part of it ------------------------------------------------

LEAD_INS = compiled(r"^(?:(?:so|and|but|though|also|ok|okay|yes|yeah|yep|no(?=\s*[,;:!.-])|well|then|please"
    r"|pls|plz|just|btw|by the way|fyi|hey|hi|oh|hmm|right|thanks|thank you|great|good|cool|perfect|nice"
    r"|sure|actually|again|in addition|additionally|furthermore|moreover|finally|lastly|firstly|secondly"
    r"|remember(?! to\b| that\b| you\b)|reminder|important|note(?: that)?|attention|nb|ps|p\.s|new rule"
    r"|rule(?: \d+)?|one (?:more|other|last) (?:thing|rule)|one thing|another thing|two things|first of all"
    r"|for the record|to be clear|like i said|as i said|i(?:'ll| will| must| have to)? remind you(?: of"
    r"| that)?|i repeat|once more|in that case|because of that|therefore|hence|claude|assistant|agent"
    r"|everyone|dear agent|kindly|seriously|honestly|look|listen)(?:\s*[,:;!.–—-]+\s*|\s+|$))+")

LABEL = compiled(r"^(?!(?:\S+ ){0,4}?\S*(?:problem|bug|issue|question|error|expected"
    r"|example))(?:[\w'./;#-]+[ \t]+){0,4}[\w'./;#-]+:[ \t]+(?=(?:all|every|each|any|no)\b)")
"""A label before a demand on all of a kind ("Requirement: every endpoint …")."""

ORDER_FRAME = compiled(r"^(?:(?:can|could|would|will) (?:you|we)(?: please| kindly)?|(?:(?:make"
    r"|be) (?:absolutely )?sure|ensure|remember|keep in mind)(?: that)?(?: you| we| it)?(?: to)?|(?:you|we"
    r"|agents?|everyone) (?:should|must|shall|(?:needs?|have|has|are|ought) to)|i(?:'d"
    r"| would) (?:really )?(?:like|love|prefer|appreciate)(?: it)?(?: for| if)? you(?: to| would| could)?"
    r"|i(?:'d| would) (?:like|love) (?:us )?to|i (?:really )?(?:want|need|expect|ask|require|urge"
    r"|tell) (?:that )?you(?: to)?|please|just|it(?:'s| is) (?:very |really )?(?:important|essential|vital"
    r"|crucial) (?:to|that you|you)|let's)\s+")
"""Words that may precede the verb of an order; removed repeatedly before the rows are tried."""

VETOES = compiled(r"^(?:never ?mind|(?:never|always) (?:again will|wondered|wanted|say never|fear|heard"
    r"|ever have)|(?:don'?t|do not) (?:worry|forget|bother|mind|know|think|see|need|you|we|i|get me wrong"
    r"|understand|care|have|be (?:sorry|shy|afraid)|hesitate|panic|want to|wait|stop|look)\b"
    r"|no (?:improvement|progress|effect|success|response|reply|wait|problems?|worr(?:y|ies)|idea|need"
    r"|changes?|thanks?|thank|rush|hurry|issues?|errors?|matter|one|longer|doubt|way|luck|further|output"
    r"|difference|other|big deal|reason|i|it|that|this|the|we|you|not|don't)\b|stop (?:here|there|it|now"
    r"|the)\b)")
"""Idioms and one-off orders that begin like a demand."""

SAYING = compiled(r"\bas (?:my|his|her|our|their|the|they|people|some)\b[^,;]{0,40}?\b(?:used to say"
    r"|(?:likes?|loved?) to say|always (?:says?|said)|would say|goes|once said|puts? it|says?|said)\b")
"""Marks a sentence as the words of somebody else."""

TO_BE_RECORDED = compiled(r"\b(?:add|create|make|save|store|write|record|put|update"
    r"|note)\b[^.;?!]{0,60}?\b(?:rules?|memor(?:y|ies)|guidelines?|(?:claude|agents)\.md|(?:cursor|copilot"
    r"|project|agent|your) (?:rules|instructions|notes))(?: (?:files?|entry|for|about|with|of|on|so"
    r"|recording|describing|capturing|stating|reflecting|to (?:record|capture|reflect|remember|cover)"
    r"|in [\w./ˣ]{2,40})){0,3} (?:this|that(?! \w)|these|it\b|(?:my|the) preference)|\b(?:record|save|store"
    r"|remember|memori[sz]e|write down|keep) (?:this|that|these|my preference)\b[^.;?!]{0,30}?\b(?:memory"
    r"|memories|rules?|(?:the )?future|next time|preference|from now on|going forward)\b|^(?:(?:and|so"
    r"|please),? )*(?:remember|memori[sz]e) (?:this|that)(?: please)?\s*[.!]*$")
"""Asks to record what was stated last, so that it lasts."""

COMMA_LEAD = compiled(r"^(?P<lead>(?:(?:when(?:ever)?|while|if|every time|each time|next time|any ?time|in"
    r"|for|on|under|inside|within|until|once|after|before|by|with|as|from|going|moving|henceforth|hereafter"
    r"|temporarily|generally)\b[^,]{0,160}?))(?:,\s*|(?<!\bthat)(?<!\bwhich)(?<!\bwho)\s+(?=please\b"
    r"|always\b|you (?:should|must)\b|(?<!\bwe )(?<!\bi )(?<!\bthey )(?<!\bif you )(?:never|don't"
    r"|do not)\b))")
"""A condition, place or time before an order, up to its comma or to the first word of the order."""

STANDING_LEAD = compiled(rf"^(?:{_ONWARD}|{_PRINCIPLE}|{_FOR_NOW}|in (?:the )?future|this (?:week|weekend"
    rf"|sprint|month|quarter)(?=,))\b[\s,:]*")

SOFTENED = compiled(r"^(?:\w+ ){0,4}?(?:try to|ideally|preferably|if possible)\b")
"""An order that is only a wish."""
# fmt: on
