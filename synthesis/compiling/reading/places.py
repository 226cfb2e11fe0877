"""Finds the files that words name: paths, globs, folders, extensions and kinds of files."""

import mimetypes
import re
from collections.abc import Iterator
from functools import cache, lru_cache

from agentx.synthesis.compiling.reading.tables import FILE_KINDS, LANGUAGES
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES as LANGUAGE_OF
from agentx.synthesis.language.words import vocabulary

MARK = "▮"
"""Takes the place of a file that is named."""

_SEGMENT = r"[\w.@*{}\[\]-]{1,60}"
_PATH = compiled(
    r"(?<![\w@/:.])(?P<quote>[\"'`])(?P<quoted>[^\"`'\n]{0,60}[/.][^\"`'\n\s/][^\"`'\n]{0,60}"
    r"|[^\"`'\n]{2,60}/"
    r"|[A-Z]\w+file)(?P=quote)"
    rf"|(?<![\w@/:.<`!-])(?<!#!/)(?P<bare>/?\.?(?:{_SEGMENT}/){{1,12}}{_SEGMENT}(?<![.])"
    rf"|/?\.?(?:{_SEGMENT}/){{1,12}}"
    r"|\.env(?:\.\w+)+"
    r"|\*?\.(?P<only>[a-z][a-z0-9]{0,9}(?:\.[a-z]{1,5})?)(?=s?\b(?![\w(]))"
    r"|\.(?:env|git[a-z]+|github|gitlab|docker|vscode|idea|circleci|husky|\w+rc\b|editorconfig|ssh"
    r"|aws)[\w.-]*(?<!\.)"
    r"|[\w*-]+(?:\.[\w*-]+)*\.(?P<extension>[A-Za-z][A-Za-z0-9]{0,9})(?![\w(])"
    r"|(?-i:(?:Make|Docker|Jenkins|Pip|Gem|Proc|Vagrant|Rake|Just|Brew|Task|Pod|Fast)file"
    r"|CODEOWNERS|LICENSE|NOTICE|CHANGELOG|README|AUTHORS|CONTRIBUTING)\b)"
    r"|\b(?:folders?|director(?:y|ies)) (?:called |named )?[`\"'](?P<called>[\w .-]{1,40})[`\"']"
    r"|(?<!\w)[`\"'](?P<titled>[\w .-]{2,40})[`\"'] (?:folder|directory|dir)\b"
    r"|(?:\b(?:in|inside|under|within|of|to|from|touch|edit|modify|change|below|into|alone|outside)\s+)?"
    r"(?:\b(?:the|our|my)\s+)?"
    r"[`\"']?(?<![\w.-])(?<!\bthis )(?P<folder>(?!(?:the|an?|any|my|our|your|this|that|these|those|same"
    r"|other|current|whole|root"
    r"|working|new|entire|output|source|project|target|each|every|test|no|of|is|in|which)\b)\.?[\w-]{2,40})"
    r"[`\"']?\s+(?:folder|directory|dir)\b"
)
_NO_PATH = compiled(
    r"(?:(?:console|logger|math|np|os|self|this)\.\w+|and/or|he/she|s/he|his/her|read/write|yes/no"
    r"|client/server|on/off|tcp/ip|ci/cd|i/o|n/a|w/o?|b/c|24/7|[\d.]+/[\d.]+|e\.g|i\.e|etc\..*"
    r"|(?-i:[A-Z]+/[A-Z]+)"
    r"|(?-i:[A-Z]\w*(?:\.[A-Z]\w*)+)|[\w-]+\.js(?<!config\.js)|[\w.-]+\.(?:com|org|net|io|dev)(?:/.*)?)$"
)
_MORE_EXTENSIONS = vocabulary(
    "md lock mod sum env prisma tfvars bak log cfg conf ini toml docx xlsx pptx odt ods asset unity tscn tres"
    " plist pbxproj ipynb parquet gpkg blend psd fig rmd qmd tex bib proto graphql gradle properties"
    " sqlite db tfstate"
    " golden snap storyboard xib po pot arb strings resx dbc kicad_pcb kicad_sch svd ld cmake mk example bank"
)
_NAMED = compiled(
    r"\b(?P<noun>files?|documents?|anything|everything|images?|photos?|pictures?|names?|scripts?|notes?"
    r"|pages?|ones?)\b"
    r"[^.;,]{0,30}?\b(?:(?P<start>start\w*|begin\w*|prefixed)\s+(?:with|in|by)|(?P<end>end\w*"
    r"|suffixed)\s+(?:in|with|on)"
    r"|(?P<have>with|contain\w*|includ\w*|ha(?:s|ve|ving)|carr\w+))\s+(?:the (?:prefix|suffix|letters?"
    r"|word) |an? )?"
    r"[`\"']?(?P<what>\.?[\w-]*[\w.-]*\w)[`\"']?(?P<in> (?:in|at the (?:start|end|beginning) of)"
    r" (?:the|its|their) (?:file ?)?names?)?"
)
"""Files told by a part of their names."""

_TOP = compiled(
    r"\b(?:top[- ]level|(?:(?:repo\w*|project|workspace) )?root)(?: of (?:the|this|our) (?:repo\w*"
    r"|project|workspace))?(?: (?:folder"
    r"|directory))?\b"
)
_CODE = frozenset(suffix[1:] for suffix in LANGUAGE_OF)
_PLAIN_WORDS = vocabulary("run do as id is in it at if go so us me my no on or to we max min any all set get")


@cache
def extensions() -> frozenset[str]:
    """Return the extensions of files that are known, without the dot."""
    known = {suffix[1:] for suffix in mimetypes.MimeTypes(filenames=()).types_map[True]}
    for patterns in _languages().values():
        known |= {glob[2:] for glob in patterns if re.fullmatch(r"\*\.[a-z][\w+]*", glob)}
    return frozenset(known | _MORE_EXTENSIONS) - _PLAIN_WORDS


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """Return the file name patterns of languages and formats, by each of their names."""
    from pygments.lexers import get_all_lexers  # noqa: PLC0415 - only rules about kinds of files need it

    found: dict[str, tuple[str, ...]] = {}
    for name, aliases, patterns, _ in get_all_lexers(plugins=False):
        for one in (name.lower(), *aliases):
            if patterns and one not in _PLAIN_WORDS:
                found.setdefault(one, tuple(patterns))
    return found


_KIND = compiled(
    r"(?<![\w./-])(?P<name>[A-Za-z][\w#+-]*)[ -](?:files?|scripts?|modules?|sources?|code|documents?"
    r"|docs?|exports?"
    r"|templates?|manuscripts?|pages?)\b(?! (?:folder|directory|dir|review)\b)"
    r"|(?<=\bno )(?P<bare>[A-Za-z]\w+)(?= (?:goes|go|lands?|belongs?|in|into|at|to|under)\b)"
)
_ACRONYM = re.compile(r"(?<![\w./-])(?P<name>[A-Z]{3,4})s(?![\w./-])")
_NO_KIND = vocabulary(
    "a an any text plain source new old other the code test html5 raw output console template data"
)


@lru_cache(maxsize=512)
def globs_in(words: str) -> tuple[str, ...]:
    """Return the globs of the files that words name; of a kind of file in a folder, only those in it.

    >>> globs_in("PDFs in contracts/"), globs_in("our Kotlin files")
    (('contracts/**/*.pdf',), ('**/*.kt', '**/*.kts'))
    """
    named = tuple(dict.fromkeys(glob for _, _, globs in named_paths(words) for glob in globs))
    kinds = tuple(dict.fromkeys(glob for _, _, globs in _kinds(words) for glob in globs))
    if not named and _TOP.search(words):
        return tuple(glob.replace("**/", "/") for glob in kinds) or ("/*",)
    folders = [glob for glob in named if glob.endswith("/**")]
    if folders and kinds and all(kind.startswith("**/*.") for kind in kinds):
        inside = tuple(folder.removesuffix("**") + kind for folder in folders for kind in kinds)
        return (*inside, *(glob for glob in named if glob not in folders))
    return tuple(dict.fromkeys((*named, *kinds)))


def masked(words: str) -> str:
    """Return words with a mark in the place of each file, folder and kind of file.

    >>> masked("Never edit the CSVs in exports/ by hand.")
    'Never edit the ▮ in ▮ by hand.'
    """
    spans = sorted(
        {(start, end) for start, end, _ in (*named_paths(words), *_kinds(words), *_top(words))}, reverse=True
    )
    last = len(words)
    for start, end in spans:
        if end <= last:
            words, last = f"{words[:start]}{MARK}{words[end:]}", start
    return words


def _top(words: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    yield from ((match.start(), match.end(), ()) for match in _TOP.finditer(words))


def _kinds(words: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield kinds of files: by the table, by the name of a language, or by an extension."""
    for pattern, globs in _file_kinds():
        for match in pattern.finditer(words):
            yield match.start(), match.end(), globs
    for match in _KIND.finditer(words):
        name = (match["name"] or match["bare"]).lower()
        if name in _NO_KIND or any(re.fullmatch(kind, match.group().lower()) for kind in FILE_KINDS):
            continue
        if name in _languages() and _is_language(match):
            globs = tuple(f"**/{glob}" for glob in _languages()[name] if re.fullmatch(r"\*\.[a-z]\w*", glob))
        else:
            globs = (f"**/*.{name}",) if name in extensions() - _MORE_EXTENSIONS else ()
        if globs:
            yield match.start(), match.end(), globs
    yield from _by_name(words)
    for match in _ACRONYM.finditer(words):
        if match["name"].lower() in extensions():
            yield match.start(), match.end(), (f"**/*.{match['name'].lower()}",)


@cache
def _file_kinds() -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
    pattern = r"\b(?:%s)\b(?! (?:folder|directory|dir)\b)"
    return [(re.compile(pattern % kind, re.IGNORECASE), globs) for kind, globs in FILE_KINDS.items()]


def _by_name(words: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield files told by a part of their names."""
    for match in _NAMED.finditer(words):
        part = match["what"]
        if match["have"] and not match["in"]:
            continue
        form = f"*{part}" if part.startswith(".") or (match["end"] and "." in part) else f"*{part}*"
        form = f"{part}*" if match["start"] else f"*{part}.*" if match["end"] and "." not in part else form
        if re.search(r"[_.-]|\d", part) or match["in"] or match["noun"].startswith("name"):
            yield match.start(), match.end(), (f"**/{form}",)


def _is_language(match: re.Match[str]) -> bool:
    """Return whether a name of a language, which may be an ordinary word, means the language."""
    name = match["name"] or match["bare"]
    shaped = re.search(r"[A-Z].*[A-Z]", name)
    known = shaped or f"*.{name.lower()}" in _languages()[name.lower()] or languages_in(match.group())
    return bool(known) or (match.start() > 0 and not name.islower())


def formats_in(words: str) -> tuple[str, ...]:
    """Return the globs of languages and formats that words name as such, with two capital letters.

    >>> formats_in("GDScript lines"), formats_in("Clean lines")
    (('**/*.gd',), ())
    """
    named = (_languages().get(name.lower(), ()) for name in re.findall(r"\b[A-Z]\w*[A-Z]\w*", words))
    return tuple(f"**/{glob}" for globs in named for glob in globs if glob.startswith("*."))


def languages_in(words: str) -> tuple[str, ...]:
    """Return the ast-grep names of the programming languages that words name."""
    found: dict[str, None] = {}
    for name, languages in LANGUAGES.items():
        if re.search(rf"(?<![\w.]){name}(?![\w+#])", words, 0 if name == "Go" else re.IGNORECASE):
            found |= dict.fromkeys(languages)
    return tuple(found)


_IMPORTED = compiled(
    r"\b(?:log|logs|logging|(?:us|import)(?:e|es|ing)?|via|prefer|import|depend on)(?: with)? [`\"']?$"
)


def named_paths(words: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield where words name a path, where that ends, and its globs."""
    for match in _PATH.finditer(words):
        name = (match["quoted"] or match["bare"] or "").strip()
        if folder := match["called"] or match["titled"] or match["folder"]:
            group = next(name for name in ("called", "titled", "folder") if match[name])
            yield match.start(group), match.end(), (f"{folder}/**", f"**/{folder}/**")
        elif (
            name and _IMPORTED.search(words[: match.start()]) and re.fullmatch(r"[\w@.-]+(?:/[\w-]+)+", name)
        ):
            continue  # a package
        elif name and not _NO_PATH.match(name) and "://" not in name and _is_meant(match, name):
            yield match.start(), match.end(), globs_of(name)


def _is_meant(match: re.Match[str], name: str) -> bool:
    if match["quoted"]:
        return is_path(name)
    extension = match["extension"] or (match["only"] or "").rpartition(".")[2]
    around = (
        match.string[max(0, match.start() - 4) : match.start()],
        match.string[match.end() : match.end() + 6],
    )
    told = match["only"] and (re.search(r"\ban? $", around[0]) or re.match(r"\s+files?", around[1]))
    return not extension or bool(told) or extension.lower() in extensions() | {"in", *_CODE}


def is_path(name: str) -> bool:
    """Return whether a quoted text is a path rather than code or a phrase."""
    if re.search(r"\(|\.\.\.|^\d|^(?:console|fmt|System|np|os|logging)\.|[<>=;:]", name):
        return False
    if "/" in name:
        return bool(re.fullmatch(r"/?\.?[\w@*{][\w .@*/{}-]*", name)) and not name.startswith("@")
    return bool(re.fullmatch(r"\.?[\w*-]+(\.[\w*-]+)*", name)) and (
        name.rpartition(".")[2].lower() in extensions()
        or name.startswith((".env", ".git"))
        or bool(re.fullmatch(r"[A-Z]\w+file", name))
    )


def globs_of(name: str) -> tuple[str, ...]:
    """Return the globs of a path as users write it: a folder includes everything below it.

    >>> globs_of("./src/api"), globs_of(".docx"), globs_of(".env")
    (('src/api/**',), ('**/*.docx',), ('.env', '**/.env'))
    """
    name = name.removeprefix("./").lstrip("/").rstrip(".,")
    if name.startswith(".") and "/" not in name:
        if (
            re.fullmatch(r"\.\w{1,4}\.\w{1,5}", name)
            and name.rpartition(".")[2].lower() in extensions() | _CODE
        ):
            return (f"**/*{name}",)
        if name[1:].lower().partition(".")[0] in extensions() - {"env"}:
            return (f"**/*{name}",)
        return (name, f"**/{name}")
    if "/" not in name:
        return (f"**/*{name}" if name.startswith(("_", "-")) else f"**/{name}",)
    last = name.rpartition("/")[2]
    if not last:
        return (f"{name}**",)
    return (name,) if "." in last.lstrip(".") or "*" in last else (f"{name}/**",)
