"""Hooks of the documentation site: links that leave docs/ work in the site as they do on a code host.

A page may link to any file of the repository (``../sample_workspaces/recovery/README.md``). The site includes each
file that is linked so, under ``repository/``: Markdown as a page, pictures as they are, everything else as plain text.
A link to a directory leads to its README; a directory without one has no page, so there the link is reduced to its
text. A link to a file that does not exist is left as it is, and the strict build reports it.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
COPIES = "repository/"
SHOWN = (".md", ".svg", ".png")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
INDENTED = re.compile(r"^ {2,3}(?=\S)")


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside docs/ that a page links to, and those that these link to."""
    waiting = {
        link for page in files.documentation_pages() for link in _linked(page.src_uri, page.content_string)
    }
    while waiting:
        path = waiting.pop()
        uri = _uri(path)
        if path.startswith(DOCS) or files.get_file_from_path(uri):
            continue
        files.append(
            File.generated(config, uri, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.NOT_IN_NAV)
        )
        if path.endswith(".md"):
            waiting |= set(_linked(uri, (ROOT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at what the site holds, and lay lists out as Python-Markdown expects them.

    CommonMark indents what belongs to an item by the width of its marker; Python-Markdown by four spaces, and it
    needs an empty line between an item of several paragraphs and the next item.
    """
    if page.is_homepage:
        page.meta.setdefault("hide", ["navigation"])  # its section has no other page
    lines: list[str] = []
    fenced = paragraphs = False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        if fenced or FENCE.match(line):
            lines.append(line)
            continue
        indented = INDENTED.sub("    ", line)
        if indented.startswith("    "):
            paragraphs = paragraphs or lines[-1:] == [""]
        elif line:
            if paragraphs and ITEM.match(line) and lines[-1]:
                lines.append("")
            paragraphs = False
        lines.append(LINK.sub(lambda found: _rewritten(found, page.file.src_uri), indented))
    return "\n".join(lines)


def _linked(uri: str, markdown: str) -> Iterator[str]:
    """Yield the paths, from the repository's root, of the files that a page links to."""
    for found in LINK.finditer(markdown):
        path = _file(_resolved(uri, found["target"]))
        if path:
            yield path


def _resolved(uri: str, target: str) -> str:
    """Return what a link means as a path from the repository's root."""
    source = uri.removeprefix(COPIES) if uri.startswith(COPIES) else DOCS + uri
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _file(path: str) -> str:
    """Return the file that stands for a path: itself, or a directory's README; empty if there is none."""
    if path.startswith("../"):
        return ""
    candidates = (path, posixpath.join(path, "README.md"))
    return next((name for name in candidates if (ROOT / name).is_file()), "")


def _uri(path: str) -> str:
    """Return where the site keeps a file of the repository."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return COPIES + path + ("" if path.endswith(SHOWN) else ".txt")


def _rewritten(found: re.Match[str], uri: str) -> str:
    """Return a link as the site needs it."""
    path = _resolved(uri, found["target"])
    if path.startswith(DOCS) and not uri.startswith(COPIES):
        return found[0]
    file = _file(path)
    if not file:
        return found["text"] if (ROOT / path).is_dir() else found[0]
    target = posixpath.relpath(_uri(file), posixpath.dirname(uri) or ".")
    return f"{found['image']}[{found['text']}]({target}{found['anchor'] or ''})"
