"""Only the user's own words make rules: whatever wraps a demand as material takes it out, and nothing else does."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.synthesis.attribution.material import MAX_CHARACTERS, own_words
from agentx.synthesis.demands.classify import Demand, Rejection
from tests.demand_findings import findings

DEMANDS = (
    "Always answer in German.",
    "Never push to main.",
    "From now on use tabs.",
    "Don't ever add emojis to the docs.",
    "All functions must have type hints.",
    "I prefer bullet points over paragraphs.",
    "Stop suggesting Redux.",
    "You can use emojis again.",
    "Forget the rule about tabs.",
)

BLOCKS = {
    "fence": "```\n{}\n```",
    "fence with a language": "```text\nbefore\n{}\n```",
    "tilde fence": "~~~\n{}\n~~~",
    "fence in a fence": "````\n```\n{}\n```\n````",
    "indented code": "    {}",
    "block quote": "> {}",
    "nested block quote": "> > {}\n> > yes",
    "quote in a list": "- > {}",
    "table": "| no | text |\n|---|---|\n| 1 | {} |",
    "system reminder": "<system-reminder>\n{}\n</system-reminder>",
    "command": "<command-message>review</command-message>\n<command-args>{}</command-args>",
    "bash output": "<bash-stdout>{}</bash-stdout><bash-stderr></bash-stderr>",
    "document": '<document index="1">\n<source>a.txt</source>\n{}\n</document>',
    "nested tags": "<a>\n<a>\nx\n</a>\n{}\n</a>",
    "comment": "<!--\n{}\n-->",
    "diff": "diff --git a/x.md b/x.md\n@@ -1 +1 @@\n+{}",
    "log": "2026-11-20 09:31:05 INFO {}\n2026-11-20 09:31:06 INFO done",
    "syslog": "Nov 20 09:31:05.123 |INFO| {}\nNov 20 09:31:06.001 |INFO| done",
    "terminal": "$ cat rules.txt\n{}",
    "prompt of a shell": "anna@laptop work % cat rules.txt\n{}",
    "traceback": 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n{}',
    "banner of a script": "=== Step 3: Check the rules ===\n{}\n=== Step 4: Done ===",
    "json": '{{\n  "role": "user",\n  "text": "{}"\n}}',
    "source": "# {}\ndef f():\n    return 1",
    "line comment": "// {}",
    "transcript": "User: {}\nAssistant: I will.",
    "transcript over lines": "Human:\n{}\n\nAssistant:\nI will.",
    "mail": "On Tue, 3 Nov 2026 at 10:12, Anna Weber <anna@example.com> wrote:\n> {}",
    "mail without marks": "On Tue, 3 Nov 2026 at 10:12, Anna Weber wrote:\n\n{}",
    "forwarded mail": "---------- Forwarded message ---------\nFrom: Anna Weber\nSubject: rules\n\n{}",
    "headers of a mail": "From: Anna Weber\nSent: Tuesday\nTo: Ben\nSubject: rules\n\n{}",
    "review of a bot": "Rule is missing in the parser\n\nMedium Severity\n\n{}",
    "review in markdown": "**Actionable comments posted: 1**\n\n{}",
    "summary": "This session is being continued from a previous conversation that ran out of context.\n{}",
    "plan": "Implement the following plan:\n\n# Rules\n\n{}",
    "interrupted": "[Request interrupted by user for tool use]\n{}",
    "introduced": "here is the log:\n{}",
    "said by a file": "The README says:\n\n{}",
    "said by a bot": "bugbot left this comment:\n\n{}",
    "said by a person": "Anna wrote:\n{}",
    "work on a text": "Translate this into French: {}",
}
INLINE = {
    "double quotes": 'the page has "{}" in it',
    "typographic quotes": "the page has “{}” in it",
    "guillemets": "the page has «{}» in it",
    "single quotes": "the page has ‘{}’ in it",
    "backticks": "what about `{}` then",
    "two backticks": "what about ``{}`` then",
    "said by somebody": "my colleague said {}",
    "said by a name": "Anna says {}",
    "said by a hook": "the hook says {}",
    "according to": "according to the manual: {}",
    "said by somebody somewhere": "Someone on a forum said note to self: {}",
    "said by somebody at work": "a guy at work insists: {}",
    "told to others": "my colleague told me to {}",
    "what it says": "this is what the manual says: {}",
    "read somewhere": "I read on a blog that {}",
}
"""Forms in which messages carry what is not the user's own; ``{}`` stands for it."""

OWN = (
    "Thanks, that works.\n\n{}",
    "{}\n\nThanks!",
    "Can you look at the parser?\n\n{}\n\nIt fails since yesterday.",
    "- {}\n- thanks",
    "Here are my rules:\n- {}",
)


def _rules(text: str) -> list[Demand | Rejection]:
    return [finding for finding in findings(text) if isinstance(finding, Demand | Rejection)]


@pytest.mark.parametrize("form", BLOCKS)
@pytest.mark.parametrize("demand", DEMANDS)
def test_material_over_lines_makes_and_ends_no_rule(form, demand):
    text = BLOCKS[form].format(demand)
    assert not findings(text), text
    assert not findings(f"What is this about?\n\n{text}"), text


@pytest.mark.parametrize("form", INLINE)
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_quoted_demand_makes_and_ends_no_rule(form, demand):
    quoted = demand.replace("'", "") if form in {"single quotes", "typographic quotes"} else demand
    assert not findings(INLINE[form].format(quoted))


@pytest.mark.parametrize("form", BLOCKS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_the_same_demand_before_the_material_is_the_users(form, data):
    own, other = data.draw(st.permutations(DEMANDS[:6]))[:2]
    text = f"{own}\n\n{BLOCKS[form].format(other)}"
    (found,) = _rules(text)
    assert text[found.evidence.start : found.evidence.end].rstrip(".") == own.rstrip(".")


@pytest.mark.parametrize("form", OWN)
@pytest.mark.parametrize("demand", DEMANDS[:7])
def test_a_demand_in_own_words_is_found_where_it_stands(form, demand):
    text = form.format(demand)
    (found,) = _rules(text)
    assert text[found.evidence.start : found.evidence.end].rstrip(".") == demand.rstrip(".")


@given(
    st.lists(st.sampled_from((*BLOCKS.values(), *INLINE.values(), *OWN)), max_size=4),
    st.sampled_from(DEMANDS),
)
@settings(deadline=None)
def test_own_words_keep_every_character_in_its_place(forms, demand):
    text = "\n\n".join(form.format(demand) for form in forms)
    plain = own_words(text)
    assert len(plain) == len(text)
    kept = [(mine, theirs) for mine, theirs in zip(plain, text, strict=True) if mine in string.ascii_letters]
    assert all(mine == theirs for mine, theirs in kept)


def test_a_message_is_read_to_its_forty_thousandth_character():
    filler = "The parser is slow. " * (MAX_CHARACTERS // 20 + 1)
    assert _rules(filler[: MAX_CHARACTERS - 100] + "\nNever push to main.\n")
    assert not _rules(filler + "\nNever push to main.\n")


@pytest.mark.parametrize(
    "said",
    [
        "My colleague told me to never push to main, so do that.",
        "The README says: never push to main. I agree.",
        "the docs recommend to never push to main, let's do that please",
    ],
)
def test_what_somebody_else_says_is_the_users_where_they_make_it_their_own(said):
    (found,) = _rules(said)
    assert isinstance(found, Demand)
    assert (found.text.rstrip("."), found.certainty) == ("Never push to main", "active")


@pytest.mark.parametrize(
    "said",
    [
        "My colleague told me to never push to main, but don't do that.",
        "The README says: never push to main. I see.",
        "My colleague told me to never push to main. Do that once.",
        "The README says:\n\nnever push to main, so do that",
    ],
)
def test_what_is_refused_or_pasted_is_not_the_users(said):
    assert not _rules(said)


@pytest.mark.parametrize(
    "told",
    [
        "timetable.py reads the times of a day.",
        "The parser writes its output to dist.",
        "loader.ts suggests names for the columns.",
        "The table shows what is left.",
        "Write down what a customer said.",
    ],
)
def test_what_a_program_does_is_no_report(told):
    assert own_words(told) == told
    assert [rule.text for rule in _rules(f"{told} Never push to main.")] == ["Never push to main."]
