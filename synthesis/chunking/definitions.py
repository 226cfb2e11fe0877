"""Definitions in source code, found with tree-sitter: one table per language, one walk for all.

A grammar is loaded when the first file of its language is read. The walk enters classes, namespaces and
conditional blocks, never the bodies of functions. It tolerates code that does not parse.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from agentx.storage.extras import LANGUAGES, ExtraMissing, needs
from agentx.synthesis.chunking.pieces import OutlineEntry

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MAX_DEPTH = 24
"""Nesting depth of definitions and conditional blocks at which the walk stops."""

MAX_SIGNATURE = 200
"""Maximum length of a signature, in characters."""

MAX_DOC = 160
"""Maximum length of a documentation line, in characters."""


class Grammar(msgspec.Struct, frozen=True):
    """The node types of a language's syntax tree.

    Attributes:
        module: Python module of the grammar.
        kinds: Node types of definitions, each with the kind of definition.
        transparent: Node types that may enclose definitions but add no name to their symbols.
        factory: The function of the module that returns the grammar.
    """

    module: str
    kinds: Mapping[str, str]
    transparent: frozenset[str]
    factory: str = "language"


def _kinds(table: str) -> dict[str, str]:
    """Read a table: a kind of definition on each line, and the node types that define one."""
    rows = (row.split() for row in table.strip().split("\n"))
    return {node_type: kind for kind, *node_types in rows for node_type in node_types}


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


_JAVASCRIPT_KINDS = _kinds("""
    function function_declaration generator_function_declaration variable_declarator assignment_expression
    class class_declaration
    method method_definition field_definition public_field_definition
""")
_JAVASCRIPT_WRAPPERS = _types(
    "export_statement expression_statement lexical_declaration variable_declaration ambient_declaration"
)
_JAVASCRIPT_TRANSPARENT = _JAVASCRIPT_WRAPPERS | {"statement_block"}
_TYPESCRIPT_KINDS = _JAVASCRIPT_KINDS | _kinds("""
    class abstract_class_declaration
    method abstract_method_signature
    enum enum_declaration
    function function_signature
    interface interface_declaration
    module internal_module module
    type type_alias_declaration
""")
_C_KINDS = _kinds("""
    function function_definition
    struct struct_specifier union_specifier
    enum enum_specifier
    type type_definition
    macro preproc_function_def
""")
_C_TRANSPARENT = _types(
    "preproc_if preproc_ifdef preproc_else preproc_elif linkage_specification declaration_list"
)

_PYTHON = Grammar(
    "tree_sitter_python",
    {"function_definition": "function", "class_definition": "class"},
    _types(
        "decorated_definition if_statement else_clause elif_clause try_statement block except_clause"
        " finally_clause with_statement"
    ),
)
_JAVASCRIPT = Grammar("tree_sitter_javascript", _JAVASCRIPT_KINDS, _JAVASCRIPT_TRANSPARENT)
_TYPESCRIPT = Grammar(
    "tree_sitter_typescript", _TYPESCRIPT_KINDS, _JAVASCRIPT_TRANSPARENT, factory="language_typescript"
)
_TSX = msgspec.structs.replace(_TYPESCRIPT, factory="language_tsx")
_GO = Grammar(
    "tree_sitter_go",
    _kinds("""
        function function_declaration
        method method_declaration
        type type_spec type_alias
    """),
    frozenset({"type_declaration"}),
)
_RUST = Grammar(
    "tree_sitter_rust",
    _kinds("""
        function function_item function_signature_item
        struct struct_item union_item
        enum enum_item
        trait trait_item
        impl impl_item
        module mod_item
        type type_item
        macro macro_definition
    """),
    frozenset({"declaration_list"}),
)
_JAVA = Grammar(
    "tree_sitter_java",
    _kinds("""
        class class_declaration record_declaration
        interface interface_declaration annotation_type_declaration
        enum enum_declaration
        method method_declaration constructor_declaration compact_constructor_declaration
    """),
    frozenset({"enum_body_declarations"}),
)
_C = Grammar("tree_sitter_c", _C_KINDS, _C_TRANSPARENT)
_CPP = Grammar(
    "tree_sitter_cpp",
    _C_KINDS | {"class_specifier": "class", "namespace_definition": "module", "alias_declaration": "type"},
    _C_TRANSPARENT | {"template_declaration", "field_declaration_list", "export_declaration"},
)

GRAMMARS: dict[str, Grammar] = {
    suffix: grammar
    for suffixes, grammar in (
        (".py .pyi", _PYTHON),
        (".js .jsx .mjs .cjs", _JAVASCRIPT),
        (".ts .mts .cts", _TYPESCRIPT),
        (".tsx", _TSX),
        (".go", _GO),
        (".rs", _RUST),
        (".java", _JAVA),
        (".c", _C),
        (".h .cc .cpp .cxx .hh .hpp .hxx", _CPP),
    )
    for suffix in suffixes.split()
}
"""The languages that are split at their definitions, by file suffix."""

_CONTAINERS = _types("class interface struct enum trait impl module")
_HELD_FUNCTIONS = _types("arrow_function function_expression generator_function class")
_NAMED_BY_VALUE = _types("variable_declarator assignment_expression field_definition public_field_definition")
_BARE_SPECIFIERS = _types("struct_specifier union_specifier enum_specifier class_specifier")
_WRAPPERS = _types("decorated_definition template_declaration type_declaration") | _JAVASCRIPT_WRAPPERS
_COMMENT_MARKS = re.compile(r"^\s*(?:/{2,}!?|/\*+!?|\*+/?|#+!?)\s?|\s*\*+/\s*$")
_SIGNATURE_END = re.compile(r"\s*(?:[{:;=]|=>)$")
_STRING_PREFIX = re.compile(r"^[rRuUbBfF]{0,2}(\"\"\"|'''|\"|')")


class _WalkPlace(msgspec.Struct, frozen=True):
    """The current place of the walk.

    Attributes:
        lead: First row of the comments, decorators or ``export`` that belong to the definition; -1 for none.
        comment: The comment in front of the definition.
    """

    scope: str = ""
    kind: str = ""
    lead: int = -1
    comment: str = ""
    depth: int = 0


def definitions(text: str, lines: Sequence[str], grammar: Grammar) -> list[OutlineEntry]:
    """Return the definitions of a source file in the order of its lines, outer before inner.

    Without the grammar, which most languages have in an extra, there are none.
    """
    from tree_sitter import Parser  # noqa: PLC0415  (loaded when the first source file is read)

    source = text.encode()
    try:
        parser = Parser(_language(grammar.module, grammar.factory))
    except ExtraMissing:
        return []
    tree = parser.parse(source)
    found = _walk(tree.root_node, source, grammar, _WalkPlace())
    last = len(lines)
    return [e if e.end_line <= last else msgspec.structs.replace(e, end_line=last) for e in found]


def why_none(grammar: Grammar) -> str:
    """Return why files of a language have no definitions here; empty if its grammar is installed."""
    try:
        _language(grammar.module, grammar.factory)
    except ExtraMissing as error:
        return str(error)
    return ""


@cache  # not where the grammar is missing: it may be installed while this process runs
def _language(module: str, factory: str) -> "Language":
    from tree_sitter import Language  # noqa: PLC0415  (as above)

    with needs(LANGUAGES):
        grammar = import_module(module)
    return Language(getattr(grammar, factory)())


def _walk(parent: "Node", source: bytes, grammar: Grammar, place: _WalkPlace) -> Iterator[OutlineEntry]:
    """Visit the children of a node, each with the comments directly above it."""
    wrapper, start, end, comment = place.lead, -1, -2, ""
    for node in parent.children:
        row = node.start_point.row
        if "comment" in node.type or node.type == "attribute_item":
            if _stands_alone(node, source):
                start, comment = (start, comment) if end >= row - 1 else (row, "")
                comment = comment or (_text(node, source) if "comment" in node.type else "")
                end = _last_row(node)
            continue
        adjoins = end >= row - 1
        lead, words = (start, comment) if adjoins else (-1, "")
        if wrapper >= 0:
            lead, words = wrapper, place.comment
        here = _WalkPlace(place.scope, place.kind, lead, words, place.depth + 1)
        found = False
        for entry in _visit(node, source, grammar, here):
            found = True
            yield entry
        wrapper, end = -1 if found else wrapper, -2


def _visit(node: "Node", source: bytes, grammar: Grammar, place: _WalkPlace) -> Iterator[OutlineEntry]:
    kind = grammar.kinds.get(node.type)
    # An assignment needs a function, a struct a body.
    if node.type in _NAMED_BY_VALUE:
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        defines = value is not None and value.type in _HELD_FUNCTIONS
    else:
        defines = node.type not in _BARE_SPECIFIERS or node.child_by_field_name("body") is not None
    name = _name(node, source) if kind and defines else ""
    if kind is None or not name:
        if place.depth <= MAX_DEPTH and (node.type in grammar.transparent or node.type == "ERROR"):
            row = node.start_point.row if place.lead < 0 else place.lead
            lead = row if node.type in _WRAPPERS else -1
            yield from _walk(node, source, grammar, msgspec.structs.replace(place, lead=lead))
        return
    if kind == "function" and place.kind in _CONTAINERS - {"module"}:
        kind = "method"
    symbol = f"{place.scope}.{name}" if place.scope else name
    yield OutlineEntry(
        symbol=symbol,
        kind=kind,
        start_line=(node.start_point.row if place.lead < 0 else place.lead) + 1,
        end_line=_last_row(node) + 1,
        signature=_signature(node, source),
        doc=_doc(node, source, place.comment),
    )
    body = node.child_by_field_name("body")
    if kind in _CONTAINERS and body is not None and place.depth <= MAX_DEPTH:
        yield from _walk(body, source, grammar, _WalkPlace(symbol, kind, depth=place.depth))


def _name(node: "Node", source: bytes) -> str:
    """Return the name of a definition.

    The name of a Go method includes its receiver. In C the name is inside the declarators.
    """
    named = node.child_by_field_name("name")
    if node.type == "impl_item":
        named = node.child_by_field_name("type")
    elif named is None and node.type == "assignment_expression":
        named = node.child_by_field_name("left")
    elif named is None and node.type == "field_definition":
        named = node.child_by_field_name("property")
    depth = 0
    inner = node if named is None else None
    while inner is not None and depth < MAX_DEPTH:
        # The declarator of a C++ reference or a parenthesised one has no field in the grammar.
        unnamed = inner.type in {"reference_declarator", "parenthesized_declarator"}
        first = next(iter(inner.named_children), None) if unnamed else None
        inner = inner.child_by_field_name("declarator") or first
        named, depth = inner or named, depth + 1
    if named is None:
        return ""
    name = re.sub(r"\s+|<.*", "", _text(named, source)[:MAX_SIGNATURE].replace("::", "."))
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        owner = re.search(r"\*?\s*(\w+)\s*(?:\[[^\]]*\])?\s*\)$", _text(receiver, source)[:MAX_SIGNATURE])
        return f"{owner[1]}.{name}" if owner else name
    return name


def _signature(node: "Node", source: bytes) -> str:
    held = node.child_by_field_name("value") or node.child_by_field_name("right")
    body = node.child_by_field_name("body") or (held and held.child_by_field_name("body"))
    end = body.start_byte if body else node.end_byte
    text = source[node.start_byte : min(end, node.start_byte + 4 * MAX_SIGNATURE)].decode(errors="ignore")
    if body is None:
        text = text.partition("\n")[0]
    return _SIGNATURE_END.sub("", " ".join(text.split()))[:MAX_SIGNATURE].rstrip()


def _doc(node: "Node", source: bytes, comment: str) -> str:
    """Return the first line of a Python docstring, otherwise of the comment in front."""
    body = node.child_by_field_name("body")
    first = next(iter(body.named_children), None) if body and node.type.endswith("_definition") else None
    if first is not None and first.type == "expression_statement" and first.named_child_count:
        first = first.named_children[0]
    if first is not None and first.type == "string":
        text = _STRING_PREFIX.sub("", _text(first, source))
        plain = [line.strip().rstrip("\"'") for line in text.split("\n") if line.strip("\"' \t\r")]
    else:
        plain = list(filter(None, (_COMMENT_MARKS.sub("", line).strip() for line in comment.split("\n"))))
    return plain[0][:MAX_DOC] if plain else ""


def _stands_alone(node: "Node", source: bytes) -> bool:
    """Return whether only white space precedes a comment on its line."""
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    return not source[start : node.start_byte].strip()


def _last_row(node: "Node") -> int:
    """Return the row of a node's last character; a node that ends with a line feed excludes the next row."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _text(node: "Node", source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode(errors="ignore")
