"""Items that a file lists: JSON, JSON Lines, YAML, CSV, or a list in Markdown."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from agentx.storage.errors import UsageError
from agentx.synthesis.chunking.headings import fenced
from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.pipeline import MAX_ITEMS
from agentx.synthesis.pipelines.definition.yaml_lines import plain
from agentx.synthesis.pipelines.proving.markdown import lines_of, sections, title_words

ItemDict = dict[str, Any]
"""An item as it is written: ``id``, and values for templates."""

_ENTRY = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*\S)")
_NAMED = re.compile(r"([^\W_][\w.-]{0,63})\s*(?::|–|—|\s-)(?:\s+(.*))?|`([^\W_][\w.-]{0,63})`")
_DRESS = re.compile(r"[*_`]+")
_ID_CHARACTERS = 64


class ListInvalid(UsageError):
    """A file does not list items in a form that can be read."""


def listed(text: str, path: str, section: str = "") -> list[ItemDict]:
    """Return the items that a file lists.

    A file in JSON or YAML is a list of ids or of maps with an ``id``; in JSON Lines each line is one, and in
    CSV each row, with the names of the columns in the first row. In any other file, the items are the entries
    of its first list, or of the first list below the heading ``section``: ``- intro: What it is`` has the id
    ``intro`` and the title "What it is"; an entry without an id is numbered.

    Raises:
        ListInvalid: The text cannot be read as a list, or has no items.
    """
    kind = PurePosixPath(path).suffix.lower().removeprefix(".")
    try:
        match kind:
            case "json":
                given = json.loads(text)
            case "jsonl" | "ndjson":
                given = [json.loads(line) for line in text.splitlines() if line.strip()]
            case "yaml" | "yml":
                given = plain(text, path)[0]
            case "csv":
                given = list(csv.DictReader(io.StringIO(text)))
            case _:
                given = list(_entries(text, path, section))
    except (ValueError, csv.Error, RecursionError) as error:
        raise ListInvalid(f"{path} is not valid {kind.upper()}: {error}") from error
    except PipelineInvalid as error:
        raise ListInvalid(str(error)) from error
    if not isinstance(given, list) or not given:
        raise ListInvalid(f"{path} lists no items: {in_words(path, section)}")
    if len(given) > MAX_ITEMS:
        raise ListInvalid(f"{path} lists {len(given):,} items; at most {MAX_ITEMS:,} are allowed.")
    return [_item(one, number, path) for number, one in enumerate(given, 1)]


def in_words(path: str, section: str = "") -> str:
    """Return how a file lists items, in a sentence for its writer.

    >>> in_words("plan.json")
    'It must be a JSON list of at least one id, or of maps with an `id`.'
    """
    kind = PurePosixPath(path).suffix.lower().removeprefix(".")
    match kind:
        case "json" | "yaml" | "yml":
            return f"It must be a {kind.upper()} list of at least one id, or of maps with an `id`."
        case "jsonl" | "ndjson":
            return "Each of its lines must be an id in quotes, or a JSON object with an `id`."
        case "csv":
            return "Its first row must name the columns, one of them `id`, and each further row be an item."
    where = f"Below the heading {section!r}, it" if section else "It"
    return f"{where} must have a list, with a line like `- intro: The title` (id and title) for each item."


def _item(given: Any, number: int, path: str) -> ItemDict:
    if isinstance(given, str | int):
        return {"id": str(given)}
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise ListInvalid(f"{path}: item {number} is neither an id nor a map with an `id`.")
    values = {
        key: one if isinstance(one, str | list | dict | bool) else str(one) for key, one in given.items()
    }
    if not values.get("id"):
        raise ListInvalid(f"{path}: item {number} has no `id`.")
    return values


def _entries(text: str, path: str, section: str) -> Iterable[ItemDict]:
    """Yield the entries of the first list of a Markdown text, without indented ones."""
    lines = lines_of(text)
    if section:
        wanted = title_words(section)
        found = next((one for one in sections(text) if one.line and title_words(one.title) == wanted), None)
        if found is None:
            raise ListInvalid(f"{path} has no section {section!r} with a list of the items.")
        lines = list(found.whole)
    number = indent = 0
    for line, code in zip(lines, fenced(lines), strict=True):
        entry = None if code else _ENTRY.fullmatch(line)
        if entry is None:
            if number and line.strip() and not line.startswith((" ", "\t")):
                return  # the list is over
            continue
        if number and len(entry[1]) > indent + 1:
            continue
        indent = indent if number else len(entry[1])
        number += 1
        words = _DRESS.sub("", entry[2]).strip()
        if named := _NAMED.fullmatch(words) or _NAMED.fullmatch(entry[2]):
            yield {"id": named[1] or named[3], "title": named[2] or ""}
        else:
            yield {"id": str(number).zfill(2), "title": words}


def items_of_paths(paths: Sequence[str], pattern: str) -> list[ItemDict]:
    """Return an item for each file that a pattern matches, in their order.

    Its ``id`` is the path behind the fixed part of the pattern, without the suffix, and with ``-`` for signs
    that an id cannot have. Its other values are ``path``, ``name``, ``stem`` and ``folder``.

    >>> [item["id"] for item in items_of_paths(["docs/a/intro.md", "docs/end.md"], "docs/**/*.md")]
    ['a-intro', 'end']
    """
    fixed = pattern.partition("*")[0].rpartition("/")[0]
    whole = [path.removeprefix(f"{fixed}/") for path in paths]
    bare = Counter(str(PurePosixPath(name).with_suffix("")) for name in whole)
    made: dict[str, ItemDict] = {}
    for path, name in zip(paths, whole, strict=True):
        place = PurePosixPath(path)
        short = str(PurePosixPath(name).with_suffix(""))
        words = re.sub(r"[^\w.-]+", "-", short if bare[short] == 1 else name).strip("_.-") or "item"
        key = words[-_ID_CHARACTERS:].lstrip("_.-")
        for number in range(2, len(paths) + 2):  # paths may differ in signs that an id cannot have
            if key not in made:
                break
            key = f"{words[: _ID_CHARACTERS - 6]}-{number}"
        folder = place.parent.as_posix().removeprefix(".")
        made[key] = {"id": key, "path": path, "name": place.name, "stem": place.stem, "folder": folder}
    return list(made.values())
