"""First-person attitudes: what somebody likes, avoids, fears or cannot have, in general.

An attitude is a preference that lasts, unless the sentence is about one moment or one thing at hand. The
tables are classes of words, by the frame in which they occur.
"""

from agentx.synthesis.demands.tables.vocabulary import compiled

# fmt: off
_DEGREE = (r"(?:(?:really|strongly|absolutely|generally|usually|always|personally|also|just|truly|deeply"
    r"|particularly|especially|still|much|do|definitely|actively|strictly|completely|typically|often|mostly"
    r"|very|rather|quite|pretty|so|too|not|never|only|exclusively|tend to|try to|prefer to|simply|firmly"
    r"|passionately|highly|genuinely|intensely|severely|extremely|somewhat|currently|normally|greatly"
    r"|especially|all|a bit|a little|consciously|intentionally|specifically|primarily|solely|almost always"
    r"|at all)\s+)*")
"""Adverbs of degree and frequency, as many as there are."""

STRONG_VERBS = ("prefer|avoid|dislike|hate|loathe|detest|despise|abhor|resent|dread|fear|refuse|oppose"
    "|reject|distrust|mistrust|prioriti[sz]e|favou?r|adore|cherish|insist|swear|shun|boycott|abstain"
    "|steer clear|stay away|stick to|adhere to|gravitate|cannot (?:stand|bear|tolerate|abide|digest|eat"
    "|drink|handle|deal with)|can't (?:stand|bear|tolerate|abide|digest|eat|drink|handle|deal with)")
"""Verbs that state an attitude by themselves."""

MILD_VERBS = "love|enjoy|like|care for"
"""Verbs that state an attitude if their object is a kind of thing, and not the thing at hand."""

HABIT_VERBS = ("eat|drink|consume|watch|read|play|wear|use|buy|purchase|drive|ride|fly|travel|stay|listen"
    "|cook|shop|visit|work|exercise|train|own|keep|follow|practi[sc]e|live|sleep|choose|go to|go for|dine"
    "|learn|study|take|attend|participate|engage|consider|eat at|opt")
"""What people do in general: "I only eat …", "I don't watch …", "I never buy …"."""

_STATES = (r"(?:allergic|intolerant|sensitive|averse|opposed|committed|partial|drawn|devoted|dedicated"
    r"|accustomed|addicted) to|(?:afraid|scared|terrified|frightened|wary|sceptical|skeptical|suspicious"
    r"|fond) of|(?:uncomfortable|obsessed|particular|picky|strict|passionate|enthusiastic|conscious"
    r"|squeamish|fussy) (?:with|about|in|around|when|by)|into (?!the\b|a\b|my\b)|against|keen on"
    r"|(?<=not )interested in|(?<=not really )interested in|uninterested in|prone to|put off by|bothered by"
    r"|turned off by|a (?:\w+ )?fan of|an? (?:\w+[- ]){0,3}(?:vegan|vegetarian|pescatarian|advocate|believer"
    r"|lover|enthusiast|supporter|opponent|purist|person|learner|eater|minimalist|environmentalist|fan|buyer"
    r"|reader|traveler|traveller|player|owner|adherent|proponent|morning person|night owl|homebody"
    r"|teetotal\w*)\b|(?:strictly |fully |a )?(?:vegan|vegetarian|pescatarian|celiac|coeliac|lactose|gluten"
    r"|diabetic|dyslexic|claustrophobic|colou?r-?blind|teetotal|introverted|environmentally)\b")
_HELD = (r"aversion|allerg(?:y|ies)|intolerance|phobia|fear|dislike|distaste|preference|hatred|love|passion"
    r"|sensitivity|objection|principle|policy|habit|diet|weakness|soft spot|sweet tooth|anxiety|vertigo"
    r"|disdain|bias|affinity|sensitive (?:skin|stomach|teeth|eyes)|fondness|(?<=no )interest"
    r"|(?<=no )patience|tolerance|restriction|disability|dyslexia|adhd")
_I = r"\b(?:i|my (?:family|partner|wife|husband|kids?|children|son|daughter|dog|cat)(?: and i)?)"

ATTITUDES = tuple(map(compiled, (
    rf"{_I} {_DEGREE}(?:{STRONG_VERBS})s?\b(?P<object>.*)",
    (rf"{_I}(?:'ve| have) (?:always |long |generally )*(?:preferred|avoided|disliked|hated|loved"
        rf"|been (?:prioriti[sz]ing|avoiding|preferring))\b(?P<object>.+)"),
    (rf"{_I} (?:{_DEGREE}(?:don't|do not|doesn't|does not|never|no longer|can't|cannot|won't|will not"
        rf"|wouldn't)\s+{_DEGREE})(?P<mild>{MILD_VERBS}|{HABIT_VERBS}|trust|believe in|approve of"
        rf"|support)\b(?P<object>.+)"),
    (rf"{_I} {_DEGREE}(?:only|exclusively|always|strictly|solely|never|rarely|mostly|usually"
        rf"|primarily)\s+{_DEGREE}(?:{HABIT_VERBS})\b(?P<object>.+)"),
    (rf"\bi(?:'m| am| feel| get| become| have (?:always )?been|'ve (?:always )?been)"
        rf" {_DEGREE}(?:{_STATES})(?P<object>.*)"),
    (rf"\b(?:i|my \w+)(?:'ve| have| has|'ve got| suffer from| struggle with) (?:(?:an?|no|some|any|little"
        rf"|zero|the|very|such|quite|multiple|several) )*(?:(?!\w+(?:ed|ing)\b|been\b)[\w-]+,?"
        rf" ){{0,4}}?(?:{_HELD})\b(?P<object>.*)"),
    (r"\bi(?:'ve| have)? (?:now |just |already |always |finally )?(?:decided|chosen|chose|opted"
        r"|elected|prioriti[sz]ed|favou?red)(?: to| on| for)? (?P<object>(?=(?:use|keep|work|write|rely"
        r"|stick|stay|go|build|avoid|limit|focus|prioriti|\w+ing\b|[^?$]{4,120}\b(?:using"
        r"|by \w+ing)\b))(?!not\b|between\b|if\b|whether\b|what\b|which\b|against\b)[^?$]{4,}?\b(?:due to"
        r"|because|over|rather than|instead of|despite|for (?:its|their|better|more|\w+ and \w+|\w+(?:ity"
        r"|ness|cy|ce)\b)|to (?:avoid|preserve|maintain|keep|ensure|improve|reduce|minimi[sz]e|enhance"
        r"|protect|save|support|honou?r|boost|balance|prevent|simplify|stay)).*)"),
    (r"\b(?:given|considering|taking into account|fits?|matches|reflects?|respects?|with|per|in|mind|of"
        r"|to) (?P<stated>my) (?:\w+ )?preference (?:for|of|to) (?P<object>.{4,})"),
    (r"\bi(?:'m| am) (?:trying|aiming|hoping|planning) to (?P<object>(?:keep|balance|maintain|avoid|stay"
        r"|minimi[sz]e|maximi[sz]e|reduce|stick)\b.{5,120}? by (?:only )?(?:using|keeping|avoiding"
        r"|choosing|preferring|sticking|relying|limiting|writing)\b.{5,})"),
    r"\bsomeone who (?:\w+ )?(?:prefers|prioriti[sz]es|avoids) (?P<object>.{4,})",
    (rf"\bi {_DEGREE}(?:follow|adhere to|keep to|am on|live by|maintain|observe)\b(?P<object> .*\b(?:diet"
        rf"|lifestyle|regimen|routine|principles?|rules?|kosher|halal|fasting)\b.*)"),
    (r"\bmy (?:\w+ )?(?:preference|favou?rite|priority|taste|rule|principle|policy)\b (?:\w+ ){0,3}?(?:is"
        r"|are)\b(?P<object>.+)"),
    (r"\b(?:isn't|is not|are not|aren't|not) (?:really )?(?:for me|my (?:thing|style|cup of tea"
        r"|taste))\b(?P<object>)"),
    (r"\b(?:makes?|gives?) me (?:feel )?(?:sick|ill|dizzy|nauseous|anxious|uncomfortable|sleepy|migraines?"
        r"|headaches?|hives|a headache|a migraine)\b(?P<object>)"),
)))
"""The frames, each searched in a part of a sentence.

``object`` is what the attitude is about, ``mild`` a mild verb, and ``stated`` a mention of a preference,
which may be in a question.
"""

PARTS = compiled(r"[,;:]\s+|\s[–—-]\s|\s+(?=(?:but|so|because|since|and (?=i\b|i'|my\b)|though|although"
    r"|considering|given)\b)")
"""Where a sentence goes on to something else. Each part is read for itself."""

NOT_IN_GENERAL = compiled(r"\b(?:today|tonight|tomorrow|yesterday|right now|this (?:time|morning|evening"
    r"|week|weekend|one|once)|last (?:night|week|month|year|time)|just now|at the moment|so far|yet)\b"
    r"|\b(?:would|i'd|'d) (?:like|love)\b|\bif (?:i|you)\b.{0,30}\bi (?:prefer|like)\b|\b(?:should|do|did"
    r"|would|can|could|might|must|which|whether|what|why|how|ones?) i\b|\bused to\b|\b(?:if (?:not|so)"
    r"|otherwise|or else|in that case)\b|\bas i (?:like|prefer)")
"""What shows a moment, a wish for now, or a question, and not an attitude."""

AT_HAND = compiled(r"^\W*(?:(?:that|this|it(?! over [A-Z])|them|those|these|your|you|its|his|her|their|how"
    r"|what|where|when|to (?:see|hear|know|get|make|do|have|be|go|start|add|use (?:it|this|that))"
    r"|the (?:first|second|third|latter|former|last|other|one|way|fact|new|current|result|output)|option"
    r"|#?\d)\b|\W*$)")
"""An object that is the thing at hand: "I like it", "I prefer the second one"."""

MILD_AT_HAND = compiled(r"^\W*(?:the (?!(?:idea|taste|smell|feeling|feel|look|concept|thought|sound|texture"
    r"|notion|practice) of\b)|my|our|his|her|their|its|all the|[\w]*\d|[A-Z]\w+(?:'s)?\b(?= \w+ing\b))")
"""The same for a mild verb: "I don't like the sidebar" is about one sidebar."""
# fmt: on
