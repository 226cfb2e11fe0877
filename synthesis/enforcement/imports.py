"""Modules that source files import, in ten languages, by their syntax trees."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentx.synthesis.enforcement.breaches import CheckedChange, Side
from agentx.synthesis.enforcement.syntax_trees import language_of, tree_of

if TYPE_CHECKING:
    from ast_grep_py import SgNode

ECOSYSTEMS = {
    "python": "python", "javascript": "npm", "typescript": "npm", "tsx": "npm", "go": "go", "rust": "cargo",
    "java": "maven", "kotlin": "maven", "ruby": "rubygems", "php": "composer", "csharp": "nuget",
}  # fmt: skip
"""The ecosystem of the packages that a language imports."""

_JAVASCRIPT = ("import_statement", "export_statement", "call_expression")
_KINDS = {
    "python": ("import_statement", "import_from_statement", "future_import_statement"),
    **dict.fromkeys(("javascript", "typescript", "tsx"), _JAVASCRIPT),
    "go": ("import_spec",),
    "rust": ("use_declaration", "extern_crate_declaration", "scoped_identifier", "scoped_type_identifier"),
    "java": ("import_declaration",),
    "kotlin": ("import_header",),
    "ruby": ("call",),
    "php": ("namespace_use_declaration",),
    "csharp": ("using_directive",),
}
"""Node types that can import, by language."""

_COMMENTS = frozenset(("comment", "line_comment", "block_comment", "hash_bang_line", "php_tag"))


def imports_of(change: CheckedChange, side: Side) -> tuple[tuple[str, int], ...]:
    """Return the modules that one side of a change imports, each with its line."""
    language = language_of(change.path)

    def read() -> tuple[tuple[str, int], ...]:
        root = tree_of(change, side) if language in _KINDS else None
        found = () if root is None else _imports(root, language)
        return tuple(sorted(set(found), key=lambda one: one[1]))

    return change.once(("imports", side), read)


def needs_imports(change: CheckedChange) -> bool:
    """Return whether a file has code, and no syntax error: more than comments and a docstring."""
    root = tree_of(change, "after")
    if root is None or language_of(change.path) not in _KINDS or root.find(kind="ERROR") is not None:
        return False
    return any(
        child.is_named() and child.kind() not in _COMMENTS and not _is_string(child)
        for child in root.children()
    )


def _is_string(node: "SgNode") -> bool:
    inner = node.children()
    return node.kind() == "expression_statement" and len(inner) == 1 and inner[0].kind().endswith("string")


def _imports(root: "SgNode", language: str) -> Iterator[tuple[str, int]]:
    for node in root.find_all(any=[{"kind": kind} for kind in _KINDS[language]]):
        line = node.range().start.line + 1
        for module in _modules(node, language):
            yield module, line


def _modules(node: "SgNode", language: str) -> Iterator[str]:
    match language:
        case "python":
            yield from _python(node)
        case "javascript" | "typescript" | "tsx":
            yield from _javascript(node)
        case "go":
            yield from (one.text().strip('"`') for one in node.children() if one.kind().endswith("literal"))
        case "rust":
            first = node.text().removeprefix("use ").removeprefix("extern crate ").lstrip(": ")
            name = first.partition("::")[0].split(" ")[0].strip("; ")
            if name.isidentifier() and name not in ("crate", "self", "super", "std", "core", "Self"):
                yield name
        case "ruby":
            method, values = node.field("method"), node.field("arguments")
            if method is not None and values is not None and method.text() == "require":
                yield from (one.text() for one in values.find_all(kind="string_content"))
        case "php":
            yield from _php(node)
        case _:  # Java, Kotlin, C#
            words = node.text().strip("; \n").split()
            yield words[-1] if "=" in words or "as" not in words else words[words.index("as") - 1]


def _python(node: "SgNode") -> Iterator[str]:
    names = [
        one.child(0) if one.kind() == "aliased_import" else one
        for one in node.children()
        if one.kind() in ("dotted_name", "aliased_import", "wildcard_import")
    ]
    said = [name.text() for name in names if name is not None]
    if node.kind() == "import_statement":
        yield from said
    elif node.kind() == "future_import_statement":
        yield from (f"__future__.{name}" for name in said)
    elif not any(one.kind() == "relative_import" for one in node.children()):
        yield from (f"{said[0]}.{name}" for name in said[1:])


def _javascript(node: "SgNode") -> Iterator[str]:
    if node.kind() == "call_expression":
        called, values = node.field("function"), node.field("arguments")
        if called is None or values is None or called.text() not in ("require", "import", "require.resolve"):
            return
        strings = [one for one in values.children() if one.kind() in ("string", "template_string")]
    else:
        source = node.field("source")
        clause = next((one for one in node.children() if one.kind() == "import_require_clause"), None)
        named = clause.find(kind="string") if clause is not None else source
        strings = [named] if named is not None else []
    for one in strings:
        module = one.text()[1:-1].removeprefix("npm:")
        if module and module[0] not in "./#":
            yield module


def _php(node: "SgNode") -> Iterator[str]:
    prefix = next((one.text() for one in node.children() if one.kind() == "namespace_name"), "")
    for clause in node.find_all(kind="namespace_use_clause"):
        name = clause.text().partition(" as ")[0].strip().lstrip("\\")
        yield f"{prefix}\\{name}" if prefix else name
