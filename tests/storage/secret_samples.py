"""Secrets of every format in the places where people leave them, and what looks like one and is none.

All are generated: a real one has no place here. Used by the tests and by ``tests/measure_secrets.py``.
"""

import base64
import hashlib
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


class Sample(NamedTuple):
    """A text, and the secret in it."""

    kind: str
    secret: str
    text: str


def _of(alphabet: str, length: int, rng: random.Random) -> str:
    """Characters of an alphabet; one digit at least, as keys have."""
    drawn = rng.choices(alphabet, k=length - 1)
    drawn.insert(rng.randrange(1, length), rng.choice([c for c in alphabet if c.isdigit()]))
    return "".join(drawn)


def _jwt(rng: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': str(rng.random()), 'iat': 1516239022})}.{_of(WORD, 43, rng)}"


def _snowflake(rng: random.Random) -> str:
    return base64.b64encode(str(rng.randrange(10**17, 10**18)).encode()).rstrip(b"=").decode()


def _pem(rng: random.Random, kind: str = "RSA ") -> str:
    lines = "\n".join(_of(ALNUM + "+/", 64, rng) for _ in range(12))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "aws access key": lambda r: "AKIA" + _of(UPPER, 16, r),
    "aws temporary key": lambda r: "ASIA" + _of(UPPER, 16, r),
    "github classic": lambda r: "ghp_" + _of(ALNUM, 36, r),
    "github app": lambda r: "ghs_" + _of(ALNUM, 36, r),
    "github fine-grained": lambda r: "github_pat_" + _of(ALNUM, 22, r) + "_" + _of(ALNUM, 59, r),
    "gitlab": lambda r: "glpat-" + _of(WORD, 20, r),
    "gitlab runner": lambda r: "glrt-" + _of(WORD, 20, r),
    "slack bot": lambda r: f"xoxb-{r.randrange(10**10, 10**11)}-{r.randrange(10**11, 10**12)}-" + _of(ALNUM, 24, r),
    "slack app": lambda r: f"xapp-1-A{_of(UPPER, 10, r)}-{r.randrange(10**12)}-" + _of(HEX, 64, r),
    "slack webhook": lambda r: f"https://hooks.slack.com/services/T{_of(UPPER, 8, r)}/B{_of(UPPER, 8, r)}/" + _of(ALNUM, 24, r),
    "stripe": lambda r: "sk_live_" + _of(ALNUM, 24, r),
    "stripe restricted": lambda r: "rk_test_" + _of(ALNUM, 24, r),
    "stripe webhook": lambda r: "whsec_" + _of(ALNUM, 32, r),
    "google": lambda r: "AIza" + _of(WORD[:-1], 35, r),
    "google oauth": lambda r: "GOCSPX-" + _of(ALNUM, 28, r),
    "google access": lambda r: "ya29.a0" + _of(ALNUM, 120, r),
    "openai": lambda r: f"sk-{_of(ALNUM, 20, r)}T3BlbkFJ{_of(ALNUM, 20, r)}",
    "openai project": lambda r: "sk-proj-" + _of(WORD, 100, r) + "A",
    "anthropic": lambda r: "sk-ant-api03-" + _of(WORD, 93, r) + "AA",
    "openrouter": lambda r: "sk-or-v1-" + _of(HEX, 64, r),
    "groq": lambda r: "gsk_" + _of(ALNUM, 52, r),
    "hugging face": lambda r: "hf_" + _of(ALNUM, 34, r),
    "npm": lambda r: "npm_" + _of(ALNUM, 36, r),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + _of(WORD, 140, r) + "A",
    "rubygems": lambda r: "rubygems_" + _of(HEX, 48, r),
    "docker hub": lambda r: "dckr_pat_" + _of(ALNUM, 27, r),
    "twilio": lambda r: "SK" + _of(HEX, 32, r),
    "sendgrid": lambda r: f"SG.{_of(ALNUM, 22, r)}.{_of(ALNUM, 43, r)}",
    "mailgun": lambda r: "key-" + _of(HEX, 32, r),
    "mailchimp": lambda r: _of(HEX, 32, r) + "-us12",
    "telegram": lambda r: f"{r.randrange(10**9, 10**10)}:AA" + _of(ALNUM, 33, r),
    "discord": lambda r: f"{_snowflake(r)}.{_of(ALNUM, 6, r)}.{_of(ALNUM, 38, r)}",
    "discord webhook": lambda r: f"https://discord.com/api/webhooks/{r.randrange(10**17, 10**18)}/" + _of(ALNUM, 68, r),
    "azure client secret": lambda r: f"{_of(ALNUM, 3, r)}8Q~" + _of(ALNUM, 34, r),
    "azure devops": lambda r: _of(ALNUM, 76, r) + "AZDO" + _of(ALNUM, 4, r),
    "shopify": lambda r: "shpat_" + _of(HEX, 32, r),
    "square": lambda r: "sq0csp-" + _of(ALNUM, 43, r),
    "digitalocean": lambda r: "dop_v1_" + _of(HEX, 64, r),
    "databricks": lambda r: "dapi" + _of(HEX, 32, r),
    "vault": lambda r: "hvs." + _of(ALNUM, 90, r),
    "terraform": lambda r: _of(ALNUM, 14, r) + ".atlasv1." + _of(ALNUM, 67, r),
    "grafana": lambda r: f"glsa_{_of(ALNUM, 32, r)}_{_of(HEX, 8, r)}",
    "sentry": lambda r: "sntrys_" + _of(ALNUM, 100, r),
    "atlassian": lambda r: "ATATT3xFfGF0" + _of(ALNUM, 180, r),
    "linear": lambda r: "lin_api_" + _of(ALNUM, 40, r),
    "notion": lambda r: "ntn_" + _of(ALNUM, 46, r),
    "tailscale": lambda r: f"tskey-auth-{_of(ALNUM, 12, r)}-{_of(ALNUM, 32, r)}",
    "new relic": lambda r: "NRAK-" + _of(UPPER, 27, r),
    "age": lambda r: "AGE-SECRET-KEY-1" + _of(UPPER, 58, r),
    "json web token": _jwt,
}  # fmt: skip
"""How a key or token of each provider is drawn."""

AROUND = (
    "{}", "the key is {} and no other", 'client = Client("{}")', "export THING={}\n", '{{"value": "{}", "n": 1}}',
    "2026-11-20T09:31:05Z INFO sent header: {}", '{{\\"a\\": \\"{}\\"}}', "- value: '{}'\n", "<v>{}</v>", "`{}`.",
)  # fmt: skip
"""Where a token stands; nothing but its own form tells what it is."""

NAMED = (
    "DB_PASSWORD={p}\n", "export API_TOKEN={t}", "db_password={p}", "PGPASSWORD='{p}' psql", "password: {p}\n", '  password: "{p}"\n',
    '{{"client_secret": "{t}"}}', "{{'api_key': '{t}'}}", '"{{\\"password\\": \\"{p}\\"}}"', "const apiKey = '{t}';",
    'password: str = "{p}"', 'let token: String = "{t}";', "connect(user='me', password='{p}')", "Server=db;User Id=sa;Password={p};Encrypt=true",
    "https://api.example.org/v1?access_token={t}&page=2", "login --password {p} --verbose", "tool --api-key={t}", 'os.environ["SECRET_KEY"] = "{t}"',
    "<password>{p}</password>", "aws_secret_access_key = {s}", "AccountKey={a};EndpointSuffix=core.windows.net", "clientSecret: '{t}',",
    "spring.datasource.password={p}", "secret-token: {t}", "ENV AUTH_TOKEN={t}", "docker run -e TOKEN={t} image", "app.secret_key = '{t}'",
    "[default]\npassword = {p}\nuser = me", '$env:API_KEY = "{t}"', "SECRET_KEY_BASE={h}",
)  # fmt: skip
"""Where the name tells: p a password, t a token, s 40 characters of base64, a 88 of them, h hexadecimal."""

PLACED = (
    "postgres://app:{p}@db.internal:5432/app", "redis://:{p}@cache:6379/0", "git clone https://bob:{t}@github.com/o/r.git", "amqp://u:{p}@mq/%2f",
    "mongodb+srv://root:{p}@cluster0.mongodb.net/?retryWrites=true", "Authorization: Bearer {t}", "-H 'Authorization: Basic {b}'",
    '{{"Authorization": "Bearer {t}"}}', "authorization=Token {t}", "Proxy-Authorization: Basic {b}", "curl -u admin:{p} https://example.org",
    "machine example.org login me password {p}", "//registry.npmjs.org/:_authToken={u}", '{{"auths": {{"r.io": {{"auth": "{b}"}}}}}}',
    "config.ini:14:password = {p}", "sshpass -p {p} ssh host", "https://acc.blob.core.windows.net/c?sv=2022-11-02&sig={g}&se=2027",
)  # fmt: skip
"""Where the place tells; b is user and password in base64, u a UUID, g a signature."""

HARMLESS = (
    "token: str", "password: string;", "token = next(tokens)", "self.password = password", "password=password", "secret = None", "token: Optional[str] = None",
    'password = os.environ["DB_PASSWORD"]', "password = getpass.getpass()", "API_KEY=${API_KEY}", "TOKEN=$TOKEN", "token: {{ secrets.TOKEN }}",
    "api_key: <your key>", 'api_key="your-api-key-here"', "password=changeme", "PASSWORD=xxxxxxxx", 'password="********"', "TOKEN=...", "secret: null",
    "max_tokens = 4096", "prompt_tokens: 1234567", "input_cost_per_token: 1.25e-05", "next_page_token=abc123def456", "--- PASS: TestLogin/case_12 (0.00s)",
    "bypass=option123", "public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", "primary_key=user_id2", "cache_key = 'user:42:v3'", 'TOKEN_URL = "https://example.org/oauth2/token"',
    "SECRET_FILE=/run/secrets/db1", 'token_type = "bearer2"', "class TokenV2(Token): pass", "password_hash_rounds=12", "raise InvalidToken('token42')", "git@github.com:org/repo.git",
    "https://example.org:8080/path@2", "sk-learn-contrib", 'class="sk-estimator-doc-link-2"', "use Bearer authentication", "Authorization: Bearer <token>", "Authorization: Bearer {token}",
    "http://user:password@localhost/", "postgres://user:${DB_PASSWORD}@db/app", "unexpected token: '5__dot__0'", "if token == value2:", "tokens[12] = token_12", "token=self.token2,",
    "password=args.password1)", "key = 'abc123def456'", "-----BEGIN PRIVATE KEY----- marks its beginning", 'HEAD = "-----BEGIN RSA PRIVATE KEY-----"\nTAIL = "-----END RSA PRIVATE KEY-----"',
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----", "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyDatabase-a1b2c3",
    'document.createElement("label",{htmlFor:"password"},"Password:"),e("b1c2d3e4")', "docker run -u 1000:1000 image", "The password is checked in login().",
    "eos_token: <|endoftext|>", 'tokenizer = "cl100k_base"', "the session token expires after 3600 s", "secretName: my-app-secret", "author: Ann42", "client_request_token: 5d41402abc4b2a76",
    "AUTH=CRAM-MD5", "monkey=banana123", "turkey = '1a2b3c4d5e'", '"token_count": 1200', "password_min_length: 12", "token = tokens.pop(0)", "secret = hmac.new(key, b'x', sha256).hexdigest()",
)  # fmt: skip
"""Code, prose and settings that name secrets and hold none."""


def samples(each: int = 3, seed: int = 7) -> Iterator[Sample]:
    """Every format in every place, with ``each`` different secrets."""
    rng = random.Random(seed)
    for kind, draw in TOKENS.items():
        for around in AROUND * each:
            secret = draw(rng)
            yield Sample(
                kind, secret.rpartition("/services/")[2].rpartition("/webhooks/")[2], around.format(secret)
            )
    for around in (*NAMED, *PLACED) * (each * 2):
        drawn = _values(rng)
        used = next(letter for letter in drawn if f"{{{letter}}}" in around)
        yield Sample(f"place: {around.strip()[:40]}", drawn[used], around.format(**drawn))
    for kind in ("RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ") * each:
        key = _pem(rng, kind)
        for text in (
            f"a\n{key}\nb",
            json.dumps({"private_key": key}),
            json.dumps(json.dumps({"k": key})),
            key.replace("\n", "\r\n"),
        ):
            yield Sample("private key", key.splitlines()[5], text)
        yield Sample("private key", key.splitlines()[5], key[:500])


def _values(rng: random.Random) -> dict[str, str]:
    password = _of(ALNUM, rng.randrange(10, 16), rng) + rng.choice(["", "!", "x#1", "Q~7"])
    return {
        "p": password,
        "t": _of(ALNUM, rng.choice([24, 32, 40]), rng),
        "s": _of(ALNUM + "/+", 40, rng),
        "a": _of(ALNUM + "/+", 86, rng) + "==",
        "h": _of(HEX, 128, rng),
        "b": base64.b64encode(f"bob:{password}".encode()).decode(),
        "u": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "g": _of(ALNUM, 43, rng) + "%3D",
    }


def hashes(count: int, seed: int = 11) -> Iterator[str]:
    """What machines draw and nobody need hide: object names, digests, UUIDs, lock files, images, minified code."""
    rng = random.Random(seed)
    for number in range(count):
        data = rng.randbytes(48)
        yield f"commit {hashlib.sha1(data, usedforsecurity=False).hexdigest()}\nAuthor: Ann <ann@example.org>"
        yield f'{{"id": "{uuid.UUID(bytes=data[:16], version=4)}", "parent_id": "{uuid.UUID(bytes=data[16:32], version=4)}"}}'
        yield f"requests==2.{number} \\\n    --hash=sha256:{hashlib.sha256(data).hexdigest()}"
        yield f'"resolved": "https://registry.example.org/a/-/a-{number}.tgz",\n"integrity": "sha512-{base64.b64encode(data + data[:16]).decode()}"'
        yield f"index {data.hex()[:7]}..{data.hex()[7:14]} 100644\n@@ -1 +1 @@\n-{data.hex()}\n+key: {data.hex()[:32]}"
        if number % 20 == 0:
            yield f'<img src="data:image/png;base64,{base64.b64encode(rng.randbytes(600)).decode()}">'
            yield f"function e(t,n){{var r=t.key,i=n.token;return r?i.slice(0,{number}):e(t,n)}}" * 20
