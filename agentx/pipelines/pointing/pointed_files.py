"""Reading the files that roles are pointed to: artifacts of the workspace, and read-only trees outside it."""

import codecs
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.git.objects import blob_id
from agentx.storage.text import decoded, is_binary
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.pipeline import Pipeline
from agentx.synthesis.pipelines.definition.plan import ReadFile
from agentx.synthesis.pipelines.running.replaced import in_force
from agentx.trust.trust import Trust

PYTHON = "python"
"""As the program of a role: the interpreter that runs AgentX."""

_NEVER = ("__pycache__", ".git", "node_modules")


class PointerMissing(AgentXError):
    """A file that a role reads is absent, or is not text.

    Attributes:
        absent: Its path, or the pattern of its path, where it does not exist; empty where it cannot be read.
    """

    def __init__(self, message: str, absent: str = "") -> None:
        self.absent = absent
        super().__init__(message)


class PointedText(msgspec.Struct, frozen=True):
    """The current state of a file: the path that an agent sees, its text, and its Git blob id."""

    path: str
    text: str
    blob: str


class Files:
    """Reads the files that roles are pointed to.

    Source trees are relative to ``folder``, the directory of the pipeline's file.

    Raises:
        UsageError: A source tree does not exist.
        Restricted: The pipeline has source trees, and the workspace is not trusted.
    """

    def __init__(
        self, artifacts: Artifacts, pipeline: Pipeline, folder: Path, trust: Trust | None = None
    ) -> None:
        self.artifacts = artifacts
        self.folder = folder
        self._seen: dict[tuple[str, str], str] = {}
        self._growing = {name for name, file in pipeline.files.items() if file.sort == "append-only"}
        self._trees = {name: (folder / path).resolve() for name, path in pipeline.sources.items()}
        if self._trees and trust is not None:
            trust.require("pipeline sources", "the pipeline would read its sources outside the workspace")
        for name, tree in self._trees.items():
            if not nofollow.is_directory(tree):
                raise UsageError(
                    f"The directory of the pipeline's source {name!r} does not exist: {tree}. "
                    "Fix the path under `sources` in the pipeline's file."
                )

    def of(self, read: ReadFile, writes: Collection[str] = ()) -> list[PointedText]:
        """Return the files that a pointer matches.

        Entries of long-term memory that were superseded are left out. Files in ``writes`` keep them, because
        a role that adds to a file has to write all of it. Absent files are skipped where the pointer is
        optional, and where nothing was appended to them yet.

        Raises:
            PointerMissing: A file is absent, or is not text.
        """
        found: list[PointedText] = []
        for pattern in read.paths:
            paths = list(self.matching(read.source, pattern)) if "*" in pattern else [pattern]
            texts = [one for path in paths if (one := self.text(path, read.source)) is not None]
            if not texts and not read.rule.optional and read.rule.file not in self._growing:
                where = f"the source {read.source}" if read.source else "the artifacts"
                raise PointerMissing(f"{read.rule.file}: no file {pattern} in {where}.", pattern)
            for one in texts:
                whole = read.rule.file not in self._growing or one.path in writes
                found.append(one if whole else msgspec.structs.replace(one, text=in_force(one.text)))
        return found

    def text(self, path: str, source: str = "") -> PointedText | None:
        """Read a file; return ``None`` where it does not exist.

        Raises:
            PointerMissing: It is not text, cannot be read, or leads out of its tree.
        """
        told = f"{source}:{path}" if source else path
        try:
            target = self._located(path, source)
            if not nofollow.is_file(target):
                return None
            self.artifacts.check_size(path, nofollow.status(target).st_size)
            data = nofollow.read(target)
        except OSError as error:
            raise PointerMissing(f"{told} cannot be read: {error.strerror or error}.") from error
        text = decoded(data)
        if text is None:
            raise PointerMissing(f"{told} is not UTF-8 text, so no agent can read it: {_why_no_text(data)}")
        blob = blob_id(data)
        if source:
            self._seen.setdefault((source, path), blob)
        return PointedText(told, text, blob)

    def changed_sources(self) -> Iterator[str]:
        """Yield a sentence for each file of a source tree that is not what it was when it was first read."""
        for (source, path), blob in self._seen.items():
            try:
                now = self.text(path, source)
            except (AgentXError, OSError):
                now = None
            if now is None or now.blob != blob:
                how = "changed" if now else "removed"
                yield f"{source}:{path} was {how} from outside while the pipeline ran"

    def _located(self, path: str, source: str) -> Path:
        if not source:
            return self.artifacts.locate(path, follow=True)
        tree = self._trees[source]
        target = (tree / path).resolve()
        if not target.is_relative_to(tree):
            raise PointerMissing(f"{source}:{path} leads out of {tree}.")
        return target

    def matching(self, source: str, pattern: str) -> list[str]:
        """Return the files that a pattern matches.

        Links to directories are not followed, so a walk always ends.

        Raises:
            PointerMissing: A name has unprintable characters, which could pass for words of a prompt.
        """
        matches = path_pattern(pattern).fullmatch
        found = sorted(path for path in self._below(source, pattern) if matches(path))
        if odd := next((path for path in found if not path.isprintable()), ""):
            raise PointerMissing(
                f"The name of {odd!r}, which {pattern} matches, has unprintable characters; rename the file."
            )
        return found

    def _below(self, source: str, pattern: str) -> Iterator[str]:
        """Yield the files that a pattern may match; hidden ones only where it names them."""
        root = self._trees[source] if source else self.artifacts.root
        hidden = "/." in f"/{pattern}"
        begin = root / pattern.partition("*")[0].rpartition("/")[0]
        if not nofollow.is_directory(begin):
            return
        for place, folders, names in nofollow.walk(begin):
            folder = Path(place).relative_to(root)
            deepest = "**" not in pattern and len(folder.parts) == pattern.count("/")
            folders[:] = [] if deepest else [name for name in folders if name not in _NEVER]
            folders[:] = [name for name in folders if hidden or not name.startswith(".")]
            for name in names:
                if (hidden or not name.startswith(".")) and (root / folder / name).is_file():
                    yield (folder / name).as_posix()


def _why_no_text(data: bytes) -> str:
    """Return why a content is not readable as text, and what to do."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it is in UTF-16; save it as UTF-8 (`iconv -f UTF-16 -t UTF-8`)."
    if is_binary(data):
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return (
            f"it is a binary file (NUL in line {line}); convert it to text, "
            "or remove it from the role's `reads`."
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return (
            f"line {line} has the byte 0x{data[error.start]:02X}, which may be Latin-1; save the file as "
            "UTF-8 (`iconv -f LATIN1 -t UTF-8`), or remove it from the role's `reads`."
        )
    return ""
