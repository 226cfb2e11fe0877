"""Compiles a demand that consists of nothing but a narrow form.

Each parser reads its object to the end. An unknown word or an exception ("unless I ask") means that there is
no check.
"""

import re

from agentx.synthesis.demands.reading.scope import path_glob, reach_of, without_leads, without_topic
from agentx.synthesis.demands.tables.places import frozen_globs
from agentx.synthesis.demands.tables.vocabulary import Modality, compiled
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.checks import (
    Check,
    DecoratorCheck,
    DependencyCheck,
    FileAction,
    PathCheck,
    Place,
    TextCheck,
)
from agentx.synthesis.memory.items import Scope

_EXCEPTION = compiled(
    r"\b(?:unless|except|exceptions?|excluding|other than|apart from|without|if|when(?:ever)?|while"
    r"|before|as long as|but not|more than|at most|too (?:many|often)|first|directly|yourself|on your own"
    r"|by hand|manually|(?:is|are) (?:fine|ok(?:ay)?))\b"
)
"""Words that make a demand conditional in a way that these checks cannot see."""

_TAIL = (
    r"(?:,?\s+(?:again|ever|any ?more|any ?where|at all|by name|from now on|going forward|in (?:the )?future"
    r"|for now|for the time being|please|in (?:this|the|our) (?:repo|project|repository))){0,4}\s?[.!]{0,3} ?"
)
_REASON = (  # or an alternative: the object of a ban ends before it
    r"(?:$|[;!?]|\.\s+(?-i:[A-Z])|\s[-–—]\s|\s+(?:because|since)\b|,\s*(?:always|we|it|instead|rather"
    r"|please|the|because"
    r"|since|as|i|(?:but )?(?:use|say|write|put))\b)"
)
_LIST = compiled(r"\s*,\s*(?:or |and |nor )?\s*|\s+(?:or|and|nor)\s+(?:an? |any )?")


_BAN = compiled(
    r"^(?:(?:never|ever|again|don't|do not|mustn't|shouldn't|(?:must|may|should) not|you|we|please|should"
    r"|must|stop|avoid)\s+)+"
    r"(?:(?P<change>touch(?:ing)?|edit(?:ing)?|modify(?:ing)?|chang(?:e|ing))|(?P<write>writ(?:e|ing))"
    r"|(?P<make>(?:creat|mak|generat|overwrit|introduc)(?:e|ing)|add(?:ing)?|commit(?:ting)?(?! to\b)"
    r"|check in|put anything in(?:to)?)|(?P<load>import(?:ing)?)|(?P<use>(?:us|includ)(?:e|ing))"
    r"|(?P<name>(?:mention|say|refer)(?:ing)?(?: to)?|talk(?:ing)? about|(?:nam|cit)(?:e|ing)))\s+"
    rf"(?P<object>(?:(?P<quote>[\"'`]).{{1,80}}?(?P=quote)|.)+?){_TAIL}{_REASON}"
)
_FILE = compiled(
    r"(?:(?:an?|any|the|another|new|more|separate|to|in|into|files?|anything|named|called)\s+){0,5}"
    r"[`\"']?(?P<file>(?:\*|[\w-])[\w.*-]*\.[A-Za-z][\w-]{0,9}|\.[a-z][\w.-]{0,30}"
    r"|(?:Make|Docker|Jenkins|Pip|Gem|Proc)file|(?:[\w.@*-]{1,60}/){1,12}[\w.@*-]{0,60})[`\"']?"
    r"(?:\s+(?:files?|folders?|director(?:y|ies)))?"
)
_DOT_FILE = compiled(
    r"\.(?:\w+(?:rc|ignore)|[a-z]+-versions?|env|git[\w-]*|editorconfig|pre-commit-config|flake8|travis"
    r"|vscode"
    r"|idea|venv|ssh|aws|profile|cursor|claude|agentx|ds_store)(?:\.[\w.-]+)?$"
)
"""Well-known names that begin with a dot; any other one (".md") is a file name extension."""

_TURNED = (
    compiled(
        r"^(?:no|none of (?:the|our|your)) (?P<where>[\w ]{3,30}?) (?:may|must|should|shall|can) (?:ever )?"
        r"(?:contain|mention|include|have|say|use|name) (?P<what>[^,;]+?)[.!]?$"
    ),
    compiled(
        r"^(?P<what>the (?:word|phrase|term|name|expression|string)s? [^,;]+?|[`\"'][^`\"']{1,80}[`\"']"
        r"|(?-i:[A-Z][\w.&'-]*(?: [A-Z][\w.&'-]*){1,4})) (?:may|must|should|shall|can|(?:is|are) to)"
        r" (?:not|never) (?:ever )?(?:appear|occur|be (?:mentioned|used|written|said))"
        r"(?: (?:anywhere )?in (?P<where>[\w ]{3,40}?))?[.!]?$"
    ),
)
"""The same ban in another order: "no file may contain …", "… must not appear in any file"."""

_TEXT = compiled(
    r"(?:the (?:(?P<word>word|phrase|term|expression|string)|name)s? (?:of )?)?(?P<phrases>.+?)"
    r"(?:\s+(?:in|from) (?:(?:the|any|all|our|your) )*(?:(?P<answers>answers?|repl(?:y|ies)|responses?"
    r"|messages?)|(?P<files>code|files?|documents?|artifacts?|source(?: code)?)|(?P<other>[\w ]{2,40})))?"
)
_PHRASE = compiled(
    r"(?P<quote>[\"'`])(?P<quoted>(?:(?!(?P=quote)).)+)(?P=quote)|(?:(?P<em>em)|(?P<en>en))[ -]dash(?:es)?"
    r"|(?P<name>(?-i:(?!(?:I|A|The|This|That|It|English|German|French|Spanish)$)"
    r"[A-Z][\w.&'-]*(?:\s+(?:(?:of|the|de|van|von|der|la)\s+)?[A-Z][\w.&'-]*){0,4}))"
    r"|(?P<word>(?!above$|below$|following$|here$)[\w'-]+)"
)

_MODULE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_IMPORTED = compiled(
    rf"(?:the )?[`\"']?(?P<module>{_MODULE})[`\"']?(?:\s+(?:module|package|library))?"
    r"(?P<place>\s+(?:in|inside|under|within)\s+(?:the |our |any )?[`\"']?[\w./@-]{1,120}[`\"']?"
    r"(?:\s+(?:folder|directory|dir|files?|code))?)?"
)
_ANOTHER = compiled(r"\b(?:or|and|nor)\b")
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
_IMPORT = compiled(rf"`?(?:from (?P<package>{_MODULE}) import (?P<name>\w+)|import (?P<module>{_MODULE}))`?")
_PYTHON = compiled(r"\b(?:any|all|every|each)(?: new)? python (?:file|module)s?\b")
_GLUE = vocabulary(
    "always also please add import put apply use place have keep give decorate mark annotate wrap be"
    " decorated marked annotated wrapped to on onto above for at with the top start beginning of into must"
    " should has needs need gets get carry begin"
)
"""Words of a requirement that say nothing more than that something has to be there."""


_ANY: tuple[FileAction, ...] = ("create", "change", "delete")


def compile_certain(text: str, modality: Modality, scope: Scope) -> Check | None:
    """Return the check of a demand in one of the narrow forms; ``None`` for any other.

    Args:
        text: The demand in the user's words.
        modality: ``must`` or ``must_not``.
        scope: Where it applies.
    """
    whole = " ".join(text.split())
    words = without_leads(whole)
    plain = without_leads(without_topic(words))
    lead = whole.removesuffix(words)
    limits = f"{plain} {scope.topic}" if reach_of(lead).scope != Scope() else f"{lead} {plain} {scope.topic}"
    if modality == "prefer" or _EXCEPTION.search(limits):
        return None
    if modality == "must":
        return None if scope.topic else _required(words, scope)
    for turned in filter(None, (pattern.match(plain) for pattern in _TURNED)):
        plain = f"never mention {turned['what']}" + (f" in {turned['where']}" if turned["where"] else "")
    ban = _BAN.match(plain)
    if ban and not scope.topic and (check := _forbidden_path(ban) or _forbidden_import(ban, scope)):
        return check
    if not scope.topic and (folder := frozen_globs(plain)):
        return PathCheck(paths=scope.paths or folder, actions=_ANY)
    return _forbidden_text(ban, scope) if ban else None


def _forbidden_path(ban: re.Match[str]) -> PathCheck | None:
    files = [_FILE.fullmatch(name.strip()) for name in _LIST.split(ban["object"])]
    if not all(files) or not (ban["change"] or ban["write"] or ban["make"]):
        return None
    globs = [glob for file in files if file for glob in _globs(file["file"])]
    paths = tuple(dict.fromkeys(globs))
    return PathCheck(paths=paths, actions=_ANY) if ban["change"] else PathCheck(paths=paths)


def _globs(name: str) -> list[str]:
    """Return the globs for a file as users name it: ".md" is an extension, ".env" a name."""
    if name.startswith(".") and "/" not in name and not _DOT_FILE.match(name):
        name = f"*{name}"
    globs = map(path_glob, [name, f"{name}.*"] if name.lower() == ".env" else [name])
    return [one for glob in globs for one in dict.fromkeys((glob, glob.removeprefix("**/")))]


def _forbidden_text(ban: re.Match[str], scope: Scope) -> TextCheck | None:
    match = _TEXT.fullmatch(ban["object"])
    if not match or not (ban["name"] or ban["use"] or ban["write"]) or (match["other"] and not scope.paths):
        return None
    phrases: list[str] = []
    for piece in _LIST.split(match["phrases"].strip(" .,")):
        phrase = _PHRASE.fullmatch(piece.strip(" .,"))
        if not phrase or (phrase["word"] and not match["word"]):
            return None
        mark = "—" if phrase["em"] else "–" if phrase["en"] else ""
        if not (ban["name"] or mark or match.start("phrases")):  # it names a thing
            return None
        phrases.append(mark or (phrase["quoted"] or phrase.group()).strip())
    answers = not scope.paths and not match["files"]
    files = not answers or not match["answers"]
    wanted: dict[Place, bool] = {"files": files, "answers": answers}
    places = tuple(place for place, said in wanted.items() if said)
    return TextCheck(
        phrases=tuple(dict.fromkeys(phrases)), topic=scope.topic, paths=scope.paths, places=places
    )


def _forbidden_import(ban: re.Match[str], scope: Scope) -> DependencyCheck | None:
    if not ban["load"]:
        return None
    named = [_IMPORTED.fullmatch(piece) for piece in _LIST.split(ban["object"])]
    if not all(named):  # the first is followed by other words
        first, _, rest = ban["object"].partition(",")
        named = [None if _ANOTHER.search(rest) else _IMPORTED.fullmatch(first)]
    found = [match for match in named if match]
    if len(found) < len(named) or (found[-1]["place"] and not scope.paths):
        return None
    modules = dict.fromkeys(match["module"] for match in found)
    if any(module.lower() in _NO_MODULES for module in modules):
        return None
    return DependencyCheck(packages=tuple(modules), places=("imports",), paths=scope.paths)


def _required(words: str, scope: Scope) -> DecoratorCheck | DependencyCheck | None:
    order = without_leads(words.rpartition(", so ")[2])
    words = re.sub(rf"(?i){_TAIL}(?:\s+until .{{2,120}})?$", "", order)
    if found := _pieces(words, _IMPORT, _PYTHON):
        module = f"{found['package']}.{found['name']}" if found["package"] else found["module"]
        if module in _NO_MODULES or module.endswith("ly"):
            return None
        return DependencyCheck(packages=(module,), places=("imports",), paths=("**/*.py",), required=True)
    found, globs = _pieces(words, _DECORATOR, _FUNCTIONS), _python(scope)
    if not found or not globs or (found["place"] and not scope.paths):
        return None
    name = found["at"] or found["quoted"] or found["named"]
    functions = (found["clause"] or found["kind"]).strip().lower()
    return DecoratorCheck(decorator=name, functions=functions, paths=globs)


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
