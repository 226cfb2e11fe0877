"""Formats of keys and tokens, as their providers publish them.

A row consists of a name, the literal prefixes, and the pattern of the rest. A prefix counts only if no letter
or digit precedes it, so that base64 and hashes do not match by chance. It also makes the search cheap,
because a text without the prefix is never searched for the rest. No pattern contains nested repetition, so
each takes linear time.
"""

import functools
import re
from collections.abc import Iterator

_WORD = "-0-9A-Za-z_"

_PREFIXED: tuple[tuple[str, str, str], ...] = (
    ("aws access key", "AKIA ASIA ABIA ACCA", r"[0-9A-Z]{16}"),
    ("aws access key", "A3T", r"[0-9A-Z]{17}"),
    ("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[0-9A-Za-z_]{36,400}"),
    ("github token", "github_pat_", r"[0-9A-Za-z_]{22,255}"),
    (
        "gitlab token",
        "glpat- gldt- glft- glsoat- glrt- glrtr- glcbt- glimt- glptt- glagent- gloas- glffct- GR1348941",
        rf"[{_WORD}.]{{20,1024}}",
    ),
    (
        "slack token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
        r"(?=[^\s0-9]{0,40}[0-9])[0-9A-Za-z.%-]{10,500}",
    ),
    (
        "slack webhook",
        "hooks.slack.com/services/ hooks.slack.com/workflows/",
        r"[0-9A-Za-z]{3,40}(?:/[0-9A-Za-z]{3,60}){2,4}",
    ),
    (
        "discord webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        rf"[0-9]{{10,25}}/[{_WORD}]{{40,100}}",
    ),
    (
        "discord token",
        "MT MD Mj Mz ND NT Nj Nz OD OT",
        rf"[{_WORD}]{{20,26}}\.[{_WORD}]{{6}}\.[{_WORD}]{{27,38}}",
    ),
    (
        "teams webhook",
        "webhook.office.com/webhookb2/",
        r"[0-9A-Za-z@-]{30,90}/IncomingWebhook/[0-9a-f]{32}/[0-9A-Za-z-]{20,60}",
    ),
    ("api key", "sk-ant- sk-proj- sk-or- sk-live- sk-svcacct- sk-admin- sk-lf-", rf"[{_WORD}]{{20,400}}"),
    ("api key", "sk-", rf"[0-9A-Za-z]{{32,250}}|[{_WORD}]{{20,150}}T3BlbkFJ[{_WORD}]{{20,150}}"),
    ("api key", "gsk_ r8_ hf_ api_org_", r"[0-9A-Za-z]{30,250}"),
    ("api key", "xai- pplx- tvly- fc- pcsk_ csk- nvapi- lsv2_pt_ lsv2_sk_", rf"[{_WORD}]{{30,250}}"),
    ("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[0-9A-Za-z]{16,250}"),
    ("signing secret", "whsec_", r"[0-9A-Za-z+/=]{24,100}"),
    ("google api key", "AIza", rf"[{_WORD}]{{35}}"),
    ("google token", "ya29.", rf"[{_WORD}.]{{20,2000}}"),
    ("google token", "GOCSPX-", rf"[{_WORD}]{{20,60}}"),
    ("google token", "1//0", rf"[{_WORD}]{{40,250}}"),
    ("npm token", "npm_", r"[0-9A-Za-z]{36}"),
    ("pypi token", "pypi-", rf"[{_WORD}]{{50,500}}"),
    ("rubygems token", "rubygems_", r"[0-9a-f]{48}"),
    ("docker token", "dckr_pat_ dckr_oat_", rf"[{_WORD}]{{20,100}}"),
    ("twilio key", "SK AC", r"[0-9a-f]{32}"),
    ("sendgrid key", "SG.", rf"[{_WORD}]{{16,32}}\.[{_WORD}]{{16,64}}"),
    ("mailgun key", "key-", r"[0-9a-f]{32}"),
    ("brevo key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[0-9A-Za-z]{16}"),
    ("square token", "sq0csp- sq0atp- sq0idp-", rf"[{_WORD}]{{22,60}}"),
    ("shopify token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("heroku key", "HRKU-", rf"[{_WORD}]{{36,80}}"),
    ("cloudflare key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    ("tailscale key", "tskey-", rf"[{_WORD}]{{20,100}}"),
    ("netlify token", "nfp_", r"[0-9A-Za-z]{36,60}"),
    ("supabase key", "sbp_ sb_secret_", rf"[{_WORD}]{{30,60}}"),
    ("planetscale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", rf"[{_WORD}.]{{30,70}}"),
    ("vault token", "hvs. hvb. hvr.", rf"[{_WORD}]{{24,300}}"),
    ("pulumi token", "pul-", r"[0-9a-f]{40}"),
    ("databricks token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?"),
    ("grafana token", "glsa_ glc_", r"[0-9A-Za-z_+/=]{32,400}"),
    ("new relic key", "NRAK- NRJS- NRIQ-", r"[0-9A-Za-z_-]{19,50}"),
    ("sentry token", "sntrys_ sntryu_", r"[0-9A-Za-z_+/=-]{40,500}"),
    ("dynatrace token", "dt0c01. dt0s01.", r"[0-9A-Z]{24}\.[0-9A-Z]{64}"),
    ("doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", rf"[{_WORD}.]{{40,80}}"),
    ("atlassian token", "ATATT3 ATCTT3 ATBB", rf"[{_WORD}=]{{28,300}}"),
    ("linear key", "lin_api_ lin_oauth_", r"[0-9A-Za-z]{32,80}"),
    ("notion token", "ntn_ secret_", r"[0-9A-Za-z]{40,60}"),
    ("figma token", "figd_ figu_", rf"[{_WORD}]{{36,80}}"),
    ("postman key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("shippo token", "shippo_live_ shippo_test_", r"[0-9a-f]{40}"),
    ("easypost key", "EZAK EZTK", r"[0-9A-Za-z]{54}"),
    ("alibaba key", "LTAI", r"[0-9A-Za-z]{16,24}"),
    ("tencent key", "AKID", r"[0-9A-Za-z]{32}"),
    ("artifactory token", "AKCp", r"[0-9A-Za-z]{50,80}"),
    ("1password token", "ops_eyJ", rf"[{_WORD}=]{{200,2000}}"),
    ("age key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("json web token", "eyJ", rf"[{_WORD}=]{{10,4000}}\.eyJ[{_WORD}=]{{10,8000}}\.[{_WORD}=]{{10,4000}}"),
    ("signature in a url", "?sig= &sig= X-Amz-Signature= X-Goog-Signature=", r"[0-9A-Za-z%+/=]{40,600}"),
)  # fmt: skip

PRIVATE_KEY = "private key"
"""The format of a private key's base64 without its first line: OpenSSH, RSA (PKCS 1 and 8), EC, Ed25519."""

_INSIDE: tuple[tuple[str, str, str], ...] = (
    (PRIVATE_KEY, "b3BlbnNzaC1rZXktdjE", r"\bb3BlbnNzaC1rZXktdjE[0-9A-Za-z+/]{20,8192}={0,2}"),
    (PRIVATE_KEY, "IBAAK", r"\bMII[0-9A-Za-z+/]{3}IBAAK[0-9A-Za-z+/]{20,8192}={0,2}"),
    (
        PRIVATE_KEY,
        "BgkqhkiG9w0BAQEFAASC",
        r"\bMII[0-9A-Za-z+/]{3}IBADANBgkqhkiG9w0BAQEFAASC[0-9A-Za-z+/]{10,8192}={0,2}",
    ),
    (PRIVATE_KEY, "MHcCAQEE MHQCAQEE", r"\bMH[cQ]CAQEE[0-9A-Za-z+/]{40,8192}={0,2}"),
    (PRIVATE_KEY, "MC4CAQAwBQYDK2Vw", r"\bMC4CAQAwBQYDK2Vw[0-9A-Za-z+/]{20,100}={0,2}"),
    ("telegram token", ":AA", rf"\b[0-9]{{8,10}}:AA[{_WORD}]{{33}}(?![{_WORD}])"),
    ("telegram token", "/bot", rf"(?<=/bot)[0-9]{{6,12}}:[{_WORD}]{{30,60}}(?![{_WORD}])"),
    ("mailchimp key", "-us", r"\b[0-9a-z]{32}-us[0-9]{1,2}\b"),
    ("azure client secret", "Q~", r"(?<![\w.~-])[0-9A-Za-z_~.-]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}(?![\w~-])"),
    ("azure devops token", "AZDO", r"\b[0-9A-Za-z]{76}AZDO[0-9A-Za-z]{4}\b"),
    ("terraform token", ".atlasv1.", rf"\b[0-9A-Za-z]{{14}}\.atlasv1\.[{_WORD}]{{60,90}}"),
)
"""Formats whose fixed part is inside or at the end: name, fixed part, complete pattern."""

_ALONE = frozenset(("SK AC", "key-"))
"""Prefixes that file names and cache keys also have; they count only if nothing else is attached to them."""

RUN = re.compile(rf"[{_WORD}]{{14}}")
"""Every format has 20 or more characters without white space, including 14 such characters in a row."""

HEADS = tuple(
    (head, row) for row, (_, heads, _) in enumerate((*_PREFIXED, *_INSIDE)) for head in heads.split()
)
"""Fixed parts of the formats, each with the row of its format."""


def tokens(text: str, words: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Find secrets that have a known format; yield the name of the format, and the match.

    Args:
        text: The text to search.
        words: Its long words.
    """
    if not RUN.search(words):
        return
    for head, row in HEADS:
        if head not in words:
            continue
        name, pattern = _format(row)
        if row >= len(_PREFIXED):
            yield from ((name, match) for match in pattern.finditer(text))
            continue
        at = text.find(head)
        while at >= 0:
            match = pattern.match(text, at)
            if match:
                yield name, match
            at = text.find(head, match.end() if match else at + 1)


@functools.cache
def _format(row: int) -> tuple[str, re.Pattern[str]]:
    if row >= len(_PREFIXED):
        name, _, pattern = _INSIDE[row - len(_PREFIXED)]
        return name, re.compile(pattern)
    name, heads, rest = _PREFIXED[row]
    if heads in _ALONE:
        return name, re.compile(rf"(?<![\w./-])(?:{'|'.join(heads.split())}){rest}(?![\w/-]|\.\w|[ ]?:)")
    # The prefix first, so that the search can skip to it; then a look-behind.
    guarded = "|".join(
        rf"{re.escape(head)}(?<![0-9A-Za-z]{re.escape(head)})" if head[0].isalnum() else re.escape(head)
        for head in heads.split()
    )
    return name, re.compile(rf"(?:{guarded})(?:{rest})(?![0-9A-Za-z])")
