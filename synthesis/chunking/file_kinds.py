"""The kind of a file: source, test, docs, config or data, by its path and the head of its content.

The rules know conventions of many languages and tools, and none of one project. A path decides where it can:
the name first, then the directories, then the suffix. The content is only asked for what a path cannot say.
"""

import re
from pathlib import PurePosixPath

from agentx.storage.index.port import FileKind

HEAD_CHARACTERS = 2_000
"""Characters of a file in which a mark of a generator counts."""

_MANIFESTS = frozenset(
    """
    package.json tsconfig.json jsconfig.json composer.json deno.json manifest.in setup.py setup.cfg go.mod
    go.work cargo.toml pyproject.toml pipfile gemfile rakefile podfile build.gradle build.gradle.kts
    settings.gradle settings.gradle.kts pom.xml makefile gnumakefile justfile taskfile cmakelists.txt
    meson.build build.bazel workspace procfile dockerfile containerfile vagrantfile jenkinsfile codeowners
    noxfile.py fabfile.py
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
_LOCKS = frozenset(
    """
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum go.work.sum bun.lockb packages.lock.json
    """.split()  # noqa: SIM905 - as above
)
_DATA_DIRECTORIES = frozenset(
    """
    fixtures fixture testdata test-data test_data __snapshots__ snapshots cassettes golden vendor vendored
    _vendor third_party third-party thirdparty node_modules bower_components external extern dist locale
    locales
    """.split()  # noqa: SIM905 - as above
)
_TEST_DIRECTORIES = frozenset(
    """
    test tests __tests__ spec specs e2e unittest unittests unit-tests integration-tests integration_tests
    functional-tests functional_tests testsuite tests_typing step_definitions benches bench benchmark
    benchmarks
    """.split()  # noqa: SIM905 - as above
)
_DOCS_DIRECTORIES = frozenset(
    """
    doc docs documentation man manual website site wiki guide guides tutorial tutorials example examples
    sample samples demo demos _examples changelog changelogs
    """.split()  # noqa: SIM905 - as above
)
_SOURCE_ROOTS = frozenset("src lib app internal pkg cmd source sources crates packages".split())  # noqa: SIM905
_DOCS_SUFFIXES = frozenset(
    ".md .markdown .mdx .rst .adoc .asciidoc .txt .text .org .tex .rtf .1 .5 .8 .ipynb".split()  # noqa: SIM905
)
_CONFIG_SUFFIXES = frozenset(
    """
    .toml .ini .cfg .conf .config .yml .yaml .env .properties .editorconfig .service .tf .tfvars .nix .cmake
    .mk .csproj .sln .plist .gradle .bazel
    """.split()  # noqa: SIM905 - as above
)
_DATA_SUFFIXES = frozenset(
    """
    .csv .tsv .json .jsonl .ndjson .json5 .geojson .xml .svg .log .lock .sum .snap .map .po .pot .mo .pem .crt
    .key .pub .asc .diff .patch .out .dat .bib .xsd .dtd .ics .eml .har .warc .lst .list .sha256 .md5 .hex
    .b64
    """.split()  # noqa: SIM905 - as above
)
_PROSE_NAMES = re.compile(
    r"(?:readme|changes|changelog|history|news|authors|contributors|contributing|licen[sc]e|copying|notice|security"
    r"|install|todo|upgrading|code_of_conduct|maintainers|thanks|credits|release)(?:[._-].*)?$"
)
_TEST_SUFFIXES = frozenset({".feature", ".robot", ".bats"})
_TEST_NAMES = re.compile(r"(?:test|tests|spec)[_.-].*|.*[_.-](?:test|tests|spec|specs|bench)|conftest")
_CAMEL_TEST = re.compile(r".*[a-z0-9](?:Tests?|TestCase|IT|Spec)$|Test[A-Z].*")
_REQUIREMENTS = re.compile(r"(?:[\w-]*[_.-])?(?:requirements|constraints)(?:[_.-][\w-]+)?\.(?:txt|in)")
_CONFIG_NAMES = re.compile(r".*(?:\.config|rc|[._-]config(?:uration)?|\.settings)\.(?:[cm]?[jt]s|json|json5)")
_GENERATED_NAMES = re.compile(
    r".*(?:\.min\.(?:js|css)|\.bundle\.js|\.pb\.go|_pb2(?:_grpc)?\.pyi?|\.g\.dart|\.g\.cs|\.designer\.cs"
    r"|[._-]generated\.\w+|\.gen\.\w+|_gen\.go)"
)
_GENERATED = re.compile(
    r"^\s*(?:#|//|/?\*|--|;|<!--|%).*@generated\b|\bDO NOT EDIT\b|\bauto-?generated (?:by|from)\b"
    r"|\bthis file (?:is|was) (?:auto-?)?generated\b",
    re.IGNORECASE | re.MULTILINE,
)
_DECLARATIONS = re.compile(r".*\.(?:d\.[cm]?ts|pyi)")
"""Declarations of types: they say what there is, and nothing is done in them."""

_IS_TEST = re.compile(
    r"^\s*(?:(?:async )?def test_|class \w*Test\w*\(|func Test[A-Z]\w*\(\w+ \*testing|@Test\b"
    r"|(?:describe|test|it)\(['\"`])",
    re.MULTILINE,
)
_PLAIN_TEST = frozenset({"test", "tests", "spec"})


def kind_of_file(path: str, text: str = "") -> FileKind:
    r"""Return the kind of a file.

    Files written by a generator, copied from elsewhere, or locking versions are data, so are files that have
    no suffix and are not scripts. Examples and declarations of types (``.d.ts``, ``.pyi``) are docs.

    Args:
        path: Its path, with forward slashes.
        text: Its content; a head of it is enough.

    >>> [kind_of_file(p) for p in ("src/pay.go", "src/pay_test.go", "docs/pay.md", "app.toml", "uv.lock")]
    ['source', 'test', 'docs', 'config', 'data']
    """
    pure = PurePosixPath(path)
    name, stem, suffix = pure.name.lower(), pure.stem, pure.suffix.lower()
    folders = [part.lower() for part in pure.parts[:-1]]
    if name in _LOCKS or suffix == ".lock" or _GENERATED_NAMES.fullmatch(name):
        return "data"
    if _DATA_DIRECTORIES.intersection(folders):
        return "data"
    if suffix in _TEST_SUFFIXES or (suffix not in _DOCS_SUFFIXES and _is_test(stem, folders, text)):
        return "data" if suffix in _DATA_SUFFIXES else "test"
    if (
        name in _MANIFESTS
        or "requirements" in folders
        or _REQUIREMENTS.fullmatch(name)
        or _CONFIG_NAMES.fullmatch(name)
    ):
        return "config"
    prose = _PROSE_NAMES.match(name) and (not suffix or stem.isupper())
    if suffix in _DOCS_SUFFIXES or prose or _DECLARATIONS.fullmatch(name) or _is_for_reading(folders):
        return "docs"
    if suffix in _CONFIG_SUFFIXES or name.startswith(".") or (folders and folders[0].startswith(".")):
        return "config"
    if (
        suffix in _DATA_SUFFIXES
        or (not suffix and text and not text.startswith("#!"))
        or _GENERATED.search(text[:HEAD_CHARACTERS])
    ):
        return "data"
    return "source"


def _is_test(stem: str, folders: list[str], text: str) -> bool:
    if _TEST_DIRECTORIES.intersection(folders) or folders[:1] == ["t"]:
        return True
    if stem.lower() in _PLAIN_TEST:  # a helper for tests may be a part of the product
        return bool(_IS_TEST.search(text))
    return bool(_TEST_NAMES.fullmatch(stem.lower()) or _CAMEL_TEST.fullmatch(stem))


def _is_for_reading(folders: list[str]) -> bool:
    """Return whether a directory of documents or examples comes before any directory of source code."""
    first = next((n for n, name in enumerate(folders) if name in _DOCS_DIRECTORIES), None)
    return first is not None and not _SOURCE_ROOTS.intersection(folders[:first])
