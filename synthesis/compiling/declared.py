"""Compiles rules about declarations and calls: their names, and the marks and arguments they must have."""

import re
from collections.abc import Iterator
from typing import Any

from agentx.synthesis.compiling.reading.mentions import Mention, mentions_of
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import sentences_of, stance
from agentx.synthesis.compiling.reading.tables import DECLARATIONS, ENDPOINTS, QUALIFIERS, STYLES
from agentx.synthesis.compiling.reading.where import Where, files_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.checks import Check, DecoratorCheck, PathCheck, StructureCheck

# --- names ---

_AFFIX = (
    r"(?:-|\*|…|\.{3}|<\w+>|\{\w+\})*(?P<affix>(?:\.|_|@)?[A-Za-z][\w.]*?|_)(?:-|\*|…|\.{3}|<\w+>"
    r"|\{\w+\})*"
)
_LEAD = r"(?:(?:an?|the|capital|uppercase|lowercase|letter|word|suffix|prefix|literal) )*"
_SUFFIXES = (
    compiled(
        rf"\b(?:ends?|ending|suffixed|finish(?:es)?)\b(?: \w+){{0,2}}? (?:in|with|by"
        rf"|on) {_LEAD}[`\"']?{_AFFIX}[`\"']?(?=$|[\s,.;:!)])"
    ),
    compiled(
        r"[`\"']?(?<![\w])(?-i:-?(?P<affix>_?[A-Z]\w+|_\w+|\.\w[\w.]*))[`\"']?[ -](?:suffix(?:es)?"
        r"|ending|at the end)\b"
    ),
    compiled(r"\bsuffix(?:es)?:? (?:is |of |called )?[`\"'](?P<affix>[\w.-]+)[`\"']"),
)
_PREFIXES = (
    compiled(
        rf"\b(?:starts?|starting|begins?|beginning|prefix(?:ed)?)\b(?: \w+){{0,2}}? (?:with"
        rf"|by) {_LEAD}[`\"']?{_AFFIX}[`\"']?(?=$|[\s,.;:!)])"
    ),
    compiled(r"[`\"']?(?<![\w])(?-i:(?P<affix>[A-Z]\w{0,12}|\w{1,12}_))[`\"']?-?[ -]prefix(?:es)?\b"),
    compiled(r"\bprefix(?:es)?:? (?:is |of |called )?[`\"'](?P<affix>[\w.-]+)[`\"']"),
)
_FILE_NAMES = compiled(
    r"\b(?:file ?names?|filenames?|names? of (?:the |new |all )*(?:\w+ )?files?|(?:files?|notes?|posts?"
    r"|chapters?|drafts?|scripts?"
    r"|migrations?|pages?|documents?|recordings?|exports?|reports?|images?|episodes?|components?|modules?"
    r"|tests?|folders?)\b[^.;]{0,40}?\b"
    r"(?:nam(?:e|ed|es|ing)|called|case)|name (?:the |new |all |your )*(?:\w+ ){0,2}?"
    r"(?:files?|migrations?|scripts?|notes?|posts?|chapters?|drafts?|reports?"
    r"|images?|tests?))\b"
)
_TEMPLATE = re.compile(
    r"[`\"'](?P<name>[^`\"'\s/]{3,60})[`\"']"
    r"|(?<!\w)(?P<bare>Y{4}-?M{2}-?D{2}[\w.<>{}*-]*|N{2,4}[-_][\w.<>{}*-]+)"
)
_SUFFIXED = (r"\.md", r"\.mdx", r"\.txt", r"\.sql", r"\.csv", r"\.pdf", r"\.docx", r"\.xlsx")
_HOLES = (
    (r"YYYY|yyyy", r"\\d{4}"),
    (r"MM|DD|HH|mm|dd|SS", r"\\d{2}"),
    (r"N{2,6}|#{2,6}|X{3,6}", r"\\d+"),
    (r"\\?<[\w -]+\\?>|\\\{[\w -]+\\\}|\\\*|\\\[[\w -]+\\\]|…|\\\.\\\.\\\.", r"[\\w.-]+"),
    (
        (
            r"(?<![A-Za-z])(?:(?:some|your|the|my|short|post)-)?(?:slug|title|name|topic|short-title"
            r"|description)\b"
        ),
        r"[\\w.-]+",
    ),
)
"""Parts of a file name that vary, escaped, and the regular expression of what takes their place."""

_RETURNS = compiled(r"\breturn(?:s|ing)? (?:an? )?[`\"']?(?P<type>[A-Z]\w+)")
_NO_NAMES = compiled(
    r"\b(?:branch(?:es)?|commits?|tags?|pull requests?|columns?|tables?|keys?|urls?"
    r"|routes?|env(?:ironment)? var\w*|css class\w*)\b"
)


def compile_names(reading: RuleReading, where: Where) -> Iterator[Check]:
    """Yield the checks of how files or declarations are named."""
    for start, end in sentences_of(reading.words):
        words = reading.words[start:end]
        form, found = _form(words)
        named = _template(words)
        if (named.endswith(_SUFFIXED) or _FILE_NAMES.search(words)) and (named := named or form):
            yield _file_names(where, named if found != "banned" else rf"(?!{named}).*")
            return
        kinds = list(_kinds(words))
        if not form and kinds and (form := _template(words)):
            found = "wanted"
        if not form or not kinds or _NO_NAMES.search(words):
            continue
        form = rf"(?!(?:{form})$).*" if found == "banned" else form
        for shapes in kinds:
            yield from _named(where, shapes, form, words)
        return


def _form(words: str) -> tuple[str, str]:
    """Return the regular expression of the form of names that words demand or forbid, and which of both."""
    banned = ""
    for style, whole in STYLES.items():
        for match in re.finditer(rf"\b(?:{style})\b", words, re.IGNORECASE):
            if (found := stance(words, *match.span())) != "banned":
                return whole, found
            banned = banned or whole
    for patterns, form in ((_SUFFIXES, r"\w*{}"), (_PREFIXES, r"{}\w*")):
        for pattern in patterns:
            for match in pattern.finditer(words):
                affix, negated = match["affix"], stance(words, *match.span("affix")) == "banned"
                if affix.lower() in ("a", "an", "the", "it", "that", "with", "capital", "file", "no", "any"):
                    continue
                whole = "{}[A-Z]\\w*" if negated and form.startswith("{}") and len(affix) == 1 else form
                return whole.format(re.escape(affix)), "banned" if negated else "wanted"
    return (banned, "banned") if banned else ("", "")


def _template(words: str) -> str:
    """Return the regular expression of a file name written as a template ("YYYY-MM-DD-title.md")."""
    for match in _TEMPLATE.finditer(words):
        text = (match["name"] or match["bare"]).rstrip(".")
        pattern = re.escape(text).replace(r"\-", "-")
        for hole, put in _HOLES:
            pattern = re.sub(hole, put, pattern)
        if pattern != re.escape(text).replace(r"\-", "-") and stance(words, *match.span()) != "banned":
            return pattern if re.search(r"\.\w+$", text) else rf"{pattern}[\w.-]*"
    return ""


def _file_names(where: Where, form: str) -> PathCheck:
    whole = form if form.startswith("(?!") or re.search(r"\\\.\w+$", form) else rf"(?:{form})(?:\.[\w.-]+)?"
    paths = tuple(dict.fromkeys(filter(None, map(_folder, where.paths)))) or files_of(where.languages)
    return PathCheck(
        paths=paths,
        exceptions=where.exceptions,
        name=rf"{whole}|README.*|[A-Z]+\.md|[._]\w.*",
        doubt=where.doubt,
    )


def _folder(glob: str) -> str:
    """Return a glob, and for a template its folder; empty if it has none."""
    folder, _, name = glob.rpartition("/")
    if not _TEMPLATE.fullmatch(name):
        return glob
    return "" if folder == "**" else f"{folder}/**"


def _kinds(words: str) -> Iterator[tuple[tuple[str, str, str, dict[str, Any]], ...]]:
    for names, shapes in DECLARATIONS.items():
        if re.search(rf"\b(?:{names})\b(?! (?:names? )?(?:files?|folders?))", words, re.IGNORECASE):
            yield shapes


def _named(
    where: Where, shapes: tuple[tuple[str, str, str, dict[str, Any]], ...], form: str, words: str
) -> Iterator[Check]:
    returns = _RETURNS.search(words)
    more = [rule for wording, rule in QUALIFIERS if re.search(wording, words, re.IGNORECASE)]
    only = next((langs for wording, langs in _MEANT_IN if re.search(wording, words, re.IGNORECASE)), "")
    for names, kind, field, rule in shapes:
        meant = [one for one in names.split() if one in (where.languages or only.split() or names.split())]
        if not meant or (returns and "method" not in kind and "function" not in kind):
            continue
        whole: dict[str, Any] = {"kind": kind, "has": {"field": field, "pattern": "$NAME"}}
        extra = [*more, rule] if rule else [*more]
        if returns:
            place = "returns" if "csharp" in meant else "type"
            extra.append({"has": {"field": place, "regex": rf"^{returns['type']}\b"}})
        yield StructureCheck(
            languages=tuple(meant),
            rule={"all": [whole, *extra]} if extra else whole,
            names={"NAME": rf"(?s)(?:__\w+__|[Mm]ain|_|\W.*|{form})"},
            paths=where.paths,
            exceptions=where.exceptions,
            doubt=where.doubt,
        )


_MEANT_IN = ((r"\bAsync suffix\b|\b(?:ends? in|with) [`\"']?Async\b", "csharp"),)

# --- marks: decorators, annotations, attributes ---

_NAMED_MARK = compiled(
    r"[`\"']?(?P<name>(?-i:[A-Za-z]\w*[A-Z_.]\w*|[A-Z]\w+)|(?<=[`\"'])\w+)[`\"']?"
    r" (?:decorator|annotation|attribute)\b"
)
_MUST = compiled(
    r"\b(?:must|has to|have to|needs?|should|carr(?:y|ies)|gets?|requires?|always|is to|wears?|wants?"
    r"|without|has|have"
    r"|put|add|mark|annotate|decorate|goes? on|belongs? on|be|with|sits?)\b"
)
_FUNCTIONS = compiled(
    r"\b(?:any|all|every|each|our|no)\b(?: (?:of|the|your|our|new|single|other))* "
    r"(?P<kind>(?:(?!(?:and|or|to|in|with|of|for|that|which|must|needs?)\b)[\w/-]+ ){0,3}?)(?:functions?"
    r"|methods?|tests?)\b"
)
_ENDPOINT = compiled(
    r"(?<!\bin )\b(?:endpoints?|routes?|(?:route |request )?handlers?|controller (?:methods?"
    r"|actions?)|actions?|mappings?)\b"
)
_CLASSES = compiled(
    r"\b(?:every|each|all|any|new)\b(?: (?:new|single|of|the"
    r"|our))* (?P<name>[\w]+)(?: (?P<class>class(?:es)?))?\b"
)
_CLASS_MARKS: tuple[tuple[str, str, str], ...] = (
    ("java kotlin", "class_declaration", "modifiers"),
    ("csharp php", "class_declaration", "attribute_list"),
)


def compile_marks(reading: RuleReading, where: Where) -> Iterator[Check]:
    """Yield the check of a decorator or annotation that declarations must have."""
    if reading.unplaced and not where.paths:
        return
    for start, end in sentences_of(reading.words):
        words = reading.words[start:end]
        marks = [one for one in mentions_of(words, coded=True) if one.form == "annotation"]
        if (
            not marks
            and (match := _NAMED_MARK.search(words))
            and match["name"].lower() not in ("a", "the", "an", "that", "no", "this")
        ):
            marks = [
                Mention(
                    start=match.start("name"), end=match.end("name"), text=match["name"], form="annotation"
                )
            ]
        must = _MUST.search(words)
        wanted = [one for one in marks if _is_wanted(words, one)]
        several = must and sum(one.start > must.start() for one in wanted) > 1
        if not must or not wanted or several or re.search(r"(?i)\bclass(?:es)? and functions?\b", words):
            continue
        given = [
            one.text.lstrip("@") for one in marks if one.start < must.start() and one.start < wanted[-1].start
        ]
        mark = wanted[-1].text.lstrip("@")
        if checks := tuple(_marked(words, where, mark, [one for one in given if one != mark])):
            yield from checks
            return


def _is_wanted(words: str, mark: Mention) -> bool:
    found = stance(words, mark.start, mark.end)
    return found == "wanted" or (
        found == "banned" and bool(re.search(r"(?i)\bwithout\b[^,;]*$", words[: mark.start]))
    )


def _marked(words: str, where: Where, mark: str, given: list[str]) -> Iterator[Check]:
    fields: dict[str, Any] = {"paths": where.paths, "exceptions": where.exceptions, "doubt": where.doubt}
    if given or _ENDPOINT.search(words):
        same = re.search(r"(?i)\b(?:and friends|etc|and so on|and the like|whatever)\b", words)
        common = re.search(r"[A-Z][a-z]+$", given[0]) if given and same else None
        has = "|".join([rf"\w*{common.group()}"] if common else map(re.escape, given))
        for names, (kind, holder, usual) in ENDPOINTS:
            meant = tuple(one for one in names.split() if not where.languages or one in where.languages)
            if meant:
                present = {"has": {"kind": holder, "regex": rf"\b(?:{has or usual})\b"}}
                absent = {"not": {"has": {"kind": holder, "regex": rf"\b{re.escape(mark)}\b"}}}
                yield StructureCheck(languages=meant, rule={"kind": kind, "all": [present, absent]}, **fields)
        return
    if match := _FUNCTIONS.search(words):
        functions = match["kind"].strip().lower() + (
            " test" if "test" in match.group().lower().split()[-1] else ""
        )
        yield DecoratorCheck(decorator=mark, functions=functions.strip(), **fields)
        return
    if (match := _CLASSES.search(words)) and (
        match["class"]
        or match["name"].lower() in ("class", "classes")
        or re.search(r"(?:s|er|ity|dto)$", match["name"].lower())
    ):
        noun = match["name"].lower()
        ending = "" if noun in ("class", "classes") else re.sub(r"ies$", "y", noun).removesuffix("s")
        for names, kind, holder in _CLASS_MARKS:
            meant = tuple(one for one in names.split() if not where.languages or one in where.languages)
            rule: dict[str, Any] = {
                "kind": kind,
                "not": {"has": {"kind": holder, "regex": rf"\b{re.escape(mark)}\b"}},
            }
            if ending:
                rule["has"] = {
                    "kind": "identifier" if "kotlin" not in meant else "type_identifier",
                    "regex": rf"(?i){ending}$",
                }
            for one in meant:
                yield StructureCheck(languages=(one,), rule=rule, **fields)


# --- arguments ---

_CALLED = compiled(
    r"\b(?:every|each|all|any) [`\"']?(?P<each>fetch|open|request|subprocess\.\w+|requests\.\w+"
    r"|[a-z]\w*\.\w+)[`\"']?(?= (?:gets?|needs?|has|must|takes?|wants?)\b)"
    r"|\b(?:calls? (?:to|of|on)|calling|call) [`\"']?(?P<to>[A-Za-z_][\w.]*)[`\"']?(?:\(\))?"
    r"|[`\"']?(?<![\w'’])(?<!n['’])(?P<calls>(?!(?:every|each|all|any|the|an?|no|that|this|your|our|api|new"
    r"|single)\b)[A-Za-z_][\w.]*)(?:\(\))?[`\"']? calls?\b"
    r"|[`\"']?(?P<call>[A-Za-z_][\w.]*)\((?:\.\.\.)?\)[`\"']?"
)
_GIVEN = compiled(
    r"\b(?:gets?|needs?|takes?|must (?:have|pass|get|be given|carry|specify|set|use|include|name)|ha(?:s"
    r"|ve) to"
    r" (?:pass|have|set|get|carry|name|specify)|has|have|carr(?:y|ies)|with(?:out)?|wants?|requires?"
    r"|pass(?:es)?|sets?|specif(?:y|ies)|comes? with|should (?:have|pass|set))\b"
    r" (?:(?:an?|the|its|their|explicit|own|proper|real|always|and|ever|having|passing|setting"
    r"|handed) )*(?P<mark>[`\"'])?(?P<argument>(?!(?:no|not|never|to|in|been|only|gone)\b)[A-Za-z_]\w+)"
    r"(?:=[\w.\"'-]+)?(?P=mark)?(?P<is>=|[`\"']? (?:argument|parameter|keyword|option|set))?"
)
_ARGUMENTS: dict[str, str] = {
    "timezone": "",
    "radix": "",
    "timeouts": "timeout",
    "encoding": "encoding|utf",
    "tz": "tz|utc",
    "abortsignal": "signal",
    "context": "ctx|context",
    "ctx": "ctx|context",
    "seed": "seed|rng",
} | {
    name: name
    for name in vocabulary("timeout check signal random_state dtype limit strict shell newline index")
}
"""Usual arguments, and how a call with one shows it; empty if only a call without any is certain."""

_NO_CALLS = vocabulary(
    "function method a the every any each api network database phone video http client external all no i we"
)


def compile_arguments(reading: RuleReading, where: Where) -> Iterator[Check]:
    """Yield the check of an argument that each call of a function must have."""
    for start, end in sentences_of(reading.words):
        words = reading.words[start:end]
        called = _CALLED.search(words)
        given = _GIVEN.search(words, called.end()) if called else None
        if not called or not given or len(words[called.end() : given.start()]) > 60:  # noqa: PLR2004 - another subject
            continue
        name = called["each"] or called["to"] or called["calls"] or called["call"]
        certain = given["mark"] or given["is"] or given["argument"].lower() in _ARGUMENTS
        if name.lower() in _NO_CALLS or (called["call"] is None and not certain):
            continue
        argument = given["argument"].lower()
        shown = _ARGUMENTS.get(argument, argument if given["mark"] or given["is"] else "")
        method = "" if "." in name or called["call"] else r"(?:\.[a-z]\w*)?"
        has = {"regex": rf"(?i)\b(?:{shown})|\*\*"} if shown else {"regex": r"\(\s*[^\s)]"}
        prefix = r"(?:\w+\.)?" if "." in name else ""
        rule = {"regex": rf"^{prefix}{re.escape(name)}{method}\(", "not": has}
        yield StructureCheck(
            languages=where.languages,
            rule=rule,
            paths=where.paths,
            exceptions=where.exceptions,
            doubt=where.doubt,
        )
        return
