"""The explicit orders: wordings that say themselves that they last, so that they are certain on any text.

Everything else that may last is only a candidate: :mod:`agentx.synthesis.demands.tables.doubt`.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.places import HANDS_OFF
from agentx.synthesis.demands.tables.vocabulary import ARTEFACTS, POLICY_VERBS, PROJECT, Modality, compiled


class ExplicitOrder(NamedTuple):
    """One wording of an order or a ban.

    Attributes:
        name: Used in tests and explanations.
        modality: Its modality.
        lasts_if: Sets of features (``!name``: absent). The order lasts if all of one set are there.
        takes: A clause that it must accept.
        leaves: A clause that it must not accept.
        pattern: Matched at the beginning of a clause without its lead-ins. Its groups: ``verb`` must be a
            verb's base form, some features are searched in ``object`` or after the verb, and ``not`` turns a
            must into a must not.
    """

    name: str
    modality: Modality
    lasts_if: tuple[str, ...]
    takes: str
    leaves: str
    pattern: re.Pattern[str]


HANDS_OFF_ROW = "hands off"
"""Name of the row for folders that must stay as they are."""

# fmt: off
_NOT_TO = (r"(?:do not|don't|dont|do n't|let's (?:please )?not|not to|(?:(?:you|we) )?(?:(?:must|may|shall"
    r"|should) not|mustn't|shouldn't|(?:are not|aren't) (?:allowed|supposed) to)|you (?:can't|cannot)"
    r"|under no circumstances (?:should|must|may|can|are|do) (?:you|we|i want you to)(?: to)?)")
_EVER = r"(?:(?:ever|again|under any circumstances),?\s+)?"
_STATES = (r"(?:are|is|am|was|were|be|been|have|has|had|get|got|see|saw|know|knew|think|thought|found|find"
    r"|face|hit|can|can't|cannot|could|will|would|may|might|want|hope|expect|like|should|must|need"
    r"|understand|feel|love|hate|plan|did|didn't|haven't|aren't|still|already)\b")
"""Verbs that describe what is the case, and not a practice."""

ORDERS: tuple[ExplicitOrder, ...] = (
    ExplicitOrder("always", "must", ("!we_frame !hollow",),
        "always answer in British English", "always fails on CI",
        compiled(r"^always\s+(?:please\s+|also\s+)?(?P<verb>[\w'-]+)")),
    ExplicitOrder("never", "must_not", ("!hollow",),
        "never create a requirements.txt file", "never got it to work",
        compiled(rf"^never,?\s+{_EVER}(?P<verb>[\w'-]+)")),
    ExplicitOrder(HANDS_OFF_ROW, "must_not", ("a_folder !soft !attached !this_work !question",),
        "do not touch anything in the legacy/ folder", "do not touch the loader in legacy.py", HANDS_OFF),
    ExplicitOrder("do not", "must_not", (
        "ever !hollow", "standing !hollow", "later !deictic", "until !deictic", "for_now universal !deictic",
        "recurs !deictic", "place !deictic", "strict !deictic !definite",
        ), "don't ever push to main", "don't touch this test",
        compiled(rf"^{_NOT_TO},?\s+{_EVER}(?P<verb>(?!have\b)[\w'-]+)")),
    ExplicitOrder("order", "must", (
        "standing !hollow", "later lasting_verb !deictic", "recurs !deictic !lets",
        "place lasting_verb !deictic", "any_new !deictic !lets",
        ), "from now on, use tabs", "add a function that returns the total",
        compiled(rf"^(?:only (?:ever )?)?(?:(?P<not>(?:try to )?avoid|refrain from|steer clear of"
        rf"|stay away from)|{POLICY_VERBS})\b(?P<object>.*)")),
    ExplicitOrder("stop", "must_not", ("ever", "standing", "!deictic !hollow"),
        "stop adding comments to my code", "stop adding this",
        compiled(r"^(?:stop|quit|no more)\s+(?!(?:work|be|runn?|go|wait|hav|do|happen|start|fail"
        r"|respond)ing\b)\w+ing\b(?P<object>.*)")),
    ExplicitOrder("no such thing", "must_not", ("ever !deictic", "standing !deictic"),
        "no emojis in commit messages, ever", "no problem",
        compiled(r"^no (?:more )?(?P<object>[\w -]{3,60}?)(?:,? (?:please|ever|at all|anywhere|allowed"
        r"|in .{3,50}|from now on))*\s*[.!]*$")),
    ExplicitOrder("none of them may", "must_not", ("artefact !soft !deictic !question",),
        "no file may contain the word TODO", "no one came",
        compiled(r"^(?:no|none of (?:the|our|your)) (?:[\w'-]+ ){1,4}?(?:may|must|shall|(?:is"
        r"|are) (?:ever )?allowed to)(?: ever)? (?!have been\b|already\b)[\w'-]+(?P<object>.*)")),
    ExplicitOrder("they must never", "must_not",
        ("never_word artefact !deictic !soft", "universal artefact !deictic !soft"),
        "passwords must never be logged", "it must not have loaded",
        compiled(r"^(?!(?:i|it|that|this|they|he|she)\b)[\w'ˣ @./-]{2,80}? (?:(?:must|may|shall|can) never"
        r"|must not|mustn't|may not|(?:is|are) (?:never|not) to(?= be\b)|(?:is|are) not allowed(?:"
        r" to)?)\s+(?!have\b)[\w'-]+(?P<object>.*)")),
    ExplicitOrder("all of them must", "must", ("!needs !soft !deictic", "standing !deictic"),
        "every function must have a docstring", "all of this should work",
        compiled(rf"^(?:all|every|each|any|new)\b[\w'ˣ @./-]{{0,80}}?\b(?:{ARTEFACTS})\b.{{0,80}}?\s(?:must"
        rf"|(?:has|have|needs?) to|needs?|requires?|gets?|should|shall|(?:is|are) to)\s+(?!have been\b"
        rf"|already\b|that\b|this\b|it\b)[\w'-]+(?P<object>.*)")),
    ExplicitOrder("they must always", "must", ("your !deictic", "artefact !soft !deictic"),
        "dates must always be in ISO format", "it should always be there",
        compiled(r"^(?!(?:i|it|that|this|they)\b)[\w'ˣ @./-]{2,80}? (?:must|should|shall|has to|have to"
        r"|needs? to) always\s+(?!have been\b)[\w'-]+(?P<object>.*)")),
    ExplicitOrder("I want", "must", ("always_word !question !hollow", "ever", "standing"),
        "I always want type hints in new code", "I always liked it",
        compiled(r"^i(?:'d| would)? (?:really )?(?:always (?:want|need|expect|like)|(?:want|need|expect"
        r"|like) (?:you )?(?:to )?always|(?P<not>never want|(?:don't|do not) (?:ever |really )?(?:want|like)"
        r"|(?:hate|dislike|can't stand)) (?:it )?(?:to see|you to|when you|any))\s+(?P<object>.+)")),
    ExplicitOrder("our practice", "must", (
        "standing !principle !question !deictic !soft", "in_project always_word !question",
        "principle always_word !question",
        ), "from now on we use yarn", "from now on we have a problem",
        compiled(rf"^(?:in (?:this|our) {PROJECT},? )?(?:(?:we|you|everyone|everybody)(?:'re|'ll| are"
        rf"| will)?(?: going to| be)?|(?:this|our|the) {PROJECT}) (?:only |always |all |just "
        rf"|now )*(?P<not>don't |do not |doesn't |no longer |never |not"
        rf" )?(?!{_STATES})[\w']+\b(?P<object>.{{2,}})")),
    ExplicitOrder("the rule is", "must", ("!question",),
        "the golden rule is to keep startup below a second", "the rule is broken",
        compiled(r"^(?:my|our|the|a|one)\s+(?:\w+ )?(?:overriding|golden|general|main|first|house|hard"
        r"|strict|standing|iron|only|basic|coding|style|naming|team|project)\s*(?:directive|rule|policy"
        r"|convention|principle|guideline|standard)s? (?:here )?(?:is|:|that)\s+(?P<object>(?P<not>(?:\w+"
        r" ){0,3}?(?:never|not|no|don't)\b)?.+)")),
)
# fmt: on


class Rejected(NamedTuple):
    """One wording that rules an idea out.

    Attributes:
        name: Used in tests and explanations.
        takes: A sentence that it must accept.
        leaves: A sentence that it must not accept.
        pattern: Searched in a sentence; a group ``idea…`` is what is ruled out.
        says_so: Whether the wording itself lasts. Otherwise the sentence must match :data:`BEYOND_ONE_CALL`.
    """

    name: str
    takes: str
    leaves: str
    pattern: re.Pattern[str]
    says_so: bool = True


_SUGGESTING = (
    r"(?:suggesting|proposing|recommending|offering|bringing up|mentioning|pushing|pitching"
    r"|asking for)"
)
_SUGGEST = r"(?:suggest|propose|recommend|offer|bring up|push|pitch)"
_HERE = rf"(?:in|for|on|to) (?:this|our|the|my) (?:whole |entire )?{PROJECT}"

# fmt: off
REJECTIONS: tuple[Rejected, ...] = (
    Rejected("stop suggesting", "stop suggesting Redux", "stop the server",
        compiled(rf"\b(?:stop|quit)\s+{_SUGGESTING}\s+(?P<idea>[^.,;!?]{{2,80}})|\b(?:don't|do not"
        rf"|never) (?:want you to )?(?:ever )?{_SUGGEST}\s+(?P<idea2>[^.,;!?]{{2,80}}?)\s+(?:again"
        rf"|ever again|any ?more)\b")),
    Rejected("off the table", "Redux is off the table", "the book is on the table",
        compiled(r"^(?P<idea>[^.,;!?]{2,60}?)(?: is| are|'s) (?:off the table|not an option"
        r"|out of the question|ruled out|a no-go|not up for discussion|out for good)\b")),
    Rejected("ruled out", "we decided against GraphQL, and that is final", "we decided to go",
        compiled(r"\bwe(?:'ve| have)? (?:already )?(?:ruled out|(?:decided|agreed) (?:against|not to)"
        r"|rejected|abandoned|gave up on|given up on)\s+(?:using |use |the idea of"
        r" )?(?P<idea>[^.,;!?]{2,80})|\bforget (?:about )?(?P<idea2>[^.,;!?]{2,60}), we\b|\b(?:we|i)(?:'re"
        r"| are|'m| am)? (?:not going to|never going to|won't|will not|will never|don't want to) (?:use"
        r"|adopt|add|introduce|switch to|move to|support|go with"
        r"|migrate)\s+(?P<idea3>[^.,;!?]{2,80})"), says_so=False),
    Rejected("not in this project", "we don't want carousels in this project",
        "I don't want to look at this project",
        compiled(rf"^(?:i|we)(?: really| just| certainly)* (?:don't|do not)(?: really| ever)* (?:want|do|use"
        rf"|allow)(?: to (?:see|use|have))?(?: any)? (?P<idea>(?!(?:the|this|that|these|those|it|them|to"
        rf"|your|my|our|any\w*)\b)[\w'`ˣ+#/-]+(?: [\w'`ˣ+#/-]+){{0,2}}?) (?:{_HERE}|any ?where|at all"
        rf"|ever)\b")),
)
BEYOND_ONE_CALL = compiled(rf"\b(?:ever|any ?more|for good|under no circumstances|off the table"
    rf"|not an option|out of the question|from now on|period|full stop|final|(?:stop|don't|do not"
    rf"|never) (?:{_SUGGESTING}|{_SUGGEST})|{_HERE})\b")
"""Words that extend a rejection beyond the call that it answers."""

BECAUSE = compiled(r"(?:\s*:\s+|\s*[–—]\s*|\s-{1,2}\s|\s*;\s+|,?\s+(?:because|since|cause|cuz|due to)\s+"
    r"|,?\s+as (?=(?:it|they|that|we|there|nobody|no one)\b)|,\s+(?=(?:it's|it is|they're|they are"
    r"|that's)\b))(?P<reason>[^.!?]{3,160})")
"""What comes after an idea in the same sentence and says why it is ruled out."""

HERE = compiled(rf"\s+(?:(?:around )?here|at all|for good|any ?more|any ?where|ever|again|please|{_HERE})$")
"""A place that means everywhere; not part of the rejected idea."""
# fmt: on
