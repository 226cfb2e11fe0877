"""Parse and format YAML. Parsed scalars are text with line numbers, ``<<`` merges, keys must be unique.

The pipeline's format decides which texts are numbers, so ``01`` remains ``01`` and ``no`` is a word.
"""

import re
from typing import TYPE_CHECKING, Any

from agentx.synthesis.pipelines.definition.faults import Fault, Faults, PipelineInvalid, Place, Source

if TYPE_CHECKING:
    from yaml import YAMLError
    from yaml.nodes import Node

MAX_VALUES = 50_000
MAX_DEPTH = 50

_BRACES = "a text that begins with `{{` must be quoted"
_STANDARD = "tag:yaml.org,2002:"
_MERGE = f"{_STANDARD}merge"
_PLAIN = ("str", "int", "float", "bool", "null", "timestamp", "value", "merge", "seq", "map")
_TAGS = {f"{_STANDARD}{name}" for name in _PLAIN}
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_OPEN_BRACES = re.compile(r"(?:^|[:,\[{-]\s)\s*\{\{")

_SAID = (
    (r"found character '\\t'", "found a tab; indent YAML with spaces"),
    (r"found character '(.+)' that cannot start", r"a text that begins with `\1` must be quoted"),
    (r"mapping values are not allowed", "unexpected `: `; put the text in quotes, or fix the indentation"),
    (r"sequence entries are not allowed", "unexpected `- `; begin the list on a new line"),
    (r"expected <block end>", "this line does not match the lines above; fix its indentation or its quotes"),
    (r"could not find expected ':'", "a key without a `:`"),
    (r"undefined alias '(.*)'", r"undefined alias `*\1`: no `&\1` comes before it"),
    (r"escape", r"`\\` begins an escape in double quotes; double it, or use single quotes"),
    (r"found another document", "`---` begins a second document; a file holds one pipeline"),
)
_OPENED = (
    (
        r"expected ',' or '(.)'",
        r"the bracket opened here is not closed with `\1`, or a text inside must be quoted",
    ),
    (r"found unexpected end of stream", "the quotation opened here is not closed"),
)
"""Messages for parser errors: at the line where the error was noticed, or where the unclosed part was opened.
"""


def plain(text: str, path: str) -> tuple[Any, Source]:
    """Parse a YAML text to plain values, and their places.

    Raises:
        PipelineInvalid: It is not YAML, is empty, or contains what a pipeline's file cannot.
    """
    from yaml import SafeLoader, YAMLError, compose  # noqa: PLC0415 - only pipelines need it

    try:
        node = compose(text, SafeLoader)
    except YAMLError as error:
        raise PipelineInvalid(path, [_fault(error, text)]) from error
    except RecursionError as error:
        raise PipelineInvalid(path, [Fault(0, "", "the file is nested too deeply.")]) from error
    if node is None or (node.id == "scalar" and not node.value):
        raise PipelineInvalid(path, [Fault(1, "", "the file is empty.")])
    source = Source(path, text, {})
    builder = _Builder(source)
    value = builder.value(node, ())
    builder.faults.stop()
    return value, source


def data_of(text: str) -> Any:
    """Parse a YAML text that is part of the package to plain values, without their places."""
    import yaml  # noqa: PLC0415 - only some commands need it

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe


def as_yaml(value: Any) -> str:
    """Format a value as YAML, keys in their order."""
    from yaml import SafeDumper, dump  # noqa: PLC0415 - only some commands need it

    return str(dump(value, Dumper=SafeDumper, sort_keys=False, allow_unicode=True, width=100))


def _fault(error: "YAMLError", text: str) -> Fault:
    position = getattr(error, "position", None)
    if isinstance(position, int):
        code = getattr(error, "character", 0)
        return Fault(text.count("\n", 0, position) + 1, "", f"invalid character (U+{code:04X}).")
    mark, start = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    line = mark.line + 1 if mark else 0
    lines = text.splitlines()
    if 0 < line <= len(lines) and _OPEN_BRACES.search(lines[line - 1]):
        return Fault(line, "", f"{_BRACES}.")
    for at, table in ((line, _SAID), (start.line + 1 if start else line, _OPENED)):
        for pattern, said in table:
            if found := re.search(pattern, problem):
                return Fault(at, "", f"{found.expand(said)}.")
    return Fault(line, "", f"not valid YAML: {problem}.")


class _Builder:
    """Converts nodes to plain values, and records their lines."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.faults = Faults(source)
        self.count = 0
        self.above: set[int] = set()

    def value(self, node: "Node", place: Place, line: int = 0) -> Any:
        self.count += 1
        self.source.lines[place] = line or node.start_mark.line + 1
        if self.objects(node, place):
            return None
        if node.id == "scalar":
            return node.value
        self.above.add(id(node))
        made = self.listed(node, place) if node.id == "sequence" else self.mapped(node, place)
        self.above.discard(id(node))
        return made

    def objects(self, node: "Node", place: Place) -> bool:
        """Return whether a value is not allowed here; record the reason."""
        if self.count > MAX_VALUES:
            place, what = (), f"more than {MAX_VALUES:,} values after aliases are expanded"
        elif id(node) in self.above:
            what = "an alias refers to a value that contains it"
        elif len(place) > MAX_DEPTH:
            place, what = place[:1], "nested too deeply"
        elif node.id == "scalar" and (found := _NO_TEXT.search(node.value)):
            what = f"invalid character (U+{ord(found[0]):04X})"
        elif node.tag not in _TAGS:
            what = f"the tag {node.tag.replace(_STANDARD, '!!')} is not supported; write a plain value"
        else:
            return False
        self.faults.add(place, what)
        return True

    def listed(self, node: "Node", place: Place) -> list[Any]:
        made = []
        for number, one in enumerate(node.value):
            if self.count > MAX_VALUES:
                break
            made.append(self.value(one, (*place, number)))
        return made

    def mapped(self, node: "Node", place: Place) -> dict[str, Any]:
        merged = self.merged(node, place)
        own: dict[str, Any] = {}
        for key, one in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE or self.count > MAX_VALUES:
                continue
            if key.id != "scalar" or not key.value:
                self.faults.add(
                    place, _BRACES if key.id == "mapping" else "a key must be a single text", line
                )
            elif key.value in own:
                self.faults.add(place, f"duplicate key {key.value!r}", line)
            else:
                own[key.value] = self.value(one, (*place, key.value), line)
        return merged | own

    def merged(self, node: "Node", place: Place) -> dict[str, Any]:
        """Return the keys that ``<<`` merges from other maps; of several, the first that has a key wins."""
        made: dict[str, Any] = {}
        for key, one in node.value:
            if key.tag != _MERGE:
                continue
            for given in reversed(one.value if one.id == "sequence" else [one]):
                value = self.value(given, place)
                if isinstance(value, dict):
                    made |= value
                elif not self.faults.found:
                    self.faults.add(place, "`<<` merges a map, as in `<<: *name`", key.start_mark.line + 1)
        return made
