"""``agentx fork``, ``push`` and ``pull``: branch a history off, or share one between two places."""

from pathlib import Path
from typing import Annotated

import typer

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts
from agentx.storage.events.types import WorkspaceForked
from agentx.storage.text import plain
from agentx.transfer.push_pull import Exchanged
from agentx.trust.trust import Trust, restricted


def fork(
    terminal: Terminal,
    new: Annotated[
        Path, typer.Argument(metavar="NEW", show_default=False, help="An empty or new directory.")
    ],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="MOMENT",
            show_default=False,
            help="Last moment to include: an event number, a time or a commit; now by default.",
        ),
    ] = None,
) -> None:
    """Create a new workspace with the history up to a moment; it shares nothing with this one."""
    with opened(terminal) as ws, terminal.progress() as progress, ws.fork(new, at, progress=progress) as made:
        state, files = made.state, len(made.engine.git.manifest())
        *_, mark = (event.data for event in made.events() if isinstance(event.data, WorkspaceForked))
    rows = [
        (state.title, str(made.root)),
        ("history", f"{counted(mark.at, 'event')}, then its own"),
        ("artifacts", counted(files, "file")),
    ]
    document = {"root": str(made.root), "at": mark.at, "hash": mark.hash, "files": files}
    terminal.result(document, facts(rows), plain(f'Next: agentx -C {new} run "what to do"'))


_Remote = Annotated[
    str,
    typer.Argument(
        metavar="[REMOTE]", show_default=False, help="Its name; by default the only one, or origin."
    ),
]
_Url = Annotated[
    str,
    typer.Option(metavar="URL", show_default=False, help="Address of a new remote: a directory, ssh, https."),
]


def push(terminal: Terminal, remote: _Remote = "", url: _Url = "") -> None:
    """Push to a Git remote. Its branch main only moves forward; it is never overwritten."""
    with opened(terminal) as ws, terminal.progress() as progress:
        done = ws.push(remote, url=_seen_from_here(url), progress=progress)
    _show(terminal, done, "pushed to")


def pull(terminal: Terminal, remote: _Remote = "", url: _Url = "") -> None:
    """Pull from a Git remote, whose history is checked first; nothing here is overwritten."""
    with opened(terminal) as ws, terminal.progress() as progress:
        done = ws.pull(remote, url=_seen_from_here(url), progress=progress)
    _show(terminal, done, "pulled from")
    if done.settings:
        why = Trust.read(ws.root, terminal.settings).why_restricted()
        trusted = "It runs and calls only what you trust."
        shown = f"{restricted(why)}. `agentx trust` shows it." if why else trusted
        terminal.note(f"agentx.toml was changed by it. {shown}")


def _seen_from_here(url: str) -> str:
    """Return an existing directory as an absolute path; anything else unchanged."""
    return str(Path(url).absolute()) if url and Path(url).exists() else url


def _show(terminal: Terminal, done: Exchanged, what: str) -> None:
    if terminal.json:
        terminal.document(done)
        return
    where = plain(f"{done.remote}  {done.url}")
    if done.restored:
        terminal.note(
            f"The remote lacked {done.restored:,} objects that it had received before; they were sent again."
        )
    if not done.events and not done.commits:
        terminal.show(facts([("nothing new", where), ("history", f"{done.to_seq:,} events")]))
        return
    count = f"{counted(done.events, 'event')} in {counted(done.commits, 'commit')}"
    rows = [(what, where), ("brought", count), ("history", f"{done.from_seq:,} → {done.to_seq:,}")]
    terminal.show(facts([*rows, ("commit", done.commit)]))
