"""Reads the words of a rule: its clauses, whether they forbid or demand, where they apply, and exceptions."""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.compiling.reading.places import globs_in, languages_in, named_paths
from agentx.synthesis.compiling.reading.tables import TEST_FILES
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.items import Scope

_CLAUSES = compiled(
    r"(?<=[^\s.])[.!?]+\s+(?=(?-i:[^a-z])|[`\"'])|\s*[;!?]+\s+|\s+[-–—]{1,2}\s+"
    r"|,\s+(?:and |but )?(?=(?:never|not) (?:in|into|under|to)\b)"
    r"|,?\s+(?:(?<!nobody )(?<!no one )(?<!nothing )but(?! (?:me|us|i"
    r"|humans?|people)\b)|because|since"
    r"|otherwise"
    r"|so that|unless)\s+|,\s+(?=(?:we|i|it|they|you|(?:put|use|write|move|place|keep|edit|ask|add"
    r"|make) (?:it|them|those|that|your|new|an?|the|me)) )|\s*[.!?]+$"
)
"""Ends of clauses. A comma ends one before a pronoun: the rest is a reason."""

_BAN = compiled(
    r"\b(?:never|no|not|none|nothing|don'?t|mustn'?t|shouldn'?t|can'?t|cannot|won'?t|isn'?t|aren'?t|avoid"
    r"|stop|quit|forbid\w*|banned|prohibited|off[ -]limits|refrain|without|hands off|stay out|stay away"
    r"|keep out|leave|frozen|read[- ]only|untouched|taboo|no-go|skip|omit|ditch|closed|disallowed"
    r"|verboten|steer"
    r" clear)\b"
)
_DEMAND = compiled(
    r"\b(?:always|must|should|shall|has to|have to|ha(?:s|ve) got to|needs?|required?|requires|every|each|all"
    r"|any|only|make sure|ensure|use|keep|begins?|starts?|ends?|pin(?:ned)?|stick|go(?:es)? in|be|add|put|run"
    r"|maximum|max|limit|under|at most|carr(?:y|ies)|run|name|prefer)\b"
)
_APPROVAL = compiled(
    r"\b(?:unless|until|without|except (?:when|if)|only (?:if|when|after|with)"
    r"|not before)\b[^.;]{0,30}?\b(?:ask\w*"
    r"|say\w*|said|tell\w*|told|approv\w+|permission|ok(?:ay\w*)?|go-ahead|my|me|sign(?:ed|s)? off"
    r"|agree\w*|confirm\w*"
    r"|check\w* with|talk\w* to|clear\w* (?:it )?with)\b|\bask(?:ing)? (?:me|us|him|her|(?-i:[A-Z])\w+)?,? ?"
    r"(?:first|before)\b|\b(?:check|talk|clear it) with (?:me|us|(?-i:[A-Z])\w+) (?:first|before)"
)
"""The user may have allowed what the rule forbids."""

_SPARED = compiled(
    r"[,(]?\s*\b(?:except(?:ing)?(?: for)?|apart from|other than|aside from|besides|excluding"
    r"|with the exception of"
    r"|save for|but not) (?P<what>(?:[^,;.()]|\.(?=\w)|,(?= (?:and|or) ))+)"
)
"""Files that a rule is not about."""

_AND = compiled(r"\s*(?:,|and|or|&|,? and|,? or)\s*(?:the |in |under )*")

_EXCEPTION = compiled(
    r"\b(?:unless|(?<!bare )(?<!naked )(?<![`\"'])except(?:ion|ions|ing)?|excluding|other than|apart from"
    r"|aside from|as long as"
    r"|(?:is|are) (?!not |never |no )(?:\w+ )?(?:fine|ok(?:ay)?|allowed)\b(?! only| in [`\"']?[\w.-]*[/.]\w*)"
    r"|only (?:when|if)|if (?:i|we|the|there|it|possible|you can)\b|too (?:many|often)|more than (?:needed"
    r"|necessary)|where (?:possible|sensible)|when (?:possible|needed|necessary|in doubt)|by default"
    r"|ideally|preferably|try to|think|consider|weigh)\b"
)
_TESTS = compiled(
    r"[,(;]?\s*\b(?:(?:except|apart from|other than|unless|outside|excluding|but not|aside from)(?: for| in"
    r"| code)*(?: under| in)?\s+(?:the |a |our |it's )*(?:unit |in )?(?:`?#\[cfg\(test\)\]`?|test(?:s|ing)?\b"
    r"(?: (?:files?|code|folder|suite)\b)?/?)|(?:in )?tests? (?:can|may|are|is|code)[^.,;]{0,40}(?:like|fine"
    r"|ok(?:ay)?|exempt|allowed|want|please)\b)\)?"
)
"""An exception for tests: which files these are is known."""

_ELSEWHERE = compiled(r"\boutside(?: of)?\b|\banywhere but\b|\bother than in\b")


_PASSED = compiled(
    r"(?<![^.!?;])\s*(?:(?:if|when(?:ever)?)\b(?! you(?:'re| are)? (?:finish|done|answer|repl"
    r"|writ))[^.;]*?|\w+ing\b(?:(?! in | for | when )[^.;])*? (?:is|are)"
    r" (?:\w+ )?(?:fine|ok(?:ay)?|allowed))(?:[.!]\s+|[.!]?$)"
)
"""Sentences that say no rule by themselves: a case, or a permission of something else."""


_PLACE = compiled(
    r"\b(?:in|inside|within|under)\s+(?:(?:the|our|your|my|any|all|every|these|those|a|an|new)\s+)*"
    r"(?P<place>[a-z][\w-]*(?: [a-z][\w-]*){0,2})(?P<of>(?: of)? [`\"'])?"
)
_EVERYWHERE = vocabulary(
    """
    file files code codebase repo repository project projects monorepo workspace answer answers reply
    replies response responses app application place form forms way favour favor this here source sources
    production production-ready committed general summary summaries text texts writing document documents
    particular case circumstances me us future now there commands command chat anything everything tree module
    modules script scripts python function functions class classes package firmware reason reasons
    """
)
"""Words of a place that limit nothing."""


class RuleClause(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a rule.

    Attributes:
        words: The user's words.
        bans: Whether it forbids something.
        demands: Whether it demands something.
        globs: The files that it names.
    """

    words: str
    bans: bool
    demands: bool
    globs: tuple[str, ...]


class RuleReading(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as read.

    Attributes:
        words: Its words, without exceptions and without sentences that say no rule by themselves.
        cases: Its words with these sentences.
        clauses: Its clauses in order.
        globs: Where it applies; empty for everywhere.
        exceptions: Where it does not.
        languages: Names of programming languages in ast-grep that it names.
        conditional: Whether it has an exception that these checks cannot see.
        approvable: Whether the user may allow what it forbids.
        unplaced: Whether it is limited to a place that is not known ("in the API layer").
        modality: ``must`` or ``must_not``.
    """

    words: str
    cases: str
    clauses: tuple[RuleClause, ...]
    globs: tuple[str, ...]
    exceptions: tuple[str, ...]
    languages: tuple[str, ...]
    unplaced: bool
    conditional: bool
    approvable: bool
    modality: str


_POINTS_BACK = compiled(r"\b(?:it|them|those|these|there|that (?:folder|directory|file))\b")
_EXPLAINS = compiled(r"^(?:i mean|that means|meaning|namely|that is|by that|i\.e\.|specifically)\b")
_SENTENCE_END = compiled(r"(?<=[^\s.][.!?])\s+(?=(?-i:[A-Z]))")


def in_context(message: str, span: Span) -> str:
    """Return a rule with the sentence that its pronouns mean, or that explains it; empty if there is none.

    Args:
        message: The message.
        span: The rule's position in it.
    """
    words = message[span.start : span.end]
    before = _SENTENCE_END.split(message[: span.start].strip())[-1]
    after = _SENTENCE_END.split(message[span.end :].lstrip(" .!?"))[0]
    if _EXPLAINS.match(after):
        return f"{words.rstrip('.')}. {after}"
    return f"{before} {words}" if before and _POINTS_BACK.search(words) else ""


def read_rule(text: str, modality: str, scope: Scope) -> RuleReading:
    """Return a rule as read from its words.

    >>> read_rule("No eval() in src/, except in tests.", "must_not", Scope()).globs
    ('src/**',)
    """
    whole = " ".join(text.replace("’", "'").replace("“", '"').replace("”", '"').split())
    words = _TESTS.sub(" ", whole)
    exceptions = TEST_FILES if words != whole else ()
    cases, rest = words, _PASSED.sub(_unless_it_rules, words).strip()
    words = rest if len(rest) < len(words) and rest else words
    spared: tuple[str, ...] = ()
    for match in _SPARED.finditer(words):
        what, end = match["what"], 0
        for start, stop, globs in named_paths(what):
            if end and not _AND.fullmatch(what[end:start]):
                break
            spared, end = (*spared, *globs), stop
        if end:
            words = words.replace(match.group().replace(what, what[:end]), " ")
    clauses = tuple(clauses_of(words))
    elsewhere = [one for one in clauses if _ELSEWHERE.search(one.words)]
    outside = tuple(glob for one in elsewhere for glob in one.globs)
    globs = tuple(dict.fromkeys(glob for one in clauses if one not in elsewhere for glob in one.globs))
    if scope.paths and not globs:
        globs = () if outside else scope.paths
    return RuleReading(
        words=words,
        cases=cases,
        clauses=clauses,
        globs=globs,
        exceptions=tuple(dict.fromkeys((*exceptions, *spared, *outside))),
        languages=languages_in(words),
        unplaced=not globs and any(map(_is_unknown, _PLACE.finditer(words))),
        conditional=bool(_EXCEPTION.search(_APPROVAL.sub(" ", words))) or bool(scope.topic),
        approvable=bool(_APPROVAL.search(words)),
        modality=modality,
    )


_NAMES = re.compile(r"(?<!\w)[`\"']\w|\w/|\.\w")


def _unless_it_rules(match: re.Match[str]) -> str:
    """Return a sentence that begins with a case, if what follows the case forbids something."""
    _, _, rest = match.group().partition(",")
    return match.group() if _BAN.search(rest) and _NAMES.search(rest) else " "


def _is_unknown(place: re.Match[str]) -> bool:
    words = place["place"].lower().split()
    return not (_EVERYWHERE.intersection(words) or languages_in(place.group()) or place["of"])


def clauses_of(words: str) -> Iterator[RuleClause]:
    """Yield the clauses of words in order."""
    for part in _CLAUSES.split(words):
        if part and (bare := part.strip(" .,:")):
            yield RuleClause(
                words=bare,
                bans=bool(_BAN.search(bare)),
                demands=bool(_DEMAND.search(bare)),
                globs=globs_in(bare),
            )
