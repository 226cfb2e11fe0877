"""Edit JSON as text: comments, order, unknown keys and white space of everything else stay as they are.

Read are JSON, and JSON with comments and trailing commas, as the settings of many programs have them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from agentx.storage.errors import AgentXError

_SPACE = " \t\r\n"
_MOST_NESTED = 200


class JsonUnreadable(AgentXError):
    """A text is not JSON, also not with comments."""


class JsonNode(NamedTuple):
    """A value in a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        value: The value; of an object and an array, their nodes.
        begins: Of a member of an object, where its key begins; otherwise as ``start``.
    """

    start: int
    end: int
    value: Any
    begins: int = 0

    def plain(self) -> Any:
        """Return the value as Python has it."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def get(self, *names: str) -> "JsonNode | None":
        """Return what a path of names leads to; ``None`` for nothing."""
        node: JsonNode | None = self
        for name in names:
            node = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        return node


def parse(text: str) -> JsonNode:
    """Parse a text; an empty one counts as an empty object.

    Raises:
        JsonUnreadable: It is not JSON.
    """
    reader = _Reader(text)
    start = reader.skip(0)
    if start == len(text):
        return JsonNode(0, 0, {})
    node = reader.value(start, 0)
    if reader.skip(node.end) != len(text):
        raise JsonUnreadable(f"There is something after the end of the JSON, at character {node.end}.")
    return node


def parse_object(text: str, path: Path, refused: type[AgentXError]) -> JsonNode:
    """Parse the text of a file that must be a JSON object.

    Args:
        text: The text.
        path: The file, for the message.
        refused: The error to raise.

    Raises:
        refused: It is no JSON, or no object.
    """
    try:
        root = parse(text)
    except JsonUnreadable as error:
        raise refused(f"{path} cannot be read: {error} Correct it first.") from error
    if not isinstance(root.value, dict):
        raise refused(f"{path} is not a JSON object; correct it first.")
    return root


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder()

    def skip(self, at: int) -> int:
        """Return where white space and comments end."""
        text = self._text
        while at < len(text):
            if text[at] in _SPACE or text[at] == "\ufeff":
                at += 1
            elif text.startswith("//", at):
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text.startswith("/*", at):
                end = text.find("*/", at + 2)
                if end < 0:
                    raise JsonUnreadable(f"A comment is not closed, at character {at}.")
                at = end + 2
            else:
                break
        return at

    def value(self, at: int, depth: int) -> JsonNode:
        if depth > _MOST_NESTED:
            raise JsonUnreadable("The JSON is nested too deeply.")
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        try:
            value, end = self._decoder.raw_decode(self._text, at)
        except ValueError as error:
            raise JsonUnreadable(f"This is not JSON, at character {at}.") from error
        return JsonNode(at, end, value, at)

    def _object(self, start: int, depth: int) -> JsonNode:
        members: dict[str, JsonNode] = {}
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "}":
            key = self.value(at, depth)
            colon = self.skip(key.end)
            if not isinstance(key.value, str) or self._text[colon : colon + 1] != ":":
                raise JsonUnreadable(f"A name and a colon are missing, at character {at}.")
            node = self.value(self.skip(colon + 1), depth + 1)
            members[key.value] = node._replace(begins=key.start)
            at = self._next(node.end, "}")
        return JsonNode(start, at + 1, members, start)

    def _array(self, start: int, depth: int) -> JsonNode:
        elements: list[JsonNode] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "]":
            elements.append(self.value(at, depth + 1))
            at = self._next(elements[-1].end, "]")
        return JsonNode(start, at + 1, elements, start)

    def _next(self, end: int, closing: str) -> int:
        """Return where the next part begins, or the closing bracket is."""
        at = self.skip(end)
        if self._text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self._text[at : at + 1] != closing:
            raise JsonUnreadable(f"A comma or {closing!r} is missing, at character {at}.")
        return at


def add_member(text: str, parent: JsonNode, name: str, value: Any) -> str:
    """Return a text with a new last member of an object in it."""
    nodes = list(parent.value.values())
    return _added(text, parent, nodes, lambda indent: f"{json.dumps(name)}: {_rendered(value, indent)}")


def add_element(text: str, parent: JsonNode, value: Any) -> str:
    """Return a text with a new last element of an array in it."""
    return _added(text, parent, parent.value, lambda indent: _rendered(value, indent))


def replaced(text: str, node: JsonNode, value: Any) -> str:
    """Return a text with another value in the place of one."""
    return text[: node.start] + _rendered(value, _indent(text, node.begins)) + text[node.end :]


def removed(text: str, parent: JsonNode, node: JsonNode) -> str:
    """Return a text without a member or an element, and without the comma and the line that it leaves."""
    nodes = list(parent.value.values()) if isinstance(parent.value, dict) else parent.value
    place = nodes.index(node)
    reader = _Reader(text)
    if place + 1 < len(nodes):
        return text[: node.begins] + text[nodes[place + 1].begins :]
    after = reader.skip(node.end)
    end = after + 1 if text[after : after + 1] == "," else node.end  # a trailing comma goes with it
    start = nodes[place - 1].end if place else parent.start + 1
    rest = text[end : parent.end - 1]
    return text[:start] + ("" if not place and not rest.strip() else rest) + text[parent.end - 1 :]


def _added(text: str, parent: JsonNode, nodes: list[JsonNode], render: Callable[[str], str]) -> str:
    if parent.start == parent.end:  # an empty text
        return "{\n  " + render("  ") + "\n}\n"
    outer = _indent(text, parent.begins)
    indent = _indent(text, nodes[-1].begins) if nodes else outer + _step(text)
    if not nodes:
        inside = text[parent.start + 1 : parent.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return f"{text[: parent.start + 1]}{kept}\n{indent}{render(indent)}\n{outer}{text[parent.end - 1 :]}"
    last = nodes[-1].end
    return f"{text[:last]},\n{indent}{render(indent)}{_without_comma(text, last)}"


def _without_comma(text: str, at: int) -> str:
    """Return the text after a last part, without its trailing comma."""
    comma = _Reader(text).skip(at)
    if text[comma : comma + 1] != ",":
        return text[at:]
    return text[at:comma] + text[comma + 1 :]


def _indent(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    end = line
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[line:end]


def _step(text: str) -> str:
    """Return the white space by which a text indents; two spaces if it does not show."""
    for line in text.splitlines():
        if (inner := line.lstrip(" \t")) and inner != line:
            return line[: len(line) - len(inner)]
    return "  "


def _rendered(value: Any, indent: str) -> str:
    step = "\t" if indent.startswith("\t") else "  "
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return f"\n{indent}".join(lines)
