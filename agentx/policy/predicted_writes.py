"""Predict from its arguments what a tool call would write, for AgentX's tools and those of other agents.

Agents use similar names for arguments: a path, a content, an old and a new text, a command, a patch. Anything
that cannot be predicted from them counts as no change here, and is left to whoever runs the tool.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from agentx.core import worktrees
from agentx.recording.committer import Committer
from agentx.recording.staging import Content
from agentx.storage.artifacts import Artifacts
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused
from agentx.storage.text import decoded, encodable
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.effects import effects

_PATH = (
    "path",
    "filepath",
    "notebookpath",
    "filename",
    "file",
    "targetfile",
    "absolutepath",
    "source",
    "oldpath",
)
_TARGET = ("to", "newpath", "destination", "target")
_WHOLE = ("content", "contents", "text", "filetext", "newsource", "codeedit", "codecontent")
_OLD = ("old", "oldstring", "oldstr", "oldtext")
_NEW = ("new", "newstring", "newstr", "newtext", "inserttext")
_COMMAND = ("command", "cmd", "commandline")
"""Names of arguments as :func:`_plain` returns them: ``file_path`` and ``filePath`` are the same."""

_FOLDER = ("cwd", "workdir", "workingdir", "workingdirectory", "directory", "dirpath")

_REMOVES = ("delete", "remove", "unlink")
_WRITES = ("write", "create", "edit", "patch", "save", "update", "append", "insert", "replace")
_VIEWS = ("view", "read", "undo_edit")
"""Commands of an editor that write no new content."""

_FILES = 2_000
"""Maximum number of files of a directory that are considered."""

_FIELD_CHARACTERS = 2_000
_PATH_CHARACTERS = 4_096
_STRINGS = 1_000
"""Maximum number of strings of one argument that are looked at."""


Contents = dict[str, Content | None]


def paths_of(artifacts: Artifacts, arguments: Mapping[str, Any], *, own: bool = False) -> tuple[str, ...]:
    """Return the artifacts that a call names, as relative paths; paths elsewhere are left out.

    Args:
        artifacts: The artifacts.
        arguments: The call's arguments.
        own: Leave out the same places in other work trees of the project as well.
    """
    given, command = _plain(arguments), located_command(artifacts, arguments)
    changed = [one.path for one in effects(command)] if command else []
    patched = [
        mark["name"] or mark["to"] or mark["unified"]
        for text in arguments.values()
        if isinstance(text, str)
        for mark in _PATCH.finditer(text)
    ]
    named = (*(given.get(name) for name in (*_PATH, *_TARGET)), *changed, *patched)
    return tuple(dict.fromkeys(path for value in named for path in _artifacts(artifacts, value, own=own)))


def command_of(arguments: Mapping[str, Any]) -> str:
    """Return the command that a call runs; empty if there is none."""
    given = _plain(arguments)
    value = next((value for name in _COMMAND if (value := given.get(name))), "")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        shell = len(value) > 2 and re.fullmatch(r"-\w*c", value[1])  # noqa: PLR2004 - ["bash", "-lc", "…"]
        return str(value[2]) if shell else shlex.join(value)
    return value if isinstance(value, str) else ""


def located_command(artifacts: Artifacts, arguments: Mapping[str, Any]) -> str:
    """Return the command that a call runs, after a ``cd`` to the directory of the artifacts that it names."""
    if not (command := command_of(arguments)):
        return ""
    given = _plain(arguments)
    named = next((found for name in _FOLDER if (found := _artifacts(artifacts, given.get(name)))), ())
    return f"cd {shlex.quote(named[-1])}\n{command}" if named else command


def words_of(arguments: Mapping[str, Any]) -> str:
    """Return the words that describe a call: its question and paths, but not its command or content."""
    given = _plain(arguments)
    named = (given.get(name) for name in ("script", "query", *_PATH, *_TARGET))
    return " ".join(value[:_FIELD_CHARACTERS] for value in named if isinstance(value, str))


IsRuled = Callable[[str], bool]


def planned(
    artifacts: Artifacts,
    git: Committer,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    writes: Sequence[str] | None = None,
    is_ruled: IsRuled,
) -> Contents:
    """Return the files as a call would leave them; ``None`` for a file that it would delete or move.

    If only the path of a file is known, its content is empty.

    Args:
        artifacts: The artifacts.
        git: Their repository.
        tool: Name of the tool.
        arguments: Its arguments.
        writes: The arguments that name what it writes, if that was declared.
        is_ruled: Returns whether a rule is about a path. Where nothing was declared, every string that is
            such a path counts as written, unless the tool's name says that it reads.
    """
    made = _by_command(artifacts, git, located_command(artifacts, arguments))
    for text in arguments.values():
        if isinstance(text, str) and _PATCH.search(text):
            made |= _by_patch(artifacts, git, text)
    given = _plain(arguments)
    paths = next((found for name in _PATH if (found := _artifacts(artifacts, given.get(name)))), ())
    targets = next((found for name in _TARGET if (found := _artifacts(artifacts, given.get(name)))), ())
    doing = tool.casefold()
    for path in paths:
        if any(word in doing for word in _REMOVES):
            made |= _removed(artifacts, git, path)
        elif targets:
            away = _removed(artifacts, git, path)
            there = [(name.removeprefix(path), name) for name in away if name.startswith(path)]
            made |= {f"{to}{end}": Content(_bytes(artifacts, name)) for to in targets for end, name in there}
            made |= away
        else:
            made |= _written(artifacts, path, given, doing)
    declared = None if writes is None else {str(name).translate(_NO_MARKS).casefold() for name in writes}
    if declared is not None or not (_reads(tool) or given.get("command") in _VIEWS):
        content = _content(_text(given, _WHOLE) or "")
        for path in _named(artifacts, given, declared, is_ruled):
            made.setdefault(path, content)
    return made


_READS = vocabulary(
    """
    read get view list search find grep show fetch stat ls cat open load describe diff inspect analyze analyse
    lint check query lookup glob tree head tail count summarize explain preview validate verify test compare
    watch status blame log info exists ask look browse
    """
)
_ACTS = vocabulary(
    """
    write create edit patch save update append insert replace delete remove unlink export render convert
    generate download copy move rename dump build compile store put set add make sync format fix touch
    """
)


def _reads(tool: str) -> bool:
    """Return whether a tool's name says that it only reads: ``mcp__files__read_text_file``, ``viewFile``."""
    words = {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", tool)}
    return bool(words & _READS) and not words & _ACTS


def _named(
    artifacts: Artifacts, given: Mapping[str, Any], declared: Collection[str] | None, is_ruled: IsRuled
) -> Iterator[str]:
    """Yield the artifacts that strings name: those of declared arguments, else those under a rule."""
    texts = {*_WHOLE, *_OLD, *_NEW, *_COMMAND, *_FOLDER, "query", "question", "message", "prompt"}
    for name, value in given.items():
        if name in texts if declared is None else name not in declared:
            continue
        for text in islice(_strings(value), _STRINGS):
            # An option may be joined with its value: `--out=report.md`.
            for one in {text, text.partition("=")[2]} if text.startswith("-") else {text}:
                paths = _artifacts(artifacts, one)
                if re.match(r"(?!file:)\w[\w+.-]*://", one):
                    paths = ()  # an address elsewhere
                elif declared is None:
                    spaced = re.search(r"\s", one) and not any(
                        nofollow.is_file(artifacts.root / path) for path in paths
                    )
                    paths = () if spaced else tuple(filter(is_ruled, paths))
                yield from paths


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in a value, also in lists and mappings of any depth, and the names in mappings."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one.values(), *one]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).translate(_NO_MARKS).casefold(): value for name, value in arguments.items()}


_NO_MARKS = str.maketrans("", "", "_-")


# --- what is written, removed and moved ---------------------------------------------------------------------


def _written(artifacts: Artifacts, path: str, given: Mapping[str, Any], doing: str) -> Contents:
    whole = _text(given, _WHOLE)
    if whole is not None:
        return {path: _content(whole)}
    several = given.get("edits")
    plain = [
        _plain(one) for one in (several if isinstance(several, list) else [given]) if isinstance(one, Mapping)
    ]
    edits = [(_text(one, _OLD) or "", new) for one in plain if (new := _text(one, _NEW)) is not None]
    before = decoded(_bytes(artifacts, path)) if edits else None
    if before is None:
        writes = any(word in doing for word in _WRITES) and given.get("command") not in _VIEWS
        return {path: Content(b"")} if writes else {}
    for old, new in edits:
        before = before.replace(old, new, 1) if old and old in before else f"{before}\n{new}"
    return {path: _content(before)}


def _removed(artifacts: Artifacts, git: Committer, path: str) -> Contents:
    """Return a file, everything below a directory, or the matches of a pattern, as removed."""
    root = artifacts.root
    on_disk = islice(nofollow.tree(root / path), _FILES) if "*" not in path else ()
    below = [place.relative_to(root).as_posix() for place in on_disk]
    named = [name for name in git.manifest() if fnmatchcase(name, path)] if "*" in path else []
    return dict.fromkeys((path, *below, *named))


def _by_command(artifacts: Artifacts, git: Committer, command: str) -> Contents:
    made: Contents = {}
    root = artifacts.root
    for one in effects(command, lambda path: path.endswith("/") or nofollow.is_directory(root / path)):
        if one.removes and os.path.realpath(root / one.path) == os.path.realpath(root):
            made |= _removed(artifacts, git, "*")
        for path in _artifacts(artifacts, one.path):
            before = (decoded(_bytes(artifacts, path)) or "") if one.appends and one.text is not None else ""
            after = _content(f"{before}\n{one.text}" if before else one.text or "")
            made |= _removed(artifacts, git, path) if one.removes else {path: after}
    return made


_PATCH = re.compile(
    r"^(?:\*\*\* (?P<what>Add|Update|Delete) File: (?P<name>.+)|\*\*\* Move to: (?P<to>.+)"
    r"|\+\+\+ (?:b/)?(?P<unified>[^\t\n]+).*)$",
    re.MULTILINE,
)
"""The start of a file in a patch: in the format of ``apply_patch``, and in a unified diff."""


def _by_patch(artifacts: Artifacts, git: Committer, patch: str) -> Contents:
    made: Contents = {}
    marks = list(_PATCH.finditer(patch))
    for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(patch)], strict=True):
        added = "\n".join(line[1:] for line in patch[mark.end() : end].splitlines() if line.startswith("+"))
        for path in _artifacts(artifacts, mark["name"] or mark["to"] or mark["unified"]):
            before = "" if mark["what"] == "Add" else decoded(_bytes(artifacts, path)) or ""
            made |= (
                _removed(artifacts, git, path)
                if mark["what"] == "Delete"
                else {path: _content(before + added)}
            )
    return made


def _content(text: str) -> Content:
    return Content(encodable(text).encode())


def _text(given: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := given.get(name), str)), None)


# --- which artifact is meant --------------------------------------------------------------------------------


def _artifacts(artifacts: Artifacts, value: object, *, own: bool = False) -> tuple[str, ...]:
    """Return the artifacts that a path means, as written and with links resolved; none if it leads elsewhere.

    A place in another work tree of the project's repository is that in the project, unless only ``own`` ones
    are asked for: what the user demands of a file holds in all of them.

    A name that the record would refuse (``requirements.txt `` with a space) is returned unchanged, because a
    rule can be about it.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > _PATH_CHARACTERS:
        return ()
    root = str(artifacts.root)
    text = encodable(value).replace("\0", "").replace("\\", "/").removeprefix("file://")
    folder = PurePosixPath(root).name
    if text.removeprefix("./").startswith(f"{folder}/") and not nofollow.is_directory(f"{root}/{folder}"):
        text = text.removeprefix("./").removeprefix(f"{folder}/")  # relative to the workspace
    written = os.path.normpath(os.path.join(root, text))
    if other := worktrees.moved(written, root):
        return () if own or not (inside := _inside(root, other)) else (inside,)
    found = (_inside(root, written), _inside(root, _resolved(written)))
    return tuple(dict.fromkeys(path for path in found if path))


def _resolved(place: str) -> str:
    """Return a path with links resolved; one look at the whole path tells whether it contains any."""
    try:
        linked = stat.S_ISLNK(nofollow.status(place).st_mode)
    except FileNotFoundError:
        linked = False
    except OSError:
        linked = True
    return os.path.realpath(place) if linked else place


def _inside(root: str, place: str) -> str:
    return place[len(root) + 1 :].replace(os.sep, "/") if place.startswith(f"{root}{os.sep}") else ""


def _bytes(artifacts: Artifacts, path: str) -> bytes:
    """Return the current content of a file; empty if it is missing or cannot be read."""
    try:
        target = artifacts.locate(path, follow=True)
        return nofollow.read(target) if nofollow.is_file(target) else b""
    except (OSError, PathRefused):
        return b""
