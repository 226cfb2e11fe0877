"""Where compilers and package managers keep their programs and packages, below the user's home directory.

A command runs with an empty home, so a toolchain that looks for its programs there would find none. The home
gets links to the named parts of their directories. An isolated command may read these parts, never write to
them. Credentials lie beside them and are not linked.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Toolchain(NamedTuple):
    """A row of the table.

    Attributes:
        variable: The environment variable that names its directory; passed on if set.
        folder: The directory without the variable, relative to the home; empty for none.
        parts: What a command may read in it; empty for everything.
    """

    variable: str
    folder: str = ""
    parts: tuple[str, ...] = ()


TOOLCHAINS = (
    Toolchain("RUSTUP_HOME", ".rustup"),
    Toolchain("CARGO_HOME", ".cargo", ("git", "registry")),
    Toolchain("GOROOT"),
    Toolchain("GOMODCACHE", "go/pkg/mod"),
    Toolchain("NVM_DIR", ".nvm", ("alias", "versions")),
    Toolchain("VOLTA_HOME", ".volta", ("bin", "tools")),
    Toolchain("PNPM_HOME", ".local/share/pnpm"),
    Toolchain("BUN_INSTALL", ".bun", ("bin", "install")),
    Toolchain("DENO_INSTALL", ".deno", ("bin",)),
    Toolchain("PYENV_ROOT", ".pyenv"),
    Toolchain("JAVA_HOME"),
    Toolchain("SDKMAN_DIR", ".sdkman", ("bin", "candidates", "libexec", "src")),
    Toolchain("GRADLE_USER_HOME", ".gradle", ("jdks", "wrapper")),
    Toolchain("MAVEN_USER_HOME", ".m2", ("repository", "wrapper")),
    Toolchain("DOTNET_ROOT", ".dotnet", ("dotnet", "host", "packs", "sdk", "shared", "tools")),
    Toolchain("NUGET_PACKAGES", ".nuget/packages"),
)

_FURTHER = ("GOFLAGS", "GOPATH")
"""Further variables of toolchains that are passed on."""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of toolchains that are set."""
    names = (*_FURTHER, *(tool.variable for tool in TOOLCHAINS))
    return {name: environ[name] for name in names if name in environ}


def link(environ: Mapping[str, str], home: Path) -> None:
    """Link the toolchains in the user's home into an empty home."""
    for tool in TOOLCHAINS:
        for part in _parts(tool, environ) if tool.variable not in environ else ():
            linked = home / part.relative_to(environ["HOME"])
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.symlink_to(part)


def readable(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths of the toolchains that an isolated command may read."""
    return [part for tool in TOOLCHAINS for part in _parts(tool, environ)]


def _parts(tool: Toolchain, environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME", "")
    place = environ.get(tool.variable) or (f"{home}/{tool.folder}" if home and tool.folder else "")
    if place.startswith("/"):
        yield from (path for part in tool.parts or ("",) if (path := Path(place, part)).exists())
