"""More ways to rule an idea out, the short and the indirect ones: rows to read and to extend.

These sentences say that the agent did something wrong, that a thing is not wanted, or only "no". The thing
itself was named just before, so the words often only point to it.
"""

from agentx.synthesis.demands.tables.rejection_row import FINE, IS, MISBEHAVES, POOR, THING, VERY, Ruling
from agentx.synthesis.demands.tables.vocabulary import compiled

_IT = (
    r"(?:(?:that|this|it|these|those|they|everything|all of (?:that|this|it)|that one|this one"
    r"|the (?:result|answer|output|last one|whole thing)))"
)
_END = r"(?: (?:at all|either|though|to me|here|any ?more|now|again|imo|man|dude))*\s*[.!:…]*\s*(?::?[(/]+)?$"

_DID = (
    r"(?:did|made|put|set(?: up)?|wrote|got|took|built|broke|chose|kept|left|moved|changed|edited|modified"
    r"|updated|removed|deleted|added|created|renamed|replaced"
    r"|implemented|used|fixed|reverted|picked|configured|installed|committed|copied|cut|stripped|rewrote"
    r"|touched|placed|named|applied|merged|pushed)"
)
_MISDID = (
    r"(?:duplicated|overwrote|messed up|screwed up|butchered|hallucinated|invented|made up|hard-?coded"
    r"|misread|misinterpreted|misunderstood|overcomplicated|clobbered|mangled|ruined)"
)
_BY_MISTAKE = r"(?:mistakenly|wrongly|accidentally|incorrectly|erroneously|needlessly|unnecessarily)"
_DO = (
    r"(?:do|understand|follow|listen to|read|implement|set up|use|fix|change|update|address|answer|respect"
    r"|get|put|handle|apply)"
)
_BADLY = (
    r"(?:correctly|properly|right|as (?:i )?(?:asked|told|said|instructed|requested)|like i (?:asked|told"
    r"|said)|the way i|well|at all)"
)
_USING = (
    r"(?:us(?:e|ing)|adopt(?:ing)?|add(?:ing)?|introduc(?:e|ing)|switch(?:ing)? to|mov(?:e|ing) to|support"
    r"(?:ing)?|go(?:ing)? with|rewrit(?:e|ing)|migrat(?:e|ing)"
    r"|keep(?:ing)?|install(?:ing)?|buy(?:ing)?|pay(?:ing)? for|maintain(?:ing)?|implement(?:ing)?)"
)

OBJECTIONS: tuple[Ruling, ...] = (
    Ruling(
        "a plain no",
        compiled(
            r"^(?:(?:hm+|uh+|um+|oh|wait|well|yeah|and|but)[\s,.…]+)?(?:no|nah|nope|nay)"
            r"(?: (?:no|man|dude|wait))*[\s,;:.!…–—-]+(?=(?:\S+\s+){1,12}\S)"
            r"(?:(?:not|that's|this|it's|that|it|they're|those|these|way|too|just|still|don't|do not|never"
            r"|again|again,|wrong|i (?:said|meant|asked|want|wanted|told)|you(?:'re)?|we|let's|leave|keep"
            r"|put|use|the)\b)"
        ),
        takes="no, that's too much",
        leaves="no, that's fine",
        alone=True,
    ),
    Ruling(
        "verdict",
        compiled(
            rf"^(?:{_IT}{IS}{VERY} |(?:still|again|also|just|simply|clearly|completely|totally),? )?"
            rf"(?:{POOR}|not{VERY} {FINE}){_END}"
            rf"|^{_IT} (?:is|are|was|were)n't{VERY} {FINE}{_END}"
            rf"|^{_IT} (?:makes (?:no|zero|little) sense|(?:doesn't|don't|does not) make"
            rf"(?: any| much)? sense|(?:won't|wouldn't|will not) (?:do|work)){_END}"
            r"|^(?:what a mess|(?:bad|wrong|terrible|horrible|awful|stupid) (?:idea|approach|direction"
            rf"|place|file|branch|way|choice|tool|layer|one|solution|design|assumption)){_END}"
        ),
        takes="This is pointless.",
        leaves="This is not bad.",
        alone=True,
    ),
    Ruling(
        "not that",
        compiled(
            r"^(?:i|we)(?: really| just| still| actually)* (?:don't|do not|didn't|never) (?:want|need|like"
            rf"|love|agree with|ask for|asked for|wanted|buy)(?: any of)? {_IT}{_END}"
            rf"|^(?:please )?(?:don't|do not) do (?:that|this|it(?: like (?:that|this))?){_END}"
            rf"|^(?:i )?(?:don't|do not) think so{_END}|^(?:i|we) (?:strongly |completely |totally |really "
            rf"|still )*disagree{_END}"
        ),
        takes="We don't want that.",
        leaves="We want that.",
        alone=True,
    ),
    Ruling(
        "what you did",
        compiled(
            r"^you(?:'ve| have)?(?: just| also| only| again| simply| still| even| now| actually"
            rf"| completely)* (?:{_DID}|understood|read)\b(?P<idea>[^.;?!]{{0,60}}?)\b"
            r"(?:the wrong|(?:way |far )?too (?:much|many|\w+)|more than (?:i|we)|wrong(?:ly)?|incorrectly"
            r"|badly|twice|for no reason)\b"
            r"|^you(?:'ve| have)?(?: just| also| only| again| simply| still| even| now"
            rf"| completely)* {_MISDID}\b(?P<idea2>[^.;?!]{{0,80}})"
            r"|^you (?:didn't|did not|haven't|have not|don't|do not|aren't|are not)(?: really| even"
            rf"| actually)* (?:{_DO}|{_DID}|understood|followed|using|following|listening)\b"
            rf"(?P<idea3>[^.;?!]{{0,60}}?)\b{_BADLY}(?=\s*(?:[.,;!]|$| (?:to|i|because|and|but)\b))"
            r"|^(?:i )?(?:don't|do not) (?:think|believe) you(?:'ve| have)?(?: really| even| actually)*"
            rf" (?:{_DID}|{_DO}|understood|followed|addressed|answered|handled)\b(?P<idea4>[^.;?!]{{0,80}})"
            r"|^you (?:weren't|were not|aren't|are not|were never) (?:supposed|meant|asked|told) to\b"
            r"(?P<idea5>[^.;?!]{2,80})"
            r"|^(?:you )?should(?:n't| not) have\b(?P<idea6>[^.;?!]{2,80})"
            rf"|^(?P<idea8>[^.;?!]{{3,80}}?) (?:was|were|has been|have been|got) {_BY_MISTAKE}"
            rf" (?:{_DID}|overwritten|taken|written|shown|hidden|put|broken|chosen)\b"
            rf"|^you(?:'ve| have)? {_BY_MISTAKE} (?:{_DID}|{_MISDID})\b(?P<idea9>[^.;?!]{{2,80}})"
            r"|^(?:but )?you(?:'ve| have| are|'re)?(?: just| again| completely| still| simply)* ignor"
            r"(?:ed|ing)\b(?P<idea7>[^.;?!]{2,80})"
        ),
        takes="you removed too much from the loader",
        leaves="you removed the loader",
        alone=True,
    ),
    Ruling(
        "as i said",
        compiled(
            r"^i (?:(?:already|literally|clearly|explicitly|specifically|just) )?(?:told|asked) you"
            r" (?:not to|to not|never to)\b(?P<idea>[^.;?!]{2,80})"
            r"|^i (?:already|literally|clearly|explicitly|specifically) (?:said|told you|asked)\b"
            r"(?P<idea2>[^.;?!]{2,80})"
            r"|^(?:that|this|it)(?:'s| is| was)(?:n't| not) (?:what|how|where|why|when|the way) (?:i|we|you"
            r"|it)\b(?P<idea3>[^.;?!]{0,80})"
        ),
        takes="I told you not to rename the columns",
        leaves="I told you about the columns",
    ),
    Ruling(
        "should not",
        compiled(
            r"^(?P<idea>(?:we|you|they|that|this|it)(?: really| also| just)* (?:should(?:n't| not)"
            r"|must(?:n't| not)|ought not to)(?: ever| even| just)? "
            r"(?!(?:have|be|need|take|matter|affect|break|change|cause|impact|hurt|crash|fail|show|return"
            r"|happen|worry|forget|print|throw|give|see|get|require|allow|make a difference"
            r"|\w+ed)\b)[\w'-]+\b[^.;?!]{2,90})"
            r"|^(?:i|we) would(?:n't| not)(?: really| ever| even| personally)*"
            r" (?!(?:mind|know|say|be|call|worry|expect|think|have|bother|need|want|like|it|we|you|that|this"
            r"|recommend against)\b)(?P<idea3>[\w'-]+\b[^.;?!]{2,90})"
            r"|^(?P<idea2>(?:we|you) (?:should(?:n't| not)) (?:be \w+ing|have to|need to)\b[^.;?!]{2,90})"
        ),
        takes="we should not put the parser in here",
        leaves="it should not take long",
    ),
    Ruling(
        "a loud not",
        compiled(
            r"^(?:[\w '/.ˣ-]{0,60}? )?(?:(?-i:NOT|NEVER)|(?-i:DON'T|DO NOT|DOESN'T|ISN'T|SHOULDN'T|WON'T))"
            r" (?P<idea>(?!(?-i:[A-Z]{2,} [A-Z]{2,}))[^.;?!]{3,100})"
        ),
        takes="the limits are NOT part of the public module",
        leaves="the limits are not in the log",
    ),
    Ruling(
        "not planned",
        compiled(
            r"^(?:we|i)(?:'re| are|'m| am)?(?: really| currently| actually)*"
            r" (?:not (?:planning|intending|looking|going|about|trying) (?:on |to )|(?:don't|do not)"
            rf" (?:plan|intend) (?:on |to ))(?:be )?{_USING}\b (?P<idea>{THING})"
            r"|^(?:we|i)(?:'re| are|'m| am)(?: really| currently| actually)* not (?:using|adopting"
            r"|switching to|moving to|supporting|going with|interested in|a (?:big |huge )?fan of|happy"
            rf" (?:with|about)|comfortable with|okay with|ok with)\b (?P<idea2>{THING})"
            r"|^(?:really |definitely )?not (?:a (?:big |huge )?fan of|happy (?:with|about)"
            rf"|comfortable with|okay with|ok with)\b (?P<idea4>{THING})"
            r"|^(?:we|i) (?:really )?(?:hate|dislike|can't stand|disagree with|object to)"
            r" (?P<idea3>(?!to\b|when\b)[^.;?!]{3,90})"
        ),
        takes="I'm not planning on using a queue for this",
        leaves="I'm planning on using a queue for this",
        lasts="if it says so",
    ),
    Ruling(
        "undone",
        compiled(
            r"^(?:i|we)(?:'ve| have|'m| am)?(?: just| already| now| also| manually)* (?:reverted|reverting"
            r"|undid|undoing|rolled back|rolling back|backed out|discarded|threw away|scrapped)\b"
            rf"(?: most of| all of| some of| part of)? (?P<idea>{THING})"
            r"|^(?:i|we)(?:'ve| have)?(?: just| already| now| also| manually)* (?:removed|deleted"
            rf"|dropped)\b (?P<idea2>(?:your|that|those) [^.;?!]{{3,80}}?)\b(?:because|since|as it|as they"
            r"|it was|they were)\b"
        ),
        takes="I reverted that change because it hid the errors",
        leaves="I removed the old branch",
    ),
    Ruling(
        "what you added",
        compiled(
            r"^(?:(?:let's|please|just|kindly|(?:can|could|would) (?:you|we)) )*(?:remove|delete|drop"
            r"|take out|get rid of|kill) (?P<idea>[^.;?!]{2,60}?\b(?:that |which )?you(?:'ve| have)?"
            r"(?: just)? (?:added|made|created|wrote|introduced|put|generated|invented))\b"
        ),
        takes="please remove the wrappers that you added",
        leaves="please remove the wrappers",
        mood="either",
    ),
    Ruling(
        "was better",
        compiled(
            r"^(?P<idea>(?:the |your |our )?(?:old|previous|original|earlier|first|last"
            r"|former)\b[^.,;?!]{0,40}?) (?:was|were|is|looked|looks|worked|works|felt|feels|read|reads)"
            r"(?: just| much| way| a lot| far| actually| clearly| definitely)* (?:better|nicer|cleaner"
            r"|clearer|simpler|good|fine)\b"
            r"|^(?:i|we)(?: really| much| actually)* (?:liked?|preferred|favou?red)"
            r" (?P<idea2>(?:the |your |our )?(?:old|previous|original|earlier|former)\b[^.;?!]{2,60})"
            r"|^(?P<idea3>(?:that|this|it|which)) (?:completely |totally |kind of |sort of )?defeats the"
            r" (?:\w+ )?(?:purpose|point)\b"
            rf"|^(?!{MISBEHAVES})(?P<idea4>(?:that|this|it|which)) (?:only |just |really |actually )?makes"
            rf" (?:it|things|everything|the [\w ]{{2,30}}?|them) (?:\w+ )?(?:harder|worse"
            r"|more (?:complex|complicated|confusing|fragile|brittle)|less \w+|unreadable)\b"
        ),
        takes="the old header was much cleaner",
        leaves="the old header was blue",
    ),
    Ruling(
        "put it back",
        compiled(
            r"^(?:(?:let's|just|please|kindly|(?:can|could|would) (?:you|we)|we should|you should) )*"
            r"(?:put|change|switch|set|turn|move) (?:that|this|it|them|those|these|everything|all of"
            r" (?:it|that|this)) back\b(?! to (?:me|you))"
            r"|^(?:(?:just|please|kindly|(?:can|could|would) (?:you|we)|we should|you should) )*go back to"
            r" (?:the|how|what) (?P<idea2>(?:it was|we had|(?:old|previous|original|earlier"
            r"|way it was)\b)[^.;?!]{0,80})"
        ),
        takes="please change it back to the old header",
        leaves="please put the header back in place",
        mood="either",
    ),
    Ruling(
        "all but that",
        compiled(
            r"^(?:(?:yes|yeah|yep|ok|okay|sure|good|great|nice|perfect|fine|agreed|(?:it |that |this |all "
            r"|everything )?(?:looks|sounds|seems) (?:good|great|fine|right|ok))[\s,.!]+)+"
            rf"(?:except(?: for| that)?|apart from|other than|but not|just not|minus)\b (?P<idea>{THING})"
        ),
        takes="yes, except for the second index",
        leaves="fine, run everything except the slow tests",
    ),
    Ruling(
        "it is rather",
        compiled(
            r"^(?:what|huh|hu|wtf|wait what|really|seriously|er+|erm+)\?+!? (?:but |so |and )?"
            r"(?P<idea>(?:[^.;?!]{2,60}?) (?:should(?:n't| not)?|must|(?:is|are|was|were)(?: the)?"
            r" (?:right|correct|better|fine|on purpose|intentional))\b[^.;?!]{0,80})"
            r"|^(?:it|this|that|these|those|they)(?:'s| is| are|'re|n't)? (?:is |are )?"
            r"(?:should(?:n't| not)?|must|supposed to|meant to|has to|have to|needs? to)?(?: be)? ?"
            r"(?:not |n't )(?:a|an|the|about|for)\b [^.,;?!]{2,50}(?:,| -| –|;)? (?:but|it's|it is|they're"
            r"|that's) (?P<idea2>[^.;?!]{2,80})"
            r"|^not (?P<idea4>(?:a|an|the|in|on|with|by|for)\b [^.,;?!]{2,50}), (?:but )?(?:rather |just )?"
            r"(?:a|an|the|in|on|with|by|for)\b [^.;?!]{2,60}"
            r"|^(?:it|this|that|these|those|they|the [\w ./ˣ-]{2,40}?) (?:should|must|(?:is|are) (?:supposed"
            r"|meant) to)(?: have)?(?: be| been)? [^.,;?!]{2,60}, (?:and )?not"
            r" (?P<idea3>(?!only\b|just\b|sure\b|yet\b|to mention\b)[^.;?!]{2,80})"
        ),
        takes="the limit should be per user, not per session",
        leaves="the limit should be per user, not only per session",
    ),
    Ruling(
        "stop that",
        compiled(
            r"^(?:please )?(?:stop|quit) (?P<idea>(?!(?:work|runn|fail|start|respond|load|show|render|build"
            r"|listen)ing\b)\w+ing\b[^.;?!]{2,80})"
            r"|^(?:why (?:do|are) )?you(?:'re)? (?:just |still )?(?:keep|kept|keeping)"
            r" (?P<idea4>(?:on )?\w+ing\b[^.;?!]{2,80})"
            r"|^who (?:the \w+ )?(?:told|asked) you to\b(?P<idea5>[^?]{2,80})"
            r"|^why (?:on earth|the hell|the fuck|in the world)\b(?P<idea2>[^?]{4,100})"
            r"|^why (?:did|have|are|do|would) you\b(?P<idea3>[^?]{4,100}?)\b(?:when|even though|instead of"
            r"|rather than|without asking|if i)\b"
        ),
        takes="stop rewriting the whole loader",
        leaves="it will stop rewriting at some point",
        mood="either",
    ),
    Ruling(
        "not worth it",
        compiled(
            rf"^(?P<idea>(?:that|this|it|which|[\w ./ˣ-]{{3,40}}?)) (?:doesn't|don't|does not|do not|hardly"
            r"|barely)(?: really| even)? (?:warrants?|deserves?|justif(?:y|ies)|merits?|pays? off|earn"
            r"|buy us|gain us|bring us)\b"
            r"|^(?:there(?:'s| is) |i see |i (?:don't|do not) see )?(?:no|any) (?:real |actual |good "
            rf"|clear )?(?:need|point|reason|sense|value|benefit|use) (?:to|for|in|of)\b (?P<idea2>{THING})"
        ),
        takes="a two line function does not warrant a class",
        leaves="that would justify a class",
    ),
)
