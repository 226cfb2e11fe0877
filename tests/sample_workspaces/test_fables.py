"""The fables: documents are translated into two languages, and after an edit only what depends on it is done again."""

import re
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.storage.events.pipeline_events import Dispatched, PipelineEnded, StageKept, StageProved, key_of

SHARES_WORKSPACES = True
SAMPLE = Path(__file__).parents[2] / "sample_workspaces" / "fables"
DOCS = ["ants-and-grasshopper", "crow-and-pitcher", "dog-and-shadow", "fox-and-grapes"]
EDITED = "crow-and-pitcher"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    root, out = tmp_path_factory.mktemp("fables") / "copy", StringIO()
    with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.chdir(SAMPLE)
        status = main(["run", "--sample", "fables", "--into", str(root), "--json"])
        assert status == 0, out.getvalue()[-2_000:]
    with Workspace.open(root) as ws:
        yield ws


def of_type(ws, kind):
    return [event for event in ws.events() if isinstance(event.data, kind)]


def keys(events):
    return [key_of(event.data.stage, event.data.item) for event in events]


def test_documents_are_found_and_translated_into_each_language(played):
    proved = set(keys(of_type(played, StageProved)))
    pairs = [f"{doc},{lang}" for doc in DOCS for lang in ("de", "fr")]
    each = {f"{stage}[{pair}]" for stage in ("translate", "review", "title") for pair in pairs}
    assert proved == each | {"glossary", "accept", "index"}
    index = (played.artifacts / "index.md").read_text("utf-8")
    for path in re.findall(r"\]\((\S+)\)", index):
        assert (played.artifacts / path).is_file()
    assert index.count("](") == len(pairs)


def test_a_person_is_asked_before_anything_is_translated(played):
    ends = [event.data.status for event in of_type(played, PipelineEnded)]
    assert ends == ["WAITING", "WAITING", "COMPLETED", "COMPLETED"]
    sent = of_type(played, Dispatched)
    assert keys(sent)[:4] == ["glossary", "accept", "glossary", "accept"]
    assert "Cigale" in (played.artifacts / "glossary.md").read_text("utf-8")


def test_languages_are_chains_side_by_side(played):
    ends = of_type(played, PipelineEnded)[2].seq
    for lang in ("de", "fr"):
        proved = {event.data.item: event.seq for event in of_type(played, StageProved)[::-1] if event.seq < ends and event.data.stage == "title"}  # fmt: skip
        first = {event.data.item: event.seq for event in of_type(played, Dispatched)[::-1] if event.data.stage == "translate"}  # fmt: skip
        for before, doc in pairwise(DOCS):
            assert proved[f"{before},{lang}"] < first[f"{doc},{lang}"]
        titles = (played.artifacts / f"meta/titles-{lang}.md").read_text("utf-8")
        assert re.findall(r"^## (\S+)", titles, re.MULTILINE) == DOCS


def test_a_translation_that_does_not_use_the_glossary_is_written_again(played):
    reviews = [event.data for event in of_type(played, StageProved) if event.data.stage == "review"]
    verdicts = [one.verdict for one in reviews if one.item == "fox-and-grapes,fr"]
    assert verdicts == ["FAIL", "PASS"]
    assert all(one.verdict == "PASS" for one in reviews if one.item != "fox-and-grapes,fr")
    assert "Goupil" not in (played.artifacts / "out/fr/fox-and-grapes.md").read_text("utf-8")


def test_after_an_edit_only_what_depends_on_it_is_done_again(played):
    edited = of_type(played, PipelineEnded)[2].seq
    again = keys(event for event in of_type(played, Dispatched) if event.seq > edited)
    stages = ("translate", "review", "title")
    own = {f"{stage}[{EDITED},{lang}]" for stage in stages for lang in ("de", "fr")}
    assert sorted(again) == sorted({"glossary", "index"} | own)
    kept = set(keys(event for event in of_type(played, StageKept) if event.seq > edited))
    every = {f"{stage}[{doc},{lang}]" for stage in stages for doc in DOCS for lang in ("de", "fr")}
    assert kept == {"accept"} | every - own
    assert "cailloux" in (played.artifacts / f"out/fr/{EDITED}.md").read_text("utf-8")
    assert played.verify().findings == ()


def test_the_readme_names_only_what_there_is(played):
    readme = (SAMPLE / "README.md").read_text("utf-8")
    assert "$ agentx run --sample fables" in readme
    for name in re.findall(r"\]\((\w[^)]*)\)", readme):
        assert (SAMPLE / name).exists()
    for name in re.findall(r"^artifacts/(\S+)", readme, re.MULTILINE):
        assert (played.artifacts / name).is_file()
