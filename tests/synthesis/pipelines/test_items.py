"""Items of any shape: combinations, chains by group, conditions, and lists that a file gives."""

import pytest

from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.item_lists import ListInvalid, items_of_paths, listed
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve

GUIDES = """\
pipeline: guides
variables: {audience: beginners}
items:
  doc: [intro, {id: legal, kind: text, part: two}, {id: api, kind: code}]
  lang: [de, {id: fr, title: French}]
files:
  study: {path: "study/{{ doc.id }}.md"}
  page: {path: "out/{{ lang.id }}/{{ doc.id }}.md"}
  sheet: {path: "sheets/{{ doc.id }}.md"}
  report: {path: report.md}
roles:
  scholar: {writes: [{file: study}]}
  translator: {reads: [{file: study}], writes: [{file: page}]}
  clerk: {writes: [{file: sheet}]}
  editor: {writes: [{file: report}]}
stages:
  - {id: study, role: scholar, for_each: doc}
  - {id: translate, role: translator, for_each: [doc, lang], after: study}
  - {id: report, role: editor, after: translate}
"""


def plan(text=GUIDES, found=None):
    return resolve(*parse(text), found)


def changed(*changes):
    text = GUIDES
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def faults(text):
    with pytest.raises(PipelineInvalid) as caught:
        plan(text)
    return [fault.what for fault in caught.value.faults]


def test_a_combination_waits_for_what_agrees_with_it_in_the_items_that_both_have():
    steps = plan().steps
    assert [key for key in steps if key.startswith("translate")] == [
        f"translate[{doc},{lang}]" for doc in ("intro", "legal", "api") for lang in ("de", "fr")
    ]
    assert steps["translate[legal,fr]"].needs == ("study[legal]",)
    assert [write.path for write in steps["translate[legal,fr]"].writes] == ["out/fr/legal.md"]
    assert len(steps["report"].needs) == 6


def test_a_stage_for_one_kind_of_items_waits_for_its_combinations_and_others_for_all():
    more = "  - {id: sheet, role: clerk, for_each: doc, after: translate}\n"
    steps = plan(changed(("  - {id: report", f"{more}  - {{id: report"))).steps
    assert steps["sheet[api]"].needs == ("translate[api,de]", "translate[api,fr]")


def test_excluded_combinations_are_left_out_and_included_ones_kept():
    each = "{over: [doc, lang], exclude: [{lang: fr}], include: [{doc: [intro, api], lang: fr}]}"
    items = plan(changed(("[doc, lang]", each))).each["translate"]
    assert [item.id for item in items] == ["intro,de", "intro,fr", "legal,de", "api,de", "api,fr"]
    assert (items[0].first, items[-1].last, items[-1].number) == (True, True, 5)


def test_a_chain_by_group_waits_for_the_item_before_in_its_group():
    chain = "for_each: [doc, lang], after_previous: {by: lang}"
    steps = plan(changed(("for_each: [doc, lang]", chain))).steps
    assert steps["translate[intro,fr]"].needs == ("study[intro]",)
    assert steps["translate[api,fr]"].needs == ("study[api]", "translate[legal,fr]")


def test_a_chain_passes_over_what_is_excluded():
    each = "{over: [doc, lang], exclude: [{doc: legal, lang: fr}]}, after_previous: {by: lang}"
    steps = plan(changed(("[doc, lang]", each))).steps
    assert steps["translate[api,fr]"].needs == ("study[api]", "translate[intro,fr]")


def test_a_chain_by_a_value_of_the_items():
    text = changed(
        ("doc: [intro, ", "doc: [{id: intro, part: one}, "), ("{id: api,", "{id: api, part: one,"),
        ("for_each: doc}", "for_each: doc, after_previous: {by: doc.part}}"),
    )  # fmt: skip
    steps = plan(text).steps
    assert [steps[f"study[{one}]"].needs for one in ("intro", "legal", "api")] == [(), (), ("study[intro]",)]
    (fault,) = faults(text.replace("part: one, kind", "kind"))
    assert "an item of study has no value 'part'" in fault


@pytest.mark.parametrize("no", ["{{ doc.kind | default('text') == 'code' }}", "{{ 'yes' if doc.id == 'api' else '' }}"])  # fmt: skip
def test_a_stage_that_is_left_out_passes_its_waits_on(no):
    text = changed(("for_each: [doc, lang], after", f'for_each: [doc, lang], when: "{no}", after'))
    steps = plan(text).steps
    assert [key for key in steps if key.startswith("translate")] == ["translate[api,de]", "translate[api,fr]"]
    assert set(steps["report"].needs) == {"study[intro]", "study[legal]", "translate[api,de]", "translate[api,fr]"}  # fmt: skip


def test_a_loop_is_left_out_as_a_whole():
    loop = (
        "  - loop: mend\n    for_each: doc\n    when: \"{{ doc.id == 'api' }}\"\n    after: study\n    until: {file: sheet}\n"
        "    stages: [{id: sheet, role: clerk}]\n"
    )
    text = changed(
        ("{file: sheet}]", "{file: sheet, verdict: true}]"),
        ("  - {id: translate", f"{loop}  - {{id: translate"),
        ("after: study}\n  - {id: report", "after: mend}\n  - {id: report"),
    )
    made = plan(text)
    assert list(made.loops) == ["mend[api]"]
    assert made.steps["translate[intro,de]"].needs == ("study[intro]",)
    assert made.steps["translate[api,de]"].needs == ("mend[api]",)


def test_templates_see_all_items_and_the_whole_plan():
    made = plan(changed(("editor: {", 'editor: {task: "{{ items.doc | length }} {{ plan | length }}", ')))
    values = made.steps["report"].values
    assert [one["id"] for one in values["items"]["lang"]] == ["de", "fr"]
    assert [one["writes"] for one in values["plan"] if one["stage"] == "report"] == [["report.md"]]
    assert len(values["plan"]) == len(made.steps)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[doc, lang]", "[doc, lng]", "stage translate is repeated for each 'lng', but there are no such items; did you mean lang?"),
        ("[doc, lang]", "[doc, doc]", "stage translate is repeated for each of the same items twice."),
        ("[doc, lang]", "{over: [doc, lang], exclude: [{lang: it}]}", "there is no lang 'it'; known: de, fr."),
        ("[doc, lang]", "{over: [doc, lang], exclude: [{tongue: fr}]}", "'tongue' is not among the items of `over`; known: doc, lang."),
        ("[doc, lang]", "{over: [doc, lang], exclude: [{lang: [de, fr]}]}", "no combination of doc and lang is left."),
        ("for_each: doc}", "for_each: doc, after_previous: {by: lang}}", "stage study has a chain for each 'lang', which is not among its items; known: doc."),
        ("for_each: doc}", 'for_each: doc, when: "{{ doc.knd }}"}', "study cannot be decided on: the template cannot be filled: undefined key 'knd'; known: id, number, first, last, of."),
        ("lang: [de, ", "lang: [d e, ", "an `id` consists of letters, digits, dots, - and _; 'd e' does not."),
        ("  doc: [", "  more: {glob: a, from: page}\n  doc: [", "give either `glob` or `from`."),
        ("  doc: [", "  more: {from: page}\n  doc: [", "items more come from page, which must be a single file, not out/{{ lang.id }}/{{ doc.id }}.md."),
        ("  doc: [", "  more: {from: nothing}\n  doc: [", "items more come from the file 'nothing', which is not defined under `files`; known: study, page, sheet, report."),
        ("  doc: [", "  more: {glob: '*', source: x}\n  doc: [", "the source 'x' is not defined under `sources`."),
    ],
)  # fmt: skip
def test_each_fault_of_items_is_told_once(old, new, told):
    assert faults(changed((old, new))) == [told]


# --- items that are found -----------------------------------------------------------------------------------


LISTED = GUIDES.replace("lang: [de, {id: fr, title: French}]", "lang: {from: report}").replace(
    ", after: translate}", "}"
)


def test_stages_whose_items_are_not_known_yet_are_open_and_what_waits_for_them_waits():
    made = plan(LISTED)
    assert list(made.steps) == ["study[intro]", "study[legal]", "study[api]", "report"]
    assert made.open["translate"].items == "lang"
    assert "report" in made.open["translate"].needs
    made = plan(LISTED, {"lang": [{"id": "it"}]})
    assert not made.open
    assert made.steps["translate[api,it]"].needs == ("study[api]", "report")


def test_a_role_that_names_the_list_waits_for_it_too():
    text = LISTED.replace(
        "scholar: {", 'scholar: {task: "{% for one in items.lang %}{{ one.id }}{% endfor %}", '
    )
    assert set(plan(text).open) == {"study", "translate"}
    assert plan(text, {"lang": [{"id": "it"}]}).steps["study[api]"].needs == ("report",)


def test_a_list_that_waits_for_its_own_items_is_a_cycle():
    (told,) = faults(LISTED.replace("role: editor}", "role: editor, after: translate}"))
    assert "stages wait for each other in a cycle" in told
    (told,) = faults(LISTED.replace("role: editor}", "role: editor, for_each: doc}"))
    assert told.startswith("items lang come from report, which stage report writes for each of its items")


def test_found_items_are_looked_at_like_given_ones():
    with pytest.raises(PipelineInvalid, match="an `id` consists of letters"):
        plan(LISTED, {"lang": [{"id": "a/b"}]})
    with pytest.raises(PipelineInvalid, match="duplicate item 'it'"):
        plan(LISTED, {"lang": [{"id": "it"}, {"id": "it"}]})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("list.json", '["one", {"id": "two", "title": "The second"}]'),
        ("list.jsonl", '"one"\n\n{"id": "two", "title": "The second"}\n'),
        ("list.yaml", "- one\n- {id: two, title: The second}\n"),
        ("list.csv", "id,title\none,\ntwo,The second\n"),
        ("list.md", "# Plan\n\n- `one`\n- `two`: The second\n  - not this\n\nAnd more:\n\n- three: no\n"),
    ],
)
def test_a_file_lists_items_in_its_own_format(path, text):
    first, second = listed(text, path)
    assert first["id"] == "one"
    assert second["id"] == "two"
    assert second["title"] == "The second"


def test_a_list_in_markdown_takes_ids_titles_or_numbers():
    text = "## Notes\n\n- no: x\n\n## Chapters\n\n1. How it began\n2. [x] end – How it ended\n\n```\n- code: no\n```\n"
    assert listed(text, "a.md", "Chapters") == [
        {"id": "01", "title": "How it began"},
        {"id": "end", "title": "How it ended"},
    ]
    with pytest.raises(ListInvalid, match="has no section 'Parts'"):
        listed(text, "a.md", "Parts")


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("a.json", "{", "a.json is not valid JSON"),
        ("a.json", '{"id": "one"}', "a.json lists no items: It must be a JSON list"),
        ("a.json", "[[1]]", "item 1 is neither an id nor a map"),
        ("a.json", '[{"title": "x"}]', "item 1 has no `id`"),
        ("a.yaml", "- {", "a.yaml"),
        ("a.csv", "name\nx\n", "item 1 has no `id`"),
        (
            "a.md",
            "Nothing here.\n",
            "a.md lists no items: It must have a list, with a line like `- intro: The title`",
        ),
    ],
)
def test_a_list_that_cannot_be_read_says_why(path, text, told):
    with pytest.raises(ListInvalid) as caught:
        listed(text, path)
    assert told in str(caught.value)


def test_files_are_items_with_ids_of_their_own():
    paths = ["in/a b.md", "in/a-b.md", "in/x/intro.md", "in/x/intro.txt", "in/__init__.md"]
    made = items_of_paths(paths, "in/**/*")
    assert [one["id"] for one in made] == ["a-b", "a-b-2", "x-intro.md", "x-intro.txt", "init"]
    assert made[2] == {"id": "x-intro.md", "path": "in/x/intro.md", "name": "intro.md", "stem": "intro", "folder": "in/x"}  # fmt: skip
