"""Patterns that tell the user's own words from the words of others: closed classes, no names of sources."""

import re
from typing import Literal

from agentx.synthesis.language.patterns import on_use

NAME = "ˣ"
"""Replaces each character of an inline quote: a letter to every pattern, and part of no word."""

Voice = Literal["own", "doubtful", "others"]
"""Whose words follow: the user's, unclear, or somebody else's."""

_DET = "(?:the|an?|my|our|your|his|her|their|its|this|that|these|those|some|one|another)"
_URL = r"(?:(?:https?://|www\.)[^\s]+|\b[\w-]+\.(?:com|org|net|io|dev|edu|gov|to|ai)\b)"
_TEXT = (
    r"(?:read\s?me|docs|documentation|web ?sites?|web ?pages?|pages?|articles?|blogs?|posts?|wiki|manuals?"
    r"|handbook|playbook|runbook|specs?|specification|rfc|standard|papers?|book|chapter|paragraph|sentences?"
    r"|passage|quotes?|quotation|excerpt|snippet|contract|polic(?:y|ies)|changelog|release notes|tutorial"
    r"|forums?|newsletter|screen|banner|poster|label|sticker|e?-?mails?|letters?|message|comments?|review"
    r"|feedback|tickets?|issue|thread|channel|chat|transcript|conversation|tweet|minutes|meeting|notes|call"
    r"|talk|report|logs?|output|trace(?:back)?|error|warning|memo|notice|announcement|leaflet|faq|guide"
    r"|answers?|repl(?:y|ies)|responses?|draft|description|summary|linter|compiler|bot|\w+\.(?:md|txt|pdf"
    r"|html|log))"
)
"""A text that others write."""

_NOT_A_SUBJECT = (
    r"(?!(?:(?:i|we|you)(?:'\w+)?|who|which|what|whatever|that|how|where|why|to|or|not|no|if|when|whenever"
    r"|while|unless|until|once|after|before|because|since|please|never|always|don't|do|does|did|can|could"
    r"|would|will|should|must|shall|may|might|let's|let|in|for|like|even|so|as|but|and)(?![\w']))"
)
_WHO = rf"(?:{_NOT_A_SUBJECT}[\w'./#@{NAME}()-]+\s+){{1,6}}?"
_OFTEN = (
    r"(?:(?:also|just|even|once|always|only|has|have|had|recently|often|usually|still|now|explicitly|clearly"
    r"|really|used to)\s+){0,2}"
)
_CLEAR = (
    r"(?:(?:says|said|saying)(?! no to\b)|(?:tell|remind|advise|want|ask)(?:s|ed|d|ing)? (?:me|us|you"
    r"|everyone|people|(?:the"
    r"|my|our) \w+)|told \w+|(?:claim|insist|complain|warn)(?:s|ed)|argue[sd]|swears|swore|declare[sd]"
    r"|announce[sd]|mentioned)"
)
_SAYS = (
    rf"(?:{_CLEAR}|(?:recommend|suggest|instruct|mention|explain|respond|add|ask)(?:s|ed)|(?:answer|comment"
    r"|post|order|remark|command|demand|mail)ed|expects|requires|(?:state|advise|urge)[sd]|noted|replie[sd]"
    r"|tells|writes|wrote|reads|goes|went|thinks|prefers|puts it|has it|(?:keeps?|kept) \w+ing)"
)
_VERB = (
    r"(?! (?:must|should|shall|may|can|are|were|need|will)\b)(?!(?<=ed) (?:in|on|by|at|above|below)\b)(?!\w)"
)
"""Excludes nouns and participles ("all answers must …", "files mentioned in the ticket")."""
_BY = (
    rf"(?:{_SAYS} {_NOT_A_SUBJECT}[\w'./#@{NAME}-]+(?:\s+[\w'./#@{NAME}-]+){{0,5}}|{_WHO}{_OFTEN}(?:{_SAYS}"
    rf"|say|state|recommend)(?: (?:in|on|at|to) [^.,;:!?\n]{{2,40}}| (?:me|us|so|it))?|(?:according to|as "
    rf"per|per|to quote|in the words of|quoting|laut|selon|según) (?!(?:me|my|us)\b)[^.,;:!?\n]{{2,60}})"
)
"""Names a source in an aside."""
_AGAIN = (
    r"^(?:(?:and|but|so|also|then|well|ok(?:ay)?|now|anyway|hm+|oh|yes|no|thanks|thank you|thx|first|second"
    r"|third|hi|hey|hello|btw|fyi|important|today)[\s,.!-]+)*"
)
_ENDS = r"[\s.!)\]]*\Z"

COLON = on_use(rf"[ \u00a0]?[:：](?=\s|\Z|[\"'{NAME}])")
EMPTY_LINE = on_use(r"\n[ \t]*\r?\n")
QUOTED = on_use(rf"[\s,:]*(?:that )?{NAME}{{3,}}(?=[\s.,;:!?)–—-]|\Z)")
"""The attributed words are in quotation marks."""

REPORT = on_use(
    r"(?:\A|(?<=[,;(–—] )|\b(?:and|but|because|since|that|where) )(?:as |apparently |so "
    rf")?{_WHO}{_OFTEN}(?:(?P<clear>{_CLEAR})|{_SAYS}|(?:say|recommend|suggest|state)(?= (?:that"
    rf"|to)\b)){_VERB}|\bi(?:'ve| have)? (?:\w+ )?(?P<heard>read|heard|learn(?:ed|t)|(?:was|been) told|saw"
    rf"|seen|found|got this)\b[^.,;:!?\n]{{0,50}}?(?:,? that\b| to\b)|\A(?:according to|as per"
    r"|quoting)\b(?! (?:me|my|us)\b)",
    re.IGNORECASE,
)
"""Somebody or something says something; the words follow."""

UTTERED = on_use(
    r"^(?!(?:i|we|you|please|let's|so|but|for|when|if|once|after|before|as|all|every|always"
    rf"|never)\b)(?:(?:(?:on|in|at|per) )?{_URL}\s)?[^.,;:!?\n]{{2,160}}?(?:[\w')] (?-i:Always|Never|From "
    r"now on|Going forward|You|All|Every|Each|No|Do not|Don't|Must|Please|Stop|Forget|Ignore|Users|Only"
    rf"|Use)\b|\b(?:\w{{3,}}ed|{_SAYS})(?: (?:that|me|us|back|out|up|(?:the|his|her|my|a) \w+)){{0,2}} "
    r"(?:always|never|from now on|going forward|you (?:must|should|can|may)|do not|don't|must)\b(?! to\b))",
    re.IGNORECASE,
)
"""A sentence within a sentence: a capital letter or an order behind a verb in the third person."""

MENTIONS = on_use(
    r"^(?:but |and |so )?you (?:told|said|wrote|claimed|promised)\b|"
    r"\b(?:imagine|suppose|supposing|assum(?:e|ing)|pretend|hypothetically)\b"
    r"|\b(?:not true|false|wrong|a lie|a myth|unlikely) that\b|\b(?:don't|do not|never|can't|cannot|hardly)"
    r" (?:think|believe|say|claim|accept)\b(?!.*\b(?:need|needs|necessary|required|have to|has to|matters?"
    r"|any ?more|any longer)\b)"
    rf"|^(?:\W*(?:please|can you|could you|then|and|now)\W+)*(?:tell|inform|remind|notify|warn|write|draft"
    r"|explain|assert|translate|say|print|document)\b(?! (?:it|this|that|them|the \w+)? ?(?:again"
    r"|any ?more)\b)"
    rf"|\b(?:let|have) (?:{_DET} )?\w+ know\b|\b(?:assert|state|document|claim|mention|pretend|note)s? that\b"
    r"|\b(?:to|should|must|will|would) (?:say|read|state|print|show|claim)\b|\bsaying\b"
    rf"|\b(?:{_DET} )(?:[\w-]+ ){{0,3}}(?:words?|output|answer|reply|comment|message|policy|rule|position"
    rf"|line"
    r"|text|phrase|sentence|title|header|banner|response|statement)(?: (?:in|on|of|at) [\w ]{1,30})? (?:is"
    r"|was"
    r"|were|are|reads?)\b(?= (?:that )?(?:(?:the|a|an|you|we|it|actually|all|stop|never|always|\w+ing)\b|\w+"
    r" (?:is|are|has|was|were)\b))"
    r"|(?<!\bi )(?<!\bwe )(?<!\bi've )(?<!\bwe've )(?<!\bteam )\b(?:decided|found|reported|announced"
    r"|confirmed|concluded|ruled|agreed|posted|thinks?|believes?|answered"
    r"|replied|claims?|says?|said) that\b"
    r"|^(?:(?!(?:i|we|what|that|team)\b)[\w-]+ ){1,3}(?:decided|thinks?|believes?|answered|replied|claims?"
    r"|says|said|goes|reads?) (?!on\b|to\b|against\b|no to\b|no\W*$)\w"
    r"|^(?:she|he|they|it) (?:goes|go|says|said|reads|was like)\b"
    r"|(?<!\bi )(?<!\bwe )(?<!\bi've )\b(?:tells?|told|telling|informs?|informed|instruct(?:s|ed)|wants?)"
    r" (?:(?!to\b)[\w-]+ ){1,3}(?:that|to)\b"
    r"|\bnot like\b|\bas if\b|\bi (?:hate|regret|resent|doubt|fear|deny) (?:that|when|it when|it that|how)\b"
    r"|\b(?:in|for|on|at) (?:their|his|her|the (?:other|upstream|old|original|public|vendor|forked|sister))"
    r" (?:\w+ )?(?:repo(?:sitory)?|project|fork|team|product|company|workspace|code ?base)\b|\bupstream\b"
    r"|\bwhen(?:ever)? (?:someone|somebody|anyone|people|they|he|she|an? \w+) (?:say|says|ask|asks|claim"
    r"|claims)\b",
    re.IGNORECASE,
)
"""A sentence that mentions words, asks to write some, supposes something or is about another project."""

PARAGRAPH = on_use(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")
PROSE_LINE = on_use(r"^(?![ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t])[ \t]*\S", re.MULTILINE)
"""A line that is not a point of a list."""

HEADING = on_use(r"^[ \t]{0,3}#{1,6}[ \t]+\S|^[ \t]*\S[^\n]*\n[ \t]{0,3}(?:=|-){3,}[ \t]*$", re.MULTILINE)
"""A heading in Markdown."""

DIRECTIVE = on_use(
    r"\b(?:always|never|must(?:n't)?|should(?:n't)?|shall|don't|do not|ought|from now on|no longer|(?:have"
    r"|has|need|needs) to|not to|stop|avoid|make sure|you can|forget|ignore)\b|^\s*(?:(?:me|us|you|everyone"
    r"|that|to)\s+)*(?:no|use|keep|prefer|run|write|add)\b",
    re.IGNORECASE,
)
"""The report is an order, not news, so that further orders after it are reported, too."""

DEMANDS = on_use(r"\b(?:always|never|must(?:n't)?|from (?:now|here) on|don't|do not)\b", re.IGNORECASE)

_PASTED = on_use(
    r"(?:^|[.!?,]\s+|\b(?:please|you|to) )(?:summari[sz]e|translate|proof-?read|rephrase|paraphrase|rewrite"
    rf"|reword|correct|analy[sz]e|explain|classify|interpret)\b[^\n:]{{0,80}}$|(?:\b(?:i|we)(?:'m|'ve|'re| "
    rf"am| are| have)?(?: \w+)? |\band |{_AGAIN}(?:just )?(?!(?:get|see|paste|quote|forward|receive"
    r"|hit)\b))(?:get|getting|got|see|seeing|saw|seen|found|copied|pasted?|pasting|forward(?:ed)?|quoted?"
    r"|quoting|read|heard|received?|was told|took|hit)\b(?! (?:it|rid|(?:the|an?|our) (?:\w+ )?(?:cause"
    r"|reason|problem|bug|fix|way|point))\b)",
    re.IGNORECASE,
)
"""The user works on a text, or saw or got it elsewhere."""

_OWN_SPEECH = on_use(
    r"\b(?:i|we)(?:'ve|'d|'ll|'m|'re)?\b(?!\.e)|\blet me\b|\b(?:from|by) (?:me|us|now|here|my side|today)\b"
    r"|\bto us$",
    re.IGNORECASE,
)
_OWN_NOUN = (
    r"(?:rules?|requirements?|preferences?|conventions?|constraints?|demands?|instructions?|guidelines?"
    r"|reminder|remarks?|requests?|questions?|things?|points?|wish(?:es)?|notes?|gist|goal|aim|version|part"
    r"|idea|plan|format|style|workflow|principles?|priority|limits?|defaults?|answer|summary|step|order)"
)
_OWN_LEAD = on_use(
    rf"{_AGAIN}(?:(?:(?:and|but|so|also|then|yes|no|not|please|ps|here|important|clear|attention|wait"
    r"|actually|generally|instead|rather|always|first)[\s,]*)*$|(?:(?:here (?:are|is)|the|this|that|these"
    r"|those|my|our|your|some|few|one|two|three|an?|following|general|more|new|another|last|add|remember"
    rf"|save|note) ){{0,4}}(?:own )?(?:[\w-]+ ){{0,2}}?{_OWN_NOUN}(?: (?:is|are|for|in|on|about|when|here"
    r"|now|applies)\b.*)?$|here (?:they|it) (?:are|is)$|(?:for|about|on|regarding|concerning|as for"
    r"|when(?:ever)?|if|once|before|after|while|until|unless|every time|each time|with|to|in|under|inside"
    r"|within|at|not (?:here|in))\b(?![^,]*,)|(?![^:]*\b(?:contain|show|print|fail|want|display|output"
    r"|return|give|ha|i|start|stop|say|follow)s$)(?:all|any|your|our|my)? ?(?:[\w+#.-]+ )?[\w-]*(?:[^s\W]s"
    r"|ing|ion|ment|ity|ure|ness|ance|ence|code|front ?end|back ?end|database|data|ui|api|first|git|css"
    r"|html|python|java|react|go|rust)$|(?:please |can you |could you |now |you (?:must|should) )*(?:follow"
    r"|use|keep|make|remember|consider|respect|do|stick|stop|avoid|prefer|ensure)\b)",
    re.IGNORECASE,
)
"""Announces the user's own words: a topic, a case, a demand or an order to the agent."""

_SAID = on_use(rf"(?:\A|[,;(–—] ?|\b(?:and|but|because|that|what|as) ){_WHO}{_OFTEN}{_SAYS}\b", re.IGNORECASE)
_FROM = on_use(
    rf"\b{_TEXT}\b|{_URL}|\b(?:according to|quoting|laut|selon|según)\b|{_AGAIN}here(?:'s| is) (?:the|an?"
    rf"|what)\b|{_AGAIN}(?:from|out of|via|per|as per|source|quote)\b(?! (?:me|us|now|here|my|today)\b)",
    re.IGNORECASE,
)
_OF_OTHERS = on_use(
    rf"\b(?:of|from|by) {_DET}|\b(?!(?:it|that|here|there|what|let)'s)[\w-]+(?:'s|s') \w|^(?:{_DET} "
    rf")?(?:[\w-]+ ){{0,2}}(?:comment|ticket|review|mail|message|letter|feedback|minutes|error)\b|\b(?:in"
    r"|on) (?:the|a) (?:[\w-]+ )?(?:wiki|handbook|ticket|issue|forum|thread|chat|meeting|mail)\b",
    re.IGNORECASE,
)
"""Others wrote the text, even if it is called a rule or an instruction."""

_BRIEF = 3
"""Maximum number of words after a verb of speech that announces words; more of them are the report."""


_A_FILE = on_use(
    r"^(?:the |contents? of |excerpt (?:of|from) )*[\w./-]*\w\.\w{1,5} (?:contents?|text|excerpt)\Z"
    r"|^(?:contents? of|excerpt (?:of|from)) (?:the )?[\w./-]*\w\.\w{1,5}\Z"
    r"|^(?:system|developer|admin(?:istrator)?|operator)(?:'s)?"
    r" (?:notes?|prompt|message|instructions?|override|notice|update)\Z",
    re.IGNORECASE,
)
"""The content of a file, or what pretends to come from the system."""


def whose(lead: str) -> Voice:
    """Return whose words follow a lead, the words of a sentence before a colon.

    >>> whose("Comment on the PR"), whose("Python files"), whose("Slide 14")
    ('others', 'own', 'doubtful')
    """
    lead = lead.strip(" \t*_#>-")
    if _A_FILE.match(lead) or _PASTED.search(lead):
        return "others"
    said, mine = _SAID.search(lead), _OWN_SPEECH.search(lead)
    if mine and not (said and said.start() > mine.start()):
        return "own"
    if said:
        return "others" if len(lead[said.end() :].split()) <= _BRIEF else "doubtful"
    text = _FROM.search(lead)
    if not (text and _OF_OTHERS.search(lead)) and (_OWN_LEAD.match(lead) or DEMANDS.search(lead)):
        return "own"
    return "others" if text else "doubtful"


TRAILING = on_use(
    rf"(?:(?P<mid>[,;–—])|\s-+|…|\A|\s(?=according to))\s*(?:so |or so |at least |as )*{_BY}(?:{_ENDS}"
    r"|(?(mid)\s*[,;–—]|(?!)))|(?:[\s,]+|\A)(?:is|was)(?: (?:exactly|just|basically|literally))? (?:what"
    rf"|how|from)\b(?! (?:i|we|you|me|now)\b)[^.,;:!?\n]{{2,60}}{_ENDS}|(?P<cites>(?:\s[-–—]{{1,2}}|\A[-–—]+"
    r"|[(\[]|\^+|<[-=]*|←)\s*(?:(?:source|via|quoted?|taken|copied|according to|as seen|said|says|written"
    rf"|from (?:the|an?|our|their|his|her|some))\b(?! (?:i|we|you)\b)|[^\n()]{{0,60}}\b(?:page|p\.|chapter) "
    rf"?\d)[^\n()]{{0,100}}{_ENDS}|(?:\s|\A)(?:\^+|<[-=]+|←)\s+(?!(?:for|in|as|to|when|operator|instead|and"
    rf"|or|if|is|are|\d)\b)\w[^\n]{{2,120}}\Z|(?:\s[-–—]+|[(\[])\s*(?:these|those|that|this|it)(?:'s| is| "
    r"are| was| were) (?!(?:(?:my|our|not|why|how)|(?:the|what) (?:i|we|rule|way|reason|standard|default"
    rf"|goal|limit))\b)\w[^\n]{{0,120}}\Z|\A(?:--|[–—])\s*(?!.*\b(?:always|never|from "
    rf"now)\b)\w[^.!?\n]{{2,60}}{_ENDS}|\s(?:--|[–—])\s*(?:(?-i:[A-Z])[\w.'-]+ (?-i:[A-Z])[\w.'-]+|(?!(?:see"
    rf"|as|in|so|and|but|not|it)\b)(?:[\w'-]+ ){{0,3}}?{_TEXT}\b)[^.!?\n]{{0,60}}{_ENDS}"
    r"|\A[-–—(\[^<←\s]*(?:and |at least |again,? |but )?(?:(?:that|this|it|these|those|which|all (?:of "
    r")?(?:that|this)|(?:the|this|that) (?:above|quote|text|sentence|part|rule|line|advice|last \w+))(?:'s"
    r"| is| was| are| were|'re)?(?: (?:all|just|only|also|\w+ly|copied|quoted|taken|pasted|written|verbatim"
    r"|word for word|came|comes|straight))* (?:(?:what|how) (?!(?:i|we|you)\b)|(?:from|according to|by) "
    rf"(?!(?:me|us|now|my)\b)|(?:in|on) {_DET} (?:[\w-]+ )?{_TEXT}\b)[^.;:!?\n]{{1,60}}|(?:source|quelle"
    rf"|fuente|via|ref|reference|quoted?|taken|copied|pasted|quoting|excerpt)\b:? [^\n]{{2,100}}|(?:i"
    r"|we)(?:'ve| have| just)? (?:\w+ )?(?:got|copied|found|took|pasted|read|saw|heard|quote) (?:this|that"
    r"|it|these|those|them|the above) (?:\w+ )?(?:from|in|on|at|off|via|somewhere"
    rf"|online)\b[^.,;:!?\n]{{0,60}}){_ENDS})",
    re.IGNORECASE,
)
"""Names the source of the words before it; ``cites`` is set if a whole quote is meant, not one sentence."""

ABOUT_WORDS = on_use(
    r"^(?:(?:hi|hey|please|quick|a|question|can you|could you)[\s,:]+)*(?:what (?:does|do|is meant by"
    r"|is the meaning of)"
    r" (?:this|that|these|it|the following)(?: \w+)? ?(?:mean|say)?|(?:grammar|spelling|spell|style|tone)"
    r"[ -]?check(?: (?:this|it|that|please))*|proof-?read(?: (?:this|it|please))*|is (?:this|the following)"
    r" (?:sentence |phrase |wording |english |text )?(?:correct|right|true|ok|good english"
    r"|grammatical))\s*[?.!]*$",
    re.IGNORECASE,
)
"""A question about the words after it."""

POINTS_BELOW = on_use(
    r"^(?:what|is|are|do|does|why|who|how)\b.*\b(?:this|these|that|following)\b|^below\b|.*\b(?:below"
    r"|underneath)$",
    re.IGNORECASE,
)
"""A line about a text below it."""

_HERE = r"(?:from now on|(?:in|for) (?:this|our|my) (?:repo|project|code ?base)|here)\b"

OWN_VOICE = on_use(
    r"\bi\b(?!\.e)(?!['-]\w{3})|\bi'(?:m|d|ll|ve)\b|\b(?:imho|let's|please|convinced|agreed?)\b"
    r"|[,;–—-]\s*(?:so|therefore|hence|thus)\b|\b(?:in|for) (?:this|our) (?:repo|project|code ?base)\b"
    r"|(?:(?:\b(?:is|are)|'s) (?:\w+ )?(?:right|true)|\bmakes? sense|\bgood (?:point|idea|catch))\b(?!.*\?)"
    r"|^(?:so|but|therefore|thus|hence|ok(?:ay)?|thanks|thank you|claude|agent|hi|hey|hello|anyway"
    r"|separately|besides|apart from that|that said|back to|as for|btw|by the way|p\.?s|regardless)\b",
    re.IGNORECASE,
)
"""Signs that a sentence is the user's own."""

TASK = on_use(
    rf"{_AGAIN}(?:please|pls|plz|kindly|can|could|would|will|help|fix|check|look|explain|summari[sz]e"
    r"|translate|implement|apply|review|investigate|figure|analy[sz]e|debug|solve|what|why|how|where|which"
    r"|who|any \w+|thoughts|is (?:it|this|that|he|she|the)|are (?:they|these|those)|does (?:it|this|that)"
    r"|do (?:you|i|we|it|that|this)|should (?:i|we)|(?:tell|show|give) me|let me know|draft|answer|reply"
    r"|try|see (?:if|what|whether)|make it)\b|[^?]*\b(?:you|it|this|that|he|she|they)\b[^?]*\?\s*\Z",
    re.IGNORECASE,
)
"""A request to the agent, or a question."""

WORK = on_use(
    rf"{_AGAIN}(?:(?:(?:please|can|could|would|will|you|we)\s+)+(?!(?:check|verify|explain|tell|confirm"
    r"|translate|summari[sz]e|say|rephrase|rewrite|reword|shorten|polish|make it|give|compare|be|it|this"
    r"|that)\b)|(?:(?:next|go on|go ahead|let's)[\s,:]+)*(?:add|fix|rename|implement|refactor|update|remove"
    r"|delete|run|look|start|continue|create|build|deploy|commit|push|merge|install|set up|upgrade|migrate"
    r"|open|read|review|write (?:the|tests?))\b(?! (?:it|this|that|them|these|those)\b(?! to\b)))",
    re.IGNORECASE,
)
"""A request for work on something other than words."""

TURN = on_use(
    r"(?<=\w)[\s,;:.–—-]+(?:(?:so|therefore|thus|hence|that's why|which is why|which "
    rf"means)[\s,]+(?=(?:please )?(?:always|never|don't|do not|stop|make sure|no more|we|you|{_HERE})\b)"
    r"|(?<!\w )(?:(?:but|so|yet|though|however|still|and)\s+)?(?=(?:i|i'd|i'm|i'll|i've)\b(?!\.e)|(?:please"
    rf"|let's|can you|could you)\b)|(?<!\w )but\s+(?={_HERE}))",
    re.IGNORECASE,
)
"""A conclusion of the user's, or a change of person, within a sentence."""

SIGNED = on_use(
    r"^(?:(?:kind |best |warm )?regards|best|cheers|thanks|thank you|many thanks|sincerely|yours|greetings"
    r"|(?:viele|liebe|beste|mit freundlichen) grü(?:ß|ss)e?n?|lg|mfg|vg|cordialement|bien à vous|saludos"
    r"|gruß|--[ \t]*$|—)(?!\w)",
    re.IGNORECASE | re.MULTILINE,
)
POSTSCRIPT = on_use(r"^(?:p\.?s\b|on [^\n]{6,120} wrote:|from:|sent from)", re.IGNORECASE)

ENDORSED = on_use(
    r"(?:[,;.!–—-]|\band\b|\bso\b)\s*(?:(?:so|and|then|please|just|yes|ok(?:ay)?|now|from now on|let's"
    r"|we(?:'ll| should)?),? )*(?:do (?:that|so|it|this|the same)|(?:(?:i|we) (?:\w+ly )?)?agreed?(?: with "
    r"(?:that|it|him|her|them))?|(?:follow|adopt|stick to) (?:that|this|it))(?:,? (?:too|please|here|from "
    r"now on|always|as well))*\s*[.!]*\s*\Z",
    re.IGNORECASE,
)
"""The user's agreement with somebody else's words, at the end of a paragraph, which makes them the user's."""

LEADS_ON = on_use(r"(?:,? that\b| to\b)?[ \t]*[:,]?[ \t]*")
PARAGRAPH_END = on_use(r"\n[ \t]*\n|\Z")
