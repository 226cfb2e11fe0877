"""Words that name a source and say that words come from it: closed classes, no wordings of demands."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentx.synthesis.language.patterns import on_use

NAME = "ˣ"
"""Replaces each character of an inline quote: a letter to every pattern, and part of no word."""

Source = Literal["person", "text", "tool"]
"""Whose words they are. A person, or a message between persons, uses "I" and "please" as the user does."""

# --- sources --------------------------------------------------------------------------------------

_PEOPLE = (
    "boss|chef|colleagues?|co-?workers?|team-?mates?|teachers?|professor|instructor|tutor|mentor|partner"
    "|wife|husband|friends?|brother|sister|father|mother|guy|girl|person|dev|developers?|engineers?"
    "|architects?|lead|managers?|manag?ement|cto|ceo|cfo|ciso|pm|po|product owner|scrum master|clients?"
    "|customers?|vendors?|suppliers?|maintainers?|contributors?|authors?|experts?|consultants?|seniors?"
    "|interns?|neighbou?r|auditors?|testers?|designers?|admins?|dba|sre|ops|devops|legal|hr|qa|helpdesk"
    "|marketing|sales|department|teams?|reviewers?|relecteur|revisor|youtuber|influencer|speaker"
    "|stakeholders?|lawyers?|accountants?"
)
_SERVICES = (
    "stack ?overflow|reddit|google|hacker ?news|twitter|mastodon|linkedin|youtube|slack|teams|discord"
    "|telegram|whatsapp|confluence|notion|jira|linear|trello|github|gitlab|wikipedia"
    "|gemini|chatgpt|gpt|copilot|cursor|codex|bugbot|coderabbit|dependabot|renovate|sonar(?:qube|cloud)?"
    "|(?:previous|other|old|last|another|second) (?:agent|assistant|model|session|ai|llm|bot)"
)
_TOOLS = (
    "linter|lint|formatter|compiler|interpreter|bot|hooks?|ci|pipeline|build|console|terminal|shell|server"
    "|browser|editor|ide|debugger|scanner|installer|api|cli|test runner|tool|plugin"
    "|pop-?up|dialog|app|program|script|command|job|stderr|stdout"
    "|pytest|unittest|jest|vitest|mocha|mypy|pyright|ruff|flake8|pylint|bandit|black|eslint|tslint|prettier"
    "|tsc|stylelint|rubocop|clippy|rustc|cargo|gcc|clang|javac|maven|gradle|webpack|vite|babel"
    "|npm|yarn|pnpm|pip|poetry|uv|docker|kubectl|helm|terraform|ansible|git|bash|zsh|powershell|make|cmake"
    "|curl|vs ?code|pycharm|intellij|xcode|jenkins|circleci|shellcheck|hadolint|semgrep|snyk|checkstyle"
    "|golangci-lint|go vet"
)
_LETTERS = (
    "e?-?mails?|letters?|messages?|comments?|review|reviews|feedback|tickets?|issues?|bug reports?|pr"
    "|pull request|merge request|repl(?:y|ies)|responses?|answers?|chat|thread|channel|transcript"
    "|conversation|posts?|tweet|minutes|meeting|call|talk|interview|prompts?|system prompt|note|notes"
    "|voicemail|suggestion|complaint|request|commit|commit message"
)
"""Messages between persons, which use "I" and "please" as the user does."""

_TEXTS = (
    "read\\s?me|docs?|documentation|documents?|docstrings?|files?|pages?|web ?sites?|sites?|web ?pages?"
    "|articles?|blogs?|blog posts?|wiki|manuals?|guides?|guidelines?|style ?guides?|handbook|playbook"
    "|runbook|specs?|specifications?|rfc|standards?|papers?|books?|chapters?|sections?|paragraphs?"
    "|sentences?|passage|quotes?|quotation|excerpts?|snippets?|licen[cs]e|contract|polic(?:y|ies)|changelog"
    "|release notes|tutorials?|course|forums?|newsletter|headers?|footer|banner|sign|poster|screen"
    "|screenshot|slides?|presentation|descriptions?|summary|report|table|results?|output|logs?|log ?file"
    "|traces?|traceback|stack ?trace|errors?|exceptions?|warnings?|error message|diff|patch|code|config"
    "|configuration|settings|contents?|text|templates?|placeholder|tooltip|claude\\.md|agents\\.md|findings?"
    "|body|subject|subject line|caption|footnote|leaflet|flyer|brochure|adr|results?|entry|full text|clause"
    "|exam|exercise|homework|assignment|advice|tips?|statements?|claims?|lines?|plan|instructions?"
    r"|doc|pdf|lyrics|song|poem|diary|journal|draft|faq|advert|ad text|signature|post-?mortem|slogan|story"
    r"|novel|essay|thesis|lease|recipe|sticker|motd|code of conduct|action items|eula|tagline|chorus|copy"
    r"|blurb|datasheet|man ?page|runbook|plaque|riddle|tender|constitution|press release|persona"
    r"|notice|announcement|bulletin|memo|circular|advisory|directive|ordinance|law|regulation|constitution"
    r"|bible|owasp|nist|iso \d+|pep ?\d+|mdn|w3c|ietf|gdpr|wcag|misra|\w+\.(?:md|txt|rst|html|json|toml"
    r"|ya?ml|log|cfg|ini|pdf)|tests?|string|fixture|terms|faq|checklist"
)
_MADE = (
    "docs|documentation|comments|docstrings|messages|commits|errors|exceptions|warnings|logs|tests|outputs?"
    "|code|configs?|configuration|settings|contents?|texts?|answers|responses|replies|reports|plans|tables"
    "|headers|titles|descriptions|e?-?mails|changelogs?|prompts|scripts|pages|read\\s?me|files|lines"
    "|sentences|paragraphs|sections|results|templates|instructions|notes|builds|commands|apis?|cli|hooks"
    "|strings|fixtures|guides|specs|prs|pull requests|reviews|posts|apps?|server|users|teams|support"
    "|security|feedback|issues|tickets|tools|plugins|quotes|sites|books|chapters|tips|articles|statements"
    "|git|docker|make|terraform|helm|ansible|slides|summaries"
)
"""What an agent makes or works on, in the plural or uncountable.

On its own before a colon it is a topic ("Tests: …", "Code style: …").
"""

_NAMES = (
    "Adam|Ahmed|Aisha|Alex|Alice|Amir|Amy|Ana|Anders|Andrea|Andreas|Andrew|Anja|Ann|Anna|Anne|Anton|Ben"
    "|Bernd|Beth|Bill|Bjorn|Bob|Brian|Carla|Carlos|Carol|Caroline|Charlie|Chen|Chloe|Chris|Christian|Claire"
    "|Clara|Dan|Daniel|Dave|David|Diana|Diego|Dmitri|Elena|Eli|Elena|Emily|Emma|Eric|Erik|Eva|Felix|Fatima"
    "|Frank|Fred|George|Giulia|Grace|Hana|Hannah|Hans|Helen|Henry|Hugo|Ian|Igor|Ingrid|Irina|Isabel|Ivan"
    "|Jack|Jacob|James|Jan|Jane|Jason|Jean|Jeff|Jennifer|Jens|Jim|Joe|Johan|John|Jonas|Jordan|Jose|Julia"
    "|Julie|Kai|Karen|Karl|Kate|Kevin|Kim|Klaus|Lars|Laura|Lena|Leo|Li|Linda|Linus|Lisa|Liz|Louise|Luca"
    "|Lucas|Lucy|Luis|Maja|Marco|Maria|Marie|Mario|Mark|Marta|Martin|Mary|Matt|Max|Mei|Mia|Michael|Mike"
    "|Miguel|Mohamed|Nadia|Nick|Nicole|Nina|Noah|Olga|Oliver|Omar|Oscar|Patrick|Paul|Pedro|Peter|Philip"
    "|Pierre|Priya|Rachel|Raj|Ravi|Robert|Rosa|Ryan|Sam|Sandra|Sara|Sarah|Sasha|Sebastian|Simon|Sofia|Sophie"
    "|Stefan|Steve|Sue|Susan|Sven|Tanja|Tara|Thomas|Tim|Tina|Tom|Tomas|Tony|Uwe|Vera|Victor|Viktor|Wei|Will"
    "|Yuki|Yusuf|Zoe"
)

_FOREIGN = rf"(?:{_PEOPLE}|{_SERVICES}|{_TOOLS}|{_LETTERS}|{_TEXTS})"
_DET = (
    "(?:the|an?|my|our|your|his|her|their|its|this|that|these|those|some|one|another|le|la|les|der|die|das"
    "|el|un|une|ein|eine|mein|meine|mon|ma)"
)
_URL = r"(?:(?:https?://|www\.)[^\s]+|\b[\w-]+\.(?:com|org|net|io|dev|edu|gov|to|ai)\b)"
_NO_SELF = (
    r"(?!(?:i|we|you|who|which|what|to|and|or|but|not|if|when|please|never|always|just|also|then|will|would"
    r"|should|must|shall|can|could|may|might|do|does|did|don't|doesn't|didn't|won't|can't|cannot|couldn't"
    r"|shouldn't|wouldn't|already|also|even|ever|once|have|has|had|keep|be|is|are|was|were|let's|let)"
    r"(?![\w']))"
)

# --- verbs ----------------------------------------------------------------------------------------

_SPEAKS = (
    "says?|said|saying|states|stated|claims?|claimed|insists?|insisted|recommends?|recommended|suggests?"
    "|suggested|advise[sd]?|argue[sd]|warns?|warned|complains?|complained|instructs?|instructed|demands?"
    "|demanded|mentions|mentioned|replie[sd]|replying|answers|answered|responds|responded|writes|wrote"
    "|explains|explained|announce[sd]|(?:tell|told|tells|telling) (?:me|us|you|them|him|her|everyone|people"
    "|(?:the|an?|my|our|his|her|their) \\w+)|commented|swears|swore|noted|adds|added|(?:sent|sends|posted"
    "|left|gave|gives) (?:me|us|this|that|it|the following)|sent|posted|asks|asked|reads?|goes(?: on)?|ends"
    "|went|keeps? \\w+ing|thinks|begins|quotes|quoted"
)
_SHOWS = (
    "fails?|failed|crash(?:es|ed)?|stops?|stopped|breaks|broke|dies|died|exits|exited|ends|ended|aborts?"
    "|aborted|refuse[sd]?|prints?|printed|shows?|showed|displays?|displayed|gives?|gave|throws?|threw"
    "|raise[sd]?|returns?|returned|outputs?|logs|logged|emits|emitted|reports?|reported|contains?|contained"
    "|states?|stated|begins|starts|expects|requires?|required|mentions?|found|finds|wants|wanted|has|had|is"
    "|was|are|were|be|left|added|rejects?|rejected|denies|denied|prescribes?|defines?|lists?|comes?"
    " (?:up|back)|came (?:up|back)|follows"
)
_ELSEWHERE = (
    "schreibt|schrieb|sagt|sagte|meint|meinte|meldet|meldete|lautet|steht|stand|laut|gemäß|selon|d'après|dit"
    "|écrit|écrivait|affiche|indique|según|dice|dijo|escribió|escribe|muestra|secondo|scrive|ha scritto"
    "|volgens|schrijft|zegt|diz|escreveu|segundo|пишет|написал|говорит|сказал|skriver|säger|enligt|zitat"
    "|auszug|aus (?:dem|der|einem|einer)|handbuch|nachricht von|kommentar von|meldung|fehlermeldung|extrait"
    "|citation|message de|courriel de|cita|extracto|mensaje de|citazione|estratto|pisze|mówi|według"
    "|kirjoittaa|sanoo"
)

COLON = on_use(rf"[ \u00a0]?[:：](?=\s|\Z|[\"'{NAME}])")
LINE_BREAK = on_use(r"\r\n?|\n")
EMPTY_LINE = on_use(r"\n[ \t]*\r?\n")
QUOTED = on_use(rf"[\s,:]*(?:that )?{NAME}{{3,}}(?=[\s.,;:!?)–—-]|\Z)")
"""The attributed words are in quotation marks."""

_BEHIND = rf"(?=[ \t]*(?::|[\"']|{NAME}|,?[ \t]*\n|,? that\b))"
_FROM = (
    r"(?:[ \t]+(?:on|at|from|in|of|over at|who|working)[ \t]+[\w'./@-]{1,40}"
    r"(?:[ \t]+(?!(?:and|but|that|to|never|always)\b)[\w'./@-]{1,40}){0,3}?)?"
)
_OFTEN = (
    r"(?:(?:also|just|even|once|always|only|keeps?|kept|has|have|had|recently|often|usually|then|still|now"
    r"|explicitly|clearly|really)[ \t]+){0,2}"
)
_CLEARLY = (
    r"(?:(?:says?|said|saying)(?! (?:nothing|anything|something|so|little|much)\b)|(?:tells?|told|telling)"
    r" (?:you|me|us|everyone)|(?:claim|suggest|recommend|insist)(?:s|ed|ing)|advise[sd](?: (?:me|us))?"
    r"|argue[sd]|swears|swore|mentioned|warn(?:s|ed)|complain(?:s|ed)"
    r"|(?:want|wants|wanted|expect|expects|ask|asks|asked|require|requires|urge[sd]|order(?:s|ed)|remind"
    r"(?:s|ed)|would like) (?:you|me|us|everyone|that)\b|demands? that)"
)
REPORT = on_use(
    rf"\b(?:{_TEXTS}|{_LETTERS}|linter|compiler|bot|tool|hook|plugin|terminal|console|cli|ci"
    rf"|(?P<program>\w+\.(?:py|js|tsx?|jsx|go|rs|java|sh|rb|c|cpp)))['\"`{NAME}]*"
    r"(?:[ \t]+(?!(?:i|you|we|when|if|to|that|about|not|and|or|should|must|may|can|could|might|never"
    rf"|always)\b)[\w'/.,`{NAME}-]{{1,40}}){{0,4}}?\s+"
    rf"(?:(?(program)(?!)){_OFTEN}(?:{_CLEARLY}|recommends?|suggests?|insists?|claims?|states|stated"
    r"|instructs?|instructed|demands|mentions)\b|reads(?! (?:the|an?|from|in|its|and)\b)|(?:says|reads"
    rf"|state|contains|contained|writes|wrote|asks|asked|goes|shows|thinks|prefers){_BEHIND})"
    rf"|(?<!\bof )\b(?:he|she|it|they|some(?:one|body)|every(?:one|body)|people|folks|{_PEOPLE}|{_SERVICES}"
    rf"|(?:one|some|most|many|all|each) of (?:my|our|the|his|her|their) [a-z-]{{2,30}}){_FROM}[ \t]+"
    rf"(?:{_OFTEN}{_CLEARLY}|(?:wrote|writes|replied|answered|reads|states|stated|goes){_BEHIND})"
    rf"|(?P<lists>\b(?:he|she|they|{_PEOPLE}|{_SERVICES}|{_LETTERS}|(?-i:{_NAMES})) {_OFTEN}"
    r"(?:said|says|wrote|writes|made|makes|left|raised|had|has|gave|gives|listed|lists) (?:two|three|four"
    r"|five|several|some|a few|many|these|the following) (?:[\w-]+ )?(?:things?|points?|comments?|remarks?"
    r"|rules?|suggestions?|requests?|notes?)\b)"
    r"|\b(?:with|shows|prints|expects|contains|outputs|logs|displays|gives|got|get|see|raises|throws)"
    r" (?:the|this|an?) (?:(?:error|warning|log|exit|status|long) )?(?:message|text|string|sentence|title"
    r"|label|banner)\b(?=\s+(?!(?:when|if|in|on|from|that|is|was|and|or|of|for|to|again|about|at|with"
    r"|by)\b)\w)"
    rf"|(?P<self>\byou) (?:said|told me|claimed|suggested|recommended|wrote{_BEHIND})\b"
    rf"|\b(?-i:(?!(?:I|We|As|Just|Already|Again|Like|And|But|That|This|What|You|It)\b)[A-Z][a-z]{{1,20}})"
    rf"{_FROM} {_OFTEN}(?:wrote|writes|says|said|told (?:me|us|you)|recommends|suggests|insists|advises"
    r"|swears|warns|wants (?:us|me|you|everyone)|replied|answered)\b"
    r"|\b(?:the|my|our|his|her|their|this|that|an?) (?:[\w'/-]+ ){1,3}(?:says|insists|insisted|complains"
    r"|complained|warns|warned|advises|(?:tells|told) (?:me|us))\b"
    r"|(?:\bi(?:'ve| have)? (?:also |just |once |recently |always )?(?:(?:read|heard|learned|learnt|was told"
    r"|been told|was advised)(?: (?:somewhere|once|recently|online|elsewhere))?"
    r"(?: (?:on|in|at|from|by) [^.,;:!?\n]{2,40}?)?|(?:saw|seen|found|got this) (?:on|in|at|somewhere"
    r"|online)(?: [^.,;:!?\n]{2,40}?)?)(?:,? that\b| to\b))"
    rf"|(?:(?<=\n)|(?<=[.!?] )|\A)(?:according to|as per|quoting)\b(?: {_DET})?(?: [\w'./-]+){{1,4}}?(?=,)"
    r"|(?:(?<=\n)|(?<=[.!?] )|\A)according to\b",
    re.IGNORECASE,
)
"""Somebody or something says something; the words follow."""

_UTTERS = (
    "whisper(?:s|ed)|shout(?:s|ed)|yell(?:s|ed)|cried|cries|murmur(?:s|ed)|mutter(?:s|ed)|scream(?:s|ed)"
    "|sings|sang|chant(?:s|ed)|preach(?:es|ed)|repeat(?:s|ed)|declare[sd]|proclaim(?:s|ed)|announce[sd]"
    "|order(?:s|ed)|command(?:s|ed)"
    "|warn(?:s|ed)|nag(?:s|ged)|beg(?:s|ged)|joke[sd]|remark(?:s|ed)|comment(?:s|ed)|decree[sd]|bark(?:s|ed)"
    "|snap(?:s|ped)|growl(?:s|ed)|teach(?:es)?|taught|remind(?:s|ed)|prompt(?:s|ed)|flash(?:es|ed)|blink"
    "(?:s|ed)|promise[sd]|post(?:s|ed)|tweet(?:s|ed)|text(?:s|ed)|email(?:s|ed)|pinged"
)
_ORDERS = (
    "always|never|from now on|going forward|you (?:must|should|can|may|need)|do not|don't|(?:all|every|each"
    "|no) [\\w-]+ (?:must|should|shall|may)"
)
UTTERANCE = on_use(
    r"^(?!(?:i|we|you|please|let's|so|but|for|when|if|once|after|before|as|all|every)\b)"
    rf"(?:(?:(?:on|in|at|per) )?{_URL}\s)?[^.,;:!?\n]{{2,160}}?\s(?:(?:keeps?|kept) \w+ing|{_UTTERS}"
    rf"|{_SPEAKS}|{_SHOWS}|flagged (?:it|this|that)|\w{{3,}}ed|\w{{3,}}s(?= that))"
    r"(?: (?:me|us|it|this|that|up|out|back|here|with|you|everyone|everybody|(?:an?|the|her|his|their|our"
    rf"|my) \w+)){{0,3}}"
    rf"\s+(?P<said>(?-i:(?:Always|Never|From now on|Going forward|You|All|Every|Each|No|Do not|Don't|Must"
    rf"|Please|Stop|Forget|Ignore|Users|Only|Use)\b))",
    re.IGNORECASE,
)
"""Somebody or something says a sentence, which begins with a capital letter after the verb."""

UTTERED = on_use(
    rf"^(?!(?:i|we|you|please|let's|so|but)\b)[^.,;:!?\n]{{2,160}}?\s(?:(?:keeps?|kept) (?:yelling|shouting"
    rf"|saying|repeating|writing|telling)|{_UTTERS})(?: (?:me|us|out|back|you|everyone|everybody"
    rf"|(?:the|her|his|their|our|my) \w+)){{0,2}}\s+(?P<said>(?:{_ORDERS})\b)(?! to\b)",
    re.IGNORECASE,
)
"""The same with a verb that always means speech; the sentence may begin with any letter."""

SUBORDINATE = on_use(
    r"\b(?:what(?:ever)?|how|which|if|whether|when(?:ever)?|where|who|does|do|did|as)[ \t]+"
    r"(?:(?:the|an?|my|our|your|his|her|their|some|any)[ \t]+)?(?:[\w-]+ )?\Z",
    re.IGNORECASE,
)
"""Precedes a report that is only part of the user's own sentence ("log what a customer said")."""

RELATIVE = on_use(r"\b(?:that|which|who) (?:says?|reads|states|said)\b", re.IGNORECASE)
INDIRECT = on_use(
    r",? that\b| (?:the|an?|your|my|our|this|it|there) (?![^.!?]*\b(?:always|never|must)\b)", re.IGNORECASE
)
SAID = on_use(r"(?:,? that\b| to\b)?[ \t]*[:,]?[ \t]*")
DIRECTIVE = on_use(
    r"\b(?:always|never|must(?:n't)?|should(?:n't)?|shall|don't|do not|ought|from now on"
    r"|(?:have|has|need|needs) to|not to|stop|avoid|make sure)\b|^\s*(?:(?:me|us|you|everyone|that)\s+)?"
    r"(?:to|no|use|keep|prefer|run|write|add)\b",
    re.IGNORECASE,
)
"""The report is an order, not news, so that further orders after it are reported, too."""

LACKS = on_use(r"\b(?:it|they|he|she|we|you|which|that|\w+s) (?:don't|do not)\b", re.IGNORECASE)
"""What somebody does not do, which is not an order."""

LASTING = on_use(
    r"\b(?:always|never|from (?:now|here|today)|going forward|henceforth|ever|every|each|all|any|must"
    r"|at all times|by default|whenever|forbidden|no)\b",
    re.IGNORECASE,
)

ASKS_ABOUT = on_use(
    r"^(?:(?:so|and|but|hey|hi|ok(?:ay)?|also)[\s,]+)*(?:what|is|are|do you|does|why|who|how"
    r"|(?:can|could|would) you (?:explain|tell me|translate)|explain|thoughts|any (?:idea|thought"
    rf"|clue)s?)\b[^?.!\n]{{0,80}}\b(?:this|these|that|the following|following)\b[^?.!\n]{{0,40}}"
    rf"\b(?:{_LETTERS}|{_TEXTS}|mean)\b[^?.!\n]{{0,40}}[?:.]?\Z|^[^?.!\n]{{0,80}}\bmeant? by (?:this|that"
    rf"|these|those|the following)\b[^?.!\n]{{0,20}}[?:.]?\Z"
    rf"|^(?!.*\b(?:my|our) (?:\w+ )?(?:rules|requirements|instructions)\b)[^?.!\n]{{0,100}}\b(?:{_LETTERS}"
    rf"|{_TEXTS}|past(?:e|ed|ing)|copied|quoted?|forwarded|got|wrote|said|sent)\b[^?.!\n]{{0,60}}\b"
    r"(?:below|as follows|underneath)[.!:]?\Z",
    re.IGNORECASE,
)
"""A question about a text below, or a sentence that points to it."""

PROSE = on_use(
    rf"\b(?:following|below|underneath|follows|meant? by|{_LETTERS}|paragraph|sentence|passage|quote|text"
    r"|advice|tips?|statement|claim|excerpt|policy|guidelines?|rules?)\b",
    re.IGNORECASE,
)
ADDRESS_ALONE = on_use(rf"^[-–—\[(<]*{_URL}[\])>]*:?\Z", re.IGNORECASE)


# --- introductions before a colon -----------------------------------------------------------------

_START = (
    r"^(?:(?:and|but|so|also|then|well|hi|hey|hello|ok(?:ay)?|now|first|second|third|today|yesterday|btw|fyi"
    r"|look|hm+|oh|important)[\s,.!-]+)*"
)
_I_SAY = on_use(
    r"\b(?:what|that|as|like) (?:i|we)(?:'ve| have|'d)? (?:said|say|want|need|wrote|told|asked|mean|expect"
    r"|always)|^(?:as|like) (?:i|we)\b|\blet me\b"
    r"|\bi(?:'ve)? (?:already |just |also |have )*(?:(?:told|asked|tell|ask)(?: you\b|$)|(?:said|wrote|say"
    r"|want|need|prefer|expect|repeat|mean|think|decided|agree)\b)|\bwe(?:'ve| have)? (?:\w+ )?"
    r"(?:decided|agreed|use|want|need|said|settled)\b"
    r"|\bto your\b|\b(?:from|by) (?:me|us|my (?:side|end|part)|now|here|today|our side)\b"
    r"|\b(?:update|addition|correction|follow-?up) to my\b",
    re.IGNORECASE,
)
_OF_MINE = on_use(
    _START + r"(?:i|we)(?:'ve|'d|'ll|'m|'re)? (?!(?:get|got|see|saw|read|heard|found|find)\b)", re.IGNORECASE
)
_MINE = on_use(
    r"\b(?:my|our)\s+(?:own\s+)?(?:[\w-]+\s+){0,2}?(?:answers?|repl(?:y|ies)|comments?|feedback|messages?"
    r"|notes?|review|instructions?|prompts?|plan|summary|description|request|question|take|opinion|rules?"
    r"|requirements?"
    r"|guidelines?|preferences?|conventions?|constraints?|standards?|demands?|polic(?:y|ies)|wish(?:es)?"
    r"|point)\b(?!'s)"
    r"|\b(?:these|some|few|following|general|additional|more|new|one|two|three|four|five|the|another)\s+"
    r"(?:[\w-]+\s+){0,2}(?:rules?|requirements?|preferences?|conventions?|constraints?|demands?|instructions"
    r"|guidelines)(?:\s+(?:for|in|on|about|when)\b.*)?$"
    r"|^(?:an? )?(?:[\w-]+ )?(?:note|remark|reminder)$|^(?:rules?|instructions?|requirements?|guidelines?"
    r"|constraints?|conventions?)\b",
    re.IGNORECASE,
)
"""Announces the user's own words."""

_TOPIC = on_use(
    _START + r"(?:for|about|regarding|concerning|as for|when(?:ever)?|if|once|before|after|while|until|unless"
    r"|every time|each time|with|to|in case|as soon as)\b(?![^,]*,)",
    re.IGNORECASE,
)
"""Says what the words after the colon are about, or in which case they apply."""

_PLACE = on_use(_START + r"(?:in|on|inside|within|under|at)\b", re.IGNORECASE)
_BARE_TOPIC = on_use(
    rf"{_START}(?:(?:all|any|your|our|my) )?(?:(?!(?:full|exact|complete|original|whole|entire"
    rf"|rest)\b)[\w+#.-]+ )?(?:{_MADE}|\w+ style|style)$",
    re.IGNORECASE,
)
_OTHERS = (
    rf"(?:adr|exam|changelog entry|clause|owasp|nist|pep ?\d+|notice|memo|announcement|(?:{_PEOPLE})(?:'s?)?"
    rf"|{_SERVICES}|wiki|handbook|playbook|runbook|style ?guide|tickets?|issue|forum|article|blog|rfc|manual"
    r"|spec|standard|book|thread|chat|channel|meeting|minutes|transcript|mail|e-?mail|letter|review|linter"
    rf"|compiler|console|terminal|{_ELSEWHERE})"
)
_OF_OTHERS = on_use(rf"\b{_OTHERS}(?!\w)", re.IGNORECASE)
_RAN = (
    r"(?:(?:now|still|just|always|also|only|then|suddenly|even|again|often|sometimes|keeps?|has|have|had"
    r"|immediately|would|used to|likes? to|might|may)\s+)*"
)
_SAID_BY = on_use(
    rf"(?<!\bi )(?<!\bwe )(?<!\byou )(?P<subject>(?:(?:\b{_DET} )?"
    rf"(?:(?!(?:i|we|you)\b)[\w'./#@{NAME}-]+ ){{0,5}}?)?\b{_NO_SELF}[\w'./#@{NAME})-]+) {_RAN}"
    rf"(?:(?P<says>{_SPEAKS})|(?P<shows>{_SHOWS}))\b(?P<rest>[^:\n]{{0,90}})$",
    re.IGNORECASE,
)
_WITH = on_use(
    r"^(?: \w+){0,3} (?:with|that|this|the following|as follows|saying)\b"
    r"|^(?: (?:this|that|me|us|back|out|only|the following|as follows|like this|on|up|at|here))*$"
    r"|\b(?:and|then),? (?:below|then|next|after that|under (?:it|that)|at the end|further down)"
    r"(?: that| it)?$",
    re.IGNORECASE,
)
_I_GET = on_use(
    r"(?:\bi(?:'m|'ve| am| have)?|\bwe(?:'re|'ve)?|\band(?= (?:got|get|received|saw|found)\b))"
    r"(?: (?:just|also|now|still|always|keep|only|often|then|once|recently|have|already|can))*"
    r" (?:get|getting|got|see|seeing|saw|seen|find|found|copied|copy|pasted|pasting|paste|forward|forwarding"
    r"|forwarded"
    r"|quote|quoting|read|heard|hear|received|receive|was told|were told|been told|am told|came across|took"
    r"|hit)\b(?! (?:it|rid|two|three|some|several|a few|another|one more)\b| (?:the|a|an|our|your)"
    r" (?:[\w-]+ )?(?:cause|reason|problem|bug|culprit|solution|fix|way|mistake|typo|point"
    r"|idea)\b)[^:\n]{0,100}$"
    rf"|{_START}(?:just )?(?:got|getting|found|find|saw|seeing|copied|pasted|pasting|quoting|quote|read"
    rf"|heard|taken|received|overheard|excerpt|citing|forwarding|forwarded|spotted)\b[^:\n]{{0,100}}$",
    re.IGNORECASE,
)
_FROM_WHERE = on_use(
    rf"\b(?:from|by|via|per|according to|quoting|on|in)\s+(?:{_DET}\s+)?(?:[\w'./#@-]+\s+){{0,3}}?"
    rf"(?:{_OTHERS}(?!\w)|(?-i:{_NAMES})\b)"
    rf"|{_START}(?:from|via|per|as per|according to|quoting|quote|source|copied|citing|laut|selon|según"
    r"|secondo|volgens|enligt|według)\b\s+(?!me\b|now\b|us\b|here\b|today\b)\S"
    rf"|\bof\s+(?:{_DET}\s+)?(?:[\w'-]+\s+){{0,2}}?{_OTHERS}(?!\w)",
    re.IGNORECASE,
)
_LABEL = on_use(
    rf"{_START}(?:{_DET}\s+)?(?:(?!(?:on|about|for|regarding|to)\b)[\w'./#@{NAME}-]+\s+){{0,4}}?"
    rf"(?P<noun>{_FOREIGN})(?:'s)?(?:,?\s+(?:(?:on|of|from|by|in|at|to|via|with|about|regarding|below|above"
    r"|under|section|chapter|number|no\.?|part|page|line|step|rule)\b|(?-i:[A-Z])|[(#]|[\w-]*\d)"
    rf"(?:[\w'./#@(){NAME}-]*,?\s*){{1,8}})?\s*$",
    re.IGNORECASE,
)
_POINTS = on_use(
    rf"\b(?:this|these|that|the following|following|pasted|below|here(?:'s| is| are|'re))\b[^:\n]{{0,60}}\b"
    rf"(?:{_FOREIGN})\b[^:\n]{{0,40}}$",
    re.IGNORECASE,
)
_BELOW = on_use(
    rf"\b(?:{_FOREIGN}|pasted|below|got)\b[^:\n]{{0,60}}$",
    re.IGNORECASE,
)
_MAKES = on_use(
    _START
    + r"(?:(?:please|can you|could you|now|then|just|let's|you should|you must|we should|always|never) )*"
    r"(?:follow|update|write|use|keep|make|change|format|extend|rename|refactor|improve|split|structure"
    r"|name|design|implement|remember|note|create|build|set|consider|obey|respect|treat|do)\b",
    re.IGNORECASE,
)
"""An order to the agent: the text after its colon says how to do it."""

_WORK_ON_TEXT = on_use(
    r"(?:^|\bplease |\byou |\balso )(?:check|fix|address|evaluate|eval|handle|look (?:at|into)|investigate"
    r"|verify|review|debug|consider)(?: (?:this|that|it|these|the following))?$|(?:^|[.!?,]\s+|\n|\bplease "
    r"|\byou |\bto )(?:summari[sz]e|translate|proof-?read|rephrase|paraphrase|rewrite|reword|correct"
    r"|analy[sz]e"
    r"|explain|classify|extract|improve|interpret|spell-?check|fact-?check)\b[^\n:]{0,80}$",
    re.IGNORECASE,
)
"""A request to work on a text that follows after the colon."""

_TEXT_TO_ADD = on_use(
    r"\b(?:add|put|insert|append|include|print|display|render|type|show)\b[^:\n]{0,60}\b(?:line|sentence"
    r"|text|message|comment|entry|paragraph|words?|string|header|title|banner|heading"
    r"|following)\b[^:\n]{0,60}$",
    re.IGNORECASE,
)
"""A request to put a text somewhere, which follows after the colon."""

_SPEAKER = on_use(
    rf"^v?\d+\.\d+[\w.]*(?: \([^)]{{4,30}}\)| [-–—] \S+)?$|^(?-i:{_NAMES})'s? \w"
    rf"|^(?:(?:and|then|first|later|now),? )*[\[(]?(?:\d{{1,2}}:\d\d[\])]?,? )?(?:@[\w.-]{{2,30}}"
    rf"|(?-i:{_NAMES})(?: (?-i:[A-Z])[\w.-]+){{0,2}}|(?-i:[A-Z])[\w-]+ (?-i:[A-Z])[\w-]+(?= \())"
    r"(?: \([^)]{1,30}\)| (?:from|of|in|at) [\w ]{2,30}| (?:again|too|then|later|next|yesterday|today"
    r"|this morning))?$",
    re.IGNORECASE,
)
"""The label of somebody's turn or of a version's notes.

Examples: "Anna (QA)", "@anna", "[10:42] Anna", "v3.1 (2026-10-01)".
"""
_WHERE = on_use(rf"\b(?:{_ELSEWHERE})\b", re.IGNORECASE)
_ADDRESS = on_use(_URL, re.IGNORECASE)


_THIRD_PERSON = on_use(
    rf"{_START}(?:(?:an?|some|one|another|this|that) (?:[\w-]+ ){{0,2}}(?!(?:reminder|other|number|order"
    rf"|matter|pointer|filter|parameter|header|footer)\b)[\w-]{{3,}}(?:er|or|ist|ian|man|woman)\b|"
    rf"(?:the|his|her|its|their)\b(?!.*\b(?:i|we|you)\b)|(?-i:{_NAMES})\s+\w(?!.*\b(?:i|we)\b)"
    r"|(?:he|she|they|it|somebody|someone)\b(?!'s|\s+(?:is|was|must|should|has to)\b)"
    rf"|(?!(?:as|if|not|when|once|unless|until)\b)(?!.*\b(?:i|we|you)\b)(?:[\w-]+\s+){{1,4}}?(?:e-?mailed"
    r"|pinged|messaged|texted|phoned|called|posted|shared|reported|announced|shouted|whispered|typed"
    r"|tweeted|blogged|decreed|ordered|requested|informed|notified|nagged|remarked|observed|emphasi[sz]ed"
    r"|stressed|pointed out)(?: (?:me|us|back|out|in|on \w+))?$)"
    rf"|\b(?!(?:it|that|here|there|what|let|who|where|how|today|this)'s)[\w-]+(?:'s|s')\s+\w",
    re.IGNORECASE,
)
"""A clause or a name in the third person, as it precedes words that are not the user's."""

_NUMBERED = on_use(
    rf"{_START}(?!(?:rules?|steps?|parts?|points?|tasks?|items?|phase|option|no|number|requirement"
    r"|constraint|goal|priority|level|prio|version|release|sprint|week|day|milestone|python|java|vue|php"
    r"|node|angular|react|swift|es|css|html|http|ipv?|windows"
    r"|django|rails|postgres|laravel|spring|bootstrap|tailwind)\b)[a-z][a-z-]{2,20} #?\d+(?:\.\d+)*$",
    re.IGNORECASE,
)
"""The number of a part of something that was read: "Finding 2", "Slide 14"."""

_OWN_NOUN = on_use(
    rf"{_START}(?:the|this|that|these|those)\s+(?:[\w-]+\s+){{0,2}}?(?:rules?|things?|points?|goal|aim"
    r"|bottom line|gist|version|upshot|part|bit|catch|ideas?|plan|format|style|workflow|process"
    r"|constraints?|requirements?|conventions?"
    r"|deal|principles?|priority|priorities|limits?|following|approach|structure|naming|language|tone|order"
    rf"|key|defaults?|exceptions?|frontend|backend|front end|back end|database|schema|ui|{_MADE})"
    r"(?=\s+(?:is|are|here|for|of|in|on|that|about|when|now|applies|stands?)\b|$)",
    re.IGNORECASE,
)
"""What users name when they announce a demand."""

CONTINUES = on_use(
    r"^\W*(?:(?:and|then|but),? )?(?:(?:it|he|she|they) \w+ )?(?:(?:a (?:bit|little)|a few lines|much"
    r"|some lines|somewhat) )?(?:right |directly |just )?(?:further|later|below|under|underneath|beneath"
    r"|followed by|after (?:that|it|this)|elsewhere|at the (?:end|bottom|top))(?: down| on| up)?"
    r"(?: (?:that|it|this))?$",
    re.IGNORECASE,
)
"""Continues the words of a source that was named before."""


_WHOLE_REPORT = on_use(
    r"\b(?:says?|said|(?:tells?|told) (?:me|us|you)|mention(?:s|ed)|confirm(?:s|ed)|complain(?:s|ed)|report"
    r"(?:s|ed))(?: that)? (?!(?:in|on|at|to|about|the following|this|that|it|with|by|again|as|me|us)\b)"
    rf"(?:{_DET} )?(?!{_DET} )(?:[\w'-]+ ){{1,6}}?(?:is|are|was|were|has|have|had|run|need|can|cannot|can't"
    rf"|will|take|cost|fail|break|broke|\w{{4,}}s|\w{{3,}}ed)\b[^:]{{0,80}}$",
    re.IGNORECASE,
)
"""A complete report, which ends before the colon."""


class Introduced(NamedTuple):
    """What introduces the words after a colon: its start in the lead, and whose words they are."""

    at: int
    source: Source


def introduces(lead: str, *, inline: bool, after: bool = False) -> Introduced | None:
    """Return what a lead, the words before a colon, says about the source of the words after it.

    ``None`` if they are the user's own.

    Args:
        lead: The words of the sentence before the colon.
        inline: Whether words follow the colon on the same line.
        after: Whether the message named a source before.

    >>> introduces("Comment on the PR", inline=True)
    Introduced(at=0, source='person')
    >>> introduces("Python files", inline=True) is None
    True
    """
    lead = lead.rstrip()
    if inline and _WHOLE_REPORT.search(lead):
        return None
    for whose, match in _signs(lead, inline=inline, after=after):
        if match:
            return None if whose == "own" else Introduced(match.start(), whose or source_of(lead))
    return None


def _signs(
    lead: str, *, inline: bool, after: bool
) -> Iterator[tuple[Source | Literal["own", ""], re.Match[str] | None]]:
    """Yield signs of whose words follow a lead, the most certain first.

    The source is empty if the lead's own words name it.
    """
    if after:
        yield "text", CONTINUES.match(lead)
    yield "person", _SPEAKER.match(lead)
    said, mine = _said_by(lead), _I_SAY.search(lead)
    if not (said and mine and said["says"] and said.start() > mine.start()):
        yield "own", mine
    yield "text", _WORK_ON_TEXT.search(lead) or _TEXT_TO_ADD.search(lead)
    yield "", _ADDRESS.search(lead)
    others = _OF_OTHERS.search(lead)
    if not others:
        yield "own", _MINE.search(lead)
    yield "", _I_GET.search(lead)
    yield "own", _TOPIC.match(lead)
    yield "", said
    yield "own", _OF_MINE.match(lead)
    yield "", _WHERE.search(lead)
    if not others and (inline or lead.endswith("s")):
        yield "own", _BARE_TOPIC.match(lead)
    yield "", _POINTS.search(lead)
    yield "", _FROM_WHERE.search(lead)
    yield "own", _MAKES.match(lead) or _PLACE.match(lead)
    yield "", _LABEL.match(lead)
    if not inline:
        yield "", _BELOW.search(lead)
    yield "text", _NUMBERED.match(lead)
    yield "own", _OWN_NOUN.match(lead)
    yield "person", _THIRD_PERSON.search(lead)


def heads(line: str) -> Source | None:
    """Return what a heading without a colon says about the source of the text below.

    ``None`` if the text is the user's own.

    >>> heads("From the docs of the parser")
    'text'
    >>> heads("Code style") is None
    True
    """
    sentence = line.endswith(".")
    line = _HERE_IS.sub("", line.rstrip(" ."))
    if len(line.split()) > _HEADING_WORDS or LASTING.search(line) or _STATES.search(line):
        return None
    if _I_SAY.search(line) or _MINE.search(line) or _TOPIC.match(line) or _OF_MINE.match(line):
        return None
    if _OWN_NOUN.match(line) or _BARE_TOPIC.match(line) or _MAKES.match(line) or len(line.split()) < _TWO:
        return None
    said = _said_by(line)
    signs = (
        _SPEAKER.match(line),
        _ADDRESS.search(line),
        _I_GET.search(line),
        said if said and said["says"] else None,
        _WHERE.search(line),
        _POINTS.search(line),
        None if sentence else _FROM_WHERE.match(line),
        None if sentence else _FRAGMENT.match(line),
    )
    return source_of(line) if any(signs) else None


def is_own_heading(line: str) -> bool:
    """Return whether a line on its own is the user's: a topic, a demand, an order or a question."""
    if len(line.split()) not in range(_TWO, _HEADING_WORDS) or line[-1] in "!?:" or LASTING.search(line):
        return True
    own = _MINE.search(line) or _OWN_NOUN.match(line) or _BARE_TOPIC.match(line) or _TOPIC.match(line)
    return bool(own or _COUNTED.match(line) or ORDERS_WORK.match(line) or _MAKES.match(line))


_COUNTED = on_use(
    r"^(?:(?:just|only|ok|and) )?(?:(?:one|two|three|four|a few|some|several|a couple of) (?:more |other "
    r"|small )?(?:things?|points?|notes?|remarks?|rules?|wishes|requests?|questions?)|(?:can|could|would"
    r"|will) (?:you|we)|how|why|where|when|is|are|does|do|did|should|thanks?|good)\b",
    re.IGNORECASE,
)
_TWO = 2
_HEADING_WORDS = 16
_HERE_IS = on_use(r"^(?:and )?(?:here|this|that)(?:'s| is| are|'re) ", re.IGNORECASE)
_STATES = on_use(
    r"^(?:fix|add|run|implement|write|create|update|remove|delete|refactor|look|check|review|read|see|use"
    r"|keep|make|please|can|could|would|do|does|did|hi|hey|hello|remember|follow|why|how|what|when)\b|\b"
    r"(?:is|are|was|were|has|have|had|fails?|failed|broke|breaks|works?|needs?|seems?|looks?|makes?|keeps?"
    r"|please (?:fix|do|add|run|make|write)|can you|could you|thanks?)\b",
    re.IGNORECASE,
)
_FRAGMENT = on_use(
    rf"{_START}(?:{_DET}\s+)?(?:(?!(?:on|about|for|regarding|to)\b)[\w'./#@,{NAME}-]+\s+){{0,6}}?"
    rf"(?:{_FOREIGN})(?:'s)?(?:$|,|\s+(?:on|of|from|by|in|at|to|via|above|below|under|section|chapter|page"
    rf"|line|step|goes|I)\b|[\s(]+[#(\d]|\s+(?-i:[A-Z]))|{_START}{_DET}?\s*(?:[\w-]+\s+){{0,3}}[\w-]+"
    r" (?:by|from) \w",
    re.IGNORECASE,
)
"""A noun phrase that names a text or its author."""


def _said_by(lead: str) -> "re.Match[str] | None":
    position = 0
    while match := _SAID_BY.search(lead, position):
        known = bool(_KNOWN.search(match["subject"]))
        briefly = not match["rest"].strip() or bool(_WITH.search(match["rest"]))
        if match["shows"] and _CONTAINER.match(match["rest"]):
            return match
        if (known and not _COPULA.match(match["shows"] or "")) or (briefly and (match["says"] or known)):
            return match
        position = match.end("subject")
    return None


_CONTAINER = on_use(
    r"^ (?:me |us )?(?:an?|the|this|another) (?:[\w-]+ )?(?:box|dialog|pop-?up|message|banner|notice|window"
    r"|label|screen|note|warning|text|prompt|tooltip|toast|alert|hint|line)$",
    re.IGNORECASE,
)
_KNOWN = on_use(rf"\b(?:{_FOREIGN})\b|(?-i:\b(?:{_NAMES})\b)", re.IGNORECASE)
_COPULA = on_use(r"^(?:is|was|are|were|be)$", re.IGNORECASE)
_PERSONAL = on_use(
    rf"\b(?:{_PEOPLE}|{_SERVICES}|{_LETTERS}|he|she|they|someone|somebody|anyone|everyone|people|folks"
    rf"|agents?|assistant|ai|model|llm)(?:'s)?\b|(?-i:\b(?:{_NAMES})\b)|@\w",
    re.IGNORECASE,
)
_TOOL = on_use(rf"\b(?:{_TOOLS}|errors?|exceptions?|logs?|output|it|i|traceback|\w+Error)\b", re.IGNORECASE)
_NOT_A_PERSON = on_use(r"\b(?:error|commit|log|exit) messages?\b|\brelease notes\b", re.IGNORECASE)


def source_of(words: str) -> Source:
    """Return whose words an attribution announces."""
    if _PERSONAL.search(_NOT_A_PERSON.sub(" ", words)):
        return "person"
    return "tool" if _TOOL.search(words) else "text"


# --- sources named after the words ----------------------------------------------------------------

_WHO = (
    r"(?!(?:in|i|we|you|what|whatever|whoever|which|when|whenever|if|unless|until|because|since|as|like"
    rf"|no matter|even|that|who|how|where|while|and|but|or|so)\b)(?:{_DET} )?"
    rf"(?:(?!(?:what|whatever|how|which|when|if|whether|that|where|who)\b)[\w'./-]+ ){{0,3}}[\w'./{NAME}-]+"
)
_TELLS = (
    "says?|said|writes|wrote|warns|warned|states|stated|complains|complained|insists|insisted|claims|claimed"
    "|explains|explained|argues|tells (?:me|us)|told (?:me|us)|thinks|recommends|suggests|recommended"
    "|suggested|reads"
)
_SOURCE = rf"(?:{_FOREIGN}|{_NAMES}|{_URL})"
TRAILING = on_use(
    rf"(?:[,;]|\s[-–—]+|…|\A)\s*(?:so |or so |at least |as )?(?:{_TELLS}) {_WHO}"
    rf"(?: (?:in|on|at|to) [^.,;:!?\n]{{2,40}})?[\s.!)]*\Z"
    rf"|[,;]\s*(?:or so |or at least |at least |as |so )?{_WHO} (?:\w+ )?(?:{_TELLS}|puts it|put it|has it"
    r"|keeps? (?:saying|telling (?:me|us|you)|writing|repeating))"
    rf"(?: (?:in|on|at|to) [^.,;:!?\n]{{2,40}})?[\s.!)]*\Z"
    rf"|\s[-–—]+\s*(?!(?:i|we|you)\b){_WHO} (?:\w+ )?(?:{_TELLS})[\s.!)]*\Z"
    r"|(?:[\s,]+|\A)(?:is|was)(?: (?:exactly|just|basically|literally))? (?:what|how|from|written|stated"
    rf"|according)\b(?! (?:i|we|you|me|now)\b)[^.,;:!?\n]{{2,60}}[\s.!)]*\Z"
    r"|(?:[,;]|\s[-–—]+) (?:at least )?(?:according to|as per|to quote|in the words of|quoting|dixit|laut"
    rf"|selon|según)\b (?!(?:me|my|us)\b)[^.,;:!?\n]{{2,60}}[\s.!)]*\Z"
    rf"| (?:according to|as per|laut|selon|según) (?:{_DET} )?(?:[\w'-]+ )?{_OTHERS}(?!\w)[\s.!)]*\Z"
    r"|,? (?:(?:steht|stand|steht es) (?:so )?(?:im|in|auf)|sagt|schreibt|schrieb|dit|écrit|dice|escribió"
    rf"|scrive|zegt|schrijft) [^.,;:!?\n]{{2,60}}[\s.!)]*\Z"
    rf"|(?P<cites>(?:\s[-–—]{{1,2}}|\A[-–—]+|[(\[])\s*(?:quoted |taken |copied )?from (?:the|an?|our|their"
    r"|his|her|some)\b(?![^\n]*\b(?:modules?|packages?|librar(?:y|ies)|folders?|director(?:y|ies)|files?"
    rf"|src|class(?:es)?|start|beginning|top|root|branch|main)\b)[^\n()]{{2,80}}|"
    rf"(?:(?:\s|\A)[-–—]{{1,2}}|[(\[]|<-+|←|\^)\s*(?:(?:(?:this|that|it|which)(?:'s| is| was)? )?"
    r"(?:from|source|via|per|quote[ds]?|taken|copied|according to|by|as per|as seen|seen|found|cf\.?|what"
    r"|said|says|written|see|that's what)\b"
    rf"(?! (?:me|us|now|my|i|we|you)\b)[^\n(]{{0,80}}?(?:\b{_SOURCE}|(?-i:\b[A-Z]\w+))[^\n(]{{0,60}}"
    rf"|(?:{_DET} )?(?:[\w'-]+ )?(?:{_OTHERS}(?!\w)|{_URL})(?: (?-i:[A-Z])?[\w.-]+)?)"
    rf"|\A(?:--|[–—])\s*(?!.*\b(?:always|never|from now)\b)\w[^.!?\n]{{2,60}}|(?:\s[–—]|\s--|\A[-–—]+)\s*"
    rf"(?-i:[A-Z])[\w.'-]+ (?-i:[A-Z])[\w.'-]+[^.!?\n]{{0,60}}|(?:\s[–—]|\s--)\s*(?:{_DET} )?(?:[\w'-]+ )?"
    rf"(?:{_OTHERS}(?!\w)|(?-i:{_NAMES})\b|{_URL})[^.!?\n]{{0,60}}"
    r"|[,;] (?:taken |copied |quoted |straight )?from (?:the|their|a|his|her|my|our"
    rf"|an) [^.,;:!?\n]{{0,30}}?\b{_OTHERS}(?!\w)[^.,;:!?\n]{{0,40}})[\s.!)\]]*\Z",
    re.IGNORECASE,
)
"""Names the source of the words before it.

The group ``cites`` is set if a whole quote is meant, and not one sentence.
"""

MIDDLE = on_use(
    rf"[,;–—]\s*(?:as )?(?:{_WHO} (?:\w+ )?(?:{_TELLS}|puts it|has it|announced|declared|keeps?"
    r" (?:saying|telling (?:me|us|you)|writing|repeating))"
    rf"|(?:{_TELLS}) {_WHO}|(?:according to|as per|laut|selon|según) (?!(?:me|my|us)\b)[^.,;:!?\n]{{2,40}})"
    r"\s*[,;–—]",
    re.IGNORECASE,
)
"""Names the source of a sentence, in the middle of it."""

MARKED = on_use(
    rf"(?:\s|\A)(?:\^{{1,3}}|<[-=]+|←)\s+(?!(?:for|in|as|to|when|operator|instead|and|or|if|is|are"
    rf"|\d)\b)\w[^\n]{{2,120}}\Z"
    r"|(?:\s[-–—]+|[(\[])\s*(?:these|those|that|this|it)(?:'s| is| are| was| were) (?!(?:my|our) (?:\w+ )?"
    rf"(?:rule|wish|demand|requirement))(?:(?:[\w'-]+ ){{0,4}}?(?:{_FOREIGN})\b|(?:the|from|what)"
    r" (?!(?:i|we|my|our)\b|(?:\w+ )?(?:rule|requirement|deal|way|reason|point|standard|default|goal"
    rf"|convention|limit)s?\b))[^\n]{{0,120}}\Z",
    re.IGNORECASE,
)
"""A mark that points back at the words before it, and what they are."""

CITES_HERE = on_use(
    r"^(?:i|we)(?:'ve| have| just)? (?:\w+ )?(?:got|copied|found|took|pasted|read|saw|heard|quote)\b",
    re.IGNORECASE,
)
CITES = on_use(
    r"^(?:[-–—(\[^]+|<-+|←)?\s*(?:and |at least |again,? |but )?(?:"
    r"(?:that|this|it|these|those|which|all (?:of )?(?:that|this)|the above|everything above"
    r"|(?:the|this|that) (?:quote|text|sentence|part|rule|line|advice|last (?:part|line|sentence)))"
    r"(?:'s| is| was| are| were|'re)?"
    r"(?: (?:all|just|literally|exactly|only|directly|straight|also|basically|more or less|copied|quoted"
    r"|taken|pasted|cited|written|stated|an? (?:direct )?quote|the words|verbatim|word for word))*"
    rf" (?:(?:what|how) (?!(?:i|we|you)\b)[^.;:!?\n]{{2,60}}|(?:from|by|of|according to|in|on)"
    rf" (?!(?:me|us|now|my)\b)[^.;:!?\n]{{0,30}}?(?:\b{_SOURCE}|(?-i:\b[A-Z]\w+))[^.;!?\n]{{0,40}}"
    rf"|comes from [^.;:!?\n]{{2,60}}|came from [^.;:!?\n]{{2,60}})"
    r"|(?:source|quelle|fuente|fonte|via|ref|reference|quoted?|taken|copied|pasted|quoting"
    rf"|excerpt)\b:? [^\n]{{0,40}}?(?:\b{_SOURCE}|(?-i:\b[A-Z]\w+))[^\n]{{0,60}}"
    rf"|(?:so )?(?:says|said|writes|wrote) (?!(?:i|we|you)\b)[^.;:!?\n]{{2,40}}"
    r"|(?:he|she|they|it) (?:said|wrote|says|told (?:me|us)|meant)(?: (?:so|that|this|it|all that|as much))?"
    r"(?: (?:in|on|at) [^.;:!?\n]{2,40})?"
    r"|(?:i|we)(?:'ve| have| just)? (?:\w+ )?(?:got|copied|found|took|pasted|read|saw|heard|quote)"
    r" (?:this|that|it|these|those|them|the above|all (?:that|this)) (?:\w+ )?(?:from|in|on|at|off|via"
    r"|somewhere|elsewhere|online)\b[^.,;:!?\n]{0,60}"
    r")[\s.!)\]]*\Z",
    re.IGNORECASE,
)
"""A sentence that names the source of the words before it."""

# --- where the user speaks again ------------------------------------------------------------------

_AGAIN = (
    r"^(?:(?:and|but|so|also|then|well|ok(?:ay)?|now|anyway|hm+|oh|yes|no|thanks|thank you|thx)[\s,.!-]+)*"
)
FIRST_PERSON = on_use(
    r"\bi\b(?!\.e)(?!['-]\w{3})|\bi'(?:m|d|ll|ve)\b|\b(?:me|my|mine|imho|let's)\b", re.IGNORECASE
)
RESUMES = on_use(
    _AGAIN + r"(?:anyway|separately|unrelated|besides|apart from that|other than that|in any case|that said"
    r"|back to|as for (?:me|us|you|this)|for (?:this|our|my) (?:repo|project|code|part)|here\b"
    r"|in (?:this|our|my) (?:repo|project|code ?base)"
    r"|one more thing|another thing|btw|by the way|ps\b|p\.s|thanks|thank you|thx|regardless|independent"
    r"(?:ly)? of|claude\b|agent\b|from (?:me|my side)|rule:|new rule)",
    re.IGNORECASE,
)
_REQUEST = (
    "help|fix|check|look|have a look|take a look|explain|summari[sz]e|translate|address|implement|apply"
    "|review|investigate|figure|find out|handle|evaluate|eval|analy[sz]e|debug|solve|resolve"
    "|do (?:it|that|this|so)|what|why|how|where|which|who|any (?:ideas?|thoughts?|hints?|clue)|thoughts"
    "|is (?:it|this|that|he|she)|are (?:they|these|those)|does (?:it|this|that)|do (?:you|i|we)|should"
    " (?:i|we)|tell me|show me|let me know|give me|go ahead|draft|answer|reply"
)
TASK = on_use(
    rf"{_AGAIN}(?:please|pls|plz|kindly|can|could|would|will|{_REQUEST}|make it|(?:add|change|update|ignore"
    r"|follow|remove|delete|rename) (?:it|that|this|them|these|those|the (?:first|second|last))|try|see"
    r" (?:if|what|whether))\b|[^?]*\b(?:you|it|this|that|he|she|they)\b[^?]*\?\s*\Z",
    re.IGNORECASE,
)
"""A request to the agent, or a question."""

DEMANDS = on_use(r"\b(?:always|never|must(?:n't)?|from (?:now|here) on|don't|do not)\b", re.IGNORECASE)

OWN_VOICE = on_use(
    r"\bi\b(?!\.e)(?!['-]\w{3})|\bi'(?:m|d|ll|ve)\b|\b(?:imho|let's)\b|\bplease\b|[,;–—-]\s*(?:so|therefore"
    r"|hence|thus)\b|\b(?:in|for) (?:this|our) (?:repo|project|code ?base)\b|\bconvinced\b|\bagreed?\b|\b"
    r"(?:is|are|'s) (?:absolutely |quite |so )?(?:right|true)\b(?!.*\?)|\bmakes? sense\b(?!.*\?)|\bgood"
    r" (?:point|idea|catch)\b"
    r"|^(?:so|but|therefore|thus|hence|ok(?:ay)?|thanks|claude|hi|hey|hello)\b",
    re.IGNORECASE,
)
"""Signs that a sentence is the user's own."""

MENTION = on_use(
    rf"\b(?:{_FOREIGN})\b|{_URL}|(?-i:\b(?:{_NAMES})\b)|(?<!\w)@[A-Za-z][\w-]+|\b(?:{_UTTERS})\b|\b(?<!i )"
    r"(?<!we )(?<!you )(?:says|said|writes|wrote|reads|states|stated|tells|told|explains|explained|claims"
    r"|claimed|recommends|suggests|suggested|published|handed|forwarded)\b",
    re.IGNORECASE,
)
"""The name of a source, anywhere in a sentence."""

WORK = on_use(
    rf"{_AGAIN}(?:(?:please|can|could|would|will|you|we|u)\s+)+(?!(?:check|verify|explain|tell|confirm"
    r"|translate|summari[sz]e|say|rephrase|rewrite|reword|shorten|polish|make it|give|compare|be|it|this"
    r"|that)\b)",
    re.IGNORECASE,
)
"""A request for work on something other than words."""

ABOUT_WORDS = on_use(
    rf"{_AGAIN}(?:(?:please|pls|plz|just|kindly|(?:can|could|would|will) (?:you|u))\s+)*"
    r"(?:make (?:it|this|that|them|ours|a)|(?:turn|put|convert|change|bring) (?:it|this|that|these|them"
    r"|those) (?:in|to|into)\b|explain|summari[sz]e|translate|rewrite|reword|rephrase|paraphrase|shorten"
    r"|polish|proof-?read|give me|list the|name (?:the|two|three)"
    r"|compare|check (?:whether|if|that|the)|tell me|who|what|why|how|which|is|are|do|does|did|was|were"
    r"|should|true|still|continue|improve|critique|poke|quote|cite|answer|reply|respond|draft"
    r"|(?:two|three|one) sentences?|thoughts|write (?:\d|a|two|three)|implement a test"
    r"|any (?:ideas?|thoughts|clue)|opinions?|agree|(?:can|could|will|would|may|might) (?:it|this|that|they"
    r"|these|those|he|she|the|somebody|someone|anyone)|sort|rank|group|order|grade|spot|find|count|classify"
    r"|categori[sz]e|mark|highlight|convert|simplify|plain)\b",
    re.IGNORECASE,
)
"""A question about words, or a request to do something with them."""

ORDERS_WORK = on_use(
    rf"{_AGAIN}(?:(?:please|pls|then|now|next|go on|go ahead|first|can you|could you|would you|will you"
    r"|let's)[\s,:]+)*(?:and )?(?:add|fix|rename|implement|refactor|update|remove|delete|run|look|start"
    r"|begin|continue|go on|create|build|deploy|commit|push|merge|install|set up|upgrade|migrate|open|read"
    r"|review|write (?:the|tests?|a (?:test|script|function|class|migration|parser)))\b"
    r"(?! (?:it|this|that|them|these|those)\b(?! to\b))",
    re.IGNORECASE,
)
"""An order for a piece of work that has nothing to do with quoted words."""

MEANS_IT = on_use(
    rf"{_AGAIN}(?:(?:please|pls|can you|could you|would you|will you|just|kindly)\s+)*(?:{_REQUEST}|can you"
    r"|could you)\b",
    re.IGNORECASE,
)
"""A request about the words quoted just before."""

CONCLUDES = on_use(
    r"(?:[\s,;.–—-]+(?:so|therefore|thus|hence|that's why|which is why|which means)[\s,]+|:\s+)"
    r"(?=(?:please )?(?:always|never|don't|do not|stop|make sure|from now on|no more|we must|you must"
    r"|we should)\b)",
    re.IGNORECASE,
)
"""What the user concludes from a report."""

TURN = on_use(
    r"(?<=\w)(?:\s*[,;.–—-]+\s*(?:(?:but|so|yet|though|however|still|and)\s+)?(?:(?:i|i'd|i'm|i'll|i've)\b"
    r"(?!\.e)|please\b|let's\b|can you\b|could you\b)|\s*[,;.–—-]+\s*(?:but|so)\s+(?:from now on"
    r"|in (?:this|our|my) (?:repo|project)|for (?:this|our|my) (?:repo|project)|here)\b)",
    re.IGNORECASE,
)
"""A change of person within a sentence."""

SIGNED = on_use(
    r"^(?:best|(?:kind|best|warm) regards|regards|cheers|thanks|thank you|many thanks|sincerely|yours"
    r"|greetings|(?:viele|liebe|beste|mit freundlichen) grü(?:ß|ss)e?n?|lg|mfg|vg|cordialement|bien à vous"
    r"|saludos|gruß|--[ \t]*$|—)(?!\w)",
    re.IGNORECASE | re.MULTILINE,
)
POSTSCRIPT = on_use(r"^(?:p\.?s\b|on [^\n]{6,120} wrote:|from:|sent from)", re.IGNORECASE)

ENDORSED = on_use(
    r"(?:[,;.!–—-]|\band\b|\bso\b)\s*(?:(?:so|and|then|please|just|yes|ok(?:ay)?|i agree|agreed|now"
    r"|from now on|let's|let us|i(?:'d)? (?:want|like) you to|we(?:'ll| will| should| must)|you should),? )*"
    r"(?:do (?:that|so|it|this|the same|as (?:he|she|it|they) (?:says?|said))|(?:follow|obey|respect|adopt"
    r"|stick to|stick with|keep to|go with) (?:that|this|it|them|him|her|his|their|the) ?(?:advice|rule"
    r"|convention)?"
    r"|(?:i|we) (?:fully |totally |completely )?agree(?: with (?:that|it|him|her|them))?|agreed"
    r"|(?:he|she|they|it|that)(?:'s| is| are|'re) (?:absolutely |quite )?right|(?:that(?:'s| is)"
    r"|make (?:that|it)) (?:now )?(?:our|the|my|a) rule"
    r"|that's (?:how|what) (?:i|we) want(?: it| you to do)?|(?:i|we) want (?:that|this|it) too)"
    r"(?:,? (?:too|please|here|from now on|always|as well|in this (?:project|repo)|for (?:this|our)"
    r" (?:project|repo)))*\s*[.!]*\s*\Z",
    re.IGNORECASE,
)
"""The user's agreement with somebody else's words, at the end of a paragraph, which makes them the user's."""

_PARAGRAPH_END = on_use(r"\n[ \t]*\n|\Z")


def paragraph_end(text: str, position: int) -> int:
    """Return where the paragraph around a position ends."""
    match = _PARAGRAPH_END.search(text, position)
    return match.start() if match else len(text)
