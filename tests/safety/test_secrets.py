"""No secret that the user or a tool shows reaches the disk, in whatever form; what is no secret stays as it is."""

import base64
import json
import os
import random
import string
import urllib.parse

import pytest

from agentx import Workspace
from agentx.settings import Settings

ALNUM = string.ascii_letters + string.digits


def drawn(rng):
    """A password, a token, 40 characters of base64, 20 bytes in base32, and six lines of a key."""

    def of(letters, length):
        made = rng.choices(letters, k=length - 4)
        return "".join([*made[:3], "q7R", *made[3:], "4"])

    return {
        "p": rng.choice(
            [of(ALNUM, 13), "Falcon-" + of(ALNUM, 9), "Tundra" + str(rng.randrange(1000, 9999)) + "!"]
        ),
        "q": of(ALNUM, 12) + "#1x",
        "t": of(ALNUM, 32),
        "s": of(ALNUM + "/+", 40),
        "B": base64.b32encode(rng.randbytes(20)).decode(),
        "m": "\n".join(of(ALNUM + "/+", 64) for _ in range(6)),
    }


def filled(text, values):
    """A text with its secrets, and what of them may not be left."""
    used = [name for name in values if f"{{{name}}}" in text]
    for name in used:
        text = text.replace(f"{{{name}}}", values[name])
    return text, [part for name in used for part in values[name].split("\n")]


def b64(text):
    return base64.b64encode(text.encode()).decode()


def quoted(text):
    return urllib.parse.quote(text, safe="")


FORMS = {
    "blocks of YAML": [
        "password: |\n  {p}\nuser: bob\n", "password: >-\n  {p}\n", "db:\n  password: |-\n    {p}\n  host: x\n", "api_token: |2 # of the api\n    {t}\n", "token: !!str |\n  {t}\n", "token: |+\n\n    {t}\n", "password = <<~EOS\n  {p}\nEOS\n", "password=<<EOF\n{p}\nEOF\n",
    ],
    "texts of several lines": ['password = """\n{p}"""\n', 'password = """{p}"""\n', "api_key = '''{t}'''\n", 'val token = """\n    {t}\n    """'],
    "SQL": [
        "CREATE USER bob PASSWORD '{p}';", 'CREATE USER bob PASSWORD "{p}"', "CREATE USER app WITH PASSWORD $${p}$$;", "ALTER ROLE app PASSWORD $tag${p}$tag$;",
        "INSERT INTO users (name, password) VALUES ('bob', '{p}'), ('ann', '{q}');", "insert into t (id, api_token, at)\nvalues (1, E'{t}', now());",
    ],
    "declarations": [
        '#define WIFI_PASSWORD "{p}"', "#define API_TOKEN {t}", '#define DB_PASS ("{p}")', 'password := "{p}"', 'const ApiToken string = "{t}"', 'Token: []byte("{t}"),', "var dbPassword = `{p}`",
        'const PASSWORD: &str = "{p}";', 'let password = String::from("{p}");', 'let token = r#"{t}"#;', "const SECRET: &'static str = \"{t}\";", '.password("{p}")',
        'static API_KEY: Lazy<String> = Lazy::new(|| "{t}".into());', 'Dim password As String = "{p}"', 'std::string password{"{p}"};', 'char password[] = "{p}";', "password <- '{p}'", 'my $password = "{p}";',
        "our %cfg = (password => '{p}');", 'private const string Password = "{p}";', 'NSString *const kApiSecret = @"{t}";', "mavenPassword={p}", "await page.fill('#password', '{p}')",
        'driver.find_element(By.ID, "password").send_keys("{p}")', 'user.set_password("{q}")', 'smtp.login("bob@example.org", "{q}")', 'auth=("bob", "{q}")', '(setq my-password "{q}")',
    ],
    "tables": [
        "| user | password |\n|------|----------|\n| bob  | {p} |\n| ann | `{q}` |\n", "user,password,role\nbob,{p},admin\nann,{q},user\n", "username\tpassword\nbob\t{p}\n", "id;api_token\n1;{t}\n",
        " id | name | password\n----+------+---------\n  1 | bob  | {p}\n(1 row)\n", "+------+----------+\n| user | password |\n+------+----------+\n| bob  | {p} |\n+------+----------+\n",
        "<table><tr><th>user</th><th>password</th></tr><tr><td>bob</td><td>{p}</td></tr></table>", "NAME   PASSWORD     ROLE\nbob    {p}   admin\n", '"user","password"\n"bob, jr","{p}"\n',
        "Access key ID,Secret access key\nAKIAQ7RKZW91LMXC4TBN,{s}\n", "User name,Password,Access key ID,Secret access key,Console login link\nbob,{p},AKIAQ7RKZW91LMXC4TBN,{s},https://1.signin.aws.amazon.com/console\n",
    ],
    "records": [
        '{"log":{"entries":[{"request":{"headers":[{"name":"X-Api-Key","value":"{t}"},{"name":"Accept","value":"*/*"}]}}]}}', '{"value": "{p}", "name": "password"}', '{"name":"Authorization","value":"Bearer {t}"}',
        '{"cookies":[{"name":"sessionid","value":"{t}","path":"/"}]}', '{"name":"Cookie","value":"lang=en; sessionid={t}"}', '{"kty":"oct","k":"{t}"}', "<init-param><param-name>password</param-name><param-value>{p}</param-value></init-param>",
    ],
    "Windows": [
        '$pw = ConvertTo-SecureString "{p}" -AsPlainText -Force', "ConvertTo-SecureString -String '{p}' -AsPlainText -Force", "ConvertTo-SecureString -AsPlainText -Force '{p}'", "ConvertTo-SecureString {p} -AsPlainText -Force",
        'setx DB_PASSWORD "{p}"', "setx DB_PASSWORD {p} /M", "setx /M API_KEY {t}",
    ],
    "base32": ["TOTP_SECRET={B}", "otpauth://totp/Ex:bob@example.org?secret={B}&issuer=Ex", "totp secret: {B}"],
    "keys without their first line": [
        "{m}\n-----END RSA PRIVATE KEY-----\n", "a\n{m}\n-----END PRIVATE KEY-----", "key: -----BEGIN PRIVATE KEY-----{m}", "  {m}\n  -----END EC PRIVATE KEY-----", "MIIEpAIBAAKCAQEA{t}\n{m}\n", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ{t}\n{m}\n", "MHcCAQEEI{s}{s}",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{m}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    ],
    "sentences": ["password is {q}", "your password is: {q}", "The api key is {t}.", "Temporary password: {q}", "login: bob / password: {q}", "**Password:** {q}", "Password ........ {q}", "use token {t}", "password\t{q}", "// password: {q}", "<dt>Password</dt><dd>{q}</dd>", "<tr><td>Password</td><td>{q}</td></tr>"],
}  # fmt: skip


@pytest.fixture(scope="module")
def ws(tmp_path_factory):
    lexical = Settings(environ=dict(os.environ), cache_dir=tmp_path_factory.mktemp("no-models"))
    with Workspace.create(
        tmp_path_factory.mktemp("secrets") / "task", title="Secrets", settings=lexical
    ) as opened:
        yield opened


def said(ws, text):
    """What the history has of a message."""
    ws.say(text)
    return ws.state.messages[-1].text


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(ws, form):
    rng, every = random.Random(form), []
    for text in FORMS[form]:
        for _ in range(2):
            whole, secrets = filled(text, drawn(rng))
            every += secrets
            told = said(ws, whole)
            assert not [one for one in secrets if one in told], text
            assert said(ws, told) == told, "redacting again changes it"
    history = (ws.root / "history.jsonl").read_text()
    assert not [one for one in every if one in history]


PASSWORD = "DB_PASSWORD=hx7q7RkZw91Lm"
LAYERS = {
    "base64 twice": b64(b64(PASSWORD)),
    "base64 five times": b64(b64(b64(b64(b64(PASSWORD))))),
    "percent, then base64": b64(quoted(f"a=1&{PASSWORD.lower()}")),
    "base64, then percent": quoted(f"{b64(PASSWORD)}="),
    "base64 in JSON in base64": b64(json.dumps({"log": b64(f"a\n{PASSWORD}\n")})),
    "base64 without padding, for URLs, twice": base64.urlsafe_b64encode(b64(f"x=1;{PASSWORD}").encode()).decode().rstrip("="),
    "base32": base64.b32encode(PASSWORD.encode()).decode(),
    "base64 of base32": b64(base64.b32encode(PASSWORD.encode()).decode()),
    "base32 of base64": base64.b32encode(b64(PASSWORD).encode()).decode(),
    "a token, twice": b64(b64("ghp_" + "a1B2" * 9)),
}  # fmt: skip


@pytest.mark.parametrize("layers", LAYERS)
def test_a_secret_is_found_behind_up_to_five_layers(ws, layers):
    for around in ("data: {}\n", "{}", '{{"state": "{}", "n": 1}}', "https://example.org/?state={}&page=2"):
        whole = around.format(LAYERS[layers])
        told = said(ws, whole)
        assert told == around.replace("{}", "[redacted: secret]").format() or LAYERS[layers][:-8] not in told
        assert "[redacted: " in told


HARMLESS = (
    "password: |\n  The password must be rotated\n  every 90 days.\n", "token: |\n  {{ .Values.token }}\n", "secret: |\n  # to be filled in\n", 'password = """\nEnter the password:\n"""',
    "#define PASSWORD_MAX 64", "#define TOKEN_EOF 258", "#define SECRET_LEN 32u", '#define AUTH_TOKEN_HEADER "X-Auth-Token"', "const TokenEOF Token = 1 << 3", "token := lexer.NextToken()", 'password := flag.String("password", "", "the password")',
    'let token = String::from("token");', "let password = String::new();", 'let token = env::var("API_TOKEN").unwrap();', 'password = os.environ.get("DB_PASSWORD")', 'val dbPassword = System.getenv("DB_PASSWORD_2")', "private String password;",
    "CREATE USER bob PASSWORD :'pw';", "CREATE USER bob WITH PASSWORD '<password>';", "ALTER USER bob PASSWORD EXPIRE;", "password VARCHAR(255) NOT NULL,", "INSERT INTO users (name, password) VALUES (?, ?);", "INSERT INTO users (name, password) VALUES ($1, $2);",
    "| column | type |\n|---|---|\n| password | varchar(255) |\n| token | uuid2 |", "| option | default |\n|---|---|\n| password | none |\n| port | 5432 |", "user,password,role\nbob,,admin\nann,changeme,user\n", "name,token_count,cost\nrun1,1200,0.3",
    "| Password | Result |\n|---|---|\n| too short | rejected |\n| valid one | accepted |", "user | last_password_change\nbob | 2026-01-02\n", "file,tokens,lines\na1.py,2331,120\nb2.py,441,11", "| endpoint | token required |\n|---|---|\n| /v1/users2 | yes |",
    "f(\n    api_key,\n    model=model2,\n    api_base=litellm_params.api_base2,\n)", "from m import (\n    A1,\n    load_es256_private_key,\n    rfc7638_thumbprint,\n)", "a,\n        MCPAuth.token,\n        MCPAuth.oauth2_id_jag,\n", "key, secret, token = f(x1)\na, b2, sha256 = g()\n",
    "- Pass model via query: `?model=claude-account-1`\n- Pass model via form field: `model=claude-account-1`", "curl -H 'Authorization: Bearer your-api-key' \\\n-F 'file=@audio.mp3' \\\n-F 'model=whisper-1'", '<input name="password" id="field9x8y7z6w" type="password">',
    '["Pass Through Endpoint: ",n.path]}),(0,t.jsx)("text-xl")', '{"name": "password", "description": "The password of the user, see RFC2617"}', '{"name": "token", "value": "$TOKEN"}', '{"kty":"RSA","n":"x","e":"AQAB"}', '{"name":"lang","value":"en-US-2"}',
    "ConvertTo-SecureString $env:PASSWORD -AsPlainText -Force", "ConvertTo-SecureString -String $plain -AsPlainText -Force", 'setx JAVA_HOME "C:\\Program Files\\Java\\jdk-17"', "setx TOKEN_FILE C:\\Users\\bob\\token1.txt",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\nRTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQLEwpDeWJlclRydXN0MSIwIAYD\n-----END CERTIFICATE-----", "A key ends with -----END RSA PRIVATE KEY----- on a line of its own.",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAq1w2e3r4t5y6u7i8o9p0\n-----END PUBLIC KEY-----", "MFRGGZDFMZTWQ2LKMFRGGZDFMZTWQ2LK", "JBSWY3DPEBLW64TMMQQHI2DFOJSSA5DPEB4W65I=", "SGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0",
    "The secret is out: version2 ships today.", "The api key is required2.", "Root password is set by the installer2.", "the token is refreshed every 15min", "secret sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bd82200d15d6c15b0f00a", "token 550e8400-e29b-41d4-a716-446655440000",
    "assertEqual(token, s3Client2PoolV2)", "token s3Client2Pool", "signing key 3AA5C34371567BD2", "password for ann42@example.org", 'secret "default-token-x7k2p" created', "login(username, password2)", 'page.getByLabel("Password").fill(password2)', "setPassword(newPassword2)",
    'user.check_password("password1")', "headers: { Authorization: `Bearer ${token2}` }", "auth=(user1, password2)", 'create_user("bob", "bob@example.org", None)', "psk: pre-shared key, see RFC4279", "token expired at 20261128T101500Z",
)  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(ws, text):
    assert said(ws, text) == text


UNITS = (
    "password: |\n  ", "password: |\n  x1y2z3w4\n", "| password | token |\n", "password,token\n", "password,token\nq7RkZw91,x\n", "a,password\tb|c;d  e\n", "<th>password</th>", "<tr><th>a</th><th>token</th>", "<tr", "password</a><b>", "password = <<E\n", "password = <<E\n\n\n", "(password) values (", "('a', ", "values (password) ",
    "-----END RSA PRIVATE KEY-----\n", "AAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n", "AAAAAAAAAAAAAAAAAAAA\n", "IBAAK", "MIIabcIBAAKAAAAAAAAAAAAAAAAAAAAA\n", '"kty" "d":"', 'password = """', "password $$", "password = String::from(", "password is a b c ", "token .........", "securestring -a ",
    "password&'a ", '"name":"cookie","value":"a=', '"value":"a","name":"token', "auth('a','", "EEEEEEEE", b64(b64(b64("password "))), b64("%25252525"), "password => ", "token\n  ",
)  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", UNITS)
def test_forms_without_end_take_time_that_grows_with_their_length(ws, unit):
    """Bounded by the timeout of the test, generously: what is quadratic takes hours here."""
    text = (unit * (60_000 // len(unit) + 1))[:60_000]
    assert said(ws, text)
