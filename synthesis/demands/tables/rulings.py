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
        pattern: Matched at the beginning of a clause without its lead-ins; a group ``idea…`` is what is ruled
            out.
        says_so: Whether the wording alone makes a candidate. Otherwise it only tells what a rule is against.
    """

    name: str
    takes: str
    leaves: str
    pattern: re.Pattern[str]
    says_so: bool = True


# fmt: off
_X = r"(?P<idea>[^,;:!?\n]{2,70}?)"
_X2, _X3, _X4 = (_X.replace("idea", f"idea{n}") for n in (2, 3, 4))
_BE = r"(?: is| are|'s|'re| am|'m| will be| stays?| remains?)"
_ADVERBS = (r"(?:(?:now|all|just|also|strictly|completely|absolutely|officially|simply|really|hereby|still|so"
    r"|therefore|definitely|firmly|clearly|basically|pretty much|once and for all) )*")
_US = (r"(?: (?:for|to) (?:us|me|this \w+|our \w+|good)|,? (?:full stop|period)|(?= (?:in|on|for) (?:this"
    r"|our|the|here)\b))")
_OUT = (rf"(?:off(?: the table|[- ]limits| the menu)|dead(?: and buried|{_US})|banned|forbidden"
    rf"|prohibited|buried"
    r"|taboo|verboten|outlawed|not an option|out of the question|an? (?:hard |clear |definite )?(?:no-?go"
    r"|no)\b"
    rf"|ruled out|gone for good|blacklisted|a thing of the past|history(?: here\b|{_US}|$)|unwelcome"
    rf"|(?:finished|over|done|through|closed|settled|dropped|rejected|vetoed|scrapped|retired){_US}"
    r"|out(?=,|$| for (?:good|this|us|me|the)\b| in (?:this|the|our)\b| here\b| from now\b| as\b))")
_TAKE = (r"(?:use|do|adopt|add|introduce|touch|have|want(?! to\b)|need(?! to\b)|allow|accept|support"
    r"|install|import|write|create"
    r"|suggest|propose|consider|try|pull in|bring in|put in|bring back|put|go (?:back )?(?:to|with|for|near)"
    r"|come (?:back )?(?:to|with|near)|reach for|rely on|depend on|switch (?:back )?to|move (?:back )?to"
    r"|migrate to|return to|fall back (?:to|on)|resort to|run|build on|deal with|work with|offer|buy|book"
    r"|order"
    r"|send|publish|hand out|sell|keep|pay for|sign up for|subscribe to|plan|print|post|mention|serve)")
_TAKING = (r"(?:using|doing|adopting|adding|introducing|touching|having|allowing|accepting|supporting"
    r"|installing|importing|taking|pulling in|bringing (?:in|back)|going (?:back )?(?:to|with|for|near)"
    r"|relying on|depending on|switching (?:back )?to|moving (?:back )?to|migrating to|returning to"
    r"|building on|dealing with|working with|messing with|keeping|buying|paying for|offering|running"
    r"|wanting)")
_PROPOSING = (r"(?:suggesting|proposing|recommending|offering|bringing up|mentioning|pushing|pitching"
    r"|asking for)")
_WANTED = (r"(?:used|allowed|wanted|welcome|permitted|accepted|acceptable|supported|added|touched|tolerated"
    r"|an option|on the table|happening|coming (?:back|in)|ok(?:ay)?|going (?:in|into|to happen|to fly)"
    r"|for us"
    r"|how we do things|part of (?:this|our|the)|needed here|up for (?:discussion|debate))\b")
_NOT = (r"(?:don't|do not|won't|will not|never|no longer|shan't|can't|cannot|refuse to|will never"
    r"|shall not|decline to)")
_NO = (r"(?:no|nope|never|nah|no way|no thanks?(?: you)?|hell no|absolutely not|definitely not|not here"
    r"|not in here|not with me|over my dead body|nein|non|nee|nej)")
_NO_NOUN = (r"(?!(?:problems?|need|worries|idea|way|thanks?|longer|matter|changes?|errors?|luck|doubt"
    r"|rush|hurry"
    r"|reason|point|one|questions?|big|issues?|it|that|i|we|you|the|this|wait|difference|progress|effect"
    r"|more|such"
    r"|other|further|harm|good|not|don't|just|actually)\b)")
_END = (r"(?=$|,|\.|;| [–—-] | (?:in|on|here|from|any|at all|please|for|inside|within|under|ever|of any"
    r"|with)\b)")

RULINGS: tuple[Ruling, ...] = (
    Ruling("it is out", "Jenkins is dead to us", "the build is out of date",
        compiled(rf"^{_X}{_BE} {_ADVERBS}{_OUT}|^{_X2}(?: has| have|'s|'ve) been {_ADVERBS}{_OUT}"
        rf"|^{_X3} (?:must|has to|have to|should|shall|needs? to|will|can|goes|gets?) "
        r"(?:(?:be|stay|go|remain|get) )?(?:out of|away from|banned|forbidden|thrown out)\b")),
    Ruling("so it is out", "Airflow costs too much time, so it's ruled out", "Airflow failed, so it's late",
        compiled(r"^(?P<idea>[^\s,;:!?]+(?: [^\s,;:!?]+){0,2}?) (?:is|are|was|has|have|had|does|do|costs?"
            r"|needs?|takes?|eats?"
        rf"|means?|wants?|brings?|breaks?|never|only|just|isn't|doesn't|won't|can't)\b.*\b(?:it|they"
        rf"|that){_BE} {_ADVERBS}{_OUT}")),
    Ruling("it is not wanted", "cron jobs are not welcome in here", "the test is not green",
        compiled(rf"^{_X}{_BE} not {_ADVERBS}(?:going to be |to be |being |getting |be )?{_WANTED}"
        rf"|^{_X2} (?:isn't|aren't|ain't|won't be) {_ADVERBS}(?:going to be |to be |being "
        rf"|getting )?{_WANTED}")),
    Ruling("it stays out", "lombok stays out of this codebase", "the log stays in its folder",
        compiled(rf"^{_X} (?:(?:must|has to|have to|should|shall|will|can|needs? to) )?(?:stays?|remains?"
            rf"|keeps?|goes|go)"
        r" (?:well |far )?(?:out(?! of date)|away(?= from)|off(?= the| limits)|banned|forbidden)\b"
        rf"|^(?:keep|leave) {_X2} (?:out of|away from|off|out)\b")),
    Ruling("no place", "jQuery has no place in the frontend", "the table has no rows",
        compiled(rf"^{_X} (?:has|have|had|got|has got|have got|will have) no (?:place|business|room"
            rf"|future|home)\b"
        rf"|^there(?:'s| is| will be|'ll be) no (?:place|room|need) for {_X2}{_END}"
        rf"|^{_X3} (?:does not|doesn't|do not|don't) belong\b")),
    Ruling("it: no", "Selenium: no", "status: no errors",
        compiled(rf"^(?P<idea>(?:[^\s,;:!?]+ ){{0,3}}[^\s,;:!?]+)(?:\s*[:–—?]|\s+-+|,)\s*{_NO}"
        r"(?=\s*[.,;!–—]|$| (?:here|ever|again|thanks|thank you)\b)")),
    Ruling("no more of it", "no more cron jobs in here", "no problem with that",
        compiled(rf"^no (?:more )?(?P<idea>{_NO_NOUN}[^,;:!?\n]{{2,60}}?){_END}"
        rf"|^(?:there(?:'ll| will)? (?:be|is|are)|there's|i see|we have|we've got"
        rf"|we'll have) no (?:more )?(?P<idea2>{_NO_NOUN}[^,;:!?\n]{{2,60}}?)"
        r" (?:any ?more|any longer|from now on|in (?:this|our)\b|here\b|again\b|ever\b)"
        r"|^there (?:won't|will not|shall not) be (?:any|another"
        r"|a) (?:more )?(?P<idea3>[^,;:!?\n]{2,60}?)(?=$| in\b| here| again| any)"
        r"|^(?:keine?(?:n|r|m)?|kein|pas de|plus de|nada de|no más|niente|geen|inga?"
        r"|basta) (?P<idea4>[^,;:!?\n]{2,40}?)"
        r"(?=$|,|\.| (?:mehr|hier|ici|aqui|aquí|qui|più|meer|in|im|dans|en|per|für|pour|para)\b)")),
    Ruling("we are not doing it", "we're not doing Tailwind", "we're not sure",
        compiled(rf"^(?:we|i)(?:'re| are|'m| am| aren't) {_ADVERBS}(?:(?:not )?(?:going to {_TAKE}"
            rf"|{_TAKING})(?<!not)"
        rf"|(?:done|through|finished) with(?: {_TAKING})?|never (?:going (?:back )?to (?:{_TAKE} )?"
        rf"|{_TAKING})"
        rf"|moving away from|getting rid of|(?:sick|tired) of|fed up with|(?:staying|steering) (?:away"
        rf"|clear) (?:from|of)) {_X}$")),
    Ruling("I do not want to see it", "I don't want to see Bootstrap", "I don't see the file",
        compiled(r"^(?:i|we)(?: really| certainly| just)* (?:don't|do not|never) (?:ever "
            r"|really )*(?:want|wanna|wish|need)"
        rf" (?:to )?(?:see|find|read|hear (?:of|about)|have|come across|catch|spot|deal with) {_X}$"
        r"|^(?:i|we)(?: really)* (?:don't|do not|never) (?:ever |really )*want (?P<idea2>(?:any|another"
        r"|more|a single)"
        r" [^,;:!?\n]{2,60})$")),
    Ruling("we will not have it", "we won't use pandas for these reports", "we won't make it today",
        compiled(rf"^(?:we|i|you|nobody|no one)(?:'d| would)?(?: all)? {_ADVERBS}(?:{_NOT}"
            rf"|rather not) (?:ever |really |want to |wanna |be )*"
        rf"(?:{_TAKE}|{_TAKING}) {_X}$|^(?:nobody|no one|none of us) (?:will |should |may |must )?"
        rf"(?:use|touch|add|want|install|import|bring)(?:e?s)? {_X2}$")),
    Ruling("we do not go there", "we aren't scraping LinkedIn, full stop", "we aren't ready",
        compiled(r"^(?:we|i)(?:'re not| are not|'m not| am not| aren't) (?P<idea>(?!(?:going|doing|using"
            r"|sure|trying|looking|getting"
        r"|being|having|seeing|thinking|sending|working|asking|saying|talking)\b)\w+ing [^,;:!?\n]{2,60}?)$"
        r"|^(?:we|i) (?:don't|do not|won't|will not|will never|never) (?P<idea2>(?!(?:see|know|think|get"
        r"|understand|remember|believe"
        r"|like|mind|care|agree|find|feel|go|let|make|want|need|have|say|mean|be)\b)[a-z]+ (?:[A-Z]\w+"
        r"|[a-z]+s)(?: [^,;:!?\n]{2,40})?)$")),
    Ruling("enough of it", "enough of the emojis", "stop the server",
        compiled(rf"^(?:stop|quit|enough|be done|away|down|to hell)(?: already)? (?:with|of) (?:the )?{_X}$"
            rf"|^(?:please )?"
        rf"(?:lose|ditch|forget(?: about)?|spare (?:me|us)|goodbye,?|farewell,?|bye bye,?|rip) {_X2}$"
        rf"|^(?:stop|quit) {_PROPOSING} {_X3}$|^(?:drop|bury|forget|scrap|kill|abandon|shelve) (?:the"
        rf"|this|that|your|any) (?:idea|plan|thought"
        rf"|notion) (?:of|with|about|to) {_X4}$")),
    Ruling("decided against", "I've decided against MongoDB for good", "I've decided to go",
        compiled(r"^(?:we|i|the (?:team|board|council|company|client|boss|customer|school|church"
            r"|committee|parents)|legal|ops|security"
        r"|management|marketing|my \w+|our \w+)(?:'ve| have| has)? (?:\w+ ){0,2}?"
        r"(?:(?:decided|agreed|voted|ruled|spoken out|settled) against|ruled out|sworn off|swore off"
        r"|given up on|gave up on"
        rf"|had it with|had enough of|said no to|vetoed|banned|buried|turned down|moved away from"
        rf"|parted with|(?:agreed|decided) not to {_TAKE}"
        rf"|(?:says?|said) no to|(?:want|wants) nothing to do with) {_X}$")),
    Ruling("it may not come", "Bootstrap won't come back", "it must not have loaded",
        compiled(rf"^{_X} (?:(?:must|may|shall|should|will|can|could) (?:not|never)|mustn't|shouldn't"
            rf"|won't|can't|cannot|isn't going to"
        r"|is never going to|is not going to|never) (?:ever )?(?:be (?:used|added|allowed|introduced|part"
        r"|installed|imported|in|on)|appear"
        r"|comes? (?:back|in|near)|enters?|show up|go in(?:to)?|get in(?:to)?|happens?|lands?|return"
        r"|make it in|touch(?:es)?)\b")),
    Ruling("do not", "don't ever go back to a service worker", "don't wait", says_so=False,
        pattern=compiled(r"^(?:please )?(?:do not|don't|never|let's (?:please )?not|not)(?: you)?"
        rf"(?: ever| again)*,? (?:{_TAKE}|{_TAKING}) {_X}$|^(?:avoid|refrain from|hands off|steer clear of"
        rf"|stay away from|stop|quit)(?: {_TAKING})? {_X2}$")),
)
# fmt: on
