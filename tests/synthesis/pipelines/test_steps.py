"""What follows from a pipeline's file: its steps in their order, and the names and rules that it has to keep for them."""

import pytest

from agentx.synthesis.pipelines.definition.rules import IN_PROMPTS
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
         "34: stages[0].role: stage style is for role 'editr', and there is no such role; is it editor?"),
        ("{file: draft}", "{file: drafts}",
         "30: roles.reviewer.reads[0].file: role reviewer names the file 'drafts', which stands nowhere under `files`; is it draft?"),
        ("to: summaries", "to: draft", "26: roles.writer.appends[0].to: role writer appends to draft, which is overwritable, not append-only."),
        ("from: draft", "from: review", "26: roles.writer.appends[0].from: role writer appends from review, which it does not write; there is draft."),
        ("agent: explore", "agent: explor", "28: roles.reviewer.agent: role reviewer is played by 'explor', and there is no such type; is it explore?"),
        ("agent: explore", "agent: explore\n    does_not_read: [sumaries]",
         "29: roles.reviewer.does_not_read[0]: role reviewer names the file 'sumaries', which stands nowhere under `files`; is it summaries?"),
        ("    task: Write", "    does_not_read: style\n    task: Write",
         "17: roles.writer.does_not_read[0]: role writer both reads style and does not read it."),
        ("{file: review, optional: true}", "{file: style}", "21: roles.writer.reads[2]: role writer reads style twice."),
        ("{file: review, verdict: true}", "{file: review, verdict: true}\n      - {file: style}",
         "31: roles.reviewer.writes: role reviewer is played by explore, which is read-only: it writes one overwritable file, its report."),
        ("    agent: explore", "    by: engine", "32: roles.reviewer.writes[0]: role reviewer is the engine's, so review, which it writes, needs `content`, a template."),
        ("      - {file: style, marker: STYLE}", "      - {file: style}\n      - {file: draft}\n    by: [cat]",
         "14: roles.editor.writes: role editor is played by a program that speaks text, whose output is one file: let it write one, or speak `jsonl`."),
        ("    agent: explore", "    by: modle", "28: roles.reviewer.by: role reviewer is played by 'modle', and there is no such program; is it model?"),
        ("    agent: explore", "    by: [Engine]", "28: roles.reviewer.by: role reviewer is played by 'Engine', and there is no such program; is it engine?"),
        ("    agent: explore", "    by: []", "28: roles.reviewer.by: role reviewer is played by nobody: write `model`, `engine` or a program."),
        ("verdict: true}", "verdict: true, content: x}", "32: roles.reviewer.writes[0].content: `content` is for roles of the engine, and role reviewer is none: let it be `by: engine`."),
        ("marker: DRAFT", "checks: [{matches: (}]",
         "24: roles.writer.writes[0].checks[0].matches: role writer: `matches` is the regular expression '(', and it cannot be read: unclosed group."),
        ("marker: DRAFT", "checks: [{terms: glossary}]",
         ("24: roles.writer.writes[0].checks[0].terms: role writer checks against the file 'glossary', which stands nowhere under `files`; "
         "there is style, summaries, draft, review.")),
        ("marker: DRAFT", "checks: [{length: {words: many}}]",
         "24: roles.writer.writes[0].checks[0].length.words: role writer (stage write, item 01) cannot be checked: `length` asks for 'many' words, and that is no number above 0."),
        ("files:\n", "files:\n  code: {path: x, source: code}\n",
         "8: files.code.source: file code lies in the source 'code', which stands nowhere under `sources`."),
        ("words: 200}", "words: 200}\nlog: draft", "3: log: the log is one append-only file, and draft is not."),
        ("words: 200", "chapter: 200", "2: variables.chapter: 'chapter' names items too, so a template could not tell them apart."),
        ("words: 200", "files: 200", "2: variables.files: 'files' means something in every template already; give it another name."),
        ("words: 200", "my-words: 200", "2: variables.my-words: 'my-words' cannot stand here: a name that templates say has letters, digits and _, and begins with a letter."),
        ("title: One", "number: 1", "5: items.chapter[0].number: the engine fills in 'number' of an item itself."),
        ('id: "01", ', "", "5: items.chapter[0].id: this item has no `id`."),
        ('id: "01"', 'id: "a b"', "5: items.chapter[0].id: an item needs an `id` of letters, digits, dots, - and _, and 'a b' is none."),
        ('id: "02"', 'id: "01"', "6: items.chapter[1].id: there are two items '01'."),
        ("items:\n", "items:\n  part: 0\n", "4: items.part: it has to be at least 1."),
        ("items:\n", "items:\n  part: 1000000000\n", "4: items.part: it has to be at most 10000."),
        ("items:\n", "items:\n  part: []\n", "4: items.part: at least one is needed."),
        ("items:\n", "items:\n  part: [one]\n", "4: items.part[0]: write keys and values, like {id: one}."),
        ("items:\n", "items:\n  part: many\n", "4: items.part: write how many items there are, or a list of maps with an `id` each."),
    ],
)  # fmt: skip
def test_a_name_that_breaks_a_rule_is_one_fault(old, new, told):
    assert faults(harmed((old, new))) == [told]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("after: style", "after: styl", "37: stages[1].after: loop revise comes after 'styl', and there is no such stage; is it style?"),
        ("for_each: chapter", "for_each: chaptr", "36: stages[1].for_each: loop revise is done for each 'chaptr', and there are no such items; is it chapter?"),
        ("id: check", "id: write", "42: stages[1].stages[1]: there are two stages or loops 'write'."),
        ("loop: revise", "loop: style", "35: stages[1]: there are two stages or loops 'style'."),
        ("role: editor}", "role: editor, after: write}",
         "34: stages[0].after: stage style comes after 'write', which is done again in each round of loop revise; wait for the loop."),
        ("role: writer}", "role: writer, after: style}",
         "41: stages[1].stages[0].after: stage write comes after 'style', which does not stand in loop revise; let the loop wait for it."),
        ("role: writer}", "role: writer, for_each: chapter}",
         "41: stages[1].stages[0].for_each: stage write stands in loop revise, so `for_each` belongs to the loop."),
        ("role: editor}", "role: editor, after_previous: style}",
         "34: stages[0].after_previous: stage style comes after 'style' of the item before, and not both are done for each of the same items."),
        ("until: {file: review}", "until: {file: style}",
         "39: stages[1].until.file: loop revise ends by the verdict in style, and none of its stages writes that; one stage of the loop has to."),
        ("until: {file: review}", "until: {file: revew}",
         "39: stages[1].until.file: loop revise ends by the verdict in the file 'revew', which stands nowhere under `files`; is it review?"),
        (", verdict: true", "",
         "39: stages[1].until.file: loop revise ends by the verdict in review, and role reviewer writes it without one: give its pointer `verdict: true`."),
        (", verdict: true", ", verdict: true, only: first",
         "39: stages[1].until.file: loop revise ends by the verdict in review, and role reviewer writes it for the first item only."),
        ("role: editor}", "role: editor, after: revise}",
         ("37: stages[1].after: stages wait for each other in a circle: revise (a loop) → style (role editor) → revise (a loop). "
         "A pipeline is a graph without circles.")),
        ("role: writer}", "role: writer, after: check}",
         ("41: stages[1].stages[0].after: stages in loop revise wait for each other in a circle: write (role writer) → check (role reviewer) → write (role writer). "
         "A pipeline is a graph without circles.")),
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
    assert "steps wait for each other in a circle: " in found
    assert "index (role indexer) → " in found


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("drafts/ch{{ chapter.id }}", "drafts/ch{{ chaptr.id }}")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft, which names {{ chaptr }}, and there is no such value; is it chapter?"),
        ([("drafts/ch{{ chapter.id }}", "drafts/ch{{ chapter.no }}")],
         ("10: files.draft.path: role writer (stage write, item 01) writes draft: the template cannot be filled: there is no 'no' in it; "
         "there is id, title, number, first, last, of.")),
        ([("drafts/ch{{ chapter.id }}.md", "../ch{{ chapter.id }}.md")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft: The path '../ch01.md' is refused: it leads out of the artifacts."),
        ([("drafts/ch{{ chapter.id }}.md", "drafts/*.md")],
         "10: files.draft.path: role writer (stage write, item 01) writes draft, so its path is one path, and not drafts/*.md."),
        ([("Write {{ words }}", "Write {{ wrds }}")],
         "17: roles.writer.task: role writer (stage write, item 01) is told its task, which names {{ wrds }}, and there is no such value; is it words?"),
        ([('{id: "02", title: Two}', '{id: "02"}')],
         ("17: roles.writer.task: role writer (stage write, item 02) is told its task: the template cannot be filled: there is no 'title' in it; "
         "there is id, number, first, last, of.")),
        ([("- {file: style, marker: STYLE}", "- {file: draft}"), ("      - {file: style}\n", "")],
         "33: stages[0]: role editor (stage style) writes draft, which names {{ chapter }}, and the stage is done once; let it be `for_each: chapter`."),
        ([("- {file: style, marker: STYLE}", "- {file: style, only: last}"), ("role: editor}", "role: editor, for_each: chapter}")],
         "14: roles.editor.writes: role editor (stage style, item 01) has nothing to write: let a file be written for `every` item."),
        ([("    agent: explore", "    by: engine"), ("verdict: true", "verdict: true, content: '{{ files.style.body }}'")],
         "32: roles.reviewer.writes[0].content: role reviewer fills in `files.style`, which is no file that it reads; there is draft."),
        ([("    agent: explore", "    by: engine"), ("verdict: true", "verdict: true, content: '{{ fils.draft.body }}'")],
         "32: roles.reviewer.writes[0].content: role reviewer names 'fils' in a template, and there is no such value; is it files?"),
        ([("    task: Write", "    prompt: '{{ raeds }}'\n    task: Write")],
         "17: roles.writer.prompt: role writer names 'raeds' in a template, and there is no such value; is it reads?"),
        ([("    task: Write", "    prompt: '{{ round }}'\n    task: Write"), ("words: 200", "words: 200, round: 3")],
         "17: roles.writer.prompt: 'round' stands for something of the engine in this template, so no variable can have its name."),
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
    assert faults(more) == ["34: stages: it comes to 30,001 steps, more than 20,000."]


def test_a_type_of_ours_that_is_named_again_keeps_what_is_not_said_anew():
    made = plan(harmed(("files:\n", "agents: {explore: {window: 7000}, mine: {max_files: 3}}\nfiles:\n")))
    explore, mine = (made.pipeline.agents[name] for name in ("explore", "mine"))
    assert (explore.window, explore.output, explore.read_only) == (7_000, 4_000, True)
    assert (mine.window, mine.max_files, mine.read_only) == (128_000, 3, False)
