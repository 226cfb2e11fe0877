"""Compiles rules about dependencies: forbidden libraries, package managers, pinned versions, no new ones."""

import re
from collections.abc import Iterator

from agentx.synthesis.compiling.reading.places import is_path
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import stance
from agentx.synthesis.compiling.reading.tables import ECOSYSTEMS, FAMILIES, LIBRARIES, MANAGERS
from agentx.synthesis.compiling.reading.where import where_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.enforcement.packages.manifests import is_manifest
from agentx.synthesis.language.words import STOP_WORDS, vocabulary
from agentx.synthesis.memory.checks import Check, CommandCheck, DependencyCheck, DependencyPlace, TextCheck

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
_IS_PACKAGE = compiled(
    rf"\b{_THING}\b|\bpackage\.json\b|\brequirements\.txt\b|\bpyproject\b|\bgo\.mod\b|\bcargo\.toml\b"
    rf"|\bgemfile\b|\bpom\.xml\b|\binstall\w*\b|\bnpm\b|\bpip\b|\bdepend(?:s|ing)? on\b|\bimport\w*\b"
)
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
    neither hands cliches hashtags exclamation capital letters quotes contractions jokes questions names
    """
)
_NAMES = "|".join(sorted(map(re.escape, MANAGERS), key=len, reverse=True))
_MANAGER = compiled(rf"(?<![\w./@-])[`\"']?(?P<name>{_NAMES})\b[`\"']?(?![./-]\w)")
_SCRIPTS = compiled(r"^ (?:run|test|audit|publish|unpublish|deprecate|build|start|exec|pack|version|link)\b")
_INSTALLS = compiled(
    r"\b(?:install\w*|add(?:s|ed|ing)?|manag\w+|packages?|dependenc\w+|lock ?files?|deps|librar\w+|only"
    r"|always|instead"
    r"|everything|not|never|no|over|rather|shop|repo\w*|project|use[sd]?|using|through|via|with)\b"
)


def compile_packages(reading: RuleReading) -> tuple[Check, ...]:
    """Return the checks of a rule about package managers, versions, or all packages."""
    for compiler in (_other_installers, _pins, _no_new):
        if checks := tuple(compiler(reading)):
            return checks
    return ()


def _other_installers(reading: RuleReading) -> Iterator[Check]:
    """Yield the check of a rule that decides between package managers."""
    banned: dict[str, None] = {}
    wanted = ""
    for match in _MANAGER.finditer(reading.words):
        name = match["name"].lower()
        if _SCRIPTS.match(reading.words[match.end() :]):
            continue
        found = stance(reading.words, match.start(), match.end())
        if found in ("banned", "blamed") or _OVER.search(reading.words[: match.start()]):
            banned[name] = None
        elif not wanted:
            wanted = name
    if not (wanted or banned) or not _INSTALLS.search(reading.words) or _is_closed(reading):
        return
    family = next((one for one in FAMILIES if wanted in one), ())
    if wanted and not banned and not _BY_HAND.search(reading.words):
        banned = dict.fromkeys(one for one in family if one != wanted and {one, wanted} != {"uv", "pip"})
    banned.pop(wanted, None)
    programs = tuple(command for name in MANAGERS if name in banned for command in MANAGERS[name])
    if programs:
        yield CommandCheck(programs=programs, instead=wanted)


_OVER = compiled(r"\b(?:over|instead of|rather than|not|never|and not)\s+(?:plain |raw )?[`\"']?$")
_BY_HAND = compiled(
    r"\b(?:after|before|whenever|when|once|if|run|frozen|pin\w*|exact|version\w*|--?[a-z]\w+)\b"
)


def _pins(reading: RuleReading) -> Iterator[Check]:
    for clause in reading.clauses:
        latest = re.search(r"(?i)(?<![\w-])(?:`?:|`)latest\b", clause.words)
        if _LATEST.search(clause.words) or (
            latest and stance(clause.words, *latest.span()) in ("banned", "blamed")
        ):
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
            if re.search(r"(?i)\bactions?\b", clause.words):
                if re.search(r"(?i)\bsha\b|\bcommit\b|\bhash(?:es)?\b", reading.words):
                    yield TextCheck(patterns=(_TAGGED_ACTION,), paths=(".github/**",), places=("files",))
                return
            yield DependencyCheck(
                packages=("*",),
                ecosystems=_ecosystems(reading.words),
                versions="exact",
                places=("manifests",),
                paths=reading.globs,
            )
            return


_TAGGED_ACTION = r"^\s*-?\s*uses:\s*(?!\./|docker:)[^@\s]+@(?![0-9a-f]{40}\b)\S+"
"""A GitHub action that is not pinned to a commit."""

_CLOSED = compiled(
    rf"\b{_THING}(?: list| set| tree)?(?:\W+\w+){{0,3}}? (?:is|are|stays?|remains?) (?:\w+ )?(?:frozen"
    rf"|closed|locked|final|fixed"
    rf"|complete|as (?:it|they|is|are))|\b(?:fr(?:oze|eez\w+|ozen)|closed|locked) (?:\w+ ){{0,3}}{_THING}"
    r"|\b(?:get by|make do|manage|work|live|stick) (?:\w+ )?(?:with|to) (?:what|the standard"
    r"|the (?:ones?|\w+) (?:we|that))"
)
_ADDED = compiled(
    r"\b(?:nothing|no|not|never|n['’]t|nobody|stop|quit|avoid|none|neither)\b[^.;]{0,60}?\b(?:add\w*"
    r"|go(?:es)?|put|new"
    r"|enters?|land\w*|introduc\w+|install\w*|come|more|extra|require)\b"
)


def _is_closed(reading: RuleReading) -> bool:
    """Return whether a rule forbids new packages."""
    if match := _NONE.search(reading.words):
        tool = _MANAGER.search(match.group()) and not re.search(
            r"(?i)\b(?:new|more|any|extra)\b", match.group()
        )
        return not tool and not re.search(r"(?i)\b(?:unused|circular|dev)\b", match.group())
    return bool(_CLOSED.search(reading.words)) or any(
        is_manifest(glob.removeprefix("**/")) and _ADDED.search(clause.words)
        for clause in reading.clauses
        for glob in clause.globs
    )


def _no_new(reading: RuleReading) -> Iterator[Check]:
    if not _is_closed(reading):
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


def compile_libraries(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of libraries that are ruled out, wherever their names are in the sentence."""
    return tuple(check for check in _libraries(reading) if not check.doubt)


def compile_perhaps_libraries(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of names that are perhaps those of libraries; for rules that mean nothing else."""
    return _libraries(reading)


def _libraries(reading: RuleReading) -> tuple[Check, ...]:
    where = where_of(reading)
    if reading.unplaced:
        return ()
    if (path := _IMPORTED_PATH.search(reading.words)) and stance(
        reading.words, *path.span("path")
    ) == "banned":
        return (_no_import_of(path["path"].rstrip("/."), reading),)
    banned: dict[str, None] = {}
    wanted, blamed = "", False
    for start, end, name in _candidates(reading.words):
        only = _ONLY_IT.match(reading.words[end:])
        found = "wanted" if only else stance(reading.words, start, end)
        if found == "banned":
            banned[name] = None
        elif found == "blamed" and name.lower() in LIBRARIES:
            banned[name], blamed = None, True
        elif found == "wanted" and not wanted:
            wanted = name
    if not banned or _NO_LIBRARY.search(reading.words):
        return ()
    marked = all(re.search(r"[-@/_]|[a-z]\d", name) or f"`{name}" in reading.words for name in banned)
    sure = marked or _IS_PACKAGE.search(reading.words) or all(name.lower() in LIBRARIES for name in banned)
    if not (sure or _TO_USE.search(reading.words)):
        return ()
    check = DependencyCheck(
        packages=tuple(banned),
        paths=where.paths or reading.globs,
        exceptions=where.exceptions,
        instead=wanted,
        ecosystems=_ecosystems(reading.words) if re.search(r"(?i)gem\b|crate|npm", reading.words) else (),
        doubt="whether the rule forbids it, or only reports of it"
        if blamed
        else ""
        if sure
        else f"whether “{next(iter(banned))}” means the package of that name",
    )
    return (check,)


_IMPORTED_PATH = compiled(
    r"\bimport\w* (?:\w+ ){0,2}?(?:from )?(?:the )?[`\"']?(?P<path>[a-z@][\w@-]*(?:/[\w-]+)+/?)(?!\w|\.\w)"
)


def _no_import_of(path: str, reading: RuleReading) -> TextCheck:
    """Return the check of imports from a folder, in any language."""
    name = r"[/.\\:]+".join(map(re.escape, path.split("/")))
    line = (
        rf"^\s*(?:import|from|use|using|#\s*include|export|const|let|var|require\w*)\b[^\n]*(?<!\w){name}\b"
    )
    listed = rf"^\s*(?:\w+\s+)?\"[^\"\n]*(?<!\w){name}\b[^\"\n]*\"\s*$"
    own = (f"{path}/**", f"**/{path}/**")
    return TextCheck(
        patterns=(line, listed),
        paths=tuple(one for one in reading.globs if one not in own),
        exceptions=(*own, *reading.exceptions),
        places=("files",),
    )


_ONLY_IT = compiled(r"^[`\"']? (?:only|exclusively|is (?:what|the only|our))\b")
_NO_LIBRARY = compiled(
    r"\b(?:words?|phrases?|terms?|flags?|commands?|calls?|functions?|methods?|keywords?|operators?"
    r"|quotes?)\b|\(\)"
)
_TO_USE = compiled(
    r"\b(?:us(?:e|ing)|add|import|install|introduce|pull|bring|reach for|depend|rely|require|suggest)\b"
)
_SLOT = compiled(
    r"\b(?:us(?:e|es|ing)|add(?:ing)?|install(?:ing)?|import(?:ing|s)?|introduc(?:e|ing)|depend(?:s"
    r"|ing)? on|rely on"
    r"|require|suggest|pull(?:ing)? in|bring(?:ing)?(?: in| back)?|reach(?:ing)? for|go back to"
    r"|switch(?:ed)? (?:to|from)"
    r"|mov(?:e|ed|ing) (?:to|off|from)|prefer|over|instead of|rather than|neither|nor|no more"
    r"|ditch(?:ed)?|rid of"
    r"|migrat\w+ (?:to|from|off))\s+(?:(?:the|an?|any|either|that|our|plain|raw|old|good old)\s+)*"
)
_SUBJECT = compiled(r"(?:^|[.;!?:]\s+|,\s+(?:so|and|but)\s+|\s[-–—]\s)(?:and |so |the |please,? )*")
_IS_SUBJECT = compiled(
    r"[`\"'@\w./-]+(?:(?:,| and| or| nor|, and|, or|,? not| over) [`\"'@\w./-]+)*(?=\W*$|[,.;:!?]"
    r"|\s+(?:is|are|was|were|must|should|shall|may|can|cannot|has|have|gets?|stays?|goes|does|doesn['’]t"
    r"|isn['’]t"
    r"|aren['’]t|mustn['’]t|and|or|only|not|never|no|over|instead|in|from|for|because|broke|out)\b)"
)
_PIECE = compiled(
    r"(?P<quote>[`\"']?)(?P<name>@?[A-Za-z][\w-]*(?:[./][\w-]+)*)(?P=quote)(?![\w(/])(?!\.\w)(?!['’]\w)"
)
_JOINED = compiled(r"\s*(?:,\s*(?:and|or|nor)?|and|or|nor|/)\s+(?:the\s+)?")


def _candidates(words: str) -> Iterator[tuple[int, int, str]]:
    """Yield the names that can be packages: after the verbs of dependencies, and well-known ones anywhere."""
    seen: set[int] = set()
    subjects = _SUBJECT.finditer(words) if _IS_PACKAGE.search(words) else ()
    slots = (*_SLOT.finditer(words), *(one for one in subjects if _IS_SUBJECT.match(words, one.end())))
    for slot in slots:
        at = slot.end()
        while match := _PIECE.match(words, at):
            name = _package(match["name"])
            if not name:
                break
            if match.start("name") not in seen:
                seen.add(match.start("name"))
                yield match.start(), match.end(), name
            joined = _JOINED.match(words, match.end())
            if not joined:
                break
            at = joined.end()
    for match in _PIECE.finditer(words):
        name = _package(match["name"])
        known = name.lower() in LIBRARIES or match["name"].lower().endswith(".js") or bool(match["quote"])
        if name and known and match.start("name") not in seen:
            seen.add(match.start("name"))
            yield match.start(), match.end(), name


def _package(name: str) -> str:
    """Return the package that a word can name; empty if it is an ordinary word or a file."""
    low = name.lower()
    if (
        low in _WORDS
        or _TO_USE.fullmatch(low)
        or low in MANAGERS
        or low in STOP_WORDS
        or (is_path(name) and not low.endswith(".js"))
    ):
        return ""
    return name[:-3] if low.endswith(".js") and low != "next.js" else name
