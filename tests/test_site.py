"""The documentation site: every page has its place in the navigation, and every public name in the API reference.

What needs mkdocs is checked by ``make docs``, which fails on each warning; these tests need mkdocs.yml alone.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.text import Text

import agentx
from tests.draw_gallery import MOMENTS, cut

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def pages_of(nav: list[Any] | str) -> Iterator[str]:
    """Every page that a navigation names, in order."""
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav:
        for part in entry.values() if isinstance(entry, dict) else [entry]:
            yield from pages_of(part)


def test_each_page_of_the_docs_is_in_the_navigation_once():
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert Counter(pages_of(CONFIG["nav"])) == Counter(pages)


def test_the_navigation_is_by_kind():
    assert [next(iter(entry)) for entry in CONFIG["nav"]] == [
        "Home",
        "Start",
        "Guides",
        "Reference",
        "Explanation",
    ]


def test_the_first_lines_of_each_page_say_who_needs_it():
    kinds = ("*For you", "*Tutorial", "*How-to", "*How to", "*Reference", "*Explanation")
    for path in DOCS.glob("*.md"):
        first = path.read_text("utf-8").split("\n\n")[1]
        assert path.name == "index.md" or first.startswith(kinds), path.name


def test_the_site_names_no_host_and_loads_no_font():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "://" not in text
    assert CONFIG["theme"]["font"] is False
    assert (DOCS / CONFIG["extra"]["polyfills"][0]).is_file()


def test_the_build_fails_on_warnings():
    (build,) = (
        line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "mkdocs build" in line
    )
    assert "--strict" in build
    assert "--quiet" not in build, "mkdocs does not count warnings that it does not print"
    levels = [level for part in CONFIG["validation"].values() for level in part.values()]
    assert set(levels) == {"warn"}


def test_the_api_reference_covers_the_public_names_and_those_that_embedding_imports():
    shown = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)$", page("api.md"), re.MULTILINE)}
    imports = re.findall(r"^from agentx[\w.]* import (.+)$", page("embedding.md"), re.MULTILINE)
    wanted = {name for line in imports for name in line.split(", ")} | set(agentx.__all__) - {"__version__"}
    assert wanted - shown == set()


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_each_sample_has_its_picture_with_words_for_those_who_do_not_see_it():
    samples = {path.parent.name for path in (ROOT / "sample_workspaces").glob("*/sample.toml")}
    shown = dict(re.findall(r"^!\[(.+)\]\(images/samples/(.+)\.svg\)$", page("samples.md"), re.MULTILINE))
    assert set(shown.values()) == set(MOMENTS) == samples
    for name, words in {name: words for words, name in shown.items()}.items():
        assert len(words) > 40, name
        assert f"agentx&#160;run&#160;--sample&#160;{name}" in picture(name) or f"--sample {name}" in picture(
            name
        )


def picture(name: str) -> str:
    return (DOCS / "images" / "samples" / f"{name}.svg").read_text("utf-8")


def test_a_picture_shows_the_lines_of_its_moments_and_marks_what_is_left_out():
    lines = [Text(line) for line in ("before", "first", "more", "last", "between", "again", "end", "after")]
    assert [line.plain for line in cut(lines, [("first", "last"), ("again", "end")])] == [
        "first", "more", "last", "⋯", "again", "end",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="No lines"):
        list(cut(lines, [("end", "first")]))
