"""Where a rule applies: the files that it names, those that it lets out, and places known only by name."""

import re
from functools import lru_cache

import msgspec

from agentx.synthesis.compiling.reading.places import globs_in
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import sentences_of
from agentx.synthesis.compiling.reading.tables import TEST_FILES
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES, language_of
from agentx.synthesis.language.words import vocabulary

_PERMITS = compiled(
    r"\b(?:can do|(?:is|are|'s) (?:\w+ )?(?:fine|ok(?:ay)?|allowed|exempt|excluded|excepted"
    r"|another (?:matter|story)"
    r"|different|free|ignored|not affected|left alone)|may\b(?! not| never)|\b(?:you|they) can\b(?! not"
    r"| only)|can (?:stay|keep|use|have|go"
    r"|do|be)|don'?t"
    r" (?:count|matter|apply)|do(?:es)? what(?:ever)? |where it (?:is|'s) fine|welcome|don'?t care"
    r"|knock yourself out"
    r"|as (?:they|it|you) likes?)\b"
)
_LETS_OUT = compiled(
    r"\b(?:except|apart from|aside from|other than|outside|excluding|but not|not counting|unless"
    r"|save for)\b[^.;]*$"
)
_OPEN = compiled(
    r"\bunless\b|\b(?:without|before) (?:asking|my|permission|approval|telling|checking)"
    r"|\bask(?:ing)? (?:me )?(?:first"
    r"|before)|\bif (?:possible|you can|necessary|needed|you must|at all possible)\b"
    r"|\bwhere(?:ver)? (?:possible|sensible)"
    r"|\bwhen(?:ever)? (?:possible|needed|necessary|in doubt|it makes sense)|\bby default\b|\bideally\b"
    r"|\bpreferably\b"
    r"|\btry to\b|\bconsider\b|\bthink (?:about|twice|hard|before)\b|\btoo (?:many|often|much)\b"
    r"|\bmore than (?:needed|necessary)\b"
    r"|\bonly (?:when|if|where)\b|\b(?:without|absent) (?:an? )?(?:good )?reasons?\b"
)
"""Exceptions and wishes that no check can see."""

_DENIES = compiled(r"\b(?:no|never|not|nothing|nobody|none|neither)\b")
_ARTICLE = compiled(r"\b(?:an?|any|every|each|all|the|our) $")
_SUFFIX = re.compile(r"(?<![\w./*`-])`?\*?(\.[a-z][a-z0-9]{0,5})`?(?![\w(.-])")
_PROSE = (
    ".md .rst .tex .txt .csv .sql .scss .sass .less .vue .svelte .dart .proto .xml .toml .ini .ipynb .gd .svg"
)
_KNOWN_SUFFIXES = LANGUAGES.keys() | frozenset(_PROSE.split())

_ELSEWHERE = compiled(
    r"\b(?:else(?:where)?|(?:go(?:es)?|runs?|calls?) through|(?:lives?|belongs?|stays?) in"
    r"|the only (?:place|file|module|one))\b"
)
"""One place has what the others may not have."""

_TESTS = compiled(r"\b(?:unit |integration )?(?:tests?|specs?|test (?:code|files?|suites?))\b")
_PLACE = compiled(
    r"\b(?:in|inside|within|under|across)\s+(?P<lead>(?:(?:the|our|your|my|any|all|every|each"
    r"|these|those|a|an|this"
    r"|that|new|of)\s+)*)(?P<place>[a-z][\w-]*(?: (?!(?:is|are|must|should|may|can|has|have|gets?|needs?"
    r"|and|or|to|at"
    r"|with|please|the|we|it|i|you|they|that|which|as|for|so|instead|use|any|ever|again|either|directly)\b)"
    r"[a-z][\w-]*){0,2})"
)
_WHOLE = vocabulary(
    """
    file files code codebase repo repository project projects monorepo workspace answer answers reply
    replies response responses app apps application place form forms way favour favor this here source
    sources production committed general summary summaries text texts writing document documents case
    circumstances me us future now commands command chat anything everything tree module modules script
    scripts function functions class classes package firmware reason reasons solution product team house
    company board game site website backend frontend stuff work system platform engine service library
    program style past mind doubt order time times life need question course fact short line lines look
    long first once all it them that which there every each day days week month year years minute
    minutes english german french words word sentence sentences name names method methods component
    components variable variables call calls query queries commit commits test tests message messages
    money
    """
)
_GENERIC = vocabulary(
    """
    crate crates gem lib libs library package packages plugin service app
    layer layers folder folders directory directories code module modules files file package area side
    dir texts text
    """
)


UNCERTAIN_PLACE = "whether these are the files that the rule means"


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule applies.

    Attributes:
        paths: Globs; empty for everywhere.
        exceptions: Globs of files that it is not about.
        languages: Languages that the rule or its paths name; empty for any.
        doubt: Why the place is uncertain; empty if it is not.
        open: Whether there is an exception that these checks cannot see.
        prose: Whether it names files, and none of them can have code.
    """

    paths: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    doubt: str = ""
    open: bool = False
    prose: bool = False


@lru_cache(maxsize=64)
def where_of(reading: RuleReading) -> Where:
    """Return where a rule applies.

    >>> from agentx.synthesis.compiling.reading.rule import read_rule
    >>> from agentx.synthesis.memory.items import Scope
    >>> where_of(read_rule("No print() in src/. What runs in tools/ can do it.", "must", Scope())).exceptions
    ('tools/**',)
    """
    words, paths, exceptions = reading.words, dict[str, None](), dict.fromkeys(reading.exceptions)
    open_ = reading.conditional and bool(_OPEN.search(words))
    for start, end in sentences_of(words):
        sentence = words[start:end]
        for part in re.split(
            r"[;:]|\s[-–—]+\s|,\s+(?=but|what|and|tests?\b|except|apart|though|while)", sentence
        ):
            let_out = _LETS_OUT.search(part)
            before = part[: let_out.start()] if let_out else part
            permits = _PERMITS.search(part)
            if permits and _DENIES.search(part[: permits.start()]):
                permits = None
            if _TESTS.search(let_out.group() if let_out else part if permits else ""):
                exceptions |= dict.fromkeys(TEST_FILES)
            elif let_out and not globs_in(let_out.group()):
                open_ |= reading.conditional and "outside" not in let_out.group().lower()
            exceptions |= dict.fromkeys(globs_in(let_out.group())) if let_out else {}
            (exceptions if permits else paths).update(dict.fromkeys(globs_in(before)))
    if suffixes := [
        one[1]
        for one in _SUFFIX.finditer(words)
        if one[1] in _KNOWN_SUFFIXES or _ARTICLE.search(words[: one.start()])
    ]:
        folders = [glob.removesuffix("**") for glob in paths if glob.endswith("/**")] or ["**/"]
        rest = [glob for glob in paths if not glob.endswith("/**")]
        paths = dict.fromkeys(
            [
                *rest,
                *(f"{folder}**/*{one}".replace("**/**/", "**/") for folder in folders for one in suffixes),
            ]
        )
    if _ELSEWHERE.search(words) and any(glob.endswith("/**") for glob in paths):
        exceptions |= {glob: None for glob in paths if re.search(r"/[\w-]+(?:\.\w+)+$", glob)}
    named = tuple(glob for glob in (paths or dict.fromkeys(reading.globs)) if glob not in exceptions)
    languages = reading.languages or _languages_of(named)
    if named:
        prose = all(re.search(r"\.\w+$", glob) and not language_of(glob) for glob in named)
        return Where(paths=named, exceptions=tuple(exceptions), languages=languages, prose=prose, open=open_)
    if known := _known_place(words):
        return Where(paths=known, exceptions=tuple(exceptions), languages=languages, open=open_)
    guessed = _guessed(words)
    doubt = UNCERTAIN_PLACE if guessed else ""
    return Where(paths=guessed, exceptions=tuple(exceptions), languages=languages, doubt=doubt, open=open_)


def _languages_of(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages of globs that all name a suffix; empty if one does not."""
    found = [language_of(glob) for glob in paths]
    return tuple(dict.fromkeys(found)) if found and all(found) else ()


def files_of(languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of the files of languages."""
    return tuple(f"**/*{suffix}" for suffix, language in LANGUAGES.items() if language in languages)


_OF_TESTS = compiled(
    r"(?:^|[.;:!?,] )(?:and |our |the |all |unit |integration |end-to-end |no )*"
    r"(?:tests?|specs?|test (?:code|suites?))"
    r" (?:must|should|may|can|shall|will|do|don['’]t|never|cannot|use|are|is|has|have|needs?)\b"
    r"|(?<!neither )(?<!even )(?<!also )(?<!and )(?<!or )(?<!including )\b(?:in|inside|within) "
    r"(?:any |our |the |all |unit |integration |your )*"
    r"(?:tests?|specs?|test (?:code|suites?))\b"
)
_OF_DOCS = compiled(
    r"\b(?:in|inside|within|from|to) (?:the |our |any |all )*(?:documentation|docs)(?!\w|[/.-]\w|/| fold)"
)
_DOCS = ("docs/**", "**/docs/**", "doc/**", "**/*.md", "**/*.rst", "**/*.adoc")


def _known_place(words: str) -> tuple[str, ...]:
    """Return the globs of tests or of the documentation, if a rule is about either."""
    return TEST_FILES if _OF_TESTS.search(words) else _DOCS if _OF_DOCS.search(words) else ()


def _guessed(words: str) -> tuple[str, ...]:
    """Return globs for a place that is known by its name alone ("in the handlers")."""
    for match in _PLACE.finditer(words):
        parts = match["place"].lower().split()
        lead = match["lead"].lower().split()
        if "this" in lead or not lead or globs_in(match.group()) or set(parts) & _WHOLE:
            continue
        names = [part for part in parts if part not in _GENERIC][:2]
        if not names:
            continue
        name = "*".join(re.sub(r"(?<=\w{3})(?<!s)s$", "", part) for part in names)
        return (f"**/*{name}*", f"**/*{name}*/**")
    return ()
