"""What is built holds the whole package, though two of its folders are links in the checkout."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from agentx.storage.extras import ADAPTERS, EXTRAS
from tests.pinned import OURS, names, pins, plain, project

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("agentx", "storage", "synthesis")


def build(source: Path, target: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """An sdist, a wheel, and a wheel made from the sdist; from a copy, so that the checkout stays as it is."""
    base = tmp_path_factory.mktemp("built")
    checkout = base / "checkout"
    checkout.mkdir()
    for folder in (*FOLDERS, "sample_workspaces"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, checkout / folder, symlinks=True, ignore=ignored)
    for file in ("pyproject.toml", "LICENSE", "README.md", ".gitignore"):
        if (ROOT / file).exists():
            shutil.copy(ROOT / file, checkout)
    sdist = build(checkout, "sdist", base / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(base / "unpacked", filter="data")
    (unpacked,) = (base / "unpacked").iterdir()
    wheel = build(checkout, "wheel", base / "wheel")
    return {"sdist": sdist, "wheel": wheel, "again": build(unpacked, "wheel", base / "again")}


def modules_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_every_module_and_prompt_under_its_one_name(built):
    wanted = set()
    for folder in FOLDERS:
        prefix = "" if folder == "agentx" else "agentx/"
        files = (p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        paths = [p for p in files if not p.is_relative_to(ROOT / "agentx" / folder)]
        wanted |= {prefix + p.relative_to(ROOT).as_posix() for p in paths}
    assert modules_of(built["wheel"]) >= wanted | {"agentx/py.typed", "agentx/synthesis/prompts/judge.md"}
    assert {name.split("/")[0] for name in modules_of(built["wheel"])} == {"agentx"}


def test_a_wheel_made_from_the_sdist_is_the_same(built):
    assert modules_of(built["again"]) == modules_of(built["wheel"])


def test_an_installed_wheel_imports_from_its_own_files(built, tmp_path):
    with zipfile.ZipFile(built["again"]) as archive:
        archive.extractall(tmp_path)
    code = "import agentx.storage.events.types as a, agentx.synthesis.memory.items as b; print(a.__file__, b.__file__, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(line.startswith(f"{tmp_path}/agentx/") for line in done.stdout.splitlines())


def test_a_sample_plays_from_an_installed_wheel_in_any_directory(built, tmp_path):
    with zipfile.ZipFile(built["wheel"]) as archive:
        archive.extractall(tmp_path / "site")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from agentx.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "site"), "run", "--sample", "rejected-idea"]
    command += ["--into", str(tmp_path / "played")]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "played" / "history.jsonl").exists()


def test_the_wheel_says_what_it_is(built):
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(archive.read(metadata))
        (scripts,) = (name for name in names if name.endswith("/entry_points.txt"))
        assert "agentx = agentx.cli.main:main" in archive.read(scripts).decode()
    assert (said["Name"], said["License-Expression"]) == ("agentx-workspace", "Apache-2.0")
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_extras_are_those_that_the_engine_knows_and_all_has_every_one_but_the_adapters():
    extras = project()["optional-dependencies"]
    (all_of_them,) = extras.pop("all")
    assert extras.keys() == {extra.name for extra in EXTRAS}
    assert all_of_them == f"{OURS}[{','.join(sorted(extras.keys() - {extra.name for extra in ADAPTERS}))}]"
    assert all(names(extras[extra.name]) == set(extra.packages) for extra in EXTRAS)


def test_the_plain_install_is_small():
    """A package more, here or in what a dependency needs, is a decision: see docs/decisions/0002-dependencies.md."""
    required = {"pygit2", "pydantic", "blinker", "lancedb", "litellm", "watchdog"}
    assert required <= names(project()["dependencies"]) <= plain()
    elsewhere = {"colorama", "httpx2-jsfetch", "pywin32"}  # on Windows or Emscripten alone
    assert len(plain() - elsewhere) == 98
    added = {name for extra in EXTRAS if extra not in ADAPTERS for name in extra.packages}
    added -= {"tokenizers"}  # which litellm needs
    assert not added & plain()
    assert plain() | added <= pins("runtime")


def test_no_pin_names_a_place():
    files = sorted((ROOT / "requirements").glob("*.txt"))
    assert [file.stem for file in files] == ["bench", "checkout", "dev", "docs", "fuzz", "runtime"]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    pins = [line for line in lines if not line.startswith(("#", "--hash=sha256:"))]
    assert all("==" in pin and "://" not in pin and not pin.startswith("-") for pin in pins)
    assert len(pins) > 100


def test_whatever_is_installed_from_a_registry_is_checked_by_its_hash():
    """Also for `make bench` and `make fuzz`; the checkout itself is installed without what it needs."""
    files = [ROOT / "Makefile", *sorted((ROOT / "requirements").glob("*.sh")), ROOT / ".ci" / "run"]
    lines = [line for file in files for line in file.read_text("utf-8").replace("\\\n", " ").splitlines()]
    installs = [line.strip() for line in lines if re.search(r"\bpip install\b|^install ", line)]
    assert len([line for line in installs if "--require-hashes" in line]) == 3
    assert [line for line in installs if "--require-hashes" not in line and '"$@"' not in line] == [
        "install --no-deps --no-build-isolation --editable ."
    ]
