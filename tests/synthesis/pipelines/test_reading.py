"""A pipeline's file that is not in order is refused with one sentence for each thing that is wrong, whatever it holds."""

import contextlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.reading import MAX_BYTES, parse, read

from .book import BOOK, faults, harmed, plan

SAMPLE = Path(__file__).parents[3] / "sample_workspaces/technical-book/book.yaml"


def test_scalars_are_text_and_merges_take_over_what_is_not_said():
    text = harmed(
        ('id: "01", title: One', "id: 01, title: no"),
        ("  reviewer:\n    agent: explore\n", ("  base: &base {agent: explore, duty: x, writes: [{file: review}]}\n"
         "  reviewer:\n    <<: [*base]\n    duty: y\n")),
    )  # fmt: skip
    pipeline, source = parse(text)
    assert pipeline.items["chapter"][0] == {"id": "01", "title": "no"}
    reviewer = pipeline.roles["reviewer"]
    assert (reviewer.agent, reviewer.duty, reviewer.writes[0].verdict) == ("explore", "y", True)
    assert (
        source.lines["roles", "reviewer", "writes", 0] == text[: text.index("verdict: true")].count("\n") + 1
    )
    assert parse("\ufeff" + BOOK)[0] == parse(BOOK)[0]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("writes:\n      - {file: style", "wirtes:\n      - {file: style",
         "14: roles.editor.wirtes: unknown key; did you mean writes?"),
        ("    until: {file: review}\n", "", "35: stages[1].until: required key is missing."),
        ("until:", "at_most: three\n    until:", "39: stages[1].at_most: expected a whole number."),
        ("id: write, role: writer", "id: write, role: writer, fore_each: chapter",
         "41: stages[1].stages[0].fore_each: unknown key; did you mean for_each?"),
        ("class: static", "class: statik",
         "8: files.style.class: must be 'static', 'append-only' or 'overwritable', not 'statik'."),
        ("class: static", "class:static",
         "8: files.style.class:static: unknown key; put a space after the `:`, as in class: static."),
        ("marker: STYLE", "marker: done", ("15: roles.editor.writes[0].marker: 'done' is not allowed here: "
         "a marker consists of capital letters, digits and _, like DRAFT_COMPLETE.")),
        ("      - {file: style, marker: STYLE}", "      - style", "15: roles.editor.writes[0]: expected a map of keys and values, like {file: style}."),
        ("      - {file: style, marker: STYLE}", "      file: style",
         "14: roles.editor.writes: expected a list, one `- ` line per entry."),
        ("      - {file: style, marker: STYLE}\n", "", ("14: roles.editor.writes: no value (is the indentation "
         "of the next lines wrong?); expected a list, one `- ` line per entry.")),
        ("editor:", "the editor:", ("13: roles.the editor: 'the editor' is not allowed here: a name consists of at most 64 letters, "
         "digits, - and _, and begins with a letter or digit.")),
        ("marker: DRAFT", "checks: [{length: 200}]",
         "24: roles.writer.writes[0].checks[0].length: expected a map of keys and values, like {words: 200}."),
        ("marker: DRAFT", "checks: [{matches: x, absent: y}]",
         "24: roles.writer.writes[0].checks[0]: a check must have exactly one key, not absent and matches."),
        ("words: 200}", "words: 200}\nprice: {prompt: -1}", "3: price.prompt: must be at least 0."),
        ("words: 200}", "words: 200}\nlease_wait_s: nan", "3: lease_wait_s: expected a number."),
        ("words: 200}", "words: 200}\nlimits: {max_token: 3}", "3: limits.max_token: unknown key; did you mean max_tokens?"),
        ("words: 200}", "words: 200}\nagents: {small: {window: 9000}}",
         "3: agents.small: system (2,000) and output (8,000) leave no room in a window of 9,000 tokens."),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_one_fault_in_its_line_and_place(old, new, told):
    assert faults(harmed((old, new))) == [told]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("title: One", "title: {{ words }}", "5: items.chapter[0].title: a text that begins with `{{` must be quoted."),
        ('"drafts/ch{{ chapter.id }}.md"', "{{ chapter.id }}.md", "10: : a text that begins with `{{` must be quoted."),
        ("task: Write {{ words }}", "task: {{ words }}", "17: : a text that begins with `{{` must be quoted."),
        ("  chapter:\n", "\tchapter:\n", "4: : found a tab; indent YAML with spaces."),
        ("task: Write", "task: @Write", "17: : a text that begins with `@` must be quoted."),
        ("task: Write", "task: Write: now", "17: : unexpected `: `; put the text in quotes, or fix the indentation."),
        ("{id: style, role: editor}", "{id: style, role: editor",
         "34: : the bracket opened here is not closed with `}`, or a text inside must be quoted."),
        ("  writer:\n", "   writer:\n", "16: : this line does not match the lines above; fix its indentation or its quotes."),
        ("task: Write", 'task: "Write', "17: : the quotation opened here is not closed."),
        ("title: One", "title: *one", "5: : undefined alias `*one`: no `&one` comes before it."),
        ("title: One", "title: O\0ne", "5: : invalid character (U+0000)."),
        ("title: One", 'title: "\\ud800"', "5: items.chapter[0].title: invalid character (U+D800)."),
        ("pipeline: book", "pipeline: !!python/name:os.system x",
         "1: pipeline: the tag !!python/name:os.system is not supported; write a plain value."),
        ("title: One", "title: One, title: Two", "5: items.chapter[0]: duplicate key 'title'."),
        ("title: One", "title: &a [*a]", "5: items.chapter[0].title[0]: an alias refers to a value that contains it."),
        ("stages:\n", "---\nstages:\n", "33: : `---` begins a second document; a file holds one pipeline."),
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_told_in_words(old, new, told):
    (found,) = faults(harmed((old, new)))
    assert found == told


def test_what_stands_in_the_wrong_part_because_a_key_is_missing_is_not_told():
    assert faults(harmed(("roles:\n", ""))) == [
        "1: roles: required key is missing."
    ]  # the roles stand under `files` now


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n...\n", "- a\n", "words", "[" * 5_000, "{a: " * 3_000, "\n".join(" " * n + "a:" for n in range(900))])  # fmt: skip
def test_what_is_no_pipeline_at_all_is_one_fault(text):
    assert len(faults(text)) == 1


def test_aliases_that_repeat_without_end_are_refused():
    names = "abcdefgh"
    bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
        f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n" for before, one in pairwise(names)
    )
    assert faults(bomb) == ["1: : more than 50,000 values after aliases are expanded."]


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    file = tmp_path / "book.yaml"
    with pytest.raises(
        PipelineInvalid, match=r"book.yaml: cannot read the file: No such file or directory\."
    ):
        read(file)
    file.write_bytes(b"pipeline: a\ntitle: \xff\n")
    with pytest.raises(PipelineInvalid, match=r"book.yaml, line 2: the file is not valid UTF-8\."):
        read(file)
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(PipelineInvalid, match=r"the file is larger than 1,000,000 bytes\."):
        read(file)
    file.write_text(BOOK)
    assert read(file)[0] == parse(BOOK)[0]


def test_of_many_faults_the_first_are_told_and_all_are_kept():
    text = harmed(("variables: {words: 200}", "\n".join(f"key{n}: x" for n in range(30))))
    with pytest.raises(PipelineInvalid) as caught:
        parse(text)
    assert len(caught.value.faults) == 30
    assert str(caught.value).endswith("pipeline.yaml: … and 10 more.")


PIECES = ("{{", "}}", "{{ chapter.id }}", "{% for x in range(9) %}", ": ", "- ", "\n", "\n  ", "&a ", "*a", "<<: *a", "!!x ", "[", "}", "'", '"', "\t",
          "\0", "\ud800", "01", "999999999", "nan", "null", "path", "file: draft", "style", "write", "../x", "*", "**/*.md", "#", "|", "---\n")  # fmt: skip


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(BOOK)), st.integers(0, 30), st.sampled_from(PIECES) | st.text(max_size=5)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_however_a_good_pipeline_is_harmed_it_is_a_plan_or_is_refused_with_lines(cuts):
    text = BOOK
    for start, length, new in cuts:
        text = text[:start] + new + text[start + length :]
    with contextlib.suppress(PipelineInvalid):
        assert isinstance(plan(text), Plan)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_is_a_pipeline_or_refused(text):
    with contextlib.suppress(PipelineInvalid):
        assert isinstance(plan(text), Plan)


def test_lines_taken_out_of_the_sample_or_moved_leave_a_plan_or_faults_with_lines():
    lines = SAMPLE.read_text("utf-8").splitlines()
    for number in range(0, len(lines), 25):
        for changed in (
            lines[:number] + lines[number + 1 :],
            [*lines[:number], f"  {lines[number]}", *lines[number + 1 :]],
        ):
            assert not any(told.startswith("0:") for told in faults("\n".join(changed)))
