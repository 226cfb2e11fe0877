"""What follows from a pipeline's file: its steps in their order, and the names and rules that it has to keep for them."""

import re

import pytest

from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.name_rules import IN_PROMPTS
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.dispatching.prompt import PROMPT, Sending, tell
from agentx.synthesis.pipelines.templates import names_in

from .book import BOOK, faults, harmed, plan

TWICE = harmed(
    ("files:\n", "files:\n  index: {path: index.md}\n  each: {path: 'drafts/*.md'}\n"),
    ("roles:\n", "roles:\n  indexer: {reads: [{file: each}], writes: [{file: index}]}\n"),
)
"""The book with an index of all drafts, whose stage is still to be added."""


def test_steps_stand_behind_what_they_need():
    made = plan(harmed(("stages:\n", "stages:\n  - {id: index, role: indexer, after: revise}\n"), text=TWICE))
    assert list(made.steps) == ["style", "write[01]", "check[01]", "write[02]", "check[02]", "index"]
    assert made.steps["write[01]"].needs == ("style",)
    assert made.steps["write[02]"].needs == ("style", "revise[01]")
    assert made.steps["check[02]"].inside == ("write[02]",)
    assert made.steps["index"].needs == ("revise[01]", "revise[02]")
    assert made.loops["revise[02]"].steps == ("write[02]", "check[02]")
    assert (made.loops["revise[02]"].decides, made.loops["revise[02]"].verdict) == (
        "check[02]",
        "reviews/ch02.md",
    )
    assert made.paths["draft"] == ("drafts/ch01.md", "drafts/ch02.md")


def test_a_stage_for_the_same_items_waits_for_its_own_and_one_for_others_for_all():
    text = BOOK.partition("stages:\n")[0].replace("items:\n", "items:\n  part: 2\n") + (
        "stages:\n"
        "  - {id: style, role: editor}\n"
        "  - {id: write, role: writer, for_each: chapter, after: style}\n"
        "  - {id: check, role: reviewer, for_each: chapter, after: write}\n"
        "  - {id: bind, role: binder, for_each: part, after: [check, style]}\n"
    )
    text = harmed(
        ("files:\n", "files:\n  bound: {path: 'parts/{{ part.id }}'}\n"),
        ("roles:\n", "roles:\n  binder: {writes: [{file: bound}]}\n"),
        text=text,
    )
    steps = plan(text).steps
    assert steps["check[02]"].needs == ("write[02]",)
    assert steps["bind[01]"].needs == ("check[01]", "check[02]", "style")
    assert [steps[f"bind[{n}]"].writes[0].path for n in ("01", "02")] == ["parts/01", "parts/02"]


def test_what_is_for_the_first_or_last_item_is_written_then_and_added_to_memory_then():
    text = harmed(
        ("files:\n", "files:\n  css: {path: style.css}\n  index: {path: index.html}\n"),
        ("        marker: DRAFT\n", "        marker: DRAFT\n      - {file: css, only: first}\n      - {file: index, only: last}\n"),
        ("from: draft}", "from: draft}\n      - {to: summaries, from: index}"),
    )  # fmt: skip
    steps = plan(text).steps
    assert [[one.path for one in steps[f"write[{n}]"].writes] for n in ("01", "02")] == [
        ["drafts/ch01.md", "style.css"],
        ["drafts/ch02.md", "index.html"],
    ]
    assert [len(steps[f"write[{n}]"].appends) for n in ("01", "02")] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("role: editor}", "role: editr}",
         "34: stages[0].role: stage style names the unknown role 'editr'; did you mean editor?"),
        ("{file: draft}", "{file: drafts}",
         "30: roles.reviewer.reads[0].file: role reviewer names the file 'drafts', which is not defined under `files`; did you mean draft?"),
        ("to: summaries", "to: draft", "26: roles.writer.appends[0].to: role writer appends to draft, which is overwritable, not append-only."),
        ("from: draft", "from: review", "26: roles.writer.appends[0].from: role writer appends from review, which it does not write; known: draft."),
        ("agent: explore", "agent: explor", "28: roles.reviewer.agent: role reviewer has the unknown agent type 'explor'; did you mean explore?"),
        ("agent: explore", "agent: explore\n    does_not_read: [sumaries]",
         "29: roles.reviewer.does_not_read[0]: role reviewer names the file 'sumaries', which is not defined under `files`; did you mean summaries?"),
        ("    task: Write", "    does_not_read: style\n    task: Write",
         "17: roles.writer.does_not_read[0]: role writer lists style under both `reads` and `does_not_read`."),
        ("{file: review, optional: true}", "{file: style}", "21: roles.writer.reads[2]: role writer reads style twice."),
        ("{file: review, verdict: true}", "{file: review, verdict: true}\n      - {file: style}",
         "31: roles.reviewer.writes: role reviewer has the read-only agent type explore; it must write exactly one overwritable file, its report."),
        ("    agent: explore", "    by: engine", "32: roles.reviewer.writes[0]: role reviewer is played by the engine, so review needs a template in `content`."),
        ("      - {file: style, marker: STYLE}", "      - {file: style}\n      - {file: draft}\n    by: [cat]",
         "14: roles.editor.writes: role editor is played by a program with plain text output and can write only one file; let it write one file, or use `jsonl`."),
        ("    agent: explore", "    by: modle", "28: roles.reviewer.by: role reviewer is played by 'modle', which is not a known program; did you mean model?"),
        ("    agent: explore", "    by: [Engine]", "28: roles.reviewer.by: role reviewer is played by 'Engine', which is not a known program; did you mean engine?"),
        ("    agent: explore", "    by: []", "28: roles.reviewer.by: role reviewer has an empty `by`; use `model`, `engine`, `person` or a program."),
        ("verdict: true}", "verdict: true, content: x}", "32: roles.reviewer.writes[0].content: `content` is only for roles played by the engine; set `by: engine` for role reviewer."),
        ("marker: DRAFT", "checks: [{matches: (}]",
         "24: roles.writer.writes[0].checks[0].matches: role writer: `matches` is not a valid regular expression: '(': unclosed group."),
        ("marker: DRAFT", "checks: [{terms: glossary, uses: entry}]",
         ("24: roles.writer.writes[0].checks[0].terms: the check `terms` was removed; "
          "name forbidden words in `absent` and required terms in `uses`.")),
        ("marker: DRAFT", "checks: [{unused: metaphors}]",
         ("24: roles.writer.writes[0].checks[0].unused: the check `unused` was removed; "
          "name the words that must not occur again in `absent`.")),
        ("marker: DRAFT", "checks: [{length: {words: many}}]",
         "24: roles.writer.writes[0].checks[0].length.words: role writer (stage write, item 01) cannot be checked: `length.words` is 'many'; it must be a number greater than 0."),
        ("files:\n", "files:\n  code: {path: x, source: code}\n",
         "8: files.code.source: file code is in the source 'code', which is not defined under `sources`."),
        ("words: 200}", "words: 200}\nlog: draft", "3: log: the log must be a single append-only file, and draft is not."),
        ("words: 200", "chapter: 200", "2: variables.chapter: 'chapter' is also the name of items; choose another name."),
        ("words: 200", "files: 200", "2: variables.files: 'files' is a reserved name in templates; choose another name."),
        ("words: 200", "my-words: 200", "2: variables.my-words: 'my-words' is not allowed here: a name used in templates consists of letters, digits and _, and begins with a letter."),
        ("title: One", "number: 1", "5: items.chapter[0].number: 'number' of an item is set by the engine; remove it."),
        ('id: "01", ', "", "5: items.chapter[0].id: the item has no `id`."),
        ('id: "01"', 'id: "a b"', "5: items.chapter[0].id: an `id` consists of letters, digits, dots, - and _; 'a b' does not."),
        ('id: "02"', 'id: "01"', "6: items.chapter[1].id: duplicate item '01'."),
        ("items:\n", "items:\n  part: 0\n", "4: items.part: must be at least 1."),
        ("items:\n", "items:\n  part: 1000000000\n", "4: items.part: must be at most 10000."),
        ("items:\n", "items:\n  part: []\n", "4: items.part: at least one entry is required."),
        ("items:\n", "items:\n  part: [[one]]\n", "4: items.part[0]: expected a map of keys and values, like {id: …}."),
        ("items:\n", "items:\n  part: many\n", "4: items.part: expected the number of items, or a list of maps that each have an `id`."),
    ],
)  # fmt: skip
def test_a_name_that_breaks_a_rule_is_one_fault(old, new, told):
    assert faults(harmed((old, new))) == [told]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("after: style", "after: styl", "37: stages[1].after: loop revise waits for 'styl', which is not a stage or loop; did you mean style?"),
        ("for_each: chapter", "for_each: chaptr", "36: stages[1].for_each: loop revise is repeated for each 'chaptr', but there are no such items; did you mean chapter?"),
        ("id: check", "id: write", "42: stages[1].stages[1]: duplicate stage or loop 'write'."),
        ("loop: revise", "loop: style", "35: stages[1]: duplicate stage or loop 'style'."),
        ("role: editor}", "role: editor, after: write}",
         "34: stages[0].after: stage style waits for 'write', which is part of loop revise; wait for the loop."),
        ("role: writer}", "role: writer, after: style}",
         "41: stages[1].stages[0].after: stage write waits for 'style', which is outside loop revise; let the loop wait for it."),
        ("role: writer}", "role: writer, for_each: chapter}",
         "41: stages[1].stages[0].for_each: stage write is part of loop revise; set `for_each` on the loop."),
        ("role: editor}", "role: editor, after_previous: style}",
         "34: stages[0].after_previous: stage style waits for the previous item, but runs once; set `for_each`."),
        ("until: {file: review}", "until: {file: style}",
         "39: stages[1].until.file: loop revise ends by the verdict in style, but none of its stages writes it; exactly one stage of the loop must."),
        ("until: {file: review}", "until: {file: revew}",
         "39: stages[1].until.file: loop revise ends by the verdict in 'revew', which is not defined under `files`; did you mean review?"),
        (", verdict: true", "",
         "39: stages[1].until.file: loop revise ends by the verdict in review, but role reviewer writes none; set `verdict: true` on its pointer."),
        (", verdict: true", ", verdict: true, only: first",
         "39: stages[1].until.file: loop revise ends by the verdict in review, but role reviewer writes it only for the first item."),
        ("role: editor}", "role: editor, after: revise}",
         ("37: stages[1].after: stages wait for each other in a cycle: revise (a loop) → style (role editor) → revise (a loop). "
         "Remove one dependency.")),
        ("role: writer}", "role: writer, after: check}",
         ("41: stages[1].stages[0].after: stages in loop revise wait for each other in a cycle: write (role writer) → check (role reviewer) → write (role writer). "
         "Remove one dependency.")),
    ],
)  # fmt: skip
def test_stages_that_cannot_be_put_in_order_are_one_fault(old, new, told):
    (found,) = faults(harmed((old, new)))
    assert found == told


def test_a_circle_over_items_is_told_by_its_steps():
    text = harmed(
        ("stages:\n", "stages:\n  - {id: index, role: indexer, after: revise}\n  - {id: more, role: more, for_each: chapter, after: index}\n"),
        ("after_previous: revise", "after_previous: more"),
        ("files:\n", "files:\n  more: {path: 'more/{{ chapter.id }}'}\n"),
        ("roles:\n", "roles:\n  more: {writes: [{file: more}]}\n"),
        text=TWICE,
    )  # fmt: skip
    (found,) = faults(text)
    assert "steps wait for each other in a cycle: " in found
    assert "index (role indexer) → " in found


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("drafts/ch{{ chapter.id }}", "drafts/ch{{ chaptr.id }}")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft, which uses the unknown value {{ chaptr }}; did you mean chapter?"),
        ([("drafts/ch{{ chapter.id }}", "drafts/ch{{ chapter.no }}")],
         ("10: files.draft.path: role writer (stage write, item 01) writes draft: the template cannot be filled: undefined key 'no'; "
         "known: id, title, number, first, last, of.")),
        ([("drafts/ch{{ chapter.id }}.md", "../ch{{ chapter.id }}.md")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft: The path '../ch01.md' is refused: it leads out of the artifacts."),
        ([("drafts/ch{{ chapter.id }}.md", "drafts/*.md")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft, so it must have exactly one path, not drafts/*.md."),
        ([("Write {{ words }}", "Write {{ wrds }}")],
         "17: roles.writer.task: role writer (stage write, item 01) cannot be given its task, which uses the unknown value {{ wrds }}; did you mean words?"),
        ([('{id: "02", title: Two}', '{id: "02"}')],
         ("17: roles.writer.task: role writer (stage write, item 02) cannot be given its task: the template cannot be filled: undefined key 'title'; "
         "known: id, number, first, last, of.")),
        ([("- {file: style, marker: STYLE}", "- {file: draft}"), ("      - {file: style}\n", "")],
         "33: stages[0]: role editor (stage style) writes draft, which uses {{ chapter }}, but the stage runs once; set `for_each: chapter`."),
        ([("- {file: style, marker: STYLE}", "- {file: style, only: last}"), ("role: editor}", "role: editor, for_each: chapter}")],
         "14: roles.editor.writes: role editor (stage style, item 01) has nothing to write; let it write a file for `every` item."),
        ([("    agent: explore", "    by: engine"), ("verdict: true", "verdict: true, content: '{{ files.style.body }}'")],
         "32: roles.reviewer.writes[0].content: role reviewer uses `files.style`, a file that it does not read; known: draft."),
        ([("    agent: explore", "    by: engine"), ("verdict: true", "verdict: true, content: '{{ fils.draft.body }}'")],
         "32: roles.reviewer.writes[0].content: role reviewer uses the unknown value 'fils' in a template; did you mean files?"),
        ([("    task: Write", "    prompt: '{{ raeds }}'\n    task: Write")],
         "17: roles.writer.prompt: role writer uses the unknown value 'raeds' in a template; did you mean reads?"),
        ([("    task: Write", "    prompt: '{{ round }}'\n    task: Write"), ("words: 200", "words: 200, round: 3")],
         "17: roles.writer.prompt: 'round' is a reserved name in this template; rename the variable or items."),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_filled_is_one_fault_before_anything_runs(changes, told):
    assert faults(harmed(*changes)) == [told]


def test_a_prompt_of_ones_own_may_say_all_that_the_engine_gives_it_and_ours_says_no_more():
    names = " ".join(f"{{{{ {name} }}}}" for name in sorted(IN_PROMPTS))
    task = "    task: Write"
    made = plan(harmed((task, f"    prompt: '{names} {{{{ words }}}} {{{{ chapter.id }}}}.'\n{task}")))
    assert tell(made, Sending(step=made.steps["write[02]"])).text.endswith("200 02.\n")
    assert {name for name, _ in names_in(PROMPT)} <= IN_PROMPTS


def test_a_program_without_tools_is_told_that_its_answer_is_the_file():
    made = plan(harmed(("    agent: explore", "    by: [cat]")))
    told = {key: tell(made, Sending(step=made.steps[key])).whole for key in ("write[02]", "check[02]")}
    assert "Write with the tool write_file" in told["write[02]"]
    assert "Answer with the text of the file alone" in told["check[02]"]
    assert "write_file" not in told["check[02]"]


def test_no_more_steps_are_made_than_anyone_reads():
    text = harmed(
        ('    - {id: "01", title: One}\n    - {id: "02", title: Two}\n', "    10000\n"),
        ("on {{ chapter.title }}", ""),
    )
    more = harmed(("files:\n", "files:\n  more: {path: 'more/{{ chapter.id }}'}\n"), ("roles:\n", "roles:\n  more: {writes: [{file: more}]}\n"),
                  ("stages:\n", "stages:\n  - {id: more, role: more, for_each: chapter}\n"), text=text)  # fmt: skip
    assert faults(more) == ["34: stages: the pipeline has 30,001 steps; at most 20,000 are allowed."]


def test_a_type_of_ours_that_is_named_again_keeps_what_is_not_said_anew():
    made = plan(harmed(("files:\n", "agents: {explore: {window: 7000}, mine: {max_files: 3}}\nfiles:\n")))
    explore, mine = (made.pipeline.agents[name] for name in ("explore", "mine"))
    assert (explore.window, explore.output, explore.read_only) == (7_000, 4_000, True)
    assert (mine.window, mine.max_files, mine.read_only) == (128_000, 3, False)


PAIRS = """
pipeline: pairs
items: {doc: [a, b], lang: [de, fr]}
files: {out: {path: "{{ lang }}/{{ doc }}.md"}}
roles: {w: {task: "{{ doc }} into {{ lang }}", writes: [{file: out}]}}
stages: [{id: w, role: w, for_each: EACH}]
"""


def test_an_item_alone_is_its_id_and_the_advice_on_for_each_works():
    with pytest.raises(PipelineInvalid) as refused:
        resolve(*parse(PAIRS.replace("EACH", "doc")))
    (advised,) = re.findall(r"set `for_each: ([^`]+)`", str(refused.value))
    plan = resolve(*parse(PAIRS.replace("EACH", advised)))
    paths = {write.path for step in plan.steps.values() for write in step.writes}
    assert paths == {"de/a.md", "fr/a.md", "de/b.md", "fr/b.md"}
