"""Secrets behind every kind of wrapping, in places that were missed before, and harmless texts that look like them.

Everything is generated.
"""

import base64
import hashlib
import json
import quopri
import random
import textwrap
import urllib.parse
from collections.abc import Callable, Iterator, Sequence

from .secret_samples import ALNUM, HEX, TOKENS, Sample, _of


def _cut(text: str, secret: str, by: str, at: float = 0.5) -> str:
    """Put something into the middle of the secret in a text."""
    place = text.index(secret) + int(len(secret) * at)
    return text[:place] + by + text[place:]


def _shell(text: str, secret: str) -> str:
    return _cut(text, secret, "''")


WRAPPINGS: dict[str, Callable[[str, str], str]] = {
    "a colour before": lambda t, s: t.replace(s, f"\x1b[31m{s}\x1b[0m"),
    "a colour within": lambda t, s: _cut(t, s, "\x1b[1;32m"),
    "colours that were escaped": lambda t, s: t.replace(s, f"\\u001b[31m{s}\\u001b[0m"),
    "colours in octal": lambda t, s: t.replace(s, f"\\033[0;31m{s}\\033[0m"),
    "colours as cat -v shows them": lambda t, s: t.replace(s, f"^[[33m{s}^[[0m"),
    "a colour whose ESC was lost": lambda t, s: t.replace(s, f"[33m{s}[0m"),
    "a hyperlink of a terminal": lambda t, s: t.replace(s, f"\x1b]8;;https://example.org\x1b\\{s}\x1b]8;;\x07"),
    "colours of grep in the middle": lambda t, s: t.replace(s, f"{s[:4]}\x1b[01;31m\x1b[K{s[4:9]}\x1b[m\x1b[K{s[9:]}"),
    "the address of a hyperlink": lambda t, s: f"\x1b]8;id=1;https://example.org/?v=1&token%3D{s}\x07open\x1b]8;;\x07" if "://" not in t else f"\x1b]8;;{t}\x1b\\open\x1b]8;;\x1b\\",
    "a backslash in the middle": lambda t, s: _cut(t, s, "\\", 0.4) if s[int(len(s) * 0.4)] in "6ghijk9GHIJKqz" else t,
    "a backtick in the middle": lambda t, s: _cut(t, s, "`", 0.4) if '"' in t else t,
    "tags around": lambda t, s: f'<span class="k">{t.replace(s, f"</span><b>{s}</b>")}' if "=" in t or ": " in t else f"<code>{t}</code>",
    "an append": lambda t, s: f'TOKEN="{s[: len(s) // 2]}"; TOKEN+="{s[len(s) // 2 :]}"' if t.startswith("export") else t,
    "overstruck": lambda t, s: t.replace(s, "".join(f"{one}\b{one}" for one in s)),
    "an escaped line feed before": lambda t, s: f"first\\n{t}\\nlast",
    "an escaped tab before": lambda t, s: f"first\\t{t}\\tlast",
    "an escaped line feed, twice": lambda t, s: f"first\\\\n{t}\\\\nlast",
    "an escape of the first sign": lambda t, s: t.replace(s, f"\\x{ord(s[0]):02x}{s[1:]}"),
    "every sign escaped": lambda t, s: t.replace(s, "".join(f"\\u{ord(one):04x}" for one in s)),
    "JSON": lambda t, s: json.dumps({"a": f"x\n{t}\n", "b": 1}),
    "JSON in JSON": lambda t, s: json.dumps({"log": json.dumps({"m": f"x\n{t}\ty"})}),
    "JSON in JSON in JSON": lambda t, s: json.dumps(json.dumps(json.dumps([f"x\n{t}"]))),
    "percent": lambda t, s: urllib.parse.quote(t, safe=""),
    "percent, twice": lambda t, s: urllib.parse.quote(urllib.parse.quote(t, safe=""), safe=""),
    "a query": lambda t, s: "https://example.org/?next=" + urllib.parse.quote(f"x {t} y", safe=""),
    "every sign in percent": lambda t, s: t.replace(s, "".join(f"%{ord(one):02x}" for one in s)),
    "entities": lambda t, s: f"&lt;b&gt;{t.replace('=', '&#61;').replace(chr(34), '&quot;')}&lt;/b&gt;",
    "entities of every sign": lambda t, s: t.replace(s, "".join(f"&#x{ord(one):x};" for one in s)),
    "a line end": lambda t, s: _cut(t, s, "\n"),
    "a line end and an indent": lambda t, s: _cut(t, s, "\n        "),
    "a line end of DOS": lambda t, s: _cut(t, s, "\r\n"),
    "lines of a terminal": lambda t, s: textwrap.fill(f"xx {t}", len(s) // 2 + 8, break_on_hyphens=False) + "\n",
    "a quoted mail": lambda t, s: f"> {_cut(t, s, chr(10) + '> ')}\n> bye",
    "a diff": lambda t, s: f"+{_cut(t, s, chr(10) + '+')}",
    "comments": lambda t, s: f"# {_cut(t, s, chr(10) + '# ')}",
    "a log": lambda t, s: f"2026-11-20T09:31:05Z INFO {_cut(t, s, chr(10) + '2026-11-20T09:31:05Z INFO ')}",
    "a log of containers": lambda t, s: f"web-1  | {_cut(t, s, chr(10) + 'web-1  | ')}",
    "a backslash at the line end": lambda t, s: _cut(t, s, "\\\n"),
    "a backslash and an indent": lambda t, s: _cut(t, s, "\\\n    "),
    "quoted-printable": lambda t, s: quopri.encodestring(_cut(t.replace("=", "=3D"), s, "=\n").encode()).decode().replace("=3D3D", "=3D").replace("=3D\n", "=\n"),
    "quotes of a shell": _shell,
    "double quotes of a shell": lambda t, s: _cut(t, s, '""', 0.3),
    "strings that are added": lambda t, s: _cut(t.replace(s, f'"{s}"') if '"' not in t and "'" not in t else t, s, '" + "'),
    "strings beside each other": lambda t, s: _cut(t.replace(s, f'"{s}"') if '"' not in t and "'" not in t else t, s, '"\n    "'),
    "a sign without width": lambda t, s: _cut(t, s, "\u200b", 0.2),
    "marks of direction": lambda t, s: t.replace(s, f"\u202d{s}\u202c"),
    "a soft hyphen": lambda t, s: _cut(t, s, "\xad"),
    "fullwidth signs": lambda t, s: t.replace(s, "".join(chr(ord(one) + 0xFEE0) for one in s)),
    "base64": lambda t, s: f"data: {base64.b64encode(t.strip().encode()).decode()}\n",
    "base64 for URLs": lambda t, s: f"state={base64.urlsafe_b64encode(f'x=1&{t.strip()}'.encode()).decode().rstrip('=')}&y=2",
}  # fmt: skip
"""How a text with a secret is wrapped."""

_INLINE = (
    "strings",
    "quotes",
    "double quotes",
    "overstruck",
    "fullwidth",
    "every sign",
    "an escape of",
    "entities of",
)

PLACES = (
    "export TOKEN={f}", "DB_PASSWORD={p}", '"password": "{p}"', "api_key = '{t}'", "Authorization: Bearer {t}", "postgres://app:{p}@db/app",
)  # fmt: skip


def wrapped(each: int = 2, seed: int = 3) -> list[Sample]:
    """Every wrapping around a few places and formats, with fresh secrets."""
    rng = random.Random(seed)
    formats = sorted(
        set(TOKENS) - {"slack webhook", "discord webhook", "json web token", "terraform", "twilio", "mailgun"}
    )
    made: list[Sample] = []
    for number in range(each):
        for kind, wrap in WRAPPINGS.items():
            place = PLACES[0] if kind.startswith("fullwidth") or number % 3 == 0 else rng.choice(PLACES[1:])
            if kind.startswith(("quotes", "double")) and ('"' in place or "'" in place):
                place = PLACES[1]
            secret = _drawn(place, rng, formats)
            text = place.format(f=secret, p=secret, t=secret)
            made.append(Sample(f"{kind}: {place}", secret, wrap(text, secret)))
    return made


def _drawn(place: str, rng: random.Random, formats: Sequence[str]) -> str:
    if "{f}" in place:
        return TOKENS[rng.choice(formats)](rng)
    return _of(ALNUM, 32 if "{t}" in place else rng.randrange(14, 20), rng)


MISSED = (
    "ALTER USER bob WITH PASSWORD '{p}';", "CREATE USER 'bob'@'%' IDENTIFIED BY '{p}';", "create role app login password '{p}'", "SET PASSWORD FOR 'bob'@'h' = PASSWORD('{p}');",
    "ALTER USER bob IDENTIFIED WITH mysql_native_password BY '{p}'", "CREATE LOGIN bob WITH PASSWORD = N'{p}';", "htpasswd -b /etc/nginx/users bob {p}", "htpasswd -nbB bob {p}",
    "net use X: \\\\host\\share {p} /user:corp\\bob", "net user bob {p} /add", "ansible-vault encrypt_string '{p}' --name 'x'", "snmpwalk -v3 -u bob -A {p} host", "rabbitmqctl add_user bob {p}",
    "rabbitmqctl change_password bob {p}", "wpa_passphrase home {p}", "requirepass {p}", "redis-cli -h cache AUTH {p}", "usermod -p {p} bob", 'password="" password="{p}"',
    "POST https://api.telegram.org/bot123456789:{b}/sendMessage: dial tcp",
    "Cookie: lang=en; sessionid={t}; theme=dark", "Set-Cookie: sid={t}; Path=/; HttpOnly; SameSite=Lax", '{{"Cookie": "connect.sid={t}"}}',
    "curl -b 'session={t}' https://example.org", 'curl --cookie "auth={t}" https://example.org', "-H 'Cookie: JSESSIONID={u}'", "document.cookie = 'remember={t}'",
    "mysql -u root -p{p} app", "mysqldump -p'{p}' app > dump.sql", "mysqladmin -uroot -p{p} shutdown", "mariadb --user=root -p{p}", "redis-cli -h cache -a {p} ping",
    "redis-cli -a '{p}' INFO", "db.internal:5432:app:bob:{p}", "*:*:*:postgres:{p}\n", "localhost:5433:*:me:{p}", "echo {p} | sudo -S apt update", "echo '{p}' | sudo -kS ls",
    "sudo -S ls <<< '{p}'", "printf '%s\\n' {p} | docker login -u bob --password-stdin", "echo bob:{p} | chpasswd", "echo {p} | passwd --stdin bob",
    'variable "db_password" {{\n  type    = string\n  default = "{p}"\n}}', 'variable "api_token" {{\n  description = "for the api"\n  default     = "{t}"\n}}',
    "scp bob:{p}@host:/etc/x .", "connect to admin:{p}@db.internal:5432/app", "root:{p}@tcp(127.0.0.1:3306)/app", "user = bob:{p}@proxy.example.org:3128", "sqlplus scott/{p}@orcl",
    "jdbc:oracle:thin:scott/{p}@//db:1521/orcl", "git config --global github.token {t}", "npm config set //registry.npmjs.org/:_authToken {t}", "aws configure set aws_secret_access_key {s}",
    "pip config set global.index-url https://bob:{p}@pypi.example.org/simple", "gcloud config set auth/access_token {t}", "poetry config pypi-token.pypi {t}", "heroku config:set SECRET_KEY={t}",
    "agentx config set model.api_key {t}", "setx API_TOKEN {t}", "ENV DB_PASSWORD {p}", "doppler secrets set STRIPE_KEY {t}", "composer config --global github-oauth.github.com {h}",
    "sshpass -p{p} ssh host", "docker login -u bob -p {p} registry.example.org", "podman login registry.example.org --username bob -p {p}", "az login -u bob@example.org -p {p}",
    "openssl enc -aes-256-cbc -pass pass:{p}", "openssl rsa -in k.pem -passin 'pass:{p}'", "kubectl create secret generic db --from-literal=password={p}",
    "machine example.org\nlogin me\npassword {p}", "jdbc:mysql://db/app?user=me&password={p}&useSSL=false", "jdbc:sqlserver://db;user=sa;password={p};encrypt=true",
    "define('DB_PASSWORD', '{p}');", 'os.Setenv("API_TOKEN", "{t}")', 'props.put("password", "{p}");', '<password encrypted="false">{p}</password>',
    "<db:password><![CDATA[{p}]]></db:password>", '<add key="DbPassword" value="{p}" />', "<property name='hibernate.connection.password' value='{p}'/>",
    "<key>api_token</key>\n<string>{t}</string>", '<entry key="db.password">{p}</entry>', "- name: DB_PASSWORD\n  value: {p}\n", '{{"name": "API_TOKEN", "value": "{t}"}}',
    "ParameterKey=DBPassword,ParameterValue={p}", "7z x -p{p} a.7z", "unzip -P {p} a.zip", "ldapsearch -x -D cn=admin -w {p} -b dc=x", "http -a bob:{p} example.org",
    '["curl", "-u", "bob:{p}", "https://example.org"]', "['mysql', '-uroot', '-p{p}']", '["tool", "--password", "{p}"]', "smbclient -U bob%{p} //host/share",
    "mongosh --host db -u admin -p {p} --authenticationDatabase admin", "wget --user=bob --password={p} https://example.org", "curl --proxy-user bob:{p} https://example.org",
    "Authorization: ApiKey {t}", "Authorization: Custom {t}", 'expect "password:"\nsend "{p}\\r"', "keytool -list -storepass {p} -keystore k.jks", "xfreerdp /u:bob /p:{p} /v:host",
    "mosquitto_pub -h mq -u bob -P {p} -t x -m y", "helm registry login -u bob -p {p} example.org", "sqlcmd -S db -U sa -P {p} -Q 'select 1'",
)  # fmt: skip
"""Places that were missed: p a password, t a token, s 40 characters of base64, u a UUID without dashes, h 40 of hex."""


def missed(each: int = 1, seed: int = 5) -> list[Sample]:
    """Every such place with fresh secrets."""
    rng = random.Random(seed)
    made = []
    for place in MISSED * each:
        drawn = {
            "p": _of(ALNUM, rng.randrange(9, 16), rng) + rng.choice(["", "!", "#1"]),
            "t": _of(ALNUM, rng.choice([24, 32, 40]), rng), "s": _of(ALNUM + "/+", 40, rng), "b": _of(ALNUM, 35, rng), "u": _of(HEX, 32, rng).upper(), "h": _of(HEX, 40, rng),
        }  # fmt: skip
        used = next(letter for letter in drawn if f"{{{letter}}}" in place)
        made.append(Sample(f"missed: {place[:40]}", drawn[used], place.format(**drawn)))
    return made


def innocent(seed: int = 9) -> Iterator[str]:
    """Names of files, masked values, references, numbers and prose that no rule may take for a secret."""
    rng = random.Random(seed)

    def md5() -> str:
        return hashlib.md5(rng.randbytes(8), usedforsecurity=False).hexdigest()

    def b64(size: int) -> str:
        return base64.b64encode(rng.randbytes(size)).decode()

    for one in (*_HASHED, *_PLAIN):
        yield one.format(
            m=md5(), n=md5(), s=md5()[:8], h=md5() + md5()[:8], b=b64(60), c=b64(48), d=rng.randrange(10**9)
        )


_HASHED = (
    "cache-key-{m}", "key-{m}.js", "AC{m}.png", "SK{m}.jpg", "/assets/key-{m}", "static/AC{m}", "img_SK{m}", "build/key-{m}.css.map", "restore-key-{m}", "i18n-key-{m}: true",
    "cache:key-{m}:v2", "dist/main.{s}.js\ndist/vendor.{m}.js", "{m}  README.md\n{n}  LICENSE", "index {s}..{s} 100644\n+++ b/file", "commit {h}\ncommit {m}\n", 'etag: W/"{m}"',
    "Docker-Content-Digest: sha256:{m}{n}", "alpine:3.12@sha256:{m}{n}", "redis:7.2-alpine@sha256:{m}{n}", "uses: actions/checkout@{h}", "pkg:npm/left-pad@1.3.0", "npm:react2@18.2.0",
    "mailto:ann42@example.org", "To:bob1985@example.org", "git+ssh://git@github.com:org/repo2.git", "x.py:12:5:E501:line2long", "main.c:120:7:warning:unused2", "12:30:05 GET /a 200", "::1:5432",
    "integrity sha512-{b}", "-----BEGIN CERTIFICATE-----\n{c}\n{c}\n-----END CERTIFICATE-----", "data:image/png;base64,{b}", "ssh-rsa {b} bob@host", "\x1b[32m{h}\x1b[0m ok", "https://example.org/?h=%23{m}",
    "&lt;a id=&quot;{m}&quot;&gt;", "trace {m}\\n\\tat f(x.py:12)\\n", "version=1.2.3\\nhash={m}\\n", "https://example.org/?q=a%3Db%26c%3D{d}", "sha1:{h}", "request_id={m}", "X-Request-Id: {m}",
    "Set-Cookie: lang=en-US; Path=/; Max-Age=3600", "Cookie: theme=dark; consent=true", "Cookie: page=2; limit=100", 'cookie: "accepted"', "cookies = {{'a': 1}}", "_ga=GA1.2.{d}.{d}",
)  # fmt: skip

_PLAIN = (
    "ALTER USER bob WITH PASSWORD '%s'", "IDENTIFIED BY :password1", "identified by the host name", "set the password 'confirm2now' label", "net use X: /delete", "net user bob /delete", "htpasswd -c users2 bob", "use `a`s or x`y1`",
    "If users set no password within 7 days, send them another", "<code>keywordValue</code>: <code>Rule-s3-bucket-v2x9</code>", "<th>Token</th><td>type2</td>", "<b>password</b> is checked2", "rabbitmqctl add_user --help", "requirepass foobared", "ansible-vault encrypt_string --stdin-name x1", "password='' name='value22'", 'x="a"; y+="b2"', "\x1b]0;user@host: ~/src2\x07",
    "mysql -p app < dump.sql", "mysql -u root -p", "redis-cli -p 6379 ping", "ssh -p 2222 bob@host", "docker run -p 8080:80 image2", "mkdir -p src2/app3/x", "cp -p file1 file2", "patch -p1 < a.diff",
    "nmap -p 1-1000 host", "pytest -p no:cacheprovider", "ps -p 1234", "curl -b cookies.txt https://example.org", 'curl -u "$USER:$PASS" https://example.org', "curl -u user:password https://x", "echo hello | sudo tee /etc/x",
    "echo $PASSWORD | sudo -S ls", 'echo "$TOKEN" | docker login -u bob --password-stdin', "cat key | docker login --password-stdin", "sudo -S ls < pw.txt", "echo done1 | grep -c d",
    'variable "db_password" {{\n  type = string\n}}', 'variable "db_password" {{\n  default = ""\n}}', 'variable "token_ttl" {{\n  default = "3600s"\n}}', 'variable "db_password" {{\n  default = var.other_1\n}}',
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db1\n      key: pw1\n", "- name: DB_PASSWORD\n- name: PORT\n  value: port8080", '{{"name": "PORT", "value": "8080"}}', '{{"name": "token", "value": ""}}',
    "git config --global user.name bob42", "git config credential.helper store", "npm config set registry https://registry.npmjs.org", "pip config set global.timeout 60", "agentx config set tools.run_command true",
    "aws configure set region us-east-1", "gcloud config set project my-project-42", "config set secrets.artifacts confirm", "ENV TOKEN_FILE /run/secrets/token1", "set password policy v2",
    "define('TOKEN_TTL', '3600');", 'os.Setenv("PORT", "8080")', 'getenv("API_TOKEN", "")', 'row.get("password", "")', '("password", "username1")', 'assertEquals("token", token1)', "t('password', 'Password2')",
    "<password>********</password>", "<password></password>", '<input type="password" name="password"/>', '<add key="Timeout" value="3600"/>', "<token>{{{{ token }}}}</token>", "<key>CFBundleVersion</key><string>1.2.3</string>",
    "password=%s", "password=%(password)s", "password=<redacted>", "PASSWORD=********", "API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "AKIAXXXXXXXXXXXXXXXX", "token: ghp_****",
    "xoxb-your-token-here", "sk-your-openai-api-key-goes-right-here", "hf_your_token_here_please_and_thank_you", "TOKEN=${{{{ secrets.TOKEN }}}}", "password: !vault |", "password: ENC[AES256]", "secret: projects/1/secrets/a/versions/2",
    "user:password@host", "http://user:pass@example.org", "bob:$PASSWORD@host", "{{user}}:{{password}}@host", "https://$USER:$TOKEN@example.org", "ftp://anonymous:anonymous@example.org", "first:second@third",
    "see https://example.org/reset?token=<token>", "fc-daygrid-event-harness-abs-more-links", "hf_model_loading_with_device_map_auto", "r8_something_like_a_function_name_here", "the keyboard\nlayout2 changed", "don't\nprint x1y2",
    "password\nfield2 is required", "return token\nvalue2 = 3\n", "a\\nb\\tc", "C:\\new\\temp\\token1\\file", "regex = r'\\w+\\s*=\\s*\\d{{2}}'", "print('100%25 done')", "50%25 of the tokens", "AT&amp;T key1", "if a &lt; b &amp;&amp; c2",
    "x = 'it''s'", "say 'a' 'b1'", 'name = "a" + "b2"', "git log --format=%h%x09%s", "openssl s_client -connect host:443", "openssl enc -aes-256-cbc -pass env:PASS", "openssl rsa -passin file:pw1.txt", "pass:fail ratio",
    "test_password_reset_token_v2 PASSED", "7z x archive1.7z", "zip -r out1.zip dir2", "unzip -p a1.zip file2", "ldapsearch -x -b dc=example1", "kubectl create secret generic db --from-literal=password=$DB_PASSWORD",
    "kubectl create secret generic db --from-file=./pw1.txt", "Authorization: Bearer $TOKEN", "Authorization: required by server2", "authorization = OAuth2Handler(app)", "bearer token expired 3600s ago", "sshpass -e ssh host", "sshpass -f pw1.txt ssh host",
    "token_type=bearer&expires_in=3600", '<option value="token2">', 'class="key-value-pair-2"', 'data-key="row-12"', 'aria-label="password strength 2"', "U+200B\u200bzero width", "caf\xe9\u200b1", "\u202dabc1\u202c",
)  # fmt: skip
