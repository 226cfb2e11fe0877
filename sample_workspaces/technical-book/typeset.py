"""Turn a chapter into a page: a program that reads the files it is given, and writes those that it may write.

It speaks JSON Lines on stdin and stdout. Two tools say which files it reads and writes; its prompt, how each
must end; the style guide, what a page looks like; and the outline, which chapters there are.
"""

import json
import re
import sys
from collections.abc import Callable
from html import escape
from pathlib import PurePosixPath
from textwrap import dedent
from typing import Any

from markdown_it import MarkdownIt

Call = Callable[[str, dict[str, str]], str]
"""Calls a tool by its name with arguments; gives its output."""

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
{body}
</body>
</html>
"""

_STYLE = """\
:root {{ color-scheme: light; }}
body {{ max-width: {measure}; margin: 3rem auto; padding: 0 1rem; font: 1.1rem/1.6 {text}; }}
h1 {{ line-height: 1.2; }}
a, .number {{ color: {accent}; }}
code {{ font: 0.9em {code}; }}
pre {{ overflow-x: auto; padding: 0.8rem 1rem; border-left: 3px solid {accent}; }}
nav {{ display: flex; justify-content: space-between; gap: 1rem; margin-top: 3rem; }}
"""


def work(prompt: str, tools: list[dict[str, Any]], call: Call) -> str:
    """Write every file that may be written; what was written, in a sentence."""
    ends = dict(re.findall(r"^The last line of (\S+) is: (.+)$", prompt, re.MULTILINE))
    text = {PurePosixPath(path).stem: _read(path, call) for path in _paths(tools, "read_file")}
    chapters = re.findall(r"^## Chapter (\d+): (.+)$", text["outline-final"], re.MULTILINE)
    written = _paths(tools, "write_file")
    for path in written:
        made = _made(PurePosixPath(path), text, chapters)
        call("write_file", {"path": path, "content": f"{made}{ends.get(path, '')}\n"})
    return f"Wrote {', '.join(written)}."


def _made(path: PurePosixPath, text: dict[str, str], chapters: list[tuple[str, str]]) -> str:
    if path.suffix == ".css":
        look = re.findall(
            r"^- (\w+): (.+)$", text["style-guide"].partition("## Typesetting")[2], re.MULTILINE
        )
        return _STYLE.format(**dict(look))
    if path.stem == "index":
        title = re.findall(r"^# (.+?)(?:: outline)?$", text["outline-final"], re.MULTILINE)[0]
        return _index(title, chapters)
    return _page(path.stem, text[path.stem], chapters)


def _page(name: str, chapter: str, chapters: list[tuple[str, str]]) -> str:
    """A chapter as a page, with the way to those before and behind it."""
    number = name.removeprefix("ch")
    place = [known for known, _ in chapters].index(number)
    body = _html(re.sub(r"(?m)^<!-- [A-Z_]+ -->$", "", chapter))
    before = _link(*chapters[place - 1], "← ") if place else '<a href="index.html">Contents</a>'
    behind = _link(*chapters[place + 1], "→ ") if place + 1 < len(chapters) else "<span></span>"
    return _PAGE.format(
        title=escape(chapters[place][1]),
        body=f'<p class="number">Chapter {int(number)}</p>\n{body}<nav>{before} {behind}</nav>',
    )


def _html(text: str) -> str:
    """Markdown as HTML; code stands at the margin, wherever it stood in the source."""
    markdown = MarkdownIt("commonmark", {"html": False})
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type == "fence":
            token.content = dedent(token.content)
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    return html


def _index(title: str, chapters: list[tuple[str, str]]) -> str:
    lines = "\n".join(f"<li>{_link(*one)}</li>" for one in chapters)
    return _PAGE.format(title=escape(title), body=f"<h1>{escape(title)}</h1>\n<ol>\n{lines}\n</ol>")


def _link(number: str, title: str, arrow: str = "") -> str:
    return f'<a href="ch{number}.html">{arrow}{escape(title)}</a>'


def _paths(tools: list[dict[str, Any]], name: str) -> list[str]:
    """The files that a tool takes."""
    tool = next(tool for tool in tools if tool["name"] == name)
    paths: list[str] = tool["parameters"]["properties"]["path"]["enum"]
    return paths


def _read(path: str, call: Call) -> str:
    return call("read_file", {"path": path}).partition("\n")[2]  # the first line says which lines follow


def main() -> None:
    """Speak with whoever started this."""

    def say(what: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    def call(tool: str, arguments: dict[str, str]) -> str:
        say({"call": {"tool": tool, "arguments": arguments}})
        result: dict[str, str] = json.loads(sys.stdin.readline())["result"]
        if result["status"] != "SUCCEEDED":
            say({"done": {"status": "FAILED", "reason": result["output"]}})
            sys.exit(1)
        return result["output"]

    asked = json.loads(sys.stdin.readline())
    say({"done": {"status": "COMPLETED", "summary": work(asked["prompt"], asked["tools"], call)}})


if __name__ == "__main__":
    main()
