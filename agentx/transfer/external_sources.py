"""Read-only sources: sets of files too large to copy, indexed in place and incrementally.

A hit in a source cites path and content hash. Sources are outside the state's digest and outside ``as_of``:
the history only records that a source was scanned, with a hash over its manifest.
"""

import stat
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.config import SourceSection
from agentx.engine.engine import Engine
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, SourceScanned
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.index.port import Chunk
from agentx.storage.matching import globs
from agentx.storage.progress import Progress
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import encodable, is_binary
from agentx.synthesis.chunking import kind_of_file, split_file

_BATCH_CHUNKS = 512
_SAVE_FILES = 200


class Seen(msgspec.Struct, frozen=True):
    """A file of a source at the time it was indexed."""

    mtime_ns: int
    size_bytes: int
    content_hash: str


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of scanning a source.

    Attributes:
        files: Number of files now indexed.
        changed: Number of files read in this scan.
        gone: Number of files dropped from the index.
        manifest_hash: Hash over all paths and contents.
        left_out: Files that could not be read, and why.
    """

    name: str
    files: int
    changed: int
    gone: int
    size_bytes: int
    manifest_hash: str
    left_out: tuple[str, ...] = ()


class Sources:
    """The sources of one workspace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._manifests = engine.write_path.cache / "sources"

    def scan(self, progress: Progress | None = None) -> list[SourceReport]:
        """Update the index for every declared source; an interrupted scan continues where it stopped.

        A source that is no longer declared is dropped from the index.

        Raises:
            UsageError: A source's directory does not exist.
            Restricted: The workspace declares sources, and is not trusted.
        """
        declared = self._engine.config.sources
        if declared:
            self._engine.trust.require("sources")
        if not self._engine.write_path.read_only:  # else the index is in memory, and starts empty
            names = {section.name for section in declared}
            for path in nofollow.listed(self._manifests, suffix=".json"):
                if path.stem not in names:
                    for file in self._load(path.stem):
                        self._drop(path.stem, file)
                    nofollow.remove(path)
        return [self._scan(section, progress) for section in declared]

    def _scan(self, section: SourceSection, progress: Progress | None) -> SourceReport:
        root = (self._engine.root / section.path).resolve()
        if not nofollow.is_directory(root):
            raise UsageError(
                f"The source {section.name!r} has no directory {root}; fix `sources` in agentx.toml, "
                "or mount it."
            )
        manifest = self._load(section.name)
        found, left_out = _files(root, section)
        known = {path: (seen.mtime_ns, seen.size_bytes) for path, seen in manifest.items()}
        fresh = [path for path, time_and_size in found.items() if known.get(path) != time_and_size]
        gone = sorted(manifest.keys() - found.keys())
        for path in gone:
            self._drop(section.name, path)
            del manifest[path]
        read = 0
        for number, path in enumerate(fresh, start=1):
            try:
                manifest[path] = self._read(section, root, path, known=path in manifest)
                read += 1
            except OSError as error:
                left_out.append(f"{path} cannot be read: {error.strerror}.")
            if progress:
                progress(f"source {section.name}", number, len(fresh))
            if number % _SAVE_FILES == 0:
                self._save(section.name, manifest)
        if fresh or gone:
            self._save(section.name, manifest)
        digest = blake2b(digest_size=32)
        for path in sorted(manifest):
            digest.update(f"{path}\0{manifest[path].content_hash}\n".encode())
        report = SourceReport(
            name=section.name,
            files=len(manifest),
            changed=read,
            gone=len(gone),
            size_bytes=sum(seen.size_bytes for seen in manifest.values()),
            manifest_hash=digest.hexdigest(),
            left_out=tuple(left_out),
        )
        self._record(report)
        return report

    def _read(self, section: SourceSection, root: Path, path: str, *, known: bool) -> Seen:
        info = nofollow.status(root / path)
        data = nofollow.read(root / path)
        digest = blake2b(data, digest_size=32).hexdigest()
        if known:
            self._drop(section.name, path)
        if not is_binary(data):
            text = clean(data.decode("utf-8", "replace"), keep_lines=True)
            kind = kind_of_file(path, text)
            chunks = [
                Chunk(
                    id=f"s:{section.name}:{digest[:16]}:{path}:{name}",
                    text=piece.text,
                    context=piece.context,
                    kind="source",
                    path=path,
                    start_line=piece.start_line,
                    end_line=piece.end_line,
                    symbol=piece.symbol,
                    source=section.name,
                    content_id=digest,
                    file_kind=kind,
                )
                for name, piece in split_file(path, text)
            ]
            for start in range(0, len(chunks), _BATCH_CHUNKS):
                self._engine.indexer.index.put(chunks[start : start + _BATCH_CHUNKS])
        return Seen(info.st_mtime_ns, info.st_size, digest)

    def _drop(self, source: str, path: str) -> None:
        self._engine.indexer.index.close_chunks(path=path, seq=0, source=source)

    def _record(self, report: SourceReport) -> None:
        """Record a scan once for each state of the source."""
        scanned = SourceScanned(
            source=report.name,
            manifest_hash=report.manifest_hash,
            files=report.files,
            size_bytes=report.size_bytes,
        )
        key = f"source:{report.name}:{report.manifest_hash}"
        if not self._engine.write_path.read_only:
            self._engine.write_path.record([Draft(data=scanned, actor="engine:sources", key=key)])

    def _load(self, name: str) -> dict[str, Seen]:
        """Return the manifest that goes with the index; empty if the index was emptied since."""
        path = self._manifests / f"{name}.json"
        if self._engine.indexer.index.read_meta(f"source:{name}") != "indexed":
            return {}
        try:
            return msgspec.json.decode(nofollow.read(path), type=dict[str, Seen])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _save(self, name: str, manifest: dict[str, Seen]) -> None:
        if self._engine.write_path.read_only:
            return
        write_file(self._manifests / f"{name}.json", msgspec.json.encode(manifest))
        self._engine.indexer.index.write_meta(f"source:{name}", "indexed")


def _files(root: Path, section: SourceSection) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return time and size of each file of a source, by path; and the files that cannot be cited."""
    include, exclude = globs.spec(section.include), globs.spec(section.exclude)
    rules = IgnoreRules(root)
    files = Artifacts(root, section.max_file_bytes)
    found: dict[str, tuple[int, int]] = {}
    left_out: list[str] = []
    for path, info in files.walk(lambda name, directory: rules.ignores(name, directory=directory)):
        if not stat.S_ISREG(info.st_mode):
            continue  # a link could lead anywhere, and reading a pipe would wait for ever
        if encodable(path) != path:
            left_out.append(f"{path!r} is skipped: its name is not UTF-8.")
        elif (
            info.st_size <= section.max_file_bytes
            and include.match_file(path)
            and not exclude.match_file(path)
        ):
            found[path] = (info.st_mtime_ns, info.st_size)
    return found, left_out
