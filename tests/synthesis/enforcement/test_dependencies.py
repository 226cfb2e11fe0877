"""Packages that may not be added: in manifests, by commands and as imports."""

import pytest

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.dependencies import broken_dependencies, installed_dependencies
from agentx.synthesis.enforcement.packages.manifests import requirements_in
from agentx.synthesis.memory.checks import DependencyCheck


def breaks(check, path, after, before=None):
    return [
        one.reason for one in broken_dependencies(check, CheckedChange(path=path, before=before, after=after))
    ]


def forbid(*packages, **fields):
    return DependencyCheck(packages=packages, **fields)


MANIFESTS = {
    "pyproject.toml": ("flask", '[project]\ndependencies = ["a", "Flask[async]>=3"]\n'),
    "api/pyproject.toml": ("flask", '[tool.poetry.group.dev.dependencies]\nflask = "^3"\n'),
    "requirements-dev.txt": ("flask", "a==1\nFlask>=3  # web\n"),
    "requirements/base.in": ("flask", "flask\n"),
    "constraints.txt": ("flask", "flask==3\n"),
    "Pipfile": ("flask", '[packages]\nflask = "*"\n'),
    "environment.yml": (
        "numpy",
        "name: x\ndependencies:\n  - python=3.11\n  - numpy=1.2\n  - pip:\n    - a\n",
    ),
    "package.json": ("lodash", '{"devDependencies": {"lodash": "^4"}}'),
    "Cargo.toml": ("serde-json", '[dependencies]\nserde_json = { version = "1" }\n'),
    "go.mod": ("cobra", "module a\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.1\n)\n"),
    "pom.xml": (
        "gson",
        "<dependency><groupId>com.google.code.gson</groupId><artifactId>gson</artifactId></dependency>",
    ),
    "build.gradle.kts": ("lombok", 'dependencies {\n  compileOnly("org.projectlombok:lombok:1.18")\n}\n'),
    "build.gradle": ("lombok", "    compileOnly 'org.projectlombok:lombok:1.18'\n"),
    "Gemfile": ("devise", 'gem "devise", "~> 4"\n'),
    "composer.json": ("guzzle", '{"require": {"guzzlehttp/guzzle": "^7"}}'),
    "App.csproj": ("newtonsoft.json", '<PackageReference Include="Newtonsoft.Json" Version="13" />'),
    "Dockerfile": ("redis", "FROM --platform=linux/amd64 redis:7 AS cache\nFROM cache\n"),
    "docker-compose.yml": ("redis", 'services:\n  a:\n    image: "redis:7"\n'),
}


@pytest.mark.parametrize("path", MANIFESTS)
def test_a_package_that_a_manifest_adds_breaks_the_check(path):
    package, text = MANIFESTS[path]
    assert len(breaks(forbid(package), path, text)) == 1
    assert breaks(forbid(package), path, text + "\n", text) == []
    assert breaks(forbid("another"), path, text) == []
    assert breaks(forbid(package), path, "", text) == []


@pytest.mark.parametrize(
    "path",
    ["pyproject.toml", "package.json", "Cargo.toml", "composer.json", "gradle/libs.versions.toml", "Pipfile"],
)
def test_a_broken_manifest_passes(path):
    assert requirements_in(path, '{"a = [') is None
    assert breaks(forbid("a"), path, '{"a = [') == []


@pytest.mark.parametrize(
    "command",
    [
        "pip install redis", "python -m pip install 'redis[hiredis]>=5'", "uv add redis", "uv pip install redis",
        "sudo -u www pip3 install -q Redis==5", "poetry add -G dev redis@^5", "pipenv install redis",
        "conda install -c conda-forge redis=5", "npm i -D redis@4", "npm install --save redis", "pnpm add redis",
        "pnpm --filter ui add -D redis", "yarn workspace ui add redis", "bun add redis", "cd web && yarn add redis",
        "bash -c 'cd a && npm i redis'", "env CI=1 npm add redis", "cargo add redis --features tokio",
        "go get github.com/redis/go-redis/v9@latest", "gem install redis -v 5", "bundle add redis",
        "dotnet add api.csproj package redis -v 2", "apt-get install -y redis", "brew install redis",
        "docker pull redis:7", "docker run -d --name r -p 6379:6379 redis:7 redis-server", "npm i @redis/client",
        "composer require --dev acme/redis:^1",
    ],
)  # fmt: skip
def test_a_command_that_installs_a_package_breaks_the_check(command):
    assert len(list(installed_dependencies(forbid("redis"), command))) == 1


@pytest.mark.parametrize(
    "command",
    [
        "pip uninstall redis", "npm uninstall redis", "npm ls redis", "npm install", "pip install -r redis.txt",
        "pip install ./redis", "yarn remove redis", "npm view redis", "docker run -it --name redis alpine sh",
        "docker rm redis", "grep -rn 'pip install redis' docs", "git add redis.py", "cargo remove redis",
        "go get github.com/acme/redis-tools", "npm i redisx", "npm run install redis", "pip install django-redis",
        "echo pip install redis",
    ],
)  # fmt: skip
def test_a_command_that_installs_nothing_of_it_passes(command):
    assert list(installed_dependencies(forbid("redis"), command)) == []


IMPORTS = [
    ("PyYAML", "a.py", "from yaml import safe_load\n"),
    ("beautifulsoup4", "a.py", "import bs4\n"),
    ("google-cloud-storage", "a.py", "from google.cloud import storage\n"),
    ("moment.js", "a.ts", 'import moment from "moment"\n'),
    ("lodash", "a.js", "const x = require('lodash/fp')\n"),
    ("lodash", "a.tsx", "const x = await import('lodash')\n"),
    ("lodash", "a.mjs", "export * from 'lodash'\n"),
    ("lodash", "a.ts", "import _ = require('lodash')\n"),
    ("@types/*", "a.ts", "import {A} from '@types/node'\n"),
    ("cobra", "a.go", 'package a\nimport (\n\t"io"\n\tc "github.com/spf13/cobra/doc"\n)\n'),
    ("tokio", "a.rs", "use tokio::{spawn};\n"),
    ("reqwest", "a.rs", "fn f() { reqwest::get(1); }\n"),
    ("gson", "A.java", "import com.google.gson.Gson;\n"),
    ("guava", "A.java", "import com.google.common.collect.Lists;\n"),
    ("lombok", "a.kt", "import lombok.Data\n"),
    ("nokogiri", "a.rb", "require 'nokogiri'\n"),
    ("guzzle", "a.php", "<?php\nuse GuzzleHttp\\Client;\n"),
    ("Newtonsoft.Json", "a.cs", "using Newtonsoft.Json.Linq;\n"),
]


@pytest.mark.parametrize(("package", "path", "text"), IMPORTS)
def test_a_new_import_of_a_package_breaks_the_check(package, path, text):
    assert len(breaks(forbid(package), path, text)) == 1
    assert breaks(forbid(package), path, text + "\n", text) == []


@pytest.mark.parametrize(
    ("package", "path", "text"),
    [
        ("redis", "a.py", "from .redis import x\nimport redis_tools\n"),
        ("moment", "a.ts", "// at the moment\nimport './moment'\nimport 'moment-timezone'\n"),
        ("redis", "a.go", 'package a\nimport "example.com/app/internal/redis"\n'),
        ("redis", "A.java", "import com.acme.redis.Cache;\n"),
        ("redis", "a.rb", "require_relative 'redis'\n"),
        ("*", "a.go", 'package a\nimport "io"\n'),
    ],
)
def test_other_imports_pass(package, path, text):
    assert breaks(forbid(package), path, text) == []


def test_any_new_package_is_refused_and_a_new_version_is_not():
    closed = forbid("*", ecosystems=("rubygems",))
    before = 'gem "rails", "~> 7.1"\n'
    assert breaks(closed, "Gemfile", before + 'gem "pagy"\n', before) == [
        "pagy in line 2 of Gemfile may not be added."
    ]
    assert breaks(closed, "Gemfile", 'gem "rails", "~> 7.2"\n', before) == []
    assert list(installed_dependencies(closed, "bundle add kaminari --version '~> 1.2'"))
    assert not list(installed_dependencies(closed, "bundle install --jobs 4"))


def test_any_new_package_by_a_command_that_changes_no_manifest_is_doubtful():
    (found,) = installed_dependencies(forbid("*"), "pip install pandas")
    assert found.doubt
    assert not list(installed_dependencies(forbid("*"), "pip install -U pip && docker run alpine"))


def test_a_check_with_paths_is_about_the_manifest_that_a_command_changes():
    check = forbid("*", ecosystems=("go",), paths=("agent/**",))
    assert list(installed_dependencies(check, "cd agent && go get github.com/rs/zerolog@latest"))
    assert not list(installed_dependencies(check, "cd api && go get github.com/rs/zerolog@latest"))


@pytest.mark.parametrize(
    ("versions", "path", "text", "broken"),
    [
        ("exact", "requirements.txt", "a==1.2\nhttpx>=0.27\n", 1),
        ("exact", "requirements.txt", "pandas\n", 1),
        ("exact", "requirements.txt", "# note\n-r base.txt\na==1.2  # >=1\nb @ https://a.b/c.whl\n", 0),
        ("exact", "package.json", '{"dependencies": {"a": "^1.2.3", "b": "1.2.3"}}', 1),
        ("exact", "Cargo.toml", '[dependencies]\na = "1.2"\nb = "=1.2"\n', 1),
        ("range", "package.json", '{"dependencies": {"a": "^1.2.3", "b": "1.2.3"}}', 1),
        ("<2", "requirements.txt", "sqlalchemy==2.0.1\n", 1),
        ("<2", "requirements.txt", "sqlalchemy>=1.4,<2\n", 0),
        (">=3.2", "package.json", '{"dependencies": {"a": "~3.1"}}', 1),
    ],
)
def test_only_versions_that_do_not_fit_break_the_check(versions, path, text, broken):
    assert len(breaks(forbid("*", versions=versions), path, text)) == broken
