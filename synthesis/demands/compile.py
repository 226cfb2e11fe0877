"""Compiles a demand into a check, if it is certain what code has to look for.

Each parser reads its object to the end. An unknown word or an exception ("unless I ask") means that there is
no check. A demand without a check is still shown to the agent.
"""

import re

from agentx.synthesis.demands.reading.scope import path_glob, reach_of, without_leads, without_topic
from agentx.synthesis.demands.tables.places import frozen_globs
from agentx.synthesis.demands.tables.vocabulary import Modality, compiled
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.items import (
    Check,
    ForbidPath,
    ForbidText,
    RequireDecorator,
    RequireImport,
    Scope,
)

_EXCEPTION = compiled(
    r"\b(?:unless|except|exceptions?|excluding|other than|apart from|without|only (?:if|when)|if|before"
    r"|as long as|but not|more than|at most|too (?:many|often)|first|directly|yourself|on your own|by hand"
    r"|manually|(?:is|are) (?:fine|ok(?:ay)?))\b"
)
"""Words that make a demand conditional in a way that these checks cannot see."""

_TAIL = (
    r"(?:,?\s+(?:again|ever|any ?more|any ?where|at all|by name|from now on|going forward|in (?:the )?future"
    r"|for now|for the time being|please|in (?:this|the|our) (?:repo|project|repository)))*\s*[.!]*\s*"
)
_REASON = (  # or an alternative: the object of a ban ends before it
    r"(?:$|[;!?]|\.\s|\s[-–—]\s|\s+(?:because|since)\b|,\s*(?:always|we|it|instead|rather|please|the|because"
    r"|since|as|i|(?:but )?(?:use|say|write|put))\b)"
)
_LIST = compiled(r"\s*,\s*(?:or |and |nor )?\s*|\s+(?:or|and|nor)\s+(?:an? |any )?")


def _ban(verbs: str) -> re.Pattern[str]:
    return compiled(
        r"^(?:(?:never|ever|again|don't|do not|mustn't|shouldn't|(?:must|may|should) not|you|we|please"
        rf"|should|must|stop|avoid)\s+)+(?:{verbs})\s+"
        rf"(?P<object>(?:(?P<quote>[\"'`]).{{1,80}}?(?P=quote)|.)+?){_TAIL}{_REASON}"
    )


_NO_FILE = _ban(
    r"(?:(?P<frozen>touch(?:ing)?|edit(?:ing)?|modify(?:ing)?|chang(?:e|ing))"
    r"|(?:creat|mak|generat|writ|overwrit|introduc)(?:e|ing)|add(?:ing)?|commit(?:ting)?|check in"
    r"|put anything in(?:to)?)(?:\s+(?:an?|any|the|another|new|more|separate|to|in|into|files?|anything"
    r"|named|called|with the name)\b){0,5}"
)
_FILE = compiled(
    r"[`\"']?(?P<file>(?:\*|[\w-])[\w.*-]*\.[A-Za-z][\w-]{0,9}|\.[a-z][\w.-]{0,30}"
    r"|(?:Make|Docker|Jenkins|Pip|Gem|Proc)file|(?:[\w.@*-]{1,60}/){1,12}[\w.@*-]{0,60})[`\"']?"
    r"(?:\s+(?:files?|folders?|director(?:y|ies)))?"
)
_DOT_FILE = compiled(
    r"^\.(?:\w+rc|\w+ignore|env|git\w*|gitlab-ci|\w+-version|tool-versions|editorconfig|pre-commit-config"
    r"|flake8|travis|clang-(?:format|tidy)|vscode|idea|venv|ssh|aws|profile|cursor\w*|claude|agentx|ds_store)"
    r"(?:\.[\w.-]+)?$"
)
"""Well-known names that begin with a dot; any other one (".md") is a file name extension."""

_NO_TEXT = _ban(
    r"(?:(?P<name>(?:mention|say|refer)(?:ing)?(?: to)?|talk(?:ing)? about|(?:nam|cit)(?:e|ing))"
    r"|(?:us|writ|includ)(?:e|ing))"
)
_TURNED = (
    compiled(
        r"^(?:no|none of (?:the|our|your)) (?P<where>[\w ]{3,30}?) (?:may|must|should|shall|can) (?:ever )?"
        r"(?:contain|mention|include|have|say|use|name) (?P<what>[^,;]+?)[.!]?$",
    ),
    compiled(
        r"^(?P<what>the (?:word|phrase|term|name|expression|string)s? [^,;]+?|[`\"'][^`\"']{1,80}[`\"']"
        r"|(?-i:[A-Z][\w.&'-]*(?: [A-Z][\w.&'-]*){1,4})) (?:may|must|should|shall|can|(?:is|are) to)"
        r" (?:not|never) (?:ever )?(?:appear|occur|be (?:mentioned|used|written|said))"
        r"(?: (?:anywhere )?in (?P<where>[\w ]{3,40}?))?[.!]?$",
    ),
)
"""The same ban in another order: "no file may contain …", "… must not appear in any file"."""

_TEXT = compiled(
    r"(?:the (?:(?P<word>word|phrase|term|expression|string)|name)s? (?:of )?)?(?P<phrases>.+?)"
    r"(?:\s+(?:in|from) (?P<where>[\w ]{2,40}))?"
)
_TEXT_PLACE = compiled(
    r"(?:(?:the|any|all|our|your) )*(?:(?P<answers>answers?|repl(?:y|ies)|responses?|messages?)"
    r"|code|files?|documents?|artifacts?|source(?: code)?)"
)
_QUOTED = compiled(r"(?P<quote>[\"'`])(?P<text>(?:(?!(?P=quote))[^\n]){1,80})(?P=quote)")
_PROPER = compiled(r"(?-i:[A-Z][\w.&'-]*(?:\s+(?:(?:of|the|de|van|von|der|la)\s+)?[A-Z][\w.&'-]*){0,4})")
_NOT_A_NAME = vocabulary("I A The This That It English German French Spanish above below following here")
_DASH = compiled(r"(?:(?P<em>em)|en)[ -]dash(?:es)?")

_MODULE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_NO_IMPORT = _ban(r"import(?:ing)?")
_IMPORTED = compiled(
    rf"(?:the )?[`\"']?(?P<module>{_MODULE})[`\"']?(?:\s+(?:module|package|library))?"
    r"(?P<place>\s+(?:in|inside|under|within)\s+(?:the |our |any )?[`\"']?[\w./@-]{1,120}[`\"']?"
    r"(?:\s+(?:folder|directory|dir|files?|code))?)?(?:,.*)?"
)
_NO_MODULES = vocabulary("anything everything it this that modules packages libraries from star unused only")

_DECORATOR = compiled(
    rf"(?:\b(?:an?|the|our|my) )?(?:[`\"']?@(?P<at>{_MODULE})(?:\(\))?[`\"']?(?: decorator\b)?"
    rf"|(?:[`\"'](?P<quoted>{_MODULE})[`\"']|\b(?P<named>\w+[_.][\w.]*\w)) decorator\b)"
)
_FUNCTIONS = compiled(
    r"\b(?:(?:any|all|every|each)(?: (?:of|the|your|our|new|newly \w+|other))*"
    r"|new(?=[^.]*(?:function|method)s))"
    r" (?P<kind>(?:(?!(?:and|or|to|in|with|of|for|that|which)\b)[\w/-]+ ){0,4}?)(?:function|method)s?\b"
    r"(?: (?:that|which) (?!you\b|we\b|i\b)(?P<clause>[\w -]{3,60}?)"
    r"(?=$| (?:in|under|inside|within|with|must|should|needs?|ha(?:s|ve) to|gets?)\b))?"
    r"(?: (?:that )?(?:you|we)(?:'ll)? (?:\w+ ){0,2}?(?:write|add|create|make|introduce|define)s?)?"
    r"(?P<place> (?:in|under|inside|within) [`\"']?[\w./@-]{1,120}[`\"']?)?"
)
_IMPORT = compiled(
    rf"[`\"']?(?:from (?P<package>{_MODULE}) import (?P<name>\w+)|import (?P<module>{_MODULE}))[`\"']?"
)
_PYTHON_FILES = compiled(r"\b(?:any|all|every|each)(?: new)? python (?:file|module)s?\b")
_GLUE = vocabulary(
    """
    always also please add put apply use attach include place have keep give decorate mark annotate wrap tag
    to on onto above for at with the top start beginning of into must should has needs need gets get carry be
    decorated marked annotated wrapped begin
    """
)
"""Words of a requirement that say nothing more than that something has to be there."""


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
    whole = " ".join(text.split())
    words = without_leads(whole)
    plain = without_leads(without_topic(words))
    lead = whole.removesuffix(words)
    conditional = re.search(r"\b(?:when|whenever|while|if)\b", lead, re.IGNORECASE)
    if (
        modality == "prefer"
        or _EXCEPTION.search(f"{plain} {scope.topic}")
        or (conditional and reach_of(lead).scope == Scope())
    ):
        return None
    if modality == "must":
        return None if scope.topic else _required(words, scope)
    banned = None if scope.topic else _forbidden_path(words, scope) or _forbidden_import(words, scope)
    return banned or _forbidden_text(plain, scope)


def _forbidden_path(words: str, scope: Scope) -> ForbidPath | None:
    ban = _NO_FILE.match(words)
    files = [_FILE.fullmatch(name.strip()) for name in _LIST.split(ban["object"])] if ban else []
    globs = [glob for file in files if file for glob in _globs(file["file"])]
    if ban and all(files):
        return ForbidPath(tuple(dict.fromkeys(globs)), frozen=bool(ban["frozen"]))
    folder = frozen_globs(words)
    return ForbidPath(scope.paths or folder, frozen=True) if folder else None


def _globs(name: str) -> list[str]:
    """Return the globs for a file as users name it.

    ".md" means every file with this extension, ".env" a file of this name.
    """
    if name.startswith(".") and "/" not in name and not _DOT_FILE.match(name):
        name = f"*{name}"
    globs: list[str] = []
    for glob in map(path_glob, [name, f"{name}.*"] if name.lower() == ".env" else [name]):
        globs += [glob, glob.removeprefix("**/")] if glob.startswith("**/") else [glob]
    return globs


def _forbidden_text(words: str, scope: Scope) -> ForbidText | None:
    for turned in filter(None, (pattern.match(words) for pattern in _TURNED)):
        words = f"never mention {turned['what']}" + (f" in {turned['where']}" if turned["where"] else "")
    ban = _NO_TEXT.match(words)
    match = _TEXT.fullmatch(ban["object"]) if ban else None
    if not ban or not match:
        return None
    phrases = _phrases(match["phrases"], one_word=bool(match["word"]))
    by_name = ban["name"] or match.start("phrases") or all(phrase in "—–" for phrase in phrases)
    place = _TEXT_PLACE.fullmatch(match["where"] or "")
    if not phrases or not by_name or (match["where"] and not place and not scope.paths):
        return None
    files_only = bool(scope.paths or (place and not place["answers"]))
    files = files_only or not place
    return ForbidText(phrases, scope.topic, scope.paths, answers=not files_only, files=files)


def _phrases(words: str, *, one_word: bool) -> tuple[str, ...]:
    """Return the literal phrases of an object; empty if any part of it is not one."""
    found: list[str] = []
    for part in _LIST.split(words.strip(" .,")):
        piece = part.strip(" .,")
        if quoted := _QUOTED.fullmatch(piece):
            found.append(quoted["text"].strip())
        elif dash := _DASH.fullmatch(piece):
            found.append("—" if dash["em"] else "–")
        elif piece not in _NOT_A_NAME and (
            _PROPER.fullmatch(piece) or (one_word and re.fullmatch(r"[\w'-]+", piece))
        ):
            found.append(piece)
        else:
            return ()
    return tuple(dict.fromkeys(found))


def _forbidden_import(words: str, scope: Scope) -> RequireImport | None:
    ban, globs = _NO_IMPORT.match(words), _python(scope)
    match = _IMPORTED.fullmatch(ban["object"]) if ban else None
    if not match or match["module"].lower() in _NO_MODULES or (match["place"] and not scope.paths):
        return None
    return RequireImport(match["module"], forbidden=True, globs=globs) if globs else None


def _required(words: str, scope: Scope) -> RequireDecorator | RequireImport | None:
    order = without_leads(words.rpartition(", so ")[2])
    words = re.sub(rf"(?i){_TAIL}(?:\s+until .{{2,120}})?$", "", order)
    if found := _pieces(words, _IMPORT, _PYTHON_FILES):
        module = f"{found['package']}.{found['name']}" if found["package"] else found["module"]
        return None if module in _NO_MODULES else RequireImport(module)
    found, globs = _pieces(words, _DECORATOR, _FUNCTIONS), _python(scope)
    if not found or not globs or (found["place"] and not scope.paths):
        return None
    name = found["at"] or found["quoted"] or found["named"]
    return RequireDecorator(name, (found["clause"] or found["kind"]).strip().lower(), globs)


def _pieces(words: str, *patterns: re.Pattern[str]) -> dict[str, str]:
    """Return the groups of a requirement's parts; empty if one is missing or a word is unknown."""
    found: dict[str, str] = {}
    for pattern in patterns:
        match = pattern.search(words)
        if not match:
            return {}
        found |= match.groupdict("")
        words = f"{words[: match.start()]} {words[match.end() :]}"
    return found if _GLUE.issuperset(words.lower().replace(",", " ").split()) else {}


def _python(scope: Scope) -> tuple[str, ...]:
    """Return the Python files of a scope; empty if it has places that are not for Python."""
    if not all(glob.endswith((".py", "/**")) for glob in scope.paths):
        return ()
    return tuple(f"{glob}/*.py" if glob.endswith("/**") else glob for glob in scope.paths) or ("**/*.py",)
