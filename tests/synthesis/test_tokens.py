"""Tokens are counted as the field's tokenizer counts them, offline, whatever the text is."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.synthesis.language.tokens import (
    PATTERN,
    VOCABULARY_FILE,
    WINDOW,
    Tokenizer,
    count_tokens,
    cut,
    tokenizer,
)

PROSE = "It's 1,234 o'clock.\n\n  Don't stop — naïve café 東京 👩‍👩‍👧 <|endoftext|>\tdef f(x):\n        return x  \n"


@pytest.fixture(scope="module")
def reference():
    """The encoding as tiktoken itself builds it, from the same vocabulary file."""
    import tiktoken

    spec = importlib.util.find_spec("litellm")
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        return tiktoken.get_encoding("cl100k_base")


def test_the_vocabulary_is_found_so_counts_are_exact():
    assert tokenizer().exact


def test_the_pattern_and_the_vocabulary_are_tiktokens_own(reference):
    assert reference._pat_str == PATTERN
    assert tokenizer()._encoding._mergeable_ranks == reference._mergeable_ranks


@pytest.mark.parametrize("repeats", [1, 400])
def test_a_text_counts_as_in_tiktoken_also_across_windows(reference, repeats):
    text = PROSE * repeats
    assert (len(text) > 2 * WINDOW) == (repeats > 1)
    assert count_tokens(text) == len(reference.encode(text, disallowed_special=()))


@given(st.text(max_size=300))
def test_any_text_counts_as_in_tiktoken(reference, text):
    assert count_tokens(text) == len(reference.encode(text, disallowed_special=()))


@given(
    st.lists(
        st.sampled_from(["word", "a1", " ", "\n", "\t", ".", "!!", "é", "\r\n", "'s", "漢"]), max_size=60
    )
)
@settings(max_examples=200)
def test_windows_are_cut_where_the_encoding_cuts(reference, pieces):
    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(count_tokens.__globals__, "WINDOW", 10**9)
        whole = count_tokens(text)
        patch.setitem(count_tokens.__globals__, "WINDOW", 40)
        windowed = count_tokens(text)
    # A window without any letter or digit before white space is cut at its end, which can cost a few tokens.
    assert whole <= windowed <= whole + 3 * (len(text) // 40 + 1)


def test_words_separated_by_spaces_count_the_same_in_any_window(monkeypatch):
    text = "one two\nthree  four " * 50
    whole = count_tokens(text)
    monkeypatch.setitem(count_tokens.__globals__, "WINDOW", 17)
    assert count_tokens(text) == whole


def test_the_name_of_a_special_token_counts_as_plain_text():
    assert count_tokens("<|endoftext|>") > 1


@given(st.text(max_size=200), st.integers(-1, 60))
def test_a_cut_text_is_the_start_of_the_text_and_fits(text, most):
    kept = cut(text, most)
    assert text.startswith(kept)
    assert count_tokens(kept) <= max(most, 0)
    if most >= count_tokens(text):
        assert kept == text


def test_a_cut_keeps_as_much_as_fits_and_no_half_character():
    assert cut("one two three four", 2) == "one two"
    assert cut("👩‍👩‍👧👩‍👩‍👧", 1) in {"", "👩"}
    assert count_tokens(cut(PROSE * 400, 5_000)) > 4_990


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10_000_000,
        " " * 2_000_000,
        "\n" * 2_000_000,
        "\ud800" * 50_000,
        "\ud83d\ude00 x" * 5_000,
        "!@#$" * 500_000,
    ],
    ids=["letters", "spaces", "newlines", "surrogates", "split pairs", "punctuation"],
)
def test_a_hostile_text_is_counted_and_cut_in_bounded_time(text):
    assert count_tokens(text) > 0
    assert text.startswith(cut(text, 100))
    assert cut(text, 100)


def test_without_the_vocabulary_the_count_is_an_estimate_and_says_so():
    estimate = Tokenizer(None)
    assert not estimate.exact
    assert estimate.count("abcdef") == 2
    assert estimate.count("\ud800") == 1
    assert estimate.cut("abcdefgh", 2) == "abcdef"
    assert estimate.cut("é" * 10, 1) == "é"
    assert estimate.cut("abc", 0) == ""


def test_a_vocabulary_that_is_not_the_official_file_is_not_used(tmp_path, monkeypatch):
    folder = tmp_path / "litellm" / "litellm_core_utils" / "tokenizers"
    folder.mkdir(parents=True)
    (folder.parent.parent / "__init__.py").touch()
    (folder / VOCABULARY_FILE).write_bytes(b"IQ== 0\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from agentx.synthesis.language.tokens import tokenizer\n"
        "print(tokenizer().exact)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_counting_imports_neither_litellm_nor_the_network():
    code = (
        "import sys, socket\n"
        "def refuse(*a, **k): raise AssertionError('the network was asked')\n"
        "socket.socket.connect = refuse\n"
        "from agentx.synthesis.language.tokens import count_tokens\n"
        "assert 'tiktoken' not in sys.modules\n"
        "count_tokens('hello')\n"
        "print('litellm' in sys.modules, 'requests' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
