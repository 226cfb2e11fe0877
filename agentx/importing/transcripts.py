"""Import transcripts into a workspace, and find those of this user."""

import contextlib
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.importing.entries import ProjectRoot
from agentx.importing.hosts import FORMATS, TranscriptFormat
from agentx.importing.imported_files import name_of
from agentx.importing.lines import UNREADABLE, Lines, numbered
from agentx.importing.recorder import Imported, TranscriptRecorder
from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.progress import Progress

_LOOKED_AT = 400
"""Entries of a transcript that are read to learn when it begins."""


class FoundTranscript(msgspec.Struct, frozen=True):
    """A transcript in one of the usual places of a host.

    Attributes:
        began: Time of its first record; empty if none has one.
        changed: When the file last changed, in seconds since 1970.
        project: Name of the project; empty if the transcript does not say it.
    """

    host: str
    path: str
    size_bytes: int
    began: str
    changed: float
    project: str


def import_transcripts(
    engine: Engine, host: str, paths: Sequence[Path], *, home: Path, progress: Progress | None = None
) -> Imported:
    """Record what is new in transcripts, the earliest session first.

    Each batch is durable before the next. After a kill, the next import goes on where this one ended.

    Args:
        engine: The workspace.
        host: A name in :data:`agentx.importing.hosts.FORMATS`.
        paths: Files, and directories that are searched for them; links in these are not followed.
        home: The user's home, which the record shows as ``~``.
        progress: Called with the step, the bytes done and the bytes of all files.

    Raises:
        UsageError: A path does not exist, or there is no transcript in them.
        ReadOnly: The workspace is read-only.
    """
    engine.write_path.require_writable()
    form = FORMATS[host]
    files = [(path, *_beginning(path, form)) for path in _files(paths, form)]
    if not files:
        raise UsageError(
            f"There is no file that ends in {' or '.join(form.endings)} in {', '.join(map(str, paths))}."
        )
    files.sort(key=lambda one: (one[1], str(one[0])))
    total = sum(size_of(path) for path, *_ in files)
    done = 0

    def tell(read: int, most: int = 0) -> None:
        if progress:
            progress("import", min(done + min(read, most or read), total), total)

    tell(0)
    recorder = TranscriptRecorder(engine, host, form.version, engine.settings.actor, tell)
    with engine.write_path.bulk():
        for path, began, _ in files:
            try:
                recorder.record(path, form.read, _shown(path, home), began)
            except UNREADABLE as error:
                recorder.report.problems.append(f"{path} could not be read: {error}")
            done += size_of(path)
            tell(0)
    return recorder.report


def discover(home: Path) -> Iterator[FoundTranscript]:
    """Yield the transcripts in the usual places of each host, newest first within a host."""
    for host, form in FORMATS.items():
        places = [home / place for place in form.places if (home / place).is_dir()]
        files = [path for path in _files(places, form) if form.within in ("", path.parent.name)]
        found = [_found(host, form, path) for path in files]
        yield from sorted(found, key=lambda one: -one.changed)


def _found(host: str, form: TranscriptFormat, path: Path) -> FoundTranscript:
    info = path.stat()
    began, project = _beginning(path, form)
    return FoundTranscript(host, str(path), size_of(path), began, info.st_mtime, project)


def _files(paths: Sequence[Path], form: TranscriptFormat) -> list[Path]:
    """Return the transcripts among some paths, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        place = nofollow.canonical(path)
        if place.is_dir():
            found |= dict.fromkeys(sorted(_below(place, form)))
        elif stat.S_ISREG(place.stat().st_mode):
            found[place] = None
        else:
            raise UsageError(f"{path} is neither a file nor a directory.")
    return list(found)


def _below(folder: Path, form: TranscriptFormat) -> Iterator[Path]:
    if form.folder and folder.name == form.folder and numbered(folder):
        yield folder
        return
    try:
        listed = nofollow.listed(folder)
    except OSError:  # not to be read, or gone
        return
    for path in listed:
        name = path.name.removesuffix(".gz")
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _below(path, form)
        elif name.endswith(form.endings) and path.is_file():
            yield path


def size_of(path: Path) -> int:
    """Return the bytes of a transcript on disk."""
    return sum(part.stat().st_size for part in numbered(path)) if path.is_dir() else path.stat().st_size


def _beginning(path: Path, form: TranscriptFormat) -> tuple[str, str]:
    """Return when a transcript begins and its project, as far as its first entries say."""
    began = project = ""
    try:
        with contextlib.closing(form.read(Lines(path))) as entries:
            for entry in islice(entries, _LOOKED_AT):
                began = began or entry.at
                if isinstance(entry, ProjectRoot):
                    project = name_of(entry.root)
                if began and project:
                    break
    except UNREADABLE:
        pass
    return began, project


def _shown(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
