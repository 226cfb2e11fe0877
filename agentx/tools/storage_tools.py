"""The storage tools: read and change artifacts. Each successful write is one commit."""

import stat
from typing import Annotated

import msgspec
from pydantic import Field

from agentx.recording.staging import Content
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.paths import check_folder, check_path
from agentx.storage.text import is_binary
from agentx.synthesis.chunking.passages import outline, why_no_outline
from agentx.synthesis.chunking.pieces import OutlineEntry
from agentx.tools.toolset import Job, ToolSet, tool
from agentx.transfer import linked_workspaces as links
from agentx.transfer.linked_workspaces import is_linked

LONG_FILE_LINES = 400
"""A longer file is answered with its outline unless a range is requested."""

MAX_READ_LINES = 1_000
MAX_READ_BYTES = 100_000
PAGE = 100

PathArgument = Annotated[str, Field(description="Path relative to the artifacts, with forward slashes.")]


class EditRefused(AgentXError):
    """An edit does not identify exactly one place."""


class NotText(AgentXError):
    """A file is binary, or not UTF-8."""


class FileText(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a file, or the outline of a long one.

    Attributes:
        text: The lines, joined by line feeds; empty if only the outline is given.
        start_line: First line given, from 1.
        end_line: Last line given, inclusive.
        total_lines: Number of lines of the whole file.
        outline: Definitions and headings with their lines, if the file is long.
        cut: Whether requested lines are missing because they exceed the limit.
        note: For a file of a linked workspace: its origin and age. Why it has no outline.
    """

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    outline: tuple[OutlineEntry, ...] = ()
    cut: bool = False
    note: str = ""

    def render(self) -> str:
        """Return the file as an agent reads it."""
        told = [f"[{self.note}]"] if self.note else []
        if self.outline:
            entries = [f"  {e.start_line}-{e.end_line}: {e.signature or e.symbol}" for e in self.outline]
            return "\n".join(
                [
                    *told,
                    (
                        f"{self.path} has {self.total_lines} lines. "
                        "Its outline; read a part with start_line and end_line:"
                    ),
                    *entries,
                ]
            )
        note = "\n[cut here; ask for the rest with start_line, or search for it]" if self.cut else ""
        head = f"{self.path}, lines {self.start_line}-{self.end_line} of {self.total_lines}:"
        return "\n".join([*told, head, self.text]) + note


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a write.

    Attributes:
        paths: Files that were changed; empty if the content was the same.
        seq: The event that recorded it; 0 if nothing changed.
        summary: One-line summary.
    """

    paths: tuple[str, ...]
    seq: int
    summary: str

    def render(self) -> str:
        """Return the summary."""
        return self.summary


class DirectoryEntry(msgspec.Struct, frozen=True):
    """One entry of a directory. A directory has ``size_bytes`` 0; ``files`` counts the files below it."""

    path: str
    directory: bool
    size_bytes: int
    files: int = 0


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a directory."""

    path: str
    entries: tuple[DirectoryEntry, ...]
    total: int
    page: int
    pages: int
    links: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the listing, one entry per line."""
        lines = [
            f"{e.path}/  ({e.files} files)" if e.directory else f"{e.path}  {e.size_bytes:,} B"
            for e in self.entries
        ]
        more = (
            f"\n[page {self.page} of {self.pages}; {self.total:,} entries in all]" if self.pages > 1 else ""
        )
        linked = f"\n[read_file also reads other workspaces: {' '.join(self.links)}]" if self.links else ""
        return ("\n".join(lines) or f"{self.path or '.'} is empty.") + more + linked


class StorageTools(ToolSet):
    """Tools that read and write artifacts."""

    @tool
    def read_file(
        self,
        job: Job,
        path: PathArgument,
        start_line: Annotated[int, Field(ge=1, description="First line to read, from 1.")] = 1,
        end_line: Annotated[int | None, Field(ge=1, description="Last line to read, inclusive.")] = None,
        *,
        outline_only: Annotated[
            bool, Field(description="Only definitions and headings with their lines.")
        ] = False,
    ) -> FileText:
        """Read a text file, some of its lines, or its outline. `LINK:path` reads a linked workspace."""
        del job
        path, whole_text, note = self._linked(path) if is_linked(path) else self._own(path)
        lines = whole_text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        whole = start_line == 1 and end_line is None
        if outline_only or (whole and len(lines) > LONG_FILE_LINES):
            entries = tuple(outline(path, "\n".join(lines)))
            if entries:
                return FileText(
                    path=path,
                    text="",
                    start_line=0,
                    end_line=0,
                    total_lines=len(lines),
                    outline=entries,
                    note=note,
                )
            note = " ".join(filter(None, (note, why_no_outline(path))))
        if start_line > max(len(lines), 1):
            raise UsageError(f"{path} has {len(lines)} lines; line {start_line} is past its end.")
        if end_line is not None and end_line < start_line:
            raise UsageError(f"end_line {end_line} is before start_line {start_line}.")
        wanted = lines[start_line - 1 : end_line]
        given = _bounded(wanted)
        return FileText(
            path=path,
            text="\n".join(given),
            start_line=start_line,
            end_line=start_line + len(given) - 1,
            total_lines=len(lines),
            cut=given != wanted,
            note=note,
        )

    @tool
    def write_file(
        self,
        job: Job,
        path: PathArgument,
        content: Annotated[str, Field(description="The whole new content of the file.")],
    ) -> Written:
        """Write a whole file, creating it and its directories where they are missing."""
        path = check_path(path)
        executable = self._is_executable_file(path)
        data = _encode(content)
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        summary = f"Wrote {path} ({lines} lines, {len(data):,} bytes)."
        return self._write(job, {path: Content(data, executable)}, summary)

    @tool
    def edit_file(
        self,
        job: Job,
        path: PathArgument,
        old: Annotated[
            str, Field(min_length=1, description="The exact text to replace; it must occur exactly once.")
        ],
        new: Annotated[str, Field(description="What to put in its place.")],
    ) -> Written:
        """Replace one exact passage of a file; refused if it is missing or occurs more than once."""
        path = check_path(path)
        with self.engine.write_path.exclusive():
            executable = self._is_executable_file(path)
            text = self.read_text(path)
            count = text.count(old)
            if count == 0:
                raise EditRefused(
                    f"The text to replace is not in {path}; read the file and give the text exactly."
                )
            if count > 1:
                lines = ", ".join(str(line) for line in _lines_of(text, old))
                raise EditRefused(
                    f"The text to replace occurs {count} times in {path} (lines {lines}); "
                    "include more of the lines around it."
                )
            data = _encode(text.replace(old, new, 1))
            line = text[: text.index(old)].count("\n") + 1
            return self._write(job, {path: Content(data, executable)}, f"Edited {path} at line {line}.")

    @tool
    def move_file(
        self,
        job: Job,
        path: PathArgument,
        to: Annotated[str, Field(description="The new path; nothing may be there.")],
    ) -> Written:
        """Move or rename a file, or a directory with everything in it."""
        path, to = check_path(path), check_path(to)
        artifacts = self.engine.artifacts
        with self.engine.write_path.exclusive():
            if nofollow.exists(artifacts.locate(to)):
                raise EditRefused(f"{to} already exists; delete it first or choose another name.")
            if to.startswith(path + "/"):
                raise EditRefused(f"{path} cannot be moved into itself.")
            contents: dict[str, Content | None] = {}
            for old in self._files_at(path):
                contents[to + old.removeprefix(path)] = self._content(old)
                contents[old] = None
            return self._write(job, contents, f"Moved {path} to {to}.")

    @tool
    def delete_file(self, job: Job, path: PathArgument) -> Written:
        """Delete a file, or a directory with everything in it; the history keeps what was there."""
        path = check_path(path)
        with self.engine.write_path.exclusive():
            files = self._files_at(path)
            return self._write(job, dict.fromkeys(files), f"Deleted {path} ({len(files)} files).")

    @tool
    def list_directory(
        self,
        job: Job,
        path: Annotated[str, Field(description="Directory relative to the artifacts; empty for all.")] = "",
        depth: Annotated[int, Field(ge=1, le=5, description="How many levels to show.")] = 1,
        page: Annotated[int, Field(ge=1, description="Which page, from 1.")] = 1,
    ) -> Listing:
        """List a directory with sizes and counts, in pages."""
        del job
        folder = check_folder(path)
        if folder and not nofollow.is_directory(self.engine.artifacts.locate(folder, follow=True)):
            raise ArtifactMissing(f"The artifacts have no directory {folder!r}.")
        entries = _entries(self.engine.artifacts.listing(), folder, depth)
        pages = max(1, -(-len(entries) // PAGE))
        if page > pages:
            raise UsageError(f"{folder or 'The directory'} has {pages} pages, so page {page} does not exist.")
        shown = tuple(entries[(page - 1) * PAGE : page * PAGE])
        linked = () if folder else links.names(self.engine.config)
        return Listing(path=folder, entries=shown, total=len(entries), page=page, pages=pages, links=linked)

    # --- what the tools share -------------------------------------------------------------------------------

    def _own(self, path: str) -> tuple[str, str, str]:
        path = check_path(path)
        return path, self.read_text(path), ""

    def _linked(self, name: str) -> tuple[str, str, str]:
        found = links.read(self.engine, name)
        return found.name, _decoded(found.name, found.data), found.note

    def read_text(self, path: str) -> str:
        """Return a file's text.

        Raises:
            ArtifactMissing: The file does not exist.
            NotText: It is binary or not UTF-8.
        """
        target = self.engine.artifacts.locate(path, follow=True)
        if nofollow.is_directory(target):
            raise ArtifactMissing(f"{path!r} is a directory; list it with list_directory.")
        try:
            info = nofollow.status(target)
        except FileNotFoundError:
            raise ArtifactMissing(f"The artifacts have no file {path!r}.") from None
        self.engine.artifacts.check_size(path, info.st_size)
        return _decoded(path, nofollow.read(target))

    def _write(self, job: Job, contents: dict[str, Content | None], summary: str) -> Written:
        changes = job.write(contents, summary)
        seq = job.event.seq if job.event else 0
        if not changes:
            return Written(
                paths=(), seq=seq, summary=f"{next(iter(contents), 'Nothing')} already has that content."
            )
        return Written(paths=tuple(made.path for made in changes), seq=seq, summary=summary)

    def _is_executable_file(self, path: str) -> bool:
        """Return whether a file is executable; refuse a link, which a write would replace."""
        artifacts = self.engine.artifacts
        info = artifacts.status(path)
        if info is not None and stat.S_ISLNK(info.st_mode):
            raise EditRefused(
                f"{path} is a link to {nofollow.read_link(artifacts.locate(path))!r}; "
                "write that file, or delete the link first."
            )
        return info is not None and _is_executable(info.st_mode)

    def _content(self, path: str) -> Content:
        artifacts = self.engine.artifacts
        mode = nofollow.mode(artifacts.locate(path))
        return Content(artifacts.content(path), _is_executable(mode), stat.S_ISLNK(mode))

    def _files_at(self, path: str) -> list[str]:
        artifacts = self.engine.artifacts
        target = artifacts.locate(path)
        if nofollow.is_directory(target) and not nofollow.is_link(target):
            # Record files that the user put there first, so that the change includes them.
            self.engine.edits.scan(noticed="write")
            found = [name for name in self.engine.git.manifest() if name.startswith(path + "/")]
            if found:
                return found
        elif artifacts.identify(path) is not None:
            return [path]
        raise ArtifactMissing(f"The artifacts have no file {path!r}.")


def _is_executable(mode: int) -> bool:
    return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)


def _decoded(path: str, data: bytes) -> str:
    if is_binary(data):
        raise NotText(f"{path} is binary ({len(data):,} bytes); it cannot be read as text.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(f"{path} is not UTF-8 (byte {error.start}); it cannot be read as text.") from error


def _encode(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"The content is not valid Unicode at character {error.start}.") from error


def _lines_of(text: str, passage: str) -> list[int]:
    found: list[int] = []
    start = text.find(passage)
    while start >= 0 and len(found) < 10:  # noqa: PLR2004 - enough to find them
        found.append(text.count("\n", 0, start) + 1)
        start = text.find(passage, start + 1)
    return found


def _bounded(lines: list[str]) -> list[str]:
    given: list[str] = []
    size = 0
    for line in lines[:MAX_READ_LINES]:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > MAX_READ_BYTES:
            if not given:
                given.append(line[:MAX_READ_BYTES])
            break
        given.append(line)
    return given


def _entries(files: "list[tuple[str, int]]", folder: str, depth: int) -> list[DirectoryEntry]:
    """Return files and directories below a folder down to a depth; directories with their number of files."""
    prefix = folder + "/" if folder else ""
    found: list[DirectoryEntry] = []
    counts: dict[str, int] = {}
    for path, size in files:
        if not path.startswith(prefix):
            continue
        parts = path.removeprefix(prefix).split("/")
        for level in range(1, min(len(parts), depth + 1)):
            name = prefix + "/".join(parts[:level])
            counts[name] = counts.get(name, 0) + 1
        if len(parts) <= depth:
            found.append(DirectoryEntry(path, False, size))
    found += [DirectoryEntry(name, True, 0, count) for name, count in counts.items()]
    return sorted(found, key=lambda entry: entry.path)
