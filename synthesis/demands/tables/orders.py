"""Shapes of orders and statements of practice: rows to read and to extend.

Each row gives a certainty for each set of features, an example that it must accept and one that it must not
accept; the tests walk through the rows. The features are in
:mod:`agentx.synthesis.demands.tables.vocabulary`.
"""

from agentx.synthesis.demands.tables.demand_row import Shape
from agentx.synthesis.demands.tables.places import HANDS_OFF
from agentx.synthesis.demands.tables.preferences import PREFERENCES
from agentx.synthesis.demands.tables.principles import PRINCIPLES
from agentx.synthesis.demands.tables.vocabulary import (
    ARTEFACTS,
    HABITS,
    KINDS,
    POLICY_VERBS,
    QUALITIES,
    compiled,
)

FROZEN = "hands off"
"""Name of the row for folders that must stay as they are."""

_ORDERS: tuple[Shape, ...] = (
    Shape(
        "always",
        compiled(r"^always\s+(?:please\s+|also\s+)?(?P<verb>[\w'-]+)"),
        "must",
        (("we_frame", "candidate"), ("hollow", "candidate"), ("", "active")),
        "always answer in British English",
        "always fails on CI",
    ),
    Shape(
        "never",
        compiled(r"^never,?\s+(?:(?:ever|again|under any circumstances),?\s+)?(?P<verb>[\w'-]+)"),
        "must_not",
        (("we_frame", "candidate"), ("hollow", "candidate"), ("", "active")),
        "never create a requirements.txt file",
        "never got it to work",
    ),
    Shape(
        "verb always",
        compiled(rf"^(?:{POLICY_VERBS})\b.{{0,120}}\b(?:always|at all times)\s*[.!]?$"),
        "must",
        (("deictic", "candidate"), ("", "active")),
        "use tabs always",
        "use the one that always works there",
    ),
    Shape(
        FROZEN,
        HANDS_OFF,
        "must_not",
        (
            ("a_folder !soft !attached !once_lead !this_work !question", "active"),
            ("!this_work", "candidate"),
        ),
        "do not touch anything in the legacy/ folder",
        "do not touch the loader in legacy.py",
    ),
    Shape(
        "do not",
        compiled(
            r"^(?:(?:do not|don't|dont|do n't|must not|mustn't|may not|shall not|are not allowed to"
            r"|aren't allowed to|are not supposed to"
            r"|let's (?:please )?not|you (?:must not|mustn't|may not|shall not|can't|cannot"
            r"|are not allowed to|aren't allowed to|are not supposed to)"
            r"|(?:please )?refrain from|not to),?\s+(?:(?:ever|again|under any circumstances),?\s+)?"
            r"(?P<verb>[\w'-]+))"
        ),
        "must_not",
        (
            ("ever !hollow", "active"),
            ("standing !hollow", "active"),
            ("later !deictic", "active"),
            ("until !deictic", "active"),
            ("for_now any_new", "active"),
            ("for_now universal !deictic", "active"),
            ("agent_lead !deictic", "active"),
            ("place !deictic", "active"),
            ("strict !deictic general_object", "active"),
            ("you_make", "candidate"),
            ("!deictic !bounds general_object", "candidate"),
            ("!deictic !bounds !at_hand all_of_them", "candidate"),
            ("any_new", "candidate"),
            ("unless_asked general_object", "candidate"),
            ("recurring !at_hand", "candidate"),
            ("habit", "candidate"),
        ),
        "don't ever push to main",
        "don't touch this test",
    ),
    Shape(
        "under no circumstances",
        compiled(
            r"^under no circumstances (?:should|must|may|can|are|do) (?:you|we|i want you to)(?: to)?\s+"
            r"(?P<verb>[\w'-]+)"
        ),
        "must_not",
        (("!hollow", "active"),),
        "under no circumstances should you modify the schema",
        "under no circumstances would it work",
    ),
    Shape(
        "only",
        compiled(
            r"^(?:you (?:can|may|should|must) )?only (?:ever )?(?P<verb>use|write|import|add|commit|answer"
            r"|reply|respond|create|change|edit|touch)\s+(?P<object>.+)"
        ),
        "must",
        (("standing", "active"), ("agent_lead !deictic", "active"), ("!deictic general_object", "candidate")),
        "only use standard library modules",
        "only change the parser",
    ),
    Shape(
        "prefer",
        compiled(r"^prefer (?P<object>.{3,80}?\b(?:over|to|instead of|rather than)\b.+)"),
        "prefer",
        (("standing", "active"), ("!deictic", "candidate")),
        "prefer composition over inheritance",
        "prefer that",
    ),
    Shape(
        "should not",
        compiled(
            r"^(?:you|we) (?:should not|shouldn't|should never|must never|are never to)\s+"
            r"(?P<verb>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            ("never_word", "active"),
            ("standing", "active"),
            ("ever", "active"),
            ("!deictic general_object", "candidate"),
        ),
        "we should never commit secrets",
        "you should not have done that",
    ),
    Shape(
        "stop",
        compiled(rf"^(?:stop|quit|no more)\s+(?:{HABITS})\b(?P<object>.*)"),
        "must_not",
        (("ever", "active"), ("standing", "active"), ("!deictic !hollow", "active")),
        "stop adding comments to my code",
        "stop adding this",
    ),
    Shape(
        "none of them may",
        compiled(
            rf"^(?:no|none of (?:the|our|your)) (?P<subject>(?:[\w'-]+ ){{0,2}}?(?:{ARTEFACTS}|one|agent))"
            r" (?:may|must|shall|should|can|(?:is|are) (?:ever )?allowed to)(?: ever)?"
            r" (?P<does>(?!have been\b|already\b|be (?:there|found|right|the)\b)[\w'-]+)"
        ),
        "must_not",
        (("!soft !may_be !deictic !question", "active"), ("!deictic !question", "candidate")),
        "no file may contain the word TODO",
        "no one came",
    ),
    Shape(
        "none of it",
        compiled(
            r"^no (?:more )?(?P<object>[\w -]{3,60}?)(?:,? (?:please|ever|at all|anywhere|allowed|in .{3,50}"
            r"|from now on))*\s*[.!]*$"
        ),
        "must_not",
        (
            ("ever !deictic", "active"),
            ("standing !deictic", "active"),
            ("general_object !deictic", "candidate"),
        ),
        "no emojis in commit messages, ever",
        "no problem",
    ),
    Shape(
        "avoid",
        compiled(r"^(?:avoid|try to avoid|refrain from|steer clear of|stay away from)\s+(?P<object>.+)"),
        "must_not",
        (
            ("standing !hollow", "active"),
            ("agent_lead !deictic", "active"),
            ("place !deictic", "active"),
            ("!deictic", "candidate"),
        ),
        "avoid global variables in general",
        "avoid this",
    ),
    Shape(
        "order",
        compiled(rf"^(?:{POLICY_VERBS})\b(?P<object>.*)"),
        "must",
        (
            ("standing !hollow", "active"),
            ("later lasting_verb !deictic", "active"),
            ("for_now any_new", "active"),
            ("for_now you_make", "active"),
            ("for_now universal future !deictic", "candidate"),
            ("each_time !hollow", "active"),
            ("agent_lead !deictic !once_lead !lets !explains", "active"),
            ("place lasting_verb !deictic !a_file", "active"),
            ("any_new !deictic !lets", "active"),
            ("you_make !deictic", "candidate"),
            ("style", "candidate"),
            ("process !deictic !another", "candidate"),
            ("form !at_hand", "candidate"),
            ("instead !deictic !one_file", "candidate"),
            ("everywhere !at_hand", "candidate"),
            ("takes_care", "candidate"),
            ("recurring !at_hand !lets", "candidate"),
            ("before_acting !lets !question", "candidate"),
            ("reminded !deictic", "candidate"),
            ("loud !deictic", "candidate"),
        ),
        "from now on, use tabs",
        "add a function that returns the total",
    ),
    Shape(
        "passive prohibition",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b|he\b|she\b)[\w'ˣ @./-]{2,80}?)"
            r" (?:(?:must|may|should|shall|can) never|must not|mustn't|may not"
            r"|(?:is|are) (?:never|not) to(?= be\b)|are never to|are not allowed(?: to)?|is not allowed"
            r"(?: to)?)\s+(?P<does>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            ("never_word artefact !deictic !soft", "active"),
            ("artefact universal !deictic !soft", "active"),
            ("!deictic", "candidate"),
        ),
        "passwords must never be logged",
        "it must not have loaded",
    ),
    Shape(
        "all of them must",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b"
            rf"(?:{ARTEFACTS})\b.{{0,80}}?)"
            r"\s(?:must|has to|have to|needs? to|should|shall|(?:is|are) to)\s+"
            r"(?P<does>(?!have been\b|already\b)[\w'-]+)"
        ),
        "must",
        (
            ("!soft !deictic", "active"),
            ("standing", "active"),
            ("!deictic", "candidate"),
            ("any_new", "candidate"),
            ("each_one", "candidate"),
        ),
        "every function must have a docstring",
        "all of this should work",
    ),
    Shape(
        "all of them need",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any|new)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b"
            rf"(?:{ARTEFACTS})\b[\w'ˣ @./-]{{0,60}}?)"
            r"\s(?:needs?|requires?|gets?)\s+(?P<object>(?!to\b|it\b|that\b|this\b).+)"
        ),
        "must",
        (
            ("standing !soft !deictic", "active"),
            ("standing", "candidate"),
            ("any_new !soft !deictic", "candidate"),
        ),
        "from now on every module needs tests",
        "every module needs this",
    ),
    Shape(
        "nothing may",
        compiled(
            r"^nothing (?:in|inside|under|below|within) (?P<object>[\w'ˣ @./-]{2,80}?) (?:may|must|shall|can"
            r"|should) (?:ever )?be (?P<done>\w+)"
        ),
        "must_not",
        (("ever !deictic !soft", "active"), ("standing !deictic", "active"), ("!deictic !soft", "candidate")),
        "nothing in src/legacy may ever be changed",
        "nothing in src/legacy was changed",
    ),
    Shape(
        "must always",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b)[\w'ˣ @./-]{2,80}?) (?:must|should|shall|has to"
            r"|have to|needs? to) always\s+(?P<does>(?!have been\b)[\w'-]+)"
        ),
        "must",
        (("your !deictic", "active"), ("artefact !soft !deictic", "active"), ("!deictic", "candidate")),
        "dates must always be in ISO format",
        "it should always be there",
    ),
    Shape(
        "i want",
        compiled(
            r"^i(?:'d| would)? (?:really )?(?:always (?:want|need|expect|like)|(?:want|need|expect|like)"
            r" (?:you )?(?:to )?always)\s+(?P<object>.+)"
        ),
        "must",
        (("!question !hollow", "active"),),
        "I always want type hints in new code",
        "I always liked it",
    ),
    Shape(
        "i want all",
        compiled(
            r"^i(?:'d| would)? (?:really )?(?:like|want|need|expect|love)"
            r" (?P<object>(?:all|every|each|any)\b.{5,160})"
        ),
        "must",
        (("standing", "active"), ("any_new", "active"), ("artefact !deictic", "candidate")),
        "I'd like all functions to be documented from now on",
        "I want all of this",
    ),
    Shape(
        "i never want",
        compiled(r"^i (?:never|don't ever|do not ever) want (?:to see|you to|any)\s+(?P<object>.+)"),
        "must_not",
        (("!hollow", "active"),),
        "I never want to see a bare except",
        "I never wanted this",
    ),
    Shape(
        "i do not want",
        compiled(
            r"^i (?:(?:don't|do not|really don't) (?:want|like) (?:you to|any|it when you|to see(?: any)?"
            r"|when you)"
            r"|(?:really )?(?:hate|dislike|can't stand) (?:it )?when you)\s+(?P<object>.+)"
        ),
        "must_not",
        (("ever", "active"), ("standing", "active"), ("!deictic", "candidate")),
        "I don't want any emojis in the docs ever",
        "I don't want to go",
    ),
    Shape(
        "our practice",
        compiled(
            r"\bin (?:this|our) (?:repo(?:sitory)?|project|code ?base|team|company|house|document|report"
            r"|book|paper)s?,? (?:we|you|one|i)"
            r" (?:only |always |never |do not |don't |all )?(?P<does>(?!have\b|had\b|are\b|were\b|will\b"
            r"|could\b|can\b|found\b|see\b)[\w']+)"
        ),
        "must",
        (("question", "candidate"), ("always_word", "active"), ("", "candidate")),
        "in this repo we always squash before merging",
        "in this repo we have a bug",
        anywhere=True,
    ),
    Shape(
        "what we use here",
        compiled(
            r"^(?:(?:this|our) (?:project|repo(?:sitory)?|code ?base|team) (?:only |always |never )?"
            r"(?P<use>uses|follows|doesn't use|does not use)\s"
            r"|we(?:'re| are)? (?:only |always |never |don't |do not )?(?:use|using|follow"
            r"|following)\s.{2,80}\b(?:in (?:this|our) (?:project|repo(?:sitory)?|code ?base|team)"
            r"|around here)\b)"
        ),
        "must",
        (("!question", "candidate"),),
        "this project uses pnpm, never npm",
        "this project used npm",
    ),
    Shape(
        "the rule is",
        compiled(
            r"^(?:(?:my|our|the|a|one)\s+)(?:\w+ )?(?P<weight>overriding|golden|general|main|first|house"
            r"|hard|strict|standing|iron|only|basic|coding|style|naming|team|project)"
            r"\s*(?:directive|rule|policy|convention|principle|guideline|standard)s? (?:here )?"
            r"(?:is|:|that)\s+(?P<object>.+)"
        ),
        "must",
        (("question", "candidate"), ("", "active")),
        "the golden rule is to keep startup below a second",
        "the rule is broken",
    ),
    Shape(
        "our convention",
        compiled(
            r"^(?:my|our) (?:\w+ )?(?:directive|rule|policy|convention|principle|guideline|standard)s?"
            r" (?:here )?(?:is|are|says)\s+(?P<object>.+)"
        ),
        "must",
        (("!question", "candidate"),),
        "our convention is snake_case for files",
        "our rules engine is slow",
    ),
    Shape(
        "standard to meet",
        compiled(r"^(?:each|every)\b.{0,120}\b(?:must|should)\b"),
        "must",
        (("!question", "candidate"),),
        "Each test has expected outcomes that should be validated",
        "each of us wrote one",
    ),
    Shape(
        "as instructed",
        compiled(
            r"\b(?P<promise>i'?ll )?(?P<text>always \w+ing) .{4,200}\b(?:when|whenever) (?:i |you )?"
            r"(?:ask|asked|asking|discuss|discussing|talk about|talking about)\b"
        ),
        "must",
        (("promised", "candidate"), ("question", "candidate"), ("", "active")),
        "as agreed, always naming the sources when asked about prices",
        "always falling down",
        anywhere=True,
    ),
    Shape(
        "what i have to do",
        compiled(
            r"\b(?:given|since|because|as|that) i(?:'m| am)? (?:have to|need to|must|supposed to|asked to"
            rf"|told to|required to) (?P<text>(?:{POLICY_VERBS})\b.{{4,160}}"
            r"\b(?:when|whenever) (?:i |you |i'm |you're )?(?:ask|asked|asking|discuss|discussing|talk"
            r"|talking|write|writing|report|reporting)\b)"
        ),
        "must",
        (("", "candidate"),),
        "given that I have to give sources when discussing history",
        "given that I have to go when asked",
        anywhere=True,
    ),
    Shape(
        "what we want",
        compiled(
            r"^we (?:really |only |always |generally )?(?:(?P<not>don't |do not |never )want to"
            r" (?P<object>(?!use\b|adopt\b|add\b|introduce\b|switch\b|move\b|support\b|go with\b"
            r"|rewrite\b|migrate\b|know\b|see\b|go\b).{6,})|want (?:to )?(?P<wanted>(?!to\b|know\b|see\b"
            r"|talk\b|discuss\b|look\b|check\b|try\b).{6,}))"
        ),
        "must",
        (
            ("standing !principle", "active"),
            ("refused !deictic !hollow", "candidate"),
            ("we_all !deictic !hollow", "candidate"),
        ),
        "we don't want to depend on the network in tests",
        "we want this",
    ),
    Shape(
        "can we not",
        compiled(
            r"^(?:can|could) (?:we|you) (?:please )?(?:not|avoid|refrain from|stop) (?P<verb>(?:ever )?"
            r"(?:commit|push|use|add|create|change|touch|edit|rename|remove|delete|mock|log|merge|hardcode"
            r"|import|introduce|skip|squash|rebase|duplicate|repeat|rely|depend|mix|break)(?:t?ing|e?s)?)\s+"
            r"(?P<object>.+)"
        ),
        "must_not",
        (("ever", "active"), ("!deictic", "candidate")),
        "can we not commit the generated docs?",
        "can we not get the id from there?",
    ),
    Shape(
        "kept in git",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b|we\b|these\b|those\b)[\w'ˣ @./-]{2,80}?)"
            r" (?:should|must|has to|have to|needs? to|ought to)(?P<not>n't| not| never)?"
            r" (?:always )?be (?P<does>commit+ed|checked in|tracked|versioned|git-?ignored|published"
            r"|documented)\b"
        ),
        "must",
        (("!deictic", "candidate"),),
        "the lock file should be committed",
        "this should be committed",
    ),
    Shape(
        "kinds should",
        compiled(
            rf"^(?:our |your |all )?(?P<subject>(?:[\w-]+ ){{0,2}}(?:{KINDS})"
            rf"(?: (?:in|of|for|under) [\w'ˣ./-]{{2,40}})?) (?:(?:should|must|can)(?P<not>n't|not| not"
            r"| never)|should|must|need to|have to|ought to)"
            r" (?:(?:always|only|all|each) ){0,2}(?P<does>(?!have been\b|already\b)[\w'-]+)"
        ),
        "must",
        (("standing", "active"), ("!deictic", "candidate")),
        "integration tests should use the real binary",
        "these tests should pass now",
    ),
    Shape(
        "quality wanted",
        compiled(
            r"^(?:(?:please )?(?:make sure|ensure)(?: that)? (?P<object>(?!it\b|this\b|that\b|these\b"
            r"|they\b)[\w'ˣ @./()-]{3,80}?) (?:is|are|stays?|remains?)"
            r"|(?P<subject>(?!i\b|it\b|this\b|that\b|these\b|they\b|you\b)[\w'ˣ @./()-]{3,80}?)"
            r" (?:should|must|needs? to|has to|have to|ought to) (?:be|stay|remain))"
            r" (?P<not>not |never )?(?:(?:always|still|fully|as) ){0,2}"
            rf"(?:{QUALITIES})\b"
        ),
        "must",
        (("standing", "active"), ("!deictic", "candidate")),
        "the output format needs to be configurable",
        "it needs to be fast",
    ),
    Shape(
        "the aim",
        compiled(
            r"^(?:the|our) (?:main |whole |overall |general |overriding |top )?(?:goal|aim|intention|intent"
            r"|point|idea|priority|requirement|philosophy|rule of thumb)(?: here)?"
            r" is (?P<not>not |never )?(?:to|that)\b(?P<object>.{8,})"
        ),
        "must",
        (("!deictic lasting_aim", "candidate"),),
        "the main goal is to never lose a user's data",
        "the idea is that this works",
    ),
    Shape(
        "it matters that",
        compiled(
            r"^it(?:'s| is) (?:really |very |super )?(?:important|critical|essential|crucial|vital)"
            r"(?: to (?:me|us))? that (?P<object>(?!it\b|this\b|that\b).{8,})"
        ),
        "must",
        (("standing", "active"), ("!deictic", "candidate")),
        "it's important that commands stay fast",
        "it's important that this works",
    ),
    Shape(
        "i like",
        compiled(
            r"^i (?:really |generally |usually |always |much )?(?:like (?:to (?:have|keep|see|use)|it when"
            r"|when|having|keeping|using)|favou?r|love it when) (?P<object>(?!it\b|this\b|that\b"
            r"|the\b).{6,})"
        ),
        "prefer",
        (("!deictic", "candidate"),),
        "I like to keep functions short",
        "I like to keep this",
    ),
    Shape(
        "our habit",
        compiled(
            r"^we (?:usually|generally|normally|typically|tend to|try to|only ever)"
            r" (?P<does>(?!have\b|see\b|get\b|know\b)[\w']+)\b(?P<object>.{4,})"
        ),
        "must",
        (("!deictic", "candidate"),),
        "we usually squash commits before merging",
        "we usually see this",
    ),
    Shape(
        "no concern",
        compiled(
            r"^(?:we|i|you) (?:don't|do not) (?:need to |have to )?(?:care|worry|bother) (?:about|with)"
            r" (?P<object>(?!it\b|this\b|that\b|them\b).{4,})"
        ),
        "must_not",
        (("!deictic", "candidate"),),
        "we don't care about backwards compatibility",
        "we don't care about that",
    ),
    Shape(
        "we must be sure",
        compiled(
            r"\b(?P<text>we (?:need|have|want) to (?:be|make) (?:absolutely )?sure (?:that )?"
            r"(?:our|all|every|each|any|no|nothing|we (?:always|never|don't))\b.{8,})"
        ),
        "must",
        (("!question", "candidate"),),
        "we need to be sure our tests would notice a breaking change",
        "we need to be sure it works",
        anywhere=True,
    ),
)

SHAPES: tuple[Shape, ...] = (*_ORDERS, *PRINCIPLES, *PREFERENCES)
"""In the order in which they are tried; the first one that accepts a clause is used."""

RECORDED = "asked to be recorded"
"""Shape name of a demand that fits no row, and that the user asks to record.

Example: "… add a rule for this".
"""
