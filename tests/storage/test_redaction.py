"""Secrets are replaced where text enters; code, prose and hashes stay as they are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.events import Body, FileChange, ToolCallExecuted
from agentx.storage.redaction import clean, clean_struct, redact

_SECRETS = {
    "AKIA" + "IOSFODNN7EXAMPLE": "aws",
    "ghp_" + "a1B2" * 9: "github",
    "github_pat_" + "a1B2_" * 14: "github",
    "glpat-" + "x" * 20: "gitlab",
    "xoxb-" + "1234567890-abcdef": "slack",
    "sk-" + "a" * 48: "api key",
    "sk-ant-" + "api03-" + "b" * 40: "api key",
    "AIza" + "S" * 35: "google",
    "npm_" + "a" * 36: "npm",
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20: "web token",
}


@pytest.mark.parametrize("secret", _SECRETS, ids=list(_SECRETS.values()))
@pytest.mark.parametrize(
    "around", ["{}", "key = '{}',", "Authorization: Bearer {}\n", '{{"k": "{}"}}', "({})"]
)
def test_a_key_or_token_is_replaced_wherever_it_stands(secret, around):
    told = redact(around.format(secret))
    assert secret not in told
    assert "[redacted: " in told


def test_a_private_key_is_replaced_even_where_its_end_was_cut_off():
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 50
    assert "MIIEow" not in redact("before\n" + key)
    whole = redact(f"before {key}-----END RSA PRIVATE KEY----- after")
    assert whole == "before [redacted: private key] after"


@pytest.mark.parametrize(
    "text",
    [
        "The password is checked in login().",
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "https://example.org:8080/path@2",
        "git@github.com:org/repo.git",
        "TOKEN = os.environ['TOKEN']",
        "MAX_TOKENS = 4000",
        "PASSWORD=$SECRET",
        "sk-learn is a library",
        "the sha256 is 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "line", ["API_KEY=abcdef123456", "export DB_PASSWORD='hunter2hunter2'", '{"AUTH_TOKEN": "abcdefgh1234"}']
)
def test_an_assignment_to_a_name_that_says_so_is_replaced(line):
    assert "[redacted: secret]" in redact(line)


@given(st.text(max_size=200))
def test_what_was_cleaned_is_valid_and_stays_as_it_is(text):
    once = clean(text)
    assert once.encode().decode() == once
    assert clean(once) == once


def test_every_text_of_a_struct_is_cleaned_at_any_depth():
    secret = "ghp_" + "a1B2" * 9
    call = ToolCallExecuted(
        call_id="1", tool="t", status="FAILED", output=Body(secret), command=f"curl -H {secret}",
        arguments={"a": [{"b": secret}], secret: 1, "n": 1.5}, changes=(FileChange("a"),),
    )  # fmt: skip
    assert secret not in str(clean_struct(call))
    assert clean_struct(call).arguments["n"] == 1.5
    assert clean_struct(call).changes == call.changes


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\n" * 10_000, "eyJ" + "a" * 300_000, "a://" * 80_000, "TOKEN" * 60_000,
        "export " + " " * 300_000, "sk-" * 100_000, "eyJaaaaaaaaaaaa.eyJ" * 15_000, "A_" * 150_000, "x" * 300_000,
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_text_made_to_be_slow_is_not(text):
    """Bounded by the timeout of the test, generously: a pattern that is quadratic takes hours here."""
    started = time.process_time()
    redact(text * 3)
    assert time.process_time() - started < 60
