"""The vocabulary of demands: word lists, and the features of a clause. Tables to read and to extend.

Patterns are matched without regard to case against clauses of bounded length. None has a repetition inside a
repetition that could match the same text in two ways.
"""

import re
from typing import Literal

from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.words import vocabulary

Modality = Literal["must", "must_not", "prefer"]
Certainty = Literal["active", "candidate"]


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that ignores case.

    ``[^.;!?]`` and similar sets in it run to the end of a sentence.
    """
    # "[^.;!?]" means "to the end of the sentence"; a dot inside a name ("requirements.txt") does not end it.
    for stops in (".;!?", ".,;!?", ".?!", ".!?"):
        pattern = pattern.replace(f"[^{stops}]", rf"(?:[^{stops}]|\.(?=\w))")
    return on_use(pattern, re.IGNORECASE)


# --- vocabulary -----------------------------------------------------------------------------------

NO_BASE_VERB = vocabulary(
    """
    a an the this that these those my your our his her its their i you he she it we they one two not no of
    in on at to for with from by as and or but if so such same been had has have was were is are am be's did
    done does got gotten seen saw knew known thought felt heard found went gone came took taken made gave
    given wrote written ran said told met left lost kept won held stood understood paid spent built sent
    meant read's ready good great nice bad fun easy hard best better worse more less most least very too
    quite really just only also still yet again before after even mind there here when where what who why
    how because nothing something anything everything people someone anyone everyone true false null able
    happy sad sure right wrong available green red open empty late early there's it's i'm i've we've you're
    they're worked failed happened existed will would can could should may might must shall
    """
)
"""Words after "always" or "never" that show that no order follows.

Examples: "always the same error", "never got it to work".
"""

BASE_VERBS_IN_S = vocabulary("focus alias bias canvas has")
BASE_VERBS_IN_ED = vocabulary(
    "need embed feed seed proceed exceed succeed speed shed shred bleed breed heed weed"
)
BASE_VERBS_IN_ING = vocabulary("bring ring ping string sing bring")

POLICY_VERBS = (
    "use|write|prefer|keep|follow|format|name|put|place|document|import|indent|answer|reply|respond|speak"
    "|talk|address|call|include|add|run|test|check|verify|confirm|ask|commit|log|type|annotate|give|show"
    "|provide|explain|cite|quote|mention|stick|stay|be|make|prefix|suffix|sign|tag|mark|decorate|wrap|sort"
    "|group|spell|round|state|list|start|end|begin|finish|leave|skip|omit|avoid|remember|consider|treat"
    "|assume|default|adhere|limit|restrict|validate|handle|return|raise|fix|update|create|store|save|apply"
    "|attach|report|summari[sz]e|structure|lint|review|read|consult|go|favou?r|rely|pin|render|push|merge"
    "|say|tell|refer|link|ensure|make sure|do|have|set|define|declare|express|translate|abbreviate"
    "|capitali[sz]e|highlight|prioriti[sz]e|bump|squash|rebase|generate|split|separate|opt|choose|pick"
)
"""Verbs of orders that can be a rule."""

LASTING_PLACE_VERBS = (
    "use|write|prefer|keep|follow|format|name|document|indent|avoid|stick|answer|reply|respond|speak"
    "|annotate|spell|sort"
)
"""Verbs that order a manner, not one piece of work, after the name of a file type or the project."""

HABITS = (
    "adding|using|suggesting|apologi[sz]ing|creating|writing|putting|proposing|recommending|asking|saying"
    "|calling|generating|including|repeating|mentioning|making|giving|inserting|introducing|wrapping"
    "|starting|ending|explaining|summari[sz]ing|committing|pushing|changing|renaming|removing|deleting"
    "|reformatting|importing|ignoring|guessing|assuming|offering|praising|leaving|hardcoding|mocking"
    "|catching|swallowing|printing|inventing|making up|over-?engineering|touching"
)
"""What users ask an agent to stop when it has done it more than once."""

IDEA_HABITS = (
    "suggesting|proposing|recommending|offering|bringing up|mentioning|pushing|pitching|asking (?:about|for)"
)
IDEA_VERBS = "suggest|propose|recommend|offer|bring up|push|pitch"

ARTEFACTS = (
    "functions?|methods?|class(?:es)?|modules?|files?|tests?|commits?|commit messages?|endpoints?|routes?"
    "|handlers?|variables?|names?|imports?|comments?|docstrings?|strings?|quer(?:y|ies)|migrations?"
    "|components?|constants?|types?|fields?|api calls?|calls?|errors?|exceptions?|logs?|log lines?|branch"
    "(?:es)?|pull requests?|prs?|answers?|responses?|repl(?:y|ies)|messages?|texts?|documents?|reports?"
    "|chapters?|sections?|paragraphs?|headings?|sentences?|titles?|dates?|numbers?|amounts?|figures?|code"
    "|dependenc(?:y|ies)|packages?|scripts?|configs?|secrets?|passwords?|tables?|columns?|pages?|changes?"
    "|features?|bugs?|fixes|services?|models?|schemas?|templates?|emails?|summar(?:y|ies)|explanations?"
    "|examples?|diagrams?|charts?|prices?|units?|lines?|tasks?|steps?|notes?|paths?|urls?|links?|sources?"
    "|claims?|quotes?"
)
"""Things that an agent makes, so that a rule about all of them is a rule for it."""

KINDS = (
    "tests|functions|methods|classes|modules|files|commits|commit messages|endpoints|routes|handlers"
    "|variables|names|imports|comments|docstrings|strings|queries|migrations|components|constants|types"
    "|errors|exceptions|logs|branches|pull requests|prs|answers|responses|replies|messages|documents|reports"
    "|sections|paragraphs|headings|dates|numbers|dependencies|packages|scripts|secrets|passwords|services"
    "|models|schemas|templates|emails|summaries|explanations|examples|docs|flags|commands|agents|hooks"
    "|fixtures|helpers"
)
"""The same in the plural, where no article limits them to the ones at hand ("tests should …")."""


ALL_OF_THEM = compiled(
    rf"\b(?:to|in|for|from|into|inside|within|of|on) (?:the|our|your|my|his|their) (?:[\w-]+ )?(?:{KINDS})\b"
)
"""A place that covers a whole kind ("to the tests"), not one thing at hand."""

# --- features of a clause -------------------------------------------------------------------------

FEATURES: dict[str, re.Pattern[str]] = {
    # The demand is meant to last.
    "standing": compiled(
        r"\b(?:from now on(?:wards?)?|from here on(?: out)?|from this (?:point|moment) (?:on|forward)"
        r"(?:wards?)?|from today on(?:wards?)?"
        r"|going forwards?|moving forwards?|henceforth|hereafter|at all times|without exception"
        r"|no matter what|until further notice"
        r"|starting (?:now|today)|in all (?:your|future)|for all future|for the rest of (?:this|the|our)"
        r" (?:session|conversation|project|chat))\b"
        r"|^(?:(?:(?:please )?note|remember|keep in mind|bear in mind|and|also|but|so|please),? (?:that )?)*"
        r"(?:in (?:the )?future|as a (?:general )?rule|by default|in general|generally|permanently)\b"
    ),
    # The same for a ban.
    "ever": compiled(
        r"\bever\b(?! since)|\bagain\b|\bany ?more\b|\bunder (?:no|any) circumstances?\b|\bat any time\b"
        r"|\bin any (?:case|file|way)\b"
    ),
    "for_now": compiled(
        r"\b(?:for (?:now|the time being|the moment|today|this week|this sprint|this session)|temporarily"
        r"|as a (?:temporary|stopgap) \w+"
        r"|this (?:week|weekend|sprint|month|quarter|iteration|release))\b"
    ),
    # It applies from now on, and is not just a remark about the current state.
    "onward": compiled(
        r"\b(?:from now on(?:wards?)?|from here on(?: out)?|from (?:this|that) (?:point|moment)"
        r" (?:on|forward)|from today on(?:wards?)?|starting (?:now|today)"
        r"|(?:going|moving) forwards?|henceforth|hereafter|until further notice)\b"
    ),
    "until": compiled(r"\b(?:until|till|'til|as long as|while we(?:'re| are))\s"),
    # It is about things still to be made.
    "any_new": compiled(
        r"\b(?:any|every|each)(?: of the)? (?:new|further|additional|future|subsequent)\b|\b(?:all|your)"
        r" (?:future|subsequent)\b"
        r"|\bnew(?:ly)? (?:created|added|written) \w+s\b"
    ),
    "you_make": compiled(
        r"\b(?:any|every|each|all|whatever|everything|anything|new)\b.{0,60}\b(?:you|we) (?:\w+ly )?"
        r"(?:write|create|add|make|generate"
        r"|produce|change|touch|edit|notice|find|see|come across|encounter|send|give|introduce|build)\b"
    ),
    "universal": compiled(
        r"\b(?:all|every|each|any|everywhere|anywhere|everything|anything|whatever|wherever)\b"
    ),
    # It points to the thing at hand, so it is one piece of work, not a rule.
    "deictic": compiled(
        r"\b(?:this|that|these|those|it|them|here|above|below|now(?!adays)|yet|today|tonight|tomorrow"
        r"|already|first|next|then|last(?!-)"
        r"|current|currently|the (?:one|ones|first|second|third|latter|former|following|same|other|existing"
        r"|change|changes|rest)"
        r"|(?:option|step|item|point|number|part|phase|plan) [\da-e]\b|#\d+|your last|again in)\b"
        r"|\bthe (?:\w+ )?(?:test|tests|function|method|class|file|branch|pr|commit|error|bug|server|script"
        r"|app|button|page|build|issue)\b"
    ),
    "question": compiled(r"\?\s*[\"')\]]*$"),
    "polite_question": compiled(
        r"^(?:so |and |but |also |then |please |though |, )*(?:can|could|would|will|may)"
        r" (?:you|we|i ask you to)(?: please| kindly)?\s"
    ),
}

DONE_LEAD = compiled(
    r"^(?:you(?:'re| are| have|'ve)? |we(?:'re| are| have|'ve)? |it(?:'s| is)? |that(?:'s| is)? |everything"
    r"(?:'s| is)? )?"
    r"(?:all |fully |both )?(?:done|finish(?:ed)?|ready|complete[ds]?|happy|works?|passes|pass|got|back"
    r"|merged|fixed|green)\b"
)
"""A condition that becomes true once ("when you're done, …"): an order after it is one piece of work."""

AGENT_LEAD = compiled(
    r"^(?:(?:you(?:'re| are)?|we(?:'re| are)?) (?:ever )?\w+"
    r"|i(?:'m| am)? (?:ask|asking|say|tell|request|mention|talk|talking|want|send|give|write|discuss"
    r"|need)\w*|asked\b|someone asks"
    r"|(?:writing|answering|replying|responding|talking|speaking|discussing|explaining|refactoring"
    r"|committing|naming|reviewing|documenting"
    r"|summari[sz]ing|coding|citing|quoting|describing|translating|debugging|programming|drafting|formatting"
    r"|reporting|planning|suggesting)\b"
    r"|(?:adding|creating|changing|updating|modifying|editing|touching|testing|deleting|removing|renaming"
    rf"|importing|generating|making|implementing)\b.{{0,40}}\b(?:{ARTEFACTS})\b)"
)
"""A recurring condition on the agent's own work ("when writing about …", "when I ask about …").

"When creating a user, send an email" is about the program being written, and not a rule for the agent.
"""

PROCESS_VERB = compiled(
    r"^(?:keep (?:going|trying|working|at it|iterating)|run|rerun|re-run|wait|continue|repeat|retry|try"
    r"|iterate|loop|work|hold|go on"
    r"|carry on|pause|leave it|let's|stay|start|stop|poll|watch|monitor|proceed)\b"
)
"""Verbs that, with "until", give the end of one piece of work, not of a rule."""

# --- words before a demand that are not part of it ------------------------------------------------

LEAD_INS = compiled(
    r"^(?:(?:so|and|but|though|also|ok|okay|yes|yeah|yep|no(?=\s*[,;:!.-])|well|then|please|pls|plz|just|btw"
    r"|by the way|fyi|hey|hi|oh|hmm|right|thanks|thank you|great|good"
    r"|cool|perfect|nice|sure|actually|again|in addition|additionally|furthermore|moreover|finally|lastly"
    r"|firstly|secondly|remember(?! to\b| that\b| you\b)|reminder"
    r"|important|note(?: that)?|attention|nb|ps|p\.s|new rule|rule(?: \d+)?|one (?:more|other|last)"
    r" (?:thing|rule)|one thing|another thing|two things"
    r"|first of all|for the record|to be clear|like i said|as i said|i(?:'ll| will| must"
    r"| have to)? remind you(?: of| that)?|i repeat|once more|in that case|because of that|therefore|hence"
    r"|claude|assistant|agent|everyone|dear agent|kindly|seriously|honestly|look|listen)(?:\s*[,:;!.–—-]+\s*"
    r"|\s+|$))+"
)

LABEL = compiled(
    r"^(?!(?:\S+ ){0,4}?\S*(?:problem|bug|issue|question|error|reason|cause|result|idea|goal|expected|actual"
    r"|status|fact|todo|task|context|background|hypothesis|theory|assumption|example))"
    r"(?:[\w'./;#-]+[ \t]+){0,4}[\w'./;#-]+:[ \t]+(?=(?:all|every|each|any|no)\b)"
)
"""A label before a colon that announces a demand on all of a kind.

Examples: "Requirement: every endpoint …", "Tests: all names …".
"""

ORDER_FRAME = compiled(
    r"^(?:(?:can|could|would|will) (?:you|we)(?: please| kindly)?\s+|(?:make|be) (?:absolutely )?sure"
    r"(?: that)?(?: you| to| we| it)?(?: to)?\s+"
    r"|ensure(?: that)?(?: you| we)?\s+|remember(?: that)?(?: you| to| we)?(?: to)?\s+|keep in mind"
    r"(?: that)?(?: you| to)?(?: to)?\s+"
    r"|(?:you|we|agents?|everyone) (?:should|must|need to|needs to|have to|has to|are to|ought to|shall)\s+"
    r"|i(?:'d| would) (?:really )?(?:like|love|prefer|appreciate)(?: it)?(?: for)?(?: if)? you (?:to |would "
    r"|could )?|i(?:'d| would) (?:like|love) (?:us )?to\s+"
    r"|i (?:really )?(?:want|need|expect|ask|require|urge|tell) (?:that )?you (?:to )?"
    r"|i(?:'m| am) asking you to\s+|please\s+|just\s+"
    r"|it(?:'s| is) (?:very |really )?(?:important|essential|vital|crucial) (?:to|that you|you)\s+|let's\s+)"
)
"""Words that may precede the verb of an order; removed repeatedly before the rows are tried."""

VETOES = compiled(
    r"^(?:never ?mind|never again will|always wondered|always wanted|never say never|never fear|never heard"
    r"|never ever have"
    r"|don'?t (?:worry|forget|bother|mind|know|think|see|need|you|we|i|get me wrong|understand|remember"
    r"|recall|care|have|be (?:sorry|shy|afraid)"
    r"|hesitate|panic|ask me why|want to|wait|stop|look|sweat|quote me)\b"
    r"|do not (?:worry|forget|know|think|see|need|hesitate|understand)\b"
    r"|no (?:improvement|progress|effect|success|response|reply|man|dude|buddy|wait|problem|worries|worry"
    r"|idea|need(?! to\b.{3,60}\b(?:each|every|any|all|between|constantly|server|app)\b)|changes?|thanks?"
    r"|thank|rush|hurry|issues?|errors?|matter|one|longer|doubt|way|luck|further|output"
    r"|difference|other|offen[cs]e|big deal|reason|comment|diff|clue|such|wonder|surprise|i|it|that|this|the"
    r"|we|you|not|don't|revert|write|just)\b"
    r"|stop (?:here|there|it|now|the|hook|hooks|working|running|waiting|session)\b)"
)
"""Idioms and one-off orders that begin like a demand."""

SAYING = compiled(
    r"\bas (?:my|his|her|our|their|the|they|people|some)\b[^,;]{0,40}?\b(?:used to say"
    r"|(?:likes?|loved?) to say|always (?:says?|said)|would say|goes|once said|puts? it|says?|said)\b"
)
"""Marks a sentence as the words of somebody else."""

TO_BE_RECORDED = compiled(
    r"\b(?:add|create|make|save|store|write|record|put|update|note)\b[^.;?!]{0,60}?\b"
    r"(?:rules?|memor(?:y|ies)|guidelines?|(?:claude|agents)\.md|(?:cursor|copilot|project|agent|your)"
    r" (?:rules|instructions|notes))"
    r"(?: (?:files?|entry|for|about|with|of|on|so|recording|describing|capturing|stating|reflecting"
    r"|to (?:record|capture|reflect|remember|cover)|in [\w./ˣ]{2,40})){0,3} (?:this|that(?! \w)|these|it\b|"
    r"(?:my|the) preference)"
    r"|\b(?:record|save|store|remember|memori[sz]e|write down|keep) (?:this|that|these"
    r"|my preference)\b[^.;?!]{0,30}?\b(?:memory|memories|rules?|(?:the )?future|next time|preference"
    r"|from now on|going forward)\b"
    r"|^(?:(?:and|so|please),? )*(?:remember|memori[sz]e) (?:this|that)(?: please)?\s*[.!]*$"
)
"""Asks to record what was stated last, so that it lasts."""

RHETORICAL = compiled(r"^(?:can|could|will|would|do|did) (?:you|we) (?:never|not ever)\b(?!.*\bplease\b)")
"""A question ("can you never stop?"), where an order would say "please" or how long it applies."""

# More features, searched in the whole clause.
FEATURES |= {
    "principle": compiled(
        r"^(?:\w+,? (?:that )?){0,3}?(?:as a (?:general )?(?:rule|principle)|on principle|by default"
        r"|in general|generally|by convention)\b"
    ),
    "artefact": compiled(rf"\b(?:{ARTEFACTS})\b"),
    "never_word": compiled(r"\bnever\b"),
    "always_word": compiled(r"\b(?:always|never|only|do not|don't|all)\b"),
    "soft": compiled(r"\b(?:should|might|could|ideally|probably|maybe|perhaps|i think|i guess|would be)\b"),
    "strict": compiled(r"\b(?:must not|mustn't|may not|not allowed|not supposed|strictly|under any)\b"),
    "each_time": compiled(
        r"\b(?:whenever|every (?:single )?time|each time|any ?time) (?:you|we|i (?:ask|say|tell|request"
        r"|mention|send|give|write|want|talk))\b"
    ),
    "later": compiled(r"\b(?:in (?:the )?future|as a (?:general )?rule|by default|generally)\s*[.!]*$"),
    "your": compiled(r"^your\b"),
    # "Padding/shadows" may be two things. It is a folder if the words mention its contents, a slash follows,
    # or it is a usual place for sources.
    "a_folder": compiled(
        r"/(?![\w.@-])|\b(?:folder|directory|dir)\b|\b(?:in|inside|under|below|within|out of|hands off)\b|ˣ"
        r"|(?<![\w/])\.?/?(?:src|libs?|apps?|packages|pkg|cmd|internal|docs?|tests?|specs?|vendor"
        r"|third_party|scripts|tools|configs?|build|dist|bin|assets|public|static|data|db|migrations|deploy"
        r"|infra)/"
    ),
    # "Cannot" may just state a fact.
    "may_be": compiled(r"\b(?:can|could|might)\b"),
    "this_work": compiled(
        r"^\W*(?:just|only|then|while)\b|\b(?:yet|only|this time|in this (?:pr|task|change|commit|step"
        r"|round)|(?:the )?(?:other|rest|others|same))\b|\b(?:while|when) (?:you(?:'re| are)? )?"
        r"(?:fix|do|work)ing\b"
    ),
    "lets": compiled(r"\blet's\b"),
    "we_frame": compiled(r"\b(?:we|everyone) (?:should|must|need|have|ought|shall|are)\b"),
    "all_of_them": ALL_OF_THEM,
    "negated": compiled(r"\b(?:never|not|don't|no|avoid|without|stop|nothing|none)\b"),
}

BODY_FEATURES: dict[str, re.Pattern[str]] = {
    "lasting_verb": compiled(rf"^(?:{LASTING_PLACE_VERBS})\b"),
    # An order about one file is one piece of work, and so is one to explain.
    "a_file": compiled(
        r"^(?:format|document|sort|name|write|follow|annotate|indent|spell)\b (?:(?:the|my|our|up) )*"
        r"(?:ˣ+|[\w./-]*\w\.[a-z][a-z0-9]{0,4})(?![\w./])(?! files?\b)"
    ),
    "explains": compiled(
        r"^(?:explain|describe|tell|show|document|mention|write|add|say|clarify|include|list|state"
        r"|summari[sz]e)\b.{0,40}?\b(?:what|how|why|where|which|whether)\b.*\bwhen i (?:want|need)\b"
    ),
}
"""Features searched in the order alone, without its leads."""


DETERMINED = vocabulary(
    """
    the this that these those it them him her us me my your our his their its a an so too yet now here there
    just to at on in into from with for up down out off back either both one much anything everything
    something
    """
)
"""Words that show that one thing is meant, and not a kind of things."""

PROJECT_LEAD = compiled(
    r"^(?:in|for|throughout|within) (?:this|our|the) (?:whole |entire )?(?:repo(?:sitory)?|project"
    r"|code ?base|document|report|book|paper|thesis|app)\b"
)

COMMA_LEAD = compiled(
    r"^(?P<lead>(?:(?:when(?:ever)?|while|if|every time|each time|next time|any ?time|in|for|on|under|inside"
    r"|within|until|once|after|before|by|with|as|from|going|moving"
    r"|henceforth|hereafter|temporarily|generally)\b[^,]{0,160}?))(?:,\s*|(?<!\bthat)(?<!\bwhich)"
    r"(?<!\bwho)\s+(?=please\b|always\b|you (?:should|must)\b|(?<!\bwe )(?<!\bi )(?<!\bthey )(?<!\bif you )"
    r"(?:never|don't|do not)\b))"
)
"""A condition, place or time before an order, up to its comma or to the first word of the order."""

STANDING_LEAD = compiled(
    r"^(?:from now on(?:wards?)?|going forwards?|moving forwards?|henceforth|hereafter|in (?:the )?future"
    r"|for (?:now|the time being|the moment)|by default|temporarily"
    r"|as a (?:general )?rule|at all times|from here on(?: out)?|from (?:this|that) (?:point|moment)"
    r" (?:on|forward)|starting (?:now|today)|this (?:week|weekend|sprint|month|quarter)(?=,)|in general"
    r"|generally)\b[\s,:]*"
)

CONDITION = compiled(
    r"^(?P<word>when|whenever|while|if|every time|each time|any ?time|once|after|before)\s+(?P<what>.+)"
)
TRAILING_CONDITION = compiled(
    r"\b(?P<word>whenever|when|every time|each time|any ?time)\s+(?P<what>.{3,160})$"
)
SOFTENED = compiled(r"^(?:\w+ ){0,4}?(?:try to|ideally|preferably|if possible)\b")
"""An order that is only a wish."""
