"""What is written to the letter is found by the letter: among thousands of passages, and before what merely resembles it."""

import random

import pytest

from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.synthesis.chunking import chunk_file
from agentx.synthesis.recall.retrieval import retrieve

FILLERS = 3_000
_TEXT = """
account answer batch branch buffer cache call change check client close commit config connection count data
default delay delete error event fail field file filter format function handle header index input invoice job key level
limit line list load lock log message method name number open option order output page parse path process query queue
read record refund request reset response result retry return row run save search send server set size sort start state
status step stop store string system table task test text time token total type update user value version warning write
"""
WORDS = _TEXT.split()

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"

# What is asked; the passage that holds it; passages that come near.
CASES = {
    "phrase": (
        'where is "connection reset by peer" from',
        "The proxy answered: connection reset by peer, twice.",
        ["The peer was reset by a connection of the proxy.", "connection by peer reset", "reset connection, peer by"],
    ),
    "phrase in curly quotes": (
        "who said “never on a Friday”?",
        "We deploy, but never on a Friday.",
        ["On a Friday we never say never.", "A Friday, never on."],
    ),
    "error line": (
        "E   ValueError: cannot convert float NaN to integer (row 4812, column 'amount')",
        "log: E   ValueError: cannot convert float NaN to integer (row 4812, column 'amount') at load",
        [
            f"log: E   ValueError: cannot convert float NaN to integer (row {row}, column 'amount') at load"
            for row in (4811, 4813, 481, 48_120)
        ],
    ),
    "traceback line": (
        'File "/srv/app/billing/retry.py", line 88, in charge',
        'it broke: File "/srv/app/billing/retry.py", line 88, in charge',
        [f'it broke: File "/srv/app/billing/retry.py", line {line}, in charge' for line in (8, 87, 888)],
    ),
    "snake case": ("max_retry_delay_s", "x = max_retry_delay_s * 2", ["max delay of a retry, in s", "retry_delay_max_s"]),
    "camel case": (
        "getUserNameById",
        "return getUserNameById(7)",
        ["get the user name by its id", "getUserByIdName(7)", "getUserName(by, id)"],
    ),
    "screaming case": ("MAX_OPEN_FILES", "limit = MAX_OPEN_FILES", ["max open files", "OPEN_FILES_MAX is open"]),
    "dotted name": (
        "billing.retry.Policy.backoff",
        "see billing.retry.Policy.backoff for it",
        ["billing retry policy backoff", "see billing.retry.Policy.delay", "billing.Policy.retry.backoff"],
    ),
    "flag": (
        "--no-verify-ssl",
        "curl with --no-verify-ssl set",
        ["ssl verify: no", "--verify-ssl with no check", "no ssl, verify it"],
    ),
    "file name": (
        "retry.config.prod.yaml",
        "It stands in retry.config.prod.yaml now.",
        ["retry config for prod in yaml", "retry.config.test.yaml", "prod.retry.config.yaml"],
    ),
    "path": (
        "src/billing/retry.py",
        "Look at src/billing/retry.py first.",
        ["src/billing/retry_test.py", "billing src retry py", "lib/src/retry/billing.py"],
    ),
    "full hash": (SHA, f"since {SHA} it fails", [f"since {SHA[:-1]}c it fails", f"since {SHA[:10]} it fails"]),
    "short hash": (
        "3f2a91c",
        "reverted 3f2a91c",
        ["reverted 3f2a91d", "reverted 3f2a91", "reverted 4f2a91c", "3f2a 91c"],
    ),
    "uuid": (
        "6f1e7a52-0c3b-4d1e-9a77-52b0c3d4e5f6",
        "request 6f1e7a52-0c3b-4d1e-9a77-52b0c3d4e5f6 timed out",
        ["request 6f1e7a52-0c3b-4d1e-9a77-52b0c3d4e5f7 timed out", "request 52b0c3d4e5f6 6f1e7a52 4d1e"],
    ),
    "version": (
        "upgrade to 2.14.3",
        "We upgrade to 2.14.3 today",
        ["We upgrade to 2.14.30 today", "We upgrade to 2.3.14 today", "We upgrade to 14.2.3 today"],
    ),
    "ticket": ("PAY-4711", "closes PAY-4711", ["closes PAY-4712", "pay 4711 at once", "PAY-47 and 11"]),
    "address": ("10.0.12.7:5432", "host 10.0.12.7:5432 is down", ["host 10.0.12.7:5433 is down", "host 10.12.0.7 5432"]),
    "accents": ("Überweisungsgebühr", "die Überweisungsgebühr sinkt", ["die Gebühr der Überweisung", "Überweisung"]),
    "Russian": ("повторный платёж", "Это повторный платёж клиента", ["Это платёж клиента", "повторный запрос клиента"]),
    "Chinese": ("退款失败", "昨天退款失败了", ["退款成功", "登录失败", "失败后退出付款"]),
    "Japanese": ("請求書の再送", "明日、請求書の再送をする", ["請求書を送る", "再送の請求", "書類の再送"]),
    "emoji": ('the "ship it 🚀🔥" sticker', "ship it 🚀🔥 said the sticker", ["ship it said the sticker", "sticker ship"]),
    "punctuation": (
        'find "a->b[0] != NULL"',
        "if (a->b[0] != NULL) free(a);",
        ["a b 0 NULL", "if (a->b[1] != NULL) free(a);", "if (a.b[0] == NULL) free(a);"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=["memory", "lance"])
def index(request, tmp_path_factory):
    """Thousands of passages of common words, and each wanted one among those that come near to it."""
    draw = random.Random(3)
    texts = {f"filler-{number}": " ".join(draw.choices(WORDS, k=40)) for number in range(FILLERS)}
    for name, (_, wanted, near) in CASES.items():
        texts |= {f"near {name} {number}": text for number, text in enumerate(near)}
        texts[f"wanted {name}"] = wanted
    line = f"{' '.join(draw.choices(WORDS, k=9_000))} zq_needle_4711 {' '.join(draw.choices(WORDS, k=9_000))}"
    texts |= {f"long line {number}": piece.text for number, piece in enumerate(chunk_file("dump.txt", line))}
    chunks = [Chunk(id=name, text=text, kind="artifact") for name, text in texts.items()]
    draw.shuffle(chunks)
    made = InMemoryIndex() if request.param == "memory" else LanceIndex(tmp_path_factory.mktemp("index"))
    made.put(chunks)
    if request.param == "lance":
        assert made.flush()
    yield made
    made.close()


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_to_the_letter_comes_first(index, case):
    hits = retrieve(index, CASES[case][0], None, 5, Filter())
    assert [hit.id for hit in hits][:1] == [f"wanted {case}"], [hit.text for hit in hits]


@pytest.mark.parametrize("case", CASES)
def test_it_comes_first_amid_other_words_too(index, case):
    query, _, _ = CASES[case]
    asked = query if '"' in query or "“" in query else f'please look for "{query}" in the log of the server'
    assert retrieve(index, asked, None, 5, Filter())[0].id == f"wanted {case}"


def test_a_name_in_the_middle_of_a_very_long_line_is_found(index):
    assert "zq_needle_4711" in retrieve(index, "zq_needle_4711", None, 5, Filter())[0].text
