"""Ways in which users rule an idea out: rows to read and to extend.

Each row of :data:`RULINGS` has an example that it must accept and one that it must not accept; the tests walk
through them. A row is tried on a sentence and on each of its clauses, as written and without their opening
words ("hmm, I think …").
"""

from agentx.synthesis.demands.tables.objections import OBJECTIONS
from agentx.synthesis.demands.tables.rejection_row import (
    FINE,
    IS,
    MISBEHAVES,
    POINTER,
    POOR,
    SUBJECT,
    THING,
    VERY,
    Ruling,
)
from agentx.synthesis.demands.tables.vocabulary import IDEA_HABITS, IDEA_VERBS, compiled

# --- words ----------------------------------------------------------------------------------------

_NOT_A_KIND = (
    r"(?:the|this|that|these|those|it|them|him|her|us|me|you|they|your|my|our|his|their|to|one|ones|none"
    r"|anything|something|everything|nothing|much|more|many|so|such|too|any|all|both"
    r"|either|here|there|now|yet|again|well|enough|only|just|even|what|how|why|when|if|people|anyone|someone"
    r"|help|need|in|at|on|for|from|with)"
)
KIND = (
    rf"(?!{_NOT_A_KIND}\b)(?:(?:an?|another) (?!(?:lot|bit|few|little|new)\b))?"
    rf"(?:(?!{_NOT_A_KIND}\b)[\w'`ˣ.+#/-]+ ){{0,2}}?(?!{_NOT_A_KIND}\b)[\w'`ˣ+#/-]+"
)
"""A kind of thing in up to three words ("carousels", "a queue", "dark mode"), and not one thing at hand."""

NAMED = r"(?:(?-i:[A-Z][\w.+#-]*)(?: (?-i:[A-Z][\w.+#-]*)){0,2})"
"""Something with a name ("Redux"), so that "here" means the whole project, not the current line."""

EVERYWHERE = (
    r" (?:(?:in|for|on) (?:this|our) (?:whole |entire )?(?:project|repo(?:sitory)?|code ?base|app"
    r"|application|product|team|company|site|website)|any ?where|at all|ever|under any circumstances)"
)
ENDS = (
    r"(?:,? (?:ever|please|at all|any ?more|period|ok(?:ay)?))*(?=\s*(?:[.!;:,]|$)|\s+(?:[-–—]|because|since"
    r"|as (?:it|they|we)|cause|it's|they're)\b|\s+[-–—])"
)

# --- rows -----------------------------------------------------------------------------------------

_RULINGS: tuple[Ruling, ...] = (
    Ruling(
        "stop suggesting",
        compiled(
            rf"\b(?:stop|quit)\s+(?:{IDEA_HABITS})\s+(?P<idea>[^.,;!?]{{2,80}})"
            rf"|\b(?:don't|do not|never) (?:want you to )?(?:ever )?(?:{IDEA_VERBS})\s+"
            rf"(?P<idea2>[^.,;!?]{{2,80}}?)\s+(?:again|ever again|any ?more)\b"
        ),
        takes="stop suggesting Redux",
        leaves="stop the server",
        lasts="always",
    ),
    Ruling(
        "off the table",
        compiled(
            r"^(?P<idea>[^.,;!?]{2,60}?)(?: is| are|'s) (?:off the table|not an option|out of the question"
            r"|ruled out|a no-go|not up for discussion|out for good)\b"
        ),
        takes="Redux is off the table",
        leaves="the book is on the table",
        lasts="always",
    ),
    Ruling(
        "forget it",
        compiled(r"\bforget (?:about )?(?P<idea>[^.,;!?]{2,60}), we\b"),
        takes="forget MongoDB, we decided against it",
        leaves="forget what I wrote",
        lasts="if it says so",
    ),
    Ruling(
        "ruled out",
        compiled(
            r"\bwe(?:'ve| have)? (?:already )?(?:ruled out|(?:decided|agreed) (?:against|not to)|rejected"
            r"|abandoned|gave up on|given up on)\s+(?:using |use |the idea of )?(?P<idea>[^.,;!?]{2,80})"
        ),
        takes="we decided against GraphQL",
        leaves="we decided to go",
        lasts="if it says so",
    ),
    Ruling(
        "not in this project",
        compiled(
            r"^(?:(?:i|we)(?: really| just| certainly)* (?:don't|do not)(?: really| ever)* (?:want|do|use"
            rf"|allow)(?: to (?:see|use|have))?(?: any)? (?P<idea>{KIND}){EVERYWHERE}"
            r"|(?:i|we)(?: really| just| certainly)* (?:don't|do not)(?: really| ever)* want"
            rf"(?: to (?:see|use|have))? (?P<idea2>{NAMED}) here"
            r"|no[,.!]+ (?:i|we)(?: really| just| certainly)* (?:don't|do not)(?: really| ever)*"
            rf" (?:want|do) (?P<idea3>{KIND})){ENDS}"
        ),
        takes="we don't want carousels in this project",
        leaves="I don't want to look at this project",
        lasts="always",
    ),
    Ruling(
        "not going to",
        compiled(
            r"\b(?:we|i)(?:'re| are|'m| am)? (?:not going to|never going to|won't|will not|will never"
            r"|don't want to|do not want to)\s+(?:be )?(?:us(?:e|ing)|adopt(?:ing)?|add(?:ing)?"
            r"|introduc(?:e|ing)|switch(?:ing)? to|mov(?:e|ing) to|support(?:ing)?|go(?:ing)? with|rewrit"
            r"(?:e|ing)|migrat(?:e|ing))\s+(?P<idea>[^.,;!?]{2,80})"
        ),
        takes="we are not going to use Redux",
        leaves="we are going to use Redux",
        lasts="if it says so",
    ),
    Ruling(
        "no, rather",
        compiled(
            r"^(?:(?:hm+|uh+|um+|oh|wait|well|yeah|and|but)[\s,.…]+)?(?:no|nah|nope|nay)"
            r"(?: (?:no|nah|nope))*(?:"
            r"\s?[,;:.!…–—-]+\s*(?:\w+[\s,.'’]+){1,3}\w|\s+(?:man|dude|wait|don't|do not|that|this|leave"
            r"|keep|undo|revert|just|not|let's)\b\s*[^\s?])"
            r"|^(?:nah|nope)\s+(?:i|we|you|it|they|the)\b\s*[^\s?]"
        ),
        takes="no, we took the export out on purpose",
        leaves="no errors any more",
    ),
    Ruling(
        "not needed",
        compiled(
            r"^(?:(?:i|we)(?: really| also| still| just| certainly| definitely| actually)* |really |still "
            r"|also )?(?:don't|do not|didn't)(?: really| quite| even| actually| particularly)*"
            r" (?:(?:need|want)(?! to\b)|like|love|agree(?: with| that)?|(?:see|get)"
            r" (?:why|the (?:point|need|value|benefit)(?: of| in)?|any (?:point|need|value|reason)))\b\s*"
            rf"(?P<idea>{THING})"
            rf"|^we (?:really )?(?:don't|do not) (?:need|have) to\b\s*(?P<idea2>{THING})"
            rf"|^you (?:really )?(?:don't|do not|didn't) (?:need|have) to\b\s*(?P<idea3>{THING})"
            r"|^(?:there(?:'s| is| was) )?(?:really )?no (?:need|point|reason|sense|value|benefit)"
            rf" (?:to|for|in|of)\b\s*(?P<idea4>{THING})"
        ),
        takes="we don't need the caching layer",
        leaves="I don't want to go",
    ),
    Ruling(
        "not thought right",
        compiled(
            r"^(?:i )?(?:really |honestly )?(?:don't|do not) (?:really )?(?:think|believe|feel)"
            r"(?: like| that)? (?:(?:we|you|it|this|that)(?: really| even| actually)* (?:needs?|wants?)"
            rf" (?P<idea2>{THING})|(?P<idea>(?:(?:that|this|it)'s {FINE}|(?:we|it|this|that|you|these|those"
            rf"|they|[\w .-]{{2,40}}?)\b"
            r"(?: really| even| actually)* (?:should|makes?|is|are|will|would|adds?|belongs?|has|have|works?"
            r"|helps?)\b[^.;?!]{0,100})))"
        ),
        takes="I don't think we need suffixes",
        leaves="I don't think so far ahead",
    ),
    Ruling(
        "would rather",
        compiled(
            rf"\bi(?:'d| would)? (?:much |really )?rather (?:would )?(?:not (?P<idea>{THING})"
            r"|(?:have|keep|see|use|do|leave|go|we|you|it|like|just)\b)"
            r"|\b(?:i|we)(?:'d| would) prefer (?:not(?: to)?|to not|(?:if )?(?:you|we) (?:didn't|don't))"
            rf" (?P<idea2>{THING})"
            r"|^(?:(?:it(?:'s| is| would be)|would be) )?better (?:if |that )?(?:we|you|to) (?:not|don't"
            rf"|didn't)\b (?P<idea3>{THING})"
        ),
        takes="I'd rather keep one parser for both",
        leaves="it rather depends",
    ),
    Ruling(
        "not so",
        compiled(
            rf"^{SUBJECT}(?: (?:is|are|was|were|would be|will be)(?:n't| not)|'(?:s|re|d be) not"
            rf"| (?:isn|aren|wasn|wouldn)'t(?: be)?){VERY} {FINE}"
            rf"|^(?P<idea2>(?:that|this|it|which|the [\w ./-]{{2,40}}?|your [\w ]{{2,40}}?) )?"
            r"(?:doesn't|don't|does not|do not)(?: really| even| actually)* (?:(?:seem|look|feel|sound)"
            rf"(?: like| to be)?{VERY} (?:{FINE}|\w+ enough)"
            r"|make(?: any| much| a lot of)? sense|mean\b|belong|help\b|add (?:any|much)|need (?:to|its|a|an"
            r"|any)\b|solve)"
            r"|^(?P<idea3>(?:that|this|it|which|[\w ]{3,40}?)) makes (?:no|little|zero) sense\b"
            r"|^(?P<idea4>(?:that|this|it)) (?:won't|wouldn't|will not|would not) (?:work|help|scale"
            r"|be enough|solve|fly|do)\b"
            r"|^(?:simply |just |that's )?not (?:true|correct|right|needed|necessary|useful|helpful|worth"
            r"|what i (?:asked|meant|wanted|want|said))\b"
        ),
        takes="the first half is not correct",
        leaves="that is correct",
    ),
    Ruling(
        "poor",
        compiled(
            rf"^(?!{MISBEHAVES}){SUBJECT}{IS}{VERY} {POOR}"
            r"|^(?P<idea2>(?:that|this|it|which|[\w ]{3,40}?)) (?:\w+ )?adds"
            r" (?:(?:too much|needless|unnecessary|extra|a lot of|so much|more) )?(?:complexity|noise"
            r"|clutter|overhead|bloat|confusion)\b"
            r"|^(?:way |far )?too (?:much|many|complex|complicated|verbose|long|wide|broad|clever)\b"
            r"(?P<idea3>[^.;?!]{0,80})"
            rf"|^(?:seems?|looks?|feels?|sounds?){VERY} {POOR}"
            r"|^what (?:is|are) (?:this|that|these|those)\b.{0,30}\b(?:garbage|mess|nonsense|crap)\b"
        ),
        takes="I feel the prefix is redundant",
        leaves="I was wrong",
    ),
    Ruling(
        "you are mistaken",
        compiled(
            rf"^you(?:'re| are| were){VERY} (?:wrong|mistaken|incorrect|not (?:correct|right|listening"
            r"|understanding|getting)|missing the (?:point|mark)|over-?\w+ing|misunderstanding|confusing"
            r"|making (?:this|it|that) (?:too|more|over))\b"
            r"|^you(?:'ve| have)?(?: just| again| completely| simply| totally)* (?:missed the (?:point|mark)"
            r"|misunderstood|misread|duplicated|over-?(?:engineered|complicated)|hallucinated)\b"
            r"|^you(?:'ve)? (?:got|have|had) (?P<idea0>[^.,;?!]{2,60}?) (?:all |completely |totally )?"
            r"(?:wrong|backwards)\b"
            r"|^(?:i|we|nobody|no one)(?: really| just)? (?:didn't|did not|never)(?: even| ever)?"
            r" (?:ask|asked|said|meant|requested|agreed|suggested|say (?:that|to|you|we)|agree)\b"
            r"(?P<idea>[^.;?!]{0,100})"
        ),
        takes="you are missing the point",
        leaves="you are missing a comma",
    ),
    Ruling(
        "should not be",
        compiled(
            r"^(?P<idea>(?:this|that|it|these|those|they|there))(?: really| also| just)?"
            r" (?:should(?:n't| not)|must(?:n't| not))(?: just| even)? (?!be (?:too|that|very|so|much|hard"
            r"|difficult|long|a problem)\b)(?:be|exist|have|need|happen|do|go|live)\b"
            rf"|^{SUBJECT.replace('<idea>', '<idea2>')} should(?:n't| not)(?: just| even)?"
            r" (?:be (?:in|here|there|needed|necessary|a thing|exported|public|part of|its own)|exist|live"
            r"|belong)\b"
        ),
        takes="this should not be the default branch",
        leaves="that should not be too hard",
    ),
    Ruling(
        "on purpose",
        compiled(
            r"^(?:we|i)\b[^?]{2,80}\b(?:on purpose|intentionally|deliberately|for a reason)\b"
            r"|^(?:that|this|it|those|they)(?:'s| is| was| are| were|'re) (?:on purpose|intentional"
            r"|by design|deliberate)\s*(?:[.!,;]|$)"
        ),
        takes="we left the flag out on purpose",
        leaves="it was intentional in the old code",
    ),
    Ruling(
        "take it back",
        compiled(
            rf"^(?:(?:let's|just|please|kindly|(?:can|could|would) (?:you|we)|we should|you should|i'm) )*"
            rf"(?:(?:revert|roll ?back|back out|yank) (?P<idea0>the {THING})|(?:revert|undo|undoing"
            r"|reverting|roll(?:ing)? ?back|back out|discard|throw away|get rid of|yank|scrap|ditch|toss)"
            rf"(?: back)? (?P<idea>{POINTER}[^.;?!]{{0,80}}))"
            r"|^(?:nah,? |ok(?:ay)?,? )?let's (?:please |just )?(?:revert|undo|roll ?back"
            r"|roll (?:\w+ ){1,3}back|go back to (?:the|how|what) (?:old|previous|original|earlier|way|it|we"
            r"|first)|not (?!forget|worry|mess|rush|overthink)|skip|scrap|ditch)\b(?P<idea2>[^.;?!]{0,100})"
        ),
        takes="let's roll that back",
        leaves="let's go back to the second finding",
        mood="either",
    ),
    Ruling(
        "undo",
        compiled(
            r"^(?:(?:no|please|just|kindly|let's|(?:can|could|would) (?:you|we)),? )*(?:revert|undo"
            r"|roll ?back)"
            r"(?: (?:that|it|this|them|everything|all(?: of)? (?:this|that|it|these|those)|(?:the|your)"
            r" (?:last|latest) (?:changes?|edits?|commit)))?"
            r"(?: to (?:the )?(?:earlier|previous|last|old|original|before)\b[^.;?!]{0,40})?"
            r"(?:,? please)?\s*[.!?]*$"
        ),
        takes="please revert to the earlier version",
        leaves="how do I undo a commit",
        mood="either",
        alone=True,
    ),
    Ruling(
        "no solution",
        compiled(
            r"^(?P<idea>[^,;:?!]{2,70}?) (?:is|are|was) not (?:really )?(?:a|an|the) (?:good |right |proper "
            r"|real )?(?:solution|answer|option|fix|way to go|way forward|idea)\b"
        ),
        takes="a global lock is not a solution",
        leaves="it is not a problem",
    ),
    Ruling(
        "take it out",
        compiled(
            r"\b(?:remove|drop|scrap|ditch|get rid of|kill) (?P<idea>[^.?!]{2,100}?)\s*\b"
            r"(?:entirely|completely|altogether|it's not|we don't (?:need|want))\b[^?]{0,80}$"
        ),
        takes="let's just drop the whole export completely",
        leaves="remove the first two",
    ),
    Ruling(
        "let it be",
        compiled(
            r"^(?:(?:let's|please|just|ok) )*(?:ignore|disregard) (?P<idea>(?:the|this|that|those|these|it"
            r"|them|your|all)\b[^.;?!]{0,80})"
            r"|^(?:(?:let's|please|just|ok) )*(?:leave|keep) (?P<idea2>(?:it|this|that|those|these|them"
            r"|the [\w .-]{2,40}?)) (?:alone|as (?:is|it (?:is|was)|they (?:are|were)|before)|untouched"
            r"|out of (?:this|it)|the way (?:it|they) (?:is|was|are|were))\b"
        ),
        takes="ignore the warnings of the old parser",
        leaves="it should ignore the case",
    ),
    Ruling(
        "what for",
        compiled(
            r"\bwhat(?:'s| is| was) the (?:point|use|benefit) (?:of|in)\b(?P<idea>[^?]{2,100})"
            r"|\bwhy (?:do|did|would|should|are|have|is|does|on earth|the hell)\b(?P<idea2>[^?]{2,80})\b"
            r"(?:in the first place|so many|so much|for no reason)\b"
            r"|^why (?:do|did|would) (?:we|you) (?:even|still|suddenly|now)\b(?P<idea3>[^?]{2,100})"
            rf"|\b(?:isn't|aren't|wouldn't) (?P<idea4>(?:that|this|it|the [\w ]{{2,30}}?))"
            rf"(?: be)?{VERY} {POOR}"
        ),
        takes="what is the point of this wrapper?",
        leaves="do we need another test for the parser?",
        mood="asked",
    ),
)

RULINGS: tuple[Ruling, ...] = (*_RULINGS, *OBJECTIONS)
"""In the order in which they are tried; the first one that accepts a sentence is used."""

BARE_REFUSAL = compiled(
    r"(?:^|[\n.!?…])[ \t]*(?:(?:hm+|uh+|um+|oh|well|wait)[\s,.…]+)?(?:no|nope|nah|nay)(?: man| dude"
    r"| wait)?[ \t]*[.!…]+[ \t]*$"
)
"""A "no" as a separate sentence, searched before the next sentence, to which it belongs."""

OPENINGS = compiled(
    r"^(?:(?:hm+|uh+|um+|eh+|mh+|mm+k?|ah+|oh|ugh+|ar+g+h+|whoa|wow|dude|man|wait|k|nah|tbh|imo|imho|so+"
    r"|again|sorry|plus|though|honestly|personally|i mean|i (?:already |just )?said|also|but|except"
    r"(?: that| for)?|and|yeah|ok(?:ay)?"
    r"|for (?:now|me)|to me|right now|at the moment|as it (?:is|stands)|in my (?:opinion|view)"
    r"|(?:i|we) (?:really |just |still |also |kinda )?(?:think|feel|guess|believe|find|suppose|reckon)"
    r"(?: like)?(?: that(?= (?:the|this|these|those|we|it|an?|our|your|my)\b))?"
    r"|(?:it )?(?:seems|feels|looks|sounds) (?:like|to me)(?: that)?)(?:[\s,.…:;!-]+|$))+"
)
"""Words that may precede a judgement and are not part of it."""

NO_REJECTION = compiled(
    r"^(?:\d[.)] )?(?:no|nah|nope)[, .]+(?:(?:this|that|it|all|everything|we|you|i)(?:'s|'re|'m| is| are"
    r"| am)?(?: all| totally| perfectly| really| just)? )?(?:looks |works |sounds |seems )?"
    r"(?:fine|good|ok|okay|great|perfect|all (?:good|right|fine|set)|right|correct|works?|go ahead|proceed"
    r"|continue|do it|yes|keep going|carry on|thanks|thank you|problem|prob|worries|idea|clue|doubt|rush"
    r"|hurry"
    r"|sorry|still|did|does|didn't|doesn't|same|fail(?:s|ed)?|agree|like (?:it|this|that)"
    r"|love (?:it|this|that)|need to (?:worry|apologi[sz]e|rush|hurry|thank))\b"
    r"|^(?:no|nah|nope)[, .]+(?:(?:i|we|it|they|he|she|there|you|that|this)(?: (?:did|do|does|is|are|am|was"
    r"|were|have|has|had|can|could|will|would)(?:n't| not)?|(?:'s|'m|'re|'ve) not)\s*(?:[.!?]|$)"
    r"|(?:i|we) (?:haven't|have not|hadn't|can't|cannot|couldn't|don't (?:know|have|see|think so|remember"
    r"|mind)|do not (?:know|have|see|mind)|'m not sure|am not sure|see|saw|get|got|have|had|tried|checked"
    r"|ran|found)\b"
    r"|(?:i'm|i am) (?:not sure|good|fine|done|sorry|happy)\b)"
)
"""A "no" that approves, thanks, answers a question or reports, and does not judge an idea."""

ASTONISHED = compiled(
    r"(?:^|[\n.!?…])[ \t]*(?P<word>what|huh|hu|wtf|wait,? what|really|seriously)[ \t]*[?!]+[ \t]*$"
)
"""A question that is only a start, searched before the sentence to which it belongs."""

BEYOND_ONE_CALL = compiled(
    rf"\b(?:stop|quit|don't|do not|never) (?:ever )?(?:{IDEA_HABITS}|{IDEA_VERBS}|bring"
    r" (?:it|that|this) up)\b"
    r"|\b(?:ever|any ?more|for good|under no circumstances|off the table|not an option|out of the question"
    r"|from now on|period|full stop|final)\b"
    rf"|{EVERYWHERE}\b"
)
"""Words that extend a rejection beyond the call that it answers."""

REASON = compiled(
    r"(?:,?\s+(?:because|cause|since|as it|due to)\s+|[,;:–—-]\s*(?:it's|it is|they're|they are|that's"
    r"|too)\s)(?P<reason>[^.!?]{3,160})"
)

BECAUSE = compiled(
    r"(?:\s*:\s+|\s*[–—]\s*|\s-{1,2}\s|\s*;\s+|,?\s+(?:because|since|cause|cuz|due to)\s+|,?\s+as"
    r" (?=(?:it|they|that|we|there|nobody|no one)\b))(?P<reason>[^.!?]{3,160})"
)
"""What comes after an idea in the same sentence and says why it is ruled out."""

HERE = compiled(
    r"\s+(?:(?:around )?here|at all|for good|any ?more|any ?where|ever|again|please|(?:in|for|on|to)"
    r" (?:this|our|the|my) (?:whole |entire )?(?:project|repo(?:sitory)?|code ?base|app|application|product"
    r"|team|company|site|website|house))$"
)
"""A place that means everywhere; not part of the rejected idea."""
