"""Install the hooks of a host into its settings, and remove them again to the byte.

A plan says what a file would become; nothing is written before it is applied. What was there stays: entries
are added to the text of the file. The state directory keeps the bytes from before, so that an uninstall
restores them if nobody changed the file since; otherwise it removes its own entries alone.
"""

import base64
import difflib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec

from agentx.client import place
from agentx.hosts.hook import SETTLE
from agentx.hosts.host import HOSTS, load
from agentx.hosts.place import HOOKS
from agentx.hosts.setup import jsonc, mcp_entry
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files.durable import write_all

Scope = Literal["project", "user"]

INSTALLS = "installs"
"""Directory in the state directory, below that of hooks: what each changed file was before."""

AGENTS_MD = "agents-md"
"""What is installed for hosts without hooks: a block in ``AGENTS.md``."""

_AGENTS_BEGIN, _AGENTS_END = "<!-- agentx:begin hosts -->", "<!-- agentx:end hosts -->"


class InstallRefused(AgentXError):
    """The settings of a host cannot be changed as they are."""


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is and as it would be.

    Attributes:
        path: The file, with links resolved.
        before: Its content; ``None`` if there is none.
        after: Its content afterwards; ``None`` if it is removed.
    """

    path: Path
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = (
            (one or b"").decode(errors="replace").splitlines(keepends=True)
            for one in (self.before, self.after)
        )
        old, new = ("/dev/null" if one is None else str(self.path) for one in (self.before, self.after))
        parts = difflib.unified_diff(before, after, old, new)
        return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


class InstalledFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file was before an installation, and what it was made.

    Attributes:
        path: The file.
        before: Its bytes in base64; ``None`` if there was none.
        after: Its bytes afterwards, in base64.
        made: Directories that were made for it, the innermost first.
    """

    path: str
    before: str | None
    after: str
    made: tuple[str, ...] = ()


class HookInstaller:
    """Plans and applies changes of a host's settings.

    Args:
        host: The host, or ``agents-md`` for a block in ``AGENTS.md``.
        scope: Whether for one project or for all of the user.
        project: The project.
        environ: Variables that say where the user's directories are.
        settle: Whether the agent is asked to settle candidates, for which it needs AgentX's MCP server.
        server: Whether to register that server as well.
        workspace: The workspace that it serves; ``None`` for that of the host's working directory.
    """

    def __init__(
        self,
        host: str,
        scope: Scope,
        project: Path,
        environ: Mapping[str, str],
        *,
        settle: bool = False,
        server: bool = False,
        workspace: Path | None = None,
    ) -> None:
        if host not in (*HOSTS, AGENTS_MD):
            raise UsageError(f"Unknown host {host!r}; known: {', '.join((*HOSTS, 'agents-md'))}.")
        if host == AGENTS_MD and scope == "user":
            raise UsageError("AGENTS.md belongs to a project: use --project.")
        self.host = host
        self.scope = scope
        self.project = project
        self.environ = environ
        self.settle = settle
        self.server = server and host != AGENTS_MD
        self.workspace = workspace

    @property
    def target(self) -> Path:
        """The file with the host's hooks; links in its path are resolved."""
        return Path(os.path.realpath(self._target()))

    def _target(self) -> Path:
        if self.host == AGENTS_MD:
            return self.project / "AGENTS.md"
        table = load(self.host)
        if self.scope == "project":
            return self.project / table.project_file
        return self._folder() / table.user_file

    def _folder(self) -> Path:
        folder, variable = load(self.host).folder
        home = self.environ.get("HOME") or os.path.expanduser("~")
        return Path(self.environ.get(variable) or f"{home}/{folder}")

    @property
    def entry_place(self) -> mcp_entry.EntryPlace | None:
        """Where the host reads its MCP servers; ``None`` if it is no host."""
        if self.host == AGENTS_MD:
            return None
        table = load(self.host)
        project = self.project if self.scope == "project" else None
        named = bool(self.environ.get(table.folder[1]))
        return mcp_entry.place_of(table, self._folder(), project, named=named)

    def keeps_other_entry(self) -> bool:
        """Return whether the host has an MCP server of the name already that is not ours, so that it stays.

        Raises:
            InstallRefused: The file cannot be read as what it should be.
            EntryRefused: Likewise.
        """
        if (place := self.entry_place) is None or not self.server:
            return False
        found = mcp_entry.found_in(_decoded(place.path, _read(place.path)), place)
        return found is not None and not mcp_entry.is_ours(found)

    def install(self) -> tuple[FilePlan, ...]:
        """Plan an installation: the file with the hooks, then that of the MCP server, if it is another one.

        In each, ``after`` is ``before`` if all is there already.

        Raises:
            InstallRefused: A file cannot be read as what it should be.
            EntryRefused: The MCP server cannot be added to a file.
        """
        hooks = self._hooked()
        if (place := self.entry_place) is None or not self.server:
            return (hooks,)
        entry = mcp_entry.entry_of(self.host, self.workspace)
        same = place.path == hooks.path
        before = hooks.before if same else _read(place.path)
        text = _decoded(place.path, hooks.after if same else before)
        made = mcp_entry.with_entry(text, place, entry)
        after = before if not same and made == text else made.encode()
        plan = FilePlan(path=place.path, before=before, after=after)
        return (plan,) if same else (hooks, plan)

    def _hooked(self) -> FilePlan:
        target = self.target
        before = _read(target)
        if self.host == "opencode":
            return FilePlan(path=target, before=before, after=opencode_plugin(settle=self.settle).encode())
        text = _decoded(target, before)
        change = (
            _with_block
            if self.host == AGENTS_MD
            else lambda given: _with_hooks(given, self.host, target, settle=self.settle)
        )
        return FilePlan(path=target, before=before, after=change(text).encode())

    def uninstall(self) -> tuple[FilePlan, ...]:
        """Plan the removal: the bytes from before, or the present ones without our entries.

        The files come in the order in which they are to be written: that of the hooks is the last.

        Raises:
            InstallRefused: A file cannot be read as what it should be.
            EntryRefused: The MCP server cannot be removed from a file.
        """
        place = self.entry_place
        if place is None or place.path == self.target:
            return (self._removed(self.target, place),)
        return self._removed(place.path, place), self._removed(self.target, None)

    def _removed(self, target: Path, place: mcp_entry.EntryPlace | None) -> FilePlan:
        now, known = _read(target), self._known(target)
        if known is not None and now == base64.b64decode(known.after):
            before = None if known.before is None else base64.b64decode(known.before)
            return FilePlan(path=target, before=now, after=before)
        if now is None:
            return FilePlan(path=target, before=None, after=None)
        hooks = target == self.target
        if hooks and self.host == "opencode":
            ours = b"`agentx install opencode`" in now
            return FilePlan(path=target, before=now, after=None if ours else now)
        text = _decoded(target, now)
        if hooks:
            text = (
                _without_block(text) if self.host == AGENTS_MD else (_without_hooks(text, self.host, target))
            )
        if place is not None:
            text = mcp_entry.without_entry(text, place)
        return FilePlan(path=target, before=now, after=text.encode())

    def apply(self, plan: FilePlan, *, installs: bool) -> None:
        """Write a planned file, and remember what it was, or forget it.

        Raises:
            InstallRefused: It changed since it was planned, or cannot be written.
        """
        if _read(plan.path) != plan.before:
            raise InstallRefused(f"{plan.path} has just been changed by another program; try again.")
        known = self._known(plan.path)
        try:
            if installs:
                made = _make_directories(plan.path.parent)
                before = (
                    plan.before if known is None or plan.before != base64.b64decode(known.after) else None
                )
                kept = known.before if known is not None and before is None else _encoded(plan.before)
                made = (*made, *(known.made if known is not None and before is None else ()))
                _replace(plan.path, plan.after or b"")
                self._remember(
                    InstalledFile(
                        path=str(plan.path), before=kept, after=_encoded(plan.after) or "", made=made
                    )
                )
                return
            if plan.after is None:
                if plan.before is not None:
                    plan.path.unlink(missing_ok=True)
                for folder in known.made if known else ():
                    if not any(Path(folder).iterdir()):
                        Path(folder).rmdir()
            elif plan.after != plan.before:
                _replace(plan.path, plan.after)
            self._record(plan.path).unlink(missing_ok=True)
        except OSError as error:
            raise InstallRefused(f"{plan.path} cannot be written: {error.strerror or error}.") from error

    # --- what was there before ------------------------------------------------------------------------------

    def _record(self, path: Path) -> Path:
        name = base64.urlsafe_b64encode(os.fsencode(path)[-120:]).decode().rstrip("=")
        if self.scope == "project" and not path.is_relative_to(
            self.project
        ):  # each project has an entry in it
            name += f"-{blake2b(os.fsencode(self.project), digest_size=8).hexdigest()}"
        return Path(place.state_dir(self.environ)) / HOOKS / INSTALLS / f"{self.host}-{name}.json"

    def _known(self, path: Path) -> InstalledFile | None:
        try:
            found = msgspec.json.decode(self._record(path).read_bytes(), type=InstalledFile)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.path == str(path) else None

    def _remember(self, installed: InstalledFile) -> None:
        record = self._record(Path(installed.path))
        record.parent.mkdir(0o700, parents=True, exist_ok=True)
        _replace(record, msgspec.json.encode(installed), mode=0o600)


def command(host: str, *, settle: bool = False) -> str:
    """Return the command line of a host's hooks, for a shell."""
    return shlex.join((sys.executable, "-P", "-m", "agentx", "hook", host, *[SETTLE] * settle))


def what_to_enable(host: str) -> str:
    """Return what the user must still do in the host."""
    if host == AGENTS_MD:
        return "Agents that read AGENTS.md see it at their next start; nothing enforces it."
    return load(host).enable


# --- hooks in JSON ------------------------------------------------------------------------------------------


def entries(host: str, *, settle: bool = False) -> Mapping[str, Any]:
    """Return our entry for each event of a host."""
    table = load(host)
    return {event: table.entry(event, command(host, settle=settle)) for event in table.events}


def _is_ours(entry: Any, host: str) -> bool:
    """Return whether an entry calls our hook, of whatever version or place."""
    found = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    lines = [one.get("command") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    ends = (f" agentx hook {host}", f"/agentx hook {host}", f"/agentx' hook {host}")
    own = [one.removesuffix(f" {SETTLE}").endswith(ends) for one in lines if isinstance(one, str)]
    return bool(lines) and len(own) == len(lines) and all(own)


def _with_hooks(text: str, host: str, path: Path, *, settle: bool) -> str:
    ours_now = entries(host, settle=settle)
    if host == "cursor" and jsonc.parse(text).get("version") is None:
        text = jsonc.add_member(text, _root(text, path), "version", 1)
    if (hooks := _root(text, path).get("hooks")) is None:
        return jsonc.add_member(
            text, _root(text, path), "hooks", {event: [one] for event, one in ours_now.items()}
        )
    if not isinstance(hooks.value, dict):
        raise InstallRefused(f"`hooks` in {path} is not an object; correct it first.")
    for event, entry in ours_now.items():
        hooks = _root(text, path).get("hooks")
        assert hooks is not None
        listed = hooks.get(event)
        if listed is None:
            text = jsonc.add_member(text, hooks, event, [entry])
        elif not isinstance(listed.value, list):
            raise InstallRefused(f"`hooks.{event}` in {path} is not a list; correct it first.")
        elif ours := [one for one in listed.value if _is_ours(one.plain(), host)]:
            if ours[0].plain() != entry:
                text = jsonc.replaced(text, ours[0], entry)
        else:
            text = jsonc.add_element(text, listed, entry)
    return text


def _without_hooks(text: str, host: str, path: Path) -> str:
    while (found := next(_ours(text, host, path), None)) is not None:
        parent, node = found
        text = jsonc.removed(text, parent, node)
    return text


def _ours(text: str, host: str, path: Path) -> Iterator[tuple[jsonc.JsonNode, jsonc.JsonNode]]:
    """Yield what to remove: our entries, and lists that have nothing else."""
    root = _root(text, path)
    hooks = root.get("hooks")
    for listed in hooks.value.values() if hooks is not None and isinstance(hooks.value, dict) else ():
        own = (
            [one for one in listed.value if _is_ours(one.plain(), host)]
            if isinstance(listed.value, list)
            else []
        )
        if own and len(own) == len(listed.value):
            assert hooks is not None
            yield (root, hooks) if len(hooks.value) == 1 else (hooks, listed)
        elif own:
            yield listed, own[0]


def _root(text: str, path: Path) -> jsonc.JsonNode:
    return jsonc.parse_object(text, path, InstallRefused)


# --- other files --------------------------------------------------------------------------------------------


def opencode_plugin(*, settle: bool = False) -> str:
    """Return the plugin for opencode, with our command in it."""
    text = (Path(__file__).parent.parent / "opencode_plugin.js").read_text("utf-8")
    return text.replace('["@COMMAND@"]', json.dumps(shlex.split(command("opencode", settle=settle))))


def claude_plugin() -> dict[str, str]:
    """Return the files of a plugin folder for Claude Code, by their path in it."""
    about = {
        "name": "agentx",
        "description": "Memory, rules and gates of AgentX for Claude Code.",
        "version": "0.1.0",
    }
    hooks = {"hooks": {event: [one] for event, one in entries("claude-code").items()}}
    files = {".claude-plugin/plugin.json": about, "hooks/hooks.json": hooks}
    return {name: json.dumps(value, indent=2) + "\n" for name, value in files.items()}


_AGENTS_BLOCK = f"""\
{_AGENTS_BEGIN}
## Memory and rules (AgentX)

This project has a memory. You have no hooks for it, so call it yourself:

- At the start, and after your context was compacted: `agentx agent boot`.
- Before work on a request: `agentx context "the request" --tier 0`.
- Before an action that changes something: `agentx gate pre "what you are about to do"`; obey `deny`, and ask
  the user on `ask`.
- After a task: `agentx gate post "what you did" --pass` (or `--fail`).

Never run `agentx say`, `agentx approve` or `agentx memory add`: they speak for the user.
{_AGENTS_END}
"""


def _with_block(text: str) -> str:
    start, end = text.find(_AGENTS_BEGIN), text.find(_AGENTS_END)
    if 0 <= start < end:
        return text[:start] + _AGENTS_BLOCK.rstrip("\n") + text[end + len(_AGENTS_END) :]
    between = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{between}{_AGENTS_BLOCK}"


def _without_block(text: str) -> str:
    start, end = text.find(_AGENTS_BEGIN), text.find(_AGENTS_END)
    if not 0 <= start < end:
        return text
    rest = text[end + len(_AGENTS_END) :]
    return text[:start].rstrip("\n") + ("\n" if text[:start].strip() else "") + rest.removeprefix("\n")


# --- files --------------------------------------------------------------------------------------------------


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InstallRefused(f"{path} cannot be read: {error.strerror}.") from error


def _decoded(path: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise InstallRefused(f"{path} is not text in UTF-8; correct it first.") from error


def _encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _make_directories(folder: Path) -> tuple[str, ...]:
    """Make a directory with those above; return those that were missing, the innermost first."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir()
    return tuple(map(str, missing))


def _replace(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file in one step; its mode stays."""
    with_mode = path.stat().st_mode & 0o777 if path.exists() else mode
    temporary = path.with_name(f".{path.name}.agentx")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, with_mode)
    try:
        write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    os.chmod(temporary, with_mode)
    os.replace(temporary, path)
