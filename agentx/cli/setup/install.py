"""``agentx install`` and ``agentx uninstall``: the hooks of other coding agents."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, facts
from agentx.core import layout
from agentx.core.beside import BESIDE
from agentx.hosts.host import HOSTS
from agentx.hosts.setup.installing import (
    AGENTS_MD,
    FilePlan,
    HookInstaller,
    Scope,
    claude_plugin,
    what_to_enable,
)
from agentx.hosts.setup.project import known_workspace, make_beside, project_root, share, unshare
from agentx.storage.errors import UsageError
from agentx.storage.text import plain

_HOST = typer.Argument(metavar="HOST", show_default=False, help=f"{', '.join(HOSTS)}, or agents-md.")
_USER = typer.Option("--user/--project", help="For all of your projects, or for this one.")
_YES = typer.Option("--yes", "-y", help="Do not ask.")


def install(
    terminal: Terminal,
    host: Annotated[str, _HOST],
    *,
    user: Annotated[bool, _USER] = False,
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Use the memory of this workspace or project, as of a second work tree."
        ),
    ] = None,
    plugin: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a plugin folder for Claude Code, and change no settings."),
    ] = None,
    settle: Annotated[
        bool,
        typer.Option("--settle", help="At a turn's end its agent settles candidates, by the MCP server."),
    ] = False,
    mcp: Annotated[
        bool, typer.Option("--mcp/--no-mcp", help="Also register AgentX's MCP server with the host.")
    ] = True,
    yes: Annotated[bool, _YES] = False,
) -> None:
    """Give another coding agent this project's memory, by hooks in its settings; shows the diff first."""
    if plugin is not None:
        _write_plugin(terminal, host, plugin)
        return
    project, environ = project_root(terminal.folder), terminal.settings.environ
    workspace = None if user else known_workspace(project, environ)
    made = not user and memory is None and workspace is None
    if memory is not None and not user:
        served: Path | None = layout.find_root(memory)
    else:
        served = project / BESIDE if made else workspace
    installer = HookInstaller(
        host, _scope(user=user), project, environ, settle=settle, server=mcp, workspace=served
    )
    plans = installer.install()
    changes = [plan for plan in plans if plan.before != plan.after]
    known = {"host": host, "file": str(installer.target), "changed": bool(changes), "mcp": _server(installer)}
    if not changes and not made and memory is None:
        told = "\n".join(f"{plan.path} has what it needs already." for plan in plans)
        terminal.result({**known, "workspace": _named(workspace)}, plain(told))
        return
    for plan in changes:
        _show(terminal, plan)
    if made:
        terminal.note(
            f"A workspace will be made beside the project: {project}/.agentx-project (Git ignores it)."
        )
    _ask(terminal, "Install? Type yes: ", yes=yes)
    if memory is not None:
        workspace = share(project, memory, environ)
    elif made:
        workspace = make_beside(project, terminal.settings)
    for plan in changes:
        installer.apply(plan, installs=True)
    _tell(terminal, installer, known, workspace, plans)


def _tell(
    terminal: Terminal,
    installer: HookInstaller,
    known: Mapping[str, object],
    workspace: Path | None,
    plans: Sequence[FilePlan],
) -> None:
    """Say what was installed, what must not be committed, and what the user must still do."""
    todo, project, server = what_to_enable(installer.host), installer.project, _server(installer)
    inside = [str(plan.path.relative_to(project)) for plan in plans if plan.path.is_relative_to(project)]
    inside = [] if installer.host == AGENTS_MD else inside
    rows = [("hooks", str(installer.target)), *[("MCP server", server)] * bool(server)]
    rows += [("memory", _named(workspace) or "of each project that has one")]
    if inside:
        why = "made for this machine; Git would commit it unless you ignore it"
        rows += [("do not commit", f"{', '.join(inside)}: {why}")]
    terminal.result(
        {**known, "do_not_commit": inside, "workspace": _named(workspace), "next": todo},
        facts([*rows, ("next", todo)]),
    )


def uninstall(
    terminal: Terminal,
    host: Annotated[str, _HOST],
    *,
    user: Annotated[bool, _USER] = False,
    yes: Annotated[bool, _YES] = False,
) -> None:
    """Remove the hooks again; a file that nobody changed since gets its bytes from before."""
    project, environ = project_root(terminal.folder), terminal.settings.environ
    installer = HookInstaller(host, _scope(user=user), project, environ)
    plans = installer.uninstall()
    changes = [plan for plan in plans if plan.before != plan.after]
    for plan in changes:
        _show(terminal, plan)
    if changes:
        _ask(terminal, "Uninstall? Type yes: ", yes=yes)
    for plan in plans:
        installer.apply(plan, installs=False)
    workspace = None if user else known_workspace(project, environ)
    if not user:
        unshare(project, environ)
    kept = f"The memory stays in {workspace}." if workspace else ""
    said = (
        f"AgentX is removed from {' and '.join(str(plan.path) for plan in changes)}."
        if changes
        else f"{installer.target} has no hooks of agentx."
    )
    terminal.result(
        {
            "host": host,
            "file": str(installer.target),
            "changed": bool(changes),
            "workspace": _named(workspace),
        },
        plain(f"{said} {kept}".strip()),
    )


def _scope(*, user: bool) -> Scope:
    return "user" if user else "project"


def _server(installer: HookInstaller) -> str:
    """Return where the MCP server is registered, or why it is not; empty if nobody asked for it."""
    place = installer.entry_place
    if place is None or not installer.server:
        return ""
    if installer.keeps_other_entry():
        return f"{place.path} has another one of the name agentx, which stays"
    return str(place.path)


def _named(workspace: Path | None) -> str:
    return str(workspace) if workspace else ""


def _show(terminal: Terminal, plan: FilePlan) -> None:
    if not terminal.json:
        lines = [plain(line) for line in plan.diff().splitlines()]
        terminal.show(*(Text(line, _COLOURS.get(line[:1], "")) for line in lines), "")


_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def _ask(terminal: Terminal, question: str, *, yes: bool) -> None:
    refusal = UsageError("Nobody can be asked here: add --yes.")
    if not yes and not terminal.confirms(question, "yes", refusal):
        raise UsageError("Nothing was changed.")


def _write_plugin(terminal: Terminal, host: str, folder: Path) -> None:
    if host != "claude-code":
        raise UsageError(f"Plugin folders are for claude-code, not {host}.")
    for name, text in claude_plugin().items():
        place = folder / name
        if place.exists() and json.loads(place.read_text("utf-8")).get("name", "agentx") != "agentx":
            raise UsageError(f"{place} belongs to another plugin; choose another directory.")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    terminal.result(
        {"host": host, "plugin": str(folder)},
        facts([("plugin", str(folder)), ("next", f"claude --plugin-dir {folder}")]),
    )
