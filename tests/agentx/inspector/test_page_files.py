"""The files of the page: vendored ones as they were published, own ones without any way to make markup of data."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from agentx.inspector.app import PAGE

VENDOR = PAGE / "vendor"
OWN = sorted(
    path for path in PAGE.rglob("*") if path.suffix in {".js", ".html", ".css"} and VENDOR not in path.parents
)
PARTS = json.loads((VENDOR / "VENDOR.json").read_text("utf-8"))

UNSAFE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|createContextualFragment|DOMParser|"
    r"\beval\(|new Function|setTimeout\(\s*[\"'`]|\.cssText|\bstyle=\"|\bsrcdoc\b|javascript:|https?://(?!www\.w3\.org/)"
)
"""What makes markup or code of text, reaches another host, or needs a policy that is less strict."""


def test_each_vendored_file_is_the_one_that_was_published():
    listed = {name: file["sha256"] for part in PARTS for name, file in part["files"].items()}
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDOR.json"
    }
    assert found == listed


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["name"])
def test_each_vendored_library_has_its_licence_beside_it_and_says_where_it_is_from(part):
    assert part["licence"]
    assert re.fullmatch(
        rf"https://registry\.npmjs\.org/{part['name']}/-/{part['name']}-{part['version']}\.tgz",
        part["source"],
    )
    assert any(Path(name).name.startswith("LICENSE") for name in part["files"])


def test_vendored_code_makes_no_code_of_text():
    for path in VENDOR.rglob("*.js"):
        assert not re.search(r"\beval\(|new Function|document\.write", path.read_text("utf-8")), path.name


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.relative_to(PAGE).as_posix())
def test_own_files_make_no_markup_or_code_of_text_and_name_no_other_host(path):
    assert UNSAFE.findall(path.read_text("utf-8")) == []


def test_every_file_that_the_page_names_exists():
    for path in OWN:
        text = path.read_text("utf-8")
        named = re.findall(r"(?:from|import\()\s*\"(\.[^\"]+)\"", text)
        if path.suffix == ".html":
            named += re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
        for name in named:
            assert (path.parent / name).is_file(), f"{path.name} names {name}"
