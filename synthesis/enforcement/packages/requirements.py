"""Names and versions of packages: how a check's names match them, and which versions fit."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from agentx.synthesis.memory.checks import DependencyCheck


class Requirement(msgspec.Struct, frozen=True):
    """A package that a manifest or a command asks for.

    Attributes:
        name: Its name as written.
        ecosystem: Its ecosystem; ``system`` for packages of the operating system.
        version: The version, range or tag as written; empty if none is given.
        line: Line in the manifest, from 1; 0 if unknown.
        is_tool: Whether it is a tool or an image beside the project, rather than a library in it.
        managed: Whether the version is set at another place.
    """

    name: str
    ecosystem: str
    version: str = ""
    line: int = 0
    is_tool: bool = False
    managed: bool = False


_IMPORTED = {
    "attrs": "attr", "beautifulsoup4": "bs4", "biopython": "bio", "djangorestframework": "rest-framework",
    "faiss-cpu": "faiss", "gitpython": "git", "google-api-python-client": "googleapiclient", "grpcio": "grpc",
    "mysqlclient": "mysqldb", "opencv-python": "cv2", "opencv-python-headless": "cv2", "pillow": "pil",
    "protobuf": "google-protobuf", "psycopg2-binary": "psycopg2", "pycryptodome": "crypto", "pyjwt": "jwt",
    "pyopenssl": "openssl", "pyserial": "serial", "python-dateutil": "dateutil", "python-docx": "docx",
    "python-dotenv": "dotenv", "python-jose": "jose", "python-magic": "magic", "python-pptx": "pptx",
    "pytorch": "torch", "pyyaml": "yaml", "pyzmq": "zmq", "scikit-image": "skimage",
    "scikit-learn": "sklearn", "websocket-client": "websocket", "discord-py": "discord",
}  # fmt: skip
"""Packages of Python whose modules have other names, both normalised."""

_NAMESPACES = {
    "maven": {
        "gson": "com.google.gson", "guava": "com.google.common", "jackson": "com.fasterxml.jackson",
        "jackson-databind": "com.fasterxml.jackson.databind", "log4j": "org.apache.log4j",
        "log4j-core": "org.apache.logging.log4j.core", "log4j-api": "org.apache.logging.log4j",
        "joda-time": "org.joda.time", "commons-lang3": "org.apache.commons.lang3",
        "commons-io": "org.apache.commons.io", "mockito-core": "org.mockito", "okhttp": "okhttp3",
        "junit-jupiter": "org.junit.jupiter", "slf4j-api": "org.slf4j", "hibernate-core": "org.hibernate",
    },
    "composer": {"guzzle": "GuzzleHttp", "dompdf": "Dompdf", "phpunit": "PHPUnit\\Framework"},
    "nuget": {"xunit": "Xunit", "nunit": "NUnit.Framework", "newtonsoft": "Newtonsoft.Json"},
}  # fmt: skip
"""By ecosystem, namespaces of packages that cannot be derived from their names."""

_MODULES: dict[str, tuple[str, ...]] = {}
for _package, _module in _IMPORTED.items():
    _MODULES[_module] = (*_MODULES.get(_module, ()), _package)
_FORGES = re.compile(r"(?:github|gitlab|bitbucket)\.\w+|codeberg\.org")


@lru_cache(maxsize=4096)
def normalised(name: str) -> str:
    """Return a package's name as it is compared.

    >>> normalised("Flask_SQLAlchemy"), normalised("ruamel.yaml")
    ('flask-sqlalchemy', 'ruamel-yaml')
    """
    return re.sub(r"[-_.]+", "-", name.strip().casefold())


@lru_cache(maxsize=1024)
def meanings(package: str) -> frozenset[str]:
    """Return the normalised names that a check's name means: the distribution, and its module in Python."""
    name = normalised(package)
    found = {name, _IMPORTED.get(name, name), *_MODULES.get(name, ())}
    if name.endswith("-js") and package.casefold().endswith(".js"):
        found.add(name.removesuffix("-js"))  # `moment.js` is how people call `moment`
    return frozenset(found)


def is_everything(check: DependencyCheck) -> bool:
    """Return whether a check is about every package rather than named ones."""
    return not check.packages or "*" in check.packages


def named_by(check: DependencyCheck, name: str, ecosystem: str) -> bool:
    """Return whether a check names a package."""
    forms = _forms(name, ecosystem)
    return any(_is_one_of(package, forms) for package in check.packages)


def _is_one_of(package: str, forms: Iterable[str]) -> bool:
    names = meanings(package)
    if "*" in package or "?" in package:
        return any(fnmatchcase(form, name) for form in forms for name in names)
    return not names.isdisjoint(forms)


def may_name(package: str, plain: str) -> bool:
    """Return whether a case-folded text has a word of a check's name, so that most texts are not parsed."""
    return any(word in plain for word in _tell_tales(package))


@lru_cache(maxsize=1024)
def _tell_tales(package: str) -> tuple[str, ...]:
    """Return words of which every text that names a package has one."""
    spaces = [names[package.casefold()] for names in _NAMESPACES.values() if package.casefold() in names]
    names = (*meanings(package.rpartition(":")[2]), *map(str.casefold, spaces))
    return tuple(max(re.findall(r"[^\W_]+", name) or [""], key=len) for name in names)


@lru_cache(maxsize=4096)
def _forms(name: str, ecosystem: str) -> frozenset[str]:
    """Return the normalised names by which a package is known: ``redis`` for ``docker.io/library/redis``."""
    found = [name]
    match ecosystem:
        case "npm" if name.startswith("@"):
            found.append(name[1:].partition("/")[0])
        case "go":
            found += _own_segments(name)
            found.append(re.sub(r"/v\d+$", "", name))
        case "maven":
            group, _, artifact = name.partition(":")
            found += [group, artifact]
        case "composer" | "docker":
            found.append(name.rpartition("/")[2])
        case "system":
            found += [re.sub(r"^python3?-", "", name), name.removesuffix("-server"), name.partition("@")[0]]
    return frozenset(map(normalised, found))


def _own_segments(module: str) -> list[str]:
    """Return the segments of a module of Go that name its project, without its packages."""
    segments = module.split("/")
    if "." not in segments[0]:
        return []
    return segments[1:3] if _FORGES.fullmatch(segments[0]) else segments[1:2]


def imports(package: str, module: str, ecosystem: str) -> bool:
    r"""Return whether the import of a module uses a package.

    >>> imports("PyYAML", "yaml.nodes", "python"), imports("lodash", "lodash/debounce", "npm")
    (True, True)
    >>> imports("pandas", "pandas_extra", "python"), imports("gson", "com.google.gson.Gson", "maven")
    (False, True)
    """
    sign = {"npm": "/", "go": "/", "rubygems": "/", "composer": "\\"}.get(ecosystem, ".")
    segments = module.split(sign)
    prefixes = {normalised("-".join(segments[:count])) for count in range(1, len(segments) + 1)}
    prefixes |= {normalised(sign.join(segments[:count])) for count in range(1, len(segments) + 1)}
    if ecosystem == "go":
        prefixes |= {normalised(segment) for segment in _own_segments(module)}
    elif ecosystem == "maven":
        prefixes |= {normalised(segment) for segment in segments[1:2]}
        package = package.rpartition(":")[2] if ":" in package else package
    elif ecosystem == "composer" and "/" in package:
        package = package.rpartition("/")[2]
    elif ecosystem == "npm" and module.startswith("@"):
        prefixes.add(normalised(segments[0][1:]))
    if space := _NAMESPACES.get(ecosystem, {}).get(package.casefold()):
        return module.casefold() == space.casefold() or module.casefold().startswith(
            f"{space}{sign}".casefold()
        )
    return _is_one_of(package, prefixes)


# --- versions -----------------------------------------------------------------------------------------------

_EXACT = re.compile(r"(={0,3})\s*v?\d+(?:[.\-+!]?[\w+!-]+)*")
_CLAUSE = re.compile(r"\s*(===?|~=|~>|<=|>=|!=|[<>=^~])?\s*v?(\d[\w.*+!-]*)")
_UNKNOWN = re.compile(r"[$\[({]|://|^(?:workspace|file|link|path|git)\b")


def misfit(requirement: Requirement, wanted: str) -> str:
    """Return why a version does not fit (``is not pinned``); empty if it fits or cannot be judged.

    Args:
        requirement: The package with its version.
        wanted: ``exact``, ``range`` or a specifier such as ``<2``.

    >>> misfit(Requirement("httpx", "python", ">=0.27"), "exact")
    'is not pinned to an exact version'
    >>> misfit(Requirement("httpx", "python", "==0.27"), "<1")
    ''
    """
    version = requirement.version.strip()
    if requirement.managed or _UNKNOWN.search(version):
        return ""
    if wanted in ("exact", "range"):
        pinned = _is_exact(version, requirement.ecosystem)
        if wanted == "exact":
            return "" if pinned else "is not pinned to an exact version"
        return "is pinned to an exact version" if pinned else ""
    low = _CLAUSE.match(version)
    if not low or low[1] in ("<", "<=", "!="):
        return ""
    return "" if _satisfies(_numbers(low[2]), wanted) else f"has a version that is not {wanted}"


def _is_exact(version: str, ecosystem: str) -> bool:
    found = _EXACT.fullmatch(version)
    if not found or re.search(r"(?:^|[.\-])[xX*](?:$|\.)", version) or version.endswith("-SNAPSHOT"):
        return False
    return bool(found[1]) or ecosystem != "cargo"


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _satisfies(version: tuple[int, ...], specifier: str) -> bool:
    return all(_fits_clause(version, sign, bound) for sign, bound in _clauses(specifier))


def _clauses(specifier: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in re.split(r"\s*,\s*|\s+(?=[<>=!~^])", specifier):
        if clause := _CLAUSE.match(part):
            yield clause[1] or "==", _numbers(clause[2])


def _fits_clause(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    width = max(len(version), len(bound))
    ours, theirs = (one + (0,) * (width - len(one)) for one in (version, bound))
    same = version[: len(bound)] == bound[: len(version)]
    match sign:
        case "<":
            return ours < theirs
        case "<=":
            return ours <= theirs or same
        case ">":
            return ours > theirs
        case ">=":
            return ours >= theirs
        case "!=":
            return not same
        case "^":
            return ours >= theirs and version[:1] == bound[:1]
        case "~=" | "~>" | "~":
            kept = max(1, len(bound) - 1)
            return ours >= theirs and version[:kept] == bound[:kept]
    return same
