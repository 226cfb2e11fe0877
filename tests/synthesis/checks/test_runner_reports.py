"""The runners' own reports, read and merged with what the runners print."""

import pytest

from agentx.synthesis.checks import parse_output, recorded_form

JUNIT = (
    '<?xml version="1.0"?><testsuites><testsuite>{}</testsuite></testsuites>'.format  # as pytest writes it
)
PYTEST = JUNIT(
    '<testcase classname="tests.test_a.TestA" name="test_ok[a.b&gt;c]" file="tests/test_a.py" line="3" />'
    '<testcase classname="tests.test_a.TestA" name="test_base" file="tests/base.py" line="3" />'
    '<testcase classname="tests.test_a" name="test_x" file="tests/test_a.py" line="9">'
    '<skipped type="pytest.xfail" message="" /></testcase>'
    '<testcase classname="" name="tests.test_b" file="tests/test_b.py"><skipped type="pytest.skip" message="m">'
    "s</skipped></testcase>"
)
JEST = """{"testResults": [{"name": "a.test.js", "assertionResults": [
  {"ancestorTitles": ["math"], "status": "passed", "title": "adds"},
  {"ancestorTitles": [], "status": "pending", "title": "later"},
  {"ancestorTitles": [], "status": "passed", "failing": true, "title": "known"}]}]}"""
TRX = """<TestRun><Results><UnitTestResult testName="N.A.Ok" outcome="Passed" />
<UnitTestResult testName="N.A.Bad" outcome="Failed"><Output><ErrorInfo><Message>1 is not 2</Message></ErrorInfo></Output>
</UnitTestResult><UnitTestResult testName="N.A.Not" outcome="NotExecuted" /></Results></TestRun>"""  # as documented
SUREFIRE = """<testsuite name="x.ATest"><testcase name="ok" classname="x.ATest"><system-out><![CDATA[<testcase
name="forged" classname="x.ATest"/>]]></system-out></testcase>
<testcase name="bad" classname="x.ATest"><failure message="{}" type="E"/></testcase></testsuite>"""


def read(runner, text, output="", **given):
    return parse_output(output, recorded=recorded_form([(runner, text)]), **given)


def test_pytest_report_names_the_tests_that_the_output_only_counts():
    report = read(
        "pytest", PYTEST, ".s.x [100%]\n2 passed, 1 skipped, 1 xfailed in 0.1s\n", command="pytest -q"
    )
    assert [name.check for name in report.passed] == [
        "tests/test_a.py::TestA::test_ok[a.b>c]",
        "tests/test_a.py::TestA::test_base",
    ]
    assert [name.check for name in report.skipped] == ["tests/test_b.py"]
    assert [name.check for name in report.expected] == ["tests/test_a.py::test_x"]
    assert report.names_all_passed


@pytest.mark.parametrize(
    "counts",
    ["3 passed, 1 skipped, 1 xfailed", "1 passed, 1 skipped, 1 xfailed, 1 xpassed", "2 passed, 1 xfailed"],
)
def test_report_with_other_counts_than_the_output_is_ignored(counts):
    assert not read("pytest", PYTEST, f".s.x [100%]\n{counts} in 0.1s\n", command="pytest -q").passed


def test_cut_or_foreign_report_is_ignored():
    for text in (PYTEST[:-5], "", "{}", "<testsuites></testsuites"):
        assert recorded_form([("pytest", text)]) == ""
    for text in ("[]", "{", '{"testResults": [1]}', '{"testResults": [{"name": 1}]}'):
        assert recorded_form([("jest", text)]) == ""
    assert recorded_form([("other", PYTEST)]) == ""
    assert parse_output("", exit_code=0, recorded="[").outcome == "passed"


def test_jest_report_names_an_inverted_test():
    report = read(
        "jest",
        JEST,
        "PASS ./a.test.js\n\nTest Suites: 1 passed, 1 total\nTests: 1 skipped, 2 passed, 3 total\n",
    )
    assert [(name.check, name.suite) for name in report.passed] == [("math › adds", "./a.test.js")]
    assert [name.check for name in report.skipped] == ["later"]
    assert [name.check for name in report.expected] == ["known"]


def test_failing_tests_are_named_where_the_output_shows_none():
    report = read("dotnet", TRX)
    assert [(item.check, item.message) for item in report.failing] == [("N.A.Bad", "1 is not 2")]
    assert (report.runner, report.outcome, len(report.passed), len(report.skipped)) == (
        "dotnet",
        "failed",
        1,
        1,
    )


def test_printed_xml_is_not_a_result_and_a_long_message_is_a_failure():
    report = read("maven", SUREFIRE.format("x > y " * 5_000))
    assert [item.check for item in report.failing] == ["x.ATest.bad"]
    assert [name.check for name in report.passed] == ["x.ATest.ok"]


def test_reports_of_several_modules_are_one():
    gradle = '<testsuite><testcase name="{0}()" classname="x.{0}Test$In"/></testsuite>'.format
    recorded = recorded_form([("gradle", gradle("A")), ("gradle", gradle("B"))])
    report = parse_output("", recorded=recorded)
    assert [name.check for name in report.passed] == ["ATest > In > A()", "BTest > In > B()"]
    php = '<testsuites><testsuite><testcase name="testA" class="ATest" classname="ATest"/></testsuite></testsuites>'
    assert read("phpunit", php).passed[0].check == "ATest::testA"
