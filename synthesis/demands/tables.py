"""The shapes in which people demand: rows to read and to extend, and no code.

Each row of :data:`SHAPES` has the certainty that each set of features gives it, an example that it must take and one that
it must leave alone; the tests walk through the rows. The features stand in :mod:`agentx.synthesis.demands.vocabulary`.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.vocabulary import (
    ARTEFACTS,
    HABITS,
    POLICY_VERBS,
    Certainty,
    Modality,
    compiled,
)


class Shape(NamedTuple):
    """One shape of a demand.

    Attributes:
        name: For tests and explanations.
        pattern: Matched at the beginning of a clause without its lead-ins; for ``anywhere`` searched in it.
        modality: What it demands.
        grades: Tried in order: the features that must all be there (``!name``: must not), and the certainty they give.
        takes: A clause that it takes.
        leaves: A clause that it must leave alone.
        anywhere: Whether the demand may begin inside the clause; its text then begins there.
    """

    name: str
    pattern: re.Pattern[str]
    modality: Modality
    grades: tuple[tuple[str, Certainty], ...]
    takes: str
    leaves: str
    anywhere: bool = False


_LASTS: tuple[tuple[str, Certainty], ...] = (
    ("standing", "active"),
    ("for_now any_new", "active"),
    ("for_now you_make", "active"),
)

SHAPES: tuple[Shape, ...] = (
    Shape(
        "always",
        compiled(r"^always\s+(?:please\s+|also\s+)?(?P<verb>[\w'-]+)"),
        "must",
        (("we_frame", "proposed"), ("hollow", "proposed"), ("", "active")),
        "always answer in British English",
        "always fails on CI",
    ),
    Shape(
        "never",
        compiled(r"^never,?\s+(?:(?:ever|again|under any circumstances),?\s+)?(?P<verb>[\w'-]+)"),
        "must_not",
        (("we_frame", "proposed"), ("hollow", "proposed"), ("", "active")),
        "never create a requirements.txt file",
        "never got it to work",
    ),
    Shape(
        "verb always",
        compiled(rf"^(?:{POLICY_VERBS})\b.{{0,120}}\b(?:always|at all times)\s*[.!]?$"),
        "must",
        (("deictic", "proposed"), ("", "active")),
        "use tabs always",
        "use the one that always works there",
    ),
    Shape(
        "do not",
        compiled(
            r"^(?:(?:do not|don't|dont|do n't|must not|mustn't|may not|shall not|are not allowed to|aren't allowed to|are not supposed to"
            r"|you (?:must not|mustn't|may not|shall not|can't|cannot|are not allowed to|aren't allowed to|are not supposed to)"
            r"|(?:please )?refrain from|not to),?\s+(?:(?:ever|again|under any circumstances),?\s+)?(?P<verb>[\w'-]+))"
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
            ("you_make", "proposed"),
            ("!deictic general_object", "proposed"),
            ("any_new", "proposed"),
            ("unless_asked general_object", "proposed"),
        ),
        "don't ever push to main",
        "don't touch this test",
    ),
    Shape(
        "under no circumstances",
        compiled(
            r"^under no circumstances (?:should|must|may|can|are|do) (?:you|we|i want you to)(?: to)?\s+(?P<verb>[\w'-]+)"
        ),
        "must_not",
        (("!hollow", "active"),),
        "under no circumstances should you modify the schema",
        "under no circumstances would it work",
    ),
    Shape(
        "only",
        compiled(
            r"^only (?:ever )?(?P<verb>use|write|import|add|commit|answer|reply|respond|create|change|edit|touch)\s+(?P<object>.+)"
        ),
        "must",
        (("standing", "active"), ("agent_lead !deictic", "active"), ("!deictic general_object", "proposed")),
        "only use standard library modules",
        "only change the parser",
    ),
    Shape(
        "prefer",
        compiled(r"^prefer (?P<object>.{3,80}?\b(?:over|to|instead of|rather than)\b.+)"),
        "prefer",
        (("standing", "active"), ("!deictic", "proposed")),
        "prefer composition over inheritance",
        "prefer that",
    ),
    Shape(
        "should not",
        compiled(
            r"^(?:you|we) (?:should not|shouldn't|should never|must never|are never to)\s+(?P<verb>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            ("never_word", "active"),
            ("standing", "active"),
            ("ever", "active"),
            ("!deictic general_object", "proposed"),
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
        "none of it",
        compiled(
            r"^no (?:more )?(?P<object>[\w -]{3,60}?)(?:,? (?:please|ever|at all|anywhere|allowed|in .{3,50}|from now on))*\s*[.!]*$"
        ),
        "must_not",
        (
            ("ever !deictic", "active"),
            ("standing !deictic", "active"),
            ("general_object !deictic", "proposed"),
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
            ("!deictic", "proposed"),
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
            ("for_now universal future !deictic", "proposed"),
            ("each_time !hollow", "active"),
            ("agent_lead !deictic !once_lead !lets", "active"),
            ("place lasting_verb !deictic", "active"),
            ("any_new !deictic !lets", "active"),
            ("you_make !deictic", "proposed"),
            ("style", "proposed"),
        ),
        "from now on, use tabs",
        "add a function that returns the total",
    ),
    Shape(
        "passive prohibition",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b|he\b|she\b)[\w'ˣ @./-]{2,80}?) (?:(?:must|may|should|shall|can) never|must not|mustn't|may not"
            r"|(?:is|are) never to|are not allowed(?: to)?|is not allowed(?: to)?)\s+(?P<verb>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            ("never_word artefact !deictic !soft", "active"),
            ("artefact universal !deictic !soft", "active"),
            ("!deictic", "proposed"),
        ),
        "passwords must never be logged",
        "it must not have loaded",
    ),
    Shape(
        "all of them must",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b(?:{ARTEFACTS})\b.{{0,80}}?)"
            r"\s(?:must|has to|have to|needs? to|should|shall|(?:is|are) to)\s+(?P<verb>(?!have been\b|already\b)[\w'-]+)"
        ),
        "must",
        (
            ("!soft !deictic", "active"),
            ("standing", "active"),
            ("!deictic", "proposed"),
            ("any_new", "proposed"),
            ("each_one", "proposed"),
        ),
        "every function must have a docstring",
        "all of this should work",
    ),
    Shape(
        "all of them need",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any|new)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b(?:{ARTEFACTS})\b[\w'ˣ @./-]{{0,60}}?)"
            r"\s(?:needs?|requires?|gets?)\s+(?P<object>(?!to\b|it\b|that\b|this\b).+)"
        ),
        "must",
        (
            ("standing !soft !deictic", "active"),
            ("standing", "proposed"),
            ("any_new !soft !deictic", "proposed"),
        ),
        "from now on every module needs tests",
        "every module needs this",
    ),
    Shape(
        "nothing may",
        compiled(
            r"^nothing (?:in|inside|under|below|within) (?P<object>[\w'ˣ @./-]{2,80}?) (?:may|must|shall|can|should) (?:ever )?be (?P<done>\w+)"
        ),
        "must_not",
        (("ever !deictic !soft", "active"), ("standing !deictic", "active"), ("!deictic !soft", "proposed")),
        "nothing in src/legacy may ever be changed",
        "nothing in src/legacy was changed",
    ),
    Shape(
        "must always",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b)[\w'ˣ @./-]{2,80}?) (?:must|should|shall|has to|have to|needs? to) always\s+(?P<verb>(?!have been\b)[\w'-]+)"
        ),
        "must",
        (("your !deictic", "active"), ("artefact !soft !deictic", "active"), ("!deictic", "proposed")),
        "dates must always be in ISO format",
        "it should always be there",
    ),
    Shape(
        "i want",
        compiled(
            r"^i(?:'d| would)? (?:really )?(?:always (?:want|need|expect|like)|(?:want|need|expect|like) (?:you )?(?:to )?always)\s+(?P<object>.+)"
        ),
        "must",
        (("!question !hollow", "active"),),
        "I always want type hints in new code",
        "I always liked it",
    ),
    Shape(
        "i want all",
        compiled(
            r"^i(?:'d| would)? (?:really )?(?:like|want|need|expect|love) (?P<object>(?:all|every|each|any)\b.{5,160})"
        ),
        "must",
        (("standing", "active"), ("any_new", "active"), ("artefact !deictic", "proposed")),
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
            r"^i (?:(?:don't|do not|really don't) (?:want|like) (?:you to|any|it when you|to see(?: any)?|when you)"
            r"|(?:really )?(?:hate|dislike|can't stand) (?:it )?when you)\s+(?P<object>.+)"
        ),
        "must_not",
        (("ever", "active"), ("standing", "active"), ("!deictic", "proposed")),
        "I don't want any emojis in the docs ever",
        "I don't want to go",
    ),
    Shape(
        "our practice",
        compiled(
            r"\bin (?:this|our) (?:repo(?:sitory)?|project|code ?base|team|company|house|document|report|book|paper)s?,? (?:we|you|one|i)"
            r" (?:only |always |never |do not |don't |all )?(?P<verb>(?!have\b|had\b|are\b|were\b|will\b|could\b|can\b|found\b|see\b)[\w']+)"
        ),
        "must",
        (("question", "proposed"), ("always_word", "active"), ("", "proposed")),
        "in this repo we always squash before merging",
        "in this repo we have a bug",
        anywhere=True,
    ),
    Shape(
        "what we use here",
        compiled(
            r"^(?:(?:this|our) (?:project|repo(?:sitory)?|code ?base|team) (?:only |always |never )?(?P<use>uses|follows|doesn't use|does not use)\s"
            r"|we(?:'re| are)? (?:only |always |never |don't |do not )?(?:use|using|follow|following)\s.{2,80}\b(?:in (?:this|our) (?:project|repo(?:sitory)?|code ?base|team)|around here)\b)"
        ),
        "must",
        (("!question", "proposed"),),
        "this project uses pnpm, never npm",
        "this project used npm",
    ),
    Shape(
        "the rule is",
        compiled(
            r"^(?:(?:my|our|the|a|one)\s+)(?:\w+ )?(?P<weight>overriding|golden|general|main|first|house|hard|strict|standing|iron|only|basic|coding|style|naming|team|project)"
            r"\s*(?:directive|rule|policy|convention|principle|guideline|standard)s? (?:here )?(?:is|:)\s+(?P<object>.+)"
        ),
        "must",
        (("question", "proposed"), ("", "active")),
        "the overriding directive is to not get in the way of the user",
        "the rule is broken",
    ),
    Shape(
        "our convention",
        compiled(
            r"^(?:my|our) (?:\w+ )?(?:directive|rule|policy|convention|principle|guideline|standard)s? (?:here )?(?:is|are|says)\s+(?P<object>.+)"
        ),
        "must",
        (("!question", "proposed"),),
        "our convention is snake_case for files",
        "our rules engine is slow",
    ),
    Shape(
        "standard to meet",
        compiled(r"^(?:each|every)\b.{0,120}\b(?:must|should)\b"),
        "must",
        (("!question", "proposed"),),
        "Each test has expected outcomes that should be validated",
        "each of us wrote one",
    ),
    Shape(
        "i prefer",
        compiled(
            r"\bi (?:also |really |strongly |generally |usually |always |typically |personally |much |do |still |just |tend to |definitely )?prefer\s+(?P<object>[^?]{4,})"
        ),
        "prefer",
        (("choice", "proposed"), ("!narrow !asks", "active")),
        "I prefer bullet points over paragraphs",
        "I prefer that",
        anywhere=True,
    ),
    Shape(
        "i would prefer",
        compiled(
            r"^i(?:'d| would) (?:really |much |generally )?(?:prefer|rather)(?: to| if you| you)?\s+(?P<object>[^?]{4,})"
        ),
        "prefer",
        (("standing !narrow", "active"), ("you_frame universal !narrow !deictic", "proposed")),
        "I'd prefer British spelling from now on",
        "I'd prefer that",
    ),
    Shape(
        "i prioritize",
        compiled(
            r"(?:\bi (?:also |really |generally |usually |always |tend to )?|\bi(?:'ve| have) (?:always |long )?been (?:\w+ )?|\bdecided to |\bsomeone who )"
            r"(?:prioriti[sz](?:e|es|ing)|favou?r)\s+(?P<object>[^?]{6,})"
        ),
        "prefer",
        (("!asks !narrow !past !deictic", "active"), ("!asks !narrow", "proposed")),
        "I prioritize mental health over extra income",
        "should I prioritize it",
        anywhere=True,
    ),
    Shape(
        "my preference",
        compiled(
            r"\b(?:tak(?:e|ing) into account|consider(?:ing)?|given|remember|keep(?:ing)? in mind|respect(?:ing|s)?|fits?|based on|reflects?|follow(?:ing)?|mind) "
            r"my preference (?:for|of|to)\s+(?P<object>[^?]{6,})"
        ),
        "prefer",
        (("!narrow", "proposed"),),
        "taking into account my preference for visual learning",
        "does it change my preference for clear deadlines",
        anywhere=True,
    ),
    Shape(
        "as instructed",
        compiled(
            r"^(?:i'?ll )?always (?P<verb>\w+ing) .{4,200}\b(?:when|whenever) (?:i |you )?(?:ask|asked|asking)\b"
        ),
        "must",
        (("", "proposed"),),
        "always reporting exact numbers when asked about site speed",
        "always falling down",
        anywhere=True,
    ),
)
