"""The licences of everything that is pinned: on record, as the packages state them, and fit for an Apache-2.0 package."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tests.pinned import pins, plain

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "requirements" / "licences.toml"
PAGE = ROOT / "docs" / "decisions" / "0002-dependencies.md"

FAMILY = re.compile(
    r"MIT-CMU|MIT-0|MIT|Apache|0BSD|BSD|PSF|Python Software Foundation|MPL|Mozilla|AGPL|LGPL|Lesser|GPL|"
    r"General Public|ISC|Zlib|CC0|CNRI|Unlicense|CDDL|EPL|EUPL|SSPL|Commons|Proprietary"
)
SAME = {"Python Software Foundation": "PSF", "Mozilla": "MPL", "Lesser": "LGPL", "General Public": "GPL"}
FREE = {"MIT", "MIT-0", "MIT-CMU", "Apache", "BSD", "0BSD", "PSF", "ISC", "Zlib", "CC0", "CNRI", "MPL"}
"""What a package that is installed with AgentX may be under."""
WITH_EXCEPTION = {"pygit2"}
"""Under the GPL, with an exception that allows linking."""


def families(licence: str) -> set[str]:
    return {SAME.get(name, name) for name in FAMILY.findall(licence)}


@pytest.fixture(scope="module")
def on_record() -> list[dict[str, str]]:
    """Licence by package: of what the plain install brings, of what extras add, and of the rest."""
    parts = tomllib.loads(LIST.read_text("utf-8"))
    lists: list[dict[str, str]] = []
    for part in (parts["installed"], parts["extras"], parts["rest"]):
        named = [(name, licence) for licence, names in part.items() for name in names]
        assert len(named) == len(dict(named)), "a package is listed twice"
        lists.append(dict(named))
    return lists


def stated(package: str) -> str | None:
    """What an installed package says of its licence: as an expression, in words and classifiers, or in its file's title."""
    try:
        said = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return None
    words = (said.get("License") or "").strip().split("\n")[0]
    kinds = [line for line in said.get_all("Classifier") or [] if line.startswith("License ::")]
    if found := said.get("License-Expression") or " ".join([words, *kinds]).strip():
        return found
    files = metadata.distribution(package).files or []
    titles = (
        file.read_text("utf-8").strip().split("\n")[0] for file in files if file.name.startswith("LICENSE")
    )
    return next(titles, "")


def test_the_licence_of_every_pin_is_listed_and_of_nothing_else(on_record):
    """A new pin, a transitive one too, is not taken without a look at its licence."""
    installed, extras, rest = on_record
    runtime = pins("runtime")
    assert set(installed) == plain()
    assert set(extras) == runtime - plain()
    assert set(rest) == pins("checkout", "dev", "bench", "docs", "fuzz") - runtime


def test_the_decision_on_dependencies_gives_the_listed_licences(on_record):
    """The table has one row for each direct dependency, with its licence."""
    listed = {name: licence for part in on_record for name, licence in part.items()}
    rows = re.findall(r"^\| \*\*([\w-]+)\*\* \| .* \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows
    assert len(rows) == len(dict(rows)), "a library has two rows"
    assert dict(rows) == {name: listed[name] for name, _ in rows}


def test_the_listed_licences_are_those_that_the_installed_packages_state(on_record):
    """A package that changes its licence is seen when its pin moves."""
    listed = {name: licence for part in on_record for name, licence in part.items()}
    found = {name: said for name in listed if (said := stated(name)) is not None}
    assert len(found) > 100
    wrong = {
        name: (listed[name], said) for name, said in found.items() if families(said) != families(listed[name])
    }
    assert wrong == {}


def test_nothing_that_is_installed_with_the_package_is_under_a_licence_that_binds_it(on_record):
    """No GPL, LGPL or AGPL among what ``pip install agentx-workspace`` brings, but for a linking exception.

    Of the extras, one has psycopg, whose LGPL allows its use as a library.
    """
    installed, extras, _ = on_record
    assert {name for name, licence in extras.items() if not families(licence) <= FREE} == {
        "psycopg",
        "psycopg-binary",
    }
    assert {name for name, licence in installed.items() if not families(licence) <= FREE} == WITH_EXCEPTION
    assert all("linking exception" in installed[name] for name in WITH_EXCEPTION)
    assert all("linking exception" in (stated(name) or "") for name in WITH_EXCEPTION)
