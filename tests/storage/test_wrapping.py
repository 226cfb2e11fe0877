"""A secret is found behind whatever a terminal, a parser, a mail program or a shell put into it; nothing else changes."""

import base64
import functools
import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.events.types import Body, UserMessageSent
from agentx.storage.secrets.redaction import clean_struct, clean_value, find, redact
from agentx.storage.secrets.wrapping import decodings, glued

from .secret_samples import ALNUM, TOKENS, Sample, _of, samples
from .wrapped_samples import WRAPPINGS, innocent, missed, wrapped

_NOISE = re.compile(r"\x1b\[[0-9;]*m|web-1|2026-11-20T09:31:05Z|INFO|[\s>+#|'\"\\\u200b\xad]")
TOKEN = "ghp_" + "a1B2" * 9


@functools.cache
def every() -> list[Sample]:
    return wrapped(each=6)


def stands(sample: Sample, told: str) -> bool:
    """Whether the secret, or half of it, can still be read."""
    half = len(sample.secret) // 2
    return told == sample.text or any(
        sample.secret[part] in text
        for text in (told, _NOISE.sub("", told))
        for part in (slice(half, None), slice(4, half + 4))
    )


@pytest.mark.parametrize("kind", WRAPPINGS)
def test_a_secret_is_found_behind_every_wrapping(kind):
    """Strings beside each other in the middle of a URL are no language's syntax, and are left out."""
    rows = [one for one in every() if one.kind.startswith(f"{kind}: ")]
    left = [one for one in rows if stands(one, redact(one.text))]
    assert [one for one in left if "://" not in one.kind] == []
    assert len(rows) == 6


USUAL = (
    "\x1b[32m{}\x1b[39m ok", "a\\n{}\\n", "a\\t{}\\tb", "a\\u000a{}", "\\r\\n{}\\r\\n", 'x = \\"{}\\"', "key%3D{}", "n=1%0A{}%0A", "next=%2Fa%3Fb%3D{}%26c", "&quot;{}&quot;",
)  # fmt: skip


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_of_every_format_is_found_behind_the_usual_wrappings(kind):
    rng = random.Random(kind)
    for around in USUAL:
        secret = TOKENS[kind](rng)
        shown = secret.rpartition("/services/")[2].rpartition("/webhooks/")[2]
        assert shown not in redact(around.format(secret)), around


@pytest.mark.parametrize("kind", sorted({*TOKENS} - {"slack webhook", "discord webhook"}))
def test_a_token_of_every_format_is_found_where_a_line_end_cuts_it(kind):
    rng = random.Random(kind)
    for at in (0.35, 0.5, 0.8):
        secret = TOKENS[kind](rng)
        cut = int(len(secret) * at)
        told = redact(f"the token is\n{secret[:cut]}\n{secret[cut:]}\nand no other\n")
        assert secret[cut:] not in told or len(secret) - cut < 9
        assert told.endswith("\nand no other\n")


def test_a_secret_is_found_in_every_place_that_was_missed():
    left = [one for one in missed(each=2) if stands(one, redact(one.text))]
    assert left == []


def test_innocent_texts_stay_byte_for_byte():
    altered = [text for text in innocent() if redact(text) != text]
    assert altered == []


def test_what_stands_around_a_wrapped_secret_stays_byte_for_byte():
    mark = "[redacted: github token]"
    for text in (
        "\x1b[1mtoken\x1b[0m \x1b[31m{}\x1b[0m\r\n\x1b[2K", "a\\n{}\\tb\\\\n", '{{"a": "\\u00e9 \\"{}\\" \\/"}}', "x%20{}%0Ay%ZZ", "&amp;{}&nbsp;&bogus;", "\u200bé\u200d{}\ufeff", "say 'it''s' {}\n",
    ):  # fmt: skip
        assert redact(text.format(TOKEN)) == text.format(mark)


def test_json_stays_json_and_a_url_stays_a_url():
    rng = random.Random(1)
    for number in range(60):
        secret = _of(ALNUM, 20, rng)
        inner = json.dumps({"env": f'A="1"\nDB_PASSWORD={secret}\nB=\\2', "n": number})
        told = redact(json.dumps({"log": inner, "more": ["\x1b[31mé", TOKEN]}))
        assert secret not in told
        assert json.loads(json.loads(told)["log"])["n"] == number
        assert json.loads(told)["more"][0] == "\x1b[31mé"
    told = redact("https://example.org/cb?state=a%3D1%26api_key%3Dq7RkZw91LmXc4TbN%26b%3D2&page=2#top")
    assert told == "https://example.org/cb?state=a%3D1%26api_key%3D[redacted: secret]%26b%3D2&page=2#top"


def test_line_numbers_stay_where_lines_are_kept():
    text = f"one\nTOKEN={TOKEN[:20]}\n{TOKEN[20:]}\nthree\n"
    told = redact(text, keep_lines=True)
    assert TOKEN[20:] not in told
    assert told.split("\n")[3] == "three"


def test_tokens_on_lines_of_their_own_are_redacted_one_by_one():
    told = redact(f"{TOKEN}\n{TOKEN[::-1]}\nAKIA" + "Q7RKZW91LMXC4TBN\n")
    assert told.count("\n") == 3
    assert "AKIA" not in told


def test_a_list_of_arguments_and_a_list_under_a_secret_name_are_searched_as_a_whole():
    value = clean_value(
        {
            "argv": ["curl", "-u", "bob:hunter2222", "https://example.org"], "command": ["mysql", "-uroot", "-phunter2222", 3],
            "args": ["--password", "hunter2222", "-v"], "api_token": ["abc123def456"], "pass\x1b[0mword": "hunter2222", "tags": ["a1", "-x"],
        }
    )  # fmt: skip
    assert "hunter2222" not in str(value)
    assert "abc123def456" not in str(value)
    assert value["argv"] == ["curl", "-u", "bob:[redacted: password]", "https://example.org"]
    assert value["tags"] == ["a1", "-x"]


def test_the_quick_look_at_an_event_passes_over_no_secret_that_a_search_finds():
    for sample in (*every(), *missed(), *samples(each=1)):
        event = UserMessageSent(body=Body(sample.text))
        assert clean_struct(event).body.text == redact(sample.text)


def test_base64_is_opened_only_where_it_says_something():
    line = base64.b64encode(b"DB_PASSWORD=q7RkZw91LmXc\n").decode()
    assert redact(f"data: {line}\n") == "data: [redacted: secret]\n"
    harmless = base64.b64encode(b"The password is checked in login().").decode()
    assert redact(f"data: {harmless}") == f"data: {harmless}"


_PIECES = st.sampled_from(
    ["\x1b[31m", "\x1b", "\\", "\\n", "\\u00", "%", "%3D", "%25", "&#x3D;", "&", "=", "=\n", "\n", "\n> ", "\r\n+", "\u200b", '"', "'", '" + "', "\b", "\uff21", "a1B2c3D4", " ", "é", "\ud83d"]
)  # fmt: skip


@settings(derandomize=True, max_examples=150)
@given(st.lists(_PIECES | st.text(max_size=4), max_size=30))
def test_every_span_of_a_view_leads_to_its_place_in_the_text(pieces):
    text = "".join(pieces)
    views = list(decodings(text))
    last = views[-1] if views else None
    if joined := glued(last.text if last else text, last):
        views.append(joined)
    for view in views:
        assert [0, len(text)] == [0, max(view.span(0, len(view.text))[1], len(text))] if view.text else True
        before = 0
        for at, char in enumerate(view.text):
            start, end = view.span(at, at + 1)
            assert before <= start < end <= len(text)
            assert (
                end - start > 1
                or text[start:end] == char
                or char in "\x1b\uff21"
                or ord(text[start]) > 0xFF00
            )
            before = start


@settings(derandomize=True, max_examples=100)
@given(st.lists(_PIECES, max_size=6), st.lists(_PIECES, max_size=6))
def test_redacting_wrapped_text_again_changes_nothing(before, after):
    once = redact("".join([*before, f" TOKEN={TOKEN} ", *after]))
    assert TOKEN not in once
    assert redact(once) == once


HOSTILE = (
    "\x1b[", "\x1b]", "\x1b]8;;", "\x1bP", "\x1b", "^[[", "[1", "[1;1;1m", "\b", "a\b", "\u200b", "\\", "\\u", "\\n", "\\u{", "\\\n", "\\\n ", "%", "%25", "%2525", "%3D", "&", "&#", "&#x3D;", "&amp;", "&amp;amp;", "=", "=3D",
    "=\n", "\n", "\na1b2", "abc\n> ", "abc\r\n+a1", "abc\n   ", "'", '"', "a'", '"+', '" "', 'a"  +', "a'b", "`\n", "\uff21", "QUJD", "REJf", "QUJDREVG=", "Cookie: a=", "Set-Cookie:", "curl -b a=", "mysql -p", "mysql ", " -u a ", " -u a -p ",
    "echo a |", "echo abc | sudo ", "sudo -S ", "<<<", "sudo <<<", "a:1:", "a:1:b:c:", "*:*:", "a:bcd1@", "bob:", "@", "config set ", "config set token ", "config a token ", "name: ", "name: token ", "name=token {", 'variable "', "key=password value",
    "<a>", "<password a", "<key>", "<password><![CDATA[", "send ", "password send ", "pass:", "define('token',", "('password', '", '--token","', "login -p", "scott/", ":thin:a/", "login x password ", "sqlplus a/",
    "net use a b ", "net user ", "encrypt_string a ", "identified with a by ", "create password '", "redis-cli a auth ", "add_user a ", "htpasswd -b a ", "requirepass ", "</b>", "<a ", "</a ", "a`", "x`$", "\x9d", "\x1b]\x9d", 'KEY+="',
    'a";KEY+="', "/bot1234567:", "_password a ", "wpa_passphrase a ", "mysql -p x1", "[123;", "[1m",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_wrapping_without_end_takes_time_that_grows_with_its_length(unit):
    """Bounded by the timeout of the test, generously: a pattern that is quadratic takes minutes here."""
    text = (unit * (30_000 // len(unit) + 1))[:30_000]
    assert all(0 <= one.start < one.end <= len(text) for one in find(text))
