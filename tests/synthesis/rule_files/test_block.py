"""The block of exported rules: what is outside of it stays, and what was changed inside is noticed."""

import pytest

from agentx.storage.errors import UsageError
from agentx.synthesis.memory.items import ConstraintDetail, Link, MemoryItem, RuleDetail, Scope
from agentx.synthesis.rule_files import block
from agentx.synthesis.rule_files.block import MarkersBroken
from agentx.synthesis.rule_files.differences import Found, differences
from agentx.synthesis.rule_files.front_matter import read_front_matter


def rule(number, text, **fields):
    return MemoryItem(
        id=f"r-{number}", kind="rule", text=text, created_seq=number, detail=RuleDetail(), **fields
    )


def demand(number, text, modality="must", **fields):
    return MemoryItem(
        id=f"c-{number}",
        kind="constraint",
        text=text,
        created_seq=number,
        detail=ConstraintDetail(modality=modality),
        **fields,
    )


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine", "a\r\nb\r\n", "\ufeff# Mine\n\n\n", "x\udcff\n"])
def test_what_stands_outside_the_markers_is_kept(text):
    first = block.insert(text, block.render([rule(1, "Use tabs.")]), None)
    assert first.startswith(text)
    place = block.find(first)
    assert not place.is_edited
    second = block.insert(first, block.render([rule(2, "Use spaces.")]), place)
    assert second.startswith(text)
    assert "Use tabs" not in second
    assert block.insert(second, block.render([rule(1, "Use tabs.")]), block.find(second)) == first


def test_a_changed_character_is_an_edit_and_other_line_ends_are_not():
    text = block.insert("", block.render([rule(1, "Use tabs."), rule(2, "Ask first.")]), None)
    assert block.find(text.replace("tabs", "Tabs")).is_edited
    assert not block.find(text.replace("\n", "\r\n")).is_edited


@pytest.mark.parametrize("broken", ["<!-- agentx:end -->\n", "<!-- agentx:rules 0123456789abcdef -->\n"])
def test_half_a_block_is_refused(broken):
    with pytest.raises(MarkersBroken):
        block.find(f"x\n{broken}")
    with pytest.raises(MarkersBroken):
        block.find(block.render([]).text + "\n" + block.render([]).text)


def test_the_most_important_rules_come_first_and_the_rest_is_counted():
    items = [
        demand(1, "Prefer short names.", "prefer"),
        rule(2, "Run the smoke tests."),
        demand(3, "Never use tabs.", "must_not"),
        rule(4, "Never push to main.", score=9.5),
        rule(5, "Only for the writer.", agent="writer"),
        rule(6, "It is not settled.", status="candidate"),
    ]
    assert [item.id for item in block.exported(items)] == ["r-4", "c-3", "r-2", "c-1"]
    many = [rule(number, f"Rule number {number} says what to do about it.") for number in range(500)]
    made = block.render(many, 300)
    assert made.tokens <= 300
    assert len(made.items) + made.more == 500
    assert f"{made.more} more: `agentx memory list`." in made.body
    with pytest.raises(UsageError):
        block.render(many, 20)


def test_a_line_says_where_and_until_when_and_is_read_back_without_it():
    item = demand(1, "Use tabs (four wide).", scope=Scope(paths=("src/**", "*.go")), until="June")
    text = block.insert("", block.render([item]), None)
    assert "- Use tabs (four wide). (in `src/**`, `*.go`, until June)" in text
    (found,) = block.stated(block.find(text), "AGENTS.md")
    assert (found.text, found.scope.paths) == (item.text, item.scope.paths)


def test_differences_are_additions_rewordings_and_removals():
    items = {
        one.id: one
        for one in (rule(1, "Run the tests before each commit."), rule(2, "Use tabs."), rule(3, "Ask."))
    }
    found = [
        Found(text="Run all the tests before each commit.", kind="rule", where="a:1"),
        Found(text="**use** tabs", kind="rule", where="a:2"),
        Found(text="Never deploy on Fridays.", kind="constraint", where="a:3"),
    ]
    made = differences(found, items.values(), items)
    assert [one.text for one in made.added] == ["Never deploy on Fridays."]
    assert [(one.text, item.id) for one, item in made.reworded] == [
        ("Run all the tests before each commit.", "r-1")
    ]
    assert [item.id for item in made.removed] == ["r-3"]


def test_a_removal_that_waits_is_not_proposed_again():
    waits = rule(4, "Use tabs.", status="candidate", links=(Link("would_end", "r-2"),))
    items = {one.id: one for one in (rule(2, "Use tabs."), waits)}
    assert differences([], [items["r-2"]], items, again=True).removed == ()


@pytest.mark.parametrize(
    ("front", "globs"),
    [
        ("globs: *.ts, src/**", ("*.ts", "src/**")),
        ('globs: ["a/*.py", "b/*.py"]', ("a/*.py", "b/*.py")),
        ("globs:\n  - 'a/**'\n  - b/**\nalwaysApply: false", ("a/**", "b/**")),
        ("globs: src/*.{js,ts}", ("src/*.js", "src/*.ts")),
        ("globs: src/**\nalwaysApply: true", ()),
        ('applyTo: "**"', ()),
        ("globs: ../../etc/passwd", ()),
        ("description: none", ()),
    ],
)
def test_front_matter_gives_the_files_for_which_rules_are(front, globs):
    read = read_front_matter(f"---\n{front}\n---\n- Use tabs.\n")
    assert read.globs == globs
    assert read.text.count("\n") == front.count("\n") + 4
    assert read.text.strip() == "- Use tabs."
