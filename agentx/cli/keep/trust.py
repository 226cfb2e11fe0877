"""``agentx trust``: show what a workspace would run, call and read outside, and trust it or not."""

import json
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, panel, table
from agentx.config import effects
from agentx.policy import approvals
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.synthesis.memory.effects import Effect
from agentx.trust import records
from agentx.trust.store import Store
from agentx.trust.trust import COMMANDS as COMMANDS_CAN
from agentx.trust.trust import trusted_workspaces
from agentx.trust.trusted_items import TrustedItem, in_state
from agentx.workspace import Workspace

_VALUE_CHARACTERS = 500
_EFFECTS = {
    Effect.RUNS: "runs a program",
    Effect.CALLS: "gets your key and messages",
    Effect.READS: "is read outside",
    Effect.LOOSENS: "loosens a guard",
}
_GRAVE = (_EFFECTS[Effect.RUNS], _EFFECTS[Effect.CALLS])
_DAYS = 3_650


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a workspace would do.

    Attributes:
        name: The setting, schedule or capability.
        effect: Its effect.
        value: Its value; empty for the default.
        before: Its value when the workspace was last trusted.
        change: ``new``, ``changed`` or ``removed``; empty if unchanged.
    """

    name: str
    effect: str
    value: str
    before: str = ""
    change: str = ""


def allow(
    terminal: Terminal,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Trust it without being asked.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only show.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke trust.")] = False,
    commands: Annotated[
        bool, typer.Option("--commands", help="Also allow run_command without isolation.")
    ] = False,
) -> None:
    """Show what this workspace runs, calls and reads outside, and what changed; then ask whether to trust it.

    Trust holds for this directory, this history and these settings. Your own
    `agentx config set` keeps it; any other change of such a setting, a copy and a move end it.
    """
    if show + revoke + yes > 1:
        raise UsageError("Give one of --show, --revoke and --yes.")
    with opened(terminal) as ws:
        if revoke:
            was = ws.engine.trust.revoke()
            changed = "Trusted no more" if was else "It was not trusted"
            terminal.result(_document(ws, []), Text.assemble(("✓ ", "green"), changed))
            return
        items = in_state(ws.state)
        claims = _claims(ws, items)
        if not terminal.json:
            _show(terminal, ws, claims, commands=commands)
        if show:
            if terminal.json:
                terminal.document(_document(ws, claims))
            return
        refusal = UsageError(
            "Confirmation needs a terminal. Confirm with `agentx trust --yes`. Nothing was changed."
        )
        if not yes and not terminal.confirms("\nType trust to allow all of it: ", "trust", refusal):
            raise typer.Exit(1)
        ws.engine.trust.grant("trusted", items, commands=commands)
        terminal.result(_document(ws, claims), Text.assemble(("✓ ", "green"), "Trusted"))


def _document(ws: Workspace, claims: list[Claim]) -> dict[str, Any]:
    why = ws.restricted
    return {"root": str(ws.root), "trusted": not why, "restricted": why, "claims": claims}


def _claims(ws: Workspace, items: list[TrustedItem]) -> list[Claim]:
    """Return what the workspace would do, with the changes since it was last trusted."""
    trust, marks = ws.engine.trust, effects()
    before = trust.last_trusted()
    then = before.fields if before else {}
    found = [
        Claim(
            name=name,
            effect=_EFFECTS[marks.get(name) or Effect.RUNS],
            value=_text(trust.fields.get(name)),
            before=_text(then.get(name)),
            change=_change(then.get(name), trust.fields.get(name)) if before else "",
        )
        for name in marks
        if name in trust.fields or name in then
    ]
    known = before.items if before else ()
    return found + [
        Claim(
            name=f"{item.kind} {item.name}",
            effect=_EFFECTS[Effect.RUNS],
            value=item.does,
            change="" if before is None or item.digest in known else "new or changed",
        )
        for item in items
    ]


def _change(before: str | None, now: str | None) -> str:
    if before == now:
        return ""
    return "removed" if now is None else "new" if before is None else "changed"


def _text(value: str | None) -> str:
    """Format a setting for display; ``value`` is JSON."""
    decoded = json.loads(value) if value else ""
    text = decoded if isinstance(decoded, str) else value or ""
    if len(text) <= _VALUE_CHARACTERS:
        return text
    return f"{text[:_VALUE_CHARACTERS]}… ({len(text):,} characters)"


def _show(terminal: Terminal, ws: Workspace, claims: list[Claim], *, commands: bool) -> None:
    why = ws.restricted
    verdict = Text(f"Restricted: {plain(why)}.", "yellow") if why else Text("Trusted.", "green")
    terminal.show(Text.assemble((plain(ws.state.title), "bold"), f"  {plain(str(ws.root))}"), verdict, "")
    if claims:
        changed = any(claim.change for claim in claims)
        rows = [_row(claim, changed=changed) for claim in claims]
        columns = ("what", "does", *(("since",) if changed else ()), "value")
        terminal.show(table(*columns, rows=rows))
    else:
        terminal.show("It runs, calls and reads nothing: every such setting has its default.")
    if commands:
        warning = Text("run_command would run without isolation where none is available.\n")
        warning.append(COMMANDS_CAN, "bold")
        terminal.show(
            "", panel(warning, title=Text("Commands", "bold red"), width=terminal.out.width, style="red")
        )


def _row(claim: Claim, *, changed: bool) -> list[str | Text]:
    effect = Text(claim.effect, "red" if claim.effect in _GRAVE else "yellow")
    value = Text(plain(claim.value) or "the default", "" if claim.value else "dim")
    if claim.before and claim.change == "changed":
        value.append(f"\nwas {plain(claim.before)}", "dim")
    since = [Text(claim.change, "bold yellow")] if changed else []
    return [Text(plain(claim.name), "cyan"), effect, *since, value]


def list_trusted(terminal: Terminal) -> None:
    """List the workspaces that you trust, and those that changed since you trusted them."""
    found = trusted_workspaces(terminal.settings)
    document = [
        {name: getattr(record, name) for name in ("path", "at", "how", "commands")} | {"restricted": why}
        for record, why in found
    ]
    rows = [
        (
            Text("restricted" if why else "trusted", "yellow" if why else "green"),
            record.at[:10],
            record.how + (", commands" if record.commands else ""),
            Text(plain(record.path) + (f"\n{plain(why)}" if why else "")),
        )
        for record, why in found
    ]
    nothing = Text("There are no trusted workspaces.", "dim")
    terminal.result(document, table("", "since", "how", "workspace", rows=rows) if found else nothing)


def issue(
    terminal: Terminal,
    days: Annotated[
        float, typer.Option("--for", metavar="DAYS", min=0.001, max=_DAYS, help="Days that it is valid.")
    ],
    call: Annotated[
        str, typer.Option(metavar="CALL_ID", help="Approve this pending call instead of the workspace.")
    ] = "",
    *,
    commands: Annotated[
        bool, typer.Option("--commands", help="Also allow run_command without isolation.")
    ] = False,
) -> None:
    """Print a signed record of trust, or of an approval, for a machine where nobody can be asked.

    It holds for this history and these settings, wherever the workspace is. The machine reads it from
    the file that AGENTX_TRUST_RECORD names, and accepts it if it has your key: `agentx trust key`.
    """
    with opened(terminal) as ws:
        if call:
            found = next((one for one in ws.state.pending.values() if one.call_id == call), None)
            if found is None or not found.awaits_approval:
                waiting = ", ".join(one.call_id for one in approvals.waiting(ws.engine)) or "none"
                raise UsageError(f"No call {call!r} is pending. Pending: {waiting}.")
            line = ws.engine.trust.issue_approval(days, call, found.tool, ws.read_body(found.whole))
        else:
            line = ws.engine.trust.issue(days, in_state(ws.state), commands=commands)
    terminal.show(Text(line))


def key(
    terminal: Terminal,
    add: Annotated[str, typer.Option(metavar="KEY", help="Accept records signed with this key.")] = "",
    remove: Annotated[str, typer.Option(metavar="KEY", help="Stop accepting this key.")] = "",
) -> None:
    """Print your public key, which signs records, and the keys that are accepted here."""
    store = Store(terminal.settings.state_dir)
    if add:
        records.accept(store, add, terminal.settings)
    if remove:
        records.accept(store, remove, terminal.settings, accepted=False)
    own = records.own_public_key(store)
    accepted = [*records.accepted_keys(store), *terminal.settings.trusted_keys]
    rows = [("yours", own), *(("accepted", one) for one in accepted)]
    terminal.result({"key": own, "accepted": accepted}, table("", "public key", rows=rows))
