"""Which products are compared, and their environments."""

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).with_name("peers.toml")
_INSTALL_S = 1_200


@dataclass(frozen=True)
class Peer:
    """A product: its key, the module that drives it, and the distributions that it needs."""

    key: str
    driver: str = ""
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Installed:
    """The interpreter that has a product, or why there is none."""

    python: str = ""
    error: str = ""


def peers(keys: list[str]) -> list[Peer]:
    """Return the products of the file, in its order; all without keys.

    Raises:
        SystemExit: If a key is not in the file.
    """
    known = {
        key: Peer(key, one.get("driver", ""), tuple(one.get("packages", ())))
        for key, one in tomllib.loads(PINS.read_text("utf-8")).items()
    }
    if unknown := [key for key in keys if key not in known]:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. Known are {', '.join(known)}.")
    return [one for key, one in known.items() if not keys or key in keys]


def install(peer: Peer, cache: Path) -> Installed:
    """Install a product once, from wheels alone, below the cache."""
    if not peer.packages:
        return Installed(sys.executable)
    home = cache / "environments" / peer.key
    python, stamp = home / "bin" / "python", home / "installed"
    said = "\n".join(peer.packages)
    if stamp.exists() and stamp.read_text() == said:
        return Installed(str(python))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--only-binary", ":all:"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True, capture_output=True)
        done = subprocess.run(
            [*pip, "--disable-pip-version-check", *peer.packages],
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Installed(error=f"not installed: {error}")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return Installed(error=f"not installed: {_shortened((lines or ['pip failed'])[-1])}")
    stamp.write_text(said)
    return Installed(str(python))


def _shortened(line: str) -> str:
    return line.removeprefix("ERROR: ").partition(" (from versions")[0]
