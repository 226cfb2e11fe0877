"""Secrets are replaced where text enters; code, prose and hashes stay as they are."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.events.types import Body, FileChange, ToolCallExecuted
from agentx.storage.secrets.redaction import clean, clean_struct, clean_value, find, redact

from .secret_samples import HARMLESS, Sample, hashes, samples

_SECRETS = {
    "AKIA" + "IOSFODNN7EXAMPLE": "aws",
    "ghp_" + "a1B2" * 9: "github",
    "github_pat_" + "a1B2_" * 14: "github",
    "glpat-" + "x1Y2z" * 4: "gitlab",
    "xoxb-" + "1234567890-abcdef": "slack",
    "sk-" + "a" * 48: "api key",
    "sk-ant-" + "api03-" + "b" * 40: "api key",
    "AIza" + "S" * 35: "google",
    "npm_" + "a" * 36: "npm",
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20: "web token",
}


@pytest.mark.parametrize("secret", _SECRETS, ids=list(_SECRETS.values()))
@pytest.mark.parametrize(
    "around",
    ["{}", "key = '{}',", "Authorization: Bearer {}\n", '{{"k": "{}"}}', "({})", "é\u3000{}\u00a0漢 \ud83d"],
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


PIECES = st.sampled_from(
    [
        *HARMLESS,
        *(sample.text for sample in samples(each=1)),
        "[redacted: secret]",
        "password=",
        "'",
        '"',
        "\\n",
        "@",
        "=",
        " ",
    ]
)


@settings(derandomize=True, max_examples=500)
@given(st.lists(PIECES | st.text(max_size=12), max_size=8))
def test_redacting_again_changes_nothing_whatever_stands_beside_a_secret(pieces):
    once = redact("".join(pieces))
    assert redact(once) == once


@functools.cache
def every_sample() -> dict[str, list[Sample]]:
    drawn: dict[str, list[Sample]] = {}
    for sample in samples():
        drawn.setdefault(sample.kind, []).append(sample)
    return drawn


@pytest.mark.parametrize("kind", sorted({sample.kind for sample in samples(each=1)}))
def test_a_secret_of_every_format_is_found_in_every_place(kind):
    for sample in every_sample()[kind]:
        told = redact(sample.text)
        assert sample.secret not in told
        assert len(sample.secret) < 18 or sample.secret[9:18] not in told, "some of it is left"


@pytest.mark.parametrize("text", HARMLESS)
def test_code_and_prose_that_name_secrets_hold_none(text):
    assert redact(text) == text


def test_hashes_uuids_images_and_minified_code_are_no_secrets():
    found = [(text, find(text)) for text in hashes(2_000) if find(text)]
    assert not found


def test_a_finding_says_what_it_is_and_where():
    text = "x = 1\nDB_PASSWORD=hunter2hunter2\n"
    assert [(f.rule, text[f.start : f.end]) for f in find(text)] == [("secret", "hunter2hunter2")]


def test_a_value_is_a_secret_where_its_key_says_so():
    value = clean_value(
        {"password": "hunter22", "env": {"API_KEY": "abc123def456"}, "token": None, "tokens": 12}
    )
    assert value == {
        "password": "[redacted: secret]", "env": {"API_KEY": "[redacted: secret]"}, "token": None, "tokens": 12,
    }  # fmt: skip


def test_every_text_of_a_struct_is_cleaned_at_any_depth():
    secret = "ghp_" + "a1B2" * 9
    call = ToolCallExecuted(
        call_id="1", tool="t", status="FAILED", output=Body(secret), command=f"curl -H {secret}",
        arguments={"a": [{"b": secret}], secret: 1, "n": 1.5}, changes=(FileChange("a"),),
    )  # fmt: skip
    assert secret not in str(clean_struct(call))
    assert clean_struct(call).arguments["n"] == 1.5
    assert clean_struct(call).changes == call.changes


HOSTILE = (
    "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\nAAAAAAAA\n", "eyJ", "eyJaaaaaaaaaaaa.eyJ", "a://", "://a:", "TOKEN", "token=", "token=a",
    "token:a", 'password: "', "password='a\\'", "secret=1a2b3c4d", "curl -u a:b ", "login a password ", "authorization: bearer ", "Bearer aaaa", "A_", "x", " ",
    "export ", "sk-", "ghp_a", "MTa.", "a.b-", "<password>", "[redacted: ", "--token ", "1234567890:AA", "0123456789abcdef", "AccountKey=/+", "xoxb-a", "ops_eyJ",
)  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_grows_with_the_length_of_the_text_and_not_with_its_square(unit):
    """Bounded by the timeout of the test, generously: a pattern that is quadratic takes hours here."""
    redacted = redact((unit * (100_000 // len(unit) + 1))[:100_000])
    assert find(redacted) == []
