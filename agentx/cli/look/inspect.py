"""``agentx inspect``: open the page that shows a workspace."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from agentx.cli.terminal import Terminal
from agentx.client.client import Client, RequestFailed, ServerUnavailable
from agentx.core import layout
from agentx.fleet import place as places
from agentx.server.mounts import RemoteMount
from agentx.server.server import refuse_runs, serve_inspector
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.trust.fleet_remotes import DEFAULT_TENANT

_SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
"""Variables that say where a browser can appear; otherwise one for terminals would be found."""


def _has_screen(settings: Settings) -> bool:
    return any(settings.environ.get(name) for name in _SCREENS)


def inspect(
    terminal: Terminal,
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Directories of workspaces; this one by default."),
    ] = None,
    *,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Show the fleet; with DIR these workspaces, too.")
    ] = False,
    tenant: Annotated[
        str, typer.Option(metavar="NAME", help="The tenant whose fleet it is.")
    ] = DEFAULT_TENANT,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address; open no browser.")
    ] = False,
) -> None:
    """Open a page on this machine that shows workspaces: timeline, context, memory, runs, pipelines.

    The address holds a key that is valid until the server exits. Without a server, and for a fleet, this
    command serves the page itself, until Ctrl-C.
    """
    refuse_runs(terminal.settings)
    place = places.load(terminal.settings, tenant) if fleet else None
    if place:
        with places.opened(place) as queue:
            queue.counts()  # a database that cannot be reached is said here
    folders = [terminal.folder / folder for folder in directories or ()]
    folders = folders or ([] if fleet else [terminal.folder])
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"The directory {folder} does not exist.")
    roots = [layout.find_root(folder) for folder in folders]

    def show(url: str, *, served: bool) -> None:
        terminal.result({"url": url, "served_here": served}, url)
        if served:
            terminal.note("Ctrl-C ends it.", "·")
        if not no_open and not (_has_screen(terminal.settings) and webbrowser.open(url)):
            terminal.note("No browser could be opened; open the address yourself.")

    if place:
        serve_inspector(terminal.settings, roots, lambda url: show(url, served=True), place)
        return
    try:
        with Client.connect(terminal.settings.environ) as client:
            show(client.call("inspect.open", workspaces=[str(root) for root in roots])["url"], served=False)
    except (ServerUnavailable, RequestFailed) as error:
        if isinstance(error, RequestFailed) and error.kind != RemoteMount.__name__:
            raise
        serve_inspector(terminal.settings, roots, lambda url: show(url, served=True))
