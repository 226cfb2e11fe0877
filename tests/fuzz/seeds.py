"""What is valid, to be harmed: a few inputs for each target, made by the code that writes them."""

import hashlib
import json
import tempfile
import zlib
from binascii import hexlify
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.core.layout import FORMAT
from agentx.storage.events.codec import GENESIS, Codec, chain, split
from agentx.storage.events.types import (
    AgentMessageSent,
    ArtifactChanged,
    Body,
    Draft,
    FileChange,
    ToolCallExecuted,
    WorkspaceCreated,
)
from agentx.storage.git.delta import delta
from agentx.storage.git.index_file import Mark
from agentx.storage.git.objects import blob_id
from agentx.storage.git.pack_file import KINDS, PackWriter
from agentx.storage.index.pending_writes import Clear, Close, Embed, ForgetVectors, Meta
from agentx.storage.log.history import History
from agentx.storage.log.keys import Keys
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.state.state import State
from tests.storage.wrapped_samples import WRAPPINGS
from tests.synthesis.pipelines.book import BOOK

from .targets import CODEC, LIFTED, SEAL, TARGETS, Renamed, message, write_log

OID = blob_id(b"content")
QUOTING = Path(__file__).parents[1] / "synthesis/demands/quoting.txt"
_MOMENT = datetime(2026, 11, 20, 9, 31, 5, 123456, tzinfo=UTC)
_SALT = b"\7" * 16


def drafts() -> list[Draft]:
    """Events of many types."""
    changes = (FileChange("a.txt", "", OID, size_bytes=7), FileChange("b/c.txt", OID, "", link=True))
    written = ToolCallExecuted(
        call_id="1", tool="write_file", status="SUCCEEDED", arguments={"path": "a.txt"}, changes=changes
    )
    return [
        Draft(data=WorkspaceCreated(title="A task", format=FORMAT), actor="user"),
        message("Never use tabs. \u2028 \u00e4\U0001f600"),
        Draft(data=written, actor="agent:main", run="r-1", cause=2),
        Draft(data=ArtifactChanged(changes=changes, noticed="scan"), actor="watch", key="k:1"),
        Draft(data=AgentMessageSent(body=Body("Done.", OID, 9_000), final=True), actor="agent:main"),
        message("And now?"),
    ]


def lines(codec: Codec = CODEC, given: list[Draft] | None = None) -> list[bytes]:
    """A chain of events, the same bytes each time: moment and salt are fixed."""
    previous, made = GENESIS, []
    for seq, draft in enumerate(given if given is not None else drafts(), 1):
        line, _ = codec.encode(draft, seq=seq, previous=previous, at=_MOMENT)
        parts = split(line)
        made.append(_sealed(parts.header, parts.data, previous))
        previous = split(made[-1]).hash
    return made


def _sealed(header: bytes, data: bytes, previous: str) -> bytes:
    own = chain(previous, header, blake2b(_SALT + data, digest_size=32).digest()).encode()
    return b"".join((header, b',"data":', data, b',"salt":"', hexlify(_SALT), b'","hash":"', own, b'"}\n'))


def line_of(data: bytes, kind: str = "UserMessageSent", version: int = 1, *, purged: bool = False) -> bytes:
    """A first event with any payload whose hash is right."""
    header = b'{"seq":1,"at":"2026-11-20T09:31:05.123456Z","type":"%s","v":%d,"actor":"user"' % (
        kind.encode(),
        version,
    )
    if purged:
        digest = blake2b(_SALT + data, digest_size=32).digest()
        own = chain(GENESIS, header, digest).encode()
        return header + b',"digest":"' + hexlify(digest) + b'","hash":"' + own + b'"}\n'
    return _sealed(header, data, GENESIS)


def _logs() -> list[bytes]:
    made = lines()
    twin = lines(given=[message("another"), *drafts()[1:]])  # of another history
    return [
        b"".join(made),
        SEAL.join((b"".join(made[:2]), b"".join(made[2:4]), b"".join(made[4:]))),
        SEAL.join((b"".join(made[:3]), b"".join(made[:3]) + b"".join(made[3:]))),
        b"".join((*made[:2], *twin, *made[2:])),
        b"".join(made)[:-30],
        line_of(b"{}", purged=True) + made[1],
    ]


def _events() -> list[bytes]:
    item = MemoryItem(id="1", kind="rule", text="Be brief.", evidence=(Evidence(seq=1),))
    concluded = Draft(
        data=Concluded(through=1, extractor="demands", version=1, changes=(Add(item=item),)), actor="engine"
    )
    return [
        *(lines(given=[draft])[0] for draft in (*drafts(), concluded)),
        *lines(LIFTED, [Draft(data=Renamed(title="t", words=("b", "a")), actor="user")]),
        line_of(b'{"name":" t ","words":["b","a"]}', "Renamed"),
        line_of(b'{"name":5,"words":{"b":1}}', "Renamed"),
        line_of(b'{"anything":[1e400,-0.0,9007199254740993]}', "Invented", 7),
        line_of(b'{"body":{"text":"\\ud800"}}'),
        line_of(b'{"body":{"text":"' + b"\\u0000" * 20 + b'"}}'),
        line_of(b"[" * 9_000, "Invented"),
        line_of(b"[" * 9_000 + b"]" * 9_000, "Renamed"),
        line_of(b'{"a":' * 2_000 + b"1" + b"}" * 2_000, "ToolCallExecuted"),
        line_of(b"{}", purged=True),
    ]


def _paths() -> list[bytes]:
    return [
        *(b"folder/file", b"./folder//file/", b"../outside/file", b"/etc/passwd", b"out/file", b"outfile"),
        *(b"in/file", b"infile", b"up/outside/file", b"loop", b"loop/file", b"pipe", b"nowhere/x", b"around"),
        *(b"repo/file", b"workspace/file", b"ws/file", b"ws", b"repo", b".git/config", b".GIT./x", b"git~1"),
        *(b".g\xe2\x80\x8cit/x", b"con.txt", b"a\\..\\b", b"~/x", b"C:/x", b"a/" * 200 + b"b", b"x" * 255),
        *(
            b"new/folder/file",
            b"folder",
            b"folder/file/below",
            b"a\0b",
            b".agentx-tmp-1",
            b"\xff",
            b"..",
            b".",
        ),
        b"keys/AKIA" + b"IOSFODNN7QWERTYU",
    ]


def _trees() -> list[bytes]:
    row = b"%s %s\0" + bytes(range(20))
    names = ((b"100644", b"a.txt"), (b"40000", b"folder"), (b"100644", b"folder.txt"), (b"120000", b"name"))
    return [b"", b"".join(row % one for one in names), row % (b"100755", b"gone")]


def _packs() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        writer = PackWriter(Path(folder))
        base = 0
        for content in (b"", b"content", b"x" * 5_000):
            oid = hashlib.sha1(b"blob %d\0" % len(content) + content).digest()
            base = writer.add(oid, KINDS["blob"], len(content), zlib.compress(content))
        made = delta(b"x" * 5_000, b"x" * 4_000)
        writer.add(b"\x80" * 20, 6, len(made), zlib.compress(made), base)
        written = writer.finish()
        return [written.read_bytes() + SEAL * 4 + written.with_suffix(".idx").read_bytes()]


def _branches() -> list[bytes]:
    move = f"{'0' * 40} {'ab' * 20} Pat <pat@x> 1763630000 +0000\tagentx: 1\n".encode()
    return [
        move * 3,
        b"ab" * 20 + b"\n",
        b"# pack-refs with: peeled fully-peeled sorted\n" + b"cd" * 20 + b" refs/heads/main\n",
        b"ref: refs/heads/other\n",
    ]


def _snapshots() -> list[bytes]:
    state = State().apply_all(map(CODEC.decode, lines()))
    place = b'{"seq":1,"hash":"HASH","segment":%s,"offset":%s}'
    return [
        state.dump(),
        place % (b"1", b"322"),
        place % (b"-9223372036854775808", b"1"),
        place % (b"9" * 30, b"1"),
        place % (b"1", b"9" * 30),
        place % (b"1", b"-5"),
    ]


def _waiting() -> list[bytes]:
    chunk = {"id": "c", "text": "words", "path": "a.txt", "kind": "artifact"}
    row = {"type": "put", "rows": [{"chunk": chunk, "vector": ""}]}
    records = (
        Embed(("a", "b"), (b"1234", b"5678")),
        Close("", "a.txt", 3),
        Meta("k", "v"),
        ForgetVectors(),
        Clear(),
    )
    whole = b"".join(b"\n" + msgspec.json.encode(one) + b"\n" for one in records)
    return [
        whole,
        b"\n" + json.dumps(row).encode() + b"\n" + whole[:-5],
        b'\n{"type":"embed","ids":["a"],"vectors":[]}\n',
        b'\n{"type":"put","rows":' + b"[" * 5_000 + b"\n",
        b'\n{"type":"meta","key":"\xff","value":"\\ud800"}\n',
    ]


def _texts() -> list[bytes]:
    key = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"QUJD" * 16 + b"\n-----END RSA PRIVATE KEY-----\n"
    return [
        b"curl https://bob:hunter2222@example.org -u bob:hunter2222",
        b'PASSWORD="correct-horse-1"\nAPI_KEY=AKIA' + b"IOSFODNN7QWERTYU\n",
        b"Authorization: Bearer abcDEF123456789xyz0\n_auth=Ym9iOmh1bnRlcjI=",
        key + key[:-20],
        b"token = [redacted: secret] ghp_" + b"a1B2" * 9,
        b"\xed\xa0\x80 password: \xc4\xb0x9y8z7w6\r\n<password>abc123xyz</password>",
        b"mysql -p\\u00a1B2c3D4<a>{%25",
        "İ password=abc123XYZ İ secret: 'q1w2e3r4t5'".encode(),
    ]


def _wrapped() -> list[bytes]:
    around = b"\x1b]8;;https://example.org \\u00 %2 &#x 'it''s' \x1c +diff\n> mail =\r\n REJf \x1b["
    return [bytes((number,)) + around for number in range(len(WRAPPINGS))]


def _quotings() -> list[bytes]:
    """Messages that hold words of others, and one whose marks of quotes do not match."""
    rows = QUOTING.read_text("utf-8").splitlines()
    messages = [row[2:].replace("\\n", "\n") for row in rows if row.startswith("< ")]
    crossed = 'Anna: "never `use\n> tabs", says\n\n~~~\nthe „log“: <b> » never « 「x\n\n— the wiki'
    return [message.encode() for message in (*messages[::3], crossed)]


def _keys() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), b"".join(lines()))
        table = Keys(Path(folder, "keys.sqlite3"), History(Path(folder), CODEC))
        table.find(["k:1"])
        table.close()
        return [Path(folder, "keys.sqlite3").read_bytes()]


_CONFIGS = [
    b'[workspace]\nartifacts = "artifacts"\n[limits]\nmax_file_bytes = 1000\n',
    b'[checks.test]\ncommand = "make"\n[model]\nname = "x"\n',
    b"a = 9" + b"9" * 5_000,
    b"a = " + b"[" * 5_000,
    b"a." * 3_000 + b"b = 1",
    b"[limits]\nmax_file_bytes = 1e999\n",
]
_GIT_CONFIGS = [
    b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n[commit]\n\tgpgSign = false\n",
    b'[remote "origin"]\n\turl = https://pat:word@example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    b'[remote "a"]\n\turl = "https://a.example/\\nhost=b.example"\n[remote "b"]\n\turl = https://a%0Ahost=b/x\n',
    b'[url "https://evil.example/"]\n\tinsteadOf = ../\n[remote "origin"]\n\turl = ../backup.git\n',
    b'[core]\n\tsshCommand = x\n\tfsmonitor = x\n[filter "x"]\n\tclean = x\n[credential]\n\thelper = !x\n',
    b"[core]\n\tworktree = /\n[include]\n\tpath = /etc/passwd\n",
    b"[commit]\n\tgpgSign = true\n\tgpgSign = true\n[extensions]\n\tobjectFormat = sha256\n",
]
_GIT_OBJECTS = [
    *(zlib.compress(b"%s %d\0" % (kind, 7) + b"content") for kind in (b"blob", b"tree", b"commit", b"tag")),
    zlib.compress(b"blob 3221225472\0" + bytes(9_000)),
    zlib.compress(b"blob 3\0" + bytes(9_000)),
    zlib.compress(b"blob 9000\0" + bytes(9_000)),
]
_GIT_DELTAS = [
    b"abc" + SEAL + b"\3\4\x90\3\1d",
    b"abc" + SEAL + b"\3\x80\x80\x80\x80\x10\x90\3",
    b"x" * 300 + SEAL + delta(b"x" * 300, b"x" * 200 + b"and other words" + b"x" * 100),
]
_IGNORES = [b"*.txt\n!file.txt\n/folder/\n[a-\n!\n**/x\n\\", b"a*a*a*\n" * 3, b"[[:alpha:]-z]\n(?P<x>\n"]

_MADE: dict[str, Callable[[], list[bytes]]] = {
    "log": _logs,
    "event": _events,
    "path": _paths,
    "tree": _trees,
    "pack": _packs,
    "branch": _branches,
    "mark": lambda: [
        Mark(4711, 12, "7a63bf79-0679-45ca-b0a2-db13292686bb").encode(),
        b"agentx 1 2",
        b"",
        b"agentx " + b"9" * 5_000 + b" 1 x",
    ],
    "snapshot": _snapshots,
    "waiting": _waiting,
    "text": _texts,
    "wrapped": _wrapped,
    "quoting": _quotings,
    "orphans": lambda: [
        b"".join(lines()),
        b'{"why":"x","content":"y"}\n' + SEAL + b"".join(lines()) + b"\xff\n\xff",
    ],
    "ignored": lambda: _IGNORES,
    "config": lambda: _CONFIGS,
    "pipeline": lambda: [BOOK.encode()],
    "keys": _keys,
    "git_config": lambda: _GIT_CONFIGS,
    "git_object": lambda: _GIT_OBJECTS,
    "git_delta": lambda: _GIT_DELTAS,
}


@cache
def seeds(name: str) -> list[bytes]:
    """Valid inputs of a target, and some that were found to be hard."""
    return _MADE[name]()


assert _MADE.keys() == TARGETS.keys()
