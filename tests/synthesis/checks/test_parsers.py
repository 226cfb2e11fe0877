"""Each runner's output, as it really prints it, becomes the same shape of report."""

import pytest

from agentx.synthesis.checks import parse_output, parse_reports

PYTEST = """\
============================= test session starts ==============================
collected 4 items

tests/test_a.py .F.s                                                     [100%]

=================================== FAILURES ===================================
_________________________________ TestA.test_b _________________________________

    def test_b(self):
>       assert "a - b" == "a" and "a long line that the summary cuts"
E       AssertionError: assert 'a - b' == 'a'

tests/test_a.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::TestA::test_b[x - y] - AssertionError: assert 'a...
FAILED tests/test_a.py::TestA::test_b - AssertionError: assert 'a...
==================== 2 failed, 2 passed, 1 skipped in 0.05s ====================
"""
UNITTEST = """\
test_a (test_u.T.test_a)
adds ... FAIL
test_b (test_u.T.test_b) ... ok
test_c (test_u.T.test_c) ... skipped 'later'
test_d (test_u.T.test_d) ...
  test_d (test_u.T.test_d) (i=2) ... FAIL

======================================================================
FAIL: test_a (test_u.T.test_a)
adds
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/app/test_u.py", line 5, in test_a
    self.assertEqual(1, 2)
AssertionError: 1 != 2

======================================================================
FAIL: test_d (test_u.T.test_d) [<object object at 0x7ff1e6dbbb10>] (i=2)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/app/test_u.py", line 11, in test_d
    self.assertLess(i, 2)
AssertionError: 2 not less than 2

----------------------------------------------------------------------
Ran 4 tests in 0.001s

FAILED (failures=2, skipped=1)
"""
DJANGO_BROKEN = """\
Testing against Django installed in '/opt/django' with up to 4 processes
Importing application shop
Traceback (most recent call last):
  File "./runtests.py", line 3, in <module>
    main()
ImportError: cannot import name 'pluralize'
"""
GO = """\
# x/broken [x/broken.test]
broken/a_test.go:4:2: "os" imported and not used
=== RUN   TestOne
=== RUN   TestOne/sub
    a_test.go:9: got 1, want 2
--- FAIL: TestOne (0.00s)
    --- FAIL: TestOne/sub (0.00s)
=== RUN   TestTwo
--- PASS: TestTwo (0.00s)
=== RUN   TestSkip
--- SKIP: TestSkip (0.00s)
FAIL
FAIL\tx/a\t0.012s
FAIL\tx/broken [build failed]
ok  \tx/b\t0.3s
FAIL
"""
GO_JSON = """\
{"Action":"run","Package":"x/a","Test":"TestOne"}
{"Action":"output","Package":"x/b","Output":"ok  \\tx/b\\t0.1s\\n"}
{"Action":"output","Package":"x/a","Test":"TestOne","Output":"    a_test.go:9: got 1\\n"}
{"Action":"output","Package":"x/a","Test":"TestOne","Output":"--- FAIL: TestOne (0.00s)\\n"}
{"Action":"output","Package":"x/a","Output":"FAIL\\tx/a\\t0.01s\\n"}
{"Action":"fail","Package":"x/a","Elapsed":0.01}
"""
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/demo-1234)

running 3 tests
test tests::later ... ignored
test tests::zero ... ok
test tests::adds ... FAILED

failures:

---- tests::adds stdout ----

thread 'tests::adds' (12803) panicked at src/lib.rs:5:25:
assertion `left == right` failed: sum
  left: -1
 right: 3

failures:
    tests::adds

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.09s

error: test failed, to rerun pass `--lib`
"""
RUSTC = """\
   Compiling demo v0.1.0 (/app)
error[E0425]: cannot find value `c` in this scope
 --> src/lib.rs:1:41
  |
1 | pub fn add(a: i32, b: i32) -> i32 { a - c }
  |                                         ^

error: could not compile `demo` (lib) due to 1 previous error
"""
JEST = """\
FAIL ./a.test.js
  ✓ top
  math
    add
      ✕ adds (3 ms)
      ✓ zero (1 ms)
      ○ skipped later

  ● math › add › adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: 2

    > 1 | test('adds', () => { expect(1 + 1).toBe(3); });
        |                                    ^

      at Object.toBe (a.test.js:1:85)

FAIL ./b.test.js
  ● Test suite failed to run

    Cannot find module './nope' from 'b.test.js'

Test Suites: 2 failed, 2 total
Tests:       1 failed, 1 skipped, 2 passed, 4 total
Ran all test suites.
"""
VITEST = """\
 \x1b[31m❯\x1b[39m a.test.js \x1b[2m(\x1b[22m\x1b[2m3 tests\x1b[22m\x1b[2m | \x1b[22m\x1b[31m1 failed\x1b[39m\x1b[2m)\x1b[22m
 ✓ c.test.js (1 test) 2ms

⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

\x1b[41m\x1b[1m FAIL \x1b[22m\x1b[49m a.test.js\x1b[2m > \x1b[22mmath\x1b[2m > \x1b[22madds
AssertionError: expected 2 to be 3 // Object.is equality

 ❯ a.test.js:2:61

 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 3 passed (4)
"""
MOCHA = """\
  math
    add
      1) adds
      ✔ zero


  1 passing (5ms)
  1 failing

  1) math
       add
         adds:

      AssertionError [ERR_ASSERTION]: 1 == 2
      at Context.<anonymous> (m/a.js:2:76)
"""
NODE = """\
▶ math
  ✖ adds (1.5ms)
  ✔ ok (0.1ms)
▶ math (3.1ms)
ℹ tests 2
ℹ pass 1
ℹ fail 1

✖ failing tests:

test at t.test.mjs:2:23
✖ adds (1.5ms)
  AssertionError [ERR_ASSERTION]: 1 == 2
"""
TAP = """\
TAP version 13
# Subtest: math
    # Subtest: adds
    not ok 1 - adds
      ---
      error: '1 == 2'
      ...
    # Subtest: ok
    ok 2 - ok
    1..2
not ok 1 - math
ok 2 - later # SKIP not now
1..2
"""
JUNIT = """\
<?xml version="1.0"?><testsuites><testsuite name="t" tests="3">
<testcase classname="m.T" name="test_a" file="m.py" line="4"><failure message="1 != 2 &amp; more">trace</failure></testcase>
<testcase classname="m.T" name="test_b"/><testcase classname="m.T" name="test_c"><skipped/></testcase>
</testsuite></testsuites>
"""
RSPEC = """\
..F

Failures:

  1) Cart adds an item
     Failure/Error: expect(cart.size).to eq(2)

       expected: 2
            got: 1
     # ./spec/cart_spec.rb:7:in `block'

3 examples, 1 failure

Failed examples:

rspec ./spec/cart_spec.rb:5 # Cart adds an item
"""

# The next four are as the runners' own documentation and sources have them, not recorded.
MAVEN = """\
[INFO]  T E S T S
[INFO] Running x.ATest
[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1, Time elapsed: 0.05 s <<< FAILURE! -- in x.ATest
[ERROR] x.ATest.bad -- Time elapsed: 0.004 s <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <1> but was: <2>
\tat org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
\tat x.ATest.bad(ATest.java:8)

[ERROR] x.ATest.par(int)[2] -- Time elapsed: 0.001 s <<< ERROR!
java.lang.IllegalStateException: no

[INFO] Running x.BTest
[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.01 s -- in x.BTest
[INFO] Results:
[ERROR] Failures:
[ERROR]   ATest.bad:8 expected: <1> but was: <2>
[ERROR] Tests run: 6, Failures: 1, Errors: 1, Skipped: 1
[INFO] BUILD FAILURE
"""
MAVEN_2 = """\
Running x.ATest
Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 sec <<< FAILURE!
bad(x.ATest)  Time elapsed: 0.004 sec  <<< FAILURE!
java.lang.AssertionError: expected:<1> but was:<2>

Results :

Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
"""
GRADLE = """\
> Task :test FAILED

ATest > bad() FAILED
    org.opentest4j.AssertionFailedError at ATest.java:8

x.BTest > Inner > in FAILED
    java.lang.AssertionError at BTest.java:9

5 tests completed, 2 failed, 1 skipped

FAILURE: Build failed with an exception.
BUILD FAILED in 3s
"""
DOTNET = """\
  Failed N.ATest.Bad(x: 1) [12 ms]
  Error Message:
   Assert.Equal() Failure
Expected: 1
Actual:   2
  Stack Trace:
     at N.ATest.Bad(Int32 x) in /src/ATest.cs:line 10

Failed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 20 ms - A.dll (net8.0)
Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 20 ms - B.dll (net8.0)
"""
PHPUNIT = """\
There was 1 failure:

1) ATest::testBad with data set #0 (1, 2)
Failed asserting that 2 matches expected 1.

/app/tests/ATest.php:10

--

There was 1 skipped test:

1) ATest::testLater

FAILURES!
Tests: 4, Assertions: 3, Failures: 1, Skipped: 1.
"""


def named(report):
    return [item.check for item in report.failing]


@pytest.mark.parametrize(
    ("text", "runner", "failing"),
    [
        (PYTEST, "pytest", ["tests/test_a.py::TestA::test_b[x - y]", "tests/test_a.py::TestA::test_b"]),
        (UNITTEST, "unittest", ["test_a (test_u.T.test_a)", "test_d (test_u.T.test_d) (i=2)"]),
        (GO, "go test", ["TestOne", "TestOne/sub", "x/broken [build failed]"]),
        (GO_JSON, "go test", ["TestOne"]),
        (CARGO, "cargo", ["tests::adds"]),
        (JEST, "jest", ["math › add › adds", "./b.test.js"]),
        (VITEST, "vitest", ["math > adds"]),
        (MOCHA, "mocha", ["math › add › adds"]),
        (NODE, "node", ["adds"]),
        (TAP, "tap", ["math > adds"]),
        (JUNIT, "junit", ["test_a"]),
        (RSPEC, "rspec", ["Cart adds an item"]),
        (MAVEN, "maven", ["x.ATest.bad", "x.ATest.par(int)[2]"]),
        (MAVEN_2, "maven", ["x.ATest.bad"]),
        (GRADLE, "gradle", ["ATest > bad()", "BTest > Inner > in"]),
        (DOTNET, "dotnet", ["N.ATest.Bad(x: 1)"]),
        (PHPUNIT, "phpunit", ["ATest::testBad with data set #0"]),
    ],
)
def test_each_runner_names_what_failed_with_or_without_an_exit_status(text, runner, failing):
    for exit_code in (1, None, 0):
        report = parse_output(text, exit_code=exit_code)
        assert (report.runner, report.outcome, named(report)) == (runner, "failed", failing)
        assert report.error


@pytest.mark.parametrize(
    ("text", "suite", "path", "line", "message"),
    [
        (PYTEST, "tests/test_a.py", "tests/test_a.py", 0, "AssertionError: assert 'a..."),
        (UNITTEST, "test_u.T", "/app/test_u.py", 5, "AssertionError: 1 != 2"),
        (GO_JSON, "x/a", "", 0, ""),
        (CARGO, "src/lib.rs", "src/lib.rs", 5, "assertion `left == right` failed: sum"),
        (
            JEST,
            "./a.test.js",
            "a.test.js",
            1,
            "expect(received).toBe(expected) // Object.is equality Expected: 3 Received: 2",
        ),
        (VITEST, "a.test.js", "a.test.js", 2, "AssertionError: expected 2 to be 3 // Object.is equality"),
        (MOCHA, "", "m/a.js", 2, "AssertionError [ERR_ASSERTION]: 1 == 2"),
        (NODE, "", "t.test.mjs", 2, "AssertionError [ERR_ASSERTION]: 1 == 2"),
        (TAP, "", "", 0, "1 == 2"),
        (JUNIT, "m.T", "m.py", 4, "1 != 2 & more"),
        (RSPEC, "", "./spec/cart_spec.rb", 5, "expected: 2"),
        (
            MAVEN,
            "x.ATest",
            "ATest.java",
            8,
            "org.opentest4j.AssertionFailedError: expected: <1> but was: <2>",
        ),
        (GRADLE, "ATest", "ATest.java", 8, "org.opentest4j.AssertionFailedError"),
        (DOTNET, "", "/src/ATest.cs", 10, "Assert.Equal() Failure Expected: 1 Actual: 2"),
        (PHPUNIT, "ATest", "/app/tests/ATest.php", 10, "Failed asserting that 2 matches expected 1."),
    ],
)
def test_first_finding_says_where_and_why(text, suite, path, line, message):
    item = parse_output(text).failing[0]
    assert (item.suite, item.path, item.line, item.message) == (suite, path, line, message)


@pytest.mark.parametrize(
    ("text", "runner"),
    [
        ("..                             [100%]\n2 passed in 0.01s\n", "pytest"),
        (
            "..\n----------------------------------------------------------------------\nRan 2 tests in 0.000s\n\nOK\n",
            "unittest",
        ),
        ("ok  \tx/a\t0.1s\n?   \tx/b\t[no test files]\n", "go test"),
        (
            "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "cargo",
        ),
        ("PASS ./a.test.js\nTests:       2 passed, 2 total\n", "jest"),
        (" ✓ a.test.js (2 tests) 3ms\n\n Test Files  1 passed (1)\n      Tests  2 passed (2)\n", "vitest"),
        ("  2 passing (3ms)\n", "mocha"),
        ("1..2\nok 1 - a\nok 2 - b\n", "tap"),
        ("3 examples, 0 failures\n", "rspec"),
        ("All checks passed!\n", "ruff"),
        ("Success: no issues found in 3 source files\n", "mypy"),
        ("0 issues.\n", "golangci-lint"),
    ],
)
def test_each_runner_says_that_all_passed(text, runner):
    report = parse_output(text, exit_code=0)
    assert (report.runner, report.outcome, report.failing) == (runner, "passed", ())


@pytest.mark.parametrize(
    ("text", "command", "runner", "check", "line", "priority"),
    [
        ("a/m.py:3: error: Bad type  [arg-type]\nFound 1 error in 1 file (checked 2 source files)", "", "mypy", "a/m.py: arg-type Bad type", 3, "normal"),
        ("m.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.", "", "ruff", "m.py: F401 `os` imported but unused", 1, "normal"),
        ("F401 [*] `os` imported but unused\n --> m.py:1:8\n  |\nFound 1 error.", "", "ruff", "m.py: F401 `os` imported but unused", 1, "normal"),
        ("m.py:1:8: F401 'os' imported but unused", "flake8", "flake8", "m.py: F401 'os' imported but unused", 1, "normal"),
        ("t.ts(1,7): error TS2322: Bad.", "npm run build", "tsc", "t.ts: TS2322 Bad.", 1, "high"),
        ("t.ts:1:7 - error TS2322: Bad.\n\nFound 1 error in t.ts:1", "", "tsc", "t.ts: TS2322 Bad.", 1, "high"),
        ("/app/x.js\n  1:14  error    'foo' is not defined  no-undef\n  2:1   warning  Semi  semi\n\n✖ 2 problems (1 error, 1 warning)", "", "eslint", "/app/x.js: no-undef 'foo' is not defined", 1, "normal"),
        ("w.c: In function 'main':\nw.c:1:24: error: 'x' undeclared\nw.c:2:1: warning: unused", "gcc -c w.c -o w.o", "gcc", "w.c: 'x' undeclared", 1, "high"),
        ("w.c:1:24: fatal error: no.h\n1 error generated.", "", "gcc", "w.c: no.h", 1, "high"),
        ("# x/y/cli\ncli/a.go:2:5: undefined: z", "go build ./...", "go build", "cli/a.go: undefined: z", 2, "high"),
        ("[lint] a/b.go:9:6: type t is unused (unused)\n[lint] 1 issues:\n[lint] * unused: 1", "mise run lint", "golangci-lint", "a/b.go: unused type t is unused", 9, "normal"),
        (RUSTC, "cargo build", "rustc", "src/lib.rs: E0425 cannot find value `c` in this scope", 1, "high"),
        (RUSTC, "cargo test", "rustc", "src/lib.rs: E0425 cannot find value `c` in this scope", 1, "critical"),
        ("report.md:7: broken link to a.md [link]", "check_document", "check_document", "report.md: link broken link to a.md", 7, "normal"),
    ],
)  # fmt: skip
def test_linters_and_compilers_name_a_finding_by_path_rule_and_message(
    text, command, runner, check, line, priority
):
    report = parse_output(text, command=command, exit_code=None if command == "check_document" else 1)
    assert (report.runner, report.outcome) == (runner, "failed")
    (item,) = report.failing
    assert (item.check, item.line, item.priority) == (check, line, priority)


def test_names_of_passed_and_skipped_checks_are_listed_where_the_runner_lists_them():
    report = parse_output(JEST)
    assert [(name.check, name.suite) for name in report.passed] == [
        ("top", "./a.test.js"),
        ("math › add › zero", "./a.test.js"),
    ]
    assert [name.check for name in report.skipped] == ["math › add › later"]
    report = parse_output(GO)
    assert [(name.check, name.suite) for name in report.passed] == [("TestTwo", "x/a")]
    assert report.suites == ("x/a", "x/b")


def test_broken_off_runs_failed_and_are_not_complete():
    for text in (
        DJANGO_BROKEN,
        "============================= test session starts ====\ncollected 9 items\n\na.py ",
    ):
        report = parse_output(text, command="pytest")
        assert (report.outcome, report.complete, report.names_all_failing) == ("failed", False, False)
        assert report.error
    assert "pluralize" in parse_output(DJANGO_BROKEN).error


def test_selection_in_command_or_output_makes_a_run_incomplete():
    text = "2 passed in 0.01s"
    assert parse_output(text, command="pytest -q").complete
    for command in ("pytest -k a", "pytest tests/test_a.py", "pytest a.py::b", "pytest --lf", ""):
        assert not parse_output(text, command=command).complete
    assert not parse_output("2 passed, 1 deselected in 0.01s", command="pytest").complete


def test_sessions_printed_by_a_test_are_not_the_run():
    inner = "===== short test summary info =====\nFAILED test_inner.py::test_x - no\n===== 1 failed in 0.01s =====\n"
    outer = (
        PYTEST.split("=====", 1)[0]
        + f"{'=' * 20} PASSES {'=' * 20}\n{inner}{'=' * 20} 3 passed in 1.00s {'=' * 20}\n"
    )
    report = parse_output(outer)
    assert (report.outcome, report.failing) == ("passed", ())


def test_several_runners_in_one_output_each_give_a_report():
    text = "a/b.go:9:6: type t is unused (unused)\n1 issues:\n* unused: 1\nok  \tx/a\t0.1s\n"
    reports = parse_reports(text, command="mise run lint; mise run test")
    assert {report.runner: report.outcome for report in reports} == {
        "go test": "passed",
        "golangci-lint": "failed",
    }
    assert parse_output(text, command="mise run lint; mise run test").outcome == "failed"


def test_compiler_like_lines_printed_by_tests_are_no_findings():
    text = "captured: x\nsrc/a.c:3:1: error: from a log\nm.py:3: error: logged\n1 passed in 0.01s"
    assert parse_output(text, command="pytest", exit_code=0).outcome == "passed"


@pytest.mark.parametrize(
    ("text", "command", "exit_code", "outcome"),
    [
        ("", "make test", 0, "passed"),
        ("", "make test", 2, "failed"),
        ("", "make test | tail", 0, "unknown"),
        ("make: *** [Makefile:3: test] Error 1", "make test | tail", 0, "failed"),
        ("[lint] ERROR task failed", "mise run lint", None, "failed"),
        ("zsh: command not found: pytest", "pytest", None, "failed"),
        ("all good", "make test", None, "unknown"),
    ],
)
def test_failing_all_the_exit_status_decides_and_where_it_is_hidden_the_usual_signs(
    text, command, exit_code, outcome
):
    report = parse_output(text, command=command, exit_code=exit_code)
    assert report.outcome == outcome
    assert report.failing == ()


@pytest.mark.parametrize(
    ("text", "command", "exit_code", "outcome"),
    [
        ("", "go build ./...", 0, "passed"),
        ("", "go build ./... 2>&1 | head -50", 0, "passed"),
        ("", "npx eslint . | tail", 0, "passed"),
        ("", "go build ./... 2>&1 | grep error", 0, "unknown"),
        ("warning: something", "go build ./... | tail", 0, "unknown"),
        ("", "pytest -q | tail", 0, "unknown"),
    ],
)
def test_silence_is_a_pass_only_of_programs_that_say_nothing_when_all_is_well(
    text, command, exit_code, outcome
):
    assert parse_output(text, command=command, exit_code=exit_code).outcome == outcome


def test_hidden_silence_closes_what_the_same_build_found():
    (failed,) = parse_reports("# x/y\na.go:2:5: undefined: z", command="go build ./... | tail", exit_code=0)
    (passed,) = parse_reports("", command="go build ./...", exit_code=0)
    assert failed.runner == passed.runner == "go build"
    assert passed.complete


@pytest.mark.parametrize(
    ("text", "runner", "ran", "skipped"),
    [
        ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 2\n[INFO] BUILD SUCCESS\n", "maven", 3, 2),
        (DOTNET.splitlines()[-1], "dotnet", 3, 0),
        ("Test summary: total: 4, failed: 0, succeeded: 3, skipped: 1, duration: 1.2s\n", "dotnet", 3, 1),
        ("OK (3 tests, 4 assertions)\n", "phpunit", 3, 0),
        ("OK, but some tests were skipped!\nTests: 3, Assertions: 2, Skipped: 1.\n", "phpunit", 2, 1),
    ],
)
def test_passing_run_of_a_build_is_read_with_its_counts(text, runner, ran, skipped):
    report = parse_output(text, exit_code=0)
    assert (report.runner, report.outcome) == (runner, "passed")
    assert (report.tally.ran, report.tally.skipped) == (ran, skipped)


@pytest.mark.parametrize(
    ("text", "command"), [(GRADLE, "./gradlew test"), (DOTNET, "dotnet test"), (MAVEN, "mvn test")]
)
def test_failure_of_a_build_is_named_if_the_end_is_cut(text, command):
    report = parse_output("\n".join(text.splitlines()[:6]), command=command)
    assert report.outcome == "failed"
    assert report.failing
    assert not report.names_all_failing


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        ('\nError: No test files found: "test"\n', 1),
        ("No tests found, exiting with code 1\nRun with `--passWithNoTests` to exit with code 0\n", 1),
        ("\n\n  0 passing (1ms)\n\n", 0),
        ("TAP version 13\n1..0\n# tests 0\n# pass 0\n# fail 0\n", 0),
        ("ℹ tests 1\nℹ suites 0\nℹ pass 0\nℹ fail 0\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n", 0),
        ("Test Suites: 2 skipped, 0 of 2 total\nTests:       7 skipped, 7 total\nSnapshots:   0 total\n", 0),
    ],
)
def test_run_in_which_no_test_ran_is_a_warning(text, exit_code):
    report = parse_output(text, exit_code=exit_code)
    assert (report.outcome, report.warning) == ("unknown", "no tests ran")
