"""Packages that command lines install: by pip, npm, cargo, go and other package managers, and by Docker."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentx.synthesis.enforcement.packages.requirements import Requirement
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.command_line import ProgramCall, located

_PYTHON = re.compile(
    r"([A-Za-z0-9](?:[\w.-]*\w)?)\s*(?:\[[^\]]*\])?\s*(@(?=\s*[\w^~<>=*])|(?=[=<>!~^])|$)\s*(.*)", re.DOTALL
)
_LOCAL = re.compile(r"[./~]|[A-Za-z]:[\\/]|file:|workspace:|link:")


class _Installer(NamedTuple):
    """How a package manager is called.

    Attributes:
        verbs: Subcommands that add packages; of two words for ``pip install`` of uv.
        reads: Returns the package that an argument names.
        values: Flags whose value is the next word.
        manifest: The file that it changes; empty if it changes none.
        tools: Subcommands among the verbs that install tools beside the project.
    """

    verbs: tuple[str, ...]
    reads: Callable[[str], Requirement | None]
    values: frozenset[str]
    manifest: str = ""
    tools: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def installed(command: str) -> tuple[tuple[Requirement, str], ...]:
    """Return the packages that a command line installs, each with the manifest that it changes.

    >>> [(one.name, one.version, path) for one, path in installed("cd web && npm i -D tailwindcss@3")]
    [('tailwindcss', '3', 'web/package.json')]
    """
    return tuple(
        (one, posixpath.normpath(posixpath.join(folder, manifest)) if manifest else "")
        for call, folder in located(command)
        for one, manifest in _of_call(call)
    )


def _of_call(call: ProgramCall) -> Iterator[tuple[Requirement, str]]:
    if found := _docker_image(call.words):
        yield found, ""
        return
    program = "pip" if re.fullmatch(r"pip[\d.]*", call.program) else call.program
    manager = _INSTALLERS.get(_SAME.get(program, program))
    if manager is None:
        return
    names, flags = _positionals(call.arguments, manager.values)
    names = _without_scope(program, names)
    verb = next(
        (verb for verb in manager.verbs if names[: len(verb.split())] == verb.split()),
        "",
    )
    if not verb or "--dry-run" in flags:
        return
    rest = names[len(verb.split()) :]
    version = next((flags[flag] for flag in ("--version", "-v", "--vers") if flags.get(flag)), "")
    if program == "dotnet" and verb == "add":
        rest = rest[rest.index("package") + 1 :] if "package" in rest else []
    tool = verb in manager.tools or bool({"-g", "--global"} & set(flags))
    pinned = bool({"-E", "--save-exact", "--exact"} & set(flags))
    for word in rest:
        if one := manager.reads(word):
            managed = (pinned or bool({"--git", "--path", "--rev"} & set(flags))) and not one.version
            given = one.version or version
            yield (
                Requirement(one.name, one.ecosystem, given, is_tool=tool or one.is_tool, managed=managed),
                "" if tool else manager.manifest,
            )


def _positionals(words: Sequence[str], values: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that are not flags, and the flags with their values."""
    names: list[str] = []
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            names += rest
        elif word.startswith("-") and len(word) > 1:
            flag, sign, value = word.partition("=")
            flags[flag] = value if sign else next(rest, "") if flag in values else ""
        else:
            names.append(word)
    return names, flags


def _without_scope(program: str, names: list[str]) -> list[str]:
    """Remove the words before the subcommand that say for which project or toolchain it is."""
    if program == "yarn" and names[:1] == ["workspace"]:
        return names[2:]
    if program == "composer" and names[:1] == ["global"]:
        return names[1:]
    return names[1:] if names and names[0].startswith("+") else names


# --- what an argument names ---------------------------------------------------------------------------------


def python_requirement(words: str) -> Requirement | None:
    """Return the package of a requirement of Python, Poetry or conda; ``None`` if it is a path.

    >>> python_requirement("psycopg[binary] >=3,<4 ; python_version > '3.8'")
    Requirement(name='psycopg', ecosystem='python', version='>=3,<4', line=0, is_tool=False, managed=False)
    """
    words = words.strip()
    if "://" in words and "@" not in words.partition("://")[0]:
        name = re.search(r"#egg=([\w.-]+)", words) or re.search(r"/([\w.-]+?)(?:\.git)?(?:@[^/]*)?$", words)
        return Requirement(name[1], "python", managed=True) if name else None
    if _LOCAL.match(words) or re.search(r"\.(?:whl|zip|tar\.gz|txt)$", words):
        return None
    words = words.partition(";")[0].rpartition("::")[2].strip()
    found = _PYTHON.fullmatch(words)
    if not found:
        return None
    version = found[3].strip()
    return Requirement(found[1], "python", version, managed="://" in version)


def _npm(word: str) -> Requirement | None:
    found = re.fullmatch(r"(?:npm:|jsr:)?(@[\w.~-]+/[\w.~-]+|[\w.~-]+)(?:@(.*))?", word)
    if _LOCAL.match(word) or not found or word.endswith((".tgz", ".tar.gz")):
        return None
    alias = re.fullmatch(r"npm:(@?[^@]+)@?(.*)", found[2] or "")
    return Requirement(alias[1], "npm", alias[2]) if alias else Requirement(found[1], "npm", found[2] or "")


def _go(word: str) -> Requirement | None:
    name, _, version = word.partition("@")
    is_module = "." in name.partition("/")[0] and not name.startswith(".") and version != "none"
    return Requirement(re.sub(r"/\.\.\.$", "", name), "go", version) if is_module else None


def _plain(ecosystem: str, sign: str = "@") -> Callable[[str], Requirement | None]:
    def read(word: str) -> Requirement | None:
        name, _, version = word.partition(sign)
        is_name = re.fullmatch(r"[A-Za-z0-9@][\w.+@/-]*", name) and not _LOCAL.match(word)
        return Requirement(name, ecosystem, version, is_tool=ecosystem == "system") if is_name else None

    return read


def _composer(word: str) -> Requirement | None:
    found = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:[:=@ ](.*))?", word)
    return Requirement(found[1], "composer", found[2] or "") if found else None


_WRAPPER_WORDS = 8
_DOCKER_VALUES = vocabulary(
    """
    -p --publish -v --volume -e --env --env-file --name --network --net -w --workdir -u --user --mount -h
    --hostname --restart -m --memory --cpus --entrypoint --add-host --label -l --platform --pull --gpus --ipc
    --shm-size --ulimit --device --dns --ip --log-driver --log-opt --link --cap-add --cap-drop
    --security-opt --tmpfs --health-cmd --expose --pid --stop-signal --runtime --cidfile
    """
)


def _docker_image(words: Sequence[str]) -> Requirement | None:
    """Return the image of ``docker run`` or ``docker pull``."""
    programs = map(posixpath.basename, words[:_WRAPPER_WORDS])
    place = next((n for n, word in enumerate(programs) if word in {"docker", "podman", "nerdctl"}), None)
    rest = list(words[place + 1 :]) if place is not None else []
    rest = rest[1:] if rest[:1] in (["container"], ["image"]) else rest
    if rest[:1] not in (["run"], ["pull"], ["create"]):
        return None
    names, _ = _positionals(rest[1:], _DOCKER_VALUES)
    return image(names[0]) if names else None


def image(words: str) -> Requirement | None:
    """Return the image that words name; ``None`` if they name none, or a variable.

    >>> one = image("docker.io/library/redis:7-alpine")
    >>> one.name, one.version
    ('docker.io/library/redis', '7-alpine')
    """
    name, _, digest = words.partition("@")
    found = re.fullmatch(r"((?:[\w.-]+(?::\d+)?/)*[\w.-]+)(?::([\w.-]+))?", name)
    if not found or found[1] == "scratch":
        return None
    return Requirement(found[1], "docker", found[2] or "", is_tool=True, managed=bool(digest))


# --- the package managers -----------------------------------------------------------------------------------

_PIP_VALUES = vocabulary(
    """
    -r --requirement -c --constraint -t --target -i --index-url --extra-index-url -f --find-links --prefix
    --root --python-version --platform --no-binary --only-binary --proxy --timeout --retries --cache-dir
    --log --src --config-settings -C --progress-bar --upgrade-strategy --report --exists-action
    --trusted-host --cert --client-cert --implementation --abi --use-feature --group --extra --index
    --default-index --python --project --directory --tag --branch --rev --package --optional -p
    -G --extras --source --markers --categories -n --name --channel --file --override -d --dest
    """
)
_NPM_VALUES = vocabulary(
    """
    --prefix -C --workspace --registry --tag --save-prefix --omit --include --loglevel --cache --userconfig
    --filter -F --dir --store-dir --cwd --config --mode --network-timeout
    """
)
_CARGO_VALUES = vocabulary(
    "--features -F --git --branch --tag --rev --path --package -p --manifest-path --rename --target"
    " --registry --version --vers --root --index -j --jobs --profile --config --color"
)
_GEM_VALUES = vocabulary(
    "-v --version -g --group -s --source --git --branch --path --require -i --install-dir -n --bindir"
    " --platform --github --ref"
)
_SYSTEM_VALUES = vocabulary("-t --target-release -o --option -c --config-file --appdir --repository -X")

_NPM = _Installer(
    ("install", "i", "add", "in", "ins", "isntall"),
    _npm,
    _NPM_VALUES | vocabulary("-w"),
    "package.json",
)
_SYSTEM = _Installer(("install", "reinstall"), _plain("system", "="), _SYSTEM_VALUES)
_INSTALLERS = {
    "pip": _Installer(("install", "download"), python_requirement, _PIP_VALUES),
    "uv": _Installer(
        ("add", "pip install", "tool install"),
        python_requirement,
        _PIP_VALUES,
        "pyproject.toml",
        ("tool install",),
    ),
    "poetry": _Installer(("add",), python_requirement, _PIP_VALUES | {"-E", "-C"}, "pyproject.toml"),
    "pipenv": _Installer(("install",), python_requirement, _PIP_VALUES, "Pipfile"),
    "pipx": _Installer(("install",), python_requirement, _PIP_VALUES, "", ("install",)),
    "conda": _Installer(("install", "create"), python_requirement, _PIP_VALUES),
    "npm": _NPM,
    "pnpm": _NPM._replace(values=_NPM_VALUES),
    "yarn": _NPM._replace(verbs=("global add", "add"), tools=("global add",), values=_NPM_VALUES),
    "deno": _NPM._replace(verbs=("add", "install"), manifest="deno.json", values=_NPM_VALUES),
    "cargo": _Installer(("add", "install"), _plain("cargo"), _CARGO_VALUES, "Cargo.toml", ("install",)),
    "go": _Installer(("get", "install"), _go, vocabulary("-C -tags -modfile"), "go.mod", ("install",)),
    "composer": _Installer(("require",), _composer, vocabulary("-d --working-dir"), "composer.json"),
    "gem": _Installer(("install",), _plain("rubygems", ":"), _GEM_VALUES, "", ("install",)),
    "bundle": _Installer(("add",), _plain("rubygems", ":"), _GEM_VALUES, "Gemfile"),
    "dotnet": _Installer(
        ("package add", "add"),
        _plain("nuget"),
        vocabulary("-v --version -f --framework -s --source --package-directory --project"),
        "Directory.csproj",
    ),
    "apt": _SYSTEM,
    "apk": _SYSTEM._replace(verbs=("add",)),
}
_SAME = {
    "pdm": "poetry", "rye": "poetry", "hatch": "poetry", "mamba": "conda", "micromamba": "conda",
    "bun": "pnpm", "apt-get": "apt", "aptitude": "apt", "brew": "apt", "dnf": "apt", "yum": "apt",
    "zypper": "apt", "bundler": "bundle",
}  # fmt: skip
"""Package managers that are called like another one."""
