"""Reads the words of a rule: its clauses, whether they forbid or demand, where they apply, and exceptions."""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.compiling.tables import FILE_KINDS, LANGUAGES, TEST_FILES
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.items import Scope

_CLAUSES = compiled(
    r"(?<=[^\s.])[.!?]+\s+(?=(?-i:[^a-z])|[`\"'])|\s*[;!?]+\s+|\s+[-–—]{1,2}\s+|,?\s+(?:but(?! (?:me|us|i"
    r"|humans?|people)\b)|because|since"
    r"|otherwise"
    r"|so that|unless)\s+|,\s+(?=(?:we|i|it|they|you) )|\s*[.!?]+$"
)
"""Ends of clauses. A comma ends one before a pronoun: the rest is a reason."""

_BAN = compiled(
    r"\b(?:never|no|not|none|nothing|don'?t|mustn'?t|shouldn'?t|can'?t|cannot|won'?t|isn'?t|aren'?t|avoid"
    r"|stop|quit|forbid\w*|banned|prohibited|off[ -]limits|refrain|without|hands off|stay out|stay away"
    r"|keep out|leave|frozen|read[- ]only|untouched|taboo|no-go|ditch|closed|disallowed|verboten|steer"
    r" clear)\b"
)
_DEMAND = compiled(
    r"\b(?:always|must|should|shall|has to|have to|ha(?:s|ve) got to|needs?|required?|requires|every|each|all"
    r"|any|only|make sure|ensure|use|keep|begins?|starts?|ends?|pin(?:ned)?|stick|go(?:es)? in|be|add|put|run"
    r"|maximum|max|limit|under|at most|carr(?:y|ies)|run|name|prefer)\b"
)
_EXCEPTION = compiled(
    r"\b(?:unless|(?<!bare )(?<!naked )(?<![`\"'])except(?:ion|ions|ing)?|excluding|other than|apart from"
    r"|aside from|as long as"
    r"|(?:without|unless) (?:asking|my|me|permission|approval|telling|checking|an? )"
    r"|ask(?:ing)? (?:me )?(?:first|before)|(?:is|are) (?:\w+ )?(?:fine|ok(?:ay)?|allowed)\b(?! only)"
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

_PATH = compiled(
    r"(?<![\w@/:.])(?P<quote>[\"`'])(?P<quoted>[^\"`'\n]{0,60}[/.][^\"`'\n\s/][^\"`'\n]{0,60}"
    r"|[^\"`'\n]{2,60}/"
    r")(?P=quote)|(?<![\w@/:.<-])(?P<bare>\.?(?:[\w.@*-]{1,60}/){1,12}[\w.@*-]*[\w*-]|\.?"
    r"(?:[\w.@*-]{1,60}/){1,12}"
    r"|\*?\.[a-z][a-z0-9]{0,7}(?=\s+files?\b)|\*\.[a-z][a-z0-9.]{0,9}|\.env\b(?:\.\w+)?|[\w-]+"
    r"(?:\.[\w-]+)*\.(?:py|tsx?|jsx?|md|go|rs|java"
    r"|toml|ya?ml|json|sql|html|s?css|txt|sh|rb|lock|mod|sum|xml|csv|xlsx|docx|ini|cfg|proto|graphql|php|cs"
    r"|kt|tf|c|h|cpp|tex|bib|gradle|env|pdf|log|rst|ipynb|prisma|config|properties|bak)\b"
    r"|(?:Make|Docker|Jenkins|Pip|Gem|Proc|Vagrant|Rake)file\b|CODEOWNERS\b|LICENSE\b|CHANGELOG\b|README\b)"
    r"|(?:(?:in|inside|under|within|of|to|from|touch|edit|modify|change|below|into|alone|outside) )?(?:the"
    r" |our |my )?"
    r"[`\"']?(?P<folder>(?!(?:the|an?|any|my|our|your|this|that|these|those|same|other|current|whole|root"
    r"|working"
    r"|new|entire|output|source|project|target|each|every|test|no)\b)\.?[\w-]{2,40})[`\"']? (?:folder"
    r"|directory"
    r"|dir)\b"
)
_NO_PATH = compiled(
    r"(?:(?:console|logger|math|np)\.log|and/or|he/she|s/he|his/her|read/write|yes/no|client/server|on/off"
    r"|tcp/ip|ci/cd|i/o|n/a|w/o|24/7"
    r"|\d+/\d+"
    r"|e\.g|i\.e|etc\..*|[\w-]+\.js(?<!config\.js))$"
)
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
    particular case circumstances me us future now commands command chat anything everything tree module
    modules script scripts python function functions class classes package firmware reason reasons
    """
)
"""Words of a place that limit nothing."""


class Clause(msgspec.Struct, frozen=True, kw_only=True):
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


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as read.

    Attributes:
        words: All of its words, without an exception for tests.
        clauses: Its clauses in order.
        globs: Where it applies; empty for everywhere.
        exceptions: Where it does not.
        languages: Names of programming languages in ast-grep that it names.
        conditional: Whether it has an exception that these checks cannot see.
        unplaced: Whether it is limited to a place that is not known ("in the API layer").
        modality: ``must`` or ``must_not``.
    """

    words: str
    clauses: tuple[Clause, ...]
    globs: tuple[str, ...]
    exceptions: tuple[str, ...]
    languages: tuple[str, ...]
    unplaced: bool
    conditional: bool
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


def read_rule(text: str, modality: str, scope: Scope) -> Reading:
    """Return a rule as read from its words.

    >>> read_rule("No eval() in src/, except in tests.", "must_not", Scope()).globs
    ('src/**',)
    """
    whole = " ".join(text.replace("’", "'").replace("“", '"').replace("”", '"').split())
    words = _TESTS.sub(" ", whole)
    exceptions = TEST_FILES if words != whole else ()
    rest = _PASSED.sub(" ", words).strip()
    words = rest if len(rest) < len(words) and rest else words
    clauses = tuple(_clauses(words))
    elsewhere = [one for one in clauses if _ELSEWHERE.search(one.words)]
    outside = tuple(glob for one in elsewhere for glob in one.globs)
    globs = tuple(dict.fromkeys(glob for one in clauses if one not in elsewhere for glob in one.globs))
    if scope.paths and not globs:
        globs = () if outside else scope.paths
    return Reading(
        words=words,
        clauses=clauses,
        globs=globs,
        exceptions=tuple(dict.fromkeys((*exceptions, *outside))),
        languages=languages_in(words),
        unplaced=not globs and any(map(_is_unknown, _PLACE.finditer(words))),
        conditional=bool(_EXCEPTION.search(words)) or bool(scope.topic),
        modality=modality,
    )


def _is_unknown(place: re.Match[str]) -> bool:
    words = place["place"].lower().split()
    return not (_EVERYWHERE.intersection(words) or languages_in(place.group()) or place["of"])


def _clauses(words: str) -> Iterator[Clause]:
    for part in _CLAUSES.split(words):
        if part and (bare := part.strip(" .,:")):
            yield Clause(
                words=bare,
                bans=bool(_BAN.search(bare)),
                demands=bool(_DEMAND.search(bare)),
                globs=globs_in(bare),
            )


def globs_in(words: str) -> tuple[str, ...]:
    """Return the globs of the files that words name; of a kind of file in a folder, only those in it."""
    named = tuple(dict.fromkeys(_named_paths(words)))
    kinds = tuple(
        glob
        for kind, globs in FILE_KINDS.items()
        if re.search(rf"\b(?:{kind})\b(?! (?:folder|directory|dir)\b)", words, re.IGNORECASE)
        for glob in globs
    )
    folders = [glob for glob in named if glob.endswith("/**")]
    if folders and kinds and all(kind.startswith("**/*.") for kind in kinds):
        inside = tuple(folder.removesuffix("**") + kind for folder in folders for kind in kinds)
        return (*inside, *(glob for glob in named if glob not in folders))
    return tuple(dict.fromkeys((*named, *kinds)))


def _named_paths(words: str) -> Iterator[str]:
    for match in _PATH.finditer(words):
        name = (match["quoted"] or match["bare"] or "").strip()
        if match["folder"]:
            yield from (f"{match['folder']}/**", f"**/{match['folder']}/**")
        elif name and not _NO_PATH.match(name) and "://" not in name and (match["bare"] or is_path(name)):
            yield from globs_of(name)


def is_path(name: str) -> bool:
    """Return whether a quoted text is a path rather than code or a phrase."""
    return bool(
        re.fullmatch(r"\.?[\w@*][\w .@*/()-]*/[\w .@*/()-]*|\.?[\w*-]+(\.[\w*-]+)+", name)
    ) and not re.search(
        r"\(|\.\.\.|^\d|\.(?!\w{1,10}$)(?=\w+\.)|^(?:console|fmt|System|np|os|logging)\.", name
    )


def globs_of(name: str) -> tuple[str, ...]:
    """Return the globs of a path as users write it: a folder includes everything below it."""
    name = name.removeprefix("./").rstrip(".,")
    if name.startswith("."):
        plain = (
            name
            if name.startswith((".env", ".git", ".npm", ".editor", ".docker")) or "/" in name
            else f"*{name}"
        )
        return (f"{plain}**",) if plain.endswith("/") else (plain, f"**/{plain}")
    if "/" not in name:
        return (f"**/*{name}" if name.startswith(("_", "-")) else f"**/{name}",)
    last = name.rpartition("/")[2]
    if not last:
        return (f"{name}**",)
    return (name,) if "." in last.lstrip(".") or "*" in last else (f"{name}/**",)


def languages_in(words: str) -> tuple[str, ...]:
    """Return the ast-grep names of the programming languages that words name."""
    found: dict[str, None] = {}
    for name, languages in LANGUAGES.items():
        if re.search(rf"(?<![\w.]){name}(?![\w+#])", words, 0 if name == "Go" else re.IGNORECASE):
            found |= dict.fromkeys(languages)
    return tuple(found)
