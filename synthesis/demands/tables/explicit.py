"""The explicit orders: wordings that say themselves that they last, so that they are certain on any text.

Everything else that may last is only a candidate: :mod:`agentx.synthesis.demands.tables.doubt`.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.places import HANDS_OFF
from agentx.synthesis.demands.tables.vocabulary import (
    ARTEFACTS,
    HABITS,
    IDEA_HABITS,
    IDEA_VERBS,
    POLICY_VERBS,
    Modality,
    compiled,
)


class Order(NamedTuple):
    """One wording of an order or a ban.

    Attributes:
        name: Used in tests and explanations.
        pattern: Matched at the beginning of a clause without its lead-ins; if ``anywhere``, searched in the
            clause. Its groups: ``verb`` must be a verb's base form (``does``: any form), features are
            searched in ``object``, ``not`` turns a must into a must not, and ``text`` is where the demand
            begins.
        modality: Its modality.
        lasts_if: Sets of features (``!name``: absent). The order lasts if all of one set are there.
        takes: A clause that it must accept.
        leaves: A clause that it must not accept.
        anywhere: Whether the demand may begin inside the clause; its text then begins there.
    """

    name: str
    pattern: re.Pattern[str]
    modality: Modality
    lasts_if: tuple[str, ...]
    takes: str
    leaves: str
    anywhere: bool = False


HANDS_OFF_ROW = "hands off"
"""Name of the row for folders that must stay as they are."""

ORDERS: tuple[Order, ...] = (
    Order(
        "always",
        compiled(r"^always\s+(?:please\s+|also\s+)?(?P<verb>[\w'-]+)"),
        "must",
        ("!we_frame !hollow",),
        "always answer in British English",
        "always fails on CI",
    ),
    Order(
        "never",
        compiled(r"^never,?\s+(?:(?:ever|again|under any circumstances),?\s+)?(?P<verb>[\w'-]+)"),
        "must_not",
        ("!we_frame !hollow",),
        "never create a requirements.txt file",
        "never got it to work",
    ),
    Order(
        "verb always",
        compiled(rf"^(?:{POLICY_VERBS})\b.{{0,120}}\b(?:always|at all times)\s*[.!]?$"),
        "must",
        ("!deictic",),
        "use tabs always",
        "use the one that always works there",
    ),
    Order(
        HANDS_OFF_ROW,
        HANDS_OFF,
        "must_not",
        ("a_folder !soft !attached !once_lead !this_work !question",),
        "do not touch anything in the legacy/ folder",
        "do not touch the loader in legacy.py",
    ),
    Order(
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
            "ever !hollow",
            "standing !hollow",
            "later !deictic",
            "until !deictic",
            "for_now any_new",
            "for_now universal !deictic",
            "agent_lead !deictic",
            "place !deictic",
            "strict !deictic general_object",
        ),
        "don't ever push to main",
        "don't touch this test",
    ),
    Order(
        "under no circumstances",
        compiled(
            r"^under no circumstances (?:should|must|may|can|are|do) (?:you|we|i want you to)(?: to)?\s+"
            r"(?P<verb>[\w'-]+)"
        ),
        "must_not",
        ("!hollow",),
        "under no circumstances should you modify the schema",
        "under no circumstances would it work",
    ),
    Order(
        "only",
        compiled(
            r"^(?:you (?:can|may|should|must) )?only (?:ever )?(?P<verb>use|write|import|add|commit|answer"
            r"|reply|respond|create|change|edit|touch)\s+(?P<object>.+)"
        ),
        "must",
        (
            "standing",
            "agent_lead !deictic",
        ),
        "only use standard library modules",
        "only change the parser",
    ),
    Order(
        "should not",
        compiled(
            r"^(?:you|we) (?:should not|shouldn't|should never|must never|are never to)\s+"
            r"(?P<verb>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            "never_word",
            "standing",
            "ever",
        ),
        "we should never commit secrets",
        "you should not have done that",
    ),
    Order(
        "stop",
        compiled(rf"^(?:stop|quit|no more)\s+(?:{HABITS})\b(?P<object>.*)"),
        "must_not",
        ("ever", "standing", "!deictic !hollow"),
        "stop adding comments to my code",
        "stop adding this",
    ),
    Order(
        "none of them may",
        compiled(
            rf"^(?:no|none of (?:the|our|your)) (?P<subject>(?:[\w'-]+ ){{0,2}}?(?:{ARTEFACTS}|one|agent))"
            r" (?:may|must|shall|should|can|(?:is|are) (?:ever )?allowed to)(?: ever)?"
            r" (?P<does>(?!have been\b|already\b|be (?:there|found|right|the)\b)[\w'-]+)"
        ),
        "must_not",
        ("!soft !may_be !deictic !question",),
        "no file may contain the word TODO",
        "no one came",
    ),
    Order(
        "none of it",
        compiled(
            r"^no (?:more )?(?P<object>[\w -]{3,60}?)(?:,? (?:please|ever|at all|anywhere|allowed|in .{3,50}"
            r"|from now on))*\s*[.!]*$"
        ),
        "must_not",
        (
            "ever !deictic",
            "standing !deictic",
        ),
        "no emojis in commit messages, ever",
        "no problem",
    ),
    Order(
        "avoid",
        compiled(r"^(?:avoid|try to avoid|refrain from|steer clear of|stay away from)\s+(?P<object>.+)"),
        "must_not",
        (
            "standing !hollow",
            "agent_lead !deictic",
            "place !deictic",
        ),
        "avoid global variables in general",
        "avoid this",
    ),
    Order(
        "order",
        compiled(rf"^(?:{POLICY_VERBS})\b(?P<object>.*)"),
        "must",
        (
            "standing !hollow",
            "later lasting_verb !deictic",
            "for_now any_new",
            "for_now you_make",
            "each_time !hollow",
            "agent_lead !deictic !once_lead !lets !explains",
            "place lasting_verb !deictic !a_file",
            "any_new !deictic !lets",
        ),
        "from now on, use tabs",
        "add a function that returns the total",
    ),
    Order(
        "passive prohibition",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b|he\b|she\b)[\w'ˣ @./-]{2,80}?)"
            r" (?:(?:must|may|should|shall|can) never|must not|mustn't|may not"
            r"|(?:is|are) (?:never|not) to(?= be\b)|are never to|are not allowed(?: to)?|is not allowed"
            r"(?: to)?)\s+(?P<does>(?!have\b)[\w'-]+)"
        ),
        "must_not",
        (
            "never_word artefact !deictic !soft",
            "artefact universal !deictic !soft",
        ),
        "passwords must never be logged",
        "it must not have loaded",
    ),
    Order(
        "all of them must",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b"
            rf"(?:{ARTEFACTS})\b.{{0,80}}?)"
            r"\s(?:must|has to|have to|needs? to|should|shall|(?:is|are) to)\s+"
            r"(?P<does>(?!have been\b|already\b)[\w'-]+)"
        ),
        "must",
        (
            "!soft !deictic",
            "standing",
        ),
        "every function must have a docstring",
        "all of this should work",
    ),
    Order(
        "all of them need",
        compiled(
            rf"^(?P<subject>(?:all|every|each|any|new)\b(?: of)?(?: the| our| your)? [\w'ˣ @./-]{{0,60}}?\b"
            rf"(?:{ARTEFACTS})\b[\w'ˣ @./-]{{0,60}}?)"
            r"\s(?:needs?|requires?|gets?)\s+(?P<object>(?!to\b|it\b|that\b|this\b).+)"
        ),
        "must",
        ("standing !soft !deictic",),
        "from now on every module needs tests",
        "every module needs this",
    ),
    Order(
        "nothing may",
        compiled(
            r"^nothing (?:in|inside|under|below|within) (?P<object>[\w'ˣ @./-]{2,80}?) (?:may|must|shall|can"
            r"|should) (?:ever )?be (?P<done>\w+)"
        ),
        "must_not",
        (
            "ever !deictic !soft",
            "standing !deictic",
        ),
        "nothing in src/legacy may ever be changed",
        "nothing in src/legacy was changed",
    ),
    Order(
        "must always",
        compiled(
            r"^(?P<subject>(?!i\b|it\b|that\b|this\b|they\b)[\w'ˣ @./-]{2,80}?) (?:must|should|shall|has to"
            r"|have to|needs? to) always\s+(?P<does>(?!have been\b)[\w'-]+)"
        ),
        "must",
        (
            "your !deictic",
            "artefact !soft !deictic",
        ),
        "dates must always be in ISO format",
        "it should always be there",
    ),
    Order(
        "i want",
        compiled(
            r"^i(?:'d| would)? (?:really )?(?:always (?:want|need|expect|like)|(?:want|need|expect|like)"
            r" (?:you )?(?:to )?always)\s+(?P<object>.+)"
        ),
        "must",
        ("!question !hollow",),
        "I always want type hints in new code",
        "I always liked it",
    ),
    Order(
        "i never want",
        compiled(r"^i (?:never|don't ever|do not ever) want (?:to see|you to|any)\s+(?P<object>.+)"),
        "must_not",
        ("!hollow",),
        "I never want to see a bare except",
        "I never wanted this",
    ),
    Order(
        "i do not want",
        compiled(
            r"^i (?:(?:don't|do not|really don't) (?:want|like) (?:you to|any|it when you|to see(?: any)?"
            r"|when you)"
            r"|(?:really )?(?:hate|dislike|can't stand) (?:it )?when you)\s+(?P<object>.+)"
        ),
        "must_not",
        (
            "ever",
            "standing",
        ),
        "I don't want any emojis in the docs ever",
        "I don't want to go",
    ),
    Order(
        "our practice",
        compiled(
            r"\bin (?:this|our) (?:repo(?:sitory)?|project|code ?base|team|company|house|document|report"
            r"|book|paper)s?,? (?:we|you|one|i)"
            r" (?:only |always |never |do not |don't |all )?(?P<does>(?!have\b|had\b|are\b|were\b|will\b"
            r"|could\b|can\b|found\b|see\b)[\w']+)"
        ),
        "must",
        ("always_word !question",),
        "in this repo we always squash before merging",
        "in this repo we have a bug",
        anywhere=True,
    ),
    Order(
        "the rule is",
        compiled(
            r"^(?:(?:my|our|the|a|one)\s+)(?:\w+ )?(?P<weight>overriding|golden|general|main|first|house"
            r"|hard|strict|standing|iron|only|basic|coding|style|naming|team|project)"
            r"\s*(?:directive|rule|policy|convention|principle|guideline|standard)s? (?:here )?"
            r"(?:is|:|that)\s+(?P<object>.+)"
        ),
        "must",
        ("!question",),
        "the golden rule is to keep startup below a second",
        "the rule is broken",
    ),
    Order(
        "as a rule",
        compiled(
            r"^we (?:really |all )?(?P<does>(?!(?:have|had|are|were|was|get|got|see|saw|know|knew|think"
            r"|thought|found|could|can|cannot|can't|will|would|may|might|did|didn't|haven't|aren't|still"
            r"|just|already)\b)[\w']+)\b(?P<object>.{6,})"
        ),
        "must",
        ("principle always_word !question",),
        "as a rule, we keep handlers free of SQL",
        "as a rule, we have no time for that",
    ),
    Order(
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
        ("onward !question !deictic !soft",),
        "from now on we use yarn",
        "from now on we have a problem",
    ),
)


class Rejected(NamedTuple):
    """One wording that rules an idea out.

    Attributes:
        name: Used in tests and explanations.
        pattern: Searched in a sentence; a group ``idea…`` is what is ruled out.
        takes: A sentence that it must accept.
        leaves: A sentence that it must not accept.
        says_so: Whether the wording itself lasts. Otherwise the sentence must match :data:`BEYOND_ONE_CALL`.
    """

    name: str
    pattern: re.Pattern[str]
    takes: str
    leaves: str
    says_so: bool = True


_PROJECT = r"(?:project|repo(?:sitory)?|code ?base|app|application|product|team|company|site|website)"

REJECTIONS: tuple[Rejected, ...] = (
    Rejected(
        "stop suggesting",
        compiled(
            rf"\b(?:stop|quit)\s+(?:{IDEA_HABITS})\s+(?P<idea>[^.,;!?]{{2,80}})"
            rf"|\b(?:don't|do not|never) (?:want you to )?(?:ever )?(?:{IDEA_VERBS})\s+"
            rf"(?P<idea2>[^.,;!?]{{2,80}}?)\s+(?:again|ever again|any ?more)\b"
        ),
        "stop suggesting Redux",
        "stop the server",
    ),
    Rejected(
        "off the table",
        compiled(
            r"^(?P<idea>[^.,;!?]{2,60}?)(?: is| are|'s) (?:off the table|not an option|out of the question"
            r"|ruled out"
            r"|a no-go|not up for discussion|out for good)\b"
        ),
        "Redux is off the table",
        "the book is on the table",
    ),
    Rejected(
        "ruled out",
        compiled(
            r"\bwe(?:'ve| have)? (?:already )?(?:ruled out|(?:decided|agreed) (?:against|not to)|rejected"
            r"|abandoned"
            r"|gave up on|given up on)\s+(?:using |use |the idea of )?(?P<idea>[^.,;!?]{2,80})"
            r"|\bforget (?:about )?(?P<idea2>[^.,;!?]{2,60}), we\b"
            r"|\b(?:we|i)(?:'re| are|'m| am)? (?:not going to|never going to|won't|will not|will never"
            r"|don't want to)"
            r"\s+(?:be )?(?:us(?:e|ing)|adopt(?:ing)?|add(?:ing)?|introduc(?:e|ing)|switch(?:ing)? to"
            r"|mov(?:e|ing) to"
            r"|support(?:ing)?|go(?:ing)? with|migrat(?:e|ing))\s+(?P<idea3>[^.,;!?]{2,80})"
        ),
        "we decided against GraphQL, and that is final",
        "we decided to go",
        says_so=False,
    ),
    Rejected(
        "not in this project",
        compiled(
            r"^(?:i|we)(?: really| just| certainly)* (?:don't|do not)(?: really| ever)* (?:want|do|use|allow)"
            r"(?: to (?:see|use|have))?(?: any)? (?P<idea>(?!(?:the|this|that|these|those|it|them|to|your|my"
            r"|our|any\w*)\b)"
            rf"[\w'`ˣ+#/-]+(?: [\w'`ˣ+#/-]+){{0,2}}?) (?:(?:in|for|on) (?:this|our) (?:whole "
            rf"|entire )?{_PROJECT}"
            r"|any ?where|at all|ever)\b"
        ),
        "we don't want carousels in this project",
        "I don't want to look at this project",
    ),
)

BEYOND_ONE_CALL = compiled(
    r"\b(?:ever|any ?more|for good|under no circumstances|off the table|not an option|out of the question"
    rf"|from now on|period|full stop|final|(?:stop|don't|do not|never) (?:{IDEA_HABITS}|{IDEA_VERBS}))\b"
    rf"|\b(?:in|for|on) (?:this|our) (?:whole |entire )?{_PROJECT}\b"
)
"""Words that extend a rejection beyond the call that it answers."""

BECAUSE = compiled(
    r"(?:\s*:\s+|\s*[–—]\s*|\s-{1,2}\s|\s*;\s+|,?\s+(?:because|since|cause|cuz|due to)\s+|,?\s+as"
    r" (?=(?:it|they|that|we|there|nobody|no one)\b)|,\s+(?=(?:it's|it is|they're|they are|that's)\b))"
    r"(?P<reason>[^.!?]{3,160})"
)
"""What comes after an idea in the same sentence and says why it is ruled out."""

HERE = compiled(
    r"\s+(?:(?:around )?here|at all|for good|any ?more|any ?where|ever|again|please|(?:in|for|on|to) (?:this"
    r"|our"
    rf"|the|my) (?:whole |entire )?{_PROJECT})$"
)
"""A place that means everywhere; not part of the rejected idea."""
