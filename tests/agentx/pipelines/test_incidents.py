"""What happens beside the plan while a pipeline runs is reported at its end and in its log, all of it."""

import re

from agentx.pipelines.runner import Runner
from tests.agentx.pipelines.conftest import BOOK, well
from tests.agentx.pipelines.test_attacks import at, run
from tests.agentx.pipelines.test_programs import ONE, play

LOGGED = BOOK.replace("files:\n", "log: log\nfiles:\n  log: {path: log.md, class: append-only}\n")


def logged(desk):
    return [line[2:] for line in desk.text("log.md").splitlines() if line.startswith("- ")]


def test_changes_from_outside_are_all_reported_whether_or_not_anything_failed(desk):
    desk.path.write_text(LOGGED)
    files = desk.ws.artifacts

    def write(path, prompt):
        if path == "drafts/02.md":
            for name in ("outline.md", "drafts/01.md", "notes.txt"):
                (files / name).write_text("Edited.\n", "utf-8")
            for name in range(4, 9):
                (files / "drafts" / f"0{name}.md").write_text("New.\n", "utf-8")
        if path == "reviews/03.md":
            (files / "reviews" / "01.md").unlink()
        return well(path, prompt)

    ended = desk.run(write)
    assert ended.status == "COMPLETED"
    told = [re.sub(r"\d+\)$", "N)", one) for one in ended.incidents]
    outside = "from outside while the pipeline ran (event N)"
    assert sorted(told) == sorted(
        [
            f"outline.md was changed {outside}",
            f"drafts/01.md was changed {outside}",
            *(f"drafts/0{name}.md was created {outside}" for name in range(4, 9)),
            f"reviews/01.md was removed {outside}",
        ]
    )
    assert logged(desk) == list(ended.incidents)
    again = desk.run()
    assert not any("outline" in one for one in again.incidents)


def test_what_another_agent_writes_into_its_files_is_reported(desk):
    desk.path.write_text(BOOK)

    def write(path, prompt):
        if path == "drafts/02.md":
            desk.ws.tools.write_file("drafts/01.md", "Mine.\n")
            desk.ws.tools.write_file("mine.md", "Mine.\n")
        return well(path, prompt)

    (incident,) = desk.run(write).incidents
    assert incident.startswith(
        "drafts/01.md was changed from outside by agent:main while the pipeline ran (ev"
    )


def test_a_denied_call_is_reported_though_the_step_is_proved(desk):
    desk.path.write_text(LOGGED)

    def pries(messages, paths):
        if paths != ["drafts/01.md"]:
            return at("", ("", []))(messages, paths)
        calls = [("read_file", {"path": "secret.md"}), ("write_file", {"path": "outline.md", "content": "x"})]
        done = [("write_file", {"path": paths[0], "content": well(paths[0], "")})]
        return ("Done.", []) if messages[-1].role == "tool" else ("", [*calls, *done])

    ended = run(desk, pries)
    assert ended.status == "COMPLETED"
    assert [one.partition(": Role")[0] for one in ended.incidents] == [
        "write[01], round 1: writer was denied read_file",
        "write[01], round 1: writer was denied write_file",
    ]
    assert logged(desk) == list(ended.incidents)


def test_processes_that_a_program_leaves_are_ended_and_reported(desk):
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    child = f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], {quiet})"
    ended = play(desk, f"{child}; print('Text.')", ONE)
    assert ended.status == "COMPLETED"
    assert ended.incidents == (
        "report, round 1: reporter: It left processes running when it ended; they were ended too.",
    )
    desk.path.write_text(ONE)
    assert Runner(desk.ws.engine, desk.path, lambda _name: None).run().incidents == ()


def test_a_changed_file_of_a_source_tree_is_reported(desk):
    tree = desk.path.parent / "src"
    tree.mkdir()
    for name in "abc":
        (tree / f"{name}.py").write_text("one\n")
    book = LOGGED.replace("files:\n", "sources: {code: src}\nfiles:\n  code: {source: code, path: '*.py'}\n")
    desk.path.write_text(book.replace("  architect:\n", "  architect:\n    reads: [{file: code}]\n"))

    def write(path, prompt):
        if path == "drafts/01.md":
            (tree / "a.py").write_text("two\n")
            (tree / "b.py").unlink()
        return well(path, prompt)

    ended = desk.run(write)
    assert ended.incidents == (
        "code:a.py was changed from outside while the pipeline ran",
        "code:b.py was removed from outside while the pipeline ran",
    )
    assert logged(desk) == list(ended.incidents)
    assert desk.run().incidents == ()


def test_what_a_person_writes_as_a_role_is_not_reported(desk):
    book = BOOK.replace("files:\n", "files:\n  preface: {path: preface.md}\n")
    book = book.replace("roles:\n", "roles:\n  owner: {by: person, writes: [{file: preface}]}\n", 1)
    desk.path.write_text(f"{book}  - {{id: preface, role: owner}}\n")

    def write(path, prompt):
        if path == "drafts/02.md":
            (desk.ws.artifacts / "preface.md").write_text("Mine.\n", "utf-8")
            (desk.ws.artifacts / "drafts/01.md").write_text("Mine.\n", "utf-8")
        return well(path, prompt)

    (incident,) = desk.run(write).incidents
    assert incident.startswith("drafts/01.md was changed from outside")
