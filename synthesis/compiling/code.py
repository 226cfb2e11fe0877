"""Compiles rules about code: calls, constructs, annotations, arguments and names, as rules of ast-grep."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from agentx.synthesis.compiling.places import globs_in, is_path
from agentx.synthesis.compiling.reading import Clause, Reading
from agentx.synthesis.compiling.tables import (
    CALL_SHAPES,
    CALLS,
    CONSTRUCTS,
    DECLARATIONS,
    STYLES,
    TEXTUAL_CALLS,
)
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, PathCheck, StructureCheck

_NAME = r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*!?"
_CALL = compiled(
    rf"[`\"'](?P<quoted>\.?{_NAME})(?P<open>\([^`\"']{{0,40}}\))?[`\"']|(?<![\w.@`])"
    rf"(?P<bare>\.?{_NAME})\(\.{{0,3}}\)"
    r"|(?<![\w.@`/-])(?P<dotted>(?:console|fmt|os|System|Console|Thread|subprocess|pickle|binding|time"
    r"|localStorage|Math"
    r"|window|document|datetime|DateTime)\.[A-Za-z_][\w.]*|printf|println!?|panic!|todo!|dbg!|unwrap"
    r"|malloc|calloc|realloc|strcpy"
    r"|strcat|sprintf|gets|eval|var_dump|print_r|setTimeout|setInterval|exec|print|panic|free|alloca|puts"
    r"|byebug|alert)(?![\w-])"
)
_CODE_BAN = compiled(
    r"\b(?:never|not?|don'?t|avoid|stop|mustn'?t|cannot|can'?t|forbidden|banned|nothing|without|none"
    r"|prohibited|disallowed)\b"
)
_NOT_CALLS = compiled(
    r"\b(?:words?|phrases?|terms?|run|commands?|flags?|packages?|librar(?:y|ies)|dependenc\w+|folders?"
    r"|files? (?:named|called))\b"
)
_COMMON = frozenset(["exec", "print", "free", "puts", "panic", "eval", "alert", "expect"])
_TEST_BLOCK = {"inside": {"kind": "mod_item", "regex": r"^(?:pub\s+)?mod\s+tests?\b", "stopBy": "end"}}

_OUTSIDE_PACKAGE = compiled(
    r"\b(?:outside|except in|other than in|apart from)(?: of)? (?:the )?(?:package"
    r" )?[`\"']?(?P<name>main)\b"
)

_STYLE = compiled(
    r"\b(?P<what>(?:(?:python|typescript|java|c#|go|ruby|php|rust|kotlin|js|ts|react|public|test|all|the"
    r"|every|each|any)\s)*"
    r"(?P<kind>functions?|methods?|class(?:es)?|interfaces?|structs?|enums?|hooks?|exceptions?|files?|file"
    r" ?names?|components?))\b"
)
_PREFIX = compiled(
    r"\b(?:starts?|begins?|prefix(?:ed)?)\b(?: \w+){0,3}? (?:with|by)(?: (?:an?|the)\b)?(?: (?:prefix"
    r"|letter|capital|uppercase))* ?[`\"']?(?P<affix>[A-Za-z_]{1,16})(?:-|…|\.{3}|\*)?[`\"']?(?=$|[\s,.)])"
)
_SUFFIX = compiled(
    r"\b(?:ends?|suffix(?:ed)?)\b(?: \w+){0,2}? (?:in|with|by)(?: (?:an?|the)\b)?(?: suffix)? ?[`\"']?(?:-"
    r"|…|\.{3}|\*)?(?P<affix>[A-Za-z_]{2,24}(?:\.[a-z]+)*)[`\"']?(?=$|[\s,.)])"
)
_RETURNS = compiled(r"\b(?:that |which )?return(?:s|ing)? (?:an? )?[`\"']?(?P<type>[A-Z]\w+)")
_ANNOTATION = compiled(r"@(?P<name>[A-Za-z_][\w.]*)")
_MUST = compiled(r"\b(?:must|has to|have to|needs?|should|carr(?:y|ies)|gets?|requires?|always|is to)\b")
_EVERY_CALL = compiled(
    r"\b(?:every|each|all|any)\b (?:(?:single|new|http|outgoing) )*(?:calls? (?:to|of|on) )?[`\"']?"
    r"(?P<name>[a-z_]\w*(?:\.\w+)*)(?:\(\))?[`\"']?"
    r"(?: calls?)?(?: \((?P<some>[\w, /.]+)\))?[^.;]{0,20}?\b(?:has to|have to|must|needs?(?: to)?|should"
    r"|gets?|requires?)\b[^.;]{0,30}?"
    r"\b(?:pass|set|specif\w+|with|have|give|a|an|explicit)\b (?:an? |the |explicit )*[`\"']?"
    r"(?P<argument>[a-z_]+)[`\"']?(?:=| argument| parameter|$|\s|[,.])"
)


def compile_code(reading: Reading) -> tuple[Check, ...]:
    """Return the checks of a rule about code."""
    unlimited = () if reading.unplaced else (_constructs, _calls)
    for compiler in (_names, _annotations, _arguments, *unlimited):
        if checks := tuple(compiler(reading)):
            return checks
    return ()


def _structure(
    reading: Reading, languages: Iterable[str], rule: dict[str, Any], **more: Any
) -> StructureCheck:
    languages = tuple(dict.fromkeys(languages))
    if reading.exceptions and "rust" in languages:
        rule = {"all": [rule, {"not": _TEST_BLOCK}]}
    if "go" in languages and (package := _OUTSIDE_PACKAGE.search(reading.words)):
        clause = {"kind": "package_clause", "regex": rf"\s{package['name']}$"}
        rule = {"all": [rule, {"not": {"inside": {"kind": "source_file", "has": clause, "stopBy": "end"}}}]}
    return StructureCheck(
        languages=languages, rule=rule, paths=reading.globs, exceptions=reading.exceptions, **more
    )


# --- constructs and calls ---


def _constructs(reading: Reading) -> Iterator[Check]:
    for clause in reading.clauses:
        if not clause.bans and not re.search(r"(?i)\bnot\b|instead|rather|never|over", clause.words):
            continue
        for wording, languages, rule in CONSTRUCTS:
            meant = tuple(one for one in languages if not reading.languages or one in reading.languages)
            match = re.search(wording, clause.words, re.IGNORECASE)
            if match and meant and _is_banned(clause.words, match.start()):
                yield _structure(reading, meant, dict(rule))


def _is_banned(words: str, at: int) -> bool:
    """Return whether the words at a position are what is forbidden, not what to use instead."""
    before, after = words[:at].lower(), words[at:].lower()
    if re.search(
        r"\b(?:use|prefer|stick to|always|with|go with|write)\b(?:(?!\b(?:not|never|don't|instead of"
        r"|rather than|over|no)\b).)*$",
        before,
    ) and not re.search(
        r"\b(?:never|not|don'?t|avoid|stop|nothing|no|cannot|can't|mustn't|instead of|over)\b[^,;]*$",
        before,
    ):
        return bool(re.search(r"^\W*[^,;]{0,60}\b(?:is|are) (?:\w+ )?(?:banned|forbidden|prohibited)", after))
    return bool(
        _CODE_BAN.search(before) or re.search(r"\b(?:instead of|rather than|over)\b", before)
    ) or bool(
        re.search(
            r"\b(?:banned|forbidden|prohibited|off[ -]limits|taboo|no[- ]go|not (?:be )?(?:allowed|used"
            r"|appear|called)|never)\b|n't\b",
            after,
        )
    )


def _calls(reading: Reading) -> Iterator[Check]:
    for clause in reading.clauses:
        if _NOT_CALLS.search(clause.words) and not re.search(r"(?i)\bcalls?\b|\(\)", clause.words):
            continue
        names = list(dict.fromkeys(_called(clause, reading)))
        if not names:
            continue
        for languages, group in _by_languages(names, reading):
            yield from _call_checks(reading, languages, group)
        return


def _called(clause: Clause, reading: Reading) -> Iterator[str]:
    if not clause.bans and not re.search(r"(?i)\binstead of\b|\brather than\b", clause.words):
        return
    for match in _CALL.finditer(clause.words):
        name = (match["quoted"] or match["bare"] or match["dotted"]).rstrip(".")
        if (
            match["quoted"]
            and not match["open"]
            and (is_path(name) and "." in name.strip(".") and not _known(name))
        ):
            continue
        sure = match["bare"] or match["open"] or _known(name.lstrip("."))
        if match["dotted"] in _COMMON and not (
            reading.languages
            or re.search(r"(?i)\bcalls?\b|\bstatements?\b|\bcode\b|\bfunctions?\b|forbidden", clause.words)
            or reading.globs
        ):
            continue
        if sure and _is_banned(clause.words, match.start()):
            yield name


def _known(name: str) -> tuple[str, ...]:
    found = [one for names, languages in CALLS.items() if re.fullmatch(names, name) for one in languages]
    return tuple(dict.fromkeys(found))


def _by_languages(names: Iterable[str], reading: Reading) -> list[tuple[tuple[str, ...], list[str]]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    every = tuple(one for shape in (*CALL_SHAPES, *TEXTUAL_CALLS) for one in shape[0])
    for name in names:
        languages = reading.languages or _known(name.lstrip(".")) or tuple(dict.fromkeys(every))
        groups.setdefault(languages, []).append(name)
    return list(groups.items())


def _call_checks(reading: Reading, languages: tuple[str, ...], names: list[str]) -> Iterator[Check]:
    called = "|".join(
        rf"(?:.*[.>:])?{re.escape(name.lstrip('.').rstrip('!'))}"
        if name.startswith(".") or ("." not in name and reading.languages == ("rust",))
        else re.escape(name.rstrip("!"))
        for name in names
    )
    macros = any(name.endswith("!") for name in names)
    for known, kind, field in CALL_SHAPES:
        meant = tuple(one for one in languages if one in known)
        if (
            meant
            and (kind != "macro_invocation" or macros)
            and not (macros and meant == ("rust",) and field == "function")
        ):
            pattern = rf"(?s)^(?:{called})$"
            if field == "function" and "rust" in meant:
                pattern = rf"(?s)^(?:.*\.)?(?:{'|'.join(re.escape(one.lstrip('.')) for one in names)})$"
            yield _structure(reading, meant, {"kind": kind, "has": {"field": field, "regex": pattern}})
    for known, kind in TEXTUAL_CALLS:
        if meant := tuple(one for one in languages if one in known):
            yield _structure(reading, meant, {"kind": kind, "regex": rf"^(?:{called})\s*\("})


# --- annotations and arguments ---


def _annotations(reading: Reading) -> Iterator[Check]:
    """Yield the check of "each method with @A must have @B", in Java and Kotlin."""
    for clause in reading.clauses:
        names = [(match.start(), match["name"]) for match in _ANNOTATION.finditer(clause.words)]
        must = _MUST.search(clause.words)
        if not must or clause.words.lower().startswith(("never", "don't")):
            continue
        given = [name for at, name in names if at < must.start()]
        wanted = [name for at, name in names if at > must.start()]
        if not given or len(wanted) != 1:
            continue
        if re.search(
            r"(?i)\b(?:and friends|etc|and so on|and the like|whatever)\b|\*", clause.words[: must.start()]
        ):
            common = re.search(r"[A-Z][a-z]+$", given[0])
            given = [rf"\w*{common.group()}"] if common else given
        pattern, needed = "|".join(given), re.escape(wanted[0])
        rule = {
            "kind": "method_declaration",
            "has": {"kind": "modifiers", "regex": rf"@(?:{pattern})\b"},
            "not": {"has": {"kind": "modifiers", "regex": rf"@{needed}\b"}},
        }
        yield _structure(reading, ("java",), rule)
        return


def _arguments(reading: Reading) -> Iterator[Check]:
    """Yield the check of "every call to X must pass Y", in Python."""
    match = _EVERY_CALL.search(reading.words)
    if (
        not match
        or not re.search(r"(?i)\bcalls?\b|\(\)", match.group())
        or (reading.languages and "python" not in reading.languages)
    ):
        return
    name = match["name"]
    if name in ("function", "method", "call", "api", "network", "database"):
        return
    function = (
        re.escape(name)
        if "." in name or (match["some"] is None and name in ("open", "print"))
        else rf"{re.escape(name)}\.(?:get|post|put|patch|delete|head|options|request|run|call|Popen"
        rf"|check_output|check_call)"
    )
    rule = {
        "kind": "call",
        "has": {"field": "function", "regex": rf"^{function}$"},
        "not": {
            "has": {
                "field": "arguments",
                "has": {"kind": "keyword_argument", "regex": rf"^{match['argument']}\b"},
            }
        },
    }
    yield _structure(reading, ("python",), rule)


# --- names ---


def _names(reading: Reading) -> Iterator[Check]:
    for clause in reading.clauses:
        what = _STYLE.search(clause.words)
        form = _form(clause.words)
        if not what or not form or clause.words.lower().startswith(("never", "don't", "no ")):
            continue
        kind = what["kind"].lower()
        if kind.startswith(("file", "component")):
            if not re.search(r"(?i)\bfile ?names?\b|\bnam(?:e|ed|ing)\b|\bcalled\b|case\b", clause.words):
                continue
            yield _file_names(reading, form)
            return
        returns = _RETURNS.search(clause.words)
        for names, shapes in DECLARATIONS.items():
            if re.fullmatch(names, kind):
                yield from _named(reading, shapes, form, returns["type"] if returns else "")
                return


def _file_names(reading: Reading, form: str) -> PathCheck:
    kinds = tuple(
        f"**/*.{suffix}"
        for language, suffix in (
            ("python", "py"),
            ("typescript", "ts"),
            ("tsx", "tsx"),
            ("go", "go"),
            ("rust", "rs"),
        )
        if language in reading.languages
    )
    folders = globs_in(reading.words)
    return PathCheck(
        paths=folders or kinds,
        exceptions=reading.exceptions,
        name=rf"(?:{form})(?:\.[\w.-]+)?|[A-Z]+\.md|[._]\w.*",
    )


def _named(
    reading: Reading, shapes: Iterable[tuple[tuple[str, ...], str]], form: str, returns: str
) -> Iterator[Check]:
    languages = reading.languages
    if not languages and reading.globs:
        languages = tuple(
            one
            for one, suffix in (("python", ".py"), ("typescript", ".ts"), ("tsx", ".tsx"), ("go", ".go"))
            if any(glob.endswith(suffix) for glob in reading.globs)
        )
    if not languages:
        return
    for known, node in shapes:
        meant = tuple(one for one in known if one in languages)
        if not meant or (returns and node not in ("method_declaration", "function_declaration")):
            continue
        rule: dict[str, Any] = {"kind": node, "has": {"field": "name", "pattern": "$NAME"}}
        if returns:
            field = "returns" if "csharp" in meant else "type"
            rule = {"all": [rule, {"has": {"field": field, "regex": rf"^{returns}\b"}}]}
        yield _structure(
            reading,
            meant,
            rule,
            names={"NAME": rf"(?:__\w+__|Main|{form})" if "python" in meant or returns else form},
        )


def _form(words: str) -> str:
    for style, pattern in STYLES.items():
        match = re.search(rf"\b(?:{style})\b", words, re.IGNORECASE)
        if match and not re.search(
            r"\b(?:not|never|no|instead of|rather than|n't)\b[^,]{0,12}$", words[: match.start()].lower()
        ):
            return pattern
    if match := _SUFFIX.search(words):
        return rf"\w*{re.escape(match['affix'])}"
    if match := _PREFIX.search(words):
        return rf"{re.escape(match['affix'])}\w*"
    return ""
