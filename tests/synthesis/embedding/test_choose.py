"""A setting names the embedder; a hosted one is held to its answers."""

import numpy as np
import pytest

from agentx.storage.errors import UsageError
from agentx.synthesis.embedding import ModelUnavailable, open_embedder
from agentx.synthesis.embedding.hosted import BATCH
from agentx.synthesis.model.port import ModelError


def test_none_means_lexical_search(tmp_path):
    assert open_embedder("none", tmp_path) is None


def test_a_model_that_is_not_installed_says_how_to_install_it(tmp_path):
    with pytest.raises(ModelUnavailable, match="agentx models install minilm"):
        open_embedder("minilm", tmp_path)


@pytest.mark.parametrize("spec", ["", "bert", "litellm:", "litellm"])
def test_an_unknown_embedder_is_wrong_use(spec, tmp_path):
    with pytest.raises(UsageError, match="No embedder is called"):
        open_embedder(spec, tmp_path, lambda _: lambda texts: [[1.0] for _ in texts])


def test_a_hosted_model_without_a_way_to_ask_it_is_unavailable(tmp_path):
    with pytest.raises(ModelUnavailable):
        open_embedder("litellm:openai/x", tmp_path)


def test_a_hosted_model_is_asked_by_its_name_in_batches_and_its_vectors_get_unit_length(tmp_path):
    asked = []

    def ask(model):
        def embed(texts):
            asked.append((model, len(texts), texts[0]))
            return [[float(len(text)), 4.0] for text in texts]

        return embed

    embedder = open_embedder("litellm:openai/small", tmp_path, ask)
    assert (embedder.name, embedder.dimensions) == ("litellm:openai/small", 0)
    vectors = embedder.embed_passages(["abc"] * BATCH + [""])
    assert asked == [("openai/small", BATCH, "abc"), ("openai/small", 1, " ")]
    assert vectors[0].tolist() == pytest.approx([0.6, 0.8])
    assert embedder.dimensions == 2
    assert np.linalg.norm(embedder.embed_query("\ud800")) == pytest.approx(1)


@pytest.mark.parametrize("answer", [[], [[]], [[1.0], [1.0]], [[1.0, 2.0, 3.0]]])
def test_a_hosted_model_that_lies_about_its_vectors_is_refused(answer, tmp_path):
    answers = iter([[[1.0, 0.0]], answer])
    embedder = open_embedder("litellm:m", tmp_path, lambda _: lambda _: next(answers))
    embedder.embed_query("x")
    with pytest.raises(ModelUnavailable, match="one of the same length for each"):
        embedder.embed_query("y")


def test_a_hosted_model_that_cannot_be_reached_is_unavailable_in_its_own_words(tmp_path):
    def embed(texts):
        raise ModelError("No key is set for openai.")

    with pytest.raises(ModelUnavailable, match="No key is set for openai"):
        open_embedder("litellm:m", tmp_path, lambda _: embed).embed_query("x")
