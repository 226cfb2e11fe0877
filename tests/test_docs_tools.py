"""What the pages in docs/ list, compared with the code: tools, settings, events, errors, kinds and sections."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from agentx import Workspace, settings
from agentx.client import place
from agentx.config import ActSection, Config, LinkSection, SourceSection, ToolSource, UpstreamSection
from agentx.context.assembler import TITLES
from agentx.hosts import hook
from agentx.storage.events.facts import FACTS
from agentx.storage.extras import EXTRAS
from agentx.synthesis.memory.conclusions import CONCLUSIONS
from agentx.synthesis.memory.items import Kind, Status

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

CODE = re.compile(r"`([^`]+)`")


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table."""
    lines = (line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named(text: str) -> set[str]:
    """What stands as code in the first column of the tables."""
    return {name for row in rows(text) for name in CODE.findall(row[0])}


@pytest.fixture
def tool_sections() -> dict[str, str]:
    """The text about each tool, by the heading that names it."""
    parts = re.split(r"^### (\w+)$", page("tools.md"), flags=re.MULTILINE)
    return dict(
        zip(
            parts[1::2], (re.split(r"^## ", part, flags=re.MULTILINE)[0] for part in parts[2::2]), strict=True
        )
    )


@pytest.fixture
def schemas(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.configure("tools.run_command", "true")
    with Workspace.open(tmp_path / "task") as ws:
        return {schema.name: schema.parameters["properties"] for schema in ws.tools.schemas()}


def test_every_tool_has_its_section_and_nothing_else_has(tool_sections, schemas):
    assert set(tool_sections) == set(schemas)


def test_every_parameter_of_a_tool_has_its_row_with_its_default(tool_sections, schemas):
    for tool, parameters in schemas.items():
        told = {
            row[0].strip("`"): row[1].strip("`")
            for row in rows(tool_sections[tool])
            if row[0].startswith("`")
        }
        wanted = {name: _shown_default(schema) for name, schema in parameters.items()}
        assert told == wanted, tool


def _shown_default(schema: dict) -> str:
    if "default" not in schema:
        return ""
    return "none" if schema["default"] is None else msgspec.json.encode(schema["default"]).decode()


def _flat(values: dict, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_every_key_of_agentx_toml_has_its_row_with_its_default():
    source = SourceSection(name="x", path="x").model_dump()
    wanted = _flat(Config().model_dump()) | {f"sources.{name}": value for name, value in source.items()}
    link = LinkSection(name="xy", path="x").model_dump()
    wanted |= {f"links.{name}": value for name, value in link.items()}
    tool = ToolSource(module="x").model_dump() | {"module": ""}
    wanted |= {f"director.tools.{name}": value for name, value in tool.items()}
    wanted |= {f"director.acts.NAME.{name}": value for name, value in ActSection().model_dump().items()}
    wanted["tools.writes"] = Config().tools.writes  # by the name of the tool; none by default
    upstream = UpstreamSection(source="x").model_dump()
    wanted |= {f"follow.upstreams.NAME.{name}": value for name, value in upstream.items()}
    required = ("sources.name", "sources.path", "links.name", "links.path", "follow.upstreams.NAME.source")
    wanted |= dict.fromkeys(required, "required")
    text = page("configuration.md").partition("## Environment")[0]
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(text) if row[0].startswith("`")}
    assert told == {
        name: value if value == "required" else msgspec.json.encode(value).decode()
        for name, value in wanted.items()
    }


def test_every_variable_that_is_read_has_its_row():
    sources = "".join(map(inspect.getsource, (settings, place, hook)))
    read = set(re.findall(r'"((?:AGENTX|XDG)_\w+)"', sources)) - {settings.RUN, settings.ACTS}
    assert read
    text = page("configuration.md").partition("## Environment")[2].partition("## Extras")[0]
    assert named(text) == read


def test_every_extra_has_its_row():
    assert named(page("configuration.md").partition("## Extras")[2]) == {extra.name for extra in EXTRAS}


def test_every_event_type_has_its_row_with_the_fields_of_its_payload():
    text = page("record.md").partition("## Event types")[2].partition("## Actors")[0]
    told = {row[0].strip("`"): tuple(CODE.findall(row[1])) for row in rows(text) if row[0].startswith("`")}
    assert told == {name: payload.__struct_fields__ for name, payload in (FACTS | CONCLUSIONS).items()}


def test_every_error_has_its_row():
    assert named(page("troubleshooting.md")) >= _error_names()


@cache
def _error_names() -> set[str]:
    """Every class that descends from AgentXError, over the syntax tree, so that nothing need be imported."""
    bases: dict[str, set[str]] = {}
    for folder in ("agentx", "storage", "synthesis"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    found, known = {"AgentXError"}, set[str]()
    while found - known:
        known = set(found)
        found |= {name for name, above in bases.items() if above & found}
    return found - {"AgentXError"}


def test_errors_of_errors_are_found_too():
    assert {"WriteDenied", "HistoryRewound", "ConfigInvalid"} <= _error_names()


def test_every_kind_and_status_of_memory_has_its_row():
    assert named(page("memory.md")) >= {*get_args(Kind), *get_args(Status)}


def test_every_section_of_a_context_has_its_row_in_their_order():
    text = page("context.md").partition("## Sections")[2].partition("## Budget")[0]
    told = {row[0].strip("`"): row[1] for row in rows(text) if row[0].startswith("`")}
    assert list(told) == list(TITLES)
    assert all(title.startswith(told[section]) for section, title in TITLES.items())


@pytest.mark.parametrize(
    "source", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix()
)
def test_links_between_pages_lead_somewhere(source):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", source.read_text("utf-8")):
        assert (source.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_first():
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", page("index.md")))
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"} <= linked


@pytest.mark.parametrize("page", ["server.md", "mcp.md"])
def test_the_lines_of_a_page_can_be_read_in_a_terminal(page):
    """Tables and code aside, which cannot be wrapped."""
    code, long = False, []
    for number, line in enumerate((ROOT / "docs" / page).read_text("utf-8").splitlines(), start=1):
        code ^= line.startswith("```")
        if not code and len(line) > 120 and not line.startswith(("|", "    ")):
            long.append((number, line))
    assert long == []
