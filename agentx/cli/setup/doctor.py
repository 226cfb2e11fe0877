"""``agentx doctor``: check the machine, a closed workspace, and the same workspace opened.

Each check is one line, with what to do if it fails. A workspace is checked before it is opened, because
opening repairs what a crash left behind.
"""

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, counted
from agentx.client import place
from agentx.config import FILE, Config, ConfigInvalid, read_config
from agentx.core.layout import FORMAT, NotAWorkspace, find_root, is_workspace
from agentx.factory import why_refused
from agentx.integrity.verify import verify
from agentx.quality.sandbox import SandboxPolicy, isolation_for
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.extras import EMBEDDING, EXTRAS
from agentx.storage.log.history import ORPHANS, told_already
from agentx.storage.text import plain
from agentx.synthesis.embedding.install import is_whole, minilm_folder
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.model.open import SCRIPT, open_model
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.state.parallel_fold import fold
from agentx.trust.trust import Trust, restricted
from agentx.workspace import Workspace

Mark = Literal["ok", "absent", "warning", "failure"]
"""``absent``: not installed, and nothing is wrong with that."""

PYTHON = (3, 11)
"""Minimum supported version."""

GIT_TIMEOUT_S = 60.0
MIN_FREE_BYTES = 200_000_000
FULL_BYTES = 1_000_000
"""Below this, the disk has no room for a write."""
_MANY = 1_000

_KEYED = ("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai", "cohere")
"""Providers whose key is in ``<PROVIDER>_API_KEY``; nothing is assumed about others."""


class CheckupResult(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        name: What was checked, in one word.
        mark: The verdict.
        what: One sentence on the result.
        todo: What to do; empty if nothing is needed.
    """

    name: str
    mark: Mark
    what: str
    todo: str = ""


_MARKS: dict[Mark, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "absent": ("–", "dim"),
    "warning": ("!", "yellow"),
    "failure": ("✗", "red"),
}


def doctor(terminal: Terminal) -> None:
    """Check Python, Git, and the history, repository, index and settings; exit 1 if something is broken."""
    folder = terminal.folder
    findings: list[CheckupResult] = []

    def tell(found: Iterable[CheckupResult]) -> None:
        for finding in found:
            findings.append(finding)
            if not terminal.json:
                _show(terminal, finding)

    tell(_machine(terminal.settings))
    try:
        root = find_root(folder)
    except NotAWorkspace as error:
        tell([CheckupResult("workspace", "warning", str(error), "")])
    else:
        with terminal.busy("Looking through the workspace"):
            tell(_at_rest(root, terminal.settings))
            if not any(finding.mark == "failure" for finding in findings):
                tell(_at_work(root, terminal.settings))
    broken = sum(finding.mark == "failure" for finding in findings)
    summary = Text(f"\n{broken} of {len(findings)} checks failed.", "bold red")
    if not broken:
        hints = sum(finding.mark == "warning" for finding in findings)
        more = f"; {counted(hints, 'hint')}" if hints else ""
        summary = Text(f"\nNo problems found{more}.", "bold green")
    terminal.result({"healthy": not broken, "checks": findings}, summary)
    if broken:
        raise typer.Exit(1)


def _show(terminal: Terminal, finding: CheckupResult) -> None:
    mark, colour = _MARKS[finding.mark]
    line = Text.assemble((f"{mark} ", colour), (f"{finding.name:<12}", "bold"), plain(finding.what))
    terminal.show(line)
    if finding.todo:
        terminal.show(Text.assemble(" " * 14, ("→ ", colour), (plain(finding.todo), colour)))


# --- the machine --------------------------------------------------------------------------------------------


def _machine(settings: Settings) -> Iterator[CheckupResult]:
    """Check what needs no workspace: Python, Git, isolation, extras, the embedding model."""
    found = platform.python_version()
    if sys.version_info >= PYTHON:
        yield CheckupResult("python", "ok", f"{found} at {sys.executable}")
    else:
        yield CheckupResult("python", "failure", f"{found} is too old", "Install Python 3.11 or newer.")
    yield _git(settings)
    yield _isolation(settings)
    yield _server(settings)
    for extra in EXTRAS:
        if extra.missing():
            what = f"{extra.name} is not installed: {extra.feature}. Without it, {extra.without}"
            yield CheckupResult("extra", "absent", what, extra.command)
        else:
            yield CheckupResult("extra", "ok", f"{extra.name} is installed: {extra.feature}")
    if EMBEDDING.missing():
        return
    folder = minilm_folder(settings.cache_dir)
    if is_whole(folder):
        yield CheckupResult("embeddings", "ok", f"MiniLM is installed in {folder}")
    else:
        broken = "is damaged" if folder.exists() else "is not installed"
        yield CheckupResult(
            "embeddings", "warning", f"MiniLM {broken}, so search is lexical", "agentx models install minilm"
        )


def _isolation(settings: Settings) -> CheckupResult:
    kind, notes = isolation_for(SandboxPolicy(environ=settings.environ))
    todo = "Install bubblewrap before you let agents run code that you have not read."
    match kind:
        case "bubblewrap":
            what = "bubblewrap works: commands run without network and see only their copy and the system"
            return CheckupResult("isolation", "ok", "; ".join([what, *notes]))
        case "landlock":
            what = "Landlock works: commands have no sockets, and see only their copy and the system"
            return CheckupResult(
                "isolation", "warning" if notes else "ok", "; ".join([what, *notes]), todo if notes else ""
            )
    return CheckupResult("isolation", "warning", f"{'; '.join(notes)}: commands can do what you can", todo)


def _server(settings: Settings) -> CheckupResult:
    """Check whether a server can run here: without one commands are slow, and hooks record later."""
    if place.is_off(settings.environ):
        return CheckupResult("server", "ok", "switched off: every command does its work itself")
    where = place.runtime_dir(settings.environ)
    try:
        place.check(where)
    except FileNotFoundError:
        return CheckupResult("server", "ok", f"the first command that profits from it makes {where}")
    except (place.PlaceRefused, OSError) as error:
        why = f"no server can run, so commands are slow and hooks record later: {error}"
        return CheckupResult("server", "warning", why, "Fix the directory, or set AGENTX_RUNTIME_DIR.")
    return CheckupResult("server", "ok", f"its directory {where} is private")


def _git(settings: Settings) -> CheckupResult:
    program = shutil.which("git", path=settings.environ.get("PATH", os.defpath))
    if program is None:
        return CheckupResult(
            "git",
            "warning",
            "the git program is not installed; AgentX does not need it",
            "Install git to look at a workspace with `git log`.",
        )
    problem = f"no answer within {GIT_TIMEOUT_S} s"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
        if not done.returncode:
            return CheckupResult("git", "ok", done.stdout.strip() or program)
        problem = done.stderr.strip() or problem
    return CheckupResult("git", "warning", f"{program} does not work: {problem}", "Repair or reinstall git.")


# --- a closed workspace -------------------------------------------------------------------------------------


def _at_rest(root: Path, settings: Settings) -> Iterator[CheckupResult]:
    """Check a workspace without opening it."""
    yield CheckupResult("workspace", "ok", str(root))
    yield _rights(root)
    yield _space(root)
    try:
        config = read_config(root)
    except ConfigInvalid as error:
        yield CheckupResult(
            "config",
            "failure",
            str(error),
            "Fix agentx.toml by hand; `git log -p agentx.toml` shows earlier versions.",
        )
    else:
        yield CheckupResult(
            "config", "ok", f"{FILE} can be read" if (root / FILE).exists() else "all settings are default"
        )
        if why := Trust.read(root, settings).why_restricted():
            yield CheckupResult("trust", "warning", restricted(why), "Review it with `agentx trust --show`.")
        else:
            yield CheckupResult("trust", "ok", "what its settings run, call and read is trusted")
            yield _model(config, settings)
            yield from _outside(root, config)
    yield from _integrity(root)
    yield from _history(root)


def _rights(root: Path) -> CheckupResult:
    if why := why_refused(root):
        what, _, todo = why.partition(". ")
        return CheckupResult("rights", "warning", f"the workspace opens read-only: {what}", todo)
    try:
        with tempfile.TemporaryFile(dir=root / ".git"):
            return CheckupResult("rights", "ok", "everything can be read and written")
    except OSError as error:
        return CheckupResult(
            "rights",
            "failure",
            f"nothing can be written to {root}: {error.strerror}",
            "Free some space, or mount it for writing.",
        )


def _space(root: Path) -> CheckupResult:
    free = shutil.disk_usage(root).free
    if free < FULL_BYTES:
        return CheckupResult(
            "disk", "failure", "the disk is full", "Free some space: nothing more can be recorded."
        )
    if free < MIN_FREE_BYTES:
        return CheckupResult(
            "disk", "warning", f"only {free / 1e6:,.0f} MB are free", "Free some space before the next run."
        )
    return CheckupResult("disk", "ok", f"{free / 1e9:,.1f} GB are free")


def _model(config: Config, settings: Settings) -> CheckupResult:
    name = config.model.name or settings.model
    if not name:
        return CheckupResult(
            "model",
            "warning",
            "no model is set; pass --model to a run",
            "agentx config set model.name PROVIDER/NAME",
        )
    if name.startswith(SCRIPT):
        try:
            open_model(name)
        except ModelError as error:
            return CheckupResult("model", "failure", str(error), "Name an existing script, or a model.")
        return CheckupResult("model", "ok", f"{name}: a script, not a model")
    provider = name.partition("/")[0]
    variable = f"{provider.upper()}_API_KEY"
    keyed = settings.api_key or settings.keys.get(variable) or config.model.api_base or settings.api_base
    if provider in _KEYED and not keyed:
        return CheckupResult(
            "model", "warning", f"{name} is set, but not its key", f"Set {variable}, or AGENTX_API_KEY."
        )
    return CheckupResult("model", "ok", f"{name} (not contacted)")


def _outside(root: Path, config: Config) -> Iterator[CheckupResult]:
    """Check that the sources and linked workspaces of the settings are there."""
    for source in config.sources:
        place = (root / source.path).resolve()
        if place.is_dir() and os.access(place, os.R_OK | os.X_OK):
            yield CheckupResult("source", "ok", f"{source.name} at {place}")
        else:
            todo = "Mount it, or fix `sources` in agentx.toml."
            what = f"{source.name}: {place} is not a readable directory"
            yield CheckupResult("source", "failure", what, todo)
    for link in config.links:
        place = (root / link.path).resolve()
        if is_workspace(place):
            yield CheckupResult("link", "ok", f"{link.name} to {place}")
        else:
            todo = "Mount it, or fix `links` in agentx.toml."
            yield CheckupResult("link", "failure", f"{link.name}: {place} is not a workspace", todo)


def _integrity(root: Path) -> Iterator[CheckupResult]:
    """Run the checks of `agentx verify`. A file that differs may be the user's edit."""
    verified = verify(root)
    for check in verified.checks:
        found = [finding for finding in verified.findings if finding.check == check.name]
        mark: Mark = "warning" if check.name in {"artifacts", "index"} else "failure"
        for finding in found:
            yield CheckupResult(check.name, mark, f"{finding.where} {finding.what}", finding.todo)
        if not found and check.name != "index":  # checked again once the workspace is open
            yield CheckupResult(check.name, "ok", check.what)


def _history(root: Path) -> Iterator[CheckupResult]:
    state = fold(root, record_codec(), told_already)
    if state.format > FORMAT:
        yield CheckupResult(
            "format",
            "warning",
            f"written by a newer version (format {state.format}): it opens read-only",
            "pip install --upgrade agentx-workspace",
        )
    if state.unknown:
        yield CheckupResult(
            "events",
            "warning",
            f"{state.unknown} are of a type that this version does not know; they are kept",
            "pip install --upgrade agentx-workspace",
        )
    orphans = root / ORPHANS
    if orphans.exists():
        yield CheckupResult(
            "orphans",
            "warning",
            f"lines that did not extend the chain were moved to {orphans}",
            "Check whether you miss anything in it; it is harmless.",
        )
    if state.pending:
        waiting = sum(call.awaits_approval and call.approved is None for call in state.pending.values())
        todo = "agentx approve" if waiting else "Look at its output, and run it again."
        yield CheckupResult(
            "calls",
            "warning",
            f"{len(state.pending)} tool calls have no result, {waiting} need your approval",
            todo,
        )


# --- an opened workspace ------------------------------------------------------------------------------------


def _at_work(root: Path, settings: Settings) -> Iterator[CheckupResult]:
    """Check what shows only in an open workspace: recovery, the digest, the index."""
    try:
        with Workspace.open(root, settings=settings) as ws:
            for note in ws.engine.write_path.notes:
                yield CheckupResult("noticed", "warning", note)
            yield _index(ws)
    except AgentXError as error:
        yield CheckupResult("open", "failure", str(error), "Follow the message.")


def _index(ws: Workspace) -> CheckupResult:
    indexer = ws.engine.indexer
    try:
        behind = ws.state.seq - indexer.watermark
        bare = len(indexer.index.without_vectors(_MANY)) if not indexer.why_lexical else 0
        count = indexer.index.count()
    except AgentXError as error:
        return CheckupResult("index", "warning", str(error), "agentx rebuild")
    left = [
        f"{counted(behind, 'event')} to read" * (behind > 0),
        f"{bare}{'+' * (bare == _MANY)} passages to embed" * (bare > 0),
    ]
    more = "; ".join(part for part in left if part)
    return CheckupResult(
        "index", "ok", f"{count:,} passages" + (f", {more} by the next search" if more else ", up to date")
    )
