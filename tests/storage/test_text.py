"""Text of others: bytes that are text, text that UTF-8 can hold, and text that a terminal can show."""

from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.text import BINARY_BYTES, decoded, encodable, is_binary, one_line, plain

ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("\ud800\udc00\ufeff\u202e\x1b\r\n\t\0"))


@given(ANY_TEXT)
def test_any_text_can_be_kept_and_shown(text):
    kept, shown = encodable(text), plain(text)
    assert kept.encode().decode() == kept == encodable(kept)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert one_line(text).isprintable()
    assert "  " not in one_line(text)


def test_what_utf_8_holds_stays_as_it_is():
    assert encodable("\ufeffcafé 😀\0") == "\ufeffcafé 😀\0"


def test_white_space_parts_words_and_what_cannot_be_seen_does_not():
    assert one_line("a\rb\x0bc\u2028d\u00a0e\r\nf\0g\u200bh") == "a b c d e fgh"


def test_a_nul_near_the_start_makes_a_content_binary():
    assert decoded("é".encode()) == "é"
    assert decoded(b"\xe9") is decoded(b"a\0") is None
    assert is_binary(b"x" * (BINARY_BYTES - 1) + b"\0")
    assert not is_binary(b"x" * BINARY_BYTES + b"\0")
