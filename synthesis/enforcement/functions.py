"""Functions in the languages of ast-grep: names, decorators, calls, and whether a rule's words mean them.

"Data-fetching" is understood (see :func:`_fetches_data`), and so are ``async``, ``public``, ``private`` and
``test``. Any other description is matched against the words of a function's name and docstring.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from agentx.synthesis.enforcement.breaches import CheckedChange, Side
from agentx.synthesis.enforcement.syntax_trees import language_of, tree_of
from agentx.synthesis.language.words import content_words, stem, vocabulary, words_of

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_FUNCTION_KINDS: dict[str, tuple[str, ...]] = {
    "python": ("function_definition",),
    "go": ("function_declaration", "method_declaration"),
    "rust": ("function_item",),
    "java": ("method_declaration", "constructor_declaration"),
    "kotlin": ("function_declaration",),
    "ruby": ("method", "singleton_method"),
    "php": ("function_definition", "method_declaration"),
    "csharp": ("method_declaration", "local_function_statement"),
    "c": ("function_definition",),
    "cpp": ("function_definition",),
    "swift": ("function_declaration",),
    "scala": ("function_definition",),
    "lua": ("function_declaration",),
    "bash": ("function_definition",),
} | dict.fromkeys(
    ("javascript", "typescript", "tsx"),
    ("function_declaration", "generator_function_declaration", "method_definition", "variable_declarator"),
)
"""Node types that define a function, by language."""

_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function"))
"""Values that make a variable of JavaScript a function."""

_CLASS_KINDS = frozenset((
    "class_definition", "class_declaration", "class", "impl_item", "object_declaration",
    "interface_declaration", "trait_item", "module", "struct_specifier", "class_specifier",
))  # fmt: skip
_CALL_KINDS: dict[str, tuple[str, ...]] = {
    "python": ("call",),
    "ruby": ("call",),
    "java": ("method_invocation",),
    "php": ("function_call_expression", "member_call_expression"),
    "csharp": ("invocation_expression",),
    "lua": ("function_call",),
    "bash": (),
}
"""Node types of calls, by language; ``call_expression`` of any other."""

_DECORATOR_KINDS = frozenset(
    ("decorator", "annotation", "marker_annotation", "attribute_list", "attribute_item", "attribute")
)
_HOLDERS = frozenset(("modifiers", "decorated_definition", "export_statement"))
"""Nodes beside or around a function that hold its decorators."""

_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*")
_ARGUMENTS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|<[\w, ]*>(?=\()")
_DOCSTRING = re.compile(r"\s*[rbuRBU]{0,2}(\"\"\"|''')(.*?)\1", re.DOTALL)

FETCHING_NAMES = vocabulary("fetch download retrieve query request pull poll scrape crawl stream")
"""First words of function names that fetch data, whatever the body does."""

READING_NAMES = vocabulary("get load read list find select search lookup collect import receive obtain")
"""First words of function names that may fetch data: it depends on what the body calls."""

FETCHING_ROOTS = vocabulary(
    """
    requests httpx aiohttp urllib urllib3 urlopen session client http cursor conn connection db database
    engine redis boto3 s3 grpc sqlite3 psycopg psycopg2 pymongo collection queryset api axios reqwest
    """
)
"""Modules and objects whose calls fetch data, if the method is one of :data:`FETCHING_METHODS`."""

FETCHING_METHODS = vocabulary(
    """
    get post put patch request urlopen execute executemany fetchone fetchall fetchmany query find find_one
    scan get_object send scalar scalars hgetall mget stream connect
    """
)
"""Methods that fetch data when called on one of :data:`FETCHING_ROOTS`."""

FETCHING_CALLS = vocabulary("fetch urlopen urlretrieve read_sql read_sql_query read_sql_table read_gbq")
"""Calls that fetch data on any object or module."""

FETCHING_DESCRIPTIONS = vocabulary("fetch retriev download api network http databas db queri request")
"""Stems in a rule's description that mean fetching data."""

_LOCAL_CALLS = vocabulary(
    "open read_text read_bytes readtext readfile readfilesync read_to_string readall readalltext readlines"
)
"""Calls that read a file of this machine."""

_PURE = vocabulary(
    """
    abs all any ascii bool bytes callable chr dict divmod enumerate filter float format frozenset hasattr
    hash hex id int isinstance issubclass iter len list map max min next oct ord pow print range repr
    reversed round set sorted str sum super tuple type zip getattr setattr cast deepcopy copy
    """
)
_PURE_METHODS = vocabulary(
    """
    append extend join split strip lower upper format replace items keys values startswith endswith copy
    sort rstrip lstrip title encode decode
    """
)

Likely = Literal["yes", "perhaps", "no"]


class CodeFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a module or a class; functions inside functions are not covered.

    Attributes:
        name: Its name.
        qualified: With the classes around it (``Client.fetch``).
        line: Line of its definition, from 1.
        lines: Number of lines of its definition, without decorators.
        decorators: Names of its decorators or annotations, without ``@`` and arguments.
        language: Its language.
        node: Its node.
    """

    name: str
    qualified: str
    line: int
    lines: int
    decorators: tuple[str, ...]
    language: str
    node: "SgNode"


def functions_of(change: CheckedChange, side: Side = "after") -> tuple[CodeFunction, ...]:
    """Return the functions and methods in one side of a change; none if its language has no table."""
    language = language_of(change.path)

    def read() -> tuple[CodeFunction, ...]:
        root = tree_of(change, side) if language in _FUNCTION_KINDS else None
        return () if root is None else tuple(_functions(root, language))

    return change.once(("functions", side), read)


def _functions(root: "SgNode", language: str) -> Iterator[CodeFunction]:
    kinds = _FUNCTION_KINDS[language]
    for node in root.find_all(any=[{"kind": kind} for kind in kinds]):
        value = node.field("value")
        if node.kind() == "variable_declarator" and (value is None or value.kind() not in _FUNCTION_VALUES):
            continue
        around = list(node.ancestors())
        if any(one.kind() in kinds and one.kind() != "variable_declarator" for one in around):
            continue
        if name := _name_of(node):
            outer = [_name_of(one) for one in reversed(around) if one.kind() in _CLASS_KINDS]
            place = node.range()
            yield CodeFunction(
                name=name,
                qualified=".".join([*filter(None, outer), name]),
                line=place.start.line + 1,
                lines=place.end.line - place.start.line + 1,
                decorators=tuple(dict.fromkeys(_decorators(node))),
                language=language,
                node=node,
            )


def parses(function: CodeFunction) -> bool:
    """Return whether the whole definition can be read; of other ones it is not known what they have."""
    value = function.node.field("value") or function.node
    body = value.field("body") or next((one for one in value.children() if one.kind().endswith("body")), None)
    return body is not None and bool(body.text().strip()) and function.node.find(kind="ERROR") is None


def _name_of(node: "SgNode") -> str:
    """Return the name that a definition gives; of C, the one inside its declarator."""
    declarator = node.field("declarator")
    named = node.field("name") or (node.field("type") if declarator is None else None)
    while named is None and declarator is not None:
        inner = declarator.field("declarator")
        named, declarator = (declarator, None) if inner is None else (None, inner)
    if named is None:
        named = next((one for one in node.children() if one.kind().endswith("identifier")), None)
    match = _NAME.search(named.text()) if named is not None else None
    return match.group() if match else ""


def _decorators(node: "SgNode") -> Iterator[str]:
    parent = node.parent()
    beside = [*node.children()]
    if parent is not None and parent.kind() in _HOLDERS:
        beside += parent.children()
    before = node.prev()
    while before is not None and before.kind() in _DECORATOR_KINDS | {"line_comment", "block_comment"}:
        beside.append(before)
        before = before.prev()
    beside += [inner for one in beside if one.kind() in _HOLDERS for inner in one.children()]
    for one in beside:
        if one.kind() in _DECORATOR_KINDS and (name := _NAME.search(one.text())):
            yield name.group()


# --- what a rule's words mean -------------------------------------------------------------------------------


def is_meant(function: CodeFunction, description: str) -> Likely:
    """Return whether a rule's description means a function; an empty description means every function.

    Args:
        function: The function.
        description: In the user's words ("data-fetching", "async", "payment").
    """
    if function.name.startswith("__") and function.name.endswith("__"):
        return "no"
    described = [
        word.lower()
        for word in words_of(description)
        if word.lower() not in {"new", "data", "function", "functions", "python"}
    ]
    found = [_is_kind(function, word) for word in described]
    if "no" in found:
        return "no"
    return "perhaps" if "perhaps" in found else "yes"


def _is_kind(function: CodeFunction, word: str) -> Likely:
    name = function.name
    if stem(word) in FETCHING_DESCRIPTIONS or word in {"calling", "loading"}:
        return _fetches_data(function)
    match word:
        case "async" | "asynchronous":
            fits = _is_async(function)
        case "public":
            fits = not name.startswith("_")
        case "private":
            fits = name.startswith("_")
        case "test":
            fits = name.lower().startswith("test")
        case _:
            fits = stem(word) in content_words(f"{function.qualified} {_docstring(function)}")
    return "yes" if fits else "no"


def _is_async(function: CodeFunction) -> bool:
    return function.node.text().startswith("async")


def _docstring(function: CodeFunction) -> str:
    body = function.node.field("body")
    found = _DOCSTRING.match(body.text()) if body is not None else None
    return found.group(2) if found else ""


def _fetches_data(function: CodeFunction) -> Likely:
    """Return whether a function fetches data, judged by its name and the calls in its body.

    It does if its name begins with a word of :data:`FETCHING_NAMES`, if its body calls a client
    (``requests.get``, ``cursor.execute``), if it returns the result of a ``fetch_…`` call, or if its name and
    that of a call both begin with a word of :data:`READING_NAMES`. With only its own name so, it perhaps does
    if it is ``async`` or calls something other than a builtin. What opens a local file does not; tests do
    not either.
    """
    parts = [
        word.lower()
        for word in words_of(function.name.strip("_"))
        if word.lower() not in {"async", "aio", "do", "try", "safe"}
    ]
    first = parts[0] if parts else ""
    if first in {"test", "tests", "mock", "fake"}:
        return "no"
    calls = list(_calls(function))
    if first in FETCHING_NAMES or any(map(_fetches, calls)) or _returns_fetched(function, calls):
        return "yes"
    if first not in READING_NAMES or any(call[-1].lower() in _LOCAL_CALLS for call in calls):
        return "no"
    if any(_first_word(call[-1]) in READING_NAMES | FETCHING_NAMES for call in calls if not _is_pure(call)):
        return "yes"
    return "perhaps" if _is_async(function) or not all(map(_is_pure, calls)) else "no"


def _calls(function: CodeFunction) -> Iterator[list[str]]:
    """Yield the dotted name of each call in a function, in parts."""
    kinds = _CALL_KINDS.get(function.language, ("call_expression",))
    for call in function.node.find_all(any=[{"kind": kind} for kind in kinds]) if kinds else ():
        callee, name = call.field("function") or call.field("object") or call.field("receiver"), None
        if call.field("function") is None:
            name = call.field("name") or call.field("method")
        said = ".".join(one.text() for one in (callee, name) if one is not None)
        while (shorter := _ARGUMENTS.sub("", said)) != said:
            said = shorter
        parts = [part for part in re.split(r"\.|::|->|\?\.", re.split(r"[^\w.:>?-]", said)[-1]) if part]
        if parts:
            yield parts


def _first_word(name: str) -> str:
    return next((word.lower() for word in words_of(name.strip("_"))), "")


def _is_pure(call: list[str]) -> bool:
    last = call[-1]
    return last in (_PURE if len(call) == 1 else _PURE_METHODS) or last[:1].isupper()


def _fetches(call: list[str]) -> bool:
    parts = [part.strip("_").lower() for part in call]
    if parts[-1] in FETCHING_CALLS:
        return True
    return (
        len(parts) > 1
        and parts[-1] in FETCHING_METHODS
        and any(part in FETCHING_ROOTS for part in parts[:-1])
    )


def _returns_fetched(function: CodeFunction, calls: list[list[str]]) -> bool:
    """Return whether it returns the result of a ``fetch_…`` call, directly or through a variable."""
    last = [call[-1] for call in calls]
    fetching = [name for name in last if _first_word(name) in FETCHING_NAMES]
    if not fetching:
        return False
    called = rf"(?:await\s+)?[\w.]*\b(?:{'|'.join(map(re.escape, fetching))})\s*\("
    text = function.node.text()
    made = re.findall(rf"(\w+)(?:\s*:[^=\n]+)?\s*:?=\s*{called}", text)
    wanted = "|".join((called, *(rf"{re.escape(name)}\b" for name in made)))
    return bool(re.search(rf"\breturn\s+(?:{wanted})", text))
