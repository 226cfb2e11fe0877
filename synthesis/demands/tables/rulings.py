"""Wordings that rule a thing out, by their grammar: "X is off the table", "no more X", "X: no".

They tell which thing a sentence is against. Alone they make a candidate, because most of them can be about
the work at hand.
"""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import compiled


class Ruling(NamedTuple):
    """One wording that rules a thing out.

    Attributes:
        name: Used in tests and explanations.
        takes: A sentence that it must accept.
        leaves: A sentence that it must not accept.
        patterns: Matched at the beginning of a clause without its lead-ins; the group ``idea`` is ruled out.
        says_so: Whether the wording alone makes a candidate. Otherwise it only tells what a rule is against.
        refers: Whether it rules out "it", which it names before: other wordings are tried first.
    """

    name: str
    takes: str
    leaves: str
    patterns: tuple[re.Pattern[str], ...]
    says_so: bool = True
    refers: bool = False


def _each(*forms: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for the beginning of a clause; ``{X}`` is the thing, ``{N}`` one after a "no"."""
    thing = r"[^,;:!?\n]{2,70}?)"
    named = (
        form.replace("{X}", f"(?P<idea>{thing}").replace("{N}", f"(?P<idea>{_NO_NOUN}{thing}")
        for form in forms
    )
    return tuple(compiled(f"^(?:{form})") for form in named)


# fmt: off
_BE = r"(?: is| are|'s|'re| am|'m| was| were| will be| stays?| remains?)"
_ADVERBS = (r"(?:(?:now|all|just|also|strictly|completely|absolutely|officially|simply|really|hereby|still|so"
    r"|therefore|definitely|firmly|clearly|basically|finally|once and for all) )*")
_US = (r"(?: (?:for|to|with) (?:us|me|this \w+|our \w+|good)|,? (?:full stop|period)"
    r"|(?= (?:in|on|for) (?:this|our|the|here)\b))")
_USED = (r"(?:used|allowed|wanted|welcome|permitted|accepted|acceptable|supported|added|touched|tolerated"
    r"|introduced|installed|imported)\b")
_OUT = (r"(?:off(?: the table|[- ]limits| the menu)|banned|forbidden|prohibited|buried|taboo|verboten"
    r"|outlawed"
    rf"|dead(?: and buried|{_US})|not an option|out of the question|ruled out|gone for good|blacklisted"
    rf"|unwelcome"
    r"|an? (?:hard |clear |definite |firm )?(?:no-?go|no|dead end)\b|a thing of the past"
    rf"|history(?: here\b|{_US}|$)|(?:finished|over|done|through|closed|settled|dropped|rejected|vetoed"
    rf"|scrapped|retired|unacceptable|the wrong \w+|too \w+){_US}|no longer (?:{_USED}|an option|ok|part of)"
    r"|(?:cancelled|canceled|shelved|scrapped|abandoned|axed|binned|excluded|discarded|disqualified|toxic"
    r"|poison)\b"
    r"|a (?:closed (?:chapter|book)|relic|lost cause|dead horse|closed subject|thing we gave up)\b|against"
    r" (?:our|the|my|house) (?:rules?|polic\w+)"
    r"|(?:dead|gone|off|retired|rejected|vetoed|dropped)(?=$|,|;)|out of (?:bounds|the (?:picture|race"
    r"|running|game)|consideration)|behind us|off (?:our|my|the) (?:list|roadmap|plate|shelf|wish ?list"
    r"|menu|books|cards|map)"
    r"|on (?:our|my|the|a) (?:\w+ )?(?:black ?list|blocklist|no-go list|(?:banned?|forbidden|no) list|index)"
    r"|out of (?:the|our|my) (?!(?:way|blue|box|ordinary|office|loop|woods)\b)[a-z]|an? (?:swear|dirty"
    r"|four-letter) word\b"
    r"|banished|barred|expelled|exiled|(?:kicked|thrown) out|intolerable"
    r"|dead (?:wood|weight|in the water|and gone)\b|gone (?:from (?:our|the|my|this)|for good)\b"
    r"|an? (?:non-?starter|deal ?breaker)\b|persona non grata|past its \w+|unwanted|beyond the pale"
    r"|under (?:an? )?(?:ban|embargo)\b|struck (?:off|from)"
    r"|(?:yesterday's|old) news|over my dead body"
    r"|out(?=,|$| for (?:good|this|us|me|the)\b| in (?:this|the|our)\b| here\b| from now\b| as\b)"
    r"|something (?:we|i)(?:'ll|'d| will| would)? (?:never|don't|do not|won't|ruled out|have ruled out)\b)")
_TAKE = (r"(?:use|do|adopt|add|introduce|touch|have|want(?! to\b)|need(?! to\b)|allow|accept|support|install"
    r"|import|write|create|suggest|propose|consider|try|(?:pull|bring|put) in|bring (?:me|back|up)|put"
    r"|mention"
    r"|(?:go|come|switch|move|return|migrate|fall) (?:back )?(?:to|on|with|for|near)(?: me with)?|reach for"
    r"|(?:rely|depend|build) on|resort to|run|(?:deal|work|start|bother) with|offer|buy|book|order|send"
    r"|publish"
    r"|hand out|sell|keep|pay for|sign up for|subscribe to|plan|print|post|serve|(?:even )?think about"
    r"|make me (?:use|look at)|look at|waste time on|schedule|host|deploy|set up"
    r"|reintroduce|re-?add|revive|resurrect|maintain|operate|learn|look after|babysit)")
_TAKING = (r"(?:using|doing|adopting|adding|introducing|touching|having|allowing|accepting|supporting"
    r"|installing|importing|taking|pulling in|bringing (?:in|back|up)|(?:going|coming|switching|moving"
    r"|migrating|returning) (?:back )?(?:to|with|for|near)|(?:relying|depending|building) on"
    r"|(?:dealing|working|messing) with|maintaining|learning|operating|keeping"
    r"|buying|paying for|offering|running|wanting|setting up)")
_PROPOSING = (r"(?:suggesting|proposing|recommending|offering|bringing up|mentioning|pushing|pitching"
    r"|asking for|coming (?:back )?with)")
_WANTED = (rf"(?:{_USED}|an option|on the table|happening|coming|ok(?:ay)?|for us|needed here"
    r"|going (?:in|into|to happen|to fly)|how we do things|part of (?:this|our|the)|a thing\b|an? \w+ for us"
    r"|something (?:we|i) (?:want|do|use|need|touch|like)|up for (?:discussion|debate)|worth it"
    r"|(?:an? )?(?:\w+ )?(?:acceptable|viable|option|choice|fit|candidate|possibility|alternative)"
    r"|how (?:we|this \w+|our \w+) \w+|our (?:thing|style|way|cup of tea)|the way we \w+|invited)\b")
_NOT = (r"(?:don't|do not|won't|will not|never|no longer|shan't|can't|cannot|refuse to|will never|shall not"
    r"|decline to|must not|mustn't|may not|shouldn't|should not|are not to|aren't to)")
_NO = (r"(?:no|nope|never|nah|no way|no thanks?(?: you)?|hell no|absolutely not|definitely not|not here"
    r"|not in (?:here|(?:my|our|this) \w+)|not with (?:me|us)|not again|over my dead body|forget it|nein"
    r"|(?:god|heavens|lord|oh|certainly|decidedly|of course) (?:no|not)|thanks,? but no thanks"
    r"|not on (?:my|our) watch|(?:hard |firm |definite )(?:pass|no)|pass|veto(?:ed)?|non-?starter"
    r"|non|nee|nej)")
_NO_NOUN = (r"(?!(?:problems?|need|worries|idea|way|thanks?|longer|matter|changes?|errors?|luck|doubt|rush"
    r"|hurry|reason|point|one|questions?|big|issues?|it|that|i|we|you|the|this|wait|difference|progress"
    r"|effect"
    r"|more|such|other|further|harm|good|not|don't|just|actually|clue|access|internet|time|money|sure"
    r"|quite|really|both|either)\b)")
_END = (r"(?=$|,|\.|;| [–—-] | (?:in|on|here|from|any|at all|please|for|inside|within|under|ever|of any|with"
    r"|again|until|because|period|full stop)\b)")
_WE = (r"(?:we|i|(?:the|our|my) (?:[\w'-]+ ){0,2}?(?:team|board|council|company|client|boss|customers?"
    r"|school|church|committee"
    r"|parents|owner|publisher|editor|landlord|landlady|doctor|wife|husband|lawyer|accountant|admins?"
    r"|users|vicar|principal|head(?:teacher)?|teachers?|treasurer|union|insurers?|bank|auditors?|supervisor"
    r"|professor|director|manager|producer|designers?|chair|members|volunteers|regulator|journal|cto|ceo|dpo"
    r"|data protection officer|lead|architects?|agency|neighbours|tenants|steering group|it department)|legal"
    r"|ops|security|management|marketing|finance|compliance|nobody|no one|none of us)")
_TALKS = (r"(?!(?:see|know|think|get|understand|remember|believe|like|mind|care|agree|find|feel|go|let"
    r"|make|want|need"
    r"|have|say|mean|be|going|doing|using|sure|trying|looking|getting|being|having|seeing|thinking|sending"
    r"|working"
    r"|asking|saying|talking|ready|able)\b)")

_IT = r"(?:it|that|them|those|this|one|any of (?:it|that|them))\b"
BAN_IT = (rf"(?:(?:don't|do not|never|won't|will not|not|stop|no longer|quit|nobody|no one)(?:"
    rf" \w+){{0,3}}? (?:{_TAKE}|{_TAKING}"
    rf"|{_PROPOSING})(?:e?s)? {_IT}|(?:do not|don't|never|won't|will not|not) (?:ever )?bring {_IT} up"
    rf"|(?:it|that|they|this)"
    rf"(?:{_BE}|'s| has been| have been) {_ADVERBS}{_OUT}|(?:it|that|they|this){_BE} not {_ADVERBS}(?:to"
    rf" be |going to be |being )?"
    rf"{_WANTED}|(?:it|that|they|this) (?:won't|will not|isn't going to|aren't going to|must not|mustn't"
    rf"|never|doesn't|don't|does not|do not)"
    r" (?:ever )?(?:be|come|happen|return|get|go|enter|land|fly|make it"
    r"|creep|sneak|slip|appear|show up)\b|(?:leave|keep) (?:it|that|them"
    r"|those) (?:out|off|away)\b"
    r"|(?:drop|forget|bury|skip|scrap|ditch) (?:it|that|them|those)(?=$|[ ,.!;])(?! (?:in|to|into|from"
    r"|on)\b)|never again|not again"
    r"|(?:we|i)(?:'re| are|'m| am) (?:well |finally |now )?(?:shot|rid|free|clear) of (?:it|that|them)"
    r"|no more of (?:it|that|those|them|this)|end of story|case closed|(?:we|i)(?:'re| are|'m| am)?"
    r" (?:done|through|finished) with"
    r" (?:it|that|them))")
_MENTIONS = (r"(?:tried|replaced|removed|dropped|left|ripped out|moved off"
    r"|gave|had|used|been through|been burnt (?:by|with|on)|seen enough of|looked at"
    r"|considered|evaluated|discussed"
    r"|talked about|went through|went with|said no to|had enough of|thought about|know|know about|heard"
    r" about|get|see)")

_QUITTING = (r"(?:dropping|abandoning|ditching|scrapping|banning|shelving|killing|quitting|leaving"
    r"|retiring|burying|axing|binning"
    r"|phasing out|sunsetting|vetoing|refusing|rejecting|excluding|outlawing|saying goodbye to|walking"
    r" away from|parting (?:ways )?with|giving up(?: on)?|swearing off|doing away with"
    r"|pulling the plug on|putting an end to|closing the (?:book|chapter|door) on|turning (?:our|my) back"
    r" on|ending|over|allergic to"
    r"|drawing the line at|staying off|steering clear of|getting off|moving off|weaning \w+ off)")
_QUIT = (r"(?:dropped|abandoned|ditched|scrapped|banned|outlawed|shelved|killed|quit|retired|buried|axed"
    r"|binned|phased out|sunset"
    r"|said goodbye to|say goodbye to|walked away from|parted (?:ways )?with|gave up(?: on)?|given up(?:"
    r" on)?|sworn off|swore off"
    r"|did away with|done away with|pulled the plug on|put an end to|closed the (?:book|chapter|door) on"
    r"|turned (?:our|my) back on|unsubscribed from|(?:ripped|torn|thrown) out|migrated (?:away from|off)"
    r"|switched away from"
    r"|cut ties with|bid farewell to"
    r"|drew the line at|draw the line at|left behind|outgrown|moved (?:past|on from)|discarded|excluded"
    r"|forbade|forbidden|prohibited|put (?:our|my) foot down on)")

RULINGS: tuple[Ruling, ...] = (
    Ruling("it is out", "Jenkins is dead to us", "the build is out of date", _each(
        rf"{{X}}{_BE} {_ADVERBS}{_OUT}", rf"{{X}}(?: has| have|'s|'ve|(?: has| have)? got|gets?) (?:been"
        rf" )?{_ADVERBS}{_OUT}",
        r"{X} (?:must|has to|have to|should|shall|needs? to|will|can) (?:be )?(?:go(?= for good|\W*$)|go"
        r" to hell|stay out"
        r"|stay away|banned|forbidden|thrown out)\b",
        r"{X} (?:belongs?|goes|go) (?:in|on|into|to) the (?:bin|trash|museum|past|scrapheap|dustbin)\b",
        r"(?:the )?(?:days|times?|era|age|chapter|story|subject|topic|case|book) of {X} (?:is|are) (?:over"
        r"|behind us|gone|closed|finished|done)\b",
        r"the {X} (?:idea|plan|experiment|era|chapter|days|time|adventure|subject|topic|story|business"
        r"|thing|question) (?:is|are|has been|was)"
        r" (?:over|dead|closed|finished|shelved|buried|done|off|cancelled|settled|history|scrapped|dropped"
        r"|parked for good)\b",
        r"the (?:door|book|chapter|subject|file|case) (?:is|stays|remains) (?:closed|shut) (?:for|on|to)"
        r" {X}(?=$|[ ,.;])",
        r"we(?:'re| are) (?:an? )?{X}[- ]free\b", r"{X} gets? (?:a|the) (?:(?:hard|firm) (?:pass|no)|red"
        r" card|thumbs down|veto|no)\b",
        r"{X} (?:has|have) left the building\b", r"{X} (?:gets?|got) the (?:boot|chop|axe|sack)\b",
        r"(?:this|our|the|my) [\w ]{2,30} (?:is|stays|remains|shall be|will be|must be|has to be) free"
        r" (?:of|from) {X}$",
        r"(?:this|our|the|my) [\w ]{2,30} (?:is|stays|remains|shall be|will be|must be|has to be) {X}[-"
        r" ]free\b",
        r"(?:banned|forbidden|off[- ]limits|out|ruled out|verboten|blacklisted|taboo|no-gos?|not allowed"
        r"|black ?list|prohibited)\s*[:–—-]\s*{X}$",
        r"(?:whoever|anyone (?:who|that)|if (?:i|anyone|someone|anybody|you)(?: ever)?) (?:sees?|adds?"
        r"|brings?(?: back| in)?|uses?|installs?|suggests?"
        r"|proposes?|finds?|imports?|mentions?) {X}(?=$|[ ,.;])",
        r"(?:i'd )?rather (?:nothing|none|nobody|die|quit|walk|do nothing|no \w+(?: at all)?) than {X}$",
        r"{X} (?:has had|have had|'ve had|'s had|had) (?:its|their|his|her) (?:day|chance|time|chances|turn"
        r"|run|moment)\b",
    )),
    Ruling("it and we are through", "Vagrant and I are done", "the tests and the docs are done", _each(
        r"{X} and (?:i|me|we|us|(?:this|our|my) \w+) (?:(?:are|'re|have) (?:done|through|finished|parted)"
        r"|(?:don't|do not|never|won't) (?:mix|go together|get along|belong together))\b",
        r"(?:this|our) (?:[\w-]+ ){1,2}(?:is|are) (?:done|through|finished) with {X}$",
        r"there(?:'s| is) (?:now )?an? (?:\w+ )?(?:ban|embargo|veto|moratorium) on {X}$",
        r"{X} (?:can|may) (?:stay|remain|rot|rest) (?:where (?:it|they)|in (?:the (?:past|museum)"
        r"|peace|hell|\d{4}))\b",
        r"(?:please )?not {N} again$",
        r"not (?:a single|one(?: more)?|another|even one) {X}$",
        rf"{_WE} wants? {{X}} (?:gone|out|banned|away|off|buried)(?=$| (?:of|from|for)\b)",
        r"{X} belongs? (?:to|in) (?:the past|history|yesterday|\d{4}|another (?:age|era|decade)|a museum"
        r"|the (?:last (?:century|decade)|stone age))\b",
        r"[^,;:!?\n]{1,40}? (?:leaves?|left|leaving) {X} behind$", r"out with {X}$", r"kill {X} with fire$",
        rf"(?:i|we)(?:'d| would) (?:sooner|rather) [^:;!?\n]{{2,40}} than {_TAKE} {{X}}$",
        rf"(?:hell|pigs) [^:;!?\n]{{2,40}} (?:before|when) (?:we|i) (?:ever )?{_TAKE} {{X}}$",
        r"(?:one more|another) {X} and (?:i|we)\b",
        r"{X} (?:has |have )?cost us (?:enough|too much|dearly)\b",
        r"(?:the|our|my) (?:decision|verdict|vote|ruling|position|stance) (?:on|about|regarding"
        r"|to) {X} (?:is|was"
        r"|stands|remains)[^,;:!?\n]{0,20}\b(?:no|negative|never|against)\b",
        r"(?:the|our|my) (?:ban|embargo|veto) on {X} (?:is|stays|stands|remains|still)\b",
        r"(?:it's |that's )?(?:the |a )?(?:red light|curtains|game over|lights out|no-?go"
        r"|end of the (?:road|line)"
        r"|time's up) for {X}$",
        r"{X} (?:failed|didn't pass|did not pass) (?:our|the) (?:\w+ )?(?:review|audit|assessment|check)$",
        r"this (?:[\w-]+ )?is (?:an? )?{X}[- ]free (?:zone|\w+)$",
        r"(?:we|i)(?:'ll| will)? (?:pass on|(?:do|live|manage|get by|go) without) {X}$",
        r"(?:(?:we|i) have |there(?:'s| is) )?zero tolerance for {X}$",
        rf"{_WE} (?:have|has|had) no (?:use|time|patience) for {{X}}$",
        rf"{_WE} (?:won't|will not|don't|do not|doesn't) (?:put up with|believe in) {{X}}$",
        r"{X} can (?:go )?(?:jump|rot|die|burn|take a hike|get lost)\b",
        r"{X} (?:will never|won't ever|will not ever|shall never|must never)(?: again)? \w+ [^,;:!?\n]*"
        r"\b(?:our|this|my|these)\b",
        r"{X} (?:is|are) not (?:setting foot|coming|getting|going) (?:in|into|on|onto|near|anywhere)\b",
        rf"(?P<idea>[^;:!?\n]{{2,90}}?)(?:\s*[:–—-]+\s*|,?{_BE} )(?:all|both|each) {_OUT}",
        r"{X} (?:has |have )?(?:\w+ )?(?:burn(?:ed|t)|bit|bitten|stung|failed|betrayed) us\b",
        r"{X} (?:has |have )?let us down\b",
        r"{X} (?:was|were) an? (?:\w+ )?(?:mistake|disaster|nightmare|catastrophe|dead end|failure)$",
        r"{X} were (?:\w+ )?(?:mistakes|disasters|nightmares|failures)$",
    )),
    Ruling("another instead of it", "we use Polars, not pandas", "use it, not now",
        says_so=False, patterns=_each(
        r"(?:always |please |we |i |only )*(?:use|uses|prefer|take|stick (?:with|to)|go with|work with|want)"
        r" [^:;!?\n]{2,50}?,? (?:instead of|rather than|in place of|over|and not|not) {N}$",
        r"{X} (?:has been|have been|was|were|is|are|gets?) (?:replaced|superseded) (?:by|with)\b",
        r"(?:we|i) (?:can't|cannot|don't|do not) (?:stand|bear|trust|like|use) {X}$",
        rf"{{X}}{_BE} {_ADVERBS}(?:overkill|the enemy|evil|(?:an? )?(?:menace|plague|curse|cancer)|garbage"
        rf"|rubbish"
        r"|trash|useless|pointless|bloat(?:ed)?|a pain|more trouble than)\b",
        r"[\w -]{3,30} never (?:carry|contain|have|use|include|get|take|show|mention|see)s? {X}$",
        r"(?:we|i) (?:hate|loathe|detest|despise) {X}$",
    )),
    Ruling("under no circumstances", "under no circumstances Elasticsearch", "in no case it fails",
        says_so=False, patterns=_each(
        r"(?:under no circumstances|on no account|by no means|in no case|at no point)[,:]?"
        rf" (?:(?:will|do|may|should|must|can|shall|are) (?:we|you|i|they) (?:to |ever )?{_TAKE} )?{{X}}$",
    )),
    Ruling("it is not wanted", "cron jobs are not welcome in here", "the test is not green", _each(
        rf"{{X}}{_BE} not {_ADVERBS}(?:going to be |to be |being |getting |be )?{_WANTED}",
        rf"{{X}} (?:isn't|aren't|ain't|won't be) {_ADVERBS}(?:going to be |to be |being |getting )?{_WANTED}",
        rf"the answer (?:to|on) {{X}}{_BE} (?:a )?(?:no|never)\b", rf"my (?:answer|view) (?:to|on)"
        rf" {{X}}{_BE} no\b",
    )),
    Ruling("it stays out", "lombok stays out of this codebase", "the log stays in its folder", _each(
        r"{X} (?:(?:must|has to|have to|should|shall|will|can|needs? to) )?(?:stays?|remains?|keeps?|goes|go)"
        r" (?:well |far )?(?:out(?! of date)|away(?= from)|off(?= the| limits)|banned|forbidden)\b",
        r"(?:let's |please |we )?(?:keep|leave) {X} (?:out of|away from|off|out)\b",
    )),
    Ruling("no place", "jQuery has no place in the frontend", "the table has no rows", _each(
        r"{X} (?:has|have|had|got|has got|have got|will have) no (?:place|business|room|future|home)\b",
        rf"there(?:'s| is| will be|'ll be) no (?:place|room|need) for {{X}}{_END}",
        r"{X} (?:does not|doesn't|do not|don't) (?:belong|fit)\b",
    )),
    Ruling("it: no", "Selenium: no", "status: no errors", _each(
        rf"(?:what about |how about |about |and |as for )?{{X}}(?:\s*[:–—?]|\s+-+|,)\s*(?:that's a |it's a"
        rf" |again )?{_NO}"
        r"(?=\s*[.,;!–—](?!\w)|$| (?:here|ever|again|thanks|thank you|kitchen|house|project|repo|name"
        r"|watch)\b)",
    )),
    Ruling("no more of it", "no more cron jobs in here", "no problem with that", _each(
        rf"(?:absolutely |definitely |and |zero |strictly )?(?:no|zero) (?:more )?{{N}}{_END}",
        rf"(?:we|i)(?:'ll|'d| will| want| accept| take| need| have| allow| can have)+ (?:have )?(?:no"
        rf"|zero) (?:more )?{{N}}{_END}",
        r"there(?:'ll be| will be| must be| shall be| can be| is to be| are to be) no (?:more )?{N}(?=$|"
        r" (?:in|on|at|for|here|any|with|from|from now)\b)",
        r"(?:there(?: is| are)|there's|i see|we have|we've got)"
        r" no (?:more )?{N} (?:any ?more|any longer|from now on|in (?:this|our|the)\b|here\b|again\b|ever\b)",
        r"there (?:won't|will not|shall not|must not|mustn't) be (?:any|another|a) (?:more )?{X}(?=$| in\b"
        r"| here| again| any)",
        r"there(?:'s| is|'ll be| will be) no (?:going back|return|way back) to {X}$", r"no (?:going"
        r"|turning) back to {X}$",
        r"no way (?:we|i)(?:'re| are|'m| am|'ll| will)? (?:ever )?(?:(?:go|going) (?:back )?(?:to|with)"
        r"|use|using|do|doing|add) {X}$",
        r"(?:nothing|anything) (?:(?:else )?but|with|using|based on|that uses|from|by) {X}$", r"(?:only "
        r"|do it |please |we (?:do|live|work|manage|go) )?without {X}(?=$| (?:please|from)\b)",
        r"(?:[^,;:!?\n]{0,40} )?(?:keine?(?:n|r|m)?|kein) {X}(?=$|,|\.| (?:mehr|hier|in|im|für)\b)",
        r"(?:pas de|plus de|plus jamais de|nada de|no más|niente|basta|geen|inga?) {X}(?=$|,|\.| (?:ici"
        r"|aquí|qui|più|meer|hier|dans|en|per|pour|para)\b)",
        r"{X} (?:kommt (?:mir |uns )?nicht|ist (?:vom tisch|raus|tabu|gestorben|verboten)|bleibt"
        r" (?:draußen|weg))\b",
    )),
    Ruling("we are not doing it", "we're not doing Tailwind", "we're not sure", _each(
        rf"(?:we|i)(?:'re| are|'m| am| aren't) {_ADVERBS}(?:not (?:going to {_TAKE}|{_TAKING})) {{X}}$",
        rf"(?:we|i) aren't {_ADVERBS}(?:going to {_TAKE}|{_TAKING}) {{X}}$",
        rf"(?:we|i)(?:'re| are|'m| am) {_ADVERBS}(?:(?:done|through|finished) with(?: {_TAKING})?"
        rf"|{_QUITTING}|never (?:going (?:back )?to (?:{_TAKE} )?|{_TAKING})|(?:moving|turning) away from"
        rf"|getting rid of|(?:sick|tired) of"
        rf"|fed up with|(?:staying|steering) (?:away|clear) (?:from|of)|against(?: {_TAKING})?|off) {{X}}$",
        rf"(?:not|never(?: again)?|no more|won't be|no longer) {_TAKING} {{X}}$", r"never again {X}$",
    )),
    Ruling("I do not want to see it", "I don't want to see Bootstrap", "I don't see the file", _each(
        rf"{_WE}(?: really| certainly| just)* (?:don't|doesn't|do not|does not|never)? ?(?:ever |really"
        rf" )*(?:wants?|wanna|wish|need)"
        r" (?:to )?(?:never )?(?:see|find|read|hear (?:of|about)|have|come across|catch|spot|deal with)"
        r" (?:any )?{X}(?<!\bnot)$",
        rf"{_WE}(?: really)* (?:don't|doesn't|do not|does not|never) (?:ever |really )*(?:want|accept"
        rf"|allow|like|tolerate|support)"
        r" {X}$",
    )),
    Ruling("we will not have it", "we won't use pandas for these reports", "we won't make it today", _each(
        rf"(?:{_WE}|you)(?:'d| would|'ll)?(?: all)? {_ADVERBS}(?:{_NOT}|rather not) (?:ever |really |want"
        rf" to |wanna |be )*"
        rf"(?:{_TAKE}|{_TAKING}) {{X}}$",
        r"(?:nobody|no one|none of us)(?: (?:on|in|at|from) (?:(?:this|the|our|my) )?\w+| here)?"
        r" (?:will (?:ever )?|should "
        r"|may |must |is to |gets to |is going to |is willing to |wants to )?(?:use|touch|add|want|install"
        r"|import|bring|maintain|run|learn|babysit|open|write|make|build)"
        r"(?:e?s)? {X}$",
        rf"(?:won't|will not|never|no longer|not to) (?:be )?(?:{_TAKE}|{_TAKING}) {{X}}$",
        r"(?:we|i)(?:'ll| will|'d)? (?:refuse|reject|veto|oppose|forbid|prohibit|ban) {X}$",
    )),
    Ruling("we do not go there", "we aren't scraping LinkedIn, full stop", "we aren't ready", _each(
        rf"(?:we|i)(?:'re not| are not|'m not| am not| aren't) (?P<idea>{_TALKS}\w+ing [^,;:!?\n]{{2,60}}?)$",
        rf"(?:we|i) (?:don't|do not|won't|will not|will never|never) (?P<idea>{_TALKS}[a-z]+ (?:[A-Z]\w+"
        rf"|[a-z]+s)"
        r"(?: [^,;:!?\n]{2,40})?)$",
    )),
    Ruling("enough of it", "enough of the emojis", "stop the server", _each(
        r"(?:stop|quit|enough|be done|away|down|to hell)(?: it)?(?: already)? (?:with|of) (?:the )?{X}$",
        r"(?:please )?(?:lose|ditch|you can forget|forget(?: about)?|spare (?:me|us)|(?:say )?(?:goodbye"
        r"|farewell|so long|bye(?: bye)?|adieu|rip)(?: to)?,?"
        r"|hands off|stay (?:off|clear of)) (?:the )?{X}$",
        rf"(?:stop|quit) {_PROPOSING} {{X}}$", r"enough {X}(?=$| (?:already|now|for)\b)",
        r"(?:let's |we )?(?:drop|bury|forget|scrap|kill|abandon|shelve|lose|ditch) (?:the|this|that|your"
        r"|any) (?:idea"
        r"|plan|thought"
        r"|notion) (?:of|with"
        r"|about|to) (?:the )?{X}$",
    )),
    Ruling("decided against", "I've decided against MongoDB for good", "I've decided to go", _each(
        rf"{_WE}(?:'ve| have| has)? (?:\w+ ){{0,2}}?(?:(?:decided|agreed|voted|ruled|spoken out|settled)"
        rf" against|ruled out"
        rf"|{_QUIT}|had it with|(?:seen|had) (?:quite )?(?:enough|the last)(?: of)?|said no to|says? no to"
        rf"|vetoed"
        r"|turned down|moved (?:away from|off(?! topic))|got(?:ten)? rid of|rejected"
        rf"|(?:agreed|decided) not to {_TAKE}|wants? nothing to do with) {{X}}$",
    )),
    Ruling("ruled it out", "we voted Oracle down", "we voted for it", _each(
        r"[^,;:!?\n]{2,40}? (?:has |have |had )?(?:voted|turned|shot|struck|knocked) {X} (?:out|down)$",
        rf"(?:{_WE}(?:'ve| have| has)? (?:\w+ )?)?(?:please )?(?:rul(?:e|ed)|vot(?:e|ed)|turn(?:ed)?|shot"
        rf"|shoot|cross(?:ed)?|thr[eo]w|left|leave"
        r"|wr[io]te|str(?:ike|uck)|t[ao]ke?|took|count(?:ed)?) {X} (?:out|down|off|from)(?=$|[ ,.;])(?!"
        r" (?:the (?:stack|heap|queue|file))\b)",
        r"(?:please )?(?:rule out|veto|ban|blacklist|cross off|consider) {X}(?: for this)?(?: ruled out"
        r"| banned| dead| vetoed| out| gone)?$",
        r"(?:the (?:vote|decision|board|council|team) (?:went|decided|was|is) against|thumbs down (?:for"
        r"|on)|it's a no (?:to|for|on)|a no (?:to|for)) {X}$",
        r"(?:it's |that's )?(?:a )?(?:hard |firm )?(?:pass|veto|no|nope) (?:on|to|for) {X}$",
        rf"{_WE}(?:'ve| have| has)? (?:decided|agreed|chose|chosen|voted|resolved) to (?:drop|ditch"
        rf"|abandon|skip|ban|leave(?: out)?|avoid|do without"
        r"|go without|stay (?:away|clear) (?:from|of)|get rid of|retire|bury|scrap|forbid|exclude|phase"
        r" out|kill) {X}$",
        r"(?:please |let's |we )?(?:drop|bury|scrap|kill|abandon|shelve|axe|ban|skip|cancel|retire|bin"
        r"|remove) {X}"
        r" (?:for good|once and for all|forever|for ever"
        r"|permanently|altogether|from (?:our|the|your) (?:vocabulary|plans?|list|mind))\b",
        r"{X} (?:didn't|did not|doesn't|won't) make (?:the cut|it)\b", r"{X} (?:was|were|got|has been|have"
        r" been) (?:voted|turned|shot) down\b",
    )),
    Ruling("someone forbids it", "my editor forbids em dashes", "my editor shows an error", _each(
        r"[^,;:!?\n]{2,40}? (?:has |have |had |just |already |now )*(?:said no to|vetoe[sd]|veto|forbade"
        r"|outlawed|decided against|voted (?:against|down)|put a stop to|struck down"
        r"|wants? nothing to do with|(?:won't|will not) (?:have|hear of|stand for)) {X}$",
        rf"(?:{_WE}|(?:my|our) [\w ]{{2,30}}?) (?:can't|cannot|could not|couldn't) (?:abide|stomach"
        rf"|tolerate|accept) {{X}}$",
        rf"{_WE}(?:'ve| have| has)? (?:long since |all )?(?:stopped|quit|ceased|given up"
        rf"|gave up) {_TAKING} {{X}}$",
        rf"(?:{_WE}|(?:my|our) [\w ]{{2,30}}?) (?:hereby |must |have to |has to )?(?:rules? out|refuses?"
        r"|rejects?|excludes?|forbids?|bans?|outlaws|prohibits?|prohibited|wants? no(?: more)?"
        r"|(?:doesn't|does not|won't|will not) (?:allow|tolerate|permit|accept)) {X}$",
    )),
    Ruling("the last thing", "the last thing we need is another dashboard", "the last thing is done", _each(
        r"(?:the )?(?:(?:last|one|only) thing|what) (?:that )?(?:i|we) (?:don't |do not |never )?(?:want"
        r"|need|accept|like)(?: to (?:see|have|use))?(?: here)?"
        r" (?:is|are) (?:to (?:see|have|use) )?{X}$",
        r"{X} (?:is|are) the last thing (?:i|we) (?:want|need)\b",
    )),
    Ruling("it may not come", "Bootstrap won't come back", "it must not have loaded", _each(
        r"{X} (?:(?:must|may|shall|should|will|can|could) (?:not|never)|mustn't|shouldn't|won't|can't"
        r"|cannot|isn't going to"
        r"|(?:is|are) (?:never|not) going to|never|doesn't|don't|does not|do not|(?:is|are) not to|(?:is"
        r"|are) never to)"
        r" (?:ever |again )*(?:be (?:used|added|allowed|introduced|returning|part|installed|imported|in|on"
        r"|touched)|appear|comes? (?:back|in|into|near)|enters?|show up|go (?:in|live|out|near)"
        r"|goes? into|gets? in(?:to)?|(?:creep|sneak|slip) (?:back )?in(?:to)?|get (?:anywhere|near)"
        r"|happens?|lands?|return"
        r"|make it (?:in|into)|touch(?:es)?|fly)\b",
    )),
    Ruling("so it is out", "Airflow is slow, so it's ruled out", "Airflow is late, so it starts", refers=True,
        patterns=_each(
        r"{X} (?:is|are|was|were|has|have|had|does|do|would|will|could|might|may|can|costs?|needs?|takes?"
        r"|never|only|just|isn't"
        r"|doesn't|won't|can't|got|bit|broke|took|went|gave|made"
        r"|kept|lost|ran|came|brought|\w{2,}(?:s|ed))(?<!ss) .*(?:[,;–—-] ?|\b(?:and|so|but|then|therefore)"
        r" )(?:so |and |please |but |then |therefore"
        rf" |we |i |you |just |really )*{BAN_IT}",
        rf"(?:we|i|you)(?:'ve| have)? (?:already |all )?{_MENTIONS} {{X}}(?=[ ,;–—-]).*\b{BAN_IT}",
        rf"(?:nobody|no one)(?: here)? (?:will|can|wants to|would|is going to|knows how to) \w+ {{X}}(?=["
        rf" ,;–—-])"
        rf".*\b{BAN_IT}",
        r"{X} (?:is|are|was|were|costs?|needs?|takes?) [^;:!?\n]*,? (?:so|and)(?: it's| that's| it is)?"
        r"(?: a)?(?: hard| firm)? no$",
        rf"(?:as for|about|regarding|concerning|when it comes to|speaking of|re)"
        rf" {{X}}\s*[,:–—-]+\s*(?:.*\b{BAN_IT}|{_NO}(?=$|[ ,.!]))",
    )),
    Ruling("do not", "don't ever go back to a service worker", "don't wait", says_so=False, patterns=_each(
        r"(?:please |whatever you do |whatever happens )?(?:do not|don't|never|let's (?:please )?(?:not"
        r"|never)|not)(?: you)?(?: dare)?"
        rf"(?: ever| again)*,? (?:{_TAKE}|{_TAKING}) {{X}}$",
        rf"(?:avoid|refrain from|steer clear of|stay away from|stop|quit)(?: {_TAKING})? {{X}}$",
    )),
)
# fmt: on
