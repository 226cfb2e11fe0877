"""Of any two roles that write a file one waits for the other, and whoever reads a file comes after who writes it."""

import sys

from .book import BOOK, faults, harmed, plan


def book(files, roles, stages):
    """A pipeline of three chapters."""
    return (
        f"pipeline: book\nitems: {{chapter: 3}}\nfiles:\n  {files}\nroles:\n  "
        + "\n  ".join(f"{name}: {{{what}}}" for name, what in roles.items())
        + "\nstages:\n"
        + "".join(f"  - {{{stage}}}\n" for stage in stages)
    )


def test_two_parallel_roles_that_claim_a_file_are_refused_and_one_after_the_other_is_not():
    roles = {"a": "writes: [{file: f}]", "b": "writes: [{file: f}]"}
    assert faults(book("f: {path: f.md}", roles, ["id: one, role: a", "id: two, role: b"])) == [
        (
            "10: stages[1]: role a (stage one) and role b (stage two) may write f.md at the same time; a file can have only one "
            "writer at a time: let two wait for one, or use separate files."
        )
    ]
    assert plan(book("f: {path: f.md}", roles, ["id: one, role: a", "id: two, role: b, after: one"]))


def test_a_file_that_all_items_claim_is_told_once_without_what_follows_from_it():
    text = harmed(("drafts/ch{{ chapter.id }}.md", "draft.md"), ("    after_previous: revise\n", ""))
    assert faults(text) == [
        (
            "40: stages[1].stages[0]: role writer (stage write, items 01 and 02) may write draft.md at the same time; "
            "a file can have only one writer at a time: use a separate file for each item, or set `after_previous` on its loop."
        )
    ]
    assert plan(harmed(("drafts/ch{{ chapter.id }}.md", "draft.md"), text=BOOK))  # item by item


def test_a_static_file_is_written_once():
    roles = {"a": "writes: [{file: f}]", "b": "writes: [{file: f}]"}
    files = "f: {path: f.md, class: static}"
    assert faults(book(files, roles, ["id: one, role: a", "id: two, role: b, after: one"])) == [
        "10: stages[1]: f.md is static and can be written only once, but role a (stage one) and role b (stage two) write it."
    ]
    assert faults(book(files, roles, ["id: one, role: a, for_each: chapter, after_previous: one"])) == [
        "9: stages[0]: f.md is static and can be written only once, but role a (stage one, items 01 and 02) write it."
    ]
    assert faults(harmed(('id }}.md"}\n  review', 'id }}.md", class: static}\n  review'))) == [
        ("41: stages[1].stages[0]: drafts/ch01.md is static and can be written only once, but role writer (stage write, item 01) is "
        "part of loop revise and may write it again.")
    ]  # fmt: skip
    first = {"a": "writes: [{file: f, only: first}, {file: g}]"}
    assert plan(
        book(
            f"{files}\n  g: {{path: 'g{{{{ chapter.id }}}}'}}", first, ["id: one, role: a, for_each: chapter"]
        )
    )


def test_a_path_has_one_class():
    assert faults(harmed(("path: meta/summaries.md", "path: style.md"))) == [
        "9: files.summaries: style.md is append-only here but static as style; a path can have only one class."
    ]


def test_roles_that_run_at_once_may_append_to_one_file_but_not_beside_one_that_writes_it():
    files = "m: {path: m.md, class: append-only}\n  n: {path: 'n{{ chapter.id }}'}"
    roles = {
        "a": "writes: [{file: n}], appends: [{to: m, from: n}]",
        "b": "writes: [{file: m}]",
        "c": "writes: [{file: m}]",
    }
    each = "id: one, role: a, for_each: chapter"
    assert plan(book(files, roles, [each]))
    assert faults(book(files, roles, [each, "id: two, role: b"])) == [
        (
            "11: stages[0]: role b (stage two) and role a (stage one, item 01) may write m.md at the same time; a file "
            "can have only one writer at a time: let one wait for two, or use separate files."
        )
    ]
    assert plan(book(files, roles, [each, "id: two, role: b, after: one"]))
    assert "role b (stage two) and role c (stage three) may write m.md" in faults(
        book(files, roles, ["id: two, role: b", "id: three, role: c"])
    )[0]  # fmt: skip


def test_whoever_reads_a_file_comes_after_who_writes_it():
    files = "f: {path: f.md}\n  g: {path: g.md}"
    roles = {"a": "writes: [{file: f}]", "b": "reads: [{file: f}], writes: [{file: g}]"}
    assert faults(book(files, roles, ["id: one, role: a", "id: two, role: b"])) == [
        (
            "11: stages[1]: role b (stage two) reads f.md, which role a (stage one) writes, but does not wait for it. "
            "Let it wait for one, or mark the pointer `optional`."
        )
    ]
    assert faults(book(files, roles, ["id: one, role: a, after: two", "id: two, role: b"])) == [
        (
            "11: stages[1]: role b (stage two) reads f.md, which role a (stage one) writes, which runs later. "
            "Mark the pointer `optional`, or reverse their order."
        )
    ]
    optional = roles | {"b": "reads: [{file: f, optional: true}], writes: [{file: g}]"}
    assert plan(book(files, optional, ["id: one, role: a, after: two", "id: two, role: b"]))
    assert plan(book(files, roles, ["id: two, role: b"]))  # nobody writes it, so it is there at the start


def test_a_file_may_be_written_anew_behind_those_who_read_it():
    files = "f: {path: f.md}\n  g: {path: g.md}"
    roles = {"a": "writes: [{file: f}]", "b": "reads: [{file: f}], writes: [{file: g}]"}
    stages = ["id: one, role: a", "id: two, role: b, after: one", "id: three, role: a, after: two"]
    assert plan(book(files, roles, stages))
    stages[2] = "id: three, role: a, after: one"
    assert "role b (stage two) reads f.md, which role a (stage three) writes, but does not wait" in faults(book(files, roles, stages))[0]  # fmt: skip


def test_a_pattern_reads_what_is_there_and_waits_for_all_that_it_matches():
    files = "d: {path: 'd/{{ chapter.id }}.md'}\n  all: {path: './d//**/*.md'}\n  i: {path: i.md}"
    roles = {"a": "writes: [{file: d}]", "b": "reads: [{file: all}], writes: [{file: i}]"}
    each = "id: one, role: a, for_each: chapter"
    assert plan(book(files, roles, [each, "id: two, role: b, after: one"]))
    assert faults(book(files, roles, [each, "id: two, role: b"])) == [
        (
            "12: stages[1]: role b (stage two) reads d/01.md, which role a (stage one, item 01) writes, but does not wait for it. "
            "Let it wait for one, or mark the pointer `optional`."
        )
    ]
    own = roles | {"a": "reads: [{file: all}], writes: [{file: d}]"}
    assert plan(book(files, own, [f"{each}, after_previous: one"]))  # those of the items before
    assert "Let it read the file of its own item" in faults(book(files, own, [each]))[0]


def test_the_work_of_a_plan_grows_as_its_items_do():
    def calls(count):
        seen = [0]

        def note(_frame, event, _argument):
            seen[0] += event == "call"

        items = '    - {id: "01", title: One}\n    - {id: "02", title: Two}\n'
        text = harmed((items, f"    {count}\n"), ("on {{ chapter.title }}", ""))
        sys.setprofile(note)
        try:
            plan(text)
        finally:
            sys.setprofile(None)
        return seen[0]

    plan()  # what is compiled once is compiled
    few, more, many = calls(10), calls(40), calls(90)  # keys of two digits, so paths of the first are known
    assert many - more <= 1.9 * (more - few)
