"""Syntax trees of the files of a change, by ast-grep: each side is parsed once for all checks."""

import posixpath
from typing import TYPE_CHECKING

from agentx.synthesis.enforcement.breaches import CheckedChange, Side

if TYPE_CHECKING:
    from ast_grep_py import SgNode

MAX_SOURCE = 2_000_000
"""Maximum number of characters of a text that is parsed."""

LANGUAGES: dict[str, str] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "javascript"),
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    **dict.fromkeys((".rb", ".rake", ".gemspec"), "ruby"),
    ".php": "php",
    ".cs": "csharp",
    ".c": "c",
    **dict.fromkeys((".h", ".cpp", ".cc", ".cxx", ".hpp", ".hh", ".ino"), "cpp"),
    ".swift": "swift",
    ".scala": "scala",
    ".lua": "lua",
    **dict.fromkeys((".sh", ".bash"), "bash"),
    **dict.fromkeys((".ex", ".exs"), "elixir"),
    ".hs": "haskell",
    ".sol": "solidity",
    ".nix": "nix",
    **dict.fromkeys((".tf", ".hcl"), "hcl"),
    ".json": "json",
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".html", ".htm"), "html"),
    ".css": "css",
}
"""Names of ast-grep by file suffix. It panics on any other name, so names come only from here."""

_KNOWN = frozenset(LANGUAGES.values())


def language_of(path: str) -> str:
    """Return the language of a file by its suffix; empty if it is not known.

    >>> language_of("src/App.TSX"), language_of("notes.txt")
    ('tsx', '')
    """
    return LANGUAGES.get(posixpath.splitext(path)[1].casefold(), "")


def tree_of(change: CheckedChange, side: Side, language: str = "") -> "SgNode | None":
    """Return the root of the syntax tree of one side of a change.

    Args:
        change: The change; it keeps the tree.
        side: ``before`` or ``after``.
        language: Name of the language; by default that of the file's suffix.

    Returns:
        The root, or ``None`` if there is no text, it is too long, or its language is not known.
    """
    text = change.before if side == "before" else change.after
    language = language or language_of(change.path)
    if text is None or len(text) > MAX_SOURCE or language not in _KNOWN:
        return None

    def read() -> "SgNode":
        from ast_grep_py import SgRoot  # noqa: PLC0415 - loaded when the first file is parsed

        return SgRoot(text.removeprefix("\ufeff"), language).root()

    return change.once(("tree", language, side), read)
