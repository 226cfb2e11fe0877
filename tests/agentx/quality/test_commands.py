"""Commands that the files of a project suggest."""

import json

import pytest

from agentx.quality.commands import detect_commands


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({}, {}),
        ({"notes.md": "# pytest"}, {}),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, {"tests": "python -m pytest -q"}),
        (
            {"pyproject.toml": "[project.optional-dependencies]\ndev=['pytest>=8']\n"},
            {"tests": "python -m pytest -q"},
        ),
        ({"tests/conftest.py": ""}, {"tests": "python -m pytest -q"}),
        ({"tests/test_a.py": "import pytest\nimport unittest\n"}, {"tests": "python -m pytest -q"}),
        ({"tests/test_a.py": "import unittest\n"}, {"tests": "python -m unittest"}),
        ({"tests/test_a.py": "def test_a(): pass\n"}, {"tests": "python -m pytest -q"}),
        (
            {"pyproject.toml": "[tool.ruff]\n[tool.mypy]\n"},
            {"lint": "python -m ruff check . && python -m mypy ."},
        ),
        ({"setup.cfg": "[flake8]\n"}, {"lint": "python -m flake8"}),
        ({"pyproject.toml": "not [ toml"}, {}),
        (
            {"package.json": json.dumps({"scripts": {"test": "jest", "lint": "eslint .", "build": "tsc"}})},
            {"tests": "npm run test", "lint": "npm run lint", "build": "npm run build"},
        ),
        (
            {"package.json": json.dumps({"scripts": {"test": "vitest run"}}), "pnpm-lock.yaml": ""},
            {"tests": "pnpm run test"},
        ),
        (
            {"package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})},
            {},
        ),
        ({"package.json": '{"scripts": ['}, {}),
        ({"package.json": "[" * 100_000}, {}),
        ({"package.json": '{"scripts": {"test": 3}}'}, {}),
        ({"Cargo.toml": ""}, {"tests": "cargo test", "lint": "cargo clippy", "build": "cargo build"}),
        ({"go.mod": ""}, {"tests": "go test ./...", "lint": "go vet ./...", "build": "go build ./..."}),
        (
            {"Makefile": "CC := gcc\ntest: all\n\trun\nbuild:\n\tgo\n"},
            {"tests": "make test", "build": "make build"},
        ),
        (
            {"conftest.py": "", "package.json": json.dumps({"scripts": {"build": "vite build"}})},
            {"tests": "python -m pytest -q", "build": "npm run build"},
        ),
    ],
)
def test_suggestions_follow_the_files(tmp_path, files, commands):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert detect_commands(tmp_path) == commands
