"""Syntax trees of Python modules."""

import ast
import warnings

_MAX_SOURCE = 2_000_000


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
