"""``docs/evaluation.md`` shows the kept results, and no other page states a measured figure."""

import re

import pytest

from tests.eval import results
from tests.eval.__main__ import ONLY_BY_NAME, SECTIONS
from tests.figures import Figure
from tests.test_docs import ROOT

PAGE = results.PAGE.read_text(encoding="utf-8")
OTHERS = [
    page
    for page in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "sample_workspaces").rglob("*.md"),
    )
    if page not in {results.PAGE, ROOT / "docs" / "comparison.md"}  # `make compare` measures on its own
]

SHARE = r"\b[01]\.\d{2,3}\b|\b\d+ (?:of|in) (?:the |a )?(?:\d+|hundred)\b|\b\d+(?:\.\d+)?%"
MEASURE = re.compile(
    r"\b(?:BEAM|LoCoMo|CoSQA|PrefEval|SWE-bench|QuixBugs|MRR|precision|multi-hop)\b|\bF1\b|\brecall@\d",
    re.IGNORECASE,
)
"""The words of which one stands near every figure of the evaluation."""


def _stated(text):
    """The paragraphs, lists and tables that name a measure or a data set beside a share."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        part for part in re.split(r"\n\s*\n", without_code) if MEASURE.search(part) and re.search(SHARE, part)
    ]


def _distinct(kept):
    """Shares that are told by their digits: three decimals, or a count of fifteen and more."""
    values = {results.number(one["value"]) for section in kept.values() for one in section["figures"]}
    besides = " ".join(one["beside"] for section in kept.values() for one in section["figures"])
    shown = values | set(re.findall(r"\b\d\.\d{3}\b|\b\d+ of \d+\b", besides))
    return {
        one
        for one in shown
        if (re.fullmatch(r"\d\.\d{3}", one) and not one.endswith("00"))
        or ((count := re.fullmatch(r"(\d+) of (\d+)", one)) and count[1] != count[2] and int(count[2]) >= 15)
    }


def test_the_tables_of_the_page_are_those_of_the_kept_results():
    """They are written by ``python -m tests.eval --write-docs``, and by hand never."""
    assert results.tables(PAGE, results.read()) == PAGE


def test_every_section_has_its_table_on_the_page():
    """Nothing that is measured is left out of the page."""
    assert set(results.shown(PAGE)) == set(SECTIONS) - ONLY_BY_NAME
    assert len(results.shown(PAGE)) == len(set(results.shown(PAGE)))


def test_a_figure_that_a_mark_names_is_kept():
    """A key that is renamed does not drop its row unnoticed."""
    kept = {one["key"] for section in results.read().values() for one in section["figures"]}
    assert results.also(PAGE)
    assert results.also(PAGE) <= kept


def test_blind_figures_come_first():
    """The data that nothing was tuned on stands before all other."""
    assert results.shown(PAGE)[:2] == ["left_out", "prefeval"]


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_other_page_states_a_figure_of_the_evaluation(page):
    """A figure stated twice disagrees with itself sooner or later: other pages link to it."""
    text = page.read_text(encoding="utf-8")
    assert _stated(text) == [], "state it in docs/evaluation.md alone, and link to it"
    assert {
        one for one in _distinct(results.read()) if re.search(rf"(?<![\d.]){re.escape(one)}(?![\d.])", text)
    } == set()


def test_the_text_of_the_page_repeats_no_figure_of_its_tables():
    """The words around a table must hold when the table is written anew."""
    words = results.tables(PAGE, {})
    assert {
        one for one in _distinct(results.read()) if re.search(rf"(?<![\d.]){re.escape(one)}(?![\d.])", words)
    } == set()


@pytest.mark.parametrize(
    "text",
    [
        "Both: precision 0.92.",
        "| | precision | F1 |\n|---|---|---|\n| preferences | 0.79 | 0.75 |",
        "On LoCoMo 76 of 100 are found.",
        "recall@10 is 55% on long chats",
    ],
)
def test_a_figure_beside_its_measure_is_seen(text):
    """In a sentence and in a table alike."""
    assert _stated(text) == [text]


def test_a_missed_aim_is_marked_and_a_section_without_results_says_so(tmp_path):
    """By the value itself, not by how it is rounded."""
    kept = tmp_path / "results.json"
    results.keep(
        "cosqa",
        [
            Figure(
                "k", "MRR | all", 0.5799, 0.58, 0.58, more_is_better=True, beside="BM25 0.3; halves 0.5, 0.6"
            ),
            Figure("n", "count", 3),
            Figure("m", "more", 4),
        ],
        2,
        kept,
    )
    results.keep("flows", [Figure("f", "without an aim", 5)], 2, kept)
    page = "<!-- eval: flows -->\n<!-- end -->\n<!-- eval: cosqa; also n -->\nold\n<!-- end -->\n<!-- eval: beam -->\n<!-- end -->\n"
    made = results.tables(page, results.read(kept))
    assert "| MRR / all | 0.580 | **0.580, missed** | BM25 0.3 |" in made
    assert "| count | 3 |  |  |" in made, "named by the mark"
    assert "| more | 4" not in made, "without an aim"
    assert "| without an aim | 5 |" in made, "no figure of its section has an aim"
    assert made.endswith("<!-- eval: beam -->\nNot measured yet.\n<!-- end -->\n")
    assert results.tables(made, results.read(kept)) == made
