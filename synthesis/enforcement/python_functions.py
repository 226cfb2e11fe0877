"""Python functions as the checks see them: names, decorators, and matching against the words of a rule.

"Data-fetching" is understood (see :func:`fetches_data`), and so are ``async``, ``public``, ``private`` and
``test``. Any other description is matched against the words of a function's name and docstring.
"""

import ast
import re
import warnings
from collections.abc import Iterator

import msgspec

from agentx.synthesis.language.words import content_words, stem, vocabulary, words_of

FETCHING_NAMES = vocabulary("fetch download retrieve query request pull poll scrape crawl stream")
"""First words of function names that fetch data, whatever the body does."""

READING_NAMES = vocabulary("get load read list find select search lookup collect import receive obtain")
"""First words that count only if the body calls something other than a builtin: a plain getter fetches
nothing."""

FETCHING_ROOTS = vocabulary(
    """
    requests httpx aiohttp urllib urllib3 urlopen session client http cursor conn connection db database
    engine redis boto3 s3 grpc sqlite3 psycopg psycopg2 pymongo collection queryset api
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

FETCHING_CALLS = vocabulary("urlopen urlretrieve read_sql read_sql_query read_sql_table read_gbq")
"""Calls that fetch data on any object or module."""

FETCHING_DESCRIPTIONS = vocabulary("fetch retriev download api network http databas db queri request")
"""Stems in a rule's description that mean fetching data."""

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
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_MAX_SOURCE = 2_000_000


class PythonFunction(msgspec.Struct, frozen=True):
    """A function of a module or a class; functions inside functions are not covered.

    Attributes:
        name: Qualified name in the module (``Client.fetch``).
        line: Line of its ``def``, from 1.
        decorators: Dotted names of its decorators, without ``@`` and call arguments.
    """

    name: str
    line: int
    decorators: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef


def parse_python(source: str) -> ast.Module | str:
    """Return the syntax tree of a module, or why it has none ("line 3 is not valid Python")."""
    if len(source) > _MAX_SOURCE:
        return f"it is longer than {_MAX_SOURCE:,} characters"
    try:
        with warnings.catch_warnings():
            # the warning about an invalid escape in an agent's file is not ours to show
            warnings.simplefilter("ignore")
            return ast.parse(source.removeprefix("\ufeff"))
    except SyntaxError as error:
        return f"line {error.lineno or 1} is not valid Python"
    except (ValueError, RecursionError, MemoryError, UnicodeEncodeError):
        return "it is not valid Python"


def functions_of(tree: ast.Module) -> Iterator[PythonFunction]:
    """Yield the functions and methods of a module."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        inner: list[tuple[ast.AST, str]] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                names = tuple(name for decorator in child.decorator_list if (name := _dotted(decorator)))
                yield PythonFunction(f"{prefix}{child.name}", child.lineno, names, child)
            elif isinstance(child, ast.ClassDef):
                inner.append((child, f"{prefix}{child.name}."))
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                inner.append((child, prefix))
        stack += reversed(inner)


def names_defined(source: str) -> frozenset[str]:
    """Return the qualified names of functions in a text; if it does not parse, the names after ``def``."""
    tree = parse_python(source)
    if isinstance(tree, ast.Module):
        return frozenset(function.name for function in functions_of(tree))
    return frozenset(match.group(1) for match in _DEFINITION.finditer(source))


def is_meant(function: PythonFunction, description: str) -> bool:
    """Return whether a rule's description matches a function; an empty description matches every function.

    Args:
        function: The function.
        description: In the user's words ("data-fetching", "async", "payment").
    """
    name = function.node.name
    if name.startswith("__") and name.endswith("__"):
        return False
    described = [
        word.lower()
        for word in words_of(description)
        if word.lower() not in {"new", "data", "function", "functions", "python"}
    ]
    if not described:
        return True
    return all(_is_kind(function, word) for word in described)


def _is_kind(function: PythonFunction, word: str) -> bool:
    name = function.node.name
    if stem(word) in FETCHING_DESCRIPTIONS or word in {"calling", "loading"}:
        return fetches_data(function.node)
    match word:
        case "async" | "asynchronous":
            return isinstance(function.node, ast.AsyncFunctionDef)
        case "public":
            return not name.startswith("_")
        case "private":
            return name.startswith("_")
        case "test":
            return name.startswith("test")
        case _:
            said = content_words(f"{function.name} {ast.get_docstring(function.node) or ''}")
            return stem(word) in said


def fetches_data(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function fetches data, judged by its name and the calls in its body.

    It does in one of these cases; tests never do:

    - Its name begins with a word of :data:`FETCHING_NAMES`.
    - Its name begins with a word of :data:`READING_NAMES`, and it is ``async`` or calls something other than
      a builtin.
    - Its body calls a client (``requests.get``, ``cursor.execute``).
    - It returns the result of a ``fetch_…`` call.
    """
    parts = [
        word.lower()
        for word in words_of(node.name.strip("_"))
        if word.lower() not in {"async", "aio", "do", "try", "safe"}
    ]
    first = parts[0] if parts else ""
    if first in {"test", "tests", "mock", "fake"}:
        return False
    if first in FETCHING_NAMES:
        return True
    decorators = {inner for decorator in node.decorator_list for inner in ast.walk(decorator)}
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call) and call not in decorators]
    if first in READING_NAMES and (
        isinstance(node, ast.AsyncFunctionDef) or any(not _is_pure(call) for call in calls)
    ):
        return True
    return any(_fetches(call) for call in calls) or _returns_fetched(node)


def _is_pure(call: ast.Call) -> bool:
    name = _dotted(call.func)
    if not name:
        return isinstance(call.func, ast.Attribute) and call.func.attr in _PURE_METHODS
    last = name.rpartition(".")[2]
    return name in _PURE or ("." in name and last in _PURE_METHODS) or last[:1].isupper()


def _fetches(call: ast.Call) -> bool:
    name = _dotted(call.func)
    parts = [part.strip("_").lower() for part in name.split(".")]
    if parts[-1] in FETCHING_CALLS:
        return True
    return (
        len(parts) > 1
        and parts[-1] in FETCHING_METHODS
        and any(part in FETCHING_ROOTS for part in parts[:-1])
    )


def _returns_fetched(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether it returns the result of a ``fetch_…`` call, directly or through a variable."""
    fetched: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and _is_fetch(inner.value):
            fetched |= {target.id for target in inner.targets if isinstance(target, ast.Name)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Return) and inner.value is not None:
            value = inner.value
            if _is_fetch(value) or (isinstance(value, ast.Name) and value.id in fetched):
                return True
    return False


def _is_fetch(value: ast.expr) -> bool:
    bare = value.value if isinstance(value, ast.Await) else value
    if not isinstance(bare, ast.Call):
        return False
    words = words_of(_dotted(bare.func).rpartition(".")[2].strip("_"))
    return bool(words) and words[0].lower() in FETCHING_NAMES


def _dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for a name, an attribute or a call of one; empty for anything else."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Call(func=inner):
                node = inner
            case ast.Attribute(value=inner, attr=attr):
                parts.append(attr)
                node = inner
            case ast.Name(id=name):
                return ".".join([name, *reversed(parts)])
            case _:
                return ".".join(reversed(parts)) if parts else ""
