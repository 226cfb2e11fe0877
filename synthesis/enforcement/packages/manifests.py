"""Packages that manifests ask for, in the formats of nine ecosystems."""

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from agentx.synthesis.enforcement.packages.package_commands import image, installed, python_requirement
from agentx.synthesis.enforcement.packages.requirements import Requirement

MAX_MANIFEST = 1_000_000
"""Maximum number of characters of a manifest that is read."""


def requirements_in(path: str, text: str) -> tuple[Requirement, ...] | None:
    """Return the packages that a manifest asks for; ``None`` if it is broken, or not a manifest.

    >>> [(one.name, one.version) for one in requirements_in("requirements.txt", "redis==5  # old")]
    [('redis', '==5')]
    """
    reads = _reader(posixpath.basename(path), path)
    if reads is None or len(text) > MAX_MANIFEST:
        return None
    try:
        return tuple(reads(text.removeprefix("\ufeff")))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def is_manifest(path: str) -> bool:
    """Return whether a path is that of a manifest."""
    return _reader(posixpath.basename(path), path) is not None


def _reader(name: str, path: str) -> Callable[[str], Iterator[Requirement]] | None:
    return next((reads for form, reads in _READERS if form.fullmatch(name) or form.fullmatch(path)), None)


def _line_of(text: str, name: str) -> int:
    """Return the line of the first mention of a name, as a word."""
    found = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


# --- Python -------------------------------------------------------------------------------------------------


def _pyproject(text: str) -> Iterator[Requirement]:
    data = tomllib.loads(text)
    project, tools = data.get("project", {}), data.get("tool", {})
    groups = [
        project.get("dependencies", []),
        *project.get("optional-dependencies", {}).values(),
        *data.get("dependency-groups", {}).values(),
        *tools.get("pdm", {}).get("dev-dependencies", {}).values(),
        tools.get("uv", {}).get("dev-dependencies", []),
        *(env.get("dependencies", []) for env in tools.get("hatch", {}).get("envs", {}).values()),
    ]
    for words in (word for group in groups for word in group if isinstance(word, str)):
        if found := python_requirement(words):
            yield Requirement(found.name, "python", found.version, _line_of(text, found.name))
    poetry = tools.get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from _of_table(text, {name: value for name, value in table.items() if name != "python"})


def _pipfile(text: str) -> Iterator[Requirement]:
    data = tomllib.loads(text)
    for key in ("packages", "dev-packages"):
        yield from _of_table(text, data.get(key, {}))


def _of_table(text: str, table: dict[str, Any], ecosystem: str = "python") -> Iterator[Requirement]:
    """Yield the packages of a table of TOML, whose values are versions or tables with one."""
    for name, value in table.items():
        fields = value if isinstance(value, dict) else {"version": value}
        if "path" in fields:
            continue
        managed = "version" not in fields
        version = str(fields.get("version", ""))
        yield Requirement(
            fields.get("package", name), ecosystem, version, _line_of(text, name), managed=managed
        )


def _requirement_lines(text: str) -> Iterator[Requirement]:
    for number, line in enumerate(re.sub(r"\\\n", "  ", text).splitlines(), start=1):
        words = re.sub(r"(?:^|\s)#.*", "", line).strip()
        words = re.sub(r"^(?:-e|--editable)[\s=]+", "", words)
        words = re.sub(r"\s--hash.*", "", words)
        if words and not words.startswith("-") and (found := python_requirement(words)):
            yield Requirement(found.name, "python", found.version, number, managed=found.managed)


def _environment(text: str) -> Iterator[Requirement]:
    """Yield the packages of an environment of conda, read by lines."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\w", line):
            inside = line.startswith("dependencies:")
        elif inside and (found := re.match(r"\s*-\s+['\"]?([^'\"#\s:][^'\"#]*)", line)):
            words = found[1].strip()
            if not words.endswith(":") and (one := python_requirement(words)):
                version = one.version if one.name != "python" else ""
                if one.name not in ("python", "pip"):
                    yield Requirement(one.name, "python", version, number)


# --- JavaScript, Rust, Go -----------------------------------------------------------------------------------

_LOCAL = re.compile(r"(?:workspace|file|link|portal):")


def _package_json(text: str) -> Iterator[Requirement]:
    data = json.loads(text)
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, version in data.get(key, {}).items():
            if not _LOCAL.match(version):
                alias = re.fullmatch(r"npm:(@?[^@]+)@?(.*)", version)
                real, asked = (alias[1], alias[2]) if alias else (name, version)
                yield Requirement(real, "npm", asked, _line_of(text, name))


def _cargo(text: str) -> Iterator[Requirement]:
    data = tomllib.loads(text)
    for part in (data, data.get("workspace", {}), *data.get("target", {}).values()):
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield from _of_table(text, part.get(key, {}), "cargo")


_GO_REQUIRE = re.compile(r"^(?:require\s+)?([\w.-]+\.\w+/\S+|[\w.-]+\.\w+)\s+(v\S+)(?!.*// indirect)")


def _go_mod(text: str) -> Iterator[Requirement]:
    block = ""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if opened := re.match(r"(\w+)\s*\($", words):
            block = opened[1]
        elif words == ")":
            block = ""
        elif (block == "require" or words.startswith("require ")) and (found := _GO_REQUIRE.match(words)):
            yield Requirement(found[1], "go", found[2], number)


# --- Java, Ruby, PHP, .NET ----------------------------------------------------------------------------------


def _pom(text: str) -> Iterator[Requirement]:
    plain = re.sub(r"<!--.*?-->", lambda one: "\n" * one[0].count("\n"), text, flags=re.DOTALL)
    for block in re.finditer(r"<dependency>(.*?)</dependency>", plain, re.DOTALL):
        inner = re.sub(r"<exclusions>.*?</exclusions>", "", block[1], flags=re.DOTALL)
        fields = dict(re.findall(r"<(groupId|artifactId|version)>\s*([^<]*?)\s*</", inner))
        if "artifactId" in fields:
            line = plain.count("\n", 0, block.start()) + 1
            name = f"{fields.get('groupId', '')}:{fields['artifactId']}"
            version = fields.get("version", "")
            yield Requirement(name, "maven", version, line, managed=not version)


_GRADLE = re.compile(
    r"\b(?:\w*[iI]mplementation|\w*[cC]ompileOnly|\w*[rR]untimeOnly|api|kapt|ksp|classpath|compile"
    r"|testCompile|annotationProcessor)\b\s*\(?\s*(?:platform\(|enforcedPlatform\()?\s*"
    r"(?:['\"]([\w.-]+):([\w.-]+)(?::([^'\"@:]+))?[^'\"]*['\"]"
    r"|group\s*[:=]\s*['\"]([\w.-]+)['\"]\s*,\s*name\s*[:=]\s*['\"]([\w.-]+)['\"]"
    r"(?:\s*,\s*version\s*[:=]\s*['\"]([^'\"]+))?)"
)


def _gradle(text: str) -> Iterator[Requirement]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.lstrip().startswith(("//", "*")) and (found := _GRADLE.search(line)):
            version = found[3] or found[6] or ""
            name = f"{found[1] or found[4]}:{found[2] or found[5]}"
            yield Requirement(name, "maven", version, number, managed=not version)


def _version_catalog(text: str) -> Iterator[Requirement]:
    for value in tomllib.loads(text).get("libraries", {}).values():
        fields = value if isinstance(value, dict) else {}
        module = fields.get("module") or ":".join(filter(None, (fields.get("group"), fields.get("name"))))
        group, _, rest = (value if isinstance(value, str) else module).partition(":")
        artifact, _, version = rest.partition(":")
        version = version or (fields["version"] if isinstance(fields.get("version"), str) else "")
        yield Requirement(
            f"{group}:{artifact}", "maven", version, _line_of(text, artifact), managed=not version
        )


_GEM = re.compile(
    r"\s*(?:gem|\w+\.add_(?:\w+_)?dependency)\s*\(?\s*(['\"])([\w.-]+)\1((?:\s*,\s*['\"][^'\"]*['\"])*)"
)


def _gemfile(text: str) -> Iterator[Requirement]:
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _GEM.match(line):
            version = ", ".join(re.findall(r"['\"]([^'\"]*)['\"]", found[3]))
            managed = not version and bool(re.search(r"\b(?:git|github|path):", line))
            yield Requirement(found[2], "rubygems", version, number, managed=managed)


def _composer(text: str) -> Iterator[Requirement]:
    data = json.loads(text)
    for key in ("require", "require-dev"):
        for name, version in dict(data.get(key) or {}).items():
            if "/" in name:
                yield Requirement(name, "composer", version, _line_of(text, name))


_REFERENCE = re.compile(
    r"<(?:PackageReference|PackageVersion|package)\s[^>]*?\b(?:Include|id)\s*=\s*\"([^\"]+)\"([^>]*)>"
    r"(?:\s*<Version>([^<]*)</Version>)?",
    re.IGNORECASE,
)


def _project(text: str) -> Iterator[Requirement]:
    plain = re.sub(r"<!--.*?-->", lambda one: "\n" * one[0].count("\n"), text, flags=re.DOTALL)
    for found in _REFERENCE.finditer(plain):
        given = re.search(r"\bversion\s*=\s*\"([^\"]*)\"", found[0], re.IGNORECASE)
        version = given[1] if given else (found[3] or "")
        line = plain.count("\n", 0, found.start()) + 1
        yield Requirement(found[1], "nuget", version, line, managed=not version)


# --- Docker -------------------------------------------------------------------------------------------------

_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)


def _dockerfile(text: str) -> Iterator[Requirement]:
    stages: set[str] = set()
    joined = re.sub(r"\\[ \t]*\n", "  ", text)
    for number, line in enumerate(joined.splitlines(), start=1):
        if found := _FROM.fullmatch(line.strip()):
            if found[1] not in stages and (one := image(found[1])):
                yield msgspec.structs.replace(one, line=number)
            stages |= {found[2]} if found[2] else set()
        elif run := re.match(r"\s*RUN\s+(?:--\S+\s+)*(.+)", line, re.IGNORECASE):
            for one, _ in installed(run[1]):
                yield Requirement(one.name, one.ecosystem, one.version, number, is_tool=True)


def _images(text: str) -> Iterator[Requirement]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.match(r"\s*(?:-\s+)?image:\s*['\"]?([^'\"\s#]+)['\"]?\s*(?:#.*)?$", line)
        if found and (one := image(found[1])):
            yield msgspec.structs.replace(one, line=number)


def _tagged_images(text: str) -> Iterator[Requirement]:
    yield from (one for one in _images(text) if one.version)


_READERS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[Requirement]]], ...] = tuple(
    (re.compile(form), reads)
    for form, reads in (
        (r"pyproject\.toml", _pyproject),
        (r"[\w.-]*(?:requirements|constraints)[\w.-]*\.(?:txt|in|pip)", _requirement_lines),
        (r"(?:.*/)?requirements/[^/]+\.(?:txt|in)", _requirement_lines),
        (r"Pipfile", _pipfile),
        (r"(?:conda[\w.-]*|environment[\w.-]*)\.ya?ml", _environment),
        (r"package\.json", _package_json),
        (r"Cargo\.toml", _cargo),
        (r"go\.mod", _go_mod),
        (r"pom\.xml", _pom),
        (r"[\w.-]*\.gradle(?:\.kts)?", _gradle),
        (r"[\w.-]*\.versions\.toml", _version_catalog),
        (r"Gemfile|gems\.rb|[\w.-]+\.gemspec", _gemfile),
        (r"composer\.json", _composer),
        (r"[\w.-]+\.(?:cs|fs|vb)proj|packages\.config|Directory\.(?:Packages|Build)\.props", _project),
        (r"(?i:dockerfile|containerfile)(?:\.[\w.-]+)?|[\w.-]+\.(?i:dockerfile)", _dockerfile),
        (r"(?:docker-)?compose[\w.-]*\.ya?ml", _images),
        (r"[^/]+\.ya?ml", _tagged_images),
    )
)
