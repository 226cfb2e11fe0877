"""``agentx follow``: the rules of other workspaces hold here, read through with their source."""

import json
import os
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, minute, table
from agentx.config import UPSTREAM_NAME, UpstreamSection
from agentx.core.layout import NotAWorkspace, find_root
from agentx.engine.followed import FLEET, SUB, Upstream, is_url
from agentx.history.status import FollowedStatus, followed
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import encodable, one_line, plain
from agentx.trust import records
from agentx.trust.fleet_remotes import DEFAULT_TENANT, remote_of
from agentx.trust.trust import set_value
from agentx.workspace import Workspace

SETTING = "follow.upstreams"

RULES_SHOWN = 5
"""Rules that are shown when a workspace is followed."""


def follow(
    terminal: Terminal,
    source: Annotated[
        str,
        typer.Argument(
            metavar="[SOURCE]",
            show_default=False,
            help="A workspace's directory, a Git URL, or the name of a workspace in the fleet.",
        ),
    ] = "",
    name: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Its name here; by default its own.")
    ] = "",
    stop: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Do not follow this workspace any more.")
    ] = "",
) -> None:
    """Follow a workspace: what its user demands and rules out holds here, too; without SOURCE, list them.

    Nothing is copied. Its rules are shown and enforced like your own, with their source; change them there.
    """
    if source and stop:
        raise UsageError("Give a SOURCE to follow, or --stop NAME, not both.")
    if not source and not stop:
        _list(terminal)
        return
    records.refuse_in_a_run(terminal.settings)
    with opened(terminal) as ws:
        upstreams = dict(ws.config.follow.upstreams)
        if stop:
            made = None
            if upstreams.pop(stop, None) is None:
                known = ", ".join(upstreams) or "none"
                raise UsageError(f"No followed workspace is named {stop!r}; followed: {known}.")
        else:
            made = _accepted(ws, terminal, source, name, upstreams)
        root = ws.root
    set_value(root, terminal.settings, SETTING, _toml(upstreams))
    with opened(terminal) as ws:  # closing records the changed file
        why = ws.restricted
    if made is None:
        terminal.result(
            {"stopped": stop}, plain(f"{stop} is not followed any more; its rules do not hold here.")
        )
        return
    document = {"name": made.name, "source": made.source, "rules": made.items}
    rules = (
        f"{counted(len(made.items), 'rule')} of its user {'holds' if len(made.items) == 1 else 'hold'} here"
    )
    lines = [plain(f"  {item.id}  {one_line(item.text)}") for item in made.items[:RULES_SHOWN]]
    more = len(made.items) - len(lines)
    lines += [f"  and {more} more: agentx memory list"] * bool(more)
    terminal.result(document, plain(f"{made.name} is followed: {rules}."), *lines)
    if why:
        terminal.note(f"They hold once this workspace is trusted: {why} (`agentx trust`).")


def _accepted(
    ws: Workspace, terminal: Terminal, source: str, name: str, upstreams: dict[str, UpstreamSection]
) -> Upstream:
    """Read a workspace that is to be followed, and add it to those that are."""
    given = _source(ws, terminal, encodable(source))
    name = unicodedata.normalize("NFC", encodable(name)) or next(
        (known for known, one in upstreams.items() if one.source == given), ""
    )
    name = name or _name_of(given, ws.root)
    if not re.fullmatch(UPSTREAM_NAME, name):
        raise UsageError(
            f"{name[:80]!r} cannot be the name of a followed workspace: use 2 to 64 letters, digits, dots "
            "and dashes (--name NAME)."
        )
    known = upstreams.get(name)
    if known is not None and known.source != given:
        raise UsageError(
            f"{name} is followed already, from {known.source}; give this one another --name, or first "
            f"`agentx follow --stop {name}`."
        )
    made = ws.engine.following.accept(name, UpstreamSection(source=given))
    first = made.known.first if made.known else ""
    upstreams[name] = UpstreamSection(source=given, workspace=first)
    return made


def _source(ws: Workspace, terminal: Terminal, source: str) -> str:
    """Return a source as the settings name it: paths relative to the workspace, names of the fleet."""
    if source.startswith(FLEET) or is_url(source):
        return source
    place = Path(os.path.normpath(terminal.folder.absolute() / source))
    if place.exists():
        with suppress(NotAWorkspace):  # a bare repository
            place = find_root(place)
        return str(place) if Path(source).is_absolute() else os.path.relpath(place, ws.root)
    if "/" not in source:
        try:
            remote_of(terminal.settings, DEFAULT_TENANT, source)
        except AgentXError as error:
            raise UsageError(f"{place} does not exist, and no fleet has it: {error}") from error
        return f"{FLEET}{source}"
    raise UsageError(f"{place} does not exist.")


def _name_of(source: str, root: Path) -> str:
    """Return the name that a source suggests."""
    last = source.removeprefix(FLEET).rstrip("/").rpartition(SUB)[2].rpartition(":")[2].removesuffix(".git")
    if last in ("", ".", ".."):
        last = (root / source).resolve().name
    return re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", last)).strip("-._")


def _toml(upstreams: Mapping[str, UpstreamSection]) -> str:
    """Return the setting as an inline table of TOML, whose strings are written as those of JSON."""
    each = (
        f"{_text(name)} = {{ source = {_text(one.source)}, workspace = {_text(one.workspace)} }}"
        for name, one in upstreams.items()
    )
    return f"{{ {', '.join(each)} }}" if upstreams else "{}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(terminal: Terminal) -> None:
    with opened(terminal) as ws:
        found = followed(ws.engine.following.refresh(), ws.state)
    if terminal.json:
        terminal.document({"followed": found})
        return
    if not found:
        terminal.show("No workspace is followed; `agentx follow SOURCE` follows one.")
        return
    rows = [
        (
            Text(plain(one.name), "cyan"),
            str(one.rules),
            f"event {one.event}" if one.commit else "",
            Text(minute(one.read_at), "dim"),
            Text(plain(_state_of(one)), "yellow" if one.why else ""),
        )
        for one in found
    ]
    terminal.show(table("name", "rules", "up to", "read", "source", rows=rows))


def _state_of(one: FollowedStatus) -> str:
    said = [one.source]
    if one.why:
        what = "its rules as last read hold" if one.commit else "its rules are missing here"
        said.append(f"cannot be read, so {what}: {one.why}")
    said += [f"{name} gives way to {own}" for name, own in one.gave_way.items()]
    said += [f"{name} holds, contrary to {own}" for name, own in one.contrary.items()]
    return "; ".join(said)
