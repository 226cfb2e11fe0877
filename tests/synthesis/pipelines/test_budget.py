"""What an agent reads fits its window: counted before it is sent, cut in one order and no further than needed, and said."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given as any_of
from hypothesis import settings
from hypothesis import strategies as st

from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.pipelines.definition.pipeline import AgentType, Read
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.dispatching import passages
from agentx.synthesis.pipelines.dispatching.budget import Candidate, NoRoom, fenced, fit, item_of, task_words
from agentx.synthesis.pipelines.dispatching.estimates import Estimator
from agentx.synthesis.pipelines.dispatching.passages import Wanted
from agentx.synthesis.pipelines.dispatching.prompt import Sending, tell

PROMPT = "Write chapter 7.\n\n"
PROMPT_TOKENS = count_tokens(PROMPT)
ABOUT, ITEM = "write the chapter about the ledger", {"id": "07", "number": 7, "title": "The ledger"}


def chapters(count, *, title="Chapter summaries", words=60):
    """A file with a section for each chapter, each with a first sentence of its own."""
    sections = (
        f"## Chapter {n:02}: Part {n}\n\nChapter {n} begins here. {'It goes on and on. ' * (words // 5)}\n\n"
        for n in range(1, count + 1)
    )
    return f"# {title}\n\n{''.join(sections)}"


def candidate(path, text, file="", **rule):
    return Candidate(Read(file=file or PurePosixPath(path).stem, purpose="to know", **rule), path, text)


def fitted(candidates, room, *, split="", about=ABOUT, item=ITEM, **agent):
    """Fit into so many tokens of prompt and files."""
    kind = AgentType(window=room + 600, system=100, output=500, **agent)
    return fit(candidates, kind, prompt_tokens=PROMPT_TOKENS, about=about, split=split, item=item)


def really(found):
    """What an agent is told, counted in one piece."""
    lines = [
        f"- Read: {one.path} — {one.purpose}{f' ({one.cut})' if one.cut else ''}\n" for one in found.given
    ]
    out = [f"- Read only if there is room: {path} — {why}\n" for path, why in found.left_out]
    return (
        count_tokens(f"{PROMPT}{''.join(lines + out)}\n" + "\n\n".join(map(fenced, found.given)) + "\n") - 1
    )


def holds(found):
    """The budget is kept by a real count, of the whole or of each part."""
    for one in [found.part(n) for n in range(1, len(found.parts) + 1)] or [found]:
        assert really(one) <= PROMPT_TOKENS + one.reads_tokens <= one.max_tokens
    return found


def cuts(found):
    return {one.path: one.cut for one in found.given}


def test_what_fits_is_given_whole_and_counted_as_it_stands():
    files = [candidate("a.md", "# A\n\n```\ncode\n```\n"), candidate("b.md", "")]
    found = holds(fitted(files, 1_000))
    assert [one.text for one in found.given] == [one.text for one in files]
    assert cuts(found) == {"a.md": "", "b.md": ""}
    assert found.left_out == found.parts == ()
    assert (
        found.reads_tokens
        == sum(one.tokens for one in found.given)
        == sum(one.whole_tokens for one in found.given)
    )
    exact = PROMPT_TOKENS + found.reads_tokens
    assert cuts(fitted(files, exact)) == cuts(found), "the last token is used"
    with pytest.raises(NoRoom):
        fitted(files, exact - 1)
    assert fenced(found.given[0]).startswith("File a.md:\n````\n"), "a fence is longer than those in it"


def test_of_a_file_that_grows_the_latest_sections_are_whole_and_of_older_ones_there_is_a_sentence():
    files = [
        candidate("meta/chapter-summaries.md", chapters(9), fit="recent"),
        candidate("style.md", chapters(9)),
    ]
    needs = fitted(files, 99_999).reads_tokens
    found = holds(fitted(files, needs))
    assert cuts(found) == {
        "meta/chapter-summaries.md": "9 sections; the latest 3 whole, of the 6 before one sentence each",
        "style.md": "",
    }
    text = found.given[0].text
    assert text.startswith(
        "# Chapter summaries\n\n[lines 3-26: one sentence each of 6 sections]\n- Chapter 01: Part 1: Chapter 1 begins here.\n"
    )
    assert text.count("begins here") == 9
    assert text.count("It goes on") == 3 * 12
    assert text.endswith(chapters(9)[chapters(9).index("## Chapter 07") :].rstrip() + "\n")


def test_the_sections_that_matter_are_those_of_the_item_and_those_that_search_finds():
    outline = chapters(30, title="Outline").replace("Chapter 12 begins", "Every ledger entry begins")
    files = [candidate("outline.md", outline, fit="sections"), candidate("research.md", chapters(3))]
    found = holds(fitted(files, 800))
    text = found.given[0].text
    assert "## Chapter 07" in text
    assert "## Chapter 12" in text
    assert "## Chapter 17" not in text
    assert text.startswith("# Outline\n\n[lines 3-26 left out: 6 sections]\n\n## Chapter 07")
    kept = text.count("\n## ")
    assert (
        cuts(found)["outline.md"]
        == f"30 sections; the {kept} that matter most are here, {30 - kept} left out"
    )
    assert found.max_tokens - PROMPT_TOKENS - found.reads_tokens < found.given[0].whole_tokens / 30 + 60, (
        "the room is used"
    )


@pytest.mark.parametrize(
    ("item", "heading"),
    [
        ({"id": "03"}, "3. Reading a file"),
        ({"id": "03"}, "ch03 notes"),
        ({"id": "parser", "number": 3}, "Part 3"),
        ({"id": "parser"}, "The parser, from inside"),
        ({"id": "x", "title": "Reading a file"}, "On reading a file"),
    ],
)
def test_a_heading_names_an_item_by_its_key_its_number_or_its_title(item, heading):
    others = ["13. Elsewhere", "3.2 Within", "Version 0.3", "30", "parsers", "Reading"]
    text = "".join(f"## {one}\n\n{'ledger ledger.' * 9}\n\n" for one in [*others, heading])
    sections = passages.sections_of("a.md", text).sections
    assert Wanted("ledger", item).order(sections)[0] == len(others)


def test_measures_are_taken_in_their_order_and_only_as_far_as_needed():
    files = [
        candidate("summaries.md", chapters(20), fit="recent"),
        candidate("outline.md", chapters(20), fit="sections"),
        candidate("map.md", chapters(4), fit="sections"),
        candidate("refs.md", chapters(3), if_room=True),
        candidate("notes.md", chapters(3), if_room=True),
        *(candidate(f"src/{n}.md", chapters(6), file="code") for n in range(4)),
    ]

    def measures(found):
        names = {one.path for one in found.given if one.cut}
        return names, [path for path, _ in found.left_out], len(found.parts)

    stages = []
    for room in range(12_000, 1_000, -100):
        told = measures(holds(fitted(files, room, split="code")))
        if not stages or stages[-1] != told:
            stages.append(told)
    assert stages == [
        (set(), [], 0),
        ({"summaries.md"}, [], 0),
        ({"summaries.md", "outline.md"}, [], 0),
        ({"summaries.md", "outline.md", "map.md"}, [], 0),
        *stages[4:],
    ]
    assert {parts for _, out, parts in stages[4:] if not out} >= {2, 4}, "then the task is split"
    assert [out for _, out, _ in stages][-1] == ["refs.md", "notes.md"], (
        "and secondary files are left out at last"
    )
    assert sorted({len(out) for _, out, _ in stages}) == [0, 1, 2], "one after the other, the last first"


def test_without_a_split_secondary_files_are_left_out_and_named():
    files = [candidate("a.md", chapters(5)), candidate("refs.md", chapters(5), if_room=True)]
    whole = fitted(files, 9_999).given
    found = holds(fitted(files, PROMPT_TOKENS + whole[0].tokens + 60))
    assert [one.path for one in found.given] == ["a.md"]
    assert found.left_out == (("refs.md", f"left out, no room for its {whole[1].whole_tokens:,} tokens"),)


def test_a_task_is_split_so_that_each_part_fits_and_a_file_too_large_for_one_is_cut_by_sections():
    style = candidate("style.md", chapters(3))
    code = [candidate(f"src/{n}.md", chapters(4 if n != 2 else 40), file="code") for n in range(6)]
    found = holds(fitted([style, *code], 1_300, split="code"))
    assert [path for part in found.parts for path in part] == [f"src/{n}.md" for n in range(6)], (
        "each once, in order"
    )
    assert len(found.parts) > 2
    assert {path for path, cut in cuts(found).items() if cut} == {"src/2.md"}
    for number, paths in enumerate(found.parts, start=1):
        assert [one.path for one in found.part(number).given] == ["style.md", *paths]
    assert found.reads_tokens == max(found.part(n).reads_tokens for n in range(1, len(found.parts) + 1))


def test_a_type_of_agent_is_given_no_more_files_than_it_takes():
    code = [candidate(f"src/{n}.md", "Short.", file="code") for n in range(7)]
    assert [len(part) for part in fitted(code, 5_000, split="code", max_files=3).parts] == [3, 3, 1]
    extra = [candidate("x.md", "Short.", if_room=True)]
    assert [path for path, _ in fitted([*code, *extra], 5_000, max_files=7).left_out] == ["x.md"]
    with pytest.raises(NoRoom, match=r"7 files to read; its type allows 6.*max_files"):
        fitted(code, 5_000, max_files=6)


def test_where_nothing_helps_the_largest_file_is_named():
    with pytest.raises(
        NoRoom, match=r"500 are available; the largest file is big\.md\..*`if_room`"
    ) as refused:
        fitted([candidate("small.md", "Short."), candidate("big.md", chapters(40))], 500)
    assert refused.value.path == "big.md"
    assert refused.value.needed > refused.value.max_tokens == 500
    with pytest.raises(NoRoom):
        fitted([], PROMPT_TOKENS - 1)


@pytest.mark.parametrize(
    "rule", [{"fit": "recent"}, {"fit": "recent", "keep": 0}, {"fit": "sections"}], ids=str
)
@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (
            "entries.md",
            "# Terms\n\n" + "".join(f"- **term {n}**: what it means here\n" for n in range(300)),
            "300 entries",
        ),
        (
            "table.md",
            "| term | means |\n|---|---|\n" + "".join(f"| t{n} | what it means |\n" for n in range(300)),
            "300 entries",
        ),
        ("plain.log", "".join(f"{n} something happened\n" for n in range(300)), "300 lines"),
        ("cjk.md", "账本记录每一笔交易。" * 300, "300 sentences"),
        (
            "deep.md",
            "# Book\n\n"
            + "".join(f"### Part {n}\n\n{'Words. ' * 9}\n\n#### Below\n\nMore.\n\n" for n in range(99)),
            "99 sections",
        ),
        (
            "code.py",
            "".join(f"def f{n}():\n    # one\n    return {n}\n\n\n" for n in range(200)),
            "200 sections",
        ),
        ("many.md", chapters(5_000, words=5), "5,000 sections"),
        ("fence.md", "".join(f"## A {n}\n\n```\n## no heading\n```\n\n" for n in range(99)), "99 sections"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)
def test_files_of_every_form_are_cut_where_they_can_be(path, text, said, rule):
    found = holds(fitted([candidate(path, text, **rule)], 700))
    assert cuts(found)[path].startswith(f"{said}; ")
    head = passages.sections_of(path, text).head
    assert found.given[0].text.startswith(head), "what stands over the sections stays"
    assert "[line" in found.given[0].text


@pytest.mark.parametrize(
    "text",
    ["x" * 60_000, '{"a":1},' * 9_000, "漢" * 20_000, "\n" * 9_000 + "x" * 60_000],
    ids=["word", "data", "cjk", "blank"],
)
def test_one_giant_line_cannot_be_cut_and_is_refused(text):
    for rule in ({"fit": "recent"}, {"fit": "sections"}, {}):
        with pytest.raises(NoRoom, match=r"giant\.md"):
            fitted([candidate("giant.md", text, **rule)], 900)
    assert fitted([candidate("giant.md", text)], 99_000).given[0].text == text


PIECES = st.sampled_from(
    ["# A\n", "## B 7\n", "\n", "\n\n", "  ", "\t", "- item. ", "| a |\n|---|\n", "```\n", "````", "漢字。", "é", "\r\n", "Title\n===\n",
     "words of the ledger. ", "x" * 90, "…", "---\n", "{{ }}", "</file>", "\u2028", "\ud800", "1. one\n", "'s", " .\n"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=200)
FILES = st.lists(
    st.tuples(st.sampled_from(["a.md", "b.txt", "c.py", "d/e.rst", "漢.md"]), TEXTS, st.sampled_from(["whole", "recent", "sections"]), st.booleans(), st.integers(0, 3)),
    max_size=6,
    unique_by=lambda one: one[0],
)  # fmt: skip


@settings(max_examples=150)
@any_of(files=FILES, room=st.integers(1, 900), split=st.booleans())
def test_whatever_is_read_the_budget_is_kept(files, room, split):
    candidates = [
        candidate(path, text, file="many" if split else "one", fit=how, if_room=spare, keep=keep)
        for path, text, how, spare, keep in files
    ]
    try:
        found = holds(fitted(candidates, room, split="many"))
    except NoRoom as refused:
        needed = refused.needed
    else:
        needed = 0
        _gives_all_or_says_so(found, candidates)
    assert needed == 0 or needed > room


def _gives_all_or_says_so(found, candidates):
    by_path = {one.path: one for one in candidates}
    assert {one.path for one in found.given} | {path for path, _ in found.left_out} == set(by_path)
    for one in found.given:
        assert one.cut or one.text == by_path[one.path].text
        assert one.tokens <= one.whole_tokens


def test_of_a_file_that_grew_only_the_end_is_counted_anew(monkeypatch):
    counted = []
    monkeypatch.setattr(
        passages, "count_tokens", lambda text: counted.append(len(text)) or count_tokens(text)
    )

    def fit_all(count):
        counted.clear()
        whole = candidate("glossary.md", chapters(count, title="Terms", words=300))
        files = [
            candidate("summaries.md", chapters(count, words=300), fit="recent"),
            candidate("outline.md", chapters(count, words=300), fit="sections"),
        ]
        found = holds(fitted([whole, *files], whole_tokens + 9_000))
        assert cuts(found)["summaries.md"]
        assert cuts(found)["outline.md"]
        return sum(counted)

    whole_tokens = count_tokens(chapters(202, title="Terms", words=300))
    first, grown, again = fit_all(200), fit_all(201), fit_all(201)
    assert first > 400_000
    assert grown < first / 20
    assert again < 2_000, "what is known is not counted at all"


# --- before anything is there -----------------------------------------------------------------------------------------

BOOK = """\
pipeline: book
variables: {words: 400}
items: {chapter: [{id: "01", title: One}, {id: "02", title: Two}, {id: "03", title: Three}]}
agents: {small: {window: 3000, system: 100, output: 500}}
files:
  outline: {path: outline.md, class: static}
  summaries: {path: summaries.md, class: append-only}
  draft: {path: "drafts/{{ chapter.id }}.md"}
  html: {path: "html/{{ chapter.id }}.html"}
roles:
  writer:
    agent: AGENT
    reads: [{file: outline, fit: sections}, {file: summaries, fit: recent, keep: 1}]
    writes: [{file: draft, marker: DONE, checks: [{length: {words: "{{ words }}"}}]}]
    appends: [{to: summaries, from: draft, section: Summary, under: "Chapter {{ chapter.id }}"}]
  typesetter:
    reads: [{file: draft}]
    writes: [{file: html}]
stages:
  - {id: write, role: writer, for_each: chapter}
  - {id: typeset, role: typesetter, for_each: chapter, after: write}
"""


def estimator(agent="general-purpose", there=(), done=()):
    plan = resolve(*parse(BOOK.replace("AGENT", agent), "book.yaml"))
    texts = dict(there)
    found = Estimator(plan, lambda read: {path: texts[path] for path in read.paths if path in texts}, done)
    return lambda key: found.of(plan.steps[key])


def test_a_budget_is_estimated_before_any_file_is_there():
    of = estimator()
    sizes = [{row.path: row.tokens for row in of(f"write[0{n}]").rows} for n in (1, 2, 3)]
    assert sizes[0].keys() == {"outline.md"}, "nothing is remembered before the first"
    grown = sizes[2]["summaries.md"] - sizes[1]["summaries.md"]
    assert 250 < grown < 350, "a section more for each item before"
    (draft,) = of("typeset[01]").rows
    assert draft.estimated
    assert 400 * 1.35 * 0.9 < draft.tokens < 400 * 1.35 * 1.1 + 30, "what its check of the length asks for"


def test_what_is_there_is_counted_and_what_is_not_is_marked_as_a_guess():
    there = {"outline.md": chapters(3), "summaries.md": chapters(1), "drafts/01.md": "Short."}
    before, after = estimator(there=there), estimator(there=there, done=("write[01]",))
    assert [row.estimated for row in before("write[01]").rows] == [False, False]
    assert [row.estimated for row in before("write[02]").rows] == [False, True], "it will have grown"
    assert [row.estimated for row in after("write[02]").rows] == [False, False], "it has grown"
    assert before("typeset[01]").is_estimated, "it will be written anew"
    assert not after("typeset[01]").is_estimated
    budget = after("write[02]")
    assert budget.reads == sum(row.tokens for row in budget.rows)
    assert budget.total == budget.reads + budget.prompt + budget.system + budget.output < budget.window


def test_an_estimate_tells_what_will_be_cut_and_what_cannot_be_sent():
    budget = estimator("small", {"outline.md": chapters(30), "summaries.md": chapters(30)}, ("write[01]",))(
        "write[02]"
    )
    assert {row.path: row.cut.split(";")[0] for row in budget.rows} == {
        "outline.md": "30 sections",
        "summaries.md": "30 sections",
    }
    assert budget.total <= budget.window
    assert all(row.whole_tokens > row.tokens for row in budget.rows)
    refused = estimator("small", {"outline.md": "word " * 9_000})("write[01]")
    assert "largest file is outline.md" in refused.problem
    assert refused.total > refused.window == 3_000


@pytest.mark.parametrize("room", [700, 900, 2_000, 9_000])
def test_the_prompt_as_it_is_sent_keeps_the_budget(room):
    plan = resolve(*parse(BOOK.replace("AGENT", "small"), "book.yaml"))
    step = plan.steps["write[02]"]
    reads = {one.rule.file: one.rule for one in step.reads}
    files = [
        Candidate(reads["outline"], "outline.md", chapters(9)),
        Candidate(reads["summaries"], "summaries.md", chapters(9)),
        candidate("refs.md", chapters(2), if_room=True),
    ]
    empty = count_tokens(tell(plan, Sending(step=step)).bare)
    agent = AgentType(window=empty + room + 600, system=100, output=500)
    about = task_words(plan.role(step), step)
    found = fit(files, agent, prompt_tokens=empty, about=about, item=item_of(step))
    sent = tell(plan, Sending(step=step, given=found.given, left_out=found.left_out)).whole
    assert count_tokens(sent) <= found.prompt_tokens + found.reads_tokens <= found.max_tokens
    assert count_tokens(sent) + agent.system + agent.output <= agent.window


ALIKE = """\
pipeline: alike
items:
  part: [{id: "001", title: One}, {id: "002", title: One}, {id: "003", title: "A longer title, with 3 more words"}, {id: "x"}]
files: {a: {path: "a/{{ part.id }}.md"}}
roles:
  plain: {task: "Write {{ part.title | default('') }}{{ part.id }}.", writes: [{file: a, marker: DONE}]}
stages: [{id: a, role: plain, for_each: part}]
"""


@pytest.mark.parametrize(
    "task",
    ["Write {{ part.id }}.", "{% if part.number > 1 %}Now go on with what was begun.{% endif %} Write."],
)
def test_prompts_that_differ_only_in_digits_count_as_they_are(task):
    text = ALIKE.replace("Write {{ part.title | default('') }}{{ part.id }}.", task)
    plan = resolve(*parse(text, "alike.yaml"))
    estimator = Estimator(plan, lambda _read: {})
    for step in plan.steps.values():
        assert estimator.of(step).prompt == count_tokens(tell(plan, Sending(step=step)).bare)
