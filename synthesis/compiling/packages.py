"""Compiles rules about dependencies: forbidden libraries, package managers, pinned versions, no new ones."""

import re
from collections.abc import Iterator

from agentx.synthesis.compiling.reading import Clause, Reading
from agentx.synthesis.compiling.tables import ECOSYSTEMS, FAMILIES, MANAGERS
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.checks import Check, CommandCheck, DependencyCheck, DependencyPlace

_THING = (
    r"(?:dependenc(?:y|ies)|packages?|librar(?:y|ies)|gems?|crates?|modules?|third[- ]party (?:code"
    r"|stuff|libs?)|libs?|requires?|requirements?)"
)
_NONE = compiled(
    rf"\b(?:no|not|never|don'?t|without|zero|mustn'?t|stop|avoid)\b[^.;]{{0,40}}?\b(?:add\w*|install\w*"
    rf"|introduc\w*|pull\w* in|bring\w*(?: in)?|new|more"
    rf"|further|additional|extra|external|third[- ]party|any|other|be a)\b[^.;]{{0,24}}?\b{_THING}\b|\b"
    rf"(?:standard library|stdlib) only\b|\bonly (?:the |use the )?(?:standard"
    rf" library|stdlib)\b|\b{_THING} (?:list )?(?:is|are) (?:frozen|closed|locked)\b"
)
_PINNED = compiled(
    r"\b(?:pinn?(?:ed|ing)?|exact versions?|fixed versions?|no (?:version )?ranges?|carets?|tildes?)\b|=="
)
_LATEST = compiled(r"\b(?:no|never|not?|avoid|don'?t)\b[^.;]{0,30}[`\"':]?latest\b")
_BANNED = compiled(
    r"\b(?:never|do not|don'?t|no|not|mustn'?t|shouldn'?t|avoid|stop|please don'?t|isn't|banned"
    r"|forbidden)\b[^.;]{0,16}?\b(?P<verb>use|using|add|adding|install|installing|import|importing|bring"
    r"(?: in| back)?|introduce|introducing|pull in|reach for|depend on|rely on|require|suggest|go back to"
    r"|write)\b (?P<object>[^.;]{1,80})"
)
_INSTEAD = compiled(
    r"\b(?:use|using|prefer|take|with|go with|via|through)\b (?P<wanted>[\w@/.` -]{2,40}?),? (?:instead of"
    r"|rather than|not|never|over|in place of) (?P<object>[\w@/.`\"' ,-]{2,60})"
)
_TURNED = compiled(
    r"^(?:the )?(?P<object>[`\"']?[A-Za-z@][\w@/.-]{1,40}[`\"']?(?:(?:,| and| or)"
    r" [`\"']?[A-Za-z@][\w@/.-]{1,40}[`\"']?){0,3})(?: (?:package|library|gem|crate|module)s?)? "
    r"(?:(?:must|may|should|shall|can|will) (?:not|never)|mustn't|shouldn't|(?:is|are) (?:\w+ )?(?:banned"
    r"|forbidden|off[- ]limits|deprecated here|not (?:allowed|welcome|an option)"
    r"|never)|has no place|(?:is|are) off the table)\b(?P<rest>[^.;]{0,60})"
)
_TO_PLACE = compiled(
    r"\b(?:come back|be (?:added|installed|imported|introduced|used|a dependency|required)|enter|return"
    r"|appear|banned|forbidden|off|allowed|welcome|place|option)\b"
)
_NAMES = compiled(r"[`\"']?(?P<name>@?[A-Za-z][\w-]*(?:[./][\w-]+)*)[`\"']?")
_IS_PACKAGE = compiled(
    rf"\b{_THING}\b|\bpackage\.json\b|\brequirements\.txt\b|\bpyproject\b|\bgo\.mod\b|\bcargo\.toml\b"
    rf"|\bgemfile\b|\bpom\.xml\b|\binstall\w*\b|\bnpm\b|\bpip\b|\bdepend(?:s|ing)? on\b|\bimport\w*\b"
)
_CUT = compiled(
    r"\s+(?:in|for|to|anywhere|again|any ?more|at all|ever|here|as|on|into|from|with|when|while|since"
    r"|because|unless|directly|and use|\bwe\b|instead|either|please|inside|back"
    r"|package|library|gem|crate|module|libraries|packages|dependency|even)\b.*$|\s*[(].*$|,\s*(?:use|we"
    r"|it|always|prefer|the|stick|go|that|which|plain|native|instead|not|but).*$"
)
_LIST = compiled(r"\s*,\s*(?:or |and |nor )?|\s+(?:or|and|nor|/)\s+")
_WORDS = vocabulary(
    """
    a an the any some new it this that them these those other more third-party external anything code
    comments tests emojis tabs spaces semicolons english german passive active voice jargon slang bold
    caps words emoji british american abbreviations acronyms markdown tables bullet lists globals classes
    inheritance mocks fixtures threads exceptions loops recursion macros types generics sarcasm humour
    humor metaphors footnotes images links headings colours colors units dates sql raw inline default var
    let let's arrow functions decorators force sudo your my our root master main production prod secrets
    passwords hard-coded hardcoded magic numbers utf-8 html css javascript typescript python java rust go
    json yaml xml csv git bash shell docker windows linux mac something nothing people adjectives adverbs
    cliches hashtags exclamation capital letters quotes contractions jokes questions names
    """
)
_MANAGER = "|".join(sorted((re.escape(one) for one in MANAGERS), key=len, reverse=True))
_ONLY = compiled(
    rf"\b(?P<wanted>{_MANAGER})\b[`\"']? (?:only|exclusively|is (?:the only|our|what we)|everywhere)\b|\b"
    rf"(?:only|always|just|exclusively|stick (?:to|with)|we(?:'re| are)? (?:use|using|on|an?)|use|using"
    rf"|through|via|with|is an?|on)\b"
    rf" (?:use |with |install (?:\w+ )*with |go through )?[`\"']?(?P<other>{_MANAGER})\b(?! (?:run|test"
    rf"|audit|start))"
)
_NOT_MANAGER = compiled(
    rf"\b(?:not|never|no|don'?t|instead of|rather than|over|stop|avoid|mustn't|isn't"
    rf"|without)\b[^.;]{{0,30}}?[`\"']?\b(?P<name>{_MANAGER})\b"
)


def compile_packages(reading: Reading) -> tuple[Check, ...]:
    """Return the checks of a rule about dependencies."""
    for compiler in (_other_installers, _pins, _no_new, _libraries):
        if checks := tuple(compiler(reading)):
            return checks
    return ()


def _other_installers(reading: Reading) -> Iterator[Check]:
    words = reading.words.lower()
    banned = {match["name"].lower() for match in _NOT_MANAGER.finditer(words)}
    wanted = next(
        (
            (match["wanted"] or match["other"]).lower()
            for match in _ONLY.finditer(words)
            if (match["wanted"] or match["other"]).lower() not in banned
        ),
        "",
    )
    if not wanted and not banned:
        return
    if not wanted and not re.search(r"\b(?:use|run|call|install with|with|through|type|touch)\b", words):
        return
    if _NONE.search(reading.words) and not wanted:
        return
    family = next((one for one in FAMILIES if wanted in one), ())
    only = re.search(
        r"\bonly\b|\bexclusively\b|\balways\b|\beverything\b|\ball\b|\bis an?\b|\bproject\b|\brepo\b", words
    )
    if (
        wanted
        and not banned
        and only
        and not re.search(r"\b(?:run|test|tests|audit|publish|build)\b", words.partition(wanted)[2][:20])
    ):
        banned = set(family)
    banned -= {wanted}
    programs = tuple(command for name in MANAGERS if name in banned for command in MANAGERS[name])
    if wanted in {"poetry", "uv"}:
        programs = (
            tuple(one for one in programs if one not in ("uv", "poetry"))
            if not banned & {"uv", "poetry"}
            else programs
        )
    if programs:
        yield CommandCheck(programs=programs, instead=wanted)


def _pins(reading: Reading) -> Iterator[Check]:
    for clause in reading.clauses:
        if _LATEST.search(clause.words):
            docker = re.search(r"(?i)\bdocker\w*|\bimages?\b|\btags?\b|`?:latest", reading.words)
            yield DependencyCheck(
                packages=("*",),
                ecosystems=("docker",) if docker else _ecosystems(reading.words),
                versions="exact",
                places=("manifests", "commands"),
                doubt="" if docker else "whether the version counts as the latest",
            )
            return
        if _PINNED.search(clause.words) and re.search(
            rf"(?i)\b{_THING}\b|\bversions?\b|requirements|package\.json|pyproject|cargo\.toml|gemfile"
            rf"|\bactions?\b|\bimages?\b",
            clause.words,
        ):
            if re.search(r"(?i)\bgithub actions?\b|\bsha\b|\bcommit\b", clause.words):
                return
            yield DependencyCheck(
                packages=("*",),
                ecosystems=_ecosystems(reading.words),
                versions="exact",
                places=("manifests",),
                paths=reading.globs,
            )
            return


def _no_new(reading: Reading) -> Iterator[Check]:
    if not (match := _NONE.search(reading.words)) or re.search(
        r"(?i)\b(?:unused|circular|dev)\b", match.group()
    ):
        return
    places: tuple[DependencyPlace, ...] = ("manifests", "commands")
    manifest = tuple(
        glob for glob in reading.globs if re.search(r"(?:\.mod|\.toml|\.json|\.txt|file|\.xml)$", glob)
    )
    yield DependencyCheck(
        packages=("*",), ecosystems=_ecosystems(reading.words), places=places, paths=manifest or reading.globs
    )


def _ecosystems(words: str) -> tuple[str, ...]:
    return tuple(
        one
        for names, one in ECOSYSTEMS.items()
        if re.search(rf"(?<![\w.])(?:{names})(?!\w)", words, re.IGNORECASE)
    )


def _libraries(reading: Reading) -> Iterator[Check]:
    if reading.unplaced:
        return
    for clause in reading.clauses:
        instead = _INSTEAD.search(clause.words)
        banned = _BANNED.search(clause.words)
        turned = _TURNED.search(clause.words)
        if turned and not _TO_PLACE.search(clause.words[turned.end("object") :]):
            turned = None
        match = instead or turned or banned
        if not match or re.search(
            r"(?i)\b(?:word|phrase|term|flag|command|call|function|method|keyword|operator|quotes?)s?\b",
            clause.words,
        ):
            continue
        names = tuple(_package_names(match["object"]))
        if not names:
            continue
        sure = _sure(clause, reading, names)
        wanted = _package_names(instead["wanted"]) if instead else iter(())
        yield DependencyCheck(
            packages=names,
            paths=reading.globs,
            exceptions=reading.exceptions,
            instead=next(wanted, ""),
            ecosystems=_ecosystems(clause.words) if re.search(r"(?i)gem\b|crate|npm", clause.words) else (),
            doubt="" if sure else f"whether “{names[0]}” means the package of that name",
        )
        return


def _sure(clause: Clause, reading: Reading, names: tuple[str, ...]) -> bool:
    marked = all(
        re.search(rf"[`\"']{re.escape(name)}|{re.escape(name)}\.js\b", clause.words)
        or re.search(r"[-@/_]|\.js$|[a-z]\d", name)
        for name in names
    )
    return bool(_IS_PACKAGE.search(reading.words)) or marked


def _package_names(words: str) -> Iterator[str]:
    plain = _CUT.sub("", words.strip()).strip(" .,;:!")
    pieces = [piece.strip() for piece in _LIST.split(plain)]
    for piece in pieces:
        bare = re.sub(r"(?i)^(?:the|an?|any|either|that|our|new)\s+", "", piece)
        match = _NAMES.fullmatch(bare)
        if (
            not match
            or match["name"].lower() in _WORDS
            or match["name"].lower() in MANAGERS
            or re.search(r"\.(?:py|ts|md|json|txt|toml|ya?ml|env)$", match["name"])
        ):
            return
        name = match["name"]
        yield name[:-3] if name.lower().endswith(".js") and name.lower() != "next.js" else name
