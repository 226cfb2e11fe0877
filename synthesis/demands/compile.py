"""Compiles a demand into a check, if it is certain what code has to look for.

Each parser reads its object to the end. An unknown word or an exception ("unless I ask") means that there is
no check. A demand without a check is still shown to the agent.
"""

import re

from agentx.synthesis.demands.reading.scope import path_glob, without_leads, without_topic
from agentx.synthesis.demands.tables.places import frozen_globs
from agentx.synthesis.demands.tables.vocabulary import Modality
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.items import (
    Check,
    ForbidPath,
    ForbidText,
    RequireDecorator,
    RequireImport,
    Scope,
)

_EXCEPTION = on_use(
    r"\b(?:unless|except|excluding|other than|apart from|without|only (?:if|when)|if|before|as long as"
    r"|but not|more than|at most|too (?:many|often)|first"
    r"|directly|yourself|on your own|by hand|manually)\b",
    re.IGNORECASE,
)
"""Words that make a demand conditional in a way that these checks cannot see."""

_QUOTE = "[`\"']"
_FILE = (
    rf"{_QUOTE}?(?P<{{0}}>(?:\*|[\w-])[\w.*-]*\.[A-Za-z][\w-]{{{{0,9}}}}|\.[a-z][\w.-]{{{{0,30}}}}|Makefile"
    r"|Dockerfile|Jenkinsfile|Pipfile|Gemfile|Procfile"
    rf"|(?:[\w.@*-]{{{{1,60}}}}/){{{{1,12}}}}[\w.@*-]{{{{0,60}}}}){_QUOTE}?"
)
_FORBIDDEN_FILE = on_use(
    r"^(?:(?:never|ever|again|don't|do not|must not|mustn't|may not|should not|shouldn't|you|we|please"
    r"|should|must|stop)\s+)+"
    r"(?P<verb>create|creating|add|adding|write|writing|make|making|generate|generating|commit|committing"
    r"|touch|touching|edit|editing|modify|modifying|change|changing"
    r"|overwrite|overwriting|introduce|check in|put anything (?:in|into)|write to|writing to)\s+"
    r"(?:(?:a|an|any|the|another|new|more|separate|to|in|into|files?|anything|named|called"
    r"|with the name)\s+){0,5}"
    r"(?P<files>[^,;!?\s][^;!?]*?)"
    r"(?:\s+(?:files?|folders?|director(?:y|ies)))?(?:\s+(?:again|ever|any ?more|any ?where|at all"
    r"|from now on|going forward|in (?:this|the|our) (?:repo|project|repository)))*"
    r"\s*(?:[.!]?$|;.*$|,\s*(?:use|always|we|it|put|instead|rather|please|but use|the|because|since|as"
    r"|i)\b.*$|\s+(?:because|since)\b.*$|\s[-–—]\s.*$)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGING = ("touch", "edit", "modify", "chang")
"""Verbs that protect a file from changes; deleting or moving it is a change, too."""

_FILE_NAME = on_use(
    _FILE.format("file").replace("{{", "{").replace("}}", "}") + r"(?:\s+files?)?", re.IGNORECASE
)
_DOT_FILE = on_use(
    r"^\.(?:\w+rc|\w+ignore|env|envrc|git|github|gitlab-ci|gitattributes|gitmodules|gitkeep|mailmap"
    r"|editorconfig|flake8|pre-commit-config|python-version"
    r"|node-version|ruby-version|tool-versions|nvmrc|coveragerc|travis|circleci|readthedocs|clang-format"
    r"|clang-tidy|htaccess|netrc|pypirc|pgpass|ssh|aws"
    r"|docker|devcontainer|vscode|idea|venv|husky|yarn|npm|cargo|cursorrules|cursor|claude|agentx"
    r"|bash_profile|profile|DS_Store)(?:\.[\w.-]+)?$",
    re.IGNORECASE,
)
"""Well-known names that begin with a dot; any other one (".md") is a file name extension."""

_LIST = on_use(r"\s*,\s*(?:or |and |nor )?\s*|\s+(?:or|and|nor)\s+(?:an? |any )?")

_FORBIDDEN_TEXT = on_use(
    r"(?:^|,\s*)(?:(?:never|ever|again|don't|do not|must not|mustn't|may not|should not|shouldn't|you|we"
    r"|please|should|must|stop|avoid)\s+)+"
    r"(?:mention|mentioning|say|saying|write|writing|name|naming|use|using|refer to|referring to|include"
    r"|including|utter|bring up|talk about|cite)\s+"
    r"(?P<kind>the (?:words?|phrases?|terms?|names?|expressions?|strings?) )?(?P<phrases>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_MAY = r"(?:may|must|should|shall|can|(?:is|are) (?:ever )?(?:allowed|to))(?: to)?"
_TURNED = (
    on_use(
        rf"^(?:no|none of (?:the|our|your)) (?P<where>[\w ]{{3,30}}?) {_MAY} (?:ever )?(?:contain|mention"
        r"|include|have|carry|say|use|name) (?P<what>[^,;]+?)[.!]?$",
        re.IGNORECASE,
    ),
    on_use(
        r"^(?P<what>the (?:words?|phrases?|terms?|names?|expressions?|strings?) [^,;]+?"
        r"|[`\"'][^`\"']{1,80}[`\"']|(?-i:[A-Z][\w.&'-]*(?: [A-Z][\w.&'-]*){1,4}))"
        rf" {_MAY} (?:not|never) (?:ever )?(?:appear|occur|turn up|show up|stand|be (?:mentioned|used"
        r"|written|found|said))"
        r"(?: (?:anywhere )?in (?P<where>[\w ]{3,40}?))?[.!]?$",
        re.IGNORECASE,
    ),
)
"""The same prohibition with its object or its place first.

Examples: "no file may contain …", "… must not appear in any file".
"""

_TEXT_TAIL = on_use(
    r"\s*(?:\b(?:again|ever|any ?more|any ?where|at all|by name|from now on|going forward|please)"
    r"|(?:in|from) (?P<where>(?:your |any |the |all |our )*[\w ]{2,30}))?\s*[.!]*\s*$",
    re.IGNORECASE,
)
_QUOTED = on_use(r"\"([^\"\n]{1,80})\"|'([^'\n]{1,80})'(?!\w)|`([^`\n]{1,80})`")
_PROPER = on_use(r"[A-Z][\w.&'-]*(?:\s+(?:(?:of|the|de|van|von|der|la)\s+)?[A-Z][\w.&'-]*){0,4}")
_NOT_A_NAME = vocabulary("I A The This That It English German French Spanish")
_ANSWERS = on_use(
    r"^(?:your |the |any |all )*(?:answers?|repl(?:y|ies)|responses?|messages?)$", re.IGNORECASE
)
_FILES = on_use(
    r"^(?:the |any |all |our |your )*(?:code|files?|documents?|artifacts?|source(?: code)?)$", re.IGNORECASE
)

SYMBOLS: dict[str, str] = {
    "em dash": "—",
    "em-dash": "—",
    "em dashes": "—",
    "em-dashes": "—",
    "en dashes": "–",
    "en-dashes": "–",
}
"""Typographic marks that users name in words."""

_DECORATOR_NAME = r"[`\"']?@?(?P<decorator>[A-Za-z_][\w.]*)(?:\(\))?[`\"']?"
_FUNCTION_KIND = (
    r"(?:(?P<kind>[\w][\w/ -]{0,60}?)\s+)?(?:functions?|methods?)\b"
    r"(?:\s+(?:that|which)\s+(?!you\b|we\b|i\b)(?P<clause>[\w -]{3,60}?))?"
    r"(?:\s+(?:that )?(?:you|we)(?:'ll)? (?:\w+ ){0,2}?(?:write|add|create|make|introduce|define)s?)?"
)
_TAIL = (
    r"\s*(?:from now on|for now|for the time being|going forward|in (?:future|this project|the project)"
    r"|please|until .{2,120})?\s*[.!]?\s*$"
)
_DECORATORS = (
    on_use(
        r"\b(?:add|put|apply|use|attach|include|place|stick|have|keep|give)\s+(?:a|an|the|our|my)?\s*"
        r"(?P<at>[`\"']?@)?"
        + _DECORATOR_NAME.replace("@?", "")
        + r"\s*(?P<word>decorator)?\s+(?:decorator\s+)?(?:to|on|onto|above|before|for|at|with)\s+"
        r"(?:top of\s+)?(?P<which>any|all|every|each|new|the)?(?: of)?(?: the| your| our)?\s*"
        + _FUNCTION_KIND
        + _TAIL,
        re.IGNORECASE,
    ),
    on_use(
        r"\b(?:decorate|mark|annotate|wrap|tag)\s+(?P<which>any|all|every|each)\s+"
        + _FUNCTION_KIND
        + r"\s+with\s+(?:a |an |the )?(?P<at>[`\"']?@)?"
        + _DECORATOR_NAME.replace("@?", "")
        + r"(?:\s+(?P<word>decorator))?"
        + _TAIL,
        re.IGNORECASE,
    ),
    on_use(
        r"^(?P<which>any|all|every|each)\s+"
        + _FUNCTION_KIND
        + r"(?P<place>\s+(?:in|under|inside|within)\s+[`\"']?[\w./@-]{1,120}[`\"']?)?"
        + r"\s+(?:must|should|has to|have to|needs? to|need|needs|gets?)\s*(?:always )?(?:have|carry"
        r"|be (?:decorated|marked|annotated|wrapped) with|use|get|bear|wear)?\s+(?:a |an |the )?"
        r"(?P<at>[`\"']?@)?" + _DECORATOR_NAME.replace("@?", "") + r"(?:\s+(?P<word>decorator))?" + _TAIL,
        re.IGNORECASE,
    ),
)
_NEW = on_use(
    r"^(?:any|all|every|each|new|newly (?:added|written|created)|further|additional|other|of|the|your"
    r"|our)\s+",
    re.IGNORECASE,
)
_NEW_WORD = on_use(r"^(?:any|all|every|each|new|further|additional|other|public-facing)$", re.IGNORECASE)

_MODULE = r"[`\"']?(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[`\"']?"
_FORBIDDEN_IMPORT = on_use(
    r"^(?:(?:never|ever|don't|do not|must not|mustn't|may not|should not|shouldn't|you|we|please|should|must"
    r"|stop)\s+)+(?:import|importing)\s+(?:the )?"
    + _MODULE
    + r"(?:\s+(?:module|package|library))?(?:\s+(?:again|any ?where|ever|any ?more|in (?:any )?python"
    r" (?:files?|code)))?"
    r"(?P<place>\s+(?:in|inside|under|within)\s+(?:the |our )?[`\"']?[\w./@-]{1,120}[`\"']?"
    r"(?:\s+(?:folder|directory|dir))?)?\s*(?:[.!]?$|[;,].*$)",
    re.IGNORECASE,
)
_REQUIRED_IMPORT = on_use(
    r"\b(?:(?:every|each|all)\s+(?:new )?python (?:files?|modules?) (?:must|should|has to|have to|needs? to)"
    r" (?:always )?(?:import|start with|begin with|have)\s+)"
    r"[`\"']?(?:from (?P<package>[\w.]+) import (?P<name>\w+)|(?:import )?"
    r"(?P<module>[A-Za-z_][\w.]*))[`\"']?\s*[.!]?$"
    r"|\b(?:always|from now on,?)\s+(?:import|add|put|include)\s+[`\"']?(?:from (?P<package2>[\w.]+) import"
    r" (?P<name2>\w+)|import (?P<module2>[\w.]+))[`\"']?\s+"
    r"(?:to|in|at the (?:top|start|beginning) of|into)\s+(?:every|each|all|any)\s+(?:new )?python"
    r" (?:files?|modules?)\s*[.!]?$",
    re.IGNORECASE,
)
_NO_MODULES = vocabulary("anything everything it this that modules packages libraries from star unused")


def compile_check(text: str, modality: Modality, scope: Scope) -> Check | None:
    """Return the check that enforces a demand, or ``None`` if it is not certain what to look for.

    Args:
        text: The demand in the user's words.
        modality: A preference is never enforced.
        scope: Where it applies; only text checks understand a topic.

    >>> compile_check("Never create a requirements.txt file; use pyproject.toml instead", "must_not", Scope())
    ForbidPath(globs=('**/requirements.txt', 'requirements.txt'), frozen=False)
    >>> compile_check("Never be rude", "must_not", Scope()) is None
    True
    """
    words = without_leads(" ".join(text.split()))
    if modality == "prefer":
        return None
    if modality == "must":
        return (
            None
            if scope.topic or _EXCEPTION.search(words)
            else _required_decorator(words, scope) or _required_import(words)
        )
    if not scope.topic and (
        check := _forbidden_path(words) or _frozen_place(words, scope) or _forbidden_import(words, scope)
    ):
        return check
    return _forbidden_text(words, scope)


def _forbidden_path(words: str) -> ForbidPath | None:
    match = _FORBIDDEN_FILE.match(words)
    if not match or _EXCEPTION.search(_first_part(words)):
        return None
    globs: list[str] = []
    for name in _LIST.split(match["files"]):
        file = _FILE_NAME.fullmatch(name.strip())
        if not file:
            return None
        globs += _globs(file["file"])
    frozen = match["verb"].lower().startswith(_CHANGING)
    return ForbidPath(tuple(dict.fromkeys(globs)), frozen=frozen)


def _globs(name: str) -> list[str]:
    """Return the globs for a file as users name it.

    ".md" means every file with this extension, ".env" a file of this name.
    """
    if name.startswith(".") and "/" not in name and not _DOT_FILE.match(name):
        name = f"*{name}"
    names = [name, f"{name}.*"] if name.lower() == ".env" else [name]
    globs: list[str] = []
    for glob in map(path_glob, names):
        globs += [glob, glob.removeprefix("**/")] if glob.startswith("**/") else [glob]
    return globs


def _frozen_place(words: str, scope: Scope) -> ForbidPath | None:
    globs = frozen_globs(words)
    if not globs or _EXCEPTION.search(words):
        return None
    return ForbidPath(scope.paths or globs, frozen=True)


def _first_part(words: str) -> str:
    return re.split(r";| — | – | - ", words, maxsplit=1)[0]


def _forbidden_text(words: str, scope: Scope) -> ForbidText | None:
    match = _FORBIDDEN_TEXT.search(_turned(without_topic(words)))
    if not match or _EXCEPTION.search(match["phrases"]):
        return None
    object_ = re.split(
        r"[;!?]|\.\s|,\s*(?=use|say|write|instead|rather|because|since|as\b|it|we|i\b|please|but)",
        match["phrases"],
        maxsplit=1,
    )[0]
    if match["kind"] and match["kind"].lower().startswith("the name"):
        object_ = re.sub(r"^of\s+", "", object_)
    where = ""
    if tail := _TEXT_TAIL.search(object_):
        where, object_ = tail["where"] or "", object_[: tail.start()]
    phrases = _phrases(object_, quoted_word=bool(match["kind"]))
    using = bool(
        re.search(
            r"\b(?:use|using|write|writing|include|including)\s+$",
            match.group()[: match.start("phrases") - match.start()],
            re.IGNORECASE,
        )
    )
    if not phrases or (using and not match["kind"] and not all(p in SYMBOLS.values() for p in phrases)):
        return None
    reach = _where(where, scope)
    return (
        None
        if reach is None
        else ForbidText(phrases, scope.topic, scope.paths, answers=reach[0], files=reach[1])
    )


def _turned(words: str) -> str:
    for pattern in _TURNED:
        if match := pattern.match(words):
            where = f" in {match['where']}" if match["where"] else ""
            return f"never mention {match['what']}{where}"
    return words


def _where(where: str, scope: Scope) -> tuple[bool, bool] | None:
    """Return whether it applies to answers and to files; ``None`` for a place that no check can recognise."""
    if scope.paths:
        return False, True
    if not where:
        return True, True
    if _ANSWERS.match(where.strip()):
        return True, False
    return (False, True) if _FILES.match(where.strip()) else None


def _phrases(words: str, *, quoted_word: bool) -> tuple[str, ...]:
    """Return the literal phrases of an object; empty if any part of it is not one."""
    found: list[str] = []
    for part in _LIST.split(words.strip(" .,")):
        piece = part.strip(" .,")
        quoted = _QUOTED.fullmatch(piece)
        if quoted:
            found.append(next(group for group in quoted.groups() if group).strip())
        elif piece.lower() in SYMBOLS:
            found.append(SYMBOLS[piece.lower()])
        elif (_PROPER.fullmatch(piece) and piece not in _NOT_A_NAME) or (
            quoted_word and re.fullmatch(r"[\w'-]+", piece)
        ):
            found.append(piece)
        else:
            return ()
    return tuple(dict.fromkeys(found))


def _required_decorator(words: str, scope: Scope) -> RequireDecorator | None:
    for pattern in _DECORATORS:
        match = pattern.search(words)
        if not match or not (match["at"] or match["word"]):
            continue
        if match.groupdict().get("place") and not scope.paths:
            continue
        kind = match["clause"] or match["kind"] or ""
        while (shorter := _NEW.sub("", kind)) != kind:
            kind = shorter
        if _NEW_WORD.match(kind):
            kind = ""
        if match["which"] in {None, "the"} and not re.search(
            r"\b(?:new|any|all|every|each)\b", match.group(), re.IGNORECASE
        ):
            continue
        globs = tuple(glob for glob in scope.paths if glob.endswith((".py", "/**")))
        return RequireDecorator(match["decorator"], kind.strip().lower(), globs or ("**/*.py",))
    return None


def _forbidden_import(words: str, scope: Scope) -> RequireImport | None:
    match = _FORBIDDEN_IMPORT.match(words)
    if not match or match["module"].lower() in _NO_MODULES or _EXCEPTION.search(_first_part(words)):
        return None
    globs = tuple(
        f"{glob}/*.py" if glob.endswith("/**") else glob
        for glob in scope.paths
        if glob.endswith((".py", "/**"))
    )
    # Some paths are not for Python, or the words name a place that is not a path.
    if len(globs) != len(scope.paths) or (match["place"] and not scope.paths):
        return None
    return RequireImport(match["module"], forbidden=True, globs=globs or ("**/*.py",))


def _required_import(words: str) -> RequireImport | None:
    match = _REQUIRED_IMPORT.search(words)
    if not match:
        return None
    package, name = match["package"] or match["package2"], match["name"] or match["name2"]
    return RequireImport(f"{package}.{name}" if package else match["module"] or match["module2"])
