"""Files are cut along their structure: nothing is lost, nothing is too long, and line numbers are true."""

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.chunking import chunk_file, outline
from agentx.synthesis.chunking.pieces import MAX_BYTES, OVERLAP_LINES, name_words

PATHS = [f"src/a{s}" for s in (".py", ".js", ".ts", ".tsx", ".go", ".rs", ".java", ".c", ".cpp", ".h")] + [
    f"docs/a{s}" for s in (".md", ".rst", ".txt", ".toml", ".yaml", ".json", ".csv", ".sql", "")
]
LINES = st.sampled_from(
    [
        "", "   ", "# Title", "## Sub", "Title", "=====", "-----", "```", "---", "[table]", "key: value", "a,b,c",
        "def f(x):", "    return x", "class A:", "    def m(self):", "        pass", "@decorator", "# comment",
        "function f() {", "}", "export const g = () => {", "func (c *C) M() {", "impl S {", "fn n() {}", "/** Doc. */",
        "namespace n {", "template<class T>", "#ifdef X", "#endif", "word " * 60, "x" * 3000, "é" * 900, "\u2028", "\r",
    ]
)  # fmt: skip


def check_pieces(path, text):
    """The contract of every piece of every file."""
    lines, pieces = text.split("\n"), chunk_file(path, text)
    seen = {}
    for piece in pieces:
        assert 1 <= piece.start_line <= piece.end_line <= len(lines)
        assert piece.text.strip()
        assert len(piece.text.encode()) <= MAX_BYTES
        whole = "\n".join(lines[piece.start_line - 1 : piece.end_line])
        assert piece.text == whole or (piece.start_line == piece.end_line and piece.text in whole)
        assert path in piece.context
        for number in range(piece.start_line, piece.end_line + 1):
            seen[number] = seen.get(number, 0) + 1
    assert [n for n, line in enumerate(lines, 1) if line.strip() and n not in seen] == []
    assert [p.start_line for p in pieces] == sorted(p.start_line for p in pieces)
    return pieces


@given(st.sampled_from(PATHS), st.lists(LINES, max_size=60))
def test_every_line_that_is_not_blank_is_in_a_piece_and_line_numbers_are_true(path, lines):
    check_pieces(path, "\n".join(lines))


@given(
    st.sampled_from(PATHS),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=200),
)
def test_any_text_is_cut_by_the_same_contract(path, text):
    check_pieces(path, text)


@given(st.sampled_from(PATHS), st.lists(LINES, max_size=40))
def test_outline_entries_stand_in_order_inside_the_file(path, lines):
    entries = outline(path, "\n".join(lines))
    assert all(1 <= e.start_line <= e.end_line <= max(len(lines), 1) for e in entries)
    starts = [e.start_line for e in entries]
    assert starts == sorted(starts)


def test_only_parts_of_a_split_block_share_lines():
    body = "\n".join(f"    value_{i} = compute_something({i})" for i in range(120))
    text = f"def before():\n    return {'1' * 300}\n\n\ndef long_one():\n{body}\n\n\ndef after():\n    return 2\n"
    pieces = check_pieces("a.py", text)
    long_ones = [p for p in pieces if p.symbol == "long_one"]
    assert len(long_ones) > 2
    for first, second in itertools.pairwise(long_ones):
        assert 0 < first.end_line - second.start_line + 1 <= OVERLAP_LINES
    others = [p for p in pieces if p.symbol != "long_one"]
    assert [p.symbol for p in others] == ["before", "after"]
    assert others[0].end_line < long_ones[0].start_line
    assert long_ones[-1].end_line < others[1].start_line


def test_a_method_is_found_under_its_class_with_its_decorator_and_comment():
    method = (
        '    # Talks to the bank.\n    @retry\n    def fetchOrders(self):\n        """Ask."""\n'
        + "        x = 1\n" * 40
    )
    pieces = chunk_file("pay/client.py", f"import os\n\n\nclass Client:\n    limit = 3\n\n{method}")
    found = next(p for p in pieces if p.symbol.endswith("Client.fetchOrders"))
    assert "@retry" in found.text
    assert "# Talks to the bank." in found.text
    assert found.context == "pay/client.py Client.fetchOrders client fetch orders"


def test_sections_of_prose_carry_the_headings_above_them():
    filler = "Words of a paragraph that says something.\n" * 12
    text = f"---\ntitle: x\n---\n# Report\n{filler}\n## Results\n{filler}\n```\n# no heading\n```\n\nNotes\n-----\n{filler}"
    assert [p.symbol for p in check_pieces("r.md", text)] == ["Report", "Report > Results", "Report > Notes"]


def test_restructured_text_has_levels_in_the_order_of_their_first_use():
    text = "=====\nTitle\n=====\n\nOne\n---\ntext\n\nDeep\n~~~~\ntext\n\nTwo\n---\ntext\n"
    assert [(e.symbol, e.start_line, e.end_line) for e in outline("a.rst", text)] == [
        ("Title", 1, 16),
        ("Title > One", 5, 12),
        ("Title > One > Deep", 9, 12),
        ("Title > Two", 13, 16),
    ]


def test_rows_of_a_table_carry_its_header():
    text = "name,amount,currency\n" + "\n".join(f"row{i},{i},EUR" for i in range(300))
    pieces = check_pieces("data/t.csv", text)
    assert len(pieces) > 2
    assert all("name,amount,currency" in p.context for p in pieces)


def test_settings_are_cut_at_their_tables_and_keys():
    assert [e.symbol for e in outline("a.toml", "[project]\nname = 1\n[tool.x]\ny = [1]\n")] == [
        "project",
        "tool.x",
    ]
    assert [e.symbol for e in outline("a.yaml", "on: push\njobs:\n  test:\n    x: 1\n")] == ["on", "jobs"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800", ""])
def test_what_is_no_text_has_no_pieces(text):
    assert chunk_file("a.py", text) == []
    assert outline("a.py", text) == []


def test_a_minified_file_is_bounded_and_a_report_on_one_line_is_whole():
    minified = chunk_file("a.min.js", "var a=function(){return 1};" * 100_000)
    assert 1 <= len(minified) <= 20
    report = "word " * 10_000 + "needle"
    pieces = chunk_file("a.txt", report)
    assert "".join(p.text for p in pieces) == report


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "(" * 300_000),
        ("a.c", "{" * 300_000),
        ("a.c", "#if X\n" * 50_000),
        ("a.py", "".join(" " * i + f"class A{i}:\n" for i in range(500))),
        ("a.md", "# a\n" * 50_000),
        ("a.md", "# " + "*`" * 200_000),
        ("a.md", "# a" + " #" * 200_000 + "x"),
        ("a.rst", "a\n=\n" * 50_000),
        ("a.go", "// x\n" * 100_000),
        ("a.sql", "x" * 99 + "\n" * 500_000),
    ],
)
def test_hostile_files_are_cut_in_bounded_time(path, text):
    assert chunk_file(path, text)
    outline(path, text)


def test_code_that_does_not_parse_still_has_its_definitions():
    text = "def good():\n    return 1\n\ndef broken(:\n    ???\n\nclass Later:\n    pass\n"
    assert {"good", "Later"} <= {e.symbol for e in outline("a.py", text)}


def test_words_of_names_are_given_only_where_they_say_more():
    assert name_words("client fetch") == ""
    assert name_words("HTTPServer2 get_all") == "http server 2 get all"


def test_a_grammar_is_loaded_only_for_a_file_of_its_language():
    code = (
        "import sys\nfrom agentx.synthesis.chunking import chunk_file\n"
        "chunk_file('a.md', '# x')\nassert 'tree_sitter' not in sys.modules\n"
        "chunk_file('a.py', 'x = 1')\n"
        "print(sorted(m for m in sys.modules if m.startswith('tree_sitter_') and '.' not in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['tree_sitter_python']"
