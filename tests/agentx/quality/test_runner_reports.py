"""The runners are asked for reports, but never against the user's own command or configuration."""

import os

import pytest

from agentx.quality.runner_reports import RunnerReport, collect, variables, with_options, without_mentions
from agentx.quality.sandbox import SandboxPolicy, run_in_copy

JEST = " --json --outputFile=/r/jest.json"
VITEST = " --reporter=default --reporter=json --outputFile.json=/r/vitest.json"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("npx jest src", JEST),
        ("CI=1 node_modules/.bin/jest", JEST),
        ("npx jest --watch", ""),
        ("npx jest --json", ""),
        ("npx jest; npx jest e2e", ""),
        ("npx jest > log.txt", ""),
        ("npx vitest run", VITEST),
        ("npx vitest bench", ""),
        ("npx vitest run --reporter=dot", ""),
        ("npm test", f" --{JEST}"),
        ("npm run test -- src", JEST),
        ("pnpm test", JEST),
        ("npm run unit", f" --{VITEST}"),
        ("npm run all", ""),
        ("dotnet test", " --logger trx --results-directory /r/dotnet"),
        ("dotnet build", ""),
        ("dotnet test --logger console", ""),
        ("vendor/bin/phpunit tests", " --log-junit /r/phpunit.xml"),
        ("make test", ""),
    ],
)
def test_option_is_added_only_to_a_command_that_is_the_runner(tmp_path, command, options):
    scripts = '{"scripts": {"test": "jest", "unit": "vitest run", "all": "jest && eslint ."}}'
    (tmp_path / "package.json").write_text(scripts)
    assert with_options(command, tmp_path, "/r") == command + options


def test_reporters_of_a_configuration_are_kept(tmp_path):
    (tmp_path / "vitest.config.ts").write_text("export default {test: {reporters: ['dot']}}")
    assert with_options("npx vitest run", tmp_path, "/r") == "npx vitest run"


def test_pytest_is_asked_in_its_variable_with_the_options_of_the_user(tmp_path):
    asked = variables("make test", tmp_path, "/r", {"PYTEST_ADDOPTS": "-x"})
    assert asked == {"PYTEST_ADDOPTS": "-x --junitxml=/r/pytest.xml -o junit_family=xunit1"}
    assert variables("pytest --junit-xml=a.xml", tmp_path, "/r", {}) == {}
    assert variables("make test", tmp_path, "/r", {"PYTEST_ADDOPTS": "-p no:junitxml"}) == {}
    (tmp_path / "tox.ini").write_text("[pytest]\naddopts = --junitxml=a.xml\n")
    assert variables("make test", tmp_path, "/r", {}) == {}


def test_line_about_the_report_is_removed():
    output = "1 passed\nTest results written to: ../../agentx-runner-reports/jest.json\nend\n"
    assert without_mentions(output) == "1 passed\nend\n"


def test_reports_of_a_build_are_those_of_this_run(tmp_path):
    (tmp_path / "pom.xml").write_text("<project/>")
    old = tmp_path / "a/target/surefire-reports/TEST-old.xml"
    old.parent.mkdir(parents=True)
    old.write_text("<testsuite/>")
    os.utime(old, (1, 1))
    command = "sleep 0.1; echo '<testsuite/>' > a/target/surefire-reports/TEST-new.xml"
    done = run_in_copy(
        tmp_path,
        f"{command}; ln -s /etc/passwd a/target/surefire-reports/TEST-link.xml",
        timeout_s=30,
        max_output_bytes=1000,
        policy=SandboxPolicy(isolation="none"),
        ask_for_reports=True,
    )
    assert done.reports == (RunnerReport("maven", "<testsuite/>\n"),)
    assert collect(tmp_path / "none", tmp_path, 0) == (RunnerReport("maven", "<testsuite/>"),)
