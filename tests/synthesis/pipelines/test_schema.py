"""The JSON schema of a pipeline's file takes what the engine takes, and says of each key what the docs say."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from agentx.synthesis.pipelines.definition.schema import schema

from .book import BOOK, harmed

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/pipeline-format.md").read_text("utf-8")


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_editors_take_what_the_engine_takes(validator):
    for text in (
        BOOK,
        (ROOT / "sample_workspaces/technical-book/book.yaml").read_text("utf-8"),
        harmed(('id: "01", title: One', "id: 1, title: 2024"), ("{file: draft}", "{file: draft, checks: [{length: {words: 200}}]}")),
        harmed(("    agent: explore\n", "    does_not_read: [style, {file: summaries, why: no}]\n    standards: one\n    by: engine\n")),
    ):  # fmt: skip
        assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class: static", "class: statik"),
        ("marker: STYLE", "maker: STYLE"),
        ("marker: STYLE", "marker: style"),
        ("{id: style, role: editor}", "{id: style}"),
        ("until: {file: review}", "at_most: 99\n    until: {file: review}"),
    ],
)
def test_editors_refuse_what_the_engine_refuses(validator, old, new):
    assert list(validator.iter_errors(yaml.safe_load(harmed((old, new)))))


def rows(shape):
    """The rows of the docs for a shape: each key, its default and what it is."""
    for key, said in shape["properties"].items():
        default = said.get("default")
        shown = default if isinstance(default, str) else json.dumps(default)
        told = "" if default in ("", [], None) or isinstance(default, dict) else f"`{shown}`"
        yield f"| `{key}` | {'required' if key in shape.get('required', []) else told} | {said['description']} |"


def test_every_key_says_what_it_is_and_the_docs_say_the_same():
    for shape in (schema(), *schema()["$defs"].values()):
        table = "| key | default | what it is |\n|---|---|---|\n" + "\n".join(rows(shape)) + "\n\n"
        assert table in PAGE + "\n", f"docs/pipeline-format.md lacks the table:\n{table}"
