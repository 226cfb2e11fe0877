"""Freely worded rules: merged by meaning, and kept apart by what differs, however it is worded."""

from functools import cache
from pathlib import Path

import pytest

from agentx.settings import read_settings
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import ModelUnavailable
from agentx.synthesis.similarity.near_duplicates import no_likeness
from agentx.synthesis.similarity.paraphrase import compare

LINES = (Path(__file__).parent / "paraphrases.txt").read_text("utf-8").splitlines()
GROUPS, NEAR = ([line[1:].split("|") for line in LINES if line.startswith(sign)] for sign in "=!")


@pytest.fixture(scope="module")
def near():
    """The cosine of the meanings of two texts."""
    try:
        embedder = open_embedder("minilm", read_settings().cache_dir)
    except ModelUnavailable:
        pytest.skip("MiniLM is not installed")
    vector = cache(embedder.embed_query)
    return lambda one, other: float(vector(one) @ vector(other))


def joined(texts, near, *verdicts):
    """Whether all wordings of a group are joined by pairs with one of some verdicts."""
    found = {0}
    for _ in texts:
        found |= {
            n
            for n, text in enumerate(texts)
            if any(compare(texts[other], text, near) in verdicts for other in found)
        }
    return len(found) == len(texts)


def test_most_free_rewordings_are_merged_and_nearly_all_others_are_proposed(near):
    assert len(GROUPS) >= 60
    assert sum(joined(texts, near, "same") for texts in GROUPS) >= 0.65 * len(GROUPS)
    assert sum(joined(texts, near, "same", "perhaps") for texts in GROUPS) >= 0.9 * len(GROUPS)


@pytest.mark.parametrize(("one", "other"), NEAR)
def test_rules_that_differ_are_not_merged(near, one, other):
    assert compare(one, other, near) != "same"
    assert compare(one, other, no_likeness) == "apart"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Add captions to all tables.", "Every figure has to have a caption."),
        ("Deploy on Tuesdays.", "Thursday is the day on which we deploy."),
        ("Copy the prices from the ERP into the web shop.", "The ERP takes its prices from the web shop."),
        ("Receipts over 50 euros are scanned.", "Scan each receipt of less than fifty euros."),
        ("Before each release, tell Joana.", "After a release is out, Joana has to be told."),
        ("Write comments in the C files in English.", "English is the language of comments in Python files."),
        ("Put new models in `src/models`.", "New models belong into `lib/models`."),
        ("Never restart the server without asking.", "Restart the server; nobody has to be asked."),
    ],
)
def test_no_cosine_overrules_what_differs(one, other):
    assert compare(one, other, lambda _one, _other: 1.0) != "same"


def test_without_a_model_rules_with_the_same_words_are_merged():
    assert (
        compare("Water the seedlings every morning.", "Each morning the seedlings get watered.", no_likeness)
        == "same"
    )
