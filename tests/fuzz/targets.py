"""What any bytes may do to the code that reads them: each target is a function of some bytes and an empty directory.

Whatever the bytes are, a target returns: what is malformed raises an error of ours, which the target expects, or is told
as damage. Anything else that leaves a target is a bug. The tests run them on harmed pieces of what is valid
(:mod:`tests.fuzz.harm`); ``make fuzz`` lets atheris look for inputs by itself.
"""

import contextlib
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from agentx.config import ConfigInvalid, read_config
from agentx.core import layout
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError
from agentx.storage.events.codec import GENESIS, Codec, DamagedLine, EventRefused, EventTooLarge, split
from agentx.storage.events.types import Body, Draft, Payload, Purged, Unknown, UserMessageSent
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.files.paths import check_path
from agentx.storage.git import delta, local, trees
from agentx.storage.git.branch import BRANCH, Branch
from agentx.storage.git.exchange.remotes import NoRemote, Remote
from agentx.storage.git.index_file import read_mark
from agentx.storage.git.objects import LARGEST, ObjectDamaged, read_loose
from agentx.storage.git.pack_file import Pack, PackDamaged
from agentx.storage.git.repository import GitRepository
from agentx.storage.index.pending_writes import Follower, Overlay, WaitingFile
from agentx.storage.log.history import LIVE, Damage, History, HistoryDamaged, HistoryWriter, segment_path
from agentx.storage.log.keys import Keys
from agentx.storage.log.orphans import Orphans
from agentx.storage.log.snapshots import Snapshots
from agentx.storage.secrets.redaction import clean, find, redact
from agentx.storage.secrets.wrapping import decodings
from agentx.synthesis.attribution.material import MAX_CHARACTERS, material, own_words, straighten
from agentx.synthesis.demands.classify import Demand, Rejection
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.reading import read
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.state.state import State
from tests.demand_findings import findings
from tests.storage.wrapped_samples import WRAPPINGS

Target = Callable[[bytes, Path], None]

SEAL = b"\x1c"
"""Cuts one input into several files: into segments and the live log, into a pack and its index."""

TOKEN = "ghp_" + "a1B2" * 9

CODEC = record_codec()
SECRET = b"what lies outside"


class Renamed(Payload, frozen=True):
    """A payload whose first version had another shape."""

    title: str
    words: tuple[str, ...] = ()


LIFTED = Codec(
    {"Renamed": Renamed},
    {("Renamed", 1): lambda old: {"title": old["name"].strip(), "words": sorted(old.get("words", []))}},
)


def message(text: str) -> Draft:
    """Something that a user says."""
    return Draft(data=UserMessageSent(body=Body(text)), actor="user")


def write_log(root: Path, content: bytes) -> None:
    """Lay a log out: the segments, of which empty ones are missing, and last the live log."""
    *sealed, live = content.split(SEAL)
    for number, segment in enumerate(sealed, 1):
        if segment:
            path = root / segment_path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(segment)
    (root / LIVE).write_bytes(live)


def log(content: bytes, root: Path) -> None:
    """Readers and writers of a log take the same events of it, and one can go on behind them."""
    write_log(root, content)
    history, damage = History(root, CODEC), list[Damage]()
    events = list(history.read(on_damage=damage.append))
    seqs = [event.seq for event in events]
    assert seqs == sorted(set(seqs))
    assert all(event.seq > 0 for event in events)
    try:
        assert list(history.read()) == events
        assert not damage
    except HistoryDamaged:
        assert damage
    assert sum(1 for _ in history.lines()) <= content.count(b"\n")
    for number, event in enumerate(events):
        place = history.locate(event.seq, event.hash)
        behind = [one.hash for one in history.read(event.seq, lambda _: None)]
        if not damage:
            assert place is not None
            assert behind == [one.hash for one in events[number + 1 :]]
        if place is not None:
            assert damage or history.event_at(place) == event
            rest = [one.hash for one in history.read(place, lambda _: None)]
            assert damage or rest == behind
    _go_on(root, history, events, sound=not damage)


def _go_on(root: Path, history: History, events: list[Any], *, sound: bool) -> None:
    for _ in range(2):
        writer = HistoryWriter(root, CODEC)
        try:
            assert writer.catch_up() == events
            (appended,) = writer.append([message("and on it goes")])
        finally:
            writer.close()
        if not sound:
            return  # where lines stand in another order, what follows tells which of two chains is the longer one
        events = [*events, appended]
        assert list(history.read()) == events


def event(content: bytes, _root: Path) -> None:
    """A line is an event or is damaged; quick and slow reading agree, and the fold takes whatever was read."""
    for codec in (CODEC, LIFTED):
        quick = codec.follow(content, 1, GENESIS)
        try:
            read = codec.decode(content)
        except DamagedLine:
            assert quick is None
            continue
        assert quick is None or (quick == read and split(content).extends(GENESIS))
        state = State().apply_all([read])
        assert State.decode(state.encode()).digest == state.digest
        if codec is CODEC and not isinstance(read.data, Purged | Unknown):
            with contextlib.suppress(EventRefused, EventTooLarge):
                draft = Draft(data=read.data, actor=read.actor, run=read.run, cause=read.cause, key=read.key)
                line, again = codec.encode(draft, seq=1, previous=GENESIS)
                assert codec.decode(line) == again
                assert again.data == read.data


def path(content: bytes, root: Path) -> None:
    """A path that is let through leads nowhere but into the artifacts, whatever links lie there."""
    place, skipped = root / "artifacts", root / "artifacts/workspace"
    _lay_out(root)
    artifacts = Artifacts(place, 1_000, skip=(skipped,))
    with contextlib.suppress(AgentXError):
        text = content.decode("utf-8", "surrogateescape")
        clean_path = check_path(text)
        assert check_path(clean_path) == clean_path
        assert not {"..", ".git", "."} & set(clean_path.split("/"))
        _only_inside(artifacts, clean_path, os.path.realpath(place))
    assert (root / "outside/file").read_bytes() == SECRET
    assert sorted(os.listdir(root)) == ["artifacts", "outside"]
    assert os.listdir(root / "outside") == ["file"]
    assert os.listdir(skipped) == []


def _lay_out(root: Path) -> None:
    place = root / "artifacts"
    for folder in ("outside", "artifacts/folder/inner", "artifacts/repo/.git", "artifacts/workspace"):
        (root / folder).mkdir(parents=True)
    (root / "outside/file").write_bytes(SECRET)
    (place / "folder/file").write_bytes(b"inside")
    os.mkfifo(place / "pipe")
    links = {"out": "../outside", "outfile": "../outside/file", "in": "folder", "up": "..", "loop": "loop"}
    links |= {"infile": "folder/file", "nowhere": "gone", "around": "folder/../../outside", "ws": "workspace"}
    for name, to in links.items():
        (place / name).symlink_to(to)


def _only_inside(artifacts: Artifacts, clean_path: str, real: str) -> None:
    with contextlib.suppress(AgentXError):
        followed = os.path.realpath(artifacts.locate(clean_path, follow=True))
        assert followed.startswith(real + "/")
        assert followed.removeprefix(real).split("/")[1] not in {"workspace", "repo"}
    place = artifacts.locate(clean_path)
    assert os.path.realpath(place.parent).startswith(real)
    with contextlib.suppress(AgentXError):
        artifacts.identify(clean_path)
        assert artifacts.content(clean_path) != SECRET
    with contextlib.suppress(OSError):  # the write path tells of these
        artifacts.put(artifacts.prepare(clean_path, b"written"), clean_path)
        artifacts.remove(clean_path)


def tree(content: bytes, _root: Path) -> None:
    """A tree of Git can be read to its end, or it is damaged."""
    with contextlib.suppress(ObjectDamaged):
        new = trees.RawTreeEntry(b"100644", "ab" * 20)
        folder = trees.RawTreeEntry(b"40000", "cd" * 20)
        edited = trees.edit(content, {b"name": new, b"gone": None, b"folder": folder})
        assert trees.find(edited, b"folder") is not None
        trees.find(edited, b"\0")


def pack(content: bytes, root: Path) -> None:
    """A pack and its index say where each object stands, or they are damaged."""
    body, _, index = content.partition(SEAL * 4)
    (root / "one.pack").write_bytes(body)
    (root / "one.idx").write_bytes(index)
    with contextlib.suppress(PackDamaged), Pack(root / "one.pack") as opened:
        for name in (bytes(20), b"\x80" * 20, b"\xff" * 20):
            assert (name in opened) in (True, False)
        for name, entry in opened.entries():
            assert (name in opened) in (True, False)
            assert 0 < entry.at < entry.body <= entry.end <= len(body)
            assert 0 <= entry.base < entry.at
            assert len(opened.raw(entry.body, entry.end)) == entry.end - entry.body
        for oid in opened.oids():
            with contextlib.suppress(ObjectDamaged):
                found = opened.read(oid)
                assert found is not None
                assert len(found[1]) <= LARGEST[found[0]]


def branch(content: bytes, root: Path) -> None:
    """The branch names a commit or none, and its reflog is what can be read of it."""
    kept = Branch(root)
    log_path, ref = root / "logs" / BRANCH, root / BRANCH
    for file in (log_path, root / "packed-refs", ref):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        found = kept.read()
        assert not found or (len(found) == 40 and set(found) <= set("0123456789abcdef"))
    for move in kept.moves(100):
        assert {len(move.old), len(move.new)} <= {0, 40}


def mark(content: bytes, root: Path) -> None:
    """A lock of the index file is the engine's with its mark, or Git's."""
    (root / "index.lock").write_bytes(content)
    found = read_mark(root)
    if found is not None:
        assert found.is_left in (True, False)
        assert found.rebooted in (True, False)
        (root / "index.lock").write_bytes(found.encode())
        again = read_mark(root)
        assert again is not None
        assert (again.pid, again.seq) == (found.pid, found.seq)


def snapshot(content: bytes, root: Path) -> None:
    """A snapshot that is not sound is passed over."""
    writer = HistoryWriter(root, CODEC)
    writer.catch_up()
    (first,) = writer.append([message("hello")])
    writer.close()
    kept = Snapshots(root / "snapshots", History(root, CODEC), "1")
    for part in (content, content.replace(b"HASH", first.hash.encode())):
        assert kept.save(first.seq, first.hash, part)
        loaded = kept.load(State.decode)
        assert loaded is None or loaded[1].seq == 1
        (written,) = (root / "snapshots").iterdir()
        label, _, _ = written.read_bytes().partition(b"\n")
        for whole in (part, _with_position(label, part), label[: len(part)] + part):
            written.write_bytes(whole)
            assert kept.load(State.decode) is None or whole == part
        kept.clear()


def _with_position(label: bytes, part: bytes) -> bytes:
    """A label whose checksum is right and whose position is someone's."""
    fields = json.loads(label)
    fields["checksum"] = "cae66941d9efbd404e4d88758ea67670"  # of nothing
    head, _, end = json.dumps(fields).encode().partition(json.dumps(fields["position"]).encode())
    return head + part.replace(b"\n", b" ") + end + b"\n"


def waiting(content: bytes, root: Path) -> None:
    """What cannot be read of the waiting file is passed over; the rest can be applied."""
    (root / "waiting-0000000001.jsonl").write_bytes(content)
    _, records = Follower(WaitingFile(root)).poll()
    overlay = Overlay()
    for record in records:
        overlay.apply(record, {})


def text(content: bytes, _root: Path) -> None:
    """Redaction ends, finds what stands in the text, and does nothing to what it has redacted."""
    given = content.decode("utf-8", "surrogatepass" if b"\xed" in content else "surrogateescape") \
        if _is_text(content) else content.decode("latin-1")  # fmt: skip
    end = 0
    for found in find(given):
        assert end <= found.start < found.end <= len(given)
        end = found.end
    cleaned = clean(given)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert redact(given, keep_lines=True).count("\n") == given.count("\n")


def wrapped(content: bytes, _root: Path) -> None:
    """A token is found in any wrapping, whatever stands around it, and every view leads back to the text."""
    before, _, after = content[1:].decode("latin-1").partition("\x1c")
    around = list(WRAPPINGS.values())
    hidden = around[content[0] % len(around) if content else 0](f"export TOKEN={TOKEN}", TOKEN)
    given = f"{before}\n \n{hidden}\n \n{after}"
    cleaned = clean(given)
    assert TOKEN[20:] not in cleaned
    assert hidden not in cleaned
    assert clean(cleaned) == cleaned
    for view in decodings(given):
        spans = [view.span(at, at + 1) for at in range(0, len(view.text), max(1, len(view.text) // 50))]
        assert all(0 <= start < end <= len(given) for start, end in spans)
        assert spans == sorted(spans)


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8", "surrogatepass" if b"\xed" in content else "surrogateescape")
    except UnicodeDecodeError:
        return False
    return True


def quoting(content: bytes, _root: Path) -> None:
    """Own words stand where they stood, nothing rests on what was left out, and what is quoted whole gives nothing."""
    given = content.decode("utf-8", "replace")
    plain, read = own_words(given), straighten(given[:MAX_CHARACTERS])
    assert len(plain) == len(read)
    assert all(mine == theirs or mine in "\nˣ" for mine, theirs in zip(plain, read, strict=True))
    end = 0
    for part in material(given):
        assert end <= part.start < part.end <= len(given)
        end = part.end
    for found in findings(given):
        assert 0 <= found.evidence.start < found.evidence.end <= len(given)
        if isinstance(found, Demand | Rejection):
            assert any(map(str.isalnum, plain[found.evidence.start : found.evidence.end]))
    lines = re.split(r"\r\n?|\n", given)[: MAX_CHARACTERS // 4]
    assert not findings("\n".join(f"> {line}" for line in lines)[:MAX_CHARACTERS])
    ticks = "`" * (max(map(len, re.findall("`+", given)), default=2) + 3)
    assert not findings(f"{ticks}\n{given[: MAX_CHARACTERS // 2]}\n{ticks}")


def orphans(content: bytes, root: Path) -> None:
    """Lines that are no events are kept each once, whatever stands in their file already."""
    there, _, found = content.partition(SEAL)
    file = root / "orphans.jsonl"
    file.write_bytes(there)
    lines = [(line, "it is foreign") for line in found.splitlines(keepends=True)]
    for _ in range(2):
        Orphans(file).keep(lines)
        kept = file.read_bytes()
        assert kept.startswith(there)
    fresh = kept[len(there) :].split(b"\n")
    assert len(fresh) == len(set(fresh) - {b""}) + fresh.count(b"")
    assert all(json.loads(line)["why"] for line in fresh if line)


def ignored(content: bytes, root: Path) -> None:
    """Any ``.gitignore`` can be read."""
    (root / ".gitignore").write_bytes(content)
    rules = IgnoreRules(root)
    for name in ("file.txt", "folder/file", "a" * 60, os.fsdecode(b"\xff")):
        assert rules.ignores(name) in (True, False)


def config(content: bytes, root: Path) -> None:
    """Any ``agentx.toml`` is a configuration, or is told to be none."""
    (root / "agentx.toml").write_bytes(content)
    with contextlib.suppress(ConfigInvalid):
        read_config(root)


def git_config(content: bytes, root: Path) -> None:
    """Any ``.git/config`` opens a repository whose remotes are plain addresses, or is refused."""
    git_dir = root / ".git"
    for name in ("objects/pack", "refs/heads", "info"):
        (git_dir / name).mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "config").write_bytes(content)
    with contextlib.suppress(AgentXError):
        layout.check(root)
        local.set_up(git_dir)
        GitRepository(root).close()
        for name in local.remotes(git_dir):
            with contextlib.suppress(NoRemote):
                found = Remote.find(root, name)
                assert found.url == local.remotes(git_dir)[name]
                shown = unquote(found.url) if "://" in found.url else found.url
                assert not any(char < " " or char == "\x7f" for char in shown)
                assert found.shown.isascii() or found.shown


def git_object(content: bytes, root: Path) -> None:
    """Any file is the object that its name says, whose size is within bounds, or it is damaged."""
    (root / "one").write_bytes(content)
    name = ""
    with contextlib.suppress(zlib.error):
        name = hashlib.sha1(zlib.decompressobj().decompress(content, 1 << 20)).hexdigest()
    with contextlib.suppress(ObjectDamaged):
        found = read_loose(root / "one", name)
        assert found is not None
        assert len(found[1]) <= LARGEST[found[0]]
        assert hashlib.sha1(f"{found[0]} {len(found[1])}\0".encode() + found[1]).hexdigest() == name


def git_delta(content: bytes, _root: Path) -> None:
    """Any delta makes what it declares of its base, or it is damaged."""
    base, _, made = content.partition(SEAL)
    with contextlib.suppress(ObjectDamaged):
        size, _ = delta.result_size(made, len(base))
        if size <= 1 << 20:
            assert len(delta.apply(base, made)) == size


def pipeline(content: bytes, root: Path) -> None:
    """Any file is a pipeline whose steps are known, or is refused with what is wrong with it."""
    (root / "book.yaml").write_bytes(content)
    with contextlib.suppress(PipelineInvalid):
        assert resolve(*read(root / "book.yaml")).steps


def keys(content: bytes, root: Path) -> None:
    """A table of keys that is damaged is made anew."""
    writer = HistoryWriter(root, CODEC)
    writer.catch_up()
    writer.append([msgspec.structs.replace(message("hello"), key="one")])
    writer.close()
    (root / "keys.sqlite3").write_bytes(content)
    table = Keys(root / "keys.sqlite3", History(root, CODEC))
    try:
        assert [event.seq for event in table.find(["one", "two"]).values()] == [1]
    finally:
        table.close()


TARGETS: dict[str, Target] = {
    made.__name__: made
    for made in (
        *(log, event, path, tree, pack, branch, mark, snapshot),
        *(waiting, text, quoting, wrapped, orphans, ignored, config, keys, pipeline),
        *(git_config, git_object, git_delta),
    )
}
