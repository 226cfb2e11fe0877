"""``agentx install`` and ``agentx uninstall``: the hooks of other coding agents."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, facts
from agentx.hosts.host import HOSTS
from agentx.hosts.setup.installing import FilePlan, HookInstaller, Scope, claude_plugin, what_to_enable
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
        typer.Option(
            "--settle", help="The host has AgentX's MCP server: at a turn's end its agent settles candidates."
        ),
    ] = False,
    yes: Annotated[bool, _YES] = False,
) -> None:
    """Give another coding agent this project's memory, by hooks in its settings; shows the diff first."""
    if plugin is not None:
        _write_plugin(terminal, host, plugin)
        return
    project, environ = project_root(terminal.folder), terminal.settings.environ
    installer = HookInstaller(host, _scope(user=user), project, environ, settle=settle)
    plan = installer.install()
    workspace = None if user else known_workspace(project, environ)
    made = not user and memory is None and workspace is None
    if plan.before == plan.after and not made and memory is None:
        terminal.result(
            {"host": host, "file": str(plan.path), "changed": False, "workspace": _named(workspace)},
            plain(f"{plan.path} has the hooks already."),
        )
        return
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
    if plan.before != plan.after:
        installer.apply(plan, installs=True)
    todo = what_to_enable(host)
    rows = [("hooks", str(plan.path)), ("memory", _named(workspace) or "of each project that has one")]
    terminal.result(
        {
            "host": host,
            "file": str(plan.path),
            "changed": plan.before != plan.after,
            "workspace": _named(workspace),
            "next": todo,
        },
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
    plan = installer.uninstall()
    if plan.before != plan.after:
        _show(terminal, plan)
        _ask(terminal, "Uninstall? Type yes: ", yes=yes)
    installer.apply(plan, installs=False)
    workspace = None if user else known_workspace(project, environ)
    if not user:
        unshare(project, environ)
    kept = f"The memory stays in {workspace}." if workspace else ""
    changed = plan.before != plan.after
    said = f"The hooks are removed from {plan.path}." if changed else f"{plan.path} has no hooks of agentx."
    terminal.result(
        {"host": host, "file": str(plan.path), "changed": changed, "workspace": _named(workspace)},
        plain(f"{said} {kept}".strip()),
    )


def _scope(*, user: bool) -> Scope:
    return "user" if user else "project"


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
