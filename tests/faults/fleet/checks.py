"""What must hold for a workspace after everything: looked at from outside, in a fresh clone."""

import dataclasses
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from agentx.settings import read_settings
from agentx.storage.events.types import RunEnded, RunStarted
from agentx.workspace import Workspace

ZERO = "0" * 40
STRANDED = "refs/agentx/stranded/"
_CUT_OFF = ("INTERRUPTED", "STOPPED")


@dataclasses.dataclass
class Found:
    """What is in a workspace's remote.

    Attributes:
        workspace: Its name.
        findings: Everything that is not as it must be.
        hashes: Those of all events, of side refs, too.
        resumed: Submissions whose run was resumed, and how often.
        refs: Its side refs.
        commits: Number of commits of the branch.
        size_bytes: Size of the repository.
        current: Number of workers' copies that are up to date.
    """

    workspace: str
    findings: list = dataclasses.field(default_factory=list)
    hashes: set = dataclasses.field(default_factory=set)
    resumed: dict = dataclasses.field(default_factory=dict)
    refs: dict = dataclasses.field(default_factory=dict)
    commits: int = 0
    size_bytes: int = 0
    current: int = 0


def check(workspace, submissions, url, remote, homes, folder, environ, secrets):
    """Check a workspace.

    Args:
        workspace: Its name.
        submissions: Ids of its submissions, in their order.
        url: Its remote's URL.
        remote: The remote's directory.
        homes: Those of the workers, which have ended.
        folder: Where to put the clone.
        environ: The user's environment.
        secrets: What no file of the repository may contain.
    """
    found = Found(workspace)
    clone = folder / workspace
    try:
        subprocess.run(["git", "clone", "-q", url, str(clone)], check=True, capture_output=True)
        _check(found, submissions, Path(remote), homes, clone, read_settings(environ), secrets)
    except Exception as error:
        found.findings.append(f"the check failed: {error!r}")
    shutil.rmtree(clone, ignore_errors=True)
    return found


def _check(found, submissions, remote, homes, clone, settings, secrets):
    tell = found.findings.append
    commits = git(remote, "rev-list", "--first-parent", "--reverse", "main").split()
    found.commits = len(commits)
    found.size_bytes = sum(one.stat().st_size for one in remote.rglob("*") if one.is_file())
    if git(remote, "rev-list", "--min-parents=2", "--all"):
        tell("its history has a merge")
    _check_moves(tell, remote, commits)
    for line in git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines():
        ref, commit = line.split()
        if ref.startswith(STRANDED):
            found.refs[ref] = commit
        elif ref != "refs/heads/main":
            tell(f"the remote has a ref {ref}")
    with Workspace.open(clone, settings=settings) as ws:
        if not (verified := ws.verify()).sound:
            tell(f"`agentx verify` is not sound: {verified}")
        events = list(ws.events())
        fresh = digest(ws)
        ws.rebuild()
        if digest(ws) != fresh:
            tell("the digest of a rebuilt clone differs")
    _check_runs(found, submissions, events)
    found.hashes = {one.hash for one in events}
    for commit in found.refs.values():
        found.hashes |= hashes_at(remote, commit)
    for home in homes:
        _check_copy(found, home, fresh, set(commits), settings)
    text = git(remote, "log", "-p", "--all", "--format=%B")
    for secret in secrets:
        if secret in text:
            tell("the history holds a secret")


def _check_moves(tell, remote, commits):
    """Check that the branch only moved forward."""
    before, place = ZERO, -1
    positions = {commit: number for number, commit in enumerate(commits)}
    for line in (remote / "logs/refs/heads/main").read_text().splitlines():
        old, new = line.split()[:2]
        if old != before:
            tell(f"the branch moved from {old}, but it was at {before}")
        if positions.get(new, -1) <= place:
            tell(f"the branch did not move forward, to {new}")
        before, place = new, positions.get(new, -1)
    if place != len(commits) - 1:
        tell("the branch is not where it was moved last")


def _check_runs(found, submissions, events):
    """Check that each submission was started once, ended once, and in order."""
    tell = found.findings.append
    started = [one for one in events if isinstance(one.data, RunStarted)]
    runs = {one.run: one.key.removeprefix("fleet:") for one in started if one.key}
    anew = [runs.get(one.run, f"the run {one.run}") for one in started if not one.data.resumes]
    if anew != submissions:
        for name, times in (Counter(anew) - Counter(submissions)).items():
            tell(f"{name} was started {times} times more than it should be")
        for name in Counter(submissions) - Counter(anew):
            tell(f"{name} was never started")
        if Counter(anew) == Counter(submissions):
            tell(f"not in order: {anew}")
    found.resumed = dict(Counter(runs.get(one.run, "") for one in started if one.data.resumes))
    ends = {}
    for one in events:
        if isinstance(one.data, RunEnded):
            ends.setdefault(runs.get(one.run, one.run), []).append(one.data.status)
    for name in submissions:
        *cut, last = ends.get(name, ["NONE"])
        if last != "COMPLETED" or set(cut) - set(_CUT_OFF):
            tell(f"{name} ended as {ends.get(name)}")


def _check_copy(found, home, fresh, commits, settings):
    """Check that a worker's copy holds nothing that the branch lacks, and equals it where it is up to date."""
    copy = home / "workspaces" / found.workspace
    if not copy.is_dir():
        return
    head = git(copy, "rev-parse", "main")
    if head not in commits:
        found.findings.append(f"the copy of {home.parent.name} is at {head}, which the branch lacks")
        return
    with Workspace.open(copy, settings=settings) as ws:
        its = digest(ws)
        if ws.state.hash == fresh[0]:
            found.current += 1
            if its != fresh:
                found.findings.append(f"the digest of the copy of {home.parent.name} differs")
        elif ws.state.hash not in found.hashes:
            found.findings.append(f"the copy of {home.parent.name} has events that the branch lacks")


def hashes_at(remote, commit):
    """The hashes of all events in a commit."""
    found = set()
    names = git(remote, "ls-tree", "-r", "--name-only", commit, "history.jsonl", "history").splitlines()
    for name in names:
        if name.endswith(".jsonl"):
            for line in git(remote, "show", f"{commit}:{name}").splitlines():
                found.add(json.loads(line)["hash"])
    return found


def digest(ws):
    return (ws.state.hash, ws.state.digest, str(ws.engine.git.manifest()))


def git(where, *arguments):
    done = subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace").strip()
