"""A failing test that is silenced instead of fixed keeps its problem open, in a real workspace."""

import shutil
import sys

import pytest

from agentx.storage.events.types import Body, Draft, ToolCallExecuted
from agentx.synthesis.memory.items import RunTally

FAILING = "def test_ok():\n    pass\n\n\ndef test_bad():\n    assert 1 == 2\n"
CASES = (
    "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_ok(self):\n        pass\n\n"
    "    def test_bad(self):\n        self.assertEqual(1, 2)\n"
)
BAD, BAD_CASE = "def test_bad():", "    def test_bad(self):"


def settings(command):
    return f'\n[tools]\nisolation = "none"\n[checks.tests]\ncommand = "{sys.executable} {command}"\n'


def silence(ws, name, text):
    ws.tools.write_file(name, text)
    ws.tools.run_tests()
    (problem,) = ws.memory("hot_issue")
    assert problem.detail.silenced
    assert problem.id in ws.get_relevant_context("go on").text
    return problem.detail.silenced


@pytest.mark.parametrize(
    ("name", "text", "silenced"),
    [
        ("test_a.py", FAILING.replace(BAD, f"import pytest\n\n\n@pytest.mark.skip\n{BAD}"), "skipped"),
        ("test_a.py", FAILING.replace(BAD, f"import pytest\n\n\n@pytest.mark.skipif(True, reason='x')\n{BAD}"), "skipped"),
        ("test_a.py", FAILING.replace("assert 1 == 2", "import pytest; pytest.skip('x')"), "skipped"),
        ("test_a.py", "import pytest\n\npytest.skip('x', allow_module_level=True)\n" + FAILING, "skipped"),
        ("test_a.py", FAILING.replace(BAD, f"import pytest\n\n\n@pytest.mark.xfail\n{BAD}"), "expected to fail"),
        ("test_a.py", FAILING.partition(BAD)[0], "removed"),
        ("test_a.py", FAILING.replace(BAD, "def bad():"), "removed"),
        ("pytest.ini", "[pytest]\naddopts = --deselect test_a.py::test_bad\n", "deselected"),
        ("pytest.ini", "[pytest]\naddopts = -k ok\n", "deselected"),
        ("pytest.ini", "[pytest]\naddopts = --ignore test_a.py\n", "removed"),
        ("conftest.py", "collect_ignore = ['test_a.py']\n", "removed"),
    ],
)  # fmt: skip
def test_silenced_pytest_test_keeps_its_problem(configured, name, text, silenced):
    ws = configured(settings("-m pytest -q -p no:cacheprovider -p no:randomly"))
    ws.tools.write_file("test_b.py", "def test_c():\n    pass\n")
    ws.tools.write_file("test_a.py", FAILING)
    ws.tools.run_tests()
    assert silence(ws, name, text) == silenced
    for extra in ("pytest.ini", "conftest.py"):
        if extra == name:
            ws.tools.delete_file(name)
    ws.tools.write_file("test_a.py", FAILING.replace("1 == 2", "1 == 1"))
    ws.tools.run_tests()
    assert ws.memory("hot_issue") == []


@pytest.mark.parametrize(
    ("text", "silenced"),
    [
        (CASES.replace(BAD_CASE, f"    @unittest.skip('x')\n{BAD_CASE}"), "skipped"),
        (CASES.replace(BAD_CASE, f"    @unittest.skipIf(True, 'x')\n{BAD_CASE}"), "skipped"),
        (CASES.replace("self.assertEqual(1, 2)", "self.skipTest('x')"), "skipped"),
        (CASES.replace("class A", "@unittest.skip('x')\nclass A"), "skipped"),
        (CASES.replace("\n\nclass A", "raise unittest.SkipTest('x')\n\n\nclass A"), "skipped"),
        (CASES.replace(BAD_CASE, f"    @unittest.expectedFailure\n{BAD_CASE}"), "expected to fail"),
        (CASES.partition(BAD_CASE)[0], "removed"),
        (CASES.replace("test_bad", "bad"), "removed"),
    ],
)
def test_silenced_unittest_test_keeps_its_problem(configured, text, silenced):
    ws = configured(settings("-m unittest"))
    ws.tools.write_file("test_b.py", CASES.partition(BAD_CASE)[0].replace("class A", "class B"))
    ws.tools.write_file("test_a.py", CASES)
    ws.tools.run_tests()
    assert silence(ws, "test_a.py", text) == silenced
    ws.tools.write_file("test_a.py", CASES.replace("(1, 2)", "(1, 1)"))
    ws.tools.run_tests()
    assert ws.memory("hot_issue") == []


@pytest.mark.parametrize(
    "command", ["-m pytest -q -p no:cacheprovider", "-m pytest -p no:cacheprovider --no-summary"]
)
def test_failing_test_replaced_by_another_keeps_its_problem(configured, command):
    ws = configured(settings(command))
    ws.tools.write_file("test_a.py", FAILING)
    assert not ws.tools.run_tests().changed
    ws.tools.write_file("test_a.py", FAILING.replace(BAD, "def test_other():").replace("1 == 2", "1 == 1"))
    done = ws.tools.run_tests()
    assert {name.check for name in done.report.passed} == {"test_a.py::test_ok", "test_a.py::test_other"}
    assert "xml" not in done.output
    (problem,) = ws.memory("hot_issue")
    assert problem.detail.silenced == "removed"


NODE = (
    "const { test, describe } = require('node:test');\nconst assert = require('node:assert');\n"
    "test('ok', () => {});\ntest('bad', () => { assert.strictEqual(1, 2); });\n"
)
NODE_BAD = "test('bad', () => { assert.strictEqual(1, 2); });"
NODE_SCRIPT = '{"scripts": {"test": "node --test%s"}}\n'


@pytest.mark.skipif(not shutil.which("npm"), reason="node is not installed")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.test.js", NODE.replace("test('bad'", "test.skip('bad'")),
        ("a.test.js", NODE.replace("test('bad', ", "test('bad', {skip: true}, ")),
        ("a.test.js", NODE.replace("test('bad'", "test.todo('bad'")),
        ("a.test.js", NODE.replace(NODE_BAD, "")),
        ("a.test.js", NODE.replace(NODE_BAD, f"if (process.env.SLOW) {{ {NODE_BAD} }}")),
        ("a.test.js", NODE.replace("'bad'", "'fine'").replace("1, 2", "1, 1")),
        ("package.json", NODE_SCRIPT % " --test-name-pattern=ok"),
        ("package.json", NODE_SCRIPT % " b.test.js"),
    ],
)
def test_silenced_node_test_keeps_its_problem(configured, name, text):
    ws = configured('\n[tools]\nisolation = "none"\n[checks.tests]\ncommand = "npm test"\n')
    ws.tools.write_file("b.test.js", NODE.partition("test('ok'")[0] + "test('other', () => {});\n")
    ws.tools.write_file("a.test.js", NODE)
    ws.tools.write_file("package.json", NODE_SCRIPT % "")
    ws.tools.run_tests()
    assert silence(ws, name, text)
    ws.tools.write_file("package.json", NODE_SCRIPT % "")
    ws.tools.write_file("a.test.js", NODE.replace("1, 2", "1, 1"))
    ws.tools.run_tests()
    assert ws.memory("hot_issue") == []


def test_report_that_the_user_asks_for_is_left_alone(configured):
    ws = configured(settings("-m pytest -p no:cacheprovider"))
    ws.tools.write_file("pytest.ini", "[pytest]\naddopts = --junitxml=own.xml\n")
    ws.tools.write_file("test_a.py", FAILING)
    done = ws.tools.run_tests()
    assert done.changed == ("own.xml",)
    assert "own.xml" in done.output


def test_answer_tells_that_a_passing_run_has_fewer_tests_than_the_one_before(configured):
    ws = configured(settings("-m pytest -q -p no:cacheprovider"))
    tests = "def test_{0}():\n    pass\n\n\n".format
    ws.tools.write_file("test_a.py", tests("a") + tests("b") + tests("c"))
    assert "before" not in ws.tools.run_tests().render()
    ws.tools.write_file("test_a.py", f"import pytest\n\n\n{tests('a')}@pytest.mark.skip\n{tests('b')}")
    told = "2 tests, 1 fewer than before; 1 more skipped"
    assert f"[{told}]" in ws.tools.run_tests().render()
    assert "before" not in ws.tools.run_tests().render()
    assert told in ws.get_relevant_context("go on").text


def by_host(ws, output):
    call = ToolCallExecuted(
        call_id=str(ws.state.seq),
        tool="Bash",
        status="SUCCEEDED",
        command="npx jest",
        exit_code=0,
        output=Body(f"Test Suites: 2 passed, 2 total\nTests:       {output}\nSnapshots:   0 total\n"),
    )
    return ws.record(Draft(data=call, actor="agent:main"))[0]


def test_fall_in_the_tests_of_a_hosts_run_is_in_the_context_until_they_are_back(configured):
    ws = configured("")
    by_host(ws, "9 passed, 9 total")
    by_host(ws, "1 skipped, 6 passed, 7 total")
    told = "jest: the tests of jest are not all run any more (7 tests, 2 fewer than before; 1 more skipped)"
    assert told in ws.get_relevant_context("go on").text
    digest = ws.status().digest
    ws.rebuild()
    assert ws.status().digest == digest
    assert told in ws.get_relevant_context("go on").text
    by_host(ws, "9 passed, 9 total")
    assert ws.memory("hot_issue") == []


def test_purged_run_is_not_what_the_next_is_compared_with(configured):
    ws = configured("")
    ran = by_host(ws, "9 passed, 9 total")
    assert list(ws.state.tallies.values()) == [RunTally(ran=9)]
    ws.purge(ran.seq, reason="a secret")
    assert ws.state.tallies == {}
    by_host(ws, "7 passed, 7 total")
    assert ws.memory("hot_issue") == []
