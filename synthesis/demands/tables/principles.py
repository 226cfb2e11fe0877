"""Shapes of principles, of shared work, and of references to earlier rules: rows to read and to extend.

Most do not say how long they apply, so each is only a candidate unless it says "always", "never" or "from now
on".
"""

from agentx.synthesis.demands.tables.demand_row import Shape
from agentx.synthesis.demands.tables.vocabulary import KINDS, LANGUAGES, QUALITIES, compiled

_ONES_WORK = (
    r"(?:run|test|deploy|commit|push|merge|start|restart|build|release|publish|install|review|execute|launch"
    r"|tag|bump)"
)
_RUNNING = (
    r"(?:(?:the|any|a|my|more) )?(?:[\w-]+ ){0,2}(?:servers?|app|application|services?|watchers?|containers?"
    r"|docker|emulators?|simulators?|browsers?|daemons?|deploy\w*|migrations?|builds?)"
)
_HABITUAL = (
    r"(?:use|write|do|document|commit|push|deploy|mock|test|support|allow|ship|merge|import|rely|depend"
    r"|hard-?code|release|squash|rebase|comment|cache|touch|edit|publish|log|abbreviate|nest|swallow|store)"
)

PRINCIPLES: tuple[Shape, ...] = (
    Shape(
        "as a rule",
        compiled(
            r"^we (?:really |all )?(?P<does>(?!(?:have|had|are|were|was|get|got|see|saw|know|knew|think"
            r"|thought|found|could|can|cannot|can't|will|would|may|might|did|didn't|haven't|aren't|still"
            r"|just|already)\b)[\w']+)\b(?P<object>.{6,})"
        ),
        "must",
        (("principle always_word !question", "active"), ("principle !question !at_hand", "candidate")),
        "as a rule, we keep handlers free of SQL",
        "as a rule, we have no time for that",
    ),
    Shape(
        "from now on",
        compiled(
            r"^(?:(?:we|you|everyone|everybody)(?:'re|'ll| are| will)?(?: going to| be)?|(?:this|our|the)"
            r" (?:team|project|repo(?:sitory)?)) (?:only |always |all |just |now )*(?P<not>don't |do not "
            r"|doesn't |no longer |never |not )?"
            r"(?P<does>(?!(?:are|is|am|was|were|be|been|have|has|had|get|got|see|saw|know|think|thought"
            r"|found|find|face|hit|can|can't|cannot|could|will|would|may|might|want|hope|expect|like|should"
            r"|must|need|understand|feel|love|hate|plan)\b)[\w']+)\b(?P<object>.{2,})"
        ),
        "must",
        (("onward !question !deictic !soft", "active"),),
        "from now on we use yarn",
        "from now on we have a problem",
    ),
    Shape(
        "mind that",
        compiled(
            r"^we (?:really |always |only |still )?(?P<not>don't want|do not want|never want)?(?:want|need"
            r"|like|aim|try|intend|strive|prefer|must|should)?\b(?: to)? ?(?P<object>.{8,})"
        ),
        "must",
        (("noted we_want !question !deictic", "candidate"),),
        "note that we want to keep the bundle small",
        "note that we wanted to go",
    ),
    Shape(
        "what it is",
        compiled(
            r"\b(?:remember|note|keep in mind|bear in mind|mind),?(?: that)? (?P<text>(?:this|it|we)"
            r"(?: is|'s| are|'re)(?: just| only| meant to be| supposed to be)? (?:a|an|the|for|building"
            r"|writing)\b"
            rf" .{{3,80}}?(?:,|;| -| –|:)(?: so| and)?(?: please)? ?(?:(?:keep|make|stay|use|avoid|stick"
            rf"|leave|do not|don't|no)\b.{{3,}}|.{{0,30}}\b(?:{QUALITIES})\b))"
        ),
        "must",
        (("!question", "candidate"),),
        "remember this is a demo, keep it small",
        "remember this is a demo",
        anywhere=True,
    ),
    Shape(
        "this and not that",
        compiled(
            r"^we(?:'re| are)? (?:only |always )?(?P<does>use|using|run|running|write|writing|deploy with"
            r"|build with|work with|stick to|rely on|depend on|go through|follow|following)\b"
            r" (?P<object>[^?]{2,60}?),? (?:and )?(?:not|never|no|instead of|rather than)\b"
            r"(?! (?:yet|now|sure))"
        ),
        "must",
        (("!question !at_hand", "candidate"),),
        "we use pnpm, not npm",
        "we use pnpm already",
    ),
    Shape(
        "when in doubt",
        compiled(
            r"^(?:(?:when|if|whenever) (?:you(?:'re| are| get| feel)? )?(?:ever )?(?:in doubt|unsure"
            r"|uncertain|not sure|unclear|stuck|(?:anything|something|it) is (?:unclear|ambiguous|not clear)"
            r"|(?:don't|do not) (?:know|understand)|have (?:any )?(?:questions?|doubts?))\b.{0,60}?,?"
            r" (?:then |please |just |always )*"
            r"(?P<verb>ask|stop|tell|check|consult|look|say|let)\b|(?P<verb2>ask|stop and ask|tell"
            r"|check with|consult)\b (?:me )?.{0,40}?\b(?:when|if|whenever) (?:you(?:'re| are)? )?"
            r"(?:in doubt|unsure|uncertain|not sure|unclear|stuck|(?:anything|something) is"
            r" (?:unclear|ambiguous|not clear)|have (?:any )?(?:questions?|doubts?)))"
        ),
        "must",
        (("!question", "candidate"),),
        "when in doubt, ask me",
        "when in doubt, the parser stops",
        anywhere=True,
    ),
    Shape(
        "one and no other",
        compiled(
            r"^there (?:should|must|can|may|shall|needs? to|has to|is to|are to) (?:only |just |ever "
            r"|always )*be (?:only |just |exactly |at most |no more than )*(?:a single|one|single)\b"
            r"(?P<object>.{3,120}?)"
            r"\b(?:no others?|nothing else|none (?:other|elsewhere)|nowhere else|not (?:two|three|several"
            r"|many)|(?:in|of) (?:the |this |our )?(?:whole |entire )?(?:project|repo(?:sitory)?|code ?base"
            r"|system))\b"
        ),
        "must",
        (("!question", "candidate"),),
        "there should be just one place that reads the environment, and no other",
        "there should be just one error left",
    ),
    Shape(
        "with this, not that",
        compiled(
            r"^(?P<subject>(?!(?:i|it|that|this|they|these|those|we|you|he|she)\b)[\w'ˣ @./-]{2,80}?)"
            r" (?:must|should|shall|has to|have to|needs? to|(?:is|are) to|can|may) (?:only |always "
            r"|all )*be (?P<does>\w+(?:ed|ne|en|ght|de|un|ut|ld|nt|pt|ead))\b"
            r" (?:only |always |just )?(?:with|via|through|by|using|in|from|on|inside|under|as)\b .{2,80}?"
            r"(?:(?:,|;| -| –|\() ?(?:and )?(?:not|never)\b|\b(?:instead of|rather than|and not|but not"
            r"|never)\b)"
        ),
        "must",
        (("!question !at_hand", "candidate"),),
        "the schema must be changed with a migration, not by hand",
        "the schema must be changed with a migration",
    ),
    Shape(
        "my part",
        compiled(
            r"^(?:(?:i'll|i will|i'd rather|i would rather|i prefer to|i want to|i like to|i can"
            rf"|i'm going to) (?:always |usually )?(?P<verb>{_ONES_WORK})\b(?P<object>.{{0,80}}?)\b"
            r"(?:myself|on my own|manually|by hand)\b"
            rf"|let me (?:always )?(?:do|handle|make|run|take care of|manage|decide on) (?:all (?:of )?)?"
            rf"(?:the|my|any) (?:git )?(?:commits?|committing|push(?:es|ing)|deploy\w*|tests|testing"
            rf"|merg(?:es|ing)|releas(?:es|ing)|builds|branches|migrations)\b)"
            r"(?!.{0,20}\b(?:first|now|today|this time|then)\b)"
        ),
        "must",
        (("!question", "candidate"),),
        "I'll deploy it myself",
        "I'll deploy it now",
    ),
    Shape(
        "what not to start",
        compiled(
            r"^(?:do not|don't|never|no need to|please don't|please do not) (?P<verb>start|run|launch"
            rf"|restart|kill|stop|boot|spin up|open|deploy|execute) {_RUNNING}\b"
            rf"(?!.{{0,40}}\b(?:yet|now|this time|first|again|until|before)\b)"
        ),
        "must_not",
        (("!question", "candidate"),),
        "do not start the dev server",
        "do not start the dev server yet",
    ),
    Shape(
        "you were told",
        compiled(
            r"^(?:you (?:already |do |should )?have (?:clear |explicit |detailed |written |some |specific )?"
            r"(?:directions?|instructions?|rules?|guidelines?|a (?:rule|guide|memory)|docs|documentation"
            r"|memories)\b (?P<object>.{4,160})"
            r"|(?:follow|re-?read|obey|respect|stick to|consult|honou?r|remember) (?:your|the project(?:'s)?"
            r"|our|my) (?:\w+ )?(?:rules?|guidelines?|instructions?|directions?|memor(?:y|ies)|conventions?"
            r"|standards?)\b)"
        ),
        "must",
        (("!question", "candidate"),),
        "you have directions on how to name branches, follow them",
        "you have a bug in the parser",
    ),
    Shape(
        "not each time",
        compiled(
            r"^(?:(?:(?:there(?:'s| is) |i see )?no need|you (?:really )?(?:don't|do not) (?:need|have))"
            r" (?:for you )?to|(?:please )?(?:do not|don't|never)) (?P<verb>(?:stop|pause|ask|wait|confirm"
            r"|check|summari[sz]e|explain|report|repeat|show|run|commit|list|recap|apologi[sz]e|update|test"
            r"|build|print|create)\b)"
            r"(?P<object>.*)\b(?:(?:after|before|for|at|on|in|with|between) (?:each|every|any|all|\w+s\b)"
            r"|every (?:single )?(?:time|step)|each (?:time|step)|all the time|constantly|always)"
        ),
        "must_not",
        (("!question !at_hand", "candidate"),),
        "there is no need to stop after each step",
        "there is no need to stop",
    ),
    Shape(
        "to be remembered",
        compiled(
            r"\b(?:add|save|record|put|write|note|store|create|make)\b[^.;?!]{0,30}?\b"
            r"(?:(?:to|in|into) (?:your |the |our )?(?:memor(?:y|ies)|(?:project |user |cursor "
            r"|agent )?rules|instructions|(?:claude|agents)\.md)|an? (?:(?:new|project|user|cursor|agent) )?"
            r"(?:memory|rule))"
            r"(?: (?:in|to|for) [\w./ˣ -]{2,30}?)?,? (?:that|to|saying|:|which says)"
            r" (?P<text>(?:(?:we|you|i|all|any|every|each|no|never|always|use|keep|do not|don't|avoid|only"
            r"|not)\b|(?:" + KINDS + r")\b).{6,})"
        ),
        "must",
        (("", "candidate"),),
        "add to your memory that we use tabs",
        "add a rule to the parser that matches dates",
        anywhere=True,
    ),
    Shape(
        "what we never do",
        compiled(
            r"^(?:here,? |in general,? )?we (?P<not>(?:really |just |generally )*(?:don't|do not|never)"
            rf" (?:ever )?)?(?:only )?(?P<does>{_HABITUAL})\b (?P<object>.{{3,}})"
        ),
        "must",
        (("always_word general_object !question !deictic !bounds", "candidate"),),
        "we don't use mocks in our tests",
        "we don't use this",
    ),
    Shape(
        "after each",
        compiled(
            r"^(?:after|before|with|on|for|at the end of) (?:each|every)(?: single)? (?:[\w-]+ ){1,3}?,? ?"
            r"(?:please |you should |you must |just |also )*"
            r"(?P<verb>run|commit|push|update|check|test|lint|format|write|add|document|ask|review|rebase"
            r"|show|tell|make|build)\b(?P<object>.*)"
        ),
        "must",
        (("!question !at_hand", "candidate"),),
        "after every change run the linter",
        "after every change the linter complains",
    ),
    Shape(
        "kept so",
        compiled(
            r"^(?:keep|(?:make|be) sure(?: that)?) (?P<object>(?:the |our |your |all )*(?!it\b|this\b|that\b"
            r"|me\b)[\w'ˣ ./-]{2,50}?) (?:(?:is|are|stays?|remains?) )?(?:always )?"
            r"(?:up[ -]to[ -]date|in sync|free of|green at)\b"
            r"|^keep (?P<object2>(?:[\w'ˣ-]+ ){1,3}?)(?:small|short|simple|atomic|focused|minimal|pure"
            r"|flat)\b(?= *(?:[.,;!]|$))"
        ),
        "must",
        (("!question !at_hand", "candidate"),),
        "keep the changelog up to date",
        "keep this up to date",
    ),
    Shape(
        "in a language",
        compiled(
            rf"^(?:(?:the|all|our|your|code|any) )*(?:code|documentation|commit messages?|{KINDS})"
            rf"(?: and (?:the )?(?:code|documentation|{KINDS}))?"
            r"(?: (?:should|must|has to|have to|needs? to|shall|is to|are to)(?: always| all| only)? be"
            rf"(?: written| kept)?)? (?:only )?in {LANGUAGES}\s*(?:,? (?:please|only))?[.!]*$"
        ),
        "must",
        (("!question", "candidate"),),
        "code and comments in English please",
        "the comments are in English",
    ),
    Shape(
        "where they belong",
        compiled(
            rf"^(?:all |our |new )?(?P<subject>(?:[\w-]+ )?(?:{KINDS}|branch names)) (?:always )?"
            r"(?P<does>(?:go|live|belong|sit|stay) (?:in|into|under|next to|beside|inside|to|below|with)"
            rf"|(?:start|begin|end) with)\b (?P<object>.{{2,}})"
        ),
        "must",
        (("!question !at_hand !soft", "candidate"),),
        "tests live beside the code",
        "tests live for ever",
    ),
    Shape(
        "how kinds are made",
        compiled(
            r"^(?P<verb>put|place|name|wrap|log|squash|write|keep|format|prefix|sort|group|raise|handle"
            rf"|document|run|store|save) (?:your |all )?(?:[\w-]+ )?(?:{KINDS}) "
            r"(?P<object>(?:with|into?|as|by|using|via|next to|beside|under|without|like|after)\b .{2,})"
        ),
        "must",
        (("!question !deictic !one_file", "candidate"),),
        "wrap errors with their context",
        "wrap errors in this",
    ),
    Shape(
        "prefer it",
        compiled(r"^prefer (?P<object>(?!not\b|if\b|when\b)[\w'ˣ -]{3,80})"),
        "prefer",
        (("general_object !question !deictic", "candidate"),),
        "prefer small functions",
        "prefer the first",
    ),
)
