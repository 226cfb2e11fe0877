"""The model that runs here gives what the official one gives, for any text, in any batch."""

import subprocess
import sys
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx.synthesis.embedding import ModelUnavailable, open_embedder
from agentx.synthesis.embedding.minilm import MiniLM

PAIRS = [
    ("How do I cancel my subscription?", "To end your plan, open Billing and choose Stop renewal."),
    ("Where did Ann spend the summer?", "Ann: We were in Rome for two weeks in July."),
    (
        "function that retries a failing http call",
        "def get(url):\n    for n in range(3):\n        try: return fetch(url)",
    ),
    ("what makes leaves green", "Chlorophyll absorbs red and blue light and reflects the rest."),
    ("the build fails with a missing header", "fatal error: zlib.h: No such file or directory"),
    ("cheap place to sleep in Lisbon", "The hostel near Rossio costs 20 euros a night."),
]


@pytest.fixture(scope="module")
def model(minilm_folder, user_cache):
    return open_embedder("minilm", user_cache)


def test_sentences_are_as_near_as_the_models_own_documentation_says(model):
    # https://www.sbert.net/docs/quickstart.html: 0.6660, 0.1046 and 0.1411 in float32.
    a, b, c = model.embed_passages(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    assert [float(a @ b), float(a @ c), float(b @ c)] == pytest.approx([0.6660, 0.1046, 0.1411], abs=0.04)


def test_a_question_finds_the_passage_that_answers_it(model):
    passages = np.array(model.embed_passages([passage for _, passage in PAIRS]))
    for index, (question, _) in enumerate(PAIRS):
        assert int(np.argmax(passages @ model.embed_query(question))) == index


def test_a_text_has_one_vector_whatever_stands_beside_it_and_in_its_order(model):
    texts = ["word " * n for n in (300, 1, 40, 0, 7, 120, 3)]
    vectors = model.embed_passages(texts)
    assert all(v.dtype == np.float32 and v.shape == (model.dimensions,) for v in vectors)
    for text, vector in zip(texts, vectors, strict=True):
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-4)
        assert (vector == model.embed_query(text)).all()


def test_more_than_the_128_tokens_of_the_shipped_tokenizer_are_read_and_no_more_than_256(model):
    start = "weather " * 150
    with_end = model.embed_query(start + "submarine " * 50)
    assert float(with_end @ model.embed_query(start)) < 0.95
    assert (
        float(model.embed_query("weather " * 254) @ model.embed_query("weather " * 254 + "submarine " * 99))
        > 0.999
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=4))
def test_any_text_has_a_vector(model, texts):
    vectors = model.embed_passages(texts)
    assert len(vectors) == len(texts)
    assert all(np.isfinite(v).all() for v in vectors)


def test_a_huge_or_broken_text_is_read_up_to_a_bound(model):
    for text in ("a" * 10_000_000, "\ud800" * 100, "\0" * 100, "x " * 1_000_000):
        assert np.isfinite(model.embed_query(text)).all()


def test_a_model_that_was_installed_for_earlier_vectors_is_still_used(minilm_folder):
    assert minilm_folder.name == "minilm-int8-1"
    assert MiniLM.name == "minilm-int8-2"


def test_nothing_at_all_is_embedded_as_nothing(model):
    assert model.embed_passages([]) == []


def test_the_sum_before_a_normalisation_is_not_fused_with_it(minilm_folder, tmp_path, monkeypatch):
    # onnxruntime's fused kernel takes four times as long as the sum and the normalisation.
    made = tmp_path / "optimised.onnx"

    class Written(onnxruntime.SessionOptions):
        def __init__(self):
            super().__init__()
            self.optimized_model_filepath = str(made)

    monkeypatch.setattr(onnxruntime, "SessionOptions", Written)
    MiniLM(minilm_folder).embed_query("x")
    kinds = Counter(node.op_type for node in onnx.load(made).graph.node)
    assert (kinds["LayerNormalization"], kinds["SkipLayerNormalization"]) == (13, 0)


def test_a_damaged_model_is_one_sentence(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        MiniLM(tmp_path).embed_query("x")


def test_nothing_heavy_is_loaded_before_something_is_embedded():
    code = (
        "import sys\nfrom pathlib import Path\nfrom agentx.synthesis.embedding import open_embedder\n"
        "open_embedder('none', Path('.'))\n"
        "print([m for m in ('onnx', 'onnxruntime', 'tokenizers', 'safetensors', 'litellm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
