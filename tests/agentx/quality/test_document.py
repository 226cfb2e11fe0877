"""Checking prose: each rule on a text that breaks it and on one that does not."""

from importlib import metadata

import pytest

from agentx.quality import typos
from agentx.quality.document import MAX_CHARS, MAX_FINDINGS, check_document
from agentx.synthesis.checks import parse_output


@pytest.fixture
def check():
    """Findings of a text as (line, rule, message); files that exist and other texts are given by name."""

    def run(text, *, path="docs/page.md", files=(), texts=None, **options):
        texts = texts or {}
        report = check_document(
            path, text, exists=lambda p: p in files or p in texts, read=texts.get, **options
        )
        return [(found.line, found.rule, found.message) for found in report.findings]

    return run


def test_a_sound_document_passes():
    text = "# Plan\n\nAll is well with `teh code`, see [below](#next).\n\n## Next\n\n```\nrecieve\n```\n"
    report = check_document("a.md", text, exists=lambda path: False)
    assert not report.findings
    assert report.text == ""


def test_a_finding_reads_as_linters_print_it():
    report = check_document("docs/a.md", "# Plan\n\nWe recieved it.\n", exists=lambda path: False)
    assert str(report.findings[0]) == "docs/a.md:3: 'recieved' is misspelt: received [spelling]"


def test_the_text_of_a_report_is_read_as_check_output():
    report = check_document("docs/a.md", "# Plan\n\nteh\n", exists=lambda path: False)
    parsed = parse_output(report.text, command="ruff check docs", exit_code=1)
    assert any(found.path == "docs/a.md" and found.line == 3 for found in parsed.failing)


def test_spelling_leaves_out_code_addresses_tags_and_known_words(check):
    text = (
        "# Plan\n\nUse `teh` and ``a ` teh``, <b title='teh'>x</b>, https://x.org/teh, me@teh.org, "
        "[good](teh.md).\n\n    teh indented\n\n```\nteh\n```\n\n<!-- teh -->\n\nFoobaz TEH, recieve, and *teh* end.\n"
    )
    assert check(text, files={"docs/teh.md"}, extra_words=("Recieve",)) == [
        (13, "spelling", "'teh' is misspelt: the")
    ]


def test_spelling_stays_at_its_line_across_code_that_spans_lines(check):
    assert check("# A\n\nsome `code\nspan` and\nteh end\n") == [(5, "spelling", "'teh' is misspelt: the")]


@pytest.mark.parametrize(
    ("language", "wrong"),
    [("en", []), ("en-US", ["colour", "organise"]), ("en-GB", ["color", "modeled", "center"]), ("en_GB", ["color", "modeled", "center"])],
)  # fmt: skip
def test_the_spelling_of_a_country(check, language, wrong):
    text = "The colour and organise. \n\nThe color, program, meter, organize, modeled, center.\n"
    found = check(text, path="a.txt", language=language)
    assert sorted(m.split("'")[1] for _, rule, m in found if rule == "spelling") == sorted(wrong)


def test_oxford_spelling_is_british_and_yse_is_not_american(check):
    text = "We organize and capitalize, but analyse.\n"
    assert check(text, path="a.txt", language="en-GB") == []
    assert [m for _, _, m in check(text, path="a.txt", language="en-US")] == [
        "'analyse' is misspelt: analyze"
    ]


def test_spelling_looks_at_whole_words_not_at_their_parts(check):
    text = "Call teh_end, xTeh and mis-parse.\n«Señor» – _teh_ ‘recieve’ naïve wich's “wich”\n"
    assert [(n, m) for n, _, m in check(text, path="a.txt")] == [
        (2, "'recieve' is misspelt: receive"),
        (2, "'teh' is misspelt: the"),
        (2, "'wich' is misspelt: which or witch"),
    ]


def test_names_are_not_misspelt(check):
    assert check("HPE, SELEC and Wirth, Ned; Recieved and RECIEVED.\n", path="a.txt") == [
        (1, "spelling", "'RECIEVED' is misspelt: RECEIVED"),
        (1, "spelling", "'Recieved' is misspelt: Received"),
    ]


def test_no_file_of_a_project_and_no_line_of_a_text_turns_spelling_off(check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("typos.toml", "_typos.toml", ".typos.toml"):
        (tmp_path / name).write_text('[default.extend-words]\nteh = "teh"\n[files]\nextend-exclude = ["*"]\n')
    text = "%PDF-1.7 spellchecker:disable\0\nteh # spellchecker:disable-line\r\u2028\x0bteh\n"
    assert [(n, rule) for n, rule, _ in check(text, path="a.txt")] == [(2, "spelling"), (3, "spelling")]


@pytest.mark.parametrize("line", ["teh " * 20_000, "é teh " * 20_000, "teh-" * 20_000, "a" * 400_000])
def test_one_long_line_is_checked(check, line):
    found = check(line, path="a.txt")
    assert {rule for _, rule, _ in found} <= {"spelling", "usage"}
    assert any(rule == "spelling" for _, rule, _ in found) is ("teh " in line)


@pytest.mark.parametrize("broken", ["missing", "no program", "not executable", "fails", "hangs", "babbles"])
def test_where_the_program_is_missing_or_fails_the_report_says_so_and_checks_the_rest(
    broken, tmp_path, monkeypatch
):
    program = tmp_path / "typos"
    does = {"fails": "exit 78", "babbles": "echo teh; exit 2"}.get(broken, "exec sleep 60")
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o600 if broken == "not executable" else 0o700)
    if broken in {"missing", "no program"}:
        monkeypatch.setattr(typos.metadata, "files", {"missing": gone, "no program": lambda _: []}[broken])
        typos._program.cache_clear()
    else:
        monkeypatch.setattr(typos, "_program", lambda: str(program))
        monkeypatch.setattr(typos, "TIMEOUT_S", 0.2 if broken == "hangs" else 30)
    report = check_document("a.md", "# A\n\nteh should of gone TODO\n", exists=lambda path: False)
    assert [found.rule for found in report.findings] == ["todo", "usage"]
    assert len(report.notes) == 1
    assert report.notes[0].startswith(
        (
            "spelling was not checked. The p",
            "spelling was not checked. Spelling and usage in `check_document` need pip",
        )
    )


def gone(name):
    raise metadata.PackageNotFoundError(name)


def test_another_language_is_not_checked_for_spelling_and_says_so():
    report = check_document("a.md", "# Titel\n\nteh\n", language="de", exists=lambda path: False)
    assert report.findings == ()
    assert report.text == "spelling and usage are checked in English only, not in de"


def test_usage_mistakes_stand_at_their_line(check):
    found = check("# A\n\nIt is fine.\nHe should of gone to\nthe the bank.\n")
    assert [(line, rule) for line, rule, _ in found] == [(4, "usage"), (5, "usage")]
    assert "should've" in found[0][2]


def test_a_heading_does_not_run_on_into_its_text(check):
    assert check("# Handler\nHandler is a class.\n\n- red\n- red\n") == []


def test_quoted_and_coded_words_are_not_the_writers(check):
    assert check('# A\n\nShe said "it was the the end" and left; use the `the` word.\n') == []


def test_links_that_lead_nowhere(check):
    text = (
        "# A\n\n[ok](b.md) [up](../README.md) [top](/src/x.py) [dir](img/)\n[gone](c.md) ![pic](img/no.png)\n"
        "[out](../../x.md) [empty]()\n[esc](a%20b.md) [q](b.md?raw=1)\n\n[d]: missing.md\n"
        "\n[e][d] and [f][nope] but a[0][1]\n"
    )
    files = {"docs/b.md", "README.md", "src/x.py", "docs/img", "docs/a b.md"}
    assert check(text, files=files) == [
        (4, "link", "the link leads to docs/c.md, which does not exist"),
        (4, "link", "the link leads to docs/img/no.png, which does not exist"),
        (5, "link", "the link leads nowhere"),
        (5, "link", "the link leads out of the tree: ../../x.md"),
        (8, "link", "the link leads to docs/missing.md, which does not exist"),
        (10, "link", "the reference [nope] is not defined"),
    ]


def test_each_of_two_links_with_one_target_has_its_line(check):
    assert [line for line, _, _ in check("# A\n\n[a](b) x\ny [a](b)\n`z\nz` [a](b)\n")] == [3, 4, 6]


def test_anchors_here_and_in_other_documents(check):
    text = (
        "# My Plan: a `b`!\n\n[a](#my-plan-a-b) [b](#nope) [c](other.md#part-1) [d](other.md#nope) [e](x.py#L3)\n"
        '<a id="own"></a>[f](#own) [g](#part-1) [h](#sec)\n\n## Part\n\n### Part\n\n## Set {#sec}\n'
    )
    texts = {"docs/other.md": "# T\n\n## Part\n\n## Part\n"}
    assert check(text, texts=texts, files={"docs/x.py"}) == [
        (3, "link", "docs/other.md has no heading or anchor #nope"),
        (3, "link", "this document has no heading or anchor #nope"),
    ]


def test_addresses_elsewhere_are_checked_for_their_form_alone(check):
    text = "# A\n\n[a](https://example.org/x#y) [b](http:///x) [c](mailto:a@b.org) [d](http://[bad) <https://ok.org>\n"
    assert check(text) == [
        (3, "link", "http://%5Bbad is not a well-formed address"),
        (3, "link", "http:///x is an address without a host"),
    ]


def test_headings(check):
    text = "# A\n\n## B\n\n#### C\n\n## B\n\n##\n\n# D\n\n## B\n"
    assert check(text) == [
        (5, "heading", "the heading's level jumps from 2 to 4"),
        (7, "heading", "the heading 'B' occurs twice in its section"),
        (9, "heading", "the heading is empty"),
    ]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Text.\n", True),
        ("## Part\n\nText.\n", True),
        ("Title\n=====\n", False),
        ("---\ntitle: T\n---\n\n## Part\n", False),
        ("<h1>T</h1>\n\ntext\n", False),
        ("", False),
    ],
)
def test_a_document_has_a_title(check, text, missing):
    assert ((1, "heading", "the document has no title (no heading of level 1)") in check(text)) is missing


def test_front_matter_is_no_prose(check):
    assert check("---\ntitle: teh\nkey: recieve\n---\n\n# A\n") == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# A\n\n```py\nx\n", [3]),
        ("# A\n\n```py\nx\n```\n", []),
        ("# A\n\n~~~~\nx\n~~~\n", [3]),
        ("# A\n\n> ```\n> x\n> ```\n", []),
        ("# A\n\n- a\n\n  ```\n  x\n  ```\n\n- b\n", []),
        ("# A\n\n```\n", [3]),
    ],
)
def test_code_fences_are_closed(check, text, lines):
    assert [line for line, rule, _ in check(text) if rule == "fence"] == lines


def test_what_is_left_to_do(check):
    found = check("# A\n\nTODO: write `TODO` todo.\n\n```\nTODO\n```\n")
    assert found == [(3, "todo", "left to do: TODO: write `````` todo.`")]


def test_plain_text_knows_no_headings_and_links(check):
    assert check("No title\n[a](gone.md)\nteh\n", path="notes.txt") == [
        (3, "spelling", "'teh' is misspelt: the")
    ]


def test_line_ends_of_other_systems_count_once(check):
    assert [line for line, _, _ in check("# A\r\n\r\nteh\r\rteh\r\n")] == [3, 5]


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 teh \0",
        "\x0c\u2028teh",
        "# \u202e\x1b[31mteh\n\nteh teh\n",
        "[teh](gone\u202e.md)",
        "[teh](#gone\u202e)",
    ],
)
def test_strange_characters_neither_break_nor_reach_the_report(check, text):
    messages = [message for _, _, message in check(text)]
    assert "'teh' is misspelt: the" in messages
    assert all(message.isprintable() for message in messages)


@pytest.mark.parametrize(
    "part", ["` ``", "[a][", "](", "# a\n", "[a](b)\n", "a@", "<a ", "<!--", "[", "![", '"a ', "*a **b ", "|a", "> ", "teh "]
)  # fmt: skip
def test_hostile_texts_end(check, part):
    assert len(check(part * (20_000 // len(part)))) <= MAX_FINDINGS


def test_a_huge_document_is_checked_in_part_and_says_so():
    report = check_document("a.md", "# A\n\n" + "fine words\n" * 100_000, exists=lambda path: False)
    assert report.notes == (f"only the first {MAX_CHARS} characters of a.md were checked",)


def test_findings_are_bounded_and_counted():
    report = check_document("a.txt", "teh end.\n" * (MAX_FINDINGS + 7), exists=lambda path: False)
    assert (len(report.findings), report.omitted) == (MAX_FINDINGS, 7)
    assert report.text.endswith("... and 7 more")
