"""Make workspaces for ``tests/workspaces``: histories of each subsystem, and workspaces whose writer was killed.

    python -m tests.old_histories subsystems     play each subsystem (needs the program faketime), pack and describe it
    python -m tests.old_histories killed         kill writers at chosen steps, pack and describe what they left
    python -m tests.old_histories digests        add the digests that this version of the fold gives

An archive is made once, by the version that writes this form of history, and is never made again: only new names are
added. Beside it lies what holds for ever: the lines, and the items as they were read then (id, kind, text, status,
evidence). ``digests.json`` has the digest of each state under each version of the fold.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentx import Workspace
from agentx.settings import Settings
from agentx.synthesis.state.state import FOLD_VERSION
from tests.faults.children import start
from tests.faults.disk import Disk, Fault

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "tests" / "workspaces"
DIGESTS = HOME / "digests.json"
SAMPLES = (
    "appointment-reminders",
    "deploy-flow",
    "disable-cache",
    "fables",
    "garden",
    "job-offers",
    "lesson-to-check",
    "news-monitor",
    "recovery",
    "rejected-idea",
    "settled",
)
"""Acts, flows, checks, pipelines, cognition, directors, lessons, checkpoints, notes, rejections and settled candidates."""

_CACHES = {"index", "snapshots", "models", "world"}
"""Folders of ``.agentx`` that are computed again, or are a sample's own."""


def archives() -> list[Path]:
    """Return every archive that there is."""
    return sorted(HOME.rglob("*.tar.*"))


def name_of(archive: Path) -> str:
    """Return the name of an archive in what describes it, such as ``killed/write-1``."""
    return str(archive.relative_to(HOME)).partition(".tar.")[0]


def unpacked(archive: Path, into: Path) -> Path:
    """Unpack an archive; return the workspace."""
    with tarfile.open(archive) as files:
        files.extractall(into, filter="data")
    return into


def settings(folder: Path) -> Settings:
    """An environment without a model and without trust."""
    return Settings(environ=dict(os.environ), cache_dir=folder / "no-models", state_dir=folder / "state")


def lines_of(root: Path) -> bytes:
    """Return all lines of a history, sealed segments first, as the files hold them."""
    segments = sorted(
        root.glob("history/*/*.jsonl")
    )  # not the lines that were set aside, history/orphans.jsonl
    return b"".join(file.read_bytes() for file in [*segments, root / "history.jsonl"])


def described(ws: Workspace) -> dict[str, Any]:
    """Return what holds for ever of an open workspace: its lines, and what its items say."""
    lines = lines_of(ws.root)
    items = [
        {
            "id": item.id,
            "kind": item.kind,
            "text": item.text,
            "status": item.status,
            "evidence": [[one.seq, one.quote] for one in item.evidence],
        }
        for item in ws.memory(status=None)
    ]
    return {"events": lines.count(b"\n"), "lines": hashlib.sha256(lines).hexdigest(), "items": items}


def digests() -> dict[str, dict[str, str]]:
    """Return the digest of each workspace's state, by version of the fold."""
    return json.loads(DIGESTS.read_text("utf-8")) if DIGESTS.exists() else {}


def pin_digests() -> None:
    """Add the digests that this version gives; those of a version that are there already stay."""
    known = digests()
    mine = known.setdefault(str(FOLD_VERSION), {})
    for archive in archives():
        with tempfile.TemporaryDirectory() as folder:
            root = unpacked(archive, Path(folder) / "task")
            last = last_described(archive, root)
            with Workspace.open(root, settings=settings(Path(folder))) as ws:
                mine.setdefault(name_of(archive), ws.state_at(last).digest)
    DIGESTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")


def last_described(archive: Path, root: Path) -> int:
    """Return the last event that an archive is known to have; opening it may append others."""
    page = archive.with_name(archive.name.partition(".tar.")[0] + ".json")
    told = json.loads(page.read_text("utf-8")) if page.exists() else None
    return told["events"] if isinstance(told, dict) and "events" in told else lines_of(root).count(b"\n")


# --- one workspace for each subsystem -----------------------------------------------------------------


class Shell:
    """The command line in a directory, at a time of day that the maker chooses."""

    def __init__(self, cwd: Path, environ: dict[str, str]) -> None:
        self.cwd, self.environ = cwd, environ

    def __call__(self, *words: str, stdin: str = "", day: str = "") -> str:
        clock = ["faketime", day] if day else []
        command = [*clock, sys.executable, "-P", "-m", "agentx", *words]
        done = subprocess.run(
            command, cwd=self.cwd, env=self.environ, input=stdin, text=True, capture_output=True, check=False
        )
        if done.returncode not in {0, 3, 4}:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def __getitem__(self, name: str) -> "Shell":
        return Shell(self.cwd / name, self.environ)


def nights(shell: Shell) -> Path:
    """Rules with scores, tasks that keep, break and pass them over, and six weeks of nights."""
    shell("init", "nights", "--title", "Rules that live", day="2026-03-01 08:00:00")
    task = shell["nights"]
    for text, score in [
        ("Run the migration check before a deploy.", "5"),
        ("Check the stock before an order is confirmed.", "7"),
        ("Read the file before deleting it.", "10"),
        ("Check the stock before an order is confirmed by mail.", "5.5"),
        ("Prefer short commit messages.", "2"),
    ]:
        task("memory", "add", text, "--kind", "rule", "--score", score, day="2026-03-01 09:00:00")
    rules = json.loads(task("--json", "memory", "list", "--kind", "rule", day="2026-03-01 09:05:00"))
    ids = [rule["id"] for rule in rules]
    for day in range(1, 42, 2):
        today = f"2026-{3 + day // 31:02}-{1 + day % 31:02}"
        task("gate", "pre", "deploy the shop and run the migration", day=f"{today} 10:00:00")
        more = ["--kept", ids[0]] if day % 4 == 1 else ["--broke", ids[1]]
        grade = "--pass" if day % 5 else "--fail"
        task(
            "gate",
            "post",
            "Deployed the shop.",
            grade,
            "--lesson",
            f"Lesson {day}: warm the cache first.",
            *more,
            day=f"{today} 11:00:00",
        )
        task("memory", "maintain", day=f"{today} 23:50:00")
    task("memory", "maintain", "--undo", day="2026-04-20 08:00:00")
    return task.cwd


def beside(shell: Shell) -> Path:
    """Sessions of two hosts beside a project, by the payloads of the real ones."""
    project = shell.cwd / "parcel"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    inside = shell["parcel"]
    inside("install", "claude-code", "--yes")
    inside("install", "codex", "--yes")
    for host, old in [("claude-code", "/home/u/parcel"), ("codex", "/home/u/p-codex")]:
        for name in [
            "SessionStart-startup",
            "UserPromptSubmit",
            "PreToolUse-Bash",
            "PostToolUse-Bash",
            "Stop",
            "SessionEnd",
        ]:
            payload = (
                (ROOT / f"tests/payloads/{host}/{name}.json").read_text("utf-8").replace(old, str(project))
            )
            inside("hook", host, stdin=payload)
    inside("serve", "--stop")
    return next(project.glob("**/history.jsonl")).parent


def imported(shell: Shell) -> Path:
    """Conversations of another agent, imported."""
    shell("init", "imported", "--title", "Imported work")
    messages = [
        {"role": "user", "content": "From now on, answer in Portuguese. Never touch the file seeds.csv."},
        {"role": "assistant", "content": "Entendido. I decided to keep the seeds apart from the beds."},
        {"role": "user", "content": "No, forget the greenhouse, we won't build one."},
        {"role": "assistant", "content": "The greenhouse is off. Next: water the beds."},
    ]
    chat = shell.cwd / "imported" / "chat.json"
    chat.write_text(json.dumps({"messages": messages}), "utf-8")
    shell["imported"]("import", "openai", str(chat))
    chat.unlink()
    return shell.cwd / "imported"


def following(shell: Shell) -> Path:
    """A workspace that follows another one's rules, and stops."""
    shell("init", "team", "--title", "The team's rules")
    shell["team"]("say", "From now on, never write to the folder vendored/.")
    shell("init", "following", "--title", "A follower")
    task = shell["following"]
    task("follow", "../team", "--name", "team")
    task("gate", "pre", "write vendored/a.py")
    task("say", "Always answer in French.")
    task("follow", "--stop", "team")
    return task.cwd


def purged(shell: Shell) -> Path:
    """A workspace with a purged message, an undone change, a restored file and a moment far back."""
    shell("init", "purged", "--title", "Purged")
    task = shell["purged"]
    task("say", "Never mention Aunt Erna's illness in the letters.")
    task("say", "Always sign as Team Fjord.")
    for text in ("one", "two", "three"):
        task("tool", "write_file", "path=letter.md", f"content=Dear all, {text}.")
    task("undo")
    seq = json.loads(task("--json", "log", "--type", "UserMessageSent").splitlines()[0])["seq"]
    task("purge", "--event", str(seq), "--reason", "private", "--yes")
    task("say", "Always write dates as 3 May 2026.")
    return task.cwd


def missions(shell: Shell) -> Path:
    """Missions, capabilities, flows, schedules, notes and ended items."""
    shell("init", "missions", "--title", "Many parts")
    task = shell["missions"]
    task("agent", "mission", "set", "--agent", "writer", "Readers come back.")
    task(
        "flow",
        "add",
        "deploy the site",
        "--step",
        "Build.",
        "--step",
        "Upload.",
        "--trigger",
        "publish",
        "--approval",
    )
    task("flow", "add", "answer a letter", "--step", "Read it.", "--step", "Answer it.")
    task("schedule", "add", "0 8 * * 1", "Read the mail.", "--zone", "Europe/Berlin")
    task("memory", "add", "The print shop closes on Fridays.", "--kind", "knowledge")
    task("memory", "add", "We print on recycled paper.", "--kind", "decision")
    task("say", "Until the fair is over, no posts on weekends. I don't want a newsletter.")
    item = json.loads(task("--json", "memory", "list", "--kind", "decision"))[0]["id"]
    task("memory", "retire", item)
    task(
        "record",
        "--role",
        "assistant",
        "I decided to use the small press. I learned that ink dries in two hours.",
        "--as",
        "printer",
    )
    return task.cwd


MADE: tuple[Callable[[Shell], Path], ...] = (nights, beside, imported, following, purged, missions)


def make_subsystems() -> None:
    """Play each sample and each subsystem; pack those that have no archive yet."""
    shutil.rmtree(folder := Path("/tmp/agentx"), ignore_errors=True)  # the paths that a history then names
    try:
        (folder / "home").mkdir(parents=True)
        for part in ("agentx", "storage", "synthesis", "sample_workspaces"):
            shutil.copytree(ROOT / part, folder / part, symlinks=True)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "PYTHONPATH": str(folder),
            "AGENTX_CACHE_DIR": str(folder / "no-models"),
            "AGENTX_RUNTIME_DIR": str(folder / "rt"),
            "AGENTX_NO_SERVER": "1",
        }
        shell = Shell(folder / "work", environ)
        shell.cwd.mkdir()
        for sample in SAMPLES:
            if not _archive("subsystems", sample).exists():
                shell("run", "--sample", sample, "--into", sample)
                _pack("subsystems", sample, shell.cwd / sample)
        for make in MADE:
            if not _archive("subsystems", make.__name__).exists():
                _pack("subsystems", make.__name__, make(shell))
    finally:
        shutil.rmtree(folder)


# --- writers that were killed -------------------------------------------------------------------------


def _begun(folder: Path) -> Path:
    """A workspace with some history, all of it acknowledged."""
    root = folder / "task"
    with Workspace.create(root, title="Cut off", settings=settings(folder)) as ws:
        ws.say("From now on, never create a requirements.txt file.")
        for number in range(4):
            ws.tools.write_file(f"notes/{number}.md", f"Note {number}.\n" * 20)
        ws.say("Always answer in British English.")
    return root


def _write(ws: Workspace) -> None:
    ws.tools.write_file("notes/0.md", "Rewritten.\n" * 200)


def _many_writes(ws: Workspace) -> None:
    """Write often in one turn, so that commits are put off, and end without them."""
    for number in range(12):
        ws.tools.write_file(f"turn/{number}.md", f"Turn {number}.\n" * 30)


def _flush(ws: Workspace) -> None:
    ws.flush()


def _purge(ws: Workspace) -> None:
    ws.purge(2, reason="private")


def _pull(ws: Workspace) -> None:
    ws.pull("origin", url=str(ws.root.parent / "remote.git"))


KILLED: dict[str, Callable[[Workspace], None]] = {
    "write": _write,
    "deferred": _many_writes,
    "flush": _flush,
    "purge": _purge,
    "pull": _pull,
}


def make_killed() -> None:
    """Kill a writer at a few steps of each of its works; pack what it left and what was acknowledged before."""
    for name, work in KILLED.items():
        for part, (numerator, denominator) in enumerate([(1, 6), (2, 6), (3, 6), (4, 6), (5, 6)], 1):
            if not _archive("killed", f"{name}-{part}").exists():
                _kill(f"{name}-{part}", work, numerator / denominator)


def _kill(name: str, work: Callable[[Workspace], None], share: float) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as found:
        steps = 0
        for at in (0, 1):
            folder = Path(found) / str(at)
            folder.mkdir()
            root = _begun(folder)
            if name.startswith("pull"):
                _ahead(root, folder)
            before = lines_of(root)
            told = _in_a_child(root, folder, work, max(1, round(steps * share)) if at else 0)
            if failed := [one["error"] for one in told if "error" in one]:
                raise SystemExit(f"{name}: {failed[0]}")
            steps = next((one["steps"] for one in told if "steps" in one), 0)
        remote = root / ".git" / "config"
        remote.write_text(remote.read_text("utf-8").replace(str(folder), "/elsewhere"), "utf-8")
        _pack(
            "killed",
            name,
            root,
            {"acknowledged": before.count(b"\n"), "before": hashlib.sha256(before).hexdigest()},
        )


def _ahead(root: Path, folder: Path) -> None:
    """Make a remote that is ahead of the workspace."""
    other = folder / "other"
    shutil.copytree(root, other, symlinks=True)
    subprocess.run(["git", "init", "-q", "--bare", str(folder / "remote.git")], check=True)
    with Workspace.open(other, settings=settings(folder)) as ws:
        ws.trust()
        ws.say("Never use the word synergy.")
        ws.tools.write_file("ahead.md", "Written elsewhere.\n")
        ws.push("origin", url=str(folder / "remote.git"))


def _in_a_child(root: Path, folder: Path, work: Callable[[Workspace], None], at: int) -> list[dict[str, Any]]:
    def die(tell: Callable[[dict[str, Any]], None]) -> None:
        ws = Workspace.open(root, settings=settings(folder))
        if work is _flush:
            _many_writes(ws)  # what is then packed and committed at once
        disk = Disk(root, Fault("kill" if at % 2 else "tear", at) if at else Fault())
        disk.install()
        work(ws)
        tell({"steps": disk.steps})
        os._exit(0)

    return start(die).finish()


# --- archives -----------------------------------------------------------------------------------------


def _archive(kind: str, name: str) -> Path:
    return HOME / kind / f"{name}.tar.xz"


def _pack(kind: str, name: str, root: Path, told: dict[str, Any] | None = None) -> None:
    """Pack a workspace without what can be computed again, and describe it as it is read from the archive."""
    (HOME / kind).mkdir(exist_ok=True)
    if told is None:
        subprocess.run(
            ["git", "repack", "-adq"],
            cwd=root,
            check=True,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
        )
        subprocess.run(["git", "prune-packed", "-q"], cwd=root, check=True)
    archive = _archive(kind, name)
    with tarfile.open(archive, "w:xz") as files:
        for path in sorted(_kept(root)):
            files.add(path, path.relative_to(root), recursive=False, filter=_anonymous)
    with tempfile.TemporaryDirectory() as folder:
        copy = unpacked(archive, Path(folder) / "task")
        with Workspace.open(copy, settings=settings(Path(folder))) as ws:
            page = {**(told or {}), **described(ws)}
    (HOME / kind / f"{name}.json").write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(
        f"{kind}/{name}: {page['events']} events, {len(page['items'])} items, {archive.stat().st_size:,} bytes"
    )


def _kept(root: Path) -> Iterator[Path]:
    for path in root.rglob("*"):
        inner = path.relative_to(root).parts
        if inner[0] == ".agentx" and len(inner) > 1 and inner[1] in _CACHES:
            continue
        yield path


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if "subsystems" in wanted:
        make_subsystems()
    if "killed" in wanted:
        make_killed()
    if "digests" in wanted:
        pin_digests()
    if not wanted:
        print(__doc__)
