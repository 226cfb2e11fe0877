"""A pattern is searched only in texts that have a word which it needs; what is found stays the same."""

import re

import pytest

from agentx.synthesis.demands.tables import endings
from agentx.synthesis.demands.tables.doubt import SIGNS
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.required_words import filtered, required_words

TEXTS = (
    "You can drop the rule about tabs now.",
    "NO MORE of this, please; we no longer need it",
    "it’s fine again, ſtop", "İf you can", "the K release: never again",
    "", "x", "never", "Never create a requirements.txt file; use pyproject.toml instead.",
    "that is over and done with, we moved to the new one yesterday", "the row of the table is 5 by now",
)  # fmt: skip

PATTERNS = (
    "a", "ab|cd", "(?:ab|c)d", "(?:never|don't)? x", "(?:never){1,2}", "(?:never)*", "(?i:STOP) it", "ſtop", "K rel",
    r"(?P<a>never|again)\b.*", r"(?=never)n", r"(?!never)again", r"(?<=is )over", "[Nn]ever", "st[o0]p", "(?>again|now)",
    "i", "if you", r"(\w+) \1|over",
)  # fmt: skip


@pytest.mark.parametrize("flags", [re.NOFLAG, re.IGNORECASE])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_search_that_looks_for_words_first_finds_the_same(pattern, flags):
    compiled = re.compile(pattern, flags)
    find = filtered(compiled)
    for text in TEXTS:
        found, wanted = find(text), compiled.search(text)
        assert (found and found.span()) == (wanted and wanted.span())


@pytest.mark.parametrize("table", [endings.SIGNS, SIGNS])
def test_the_tables_find_the_same(table):
    for sign in table:
        compiled = re.compile(sign.pattern.pattern, re.IGNORECASE)
        find = filtered(compiled)
        assert [bool(find(text)) for text in TEXTS] == [bool(compiled.search(text)) for text in TEXTS]


def test_a_pattern_that_is_compiled_on_use_finds_the_same_before_and_after_it_is_filtered():
    pattern = on_use("(?:never|again) +you", re.IGNORECASE)
    assert [bool(pattern.search("Never you")) for _ in range(400)] == [True] * 400
    assert pattern.search("never you", 3) is None
    assert pattern.search("not you") is None


def test_words_are_required_only_where_each_alternative_has_one():
    assert required_words(re.compile("never|again")) == ("again", "never")
    assert required_words(re.compile(r"never|\d")) == ()
    assert required_words(re.compile("x*never?")) == ("neve",)
