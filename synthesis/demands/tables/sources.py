"""Patterns that tell the user's own words from the words of others: closed classes, no names of sources."""

import re
from typing import Literal

from agentx.synthesis.language.patterns import on_use

NAME = "ˣ"
"""Replaces each character of an inline quote: a letter to every pattern, and part of no word."""

Voice = Literal["own", "doubtful", "others"]
"""Whose words follow: the user's, unclear, or somebody else's."""

# --- parts of patterns ----------------------------------------------------------------------------

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
    r"(?:(?:also|just|even|once|always|only|has|have|had|recently|often|usually|then|still|now|explicitly"
    r"|clearly|really|used to)\s+){0,2}"
)
_CLEAR = (
    r"(?:says|said|saying|(?:tells?|told|telling|reminds|reminded|advises|advised|wants|wanted|asks"
    r"|asked) (?:me|us|you|everyone|people|(?:the|my|our) \w+)|(?:claim|insist|complain|warn)(?:s|ed)|argues"
    r"|argued|swears|swore|declare[sd]|announce[sd]|mentioned)"
)
_SAYS = (
    rf"(?:{_CLEAR}|(?:recommend|suggest|instruct|mention|explain|respond|add|ask|shout)(?:s|ed)|(?:answer"
    rf"|comment"
    r"|post|order|remark|command|demand|mail)ed|expects|requires|state[sd]|advise[sd]|urge[sd]|noted"
    r"|replie[sd]|writes|wrote|reads|goes|went|thinks|prefers|puts it|has it|(?:keeps?|kept) \w+ing)"
)
_VERB = (
    r"(?! (?:must|should|shall|may|can|are|were|need|will)\b)(?!(?<=ed) (?:in|on|by|at|above|below)\b)(?!\w)"
)
"""Excludes nouns and participles ("all answers must …", "files mentioned in the ticket")."""
_BY = (
    rf"(?:{_SAYS} {_NOT_A_SUBJECT}[\w'./#@{NAME}-]+(?:\s+[\w'./#@{NAME}-]+){{0,5}}|{_WHO}{_OFTEN}(?:{_SAYS}"
    rf"|say|state|recommend)(?: (?:in|on|at|to) [^.,;:!?\n]{{2,40}}| (?:me|us|so|it))?"
    r"|(?:according to|as per|per|to quote|in the words of|quoting|laut|selon|según) (?!(?:me|my"
    r"|us)\b)[^.,;:!?\n]{2,60})"
)
"""Names a source in an aside."""
_AGAIN = (
    r"^(?:(?:and|but|so|also|then|well|ok(?:ay)?|now|anyway|hm+|oh|yes|no|thanks|thank you|thx|first|second"
    r"|third|hi|hey|hello|btw|fyi|important|today)[\s,.!-]+)*"
)
_ENDS = r"[\s.!)\]]*\Z"

COLON = on_use(rf"[ \u00a0]?[:：](?=\s|\Z|[\"'{NAME}])")
LINE_BREAK = on_use(r"\r\n?|\n")
EMPTY_LINE = on_use(r"\n[ \t]*\r?\n")
QUOTED = on_use(rf"[\s,:]*(?:that )?{NAME}{{3,}}(?=[\s.,;:!?)–—-]|\Z)")
"""The attributed words are in quotation marks."""

# --- a source before its words --------------------------------------------------------------------

REPORT = on_use(
    rf"(?:\A|(?<=[,;(–—] )|\b(?:and|but|because|since|that|where) )(?:as |apparently |so"
    rf" )?{_WHO}{_OFTEN}(?:(?P<clear>{_CLEAR})|{_SAYS}|(?:say|recommend|suggest|state)(?= (?:that"
    rf"|to)\b)){_VERB}"
    r"|\bi(?:'ve| have)? (?:(?:also|just|once|recently) )?(?P<heard>read|heard|learned|learnt|was told"
    r"|been told|saw|seen|found|got this)\b[^.,;:!?\n]{0,50}?(?:,? that\b| to\b)|\A(?:according to|as per"
    r"|quoting)\b(?! (?:me|my|us)\b)|\byou (?P<self>said|told me|claimed|suggested|recommended)\b|\b(?:with"
    r"|shows|prints|contains|outputs|logs|displays|gives|got|get|see|raises|throws) (?:the|this"
    r"|an?) (?:\w+ )?(?:message|text|string|sentence|title|label|banner)\b(?=\s+(?:always|never|you"
    r"|from now)\b)",
    re.IGNORECASE,
)
"""Somebody or something says something; the words follow."""

UTTERED = on_use(
    r"^(?!(?:i|we|you|please|let's|so|but|for|when|if|once|after|before|as|all|every|always|never)\b)"
    rf"(?:(?:(?:on|in|at|per) )?{_URL}\s)?[^.,;:!?\n]{{2,160}}?(?:[\w')] (?-i:Always|Never|From now on"
    r"|Going forward|You|All|Every|Each|No|Do not|Don't|Must|Please|Stop|Forget|Ignore|Users|Only|Use)\b"
    rf"|\b(?:\w{{3,}}ed|{_SAYS})(?: (?:that|me|us|back|out|up|(?:the|his|her|my|a) \w+)){{0,2}}"
    r" (?:always|never|from now on|going forward|you (?:must|should|can|may)|do not|don't|must)\b(?! to\b))",
    re.IGNORECASE,
)
"""A sentence within a sentence: a capital letter or an order behind a verb in the third person."""

MENTIONS = on_use(
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
    r"|says|said|goes|reads?) (?!on\b|to\b)\w"
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

# --- a lead: words before a colon -----------------------------------------------------------------

_ON_A_TEXT = on_use(
    r"(?:^|[.!?,]\s+|\b(?:please|you|to) )(?:summari[sz]e|translate|proof-?read|rephrase|paraphrase|rewrite"
    r"|reword|correct|analy[sz]e|explain|classify|interpret)\b[^\n:]{0,80}$",
    re.IGNORECASE,
)
_SEEN = on_use(
    r"(?:\b(?:i|we)(?:'m|'ve|'re| am| are| have)?(?: (?:just|also|now|still|always|keep|only|often|once))*"
    r"|\band"
    rf"|{_AGAIN}(?:just )?) (?:get|getting|got|see|seeing|saw|found|copied|pasted?|pasting|forward(?:ed)?"
    r"|quoted?|quoting|read|heard|received?|was told|took|hit)\b(?! (?:it|rid|two|three|some|several)\b"
    r"| (?:the|a|an|our) (?:\w+ )?(?:cause|reason|problem|bug|fix|way|point)\b)"
    rf"|{_AGAIN}(?:just )?(?:got|found|saw|copied|pasted|quoting|read|heard|seen)\b",
    re.IGNORECASE,
)
"""The user saw or got the words elsewhere."""

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
    rf"|actually|generally"
    r"|always|first)[\s,]*)*$|.*\b(?:no|wait|actually|instead|rather)$|(?:(?:here (?:are|is)|the|this|that"
    r"|these|those|my|our|your|some|few|one|two|three|an?|following|general|more|new|another|last|add"
    r"|remember|save|note) ){0,4}(?:own )?(?:[\w-]+ ){0,2}?"
    rf"{_OWN_NOUN}(?: (?:is|are|for|in|on|about|when|here|now|applies)\b.*)?$|here (?:they|it) (?:are|is)$"
    r"|(?:for|about|on|regarding|concerning|as for|when(?:ever)?|if|once|before|after|while|until|unless"
    r"|every time|each time|with|to|in|under|inside|within|at|in case|not (?:here|in))\b(?![^,]*,)"
    r"|(?![^:]*\b(?:contain|show|print|fail|want|display|output|return|give|ha|i|start|stop|say"
    r"|follow)s$)(?:all|any|your|our|my)? ?(?:[\w+#.-]+ )?[\w-]*(?:[^s\W]s|ing|ion|ment|ity|ure|ness|ance"
    r"|ence|code|front ?end|back ?end|database|data|ui|api|first|git|css|html|python|java|react|go|rust)$"
    r"|(?:(?:please|can you|could you|now|then|just|you should|you must|we should) )*(?:follow|update|write"
    r"|use|keep|make|change|format|remember|create|build|set|consider|respect|treat|do|answer|structure|name"
    r"|stick|stop|avoid|prefer|start|begin|end|include|ensure|apply|return)\b)",
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
    rf"\b(?:of|from|by) {_DET}|\b(?!(?:it|that|here|there|what|let)'s)[\w-]+(?:'s|s') \w|^(?:{_DET}"
    rf" )?(?:[\w-]+ ){{0,2}}(?:comment|ticket|review|mail|message|letter|feedback|minutes|error)\b"
    r"|\b(?:in|on) (?:the|a) (?:[\w-]+ )?(?:wiki|handbook|ticket|issue|forum|thread|chat|meeting|mail)\b",
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
    if _A_FILE.match(lead) or _ON_A_TEXT.search(lead) or _SEEN.search(lead):
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


# --- a source after its words ---------------------------------------------------------------------

TRAILING = on_use(
    rf"(?:[,;]|\s[-–—]+|…|\A|\s(?=according to))\s*(?:so |or so |at least |as )*{_BY}{_ENDS}"
    r"|(?:[\s,]+|\A)(?:is|was)(?: (?:exactly|just|basically|literally))? (?:what|how|from)\b"
    rf"(?! (?:i|we|you|me|now)\b)[^.,;:!?\n]{{2,60}}{_ENDS}"
    r"|(?P<cites>(?:\s[-–—]{1,2}|\A[-–—]+|[(\[,;]|\^+|<-+|←)\s*(?:(?:quoted|taken|copied|straight) )?from"
    r" (?:the|an?|our|their|his|her|some)\b(?!.*\b(?:modules?|packages?|librar(?:y|ies)|folders?|files?|src"
    rf"|director(?:y|ies)|class(?:es)?|start|beginning|top|root|branch|main)\b)[^\n()]{{2,80}}{_ENDS}"
    r"|[(\[](?:source|via|quoted?|taken|copied|according to|as seen|seen|found|said|says|written"
    r"|what)\b(?! (?:i|we|you)\b)[^\n]{2,100}\Z|[(\[](?-i:[A-Z])[^\n()]{0,60}\b(?:page|p\.|chapter)"
    r" ?\d[^\n]{0,20}\Z|(?:\s|\A)(?:\^+|<[-=]+|←)\s+(?!(?:for|in|as|to|when|operator|instead|and|or|if|is|are"
    r"|\d)\b)\w[^\n]{2,120}\Z|(?:\s[-–—]+|[(\[])\s*(?:these|those|that|this|it)(?:'s| is| are| was"
    r"| were) (?!(?:(?:my|our|not|why|how)|(?:the|what) (?:i|we|rule|way|reason|standard|default|goal"
    r"|limit))\b)\w"
    rf"[^\n]{{0,120}}\Z|\A(?:--|[–—])\s*(?!.*\b(?:always|never|from now)\b)\w[^.!?\n]{{2,60}}{_ENDS}"
    r"|\s(?:--|[–—])\s*(?:(?-i:[A-Z])[\w.'-]+ (?-i:[A-Z])[\w.'-]+|(?!(?:see|as|in|so|and|but|not|it)\b)"
    rf"(?:[\w'-]+ ){{0,3}}?{_TEXT}\b)[^.!?\n]{{0,60}}{_ENDS})",
    re.IGNORECASE,
)
"""Names the source of the words before it; ``cites`` is set if a whole quote is meant, not one sentence."""

MIDDLE = on_use(rf"[,;–—]\s*(?:as )?{_BY}\s*[,;–—]", re.IGNORECASE)
"""Names the source of a sentence, in the middle of it."""

CITES = on_use(
    r"^[-–—(\[^<←\s]*(?:and |at least |again,? |but )?(?:(?:that|this|it|these|those|which|all (?:of"
    r" )?(?:that|this)|(?:the|this|that) (?:above|quote|text|sentence|part|rule|line|advice|last \w+))(?:'s"
    r"| is| was| are| were|'re)?(?: (?:all|just|literally|exactly|only|also|basically|copied|quoted|taken"
    r"|pasted|written|stated|verbatim|word for word|came|comes|straight|directly))*"
    rf" (?:(?:what|how) (?!(?:i|we|you)\b)|(?:from|according to|by) (?!(?:me|us|now|my)\b)|(?:in"
    rf"|on) {_DET} (?:[\w-]+ )?{_TEXT}\b)[^.;:!?\n]{{1,60}}|(?:source|quelle|fuente|via|ref|reference|quoted?"
    rf"|taken|copied|pasted|quoting|excerpt)\b:? [^\n]{{2,100}}|(?:so )?(?:says|said|writes|wrote) (?!(?:i|we"
    rf"|you)\b)[^.;:!?\n]{{2,40}}"
    r"|(?:he|she|they|it) (?:said|wrote|says|told (?:me|us)|meant)(?: (?:so|that|this|it|all that))?"
    r"|(?P<here>i|we)(?:'ve| have| just)? (?:\w+ )?(?:got|copied|found|took|pasted|read|saw|heard"
    r"|quote) (?:this|that|it|these|those|them|the above|all (?:that|this)) (?:\w+ )?(?:from|in|on|at|off|via"
    r"|somewhere|elsewhere|online)\b"
    rf"[^.,;:!?\n]{{0,60}}){_ENDS}",
    re.IGNORECASE,
)
"""A sentence that names the source of the words before it."""

# --- a text below a line --------------------------------------------------------------------------

ADDRESS = on_use(rf"^[-–—\[(<]*{_URL}[\])>]*:?\Z", re.IGNORECASE)
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

# --- where the user speaks again ------------------------------------------------------------------

OWN_VOICE = on_use(
    r"\bi\b(?!\.e)(?!['-]\w{3})|\bi'(?:m|d|ll|ve)\b|\b(?:imho|let's|please|convinced|agreed?)\b"
    r"|[,;–—-]\s*(?:so|therefore|hence|thus)\b|\b(?:in|for) (?:this|our) (?:repo|project|code ?base)\b"
    r"|(?:\b(?:is|are)|'s) (?:absolutely |quite |so )?(?:right|true)\b(?!.*\?)|\bmakes? sense\b(?!.*\?)"
    r"|\bgood (?:point|idea|catch)\b|^(?:so|but|therefore|thus|hence|ok(?:ay)?|thanks|claude|hi|hey|hello)\b",
    re.IGNORECASE,
)
"""Signs that a sentence is the user's own."""

RESUMES = on_use(
    rf"{_AGAIN}(?:anyway|separately|besides|apart from that|other than that|in any case|that said|back to"
    rf"|here"
    r"|as for (?:me|us|you|this)|in (?:this|our|my) (?:repo|project)|(?:one more|another) thing|btw"
    r"|by the way|p\.?s|thanks|thank you|thx|regardless|claude|agent|from (?:me|my side)|(?:new )?rule)\b"
    r"|.*\b(?:me|my|mine)\b",
    re.IGNORECASE,
)
"""The user turns to something else, or names themselves."""

TASK = on_use(
    rf"{_AGAIN}(?:please|pls|plz|kindly|can|could|would|will|help|fix|check|look|have a look|explain"
    rf"|summari[sz]e"
    r"|translate|address|implement|apply|review|investigate|figure|handle|analy[sz]e|debug|solve|what|why"
    r"|how|where|which|who|any (?:ideas?|thoughts?|hints?|clue)|thoughts|is (?:it|this|that|he|she|the)"
    r"|are (?:they|these|those)|does (?:it|this|that)|do (?:you|i|we|it|that|this)|should (?:i|we)|tell me"
    r"|show me|let me know|give me|go ahead|draft|answer|reply|try|see (?:if|what|whether)|make it|(?:add"
    r"|change|update|ignore|follow|remove|delete|rename) (?:it|that|this|them|these|those|the (?:first"
    r"|second|last)))\b|[^?]*\b(?:you|it|this|that|he|she|they)\b[^?]*\?\s*\Z",
    re.IGNORECASE,
)
"""A request to the agent, or a question."""

WORK = on_use(
    rf"{_AGAIN}(?:(?:(?:please|can|could|would|will|you|we|u)\s+)+(?!(?:check|verify|explain|tell|confirm"
    r"|translate|summari[sz]e|say|rephrase|rewrite|reword|shorten|polish|make it|give|compare|be|it|this"
    r"|that)\b)|(?:(?:now|next|go on|go ahead|let's)[\s,:]+)*(?:and )?(?:add|fix|rename|implement|refactor"
    r"|update|remove|delete|run|look|start|begin|continue|create|build|deploy|commit|push|merge|install"
    r"|set up|upgrade|migrate|open|read|review|write (?:the|tests?|a (?:test|script|function|class)))\b(?!"
    r" (?:it|this|that|them|these|those)\b(?! to\b)))",
    re.IGNORECASE,
)
"""A request for work on something other than words."""

TURN = on_use(
    r"(?:(?<=\w)[\s,;:.–—-]+(?:so|therefore|thus|hence|that's why|which is why|which"
    r" means)[\s,]+(?=(?:please )?(?:always|never|don't|do not|stop|make sure|from now on|no more|we|you)\b)"
    r"|(?<=\w)\s*[,;.–—-]+\s*(?:(?:but|so|yet|though|however|still|and)\s+)?(?=(?:i|i'd|i'm|i'll"
    r"|i've)\b(?!\.e)|please\b|let's\b|can you\b|could you\b)|(?<=\w)\s*[,;.–—-]+\s*(?:but|so)\s+(?=from now"
    r" on|(?:in|for) (?:this|our|my) (?:repo|project)|here\b))",
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
    r"(?:[,;.!–—-]|\band\b|\bso\b)\s*(?:(?:so|and|then|please|just|yes|ok(?:ay)?|i agree|agreed|now"
    r"|from now on|let's|i(?:'d)? (?:want|like) you to|we(?:'ll| will| should| must)|you should),? )*(?:do"
    r" (?:that|so|it|this|the same)|(?:follow|obey|respect|adopt|stick (?:to|with)|keep to|go with) (?:that"
    r"|this|it|them|him|her|his|their|the) ?(?:advice|rule|convention)?|(?:i|we) (?:fully |totally "
    r"|completely )?agree(?: with (?:that|it|him|her|them))?|agreed|(?:he|she|they|it|that)(?:'s| is| are"
    r"|'re) (?:absolutely |quite )?right|(?:that(?:'s| is)|make (?:that|it)) (?:now )?(?:our|the|my|a) rule"
    r"|(?:i|we) want (?:that|this|it) too)(?:,? (?:too|please|here|from now on|always|as well|(?:in"
    r"|for) (?:this|our) (?:project|repo)))*\s*[.!]*\s*\Z",
    re.IGNORECASE,
)
"""The user's agreement with somebody else's words, at the end of a paragraph, which makes them the user's."""

LEADS_ON = on_use(r"(?:,? that\b| to\b)?[ \t]*[:,]?[ \t]*")
PARAGRAPH_END = on_use(r"\n[ \t]*\n|\Z")
