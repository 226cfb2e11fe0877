"""The tools of a dispatched agent: its own files, and nothing beyond them.

An access beyond its pointers is denied and recorded. The message names the role, the file and the rule.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from pydantic import Field

from agentx.directing.executor_tools import Result
from agentx.engine.engine import Engine
from agentx.policy.approvals import NotApproved
from agentx.policy.workspace_gates import Gates, Look
from agentx.recording.staging import Content
from agentx.storage.errors import UsageError
from agentx.storage.events.types import AgentThoughtProcess, Draft
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused, check_path
from agentx.storage.text import decoded, one_line
from agentx.synthesis.model.port import ToolSchema
from agentx.tools.storage_tools import FileText, Written
from agentx.tools.toolset import Job, ToolResult, ToolSet

MAX_HITS = 20
_KEPT = 3
LONGEST_READ = 100_000
"""Maximum number of characters that one read returns."""

LEAST_READ = 4_000
"""Minimum number of characters that one read may return, even when the room is used up: a page."""


class PointerDenied(NotApproved):
    """An agent tried to access a file outside its pointers."""


class Pointers(msgspec.Struct, frozen=True, kw_only=True):
    """What one dispatch may access.

    Attributes:
        role: Name of the role.
        stage: The stage and item, as ``write[03]``.
        readable: Text of each file that it may read, by the path that it knows.
        writable: Paths that it may write.
        why_not: Reasons why its role does not read certain files, by path.
        room: Characters that it may read beyond what it was given, in all reads together.
        review: Returns what is wrong with a file that it wrote, one sentence each. The agent sees this at
            once.
    """

    role: str
    stage: str
    readable: Mapping[str, str]
    writable: tuple[str, ...]
    why_not: Mapping[str, str] = {}
    room: int = LONGEST_READ
    review: Callable[[str, str], list[str]] = lambda _path, _text: []


class EndedWork(msgspec.Struct, frozen=True):
    """The answer to an agent that gives up."""

    def render(self) -> str:
        """Return the answer as text."""
        return "Noted. Your work ends here: answer with one short sentence."


class FoundLines(msgspec.Struct, frozen=True):
    """Lines that contain the words of a search."""

    lines: tuple[str, ...]

    def render(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines) or "Nothing was found in your files."


PathArgument = Annotated[str, Field(description="One of your files, as it was named to you.")]


def read_file(
    path: PathArgument,
    start_line: Annotated[int, Field(ge=1, description="First line, from 1.")] = 1,
    end_line: Annotated[int | None, Field(ge=1, description="Last line, inclusive.")] = None,
) -> None:
    """Read one of your files whole, or some of its lines."""


def search_files(
    words: Annotated[
        str, Field(min_length=1, max_length=200, description="Words; a line that has all of them is a hit.")
    ],
) -> None:
    """Find the lines of your files that have some words."""


def write_file(
    path: PathArgument, content: Annotated[str, Field(description="The whole content of the file.")]
) -> None:
    """Write one of the files that you are to write, whole."""


def edit_file(
    path: PathArgument,
    old: Annotated[str, Field(description="Text that occurs once in the file; empty adds `new` at its end.")],
    new: Annotated[str, Field(description="The text in its place.")],
) -> None:
    """Change a part of a file that you are to write, or add to its end."""


def need(
    path: Annotated[str, Field(max_length=200, description="The file, or what it would have to say.")],
    why: Annotated[str, Field(max_length=500, description="What you cannot do without it.")],
) -> None:
    """Say that you lack a file. This ends your work; a person or an earlier stage sees it."""


def blocked(
    why: Annotated[str, Field(max_length=500, description="Why the task cannot be done as it is.")],
) -> None:
    """Say that the task cannot be done. This ends your work; a person sees it."""


_DECLARED: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (read_file, search_files, write_file, edit_file, need, blocked)
}


class PointerTools(ToolSet):
    """Reads and writes the files of one dispatch.

    Attributes:
        written: Paths that were written.
        asked: Paths of write calls that wait for approval.
        stopped: Why the agent gave up, in its words; empty if it did not.
    """

    def __init__(
        self, engine: Engine, pointers: Pointers, *, actor: str, run: str, gates: Gates | None = None
    ) -> None:
        super().__init__(engine, actor, run, gates)
        self.pointers = pointers
        self.written: set[str] = set()
        self.asked: set[str] = set()
        self.stopped = ""
        self._room = pointers.room

    def names(self) -> list[str]:
        """Return the names of the tools that have a file to work on."""
        files = {
            "read_file": self.pointers.readable,
            "search_files": self.pointers.readable,
            "write_file": self.pointers.writable,
            "edit_file": self.pointers.writable,
        }
        return [name for name in _DECLARED if files.get(name, True)]

    def declared(self, name: str) -> Callable[..., Any]:
        """Return the function whose signature declares a tool's parameters."""
        return _DECLARED[name]

    def body(self, name: str) -> Callable[..., Any]:
        """Return the implementation of a tool."""
        bodies: dict[str, Callable[..., Any]] = {
            "read_file": self._read,
            "search_files": self._search,
            "write_file": self._write,
            "edit_file": self._edit,
            "need": self._need,
            "blocked": self._blocked,
        }
        return bodies[name]

    def schemas(self) -> list[ToolSchema]:
        """Return the schemas for a model; each lists the paths that its tool accepts."""
        own = list(self.pointers.writable)
        paths = {"read_file": list(self.pointers.readable), "write_file": own, "edit_file": own}
        return [_with_paths(schema, paths.get(schema.name)) for schema in super().schemas()]

    def _look(self, job: Job, arguments: dict[str, Any]) -> Look:
        path = self.path_of(job.tool, arguments)
        if path and path in self.asked:  # it would need a second approval
            raise PointerDenied(
                f"Denied. Your last call on {path} is still waiting for approval. "
                "Write your other files, or stop here."
            )
        return super()._look(job, arguments)

    def path_of(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the writable file that a call would write; empty for none."""
        path = posixpath.normpath(str(arguments.get("path", "")))
        writes = tool in (write_file.__name__, edit_file.__name__)
        return path if writes and path in self.pointers.writable else ""

    def _read(self, _tools: ToolSet, _job: Job, path: str, start_line: int, end_line: int | None) -> FileText:
        text = self.pointers.readable.get(path)
        if text is None:
            why = self.pointers.why_not.get(path)
            rule = "a role sees the files that it is pointed to, and no others"
            if why is not None:
                rule = f"that file is on the list of those that it does not read{f' ({why})' if why else ''}"
            raise PointerDenied(
                f"Denied. {self._who} may not read {path[:200]}: {rule}. "
                f"Its files are {', '.join(self.pointers.readable) or 'none'}."
            )
        lines = text.splitlines()
        if start_line > max(len(lines), 1):
            raise UsageError(f"{path} has {len(lines)} lines; line {start_line} is past its end.")
        wanted = "\n".join(lines[start_line - 1 : end_line])
        given = wanted[: min(LONGEST_READ, max(self._room, LEAST_READ))]
        self._room -= len(given)
        return FileText(
            path=path,
            text=given,
            start_line=start_line,
            end_line=start_line + given.count("\n"),
            total_lines=len(lines),
            cut=given != wanted,
        )

    def _search(self, _tools: ToolSet, _job: Job, words: str) -> FoundLines:
        wanted = [word.casefold() for word in re.findall(r"\w+", words)]
        found = [
            f"{path}:{number}: {line.strip()[:200]}"
            for path, text in self.pointers.readable.items()
            for number, line in enumerate(text.splitlines(), start=1)
            if wanted and all(word in line.casefold() for word in wanted)
        ]
        more = [f"… and {len(found) - MAX_HITS} lines more; use more words"] if len(found) > MAX_HITS else []
        return FoundLines((*found[:MAX_HITS], *more))

    def _write(self, _tools: ToolSet, job: Job, path: str, content: str) -> Written:
        try:
            place = check_path(path)
        except PathRefused as error:
            raise PointerDenied(f"Denied. {self._who} may not write {path!r}: {error}") from error
        if place not in self.pointers.writable:
            own = ", ".join(self.pointers.writable)
            raise PointerDenied(
                f"Denied. {self._who} may not write {place}: "
                f"a role writes its own files only, and these are {own}."
            )
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"The content is not valid Unicode at character {error.start}.") from error
        if "\0" in content:
            line = content.count("\n", 0, content.index("\0")) + 1
            raise UsageError(f"The content has a NUL character in line {line}, so it is not text; remove it.")
        said = f"Wrote {place} ({len(data):,} bytes)."
        if wrong := self.pointers.review(place, content):
            said = f"{said} It is not in order yet: {' '.join(wrong)}"
        job.write({place: Content(data)}, said)
        self.written.add(place)
        return Written(paths=(place,), seq=job.event.seq if job.event else 0, summary=said)

    def _edit(self, tools: ToolSet, job: Job, path: str, old: str, new: str) -> Written:
        place = self.path_of(job.tool, {"path": path})
        target = self.engine.artifacts.locate(place, follow=True) if place else None
        text = decoded(nofollow.read(target)) if target is not None and nofollow.is_file(target) else ""
        text = text or ""
        if place and old and text.count(old) != 1:
            many = "does not occur" if old not in text else f"occurs {text.count(old)} times"
            raise UsageError(f"The text {old[:60]!r} {many} in {place}; give one that occurs once.")
        return self._write(tools, job, path, text.replace(old, new) if old else text + new)

    def _need(self, _tools: ToolSet, _job: Job, path: str, why: str) -> EndedWork:
        self.stopped = one_line(f"It needs {path}: {why}")
        return EndedWork()

    def _blocked(self, _tools: ToolSet, _job: Job, why: str) -> EndedWork:
        self.stopped = one_line(f"It is blocked: {why}")
        return EndedWork()

    @property
    def _who(self) -> str:
        return f"Role {self.pointers.role} (stage {self.pointers.stage})"


class PointerHands:
    """The same tools for an executor, which sees nothing but the answers.

    Attributes:
        made: Number of calls so far.
        waiting: Ids of the calls that wait for approval.
        unmet: Answers of the latest calls that failed.
    """

    def __init__(self, tools: PointerTools) -> None:
        self._tools = tools
        self.made = 0
        self.role = tools.pointers.role
        self.waiting: list[str] = []
        self.unmet: list[str] = []

    @property
    def stopped(self) -> str:
        """Why the agent gave up; empty if it did not."""
        return self._tools.stopped

    def stop(self, why: str) -> None:
        """Give up: nobody is sent again for these files."""
        self._tools.stopped = one_line(why)

    @property
    def writable(self) -> tuple[str, ...]:
        """The files that its role writes."""
        return tuple(self._tools.pointers.writable)

    @property
    def untouched(self) -> list[str]:
        """Its files that it neither wrote nor asked to write."""
        tools = self._tools
        return [path for path in tools.pointers.writable if path not in tools.written | tools.asked]

    def schemas(self) -> list[ToolSchema]:
        """Return the schemas of the tools for a model."""
        return self._tools.schemas()

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Result:
        """Run a tool; errors are returned in the result."""
        self.made += 1
        result: ToolResult = self._tools.call(name, arguments, call_id=f"{self._tools.run}-{self.made}")
        if result.approval_needed:
            self.waiting.append(result.call_id)
            asks = self._tools.engine.snapshot().pending[result.call_id]
            self._tools.asked.add(self._tools.path_of(asks.tool, asks.arguments))
        elif result.status != "SUCCEEDED":
            self.unmet = [*self.unmet, result.output][-_KEPT:]
        return Result(result.status, result.output)

    def settle(self, tool: str, call_id: str) -> Result:
        """Run a call that the user has decided, with the arguments that they saw."""
        result = self._tools.call(tool, {}, call_id=call_id)
        return Result(result.status, result.output)

    def say(self, text: str) -> None:
        """Record what the agent writes between its calls."""
        path = self._tools.engine.write_path
        said = AgentThoughtProcess(body=path.body(text))
        path.record([Draft(data=said, actor=self._tools.actor, run=self._tools.run)])


def _with_paths(schema: ToolSchema, paths: list[str] | None) -> ToolSchema:
    if paths is None:
        return schema
    properties = schema.parameters["properties"]
    listed = properties | {"path": properties["path"] | {"enum": paths}}
    return msgspec.structs.replace(schema, parameters=schema.parameters | {"properties": listed})
